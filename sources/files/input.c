/*
 * A short read is not the end of a pipe, so input_read continues until the buffer is full. A caller
 * that rescans its buffer while it holds no whole record then rescans once per doubling, not once
 * per write of the other side.
 *
 * Files are opened with O_NONBLOCK, since opening a named pipe would otherwise wait without limit
 * for its writer; poll() does the waiting. On Linux it keeps waiting for a pipe that has no writer
 * yet, and reports the end of one whose writer has gone. For a regular file this costs a system
 * call per block.
 */
#include "sources/files/input.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/when.h"

static bool fail(const char *path, int reason, struct error *error)
{
	char text[128];

	if (reason == ENOENT)
		return error_set(error, ERROR_DATA, "%s: no such file", path);
	return error_set(error, ERROR_DATA, "%s: cannot be read: %s", path,
		strerror_r(reason, text, sizeof text));
}

bool input_open(struct input *input, const char *path, int64_t timeout, struct error *error)
{
	int64_t deadline = timeout > 0 ? clock_monotonic() + timeout : 0;
	struct stat status;

	*input = (struct input){.name = path,
		.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
		.timeout = timeout,
		.deadline = deadline};
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

struct input input_descriptor(const char *name, int fd)
{
	return (struct input){.name = name, .fd = fd};
}

/* Waits until a read would not block; false if the time is over. */
static bool wait_readable(const struct input *input)
{
	struct pollfd ready = {.fd = input->fd, .events = POLLIN};

	for (;;) {
		int64_t left = INT_MAX;

		if (input->timeout > 0)
			left = input->deadline - clock_monotonic();
		if (left <= 0)
			return false;
		if (poll(&ready, 1, left > INT_MAX ? INT_MAX : (int)left) > 0)
			return true; /* read() reports any error */
	}
}

bool input_read_some(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error)
{
	char duration[WHEN_TEXT];

	*got = 0;
	while (wait_readable(input)) {
		ssize_t count = read(input->fd, buffer, size);

		if (count >= 0) {
			*got = (size_t)count;
			return true;
		}
		if (errno != EINTR && errno != EAGAIN)
			return fail(input->name, errno, error);
	}
	return error_set(error, ERROR_DATA, "%s: not read completely within %s (read_timeout)",
		input->name, when_format_duration(input->timeout, duration));
}

bool input_read(struct input *input, char *buffer, size_t size, size_t *got, struct error *error)
{
	size_t count;

	*got = 0;
	do {
		if (!input_read_some(input, buffer + *got, size - *got, &count, error))
			return false;
		*got += count;
	} while (count > 0 && *got < size);
	return true;
}
