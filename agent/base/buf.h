/*
 * A growing byte buffer for text that is made piece by piece: messages, JSON, HTTP answers.
 *
 * A NUL always follows the bytes, so `data` is a C string if the content has no NUL. A zeroed
 * struct is an empty buffer. Running out of memory aborts; callers limit the size of outside data.
 */
#ifndef AGENT_BASE_BUF_H
#define AGENT_BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>

#include "agent/base/error.h"

struct arena;

struct buf {
	char *data; /* NULL until the first append */
	size_t length, capacity;
	bool secret; /* wipe the content when memory is freed */
};

void buf_free(struct buf *buf);  /* frees the memory, leaves an empty buffer */
void buf_clear(struct buf *buf); /* empties it, keeps the memory */
void buf_reserve(struct buf *buf, size_t more);
void buf_append(struct buf *buf, const void *data, size_t length);
void buf_text(struct buf *buf, const char *text);
void buf_char(struct buf *buf, char c);
/* As content or in an attribute of HTML and XML: with & < > " ' as entities. */
void buf_markup(struct buf *buf, const char *text, size_t length);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *buf, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

/* The content as a malloc'd string that the caller frees; empties the buffer. Never NULL. */
char *buf_steal(struct buf *buf);

/* A copy of the text in the arena, "" if it is empty. Frees the buffer. */
const char *buf_keep(struct buf *buf, struct arena *arena);

/* A JSON string with its quotes; control characters (utf8_is_control) escaped, broken UTF-8
 * replaced by U+FFFD. */
void buf_json_string(struct buf *buf, const char *text, size_t length);
void buf_json_text(
	struct buf *buf, const char *text); /* the same for a C string; NULL gives null */

/* A value that is valid JSON; escapes control characters in its strings. */
void buf_json_value(struct buf *buf, const char *json, size_t length);

/* A JSON number with 17 significant digits (shorter where it reads back exactly); non-finite gives
 * null. */
void buf_json_number(struct buf *buf, double value);

void buf_base64(struct buf *out, const void *bytes, size_t length); /* padded */

/* Control characters and broken UTF-8 become spaces and U+FFFD, text beyond `limit` characters
 * becomes "…". */
void buf_clean(struct buf *out, const char *text, size_t limit);

#endif
