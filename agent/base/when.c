/*
 * The calendar, time stamps in data, and dates as text. when_parse.c reads what users type.
 *
 * Stamps are read in one pass over the bytes, without a copy, a table of formats or the C
 * library's time zone: a file of ten million rows has ten million of them.
 */
#include "agent/base/when.h"

#include <stdio.h>

enum { DAY_MS = 86400000, DAYS_ERA = 146097, DAYS_TO_1970 = 719468, EPOCH_DIGITS = 19 };

#define EPOCH_SECONDS_END 100000000000 /* 1e11: the year 5138 in seconds, 1973 in milliseconds */
#define YEAR_1 (-62135596800000)       /* its first millisecond */

struct cursor {
	const char *at, *end;
};

int when_month_days(int64_t year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/*
 * Days are counted in eras of 400 years that begin on 1 March, so that the leap day is the last of
 * its year and the lengths of the months before it follow a straight line: 153 days in five months.
 */
bool when_from_date(struct date date, int64_t *out)
{
	if (date.year < 1 || date.year > 9999 || date.month < 1 || date.month > 12 ||
		date.day < 1 || date.day > when_month_days(date.year, date.month))
		return false;
	int64_t year = date.year - (date.month <= 2);
	int month = date.month + (date.month <= 2 ? 9 : -3);
	int64_t era = year / 400, in_era = year % 400;
	int64_t day =
		in_era * 365 + in_era / 4 - in_era / 100 + (153 * month + 2) / 5 + date.day - 1;

	*out = (era * DAYS_ERA + day - DAYS_TO_1970) * DAY_MS;
	return true;
}

static int64_t floor_divide(int64_t value, int64_t by)
{
	return value / by - (value % by < 0);
}

struct date when_to_date(int64_t ms)
{
	int64_t days = floor_divide(ms, DAY_MS) + DAYS_TO_1970;
	int64_t era = floor_divide(days, DAYS_ERA), day = days - era * DAYS_ERA;
	int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	int64_t in_year = day - (365 * year + year / 4 - year / 100);
	int month = (int)((5 * in_year + 2) / 153);

	return (struct date){
		.year = era * 400 + year + (month >= 10),
		.month = month < 10 ? month + 3 : month - 9,
		.day = (int)(in_year - (153 * month + 2) / 5) + 1,
	};
}

int when_weekday(int64_t ms)
{
	return (int)((floor_divide(ms, DAY_MS) % 7 + 11) % 7);
}

static bool accept_char(struct cursor *cursor, char c)
{
	if (cursor->at == cursor->end || *cursor->at != c)
		return false;
	cursor->at++;
	return true;
}

static bool take_digits(struct cursor *cursor, int least, int most, int *out)
{
	int value = 0, count = 0;

	while (count < most && cursor->at < cursor->end && (unsigned)(*cursor->at - '0') < 10) {
		value = value * 10 + (*cursor->at++ - '0');
		count++;
	}
	*out = value;
	return count >= least;
}

/* Digits after the point, of which the first three count. */
static bool take_fraction(struct cursor *cursor, int *ms)
{
	int digits = 0, value = 0;

	for (; cursor->at < cursor->end && (unsigned)(*cursor->at - '0') < 10;
		cursor->at++, digits++)
		if (digits < 3)
			value = value * 10 + (*cursor->at - '0');
	for (int i = digits; i < 3; i++)
		value *= 10;
	*ms = value;
	return digits > 0;
}

/* 20260102 is a day: as seconds since the epoch it would lie in 1970. */
static bool is_compact(struct cursor cursor)
{
	int century, rest;

	return take_digits(&cursor, 2, 2, &century) && (century == 19 || century == 20) &&
	       take_digits(&cursor, 6, 6, &rest) &&
	       (cursor.at == cursor.end || *cursor.at == ' ' || (*cursor.at | 0x20) == 't');
}

static bool take_date(struct cursor *cursor, int64_t *ms)
{
	bool compact = is_compact(*cursor);
	struct date date;
	int year;

	if (!take_digits(cursor, 4, 4, &year) || cursor->at == cursor->end)
		return false;
	char separator = *cursor->at;
	if (!compact && separator != '-' && separator != '.' && separator != '/')
		return false;
	cursor->at += !compact;
	if (!take_digits(cursor, 1, 2, &date.month) ||
		!(compact || accept_char(cursor, separator)) ||
		!take_digits(cursor, 1, 2, &date.day))
		return false;
	date.year = year;
	return when_from_date(date, ms);
}

/* H:MM[:SS[.fff]] or HHMM[SS]; second 60 is a leap second, which the count of milliseconds
 * ignores. */
static bool take_clock(struct cursor *cursor, int64_t *ms)
{
	int hour, minute, second = 0, fraction = 0;

	if (!take_digits(cursor, 1, 2, &hour))
		return false;
	bool colons = accept_char(cursor, ':');
	if (!take_digits(cursor, 2, 2, &minute))
		return false;
	bool digit_next = cursor->at < cursor->end && (unsigned)(*cursor->at - '0') < 10;
	if (colons ? accept_char(cursor, ':') : digit_next) {
		if (!take_digits(cursor, 2, 2, &second))
			return false;
		if ((accept_char(cursor, '.') || accept_char(cursor, ',')) &&
			!take_fraction(cursor, &fraction))
			return false;
	}
	if (hour > 23 || minute > 59 || second > 60)
		return false;
	*ms += ((hour * 60 + minute) * 60 + second) * INT64_C(1000) + fraction;
	return true;
}

static bool take_word(struct cursor *cursor, const char *word)
{
	const char *at = cursor->at;

	for (; *word; word++, at++)
		if (at == cursor->end || (*at & ~0x20) != *word)
			return false;
	cursor->at = at;
	return true;
}

/* Nothing, Z, UTC, GMT, +02, +0200 or +02:00. */
static bool take_zone(struct cursor *cursor, int64_t *ms)
{
	int hours, minutes = 0;

	if (cursor->at == cursor->end || take_word(cursor, "Z") || take_word(cursor, "UTC") ||
		take_word(cursor, "GMT"))
		return true;
	char sign = *cursor->at++;
	if ((sign != '+' && sign != '-') || !take_digits(cursor, 2, 2, &hours))
		return false;
	bool colon = accept_char(cursor, ':');
	if ((colon || cursor->at < cursor->end) && !take_digits(cursor, 2, 2, &minutes))
		return false;
	if (hours > 23 || minutes > 59)
		return false;
	int64_t offset = (hours * 60 + minutes) * INT64_C(60000);
	*ms -= sign == '+' ? offset : -offset;
	return true;
}

static bool parse_calendar(struct cursor cursor, int64_t *out)
{
	int64_t ms;

	if (!take_date(&cursor, &ms))
		return false;
	if (cursor.at < cursor.end &&
		(*cursor.at == 'T' || *cursor.at == 't' || *cursor.at == ' ')) {
		char separator = *cursor.at++;
		while (separator == ' ' && accept_char(&cursor, ' '))
			;
		if (!take_clock(&cursor, &ms))
			return false;
		while (accept_char(&cursor, ' '))
			;
		if (!take_zone(&cursor, &ms))
			return false;
	}
	*out = ms;
	return cursor.at == cursor.end;
}

/* Seconds may have a fraction and a sign; the finer units have neither. */
static bool parse_epoch(struct cursor cursor, int64_t *out)
{
	bool negative = accept_char(&cursor, '-');
	const char *first = cursor.at;
	uint64_t value = 0, power = 1;
	int digits = 0, fraction = 0;

	for (; cursor.at < cursor.end && (unsigned)(*cursor.at - '0') < 10; cursor.at++) {
		digits += digits > 0 || *cursor.at != '0';
		if (digits <= EPOCH_DIGITS)
			value = value * 10 + (unsigned)(*cursor.at - '0');
	}
	if (cursor.at == first || digits > EPOCH_DIGITS)
		return false;
	if ((accept_char(&cursor, '.') && !take_fraction(&cursor, &fraction)) ||
		cursor.at != cursor.end)
		return false;
	if (value < EPOCH_SECONDS_END) {
		int64_t ms = (int64_t)value * 1000 + fraction;
		*out = negative ? -ms : ms;
		return *out >= YEAR_1;
	}
	while (value / power >= EPOCH_SECONDS_END * UINT64_C(1000))
		power *= 1000;
	*out = (int64_t)(value / power);
	return !negative;
}

bool when_parse_stamp(const char *text, size_t length, int64_t *out)
{
	struct cursor cursor = {text, text + length};

	while (cursor.at < cursor.end && *cursor.at == ' ')
		cursor.at++;
	while (cursor.end > cursor.at && cursor.end[-1] == ' ')
		cursor.end--;
	if (cursor.at == cursor.end)
		return false;
	return parse_calendar(cursor, out) || (!is_compact(cursor) && parse_epoch(cursor, out));
}

/* Date and time of day, without the fraction; returns the length. */
static int put_seconds(int64_t ms, char between, char out[WHEN_TEXT])
{
	struct date date = when_to_date(ms);
	int second = (int)(floor_divide(ms, 1000) - floor_divide(ms, DAY_MS) * 86400);

	return snprintf(out, WHEN_TEXT, "%04lld-%02d-%02d%c%02d:%02d:%02d", (long long)date.year,
		date.month, date.day, between, second / 3600, second / 60 % 60, second % 60);
}

char *when_format(int64_t ms, char out[WHEN_TEXT])
{
	int length = put_seconds(ms, ' ', out);

	snprintf(out + length, WHEN_TEXT - (size_t)length, " +0000");
	return out;
}

char *when_format_iso(int64_t ms, char out[WHEN_TEXT])
{
	int fraction = (int)((ms % 1000 + 1000) % 1000), length = put_seconds(ms, 'T', out);

	if (fraction)
		length += snprintf(out + length, WHEN_TEXT - (size_t)length, ".%03d", fraction);
	snprintf(out + length, WHEN_TEXT - (size_t)length, "Z");
	return out;
}

char *when_format_duration(int64_t ms, char out[WHEN_TEXT])
{
	static const struct {
		const char *name;
		uint64_t ms;
	} parts[] = {{"d", DAY_MS}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
	uint64_t left = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
	int length = 0;

	if (ms == WHEN_NEVER || ms == 0) {
		snprintf(out, WHEN_TEXT, "%s", ms ? "never" : "0s");
		return out;
	}
	if (ms < 0)
		length = snprintf(out, WHEN_TEXT, "-");
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		uint64_t count = left / parts[i].ms;

		left %= parts[i].ms;
		if (count)
			length += snprintf(out + length, WHEN_TEXT - (size_t)length, "%llu%s",
				(unsigned long long)count, parts[i].name);
	}
	return out;
}

char *when_format_rough(int64_t ms, char out[WHEN_TEXT])
{
	int64_t unit = ms >= 2 * (int64_t)DAY_MS ? 3600000 : ms >= 600000 ? 60000 : 1000;

	return when_format_duration(ms - ms % unit, out);
}
