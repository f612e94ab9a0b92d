/*
 * An output file, written as a whole or left as it was.
 *
 * The new content goes to a temporary file in the same folder, which is then renamed; devices
 * and pipes are written directly.
 */
#ifndef AGENT_BASE_OUTPUT_FILE_H
#define AGENT_BASE_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/base/error.h"

/* Whether the file can be written now; for a command that computes for long, or asks a person,
 * before it writes. Leaves nothing behind. ERROR_USAGE. */
bool output_check(const char *path, struct error *error) MUST_USE;

/* Writes the file. An existing file keeps its permissions; a link stays one; a pipe or a device
 * is written directly. ERROR_DATA. */
bool output_write(const char *path, const char *data, size_t length, struct error *error) MUST_USE;

/* Writes all to an open file; false with errno. */
bool output_all(int fd, const char *data, size_t length);

#endif
