/*
 * Dates and durations as users type them.
 *
 * The text is lower-cased and tried from the strictest form to the loosest: a time stamp, a day
 * by name, a date with the name of its month, an amount of time. Text that ends in a time of day
 * is rewritten as a stamp and read as one, so there is one reader of times and zones.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"

enum { TEXT_MAX = 80, MONTH_DAYS = 30 };

#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

/* An amount of time. Months are kept apart, as their length depends on the date. */
struct span {
	int64_t months, ms;
};

static const struct unit {
	const char *name; /* also with an s, if it has more than one letter */
	int64_t months, ms;
} units[] = {
	{"ms", 0, 1},
	{"msec", 0, 1},
	{"millisecond", 0, 1},
	{"s", 0, SECOND},
	{"sec", 0, SECOND},
	{"second", 0, SECOND},
	{"m", 0, MINUTE},
	{"min", 0, MINUTE},
	{"minute", 0, MINUTE},
	{"h", 0, HOUR},
	{"hr", 0, HOUR},
	{"hour", 0, HOUR},
	{"d", 0, DAY},
	{"day", 0, DAY},
	{"w", 0, 7 * DAY},
	{"wk", 0, 7 * DAY},
	{"week", 0, 7 * DAY},
	{"mo", 1, 0},
	{"mon", 1, 0},
	{"month", 1, 0},
	{"y", 12, 0},
	{"yr", 12, 0},
	{"year", 12, 0},
};

static const char *const weekdays[] = {
	"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"};

static const char *const months[] = {"january", "february", "march", "april", "may", "june", "july",
	"august", "september", "october", "november", "december"};

static void skip_blanks(const char **at)
{
	while (**at == ' ' || **at == ',')
		(*at)++;
}

/* Reads the letters at *at, NUL-terminated; false if there are none. The text is shorter than
 * TEXT_MAX. */
static bool take_letters(const char **at, char word[TEXT_MAX])
{
	size_t length = 0;

	while (islower((unsigned char)(*at)[length]))
		length++;
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	return length > 0;
}

static bool take_word(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*at, word, length) != 0 || islower((unsigned char)(*at)[length]))
		return false;
	*at += length;
	skip_blanks(at);
	return true;
}

/* The index of the name that `word` is or abbreviates (three letters at least); -1: none. */
static int find_name(const char *word, const char *const *names, int count)
{
	size_t length = strlen(word);

	for (int i = 0; length >= 3 && i < count; i++)
		if (strncmp(word, names[i], length) == 0)
			return i;
	return -1;
}

static const struct unit *find_unit(const char *word)
{
	size_t length = strlen(word);

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		size_t own = strlen(units[i].name);
		bool plural = length == own + 1 && own > 1 && word[own] == 's';

		if ((length == own || plural) && memcmp(word, units[i].name, own) == 0)
			return &units[i];
	}
	return NULL;
}

/* "12", "1.5", "a", "an": in thousandths. */
static bool take_amount(const char **at, int64_t *thousandths)
{
	int digits = 0;

	if (take_word(at, "an") || take_word(at, "a")) {
		*thousandths = 1000;
		return true;
	}
	for (*thousandths = 0; isdigit((unsigned char)**at) && digits < 15; (*at)++, digits++)
		*thousandths = *thousandths * 10 + (**at - '0');
	*thousandths *= 1000;
	if (!digits || isdigit((unsigned char)**at))
		return false;
	if (**at != '.')
		return true;
	(*at)++;
	if (!isdigit((unsigned char)**at))
		return false;
	for (int64_t part = 100; isdigit((unsigned char)**at); (*at)++, part /= 10)
		*thousandths += part * (**at - '0');
	return true;
}

static bool span_add(struct span *span, const struct unit *unit, int64_t thousandths)
{
	int64_t ms, whole = thousandths / 1000;

	if (unit->months)
		return thousandths % 1000 == 0 &&
		       !__builtin_mul_overflow(whole, unit->months, &whole) &&
		       !__builtin_add_overflow(span->months, whole, &span->months);
	return !__builtin_mul_overflow(whole, unit->ms, &ms) &&
	       !__builtin_add_overflow(ms, thousandths % 1000 * unit->ms / 1000, &ms) &&
	       !__builtin_add_overflow(span->ms, ms, &span->ms);
}

