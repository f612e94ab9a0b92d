/*
 * Rows of delimited text (RFC 4180), streamed: quoted cells may hold delimiters, line ends and
 * doubled quotes; lines end with LF, CRLF or CR; a byte order mark and blank lines are skipped. As
 * in Python's csv module, a quote inside an unquoted cell is a plain character. Memory is bounded
 * by the longest row.
 */
#ifndef SOURCES_FILES_DELIMITED_H
#define SOURCES_FILES_DELIMITED_H

#include "sources/files/input.h"

enum {
	DELIMITED_COLUMNS_MAX = 16384,
	DELIMITED_ROW_MAX = 64 << 20, /* bytes */
};

struct cell {
	char *text; /* not NUL-terminated, holds no NUL */
	size_t length;
};

/* Valid until the next call. */
struct row {
	struct cell *cells;
	size_t count;
	size_t line; /* on which it begins, from 1 */
};

enum delimited_step { DELIMITED_ROW, DELIMITED_END, DELIMITED_FAILED };

struct delimited;

/* Reads from `input`, which is borrowed. Quote 0: no quoted cells. Owned by the caller until
 * delimited_free. */
struct delimited *delimited_new(struct input *input, char delimiter, char quote);
void delimited_free(struct delimited *reader);

/* The next row. Fails (ERROR_DATA) with "FILE:LINE: ..." on a quote that is never closed, a NUL
 * byte, or a limit. */
enum delimited_step delimited_next(
	struct delimited *reader, struct row *row, struct error *error) MUST_USE;

#endif
