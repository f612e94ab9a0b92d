/*
 * Secrets that lie in files: the `*_file` options.
 *
 * They are read at each use, so that a token can be changed while the agent runs. Errors name the
 * option and the file, never the content.
 */
#ifndef CORE_SECRET_H
#define CORE_SECRET_H

#include "agent/core/arena.h"

/* The one line that the regular file holds, without the white space at its end, into the arena.
 * Fails with ERROR_DATA. */
bool secret_read(struct arena *arena, const char *option, const char *path, const char **secret,
	struct error *error) MUST_USE;

#endif
