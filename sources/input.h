/*
 * Bytes from a file, or from memory where a test or a fuzzer plays the file: what the file sources
 * read from.
 */
#ifndef SOURCES_INPUT_H
#define SOURCES_INPUT_H

#include "agent/core/error.h"

struct input {
	const char *name; /* for messages; borrowed */
	int fd;           /* -1: bytes in memory */
	const char *bytes;
	size_t left;
};

/* Opens a file or pipe for reading. Fails (ERROR_DATA) naming it and why; a folder is a failure. */
bool input_open(struct input *input, const char *path, struct error *error) MUST_USE;
void input_close(struct input *input);

/* Borrowed memory as an input; needs no input_close. */
struct input input_bytes(const char *name, const void *bytes, size_t size);

/* Fills the buffer; less than `size` only at the end. Fails (ERROR_DATA) where reading does. */
bool input_read(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error) MUST_USE;

#endif
