/*
 * Input of the file sources: bytes from a file or pipe.
 *
 * Reading a pipe waits for its writer and for its data. A time limit, if given, covers all of the
 * reading.
 */
#ifndef SOURCES_FILES_INPUT_H
#define SOURCES_FILES_INPUT_H

#include <stdint.h>

#include "agent/base/error.h"

struct input {
	const char *name; /* for messages; borrowed */
	int fd;
	int64_t timeout;  /* ms; 0: none */
	int64_t deadline; /* ms of the monotonic clock, where there is a timeout */
};

/*
 * Opens a file or pipe for reading within `timeout` ms from now; 0: no limit. Fails (ERROR_DATA)
 * with name and reason; a folder is an error.
 */
bool input_open(
	struct input *input, const char *path, int64_t timeout, struct error *error) MUST_USE;
void input_close(struct input *input);

/* An open descriptor of the caller's as an input; needs no input_close. */
struct input input_descriptor(const char *name, int fd);

/* Fills the buffer; returns less than `size` only at the end. Fails (ERROR_DATA) on a read error or
 * timeout. */
bool input_read(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error) MUST_USE;

/* The same, but returns as soon as there is any data; *got is 0 only at the end. */
bool input_read_some(
	struct input *input, char *buffer, size_t size, size_t *got, struct error *error) MUST_USE;

#endif
