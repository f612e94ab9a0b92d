/*
 * A folder of a test: in memory where the system has room for it, so that no fsync of a state waits
 * for a disk that all tests share.
 */
#ifndef TESTS_UNIT_FOLDER_H
#define TESTS_UNIT_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Makes the folder and writes its path. */
static inline void folder_new(char *path, size_t size)
{
	struct statvfs room;
	bool memory = access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &room) == 0 &&
		      room.f_bavail * room.f_frsize > 1000000000;

	snprintf(path, size, "%s/hunter-unit-XXXXXX", memory ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(path));
}

#endif