/* "6 weeks", "1h30m", "1 day and 2 hours": amounts with units, up to the first that is
 * malformed. */
static bool take_span(const char **at, struct span *span)
{
	char word[TEXT_MAX];
	int64_t thousandths;

	*span = (struct span){0};
	do {
		if (!take_amount(at, &thousandths))
			return false;
		skip_blanks(at);
		const struct unit *unit = take_letters(at, word) ? find_unit(word) : NULL;
		if (!unit || !span_add(span, unit, thousandths))
			return false;
		skip_blanks(at);
		take_word(at, "and");
	} while (isdigit((unsigned char)**at));
	return true;
}

/* now + sign * span, months first; the day is clamped to the length of its month. */
static bool shift(int64_t now, const struct span *span, int sign, int64_t *out)
{
	struct date date = when_to_date(now);
	int64_t midnight, count, ms;

	if (__builtin_add_overflow(date.year * 12 + date.month - 1, sign * span->months, &count) ||
		count < 0)
		return false;
	if (!when_from_date(date, &midnight))
		return false;
	int64_t clock = now - midnight;
	date.year = count / 12;
	date.month = (int)(count % 12) + 1;
	while (!when_from_date(date, &midnight))
		if (--date.day < 28)
			return false;
	return !__builtin_add_overflow(midnight + clock, sign * span->ms, &ms) && (*out = ms, true);
}

/* "6 weeks", "10 weeks ago", "-10m", "+2h", "in 2 hours", "last week". */
static bool parse_relative(const char *at, int64_t now, int64_t *out)
{
	struct span span;
	int sign = -1;

	if (take_word(&at, "last")) {
		char word[TEXT_MAX];
		const struct unit *unit = take_letters(&at, word) ? find_unit(word) : NULL;

		span = (struct span){0};
		return unit && !*at && span_add(&span, unit, 1000) && shift(now, &span, sign, out);
	}
	if (take_word(&at, "in") || *at == '+') {
		sign = 1;
		at += *at == '+';
	} else if (*at == '-') {
		at++;
	}
	skip_blanks(&at);
	if (!take_span(&at, &span))
		return false;
	if (sign < 0)
		take_word(&at, "ago");
	return !*at && shift(now, &span, sign, out);
}

/* The day at midnight, or at the time of day that follows ("14:00", "at 14:00 +0200"). */
static bool parse_clock(struct date date, const char *at, int64_t *out)
{
	char text[2 * TEXT_MAX];

	skip_blanks(&at);
	take_word(&at, "at");
	int length = snprintf(text, sizeof text, "%04d-%02d-%02d%s%s", (int)date.year, date.month,
		date.day, *at ? " " : "", at);
	return length > 0 && (size_t)length < sizeof text &&
	       when_parse_stamp(text, (size_t)length, out);
}

/* "now", "today", "yesterday 14:00", "tomorrow", "monday", "last monday": a weekday is the last one
 * before today. */
static bool parse_day(const char *at, int64_t now, int64_t *out)
{
	char word[TEXT_MAX];
	int back;

	if (strcmp(at, "now") == 0) {
		*out = now;
		return true;
	}
	if (take_word(&at, "today")) {
		back = 0;
	} else if (take_word(&at, "yesterday")) {
		back = 1;
	} else if (take_word(&at, "tomorrow")) {
		back = -1;
	} else {
		take_word(&at, "last");
		int day = take_letters(&at, word) ? find_name(word, weekdays, 7) : -1;
		if (day < 0)
			return false;
		back = (when_weekday(now) - day + 6) % 7 + 1;
	}
	return parse_clock(when_to_date(now - back * DAY), at, out);
}

