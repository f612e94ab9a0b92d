/*
 * Bytes from a file, or from memory where a test or a fuzzer plays the file: what the file sources
 * read from.
 *
 * A pipe is waited for: for its writer to come, and for what it writes. Reading in all has a time
 * limit, if one is given.
 */
#ifndef SOURCES_FILES_INPUT_H
#define SOURCES_FILES_INPUT_H

#include <stdint.h>

#include "agent/core/error.h"

struct input {
	const char *name; /* for messages; borrowed */
	int fd;           /* -1: bytes in memory */
	const char *bytes;
	size_t left;
	int64_t timeout;  /* ms; 0: none */
	int64_t deadline; /* ms of the monotonic clock, where there is a timeout */
};

/*
 * Opens a file or pipe for reading, which may take `timeout` ms from now on, 0: any time. Fails
 * (ERROR_DATA) naming it and why; a folder is a failure.
 */
bool input_open(
	struct input *input, const char *path, int64_t timeout, struct error *error) MUST_USE;
void input_close(struct input *input);

/* Borrowed memory, or an open descriptor of the caller's, as an input; needs no input_close. */
struct input input_bytes(const char *name, const void *bytes, size_t size);
struct input input_descriptor(const char *name, int fd);

/* Fills the buffer; less than `size` only at the end. Fails (ERROR_DATA) where reading does, and
 * where the time is over. */
bool input_read(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error) MUST_USE;

/* The same, but hands out what is there as soon as something is; *got is 0 only at the end. */
bool input_read_some(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error) MUST_USE;

#endif
