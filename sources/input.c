/*
 * A short read is not the end of a pipe, so reading goes on until the buffer is full: who scans a
 * buffer again when it holds no whole record then does so once for each doubling of it, not once
 * for each write of the other side.
 */
#include "sources/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(const char *path, int reason, struct error *error)
{
	char text[128];

	if (reason == ENOENT)
		return error_set(error, ERROR_DATA, "%s: no such file", path);
	return error_set(error, ERROR_DATA, "%s: can not be read: %s", path,
		strerror_r(reason, text, sizeof text));
}

bool input_open(struct input *input, const char *path, struct error *error)
{
	struct stat status;

	*input = (struct input){.name = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (input->fd < 0)
		return fail(path, errno, error);
	if (fstat(input->fd, &status) == 0 && S_ISDIR(status.st_mode)) {
		input_close(input);
		return fail(path, EISDIR, error);
	}
	return true;
}

void input_close(struct input *input)
{
	if (input->fd >= 0)
		close(input->fd);
	input->fd = -1;
}

struct input input_bytes(const char *name, const void *bytes, size_t size)
{
	return (struct input){.name = name, .fd = -1, .bytes = bytes, .left = size};
}

bool input_read(struct input *input, char *buffer, size_t size, size_t *got, struct error *error)
{
	*got = 0;
	if (input->fd < 0) {
		*got = input->left < size ? input->left : size;
		if (*got)
			memcpy(buffer, input->bytes, *got);
		input->bytes += *got;
		input->left -= *got;
		return true;
	}
	while (*got < size) {
		ssize_t count = read(input->fd, buffer + *got, size - *got);

		if (count == 0)
			break;
		if (count > 0)
			*got += (size_t)count;
		else if (errno != EINTR)
			return fail(input->name, errno, error);
	}
	return true;
}
