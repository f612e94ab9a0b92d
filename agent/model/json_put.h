/* Members of JSON objects, "KEY": and the value, and items of lists, with the commas between them.
 */
#ifndef AGENT_MODEL_JSON_PUT_H
#define AGENT_MODEL_JSON_PUT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/buf.h"
#include "agent/base/field.h"
#include "agent/model/change.h"

/* The separator before the next member or item: a comma, unless it is the first. Before an item
 * that has a line of its own: its end, too. */
void json_next(struct buf *out);
void json_line(struct buf *out);
/* The separator and the key of a member. */
void json_key(struct buf *out, const char *key);

/* null for NULL and non-finite numbers. */
void json_put_text(struct buf *out, const char *key, const char *value);
/* A text from outside, cleaned and cut by buf_clean. */
void json_put_clean(struct buf *out, const char *key, const char *text, size_t most);
void json_put_number(struct buf *out, const char *key, double value);

/*
 * Appends what the format describes: JSON without quotes around keys, with conversions in place of
 * values. Separators are added; a line break begins an item on a line of its own.
 *
 *	json_put(out, "{id: %jd, test: %s, since: %jd moment, levels: {before: %g}, routes: [", ...)
 *
 * Conversions as printf has them, so that compilers check the arguments: %s (NULL: null), %g (null
 * unless finite), %d, %zu, %jd for int64_t, %p for struct strings; and a word behind them for what
 * is written differently:
 * "%d bool"; "%jd time" (ISO 8601; WHEN_NEVER: null), "%jd moment" (0: null, too), "%jd seconds"
 * (of ms), "%jd id" (0: null); "%s optional" ("": null, too), "%s json" for a text that is JSON.
 * Other words (null, true) are written as they are.
 */
void json_put(struct buf *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Means and deviations with the numbers of points, and the p-value. */
void json_put_means(struct buf *out, const struct change *change);
/* The kind, the levels and the size with its interval. */
void json_put_levels(struct buf *out, const struct change *change);

#endif
