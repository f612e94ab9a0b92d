/*
 * Bytes as the input of a file source: a file without a name, which the next input reuses.
 */
#ifndef TESTS_UNIT_MEMORY_INPUT_H
#define TESTS_UNIT_MEMORY_INPUT_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sources/files/input.h"

static inline struct input input_bytes(const char *name, const void *bytes, size_t size)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	for (size_t done = 0; done < size;) {
		ssize_t wrote = pwrite(fd, (const char *)bytes + done, size - done, (off_t)done);

		if (wrote <= 0)
			abort();
		done += (size_t)wrote;
	}
	return input_descriptor(name, fd);
}

#endif
