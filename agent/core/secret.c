/*
 * The bytes pass through the arena only, which is freed with the job that needed them.
 */
#include "agent/core/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_BYTES = 16384 }; /* tokens are short, JSON web tokens some thousand bytes */

bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error)
{
	char *text = arena_alloc(arena, SECRET_BYTES + 1);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, text, SECRET_BYTES + 1);
	int failure = errno;

	if (file >= 0)
		close(file);
	if (length < 0)
		return error_set(error, ERROR_DATA, "%s %s: %s", option, path, strerror(failure));
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