/* "9", "9:00", "9:00:30" at *at; the minutes and seconds as they are. */
static bool take_clock(const char **at, int *hour, const char **rest, int *rest_length)
{
	const char *end = *at;

	for (*hour = 0; isdigit((unsigned char)*end) && end - *at < 3; end++)
		*hour = *hour * 10 + (*end - '0');
	if (end == *at || end - *at > 2)
		return false;
	*rest = end;
	while (*end == ':' && isdigit((unsigned char)end[1]) && isdigit((unsigned char)end[2]))
		end += 3;
	*rest_length = (int)(end - *rest);
	*at = end;
	return true;
}

/* "9:00", "08:00 +0200": the last such time. */
static bool parse_time_of_day(const char *at, int64_t now, int64_t *out)
{
	const char *end = at, *rest;
	int hour, rest_length;

	if (!take_clock(&end, &hour, &rest, &rest_length) || rest_length == 0)
		return false;
	for (int back = -1; back <= 2; back++)
		if (parse_clock(when_to_date(now - back * DAY), at, out) && *out <= now)
			return true;
	return false;
}

/* "19", also as "19th". */
static void skip_ordinal(const char **at)
{
	static const char *const ends[] = {"st", "nd", "rd", "th"};

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (take_word(at, ends[i]))
			return;
}

static bool take_number(const char **at, int *out)
{
	int digits = 0;

	skip_blanks(at);
	for (*out = 0; isdigit((unsigned char)**at) && digits < 4; (*at)++, digits++)
		*out = *out * 10 + (**at - '0');
	return digits > 0 && !isdigit((unsigned char)**at) && **at != ':';
}

/* "2 Jan 2026", "Jan 2, 2026", "January 2", each with a time of day if need be. */
static bool parse_named_month(const char *at, int64_t now, int64_t *out)
{
	struct date date = {0};
	char word[TEXT_MAX];
	bool day_first = take_number(&at, &date.day);

	skip_ordinal(&at);
	skip_blanks(&at);
	date.month = take_letters(&at, word) ? find_name(word, months, 12) + 1 : 0;
	if (!date.month || (!day_first && !take_number(&at, &date.day)))
		return false;
	if (!day_first)
		skip_ordinal(&at);
	const char *rest = at;
	int year;
	if (take_number(&rest, &year)) {
		date.year = year;
		return parse_clock(date, rest, out);
	}
	date.year = when_to_date(now).year;
	if (parse_clock(date, at, out) && *out <= now)
		return true;
	date.year--;
	return parse_clock(date, at, out);
}

/* The length of a blank at `text`, also of the special ones before "AM"; 0: none. */
static size_t blank_at(const char *text)
{
	return isspace((unsigned char)*text)     ? 1
	       : strncmp(text, "\u00a0", 2) == 0 ? 2
	       : strncmp(text, "\u202f", 3) == 0 ? 3
						 : 0;
}

static bool lower(const char *text, char out[TEXT_MAX])
{
	size_t length = 0;

	while (*text && length < TEXT_MAX) {
		size_t blank = blank_at(text);

		if (blank == 0 || length > 0)
			out[length++] = blank ? ' ' : (char)tolower((unsigned char)*text);
		text += blank ? blank : 1;
	}
	if (length == TEXT_MAX)
		length = 0;
	while (length > 0 && out[length - 1] == ' ')
		length--;
	out[length] = '\0';
	return length > 0;
}

/* Rewrites "9:00 am" to "09:00", "12:30 pm" to "12:30", anywhere in the text. */
static void to_24_hours(char word[TEXT_MAX])
{
	char before = ' ', copy[TEXT_MAX];

	for (char *begin = word; *begin; before = *begin++) {
		const char *at = begin, *rest;
		int hour, rest_length, length;
		bool noon;

		if (before != ' ' || !take_clock(&at, &hour, &rest, &rest_length))
			continue;
		skip_blanks(&at);
		noon = *at == 'p';
		if ((*at != 'a' && *at != 'p') || at[1] != 'm' || isalnum((unsigned char)at[2]) ||
			hour < 1 || hour > 12)
			continue;
		length = snprintf(copy, sizeof copy, "%02d%.*s%s", hour % 12 + (noon ? 12 : 0),
			rest_length > 0 ? rest_length : 3, rest_length > 0 ? rest : ":00", at + 2);
		if (length > 0 && (size_t)length < sizeof copy - (size_t)(begin - word))
			memcpy(begin, copy, (size_t)length + 1);
		return;
	}
}

