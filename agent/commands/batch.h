/*
 * Whole lines of files and pipes, a block at a time: what is read is handed on as soon as it holds
 * a line's end, so that a slow writer's lines are not kept waiting, and at most a line and a block
 * are held.
 *
 * A line longer than the cap is stepped over; its beginning is handed on alone, marked as cut.
 */
#ifndef AGENT_COMMANDS_BATCH_H
#define AGENT_COMMANDS_BATCH_H

#include <stdint.h>

#include "agent/core/field.h"

/* A zeroed struct is an empty batch; its memory is used again by the next batch_read. */
struct batch {
	char *data;
	size_t length, capacity;
	const char *file; /* for messages */
	uint64_t line;    /* number of the first line, from 1 */
	bool cut;         /* all it holds is the beginning of one line that is too long */
	size_t max_line;
};

struct batch_line {
	const char *text; /* without the line's end (LF or CRLF) */
	size_t length;
	bool cut; /* the line is longer than the cap; only its beginning is here */
};

void batch_free(struct batch *batch);

/* The next line from *offset on; false if there is none. */
bool batch_line(const struct batch *batch, size_t *offset, struct batch_line *out);

struct batch_reader;

/* The first byte that is no white space, which stays to be read, or -1: there is none near, or the
 * file cannot be read, which the next batch_read tells. Before anything is read. */
int batch_peek(struct batch_reader *reader);

enum batch_step { BATCH_LINES, BATCH_END, BATCH_FAILED };

/* Reads the files one after another; "-" is the standard input. The names are borrowed. Lines have
 * up to `max_line` bytes. */
struct batch_reader *batch_reader_new(const struct strings *files, size_t max_line);
void batch_reader_free(struct batch_reader *reader);

/* After a failure (a file that cannot be read) the next call goes on with the next file. */
enum batch_step batch_read(
	struct batch_reader *reader, struct batch *batch, struct error *error) MUST_USE;

#endif
