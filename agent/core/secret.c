/*
 * The bytes pass through the arena only, which is freed with the job that needed them. The loop
 * may be the one who reads, so nothing is waited for: a pipe is refused and not opened to block.
 */
#include "agent/core/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_BYTES = 16384 }; /* tokens are short, JSON web tokens some thousand bytes */

/* -1 and errno, which is 0 if it is no regular file. */
static ssize_t read_file(int file, char *text)
{
	struct stat status;

	if (fstat(file, &status) != 0)
		return -1;
	errno = 0;
	return S_ISREG(status.st_mode) ? read(file, text, SECRET_BYTES + 1) : -1;
}

bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error)
{
	char *text = arena_alloc(arena, SECRET_BYTES + 1), reason[128];
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t length = file < 0 ? -1 : read_file(file, text);
	int failure = errno;

	if (file >= 0)
		close(file);
	if (length < 0)
		return error_set(error, ERROR_DATA, "%s %s: %s", option, path,
			failure ? strerror_r(failure, reason, sizeof reason)
				: "is no regular file");
	if (length > SECRET_BYTES || memchr(text, '\0', (size_t)length))
		return error_set(
			error, ERROR_DATA, "%s %s: is no secret in a line of text", option, path);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]))
		length--;
	text[length] = '\0';
	if (length == 0 || strpbrk(text, "\r\n"))
		return error_set(error, ERROR_DATA, "%s %s: must hold one line", option, path);
	*secret = text;
	return true;
}
