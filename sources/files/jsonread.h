/*
 * A pull reader for JSON: token by token from an input, in memory bounded by the longest string, so
 * that a file of 200 MB needs no tree.
 *
 * It accepts what jansson accepts (RFC 8259, UTF-8 checked, no NUL in strings), numbers of any size
 * (they are handed out as text), and besides the words NaN, Infinity and -Infinity that Python's
 * json module writes.
 */
#ifndef SOURCES_FILES_JSONREAD_H
#define SOURCES_FILES_JSONREAD_H

#include "agent/core/buf.h"
#include "sources/files/input.h"

enum {
	JSONREAD_DEPTH = 512,
	JSONREAD_TEXT_MAX = 16 << 20, /* bytes of a string or number */
	JSONREAD_BLOCK = 64 << 10,
};

enum token {
	TOKEN_FAILED,
	TOKEN_END, /* of the document and of the input */
	TOKEN_OBJECT,
	TOKEN_OBJECT_END,
	TOKEN_ARRAY,
	TOKEN_ARRAY_END,
	TOKEN_KEY,    /* its value follows */
	TOKEN_STRING, /* what KEY, STRING and NUMBER say is in reader->text, unescaped, until the
			 next call */
	TOKEN_NUMBER,
	TOKEN_TRUE,
	TOKEN_FALSE,
	TOKEN_NULL,
};

struct json_reader {
	struct input *input; /* borrowed */
	struct buf text;
	size_t line; /* of the token, from 1 */
	size_t depth;
	unsigned char state;                   /* what may come next */
	unsigned char objects[JSONREAD_DEPTH]; /* is the container at this depth an object? */
	bool started;
	size_t at, length;
	char block[JSONREAD_BLOCK];
};

struct json_reader *json_reader_new(struct input *input);
void json_reader_free(struct json_reader *reader);

/* The next token. Fails (ERROR_DATA) with "FILE:LINE: ..."; after that or TOKEN_END it must not be
 * called again. */
enum token json_next(struct json_reader *reader, struct error *error) MUST_USE;

/* Reads on to the end of the value that `token` begins. */
bool json_skip(struct json_reader *reader, enum token token, struct error *error) MUST_USE;

/* Fills *error with "FILE:LINE: " and the words. Always returns false. */
bool json_fail(const struct json_reader *reader, struct error *error, const char *format, ...)
	PRINTF_LIKE(3, 4);

#endif