static bool parse_any(const char *word, int64_t now, int64_t *out)
{
	/* A year alone is its first day, not a moment of 1970. */
	bool year = strlen(word) == 4 && strspn(word, "0123456789") == 4 && atoi(word) >= 1970;

	return (year && when_from_date((struct date){atoi(word), 1, 1}, out)) ||
	       when_parse_stamp(word, strlen(word), out) || parse_time_of_day(word, now, out) ||
	       parse_day(word, now, out) || parse_named_month(word, now, out) ||
	       parse_relative(word, now, out);
}

bool when_parse(const char *text, int64_t now_ms, int64_t *out, struct error *error)
{
	char word[TEXT_MAX] = "";
	int64_t ms;

	if (lower(text, word))
		to_24_hours(word);
	if (*word && parse_any(word, now_ms, &ms)) {
		int64_t year = when_to_date(ms).year;
		if (year >= 1 && year <= 9999) {
			*out = ms;
			return true;
		}
	}
	return error_set(error, ERROR_USAGE,
		"\"%.80s\" is not a date (try '6 weeks ago', 'yesterday', '2026-01-02' or "
		"'2026-01-02 03:04')",
		text);
}

/* The next time of day, weekday or day of a month: the last one, as seen from some days later. */
static bool parse_next(const char *word, int64_t now, int64_t *out)
{
	static const int later[] = {1, 2, 3, 4, 5, 6, 7, 8, 366};
	char first[TEXT_MAX];
	const char *at = word;
	bool weekday = take_letters(&at, first) && find_name(first, weekdays, 7) >= 0;

	for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
		int64_t then = now + later[i] * DAY;

		if ((parse_time_of_day(word, then, out) ||
			    (weekday && parse_day(word, then, out)) ||
			    parse_named_month(word, then, out)) &&
			*out > now)
			return true;
	}
	return false;
}

static bool parse_later(const char *word, int64_t now, int64_t *out)
{
	const char *at = word;
	struct span span;

	if (take_span(&at, &span) && !*at)
		return shift(now, &span, 1, out);
	return (parse_any(word, now, out) && *out > now) || parse_next(word, now, out);
}

bool when_parse_ahead(const char *text, int64_t now_ms, int64_t *out, struct error *error)
{
	char word[TEXT_MAX] = "";
	int64_t ms;

	if (lower(text, word))
		to_24_hours(word);
	if (strcmp(word, "never") == 0) {
		*out = WHEN_NEVER;
		return true;
	}
	if (*word && parse_later(word, now_ms, &ms) && ms > now_ms &&
		when_to_date(ms).year <= 9999) {
		*out = ms;
		return true;
	}
	if (*word && parse_any(word, now_ms, &ms))
		return error_set(error, ERROR_USAGE, "\"%.80s\" is in the past", text);
	return error_set(error, ERROR_USAGE,
		"\"%.80s\" is not a time (try '3 days', 'friday 18:00' or '2026-01-02 03:04')",
		text);
}

bool when_parse_duration(const char *text, int64_t *out, struct error *error)
{
	char word[TEXT_MAX];
	struct span span;
	int64_t ms;

	if (lower(text, word)) {
		const char *at = word;

		if (strcmp(word, "never") == 0) {
			*out = WHEN_NEVER;
			return true;
		}
		if (isdigit((unsigned char)*at) && take_amount(&at, &ms) && !*at) {
			*out = ms;
			return true;
		}
		at = word;
		if (take_span(&at, &span) && !*at &&
			!__builtin_mul_overflow(
				span.months / 12 * 365 + span.months % 12 * MONTH_DAYS, DAY, &ms) &&
			!__builtin_add_overflow(ms, span.ms, &ms)) {
			*out = ms;
			return true;
		}
	}
	return error_set(error, ERROR_USAGE,
		"\"%.80s\" is not a duration (try 30s, 5m, 1h30m, 14d, never)", text);
}
