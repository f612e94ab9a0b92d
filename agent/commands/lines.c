/*
 * Broken JSON ends the reading of a line at once. A part that is JSON but not of the shape is
 * remembered as a problem and stepped over, since the same key may come again, and since the id may
 * stand behind it.
 */
#include "agent/commands/lines.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/error.h"
#include "agent/base/hash.h"
#include "agent/base/number.h"
#include "agent/base/scan.h"
#include "agent/base/when.h"

/*
 * When the points of one of detect's lines were measured: an array "times", or "start" and "step".
 *
 * A start and a step are laid out into times only for a line that is good.
 */

/* What was read of a member that is one value. */
struct point_time {
	bool seen;
	const char *problem; /* what is wrong with it, or NULL */
	double number;       /* the step, in seconds */
	int64_t time;        /* the start, in ms */
};

struct point_times {
	int64_t *items; /* ms */
	size_t count, capacity;
	bool seen;
	const char *problem; /* what is wrong with "times", or NULL, ... */
	size_t bad;          /* ... and of which item; SIZE_MAX: of the whole */
	struct point_time start, step;
	struct buf text;
};

#define WHOLE SIZE_MAX

#define LAST_TIME INT64_C(253402300799999) /* of the year 9999 */

static void point_times_clear(struct point_times *times)
{
	times->count = 0;
	times->seen = false;
	times->problem = NULL;
	times->start = times->step = (struct point_time){0};
}

static void point_times_free(struct point_times *times)
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

/*
 * Read the array of time stamps (text or seconds since the epoch, as when_parse_stamp takes them),
 * the first time stamp, the seconds between points; or null, which is as if it were not there.
 * False for what is no JSON; what is not of the shape is told by point_times_check.
 */
static bool point_times_read(struct point_times *times, struct scan *scan)
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

static bool point_times_read_start(struct point_times *times, struct scan *scan)
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

static bool point_times_read_step(struct point_times *times, struct scan *scan)
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

/* Is it of the shape, and are there times for `n` points that do not go back? */
static bool point_times_check(const struct point_times *times, size_t n, struct error *error)
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

/* The time of each of the `n` points, in ms, of what was checked. NULL where there are none: a
 * start without a step, or a step alone, says nothing. */
static const int64_t *point_times_list(struct point_times *times, size_t n)
{
	if (!times->seen && !has_range(times))
		return NULL;
	times->items = memory_grow(times->items, &times->capacity, n + 1, sizeof *times->items);
	for (size_t i = 0; i < n && !times->seen; i++)
		times->items[i] =
			times->start.time + llround(1000 * times->step.number * (double)i);
	return times->items;
}

/*
 * Arrays of names in detect's lines, one for each point: "runs" and "hashes".
 *
 * Only whether two names are equal matters, so their hashes are kept.
 */

/* Each name is a string or a number. Equal ones are equal as they are written. */
struct marks {
	uint64_t *items; /* hashes of the names, 0 for null */
	size_t *numbers; /* of the runs they make, see marks_number */
	size_t count, capacity;
	bool seen;
	const char *problem; /* what is wrong with it, or NULL */
};

static void marks_clear(struct marks *marks)
{
	marks->count = 0;
	marks->seen = false;
	marks->problem = NULL;
}

static void marks_free(struct marks *marks)
{
	free(marks->items);
	free(marks->numbers);
}

static void add_mark(struct marks *marks, uint64_t mark)
{
	marks->items =
		memory_grow(marks->items, &marks->capacity, marks->count + 1, sizeof *marks->items);
	marks->items[marks->count++] = mark;
}

static bool read_mark(struct marks *marks, struct scan *scan)
{
	const char *from = scan->at;
	if (!scan_value(scan))
		return false;
	bool names = *from == '"' || *from == '-' || (*from >= '0' && *from <= '9');
	if (!names && *from != 'n')
		marks->problem = "has what is neither a string nor a number";
	add_mark(marks, names ? hash_add(HASH_START, from, (size_t)(scan->at - from)) | 1 : 0);
	return true;
}

