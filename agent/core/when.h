/*
 * Time: points in time are int64_t milliseconds since 1970-01-01 UTC, durations are int64_t
 * milliseconds.
 *
 * People write dates in many ways on a command line; data files write them in few. The two have
 * readers of their own: when_parse is forgiving and knows "6 weeks ago", when_parse_stamp is strict
 * and fast. Neither looks at a clock: the time of asking is an argument. A date without a zone is
 * UTC.
 */
#ifndef CORE_WHEN_H
#define CORE_WHEN_H

#include <stdint.h>

#include "agent/core/error.h"

enum { WHEN_TEXT = 40 };
#define WHEN_NEVER INT64_MAX  /* "never", and an open end */
#define WHEN_ALWAYS INT64_MIN /* an open beginning */

/*
 * "now", "today", "yesterday", "6 weeks", "10 weeks ago", "-10m", "2026-01-02", "2026-01-02
 * 03:04[:05[.678]]", ISO 8601 with Z, +02:00 or +0200, epoch seconds (or milliseconds, from 1e11
 * on). Relative dates count from now_ms.
 */
bool when_parse(const char *text, int64_t now_ms, int64_t *out, struct error *error) MUST_USE;

/* A time stamp in data, `length` bytes: ISO 8601 with or without zone, "2026.01.02 03:04:05 +0000",
 * epoch s or ms. */
bool when_parse_stamp(const char *text, size_t length, int64_t *out);

/* "30s", "5m", "1h", "14d", "6 weeks", "1h30m", "250ms", "never"; a bare number is seconds. */
bool when_parse_duration(const char *text, int64_t *out, struct error *error) MUST_USE;

/* "2026-01-02 03:04:05 +0000" and "2026-01-02T03:04:05Z" (with ".678" where there are
 * milliseconds); returns `out`. */
char *when_format(int64_t ms, char out[WHEN_TEXT]);
char *when_format_iso(int64_t ms, char out[WHEN_TEXT]);

/* "14d", "1h30m", "250ms", "never". */
char *when_format_duration(int64_t ms, char out[WHEN_TEXT]);

#endif
