/*
 * A start and a step are laid out into times only for a line that is good.
 */
#include "agent/commands/point_times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/arena.h"
#include "agent/core/number.h"
#include "agent/core/when.h"

#define WHOLE SIZE_MAX
#define LAST_TIME INT64_C(253402300799999) /* of the year 9999 */

void point_times_clear(struct point_times *times)
{
	times->count = 0;
	times->seen = false;
	times->problem = NULL;
	times->start = times->step = (struct point_time){0};
}

void point_times_free(struct point_times *times)
{
	free(times->items);
	buf_free(&times->text);
}

/* A number as it was written; programs write exponents, which time stamps do not have. */
static bool read_number(const char *from, const char *to, int64_t *out)
{
	char plain[NUMBER_TEXT];
	double seconds;

	if (when_parse_stamp(from, (size_t)(to - from), out))
		return true;
	if (number_scan(from, to, &seconds) != to || !(fabs(seconds) < 1e18))
		return false;
	int length = snprintf(plain, sizeof plain, "%.3f", seconds);
	return when_parse_stamp(plain, (size_t)length, out);
}

/* Steps over a value; *good: it is a time. */
static bool read_stamp(struct point_times *times, struct scan *scan, bool *good, int64_t *out)
{
	const char *from = scan->at;

	if (!scan_value(scan))
		return false;
	*good = false;
	if (*from == '"') {
		buf_clear(&times->text);
		scan_decode(from, scan->at, &times->text);
		*good = when_parse_stamp(times->text.data, times->text.length, out);
	} else if (*from == '-' || (*from >= '0' && *from <= '9')) {
		*good = read_number(from, scan->at, out);
	}
	return true;
}

static void add_problem(struct point_times *times, const char *problem, size_t bad)
{
	if (times->problem)
		return;
	times->problem = problem;
	times->bad = bad;
}

static bool read_item(struct point_times *times, struct scan *scan)
{
	int64_t time = 0;
	bool good;

	if (!read_stamp(times, scan, &good, &time))
		return false;
	if (!good)
		add_problem(times, "is not a time", times->count);
	else if (times->count > 0 && time < times->items[times->count - 1])
		add_problem(times, "is before the one in front of it", times->count);
	times->items =
		memory_grow(times->items, &times->capacity, times->count + 1, sizeof *times->items);
	times->items[times->count++] = time;
	return true;
}

bool point_times_read(struct point_times *times, struct scan *scan)
{
	times->count = 0;
	times->seen = false;
	times->problem = NULL;
	if (scan_word(scan, "null"))
		return true;
	times->seen = true;
	if (!scan_open(scan, '[')) {
		add_problem(times, "is not an array", WHOLE);
		return scan_value(scan);
	}
	while (scan_item(scan))
		if (!read_item(times, scan))
			return false;
	return !scan->problem;
}

bool point_times_read_start(struct point_times *times, struct scan *scan)
{
	bool good;

	times->start = (struct point_time){0};
	if (scan_word(scan, "null"))
		return true;
	times->start.seen = true;
	if (!read_stamp(times, scan, &good, &times->start.time))
		return false;
	times->start.problem = good ? NULL : "is not a time";
	return true;
}

bool point_times_read_step(struct point_times *times, struct scan *scan)
{
	const char *from = scan->at;

	times->step = (struct point_time){0};
	if (scan_word(scan, "null"))
		return true;
	times->step.seen = true;
	if (!scan_value(scan))
		return false;
	if (number_scan(from, scan->at, &times->step.number) != scan->at ||
		!(times->step.number > 0))
		times->step.problem = "is not a number of seconds above 0";
	return true;
}

static bool has_range(const struct point_times *times)
{
	return times->start.seen && times->step.seen;
}

static bool check_range(const struct point_times *times, size_t n, struct error *error)
{
	double last = (double)times->start.time + 1000 * times->step.number * (double)n;

	if (times->start.problem)
		return error_set(error, ERROR_DATA, "\"start\" %s", times->start.problem);
	if (times->step.problem)
		return error_set(error, ERROR_DATA, "\"step\" %s", times->step.problem);
	return last <= (double)LAST_TIME ||
	       error_set(error, ERROR_DATA, "\"step\" leads beyond the year 9999");
}

bool point_times_check(const struct point_times *times, size_t n, struct error *error)
{
	if (times->problem && times->bad != WHOLE)
		return error_set(
			error, ERROR_DATA, "\"times\"[%zu] %s", times->bad, times->problem);
	if (times->problem)
		return error_set(error, ERROR_DATA, "\"times\" %s", times->problem);
	if (times->seen && times->count != n)
		return error_set(error, ERROR_DATA, "\"times\" has %zu items and \"series\" %zu",
			times->count, n);
	if (times->seen && has_range(times))
		return error_set(error, ERROR_DATA,
			"\"times\", and \"start\" and \"step\": only one of them can be meant");
	return !has_range(times) || check_range(times, n, error);
}

const int64_t *point_times_list(struct point_times *times, size_t n)
{
	if (!times->seen && !has_range(times))
		return NULL;
	times->items = memory_grow(times->items, &times->capacity, n + 1, sizeof *times->items);
	for (size_t i = 0; i < n && !times->seen; i++)
		times->items[i] =
			times->start.time + llround(1000 * times->step.number * (double)i);
	return times->items;
}