/* Reads the array, or null, which is as if it were not there. False for what is no JSON; what is
 * not of the shape is told by marks_check. */
static bool marks_read(struct marks *marks, struct scan *scan)
{
	marks_clear(marks);
	if (scan_word(scan, "null"))
		return true;
	marks->seen = true;
	if (!scan_open(scan, '[')) {
		marks->problem = "is not an array";
		return scan_value(scan);
	}
	while (scan_item(scan))
		if (!read_mark(marks, scan))
			return false;
	return !scan->problem;
}

/* Is it of the shape, and has it `n` items? */
static bool marks_check(const struct marks *marks, const char *key, size_t n, struct error *error)
{
	if (marks->problem)
		return error_set(error, ERROR_DATA, "\"%s\" %s", key, marks->problem);
	if (marks->seen && marks->count != n)
		return error_set(error, ERROR_DATA, "\"%s\" has %zu items and \"series\" %zu", key,
			marks->count, n);
	return true;
}

/* Numbers that never fall: points in succession with the same name are one run. NULL where there
 * is no array. */
static const size_t *marks_number(struct marks *marks)
{
	if (!marks->seen)
		return NULL;
	marks->numbers = memory_resize(marks->numbers, marks->count + 1, sizeof *marks->numbers);
	marks->numbers[0] = 0;
	for (size_t i = 1; i < marks->count; i++) {
		bool same = marks->items[i] != 0 && marks->items[i] == marks->items[i - 1];
		marks->numbers[i] = marks->numbers[i - 1] + !same;
	}
	return marks->numbers;
}

enum { FIRST_VALUES = 1024 };
#define NO_INDEX SIZE_MAX

struct line_reader {
	double *values;
	size_t value_count, capacity;
	struct line_option options[LINE_OPTIONS_MAX];
	size_t option_count;
	struct buf text;  /* of the options, each with a NUL behind it */
	struct scan scan; /* of the line */
	const char *id, *id_end;
	const char *options_text, *options_end;
	bool series_seen;
	struct marks runs, hashes;
	struct point_times times;
	/* What is wrong with a part, or NULL. */
	const char *id_problem, *series_problem, *options_problem;
	size_t bad_value; /* the index the series' problem is about, or NO_INDEX */
	const struct line_wanted *wanted;
	size_t wanted_count;
};

struct line_reader *line_reader_new(void)
{
	struct line_reader *reader = memory_new(1, sizeof *reader);
	reader->capacity = FIRST_VALUES;
	reader->values = memory_new(reader->capacity, sizeof *reader->values);
	return reader;
}

void line_reader_free(struct line_reader *reader)
{
	if (!reader)
		return;
	free(reader->values);
	marks_free(&reader->runs);
	marks_free(&reader->hashes);
	point_times_free(&reader->times);
	buf_free(&reader->text);
	buf_free(&reader->scan.text);
	free(reader);
}

void line_reader_want(struct line_reader *reader, const struct line_wanted *wanted, size_t count)
{
	reader->wanted = wanted;
	reader->wanted_count = count;
}

static bool read_id(struct line_reader *reader, struct scan *scan)
{
	const char *from = scan->at;
	reader->id_problem = NULL;
	reader->id = NULL;
	if (scan_word(scan, "null"))
		return true;
	if (!scan_value(scan))
		return false;
	if (*from == '"' || *from == '-' || (*from >= '0' && *from <= '9')) {
		reader->id = from;
		reader->id_end = scan->at;
	} else {
		reader->id_problem = "\"id\" is neither a string nor a number";
	}
	return true;
}

/* One of the words of a series; *value stays as it is without one. */
static bool scan_point_word(struct scan *scan, double *value)
{
	if (scan_word(scan, "null") || scan_word(scan, "NaN"))
		*value = (double)NAN;
	else if (scan_word(scan, "Infinity"))
		*value = HUGE_VAL;
	else if (scan_word(scan, "-Infinity"))
		*value = -HUGE_VAL;
	else
		return false;
	return true;
}

