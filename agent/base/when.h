/*
 * Time: points in time are int64_t milliseconds since 1970-01-01 UTC, durations are int64_t
 * milliseconds.
 *
 * Users write dates in many forms, data files in few, so there are two readers: when_parse is
 * lenient and knows "6 weeks ago", when_parse_stamp is strict and fast. Neither reads a clock:
 * the current time is an argument. A date without a zone is UTC.
 */
#ifndef AGENT_BASE_WHEN_H
#define AGENT_BASE_WHEN_H

#include <stdint.h>

#include "agent/base/error.h"

enum { WHEN_TEXT = 40 };
#define WHEN_NEVER INT64_MAX  /* "never", and an open end */
#define WHEN_ALWAYS INT64_MIN /* an open beginning */

/* A day of the proleptic Gregorian calendar. */
struct date {
	int64_t year;
	int month, day; /* from 1 */
};

/* Midnight UTC of the day, and the day of a point in time. False for a day that does not exist. */
bool when_from_date(struct date date, int64_t *out);
struct date when_to_date(int64_t ms);

/* The days of a month, and the weekday of a point in time: 0 is Sunday. */
int when_month_days(int64_t year, int month);
int when_weekday(int64_t ms);

/*
 * A date as users write it, in any case. Relative dates count back from now_ms: "now", "today",
 * "yesterday 14:00", "monday", "last week", "6 weeks", "10 weeks ago", "-10m", "an hour ago", "1
 * day 2 hours ago"; "+2h" and "in 2 hours" lie ahead. Units are ms s m h d w mo y, and their
 * full names. Months and years are the calendar's, and a day past the end of the month becomes
 * its last. "2026-01-02", "2026-01-02 03:04[:05[.678]]", ISO 8601, "2 Jan 2026", "Jan 2" (the
 * latest that is not ahead), Slack's display ("Nov 19, 2026 9:00 AM", "Nov 19th at 9:00 AM",
 * "9:00 AM", which like "08:00" is the last such time), seconds since the epoch (from 1e11 on
 * milliseconds). Fails (ERROR_USAGE) on all else, on days that do not exist, and outside the
 * years 1 to 9999.
 */
bool when_parse(const char *text, int64_t now_ms, int64_t *out, struct error *error) MUST_USE;

/*
 * A time that lies ahead, as users write it: "3 days", "2h", "friday 18:00", "9:00" and "Dec 24"
 * (the next ones), and all that when_parse takes. "never" is WHEN_NEVER. Fails (ERROR_USAGE) on the
 * past, too.
 */
bool when_parse_ahead(const char *text, int64_t now_ms, int64_t *out, struct error *error) MUST_USE;

/*
 * A time stamp in data, `length` bytes: ISO 8601 with or without zone
 * ("2026-01-02T03:04:05.678+02:00"), the same with dots or slashes in the date ("2026.01.02 3:04:05
 * +0100"), or a number since the epoch: seconds, with or without a fraction; from 1e11 on
 * milliseconds, from 1e14 microseconds, from 1e17 nanoseconds.
 */
bool when_parse_stamp(const char *text, size_t length, int64_t *out) MUST_USE;

/*
 * "30s", "5m", "1h30m", "14d", "6 weeks", "250ms", "never" (WHEN_NEVER); a bare number is seconds.
 * A month is 30 days and a year 365. Never negative.
 */
bool when_parse_duration(const char *text, int64_t *out, struct error *error) MUST_USE;

/* "2026-01-02 03:04:05 +0000" and "2026-01-02T03:04:05Z" (with ".678" where there are
 * milliseconds); return `out`. */
char *when_format(int64_t ms, char out[WHEN_TEXT]);
char *when_format_iso(int64_t ms, char out[WHEN_TEXT]);

/* "14d", "1h30m", "250ms", "never"; when_parse_duration reads it back. Returns `out`. */
char *when_format_duration(int64_t ms, char out[WHEN_TEXT]);

/* The same in few units: from two days on in hours, from ten minutes on in minutes, else in
 * seconds. */
char *when_format_rough(int64_t ms, char out[WHEN_TEXT]);

#endif
