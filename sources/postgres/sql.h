/*
 * Splits SQL as PostgreSQL's lexer does, as far as is needed to know whether a placeholder stands
 * in plain code, a string, a quoted name or a comment. Assumes standard_conforming_strings.
 */
#ifndef SOURCES_POSTGRES_SQL_H
#define SOURCES_POSTGRES_SQL_H

#include <stdbool.h>
#include <stddef.h>

enum sql_kind {
	SQL_END,
	SQL_CODE,      /* one byte of anything else: operators, blanks, brackets */
	SQL_WORD,      /* a name, a keyword or a number */
	SQL_STRING,    /* '...' */
	SQL_ESCAPES,   /* E'...', with backslashes */
	SQL_NAME,      /* "..." */
	SQL_OTHER,     /* U&'...', U&"...", B'...', X'...', N'...', $tag$...$tag$ */
	SQL_COMMENT,   /* to the end of the line, or nested */
	SQL_PARAMETER, /* $1 */
};

/* An unclosed piece extends to the end of the text, and `closed` is false. */
struct sql_piece {
	enum sql_kind kind;
	const char *text;
	size_t length;
	bool closed;
};

/* The piece that begins at `text`; SQL_END where text is `end`. */
struct sql_piece sql_next(const char *text, const char *end);

/* Whether the byte may be part of an unquoted name. */
bool sql_in_word(char c);

#endif