static bool read_point(struct line_reader *reader, struct scan *scan, double *value)
{
	if (scan_number(scan, value) || scan_point_word(scan, value))
		return true;
	if (!reader->series_problem) {
		reader->series_problem = "is not a number";
		reader->bad_value = reader->value_count;
	}
	return scan_value(scan);
}

static void grow_values(struct line_reader *reader)
{
	reader->values = memory_grow(
		reader->values, &reader->capacity, reader->capacity + 1, sizeof *reader->values);
}

static bool read_series(struct line_reader *reader, struct scan *scan)
{
	reader->series_seen = true;
	reader->series_problem = NULL;
	reader->value_count = 0;
	if (!scan_open(scan, '[')) {
		reader->series_problem = "is not an array";
		reader->bad_value = NO_INDEX;
		return scan_value(scan);
	}
	while (scan_item(scan)) {
		if (reader->value_count == reader->capacity)
			grow_values(reader);
		if (!read_point(reader, scan, &reader->values[reader->value_count]))
			return false;
		reader->value_count++;
	}
	return !scan->problem;
}

/* Appends what is between, and a NUL; there is room for it. Returns the text. */
static const char *keep_text(struct line_reader *reader, const char *from, const char *to)
{
	size_t start = reader->text.length;
	if (*from == '"')
		scan_decode(from, to, &reader->text);
	else
		buf_append(&reader->text, from, (size_t)(to - from));
	buf_char(&reader->text, '\0');
	return reader->text.data + start;
}

/* The option of that name, which may be new; NULL if there are too many. */
static struct line_option *find_option(struct line_reader *reader, const char *name)
{
	for (size_t i = 0; i < reader->option_count; i++)
		if (strcmp(reader->options[i].name, name) == 0)
			return &reader->options[i];
	if (reader->option_count == LINE_OPTIONS_MAX)
		return NULL;
	struct line_option *option = &reader->options[reader->option_count++];
	*option = (struct line_option){.name = name};
	return option;
}

/* The option of the key that was decoded. */
static bool read_option(struct line_reader *reader, struct scan *scan, const char *not_scalar)
{
	const char *name = reader->text.data + reader->text.length, *from = scan->at;
	buf_append(&reader->text, scan->text.data, scan->text.length + 1);
	struct line_option *option = find_option(reader, name);
	if (!scan_value(scan))
		return false;
	if (!option)
		reader->options_problem = "\"options\" has too many entries";
	else if (*from == '{' || *from == '[')
		option->value = not_scalar;
	else if (*from == 'n')
		option->value = NULL;
	else
		option->value = keep_text(reader, from, scan->at);
	return true;
}

/* Drops the options that are null. */
static void drop_nulls(struct line_reader *reader)
{
	size_t kept = 0;
	for (size_t i = 0; i < reader->option_count; i++)
		if (reader->options[i].value)
			reader->options[kept++] = reader->options[i];
	reader->option_count = kept;
}

static bool read_options(struct line_reader *reader, struct scan *scan)
{
	static const char not_scalar[] = "";
	reader->option_count = 0;
	reader->options_problem = NULL;
	reader->options_text = reader->options_end = scan->at;
	if (!scan_open(scan, '{')) {
		if (!scan_sees(scan, 'n'))
			reader->options_problem = "\"options\" is not an object";
		return scan_value(scan);
	}
	/* Each text and its NUL is no longer than it is in JSON with the ':', ',' or '}' behind it.
	 */
	buf_clear(&reader->text);
	buf_reserve(&reader->text, (size_t)(scan->end - scan->at));
	while (scan_key(scan))
		if (!read_option(reader, scan, not_scalar))
			return false;
	reader->options_end = scan->at;
	for (size_t i = 0; i < reader->option_count; i++)
		if (reader->options[i].value == not_scalar)
			reader->options_problem = "an option is neither a number nor a word";
	drop_nulls(reader);
	return !scan->problem;
}

/* Is it the key that was decoded? It has no NUL. */
static bool is_key(const struct line_reader *reader, const char *key)
{
	return strcmp(reader->scan.text.data, key) == 0;
}

