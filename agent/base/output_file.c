#include "agent/base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/buf.h"

enum { PERMISSIONS = 0666, PERMISSION_BITS = 0777 };

static bool cannot_write(const char *path, enum error_kind kind, struct error *error)
{
	return error_set(error, kind, "%s: cannot write the file: %s", path, strerror(errno));
}

bool output_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, data, length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return false;
		data += written;
		length -= (size_t)written;
	}
	return true;
}

/* Opens the file with these flags and writes it. Unless `like` is NULL it is a file, which is on
 * disk then, with the permissions of `like` if that exists. */
static bool fill(const char *path, int flags, const char *like, const char *data, size_t length)
{
	struct stat at;
	int fd = open(path, O_WRONLY | O_CLOEXEC | flags, PERMISSIONS);
	if (fd < 0)
		return false;
	bool good = !like || stat(like, &at) != 0 || fchmod(fd, at.st_mode & PERMISSION_BITS) == 0;
	good = good && output_all(fd, data, length) && (!like || fsync(fd) == 0);
	int problem = errno;
	if (close(fd) != 0 && good)
		return false;
	errno = problem;
	return good;
}

/* A unique name in the folder of the target, of bounded length. */
static void name_beside(struct buf *out, const char *target)
{
	const char *slash = strrchr(target, '/');
	uint64_t random = 0;
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		abort();
	buf_printf(
		out, "%.*s.new-%016" PRIx64, slash ? (int)(slash + 1 - target) : 0, target, random);
}

/* Tries to write: permissions do not reveal read-only mounts, full disks or odd folders. */
static bool can_add_beside(const char *target)
{
	struct buf beside = {0};
	name_beside(&beside, target);
	int fd = open(beside.data, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, PERMISSIONS);
	int problem = errno;
	if (fd >= 0) {
		close(fd);
		unlink(beside.data);
	}
	buf_free(&beside);
	errno = problem;
	return fd >= 0;
}

bool output_check(const char *path, struct error *error)
{
	struct stat at;
	char *real = realpath(path, NULL);
	bool there = stat(path, &at) == 0, good = there || errno == ENOENT;
	if (there && S_ISDIR(at.st_mode)) {
		errno = EISDIR;
		good = false;
	}
	good = good && (!there || access(path, W_OK) == 0);
	if (good && (!there || S_ISREG(at.st_mode)))
		good = can_add_beside(real ? real : path);
	if (!good)
		(void)cannot_write(path, ERROR_USAGE, error);
	free(real);
	return good;
}

bool output_write(const char *path, const char *data, size_t length, struct error *error)
{
	struct stat at;
	char *real = realpath(path, NULL);
	if (!real && lstat(path, &at) == 0 && S_ISLNK(at.st_mode)) /* dangling link */
		return fill(path, O_CREAT, NULL, data, length) ||
		       cannot_write(path, ERROR_DATA, error);
	if (stat(path, &at) == 0 && !S_ISREG(at.st_mode) && !S_ISDIR(at.st_mode)) {
		free(real);
		return fill(path, 0, NULL, data, length) || cannot_write(path, ERROR_DATA, error);
	}
	const char *target = real ? real : path;
	struct buf beside = {0};
	name_beside(&beside, target);
	bool good = fill(beside.data, O_CREAT | O_EXCL, target, data, length) &&
		    rename(beside.data, target) == 0;
	if (!good) {
		(void)cannot_write(path, ERROR_DATA, error);
		unlink(beside.data);
	}
	buf_free(&beside);
	free(real);
	return good;
}
