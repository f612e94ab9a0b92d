/*
 * A file that a command was asked to write. It is there as a whole or as it was: it is written
 * under another name beside the target and renamed.
 */
#ifndef AGENT_COMMANDS_OUTPUT_FILE_H
#define AGENT_COMMANDS_OUTPUT_FILE_H

#include <stddef.h>

#include "agent/core/error.h"

/* Whether the file could be written now; for a command that works for long before it writes.
 * Changes nothing. ERROR_USAGE. */
bool output_check(const char *path, struct error *error) MUST_USE;

/* Writes it. What is there keeps its permissions; a link stays one; a pipe or a device is written
 * to as it is. ERROR_DATA. */
bool output_write(const char *path, const char *data, size_t length, struct error *error) MUST_USE;

#endif