/* A member that is not ours: kept for the caller if it is wanted. */
static bool read_other(struct line_reader *reader, struct scan *scan)
{
	const char *from = scan->at;
	if (!scan_value(scan))
		return false;
	for (size_t i = 0; i < reader->wanted_count; i++)
		if (is_key(reader, reader->wanted[i].name))
			*reader->wanted[i].part = (struct line_part){from, scan->at};
	return true;
}

static bool read_member(struct line_reader *reader, struct scan *scan)
{
	if (is_key(reader, "series"))
		return read_series(reader, scan);
	if (is_key(reader, "id"))
		return read_id(reader, scan);
	if (is_key(reader, "options"))
		return read_options(reader, scan);
	if (is_key(reader, "runs"))
		return marks_read(&reader->runs, scan);
	if (is_key(reader, "hashes"))
		return marks_read(&reader->hashes, scan);
	if (is_key(reader, "times"))
		return point_times_read(&reader->times, scan);
	if (is_key(reader, "start"))
		return point_times_read_start(&reader->times, scan);
	if (is_key(reader, "step"))
		return point_times_read_step(&reader->times, scan);
	return read_other(reader, scan);
}

static bool read_object(struct line_reader *reader, struct scan *scan)
{
	scan_space(scan);
	if (!scan_open(scan, '{'))
		return false;
	while (scan_key(scan))
		if (!read_member(reader, scan))
			return false;
	return !scan->problem && scan_end(scan);
}

/* Is every part there and of its shape? */
static bool check_shape(const struct line_reader *reader, struct error *error)
{
	if (reader->id_problem)
		return error_set(error, ERROR_DATA, "%s", reader->id_problem);
	if (!reader->series_seen)
		return error_set(error, ERROR_DATA, "no \"series\"");
	if (reader->series_problem && reader->bad_value == NO_INDEX)
		return error_set(error, ERROR_DATA, "\"series\" %s", reader->series_problem);
	if (reader->series_problem)
		return error_set(error, ERROR_DATA, "\"series\"[%zu] %s", reader->bad_value,
			reader->series_problem);
	if (reader->options_problem)
		return error_set(error, ERROR_DATA, "%s", reader->options_problem);
	return marks_check(&reader->runs, "runs", reader->value_count, error) &&
	       marks_check(&reader->hashes, "hashes", reader->value_count, error) &&
	       point_times_check(&reader->times, reader->value_count, error);
}

bool line_read(struct line_reader *reader, const char *text, size_t length, struct line *out,
	struct error *error)
{
	struct scan *scan = &reader->scan;
	*scan = (struct scan){.at = text, .end = text + length, .text = scan->text};
	reader->id = NULL;
	reader->id_problem = reader->series_problem = reader->options_problem = NULL;
	reader->series_seen = false;
	marks_clear(&reader->runs);
	marks_clear(&reader->hashes);
	point_times_clear(&reader->times);
	reader->options_text = reader->options_end = NULL;
	reader->value_count = reader->option_count = 0;
	for (size_t i = 0; i < reader->wanted_count; i++)
		*reader->wanted[i].part = (struct line_part){0};
	bool whole = read_object(reader, scan);
	*out = (struct line){.id = reader->id,
		.id_length = reader->id ? (size_t)(reader->id_end - reader->id) : 0};
	if (!whole)
		return error_set(error, ERROR_DATA, "not valid JSON at byte %zu",
			(size_t)(scan->at - text) + 1);
	if (!check_shape(reader, error))
		return false;
	out->values = reader->values;
	out->n = reader->value_count;
	out->runs = marks_number(&reader->runs);
	out->hashes = reader->hashes.seen ? reader->hashes.items : NULL;
	out->times = point_times_list(&reader->times, reader->value_count);
	out->options = reader->options;
	out->option_count = reader->option_count;
	out->options_text = reader->options_text;
	out->options_length =
		reader->options_text ? (size_t)(reader->options_end - reader->options_text) : 0;
	return true;
}
