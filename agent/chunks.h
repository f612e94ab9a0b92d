/*
 * Whole lines of files and pipes, a block at a time: what is read is handed on as soon as it holds
 * a line's end, so that a slow writer's lines are not kept waiting, and at most a line and a block
 * are held.
 *
 * A line longer than the cap is stepped over; its beginning is handed on alone, marked as cut.
 */
#ifndef AGENT_CHUNKS_H
#define AGENT_CHUNKS_H

#include <stdint.h>

#include "agent/core/field.h"

/* A zeroed struct is an empty chunk; its memory is used again by the next chunk_read. */
struct chunk {
	char *data;
	size_t length, capacity;
	const char *file; /* for messages */
	uint64_t line;    /* number of the first line, from 1 */
	bool cut;         /* all it holds is the beginning of one line that is too long */
	size_t max_line;
};

struct chunk_text {
	const char *text; /* without the line's end (LF or CRLF) */
	size_t length;
	bool cut; /* the line is longer than the cap; only its beginning is here */
};

void chunk_free(struct chunk *chunk);

/* The next line from *offset on; false if there is none. */
bool chunk_line(const struct chunk *chunk, size_t *offset, struct chunk_text *out);

struct chunk_reader;

enum chunk_step { CHUNK_LINES, CHUNK_END, CHUNK_FAILED };

/* Reads the files one after another; "-" is the standard input. The names are borrowed. Lines have
 * up to `max_line` bytes. */
struct chunk_reader *chunk_reader_new(const struct strings *files, size_t max_line);
void chunk_reader_free(struct chunk_reader *reader);

/* After a failure (a file that cannot be read) the next call goes on with the next file. */
enum chunk_step chunk_read(
	struct chunk_reader *reader, struct chunk *chunk, struct error *error) MUST_USE;

#endif
