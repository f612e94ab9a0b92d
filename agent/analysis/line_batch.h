/*
 * Whole lines of files and pipes, a block at a time: lines are passed on as soon as their end
 * has been read, so that a slow writer's lines do not wait, and at most a line and a block are
 * in memory.
 *
 * A line longer than the cap is skipped; its start is passed on alone, marked as cut.
 */
#ifndef AGENT_ANALYSIS_LINE_BATCH_H
#define AGENT_ANALYSIS_LINE_BATCH_H

#include <stdint.h>

#include "agent/base/field.h"

/* A zeroed struct is an empty batch; the next batch_read reuses its memory. */
struct batch {
	char *data;
	size_t length, capacity;
	const char *file; /* for messages */
	uint64_t line;    /* number of the first line, from 1 */
	bool cut;         /* holds only the start of one line that is too long */
	size_t max_line;
};

struct batch_line {
	const char *text; /* without the line end (LF or CRLF) */
	size_t length;
	bool cut; /* the line is longer than the cap; only its start is here */
};

void batch_free(struct batch *batch);

/* The next line from *offset on; false if there is none. */
bool batch_line(const struct batch *batch, size_t *offset, struct batch_line *out);

/* Whether it has nothing but blanks and tabs. */
bool batch_line_is_blank(const struct batch_line *line);

struct batch_reader;

/* The first byte that is not white space, without consuming it, or -1: there is none in the
 * first block, or the file cannot be read, which the next batch_read reports. Before anything is
 * read. */
int batch_peek(struct batch_reader *reader);

enum batch_step { BATCH_LINES, BATCH_END, BATCH_FAILED };

/* Reads the files one after another; "-" is the standard input. The names are borrowed. Lines have
 * up to `max_line` bytes. */
struct batch_reader *batch_reader_new(const struct strings *files, size_t max_line);
void batch_reader_free(struct batch_reader *reader);

/* After a failure (a file that cannot be read) the next call continues with the next file. */
enum batch_step batch_read(
	struct batch_reader *reader, struct batch *batch, struct error *error) MUST_USE;

#endif
