/*
 * Broken JSON ends the reading of a line at once. A part that is JSON but not of the shape is
 * remembered as a problem and stepped over, since the same key may come again, and since the id may
 * stand behind it.
 */
#include "agent/analysis/series_lines.h"

#include <math.h>
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

#define LAST_TIME INT64_C(253402300799999) /* of the year 9999 */
#define WHOLE SIZE_MAX

enum { FIRST_VALUES = 1024 };

/* The members about the points: arrays with an item for each, and when the first was measured. */
enum { SERIES, RUNS, HASHES, TIMES, START, STEP, PARTS };

/* The members of one line. */
struct part {
	bool seen;
	const char *problem; /* what is wrong with it, or NULL, ... */
	size_t bad;          /* ... and with which item; WHOLE: with all of it */
	size_t count;        /* items */
};

/* "runs" and "hashes" are names, strings or numbers. Only whether two are equal matters, so their
 * hashes are kept, 0 for null; equal ones are equal as they are written. */
struct marks {
	uint64_t *items;
	size_t capacity;
};

struct line_reader {
	struct part parts[PARTS];
	double *values;
	int64_t *times; /* ms; laid out from start and step only for a line that is good */
	size_t value_capacity, time_capacity;
	struct marks marks[2]; /* runs, hashes */
	size_t *run_numbers;
	int64_t start; /* ms */
	double step;   /* seconds */
	struct line_option options[LINE_OPTIONS_MAX];
	size_t option_count;
	struct buf text;  /* of the options, each with a NUL behind it */
	struct buf stamp; /* a time that is decoded */
	struct scan scan; /* of the line */
	const char *id, *id_end;
	const char *options_text, *options_end;
	const char *id_problem, *options_problem; /* or NULL */
	const struct line_wanted *wanted;
	size_t wanted_count;
};

struct line_reader *line_reader_new(void)
{
	struct line_reader *reader = memory_new(1, sizeof *reader);
	reader->value_capacity = FIRST_VALUES;
	reader->values = memory_new(reader->value_capacity, sizeof *reader->values);
	return reader;
}

void line_reader_free(struct line_reader *reader)
{
	if (!reader)
		return;
	free(reader->values);
	free(reader->times);
	free(reader->marks[0].items);
	free(reader->marks[1].items);
	free(reader->run_numbers);
	buf_free(&reader->text);
	buf_free(&reader->stamp);
	buf_free(&reader->scan.text);
	free(reader);
}

void line_reader_want(struct line_reader *reader, const struct line_wanted *wanted, size_t count)
{
	reader->wanted = wanted;
	reader->wanted_count = count;
}

/* The first problem of a part is reported. */
static void note(struct part *part, const char *problem, size_t bad)
{
	if (part->problem)
		return;
	part->problem = problem;
	part->bad = bad;
}

/* Whether a value that begins so is a string or a number. */
static bool is_name(const char *from)
{
	return *from == '"' || *from == '-' || (*from >= '0' && *from <= '9');
}

static bool read_value(struct line_reader *reader, struct part *part, struct scan *scan)
{
	double *value;

	if (part->count == reader->value_capacity)
		reader->values = memory_grow(reader->values, &reader->value_capacity,
			part->count + 1, sizeof *reader->values);
	value = &reader->values[part->count];
	if (scan_number(scan, value))
		return true;
	if (scan_word(scan, "null") || scan_word(scan, "NaN"))
		*value = (double)NAN;
	else if (scan_word(scan, "Infinity"))
		*value = HUGE_VAL;
	else if (scan_word(scan, "-Infinity"))
		*value = -HUGE_VAL;
	else {
		note(part, "is not a number", part->count);
		return scan_value(scan);
	}
	return true;
}

static bool read_mark(struct line_reader *reader, struct part *part, struct scan *scan)
{
	struct marks *marks = &reader->marks[part == &reader->parts[HASHES]];
	const char *from = scan->at;

	if (!scan_value(scan))
		return false;
	if (!is_name(from) && *from != 'n')
		note(part, "has what is neither a string nor a number", WHOLE);
	marks->items =
		memory_grow(marks->items, &marks->capacity, part->count + 1, sizeof *marks->items);
	marks->items[part->count] =
		is_name(from) ? hash_add(HASH_START, from, (size_t)(scan->at - from)) | 1 : 0;
	return true;
}

/* Steps over a text or seconds since the epoch, as when_parse_stamp takes them; *good: it is one.
 */
static bool read_stamp(struct line_reader *reader, struct scan *scan, bool *good, int64_t *out)
{
	const char *from = scan->at, *to;
	char plain[NUMBER_TEXT];
	double seconds;

	if (!scan_value(scan))
		return false;
	to = scan->at;
	*good = false;
	if (*from == '"') {
		buf_clear(&reader->stamp);
		scan_decode(from, to, &reader->stamp);
		*good = when_parse_stamp(reader->stamp.data, reader->stamp.length, out);
	} else if (is_name(from) && !(*good = when_parse_stamp(from, (size_t)(to - from), out)) &&
		   number_scan(from, to, &seconds) == to && fabs(seconds) < 1e18) {
		/* Programs write exponents, which time stamps do not have. */
		int length = snprintf(plain, sizeof plain, "%.3f", seconds);
		*good = when_parse_stamp(plain, (size_t)length, out);
	}
	return true;
}

static bool read_time(struct line_reader *reader, struct part *part, struct scan *scan)
{
	int64_t time = 0;
	bool good;

	if (!read_stamp(reader, scan, &good, &time))
		return false;
	if (!good)
		note(part, "is not a time", part->count);
	else if (part->count > 0 && time < reader->times[part->count - 1])
		note(part, "is before the one in front of it", part->count);
	reader->times = memory_grow(
		reader->times, &reader->time_capacity, part->count + 1, sizeof *reader->times);
	reader->times[part->count] = time;
	return true;
}

static bool read_start(struct line_reader *reader, struct part *part, struct scan *scan)
{
	bool good;

	if (!read_stamp(reader, scan, &good, &reader->start))
		return false;
	if (!good)
		note(part, "is not a time", WHOLE);
	return true;
}

static bool read_step(struct line_reader *reader, struct part *part, struct scan *scan)
{
	const char *from = scan->at;

	if (!scan_value(scan))
		return false;
	if (number_scan(from, scan->at, &reader->step) != scan->at || !(reader->step > 0))
		note(part, "is not a number of seconds above 0", WHOLE);
	return true;
}

static const struct {
	const char *name;
	bool array;
	/* Reads the value, or the array's next item. False if it is not JSON; a wrong type is
	 * noted. */
	bool (*read)(struct line_reader *reader, struct part *part, struct scan *scan);
} members[PARTS] = {
	[SERIES] = {"series", true, read_value},
	[RUNS] = {"runs", true, read_mark},
	[HASHES] = {"hashes", true, read_mark},
	[TIMES] = {"times", true, read_time},
	[START] = {"start", false, read_start},
	[STEP] = {"step", false, read_step},
};

/* null is as if it were not there, but for the series. */
static bool read_part(struct line_reader *reader, size_t which, struct scan *scan)
{
	struct part *part = &reader->parts[which];

	*part = (struct part){0};
	if (which != SERIES && scan_word(scan, "null"))
		return true;
	part->seen = true;
	if (!members[which].array)
		return members[which].read(reader, part, scan);
	if (!scan_open(scan, '[')) {
		note(part, "is not an array", WHOLE);
		return scan_value(scan);
	}
	for (; scan_item(scan); part->count++)
		if (!members[which].read(reader, part, scan))
			return false;
	return !scan->problem;
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
	if (is_name(from)) {
		reader->id = from;
		reader->id_end = scan->at;
	} else {
		reader->id_problem = "\"id\" is neither a string nor a number";
	}
	return true;
}

/* Appends the text in between and a NUL; there is room for it. Returns the text. */
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
	size_t kept = 0; /* those that are not null */
	for (size_t i = 0; i < reader->option_count; i++) {
		if (reader->options[i].value == not_scalar)
			reader->options_problem = "an option is neither a number nor a string";
		if (reader->options[i].value)
			reader->options[kept++] = reader->options[i];
	}
	reader->option_count = kept;
	return !scan->problem;
}

/* Is it the key that was decoded? It has no NUL. */
static bool is_key(const struct line_reader *reader, const char *key)
{
	return strcmp(reader->scan.text.data, key) == 0;
}

static bool read_member(struct line_reader *reader, struct scan *scan)
{
	for (size_t i = 0; i < PARTS; i++)
		if (is_key(reader, members[i].name))
			return read_part(reader, i, scan);
	if (is_key(reader, "id"))
		return read_id(reader, scan);
	if (is_key(reader, "options"))
		return read_options(reader, scan);
	/* One that is not ours is kept for the caller if it is wanted. */
	const char *from = scan->at;
	if (!scan_value(scan))
		return false;
	for (size_t i = 0; i < reader->wanted_count; i++)
		if (is_key(reader, reader->wanted[i].name))
			*reader->wanted[i].part = (struct line_part){from, scan->at};
	return true;
}

static bool check_part(const struct line_reader *reader, size_t which, struct error *error)
{
	const struct part *part = &reader->parts[which];
	const char *name = members[which].name;
	size_t n = reader->parts[SERIES].count;

	if (part->problem && part->bad != WHOLE)
		return error_set(
			error, ERROR_DATA, "\"%s\"[%zu] %s", name, part->bad, part->problem);
	if (part->problem)
		return error_set(error, ERROR_DATA, "\"%s\" %s", name, part->problem);
	if (members[which].array && part->seen && part->count != n)
		return error_set(error, ERROR_DATA, "\"%s\" has %zu items and \"series\" %zu", name,
			part->count, n);
	return true;
}

/* A start without a step, or a step alone, gives no times. */
static bool has_range(const struct line_reader *reader)
{
	return reader->parts[START].seen && reader->parts[STEP].seen;
}

/* Is every part there and of its shape? */
static bool check_shape(const struct line_reader *reader, struct error *error)
{
	if (reader->id_problem)
		return error_set(error, ERROR_DATA, "%s", reader->id_problem);
	if (!reader->parts[SERIES].seen)
		return error_set(error, ERROR_DATA, "no \"series\"");
	if (!check_part(reader, SERIES, error))
		return false;
	if (reader->options_problem)
		return error_set(error, ERROR_DATA, "%s", reader->options_problem);
	for (size_t i = RUNS; i <= TIMES; i++)
		if (!check_part(reader, i, error))
			return false;
	if (!has_range(reader))
		return true;
	if (reader->parts[TIMES].seen)
		return error_set(error, ERROR_DATA,
			"\"times\" and \"start\"/\"step\" are mutually exclusive");
	double last =
		(double)reader->start + 1000 * reader->step * (double)reader->parts[SERIES].count;
	return check_part(reader, START, error) && check_part(reader, STEP, error) &&
	       (last <= (double)LAST_TIME ||
		       error_set(error, ERROR_DATA, "\"step\" extends beyond the year 9999"));
}

/* Numbers of the runs, which never fall: points in succession with the same name are one run. NULL
 * where there is no array. */
static const size_t *number_runs(struct line_reader *reader)
{
	const uint64_t *marks = reader->marks[0].items;
	size_t *numbers, count = reader->parts[RUNS].count;

	if (!reader->parts[RUNS].seen)
		return NULL;
	numbers = reader->run_numbers =
		memory_resize(reader->run_numbers, count + 1, sizeof *numbers);
	numbers[0] = 0;
	for (size_t i = 1; i < count; i++)
		numbers[i] = numbers[i - 1] + !(marks[i] != 0 && marks[i] == marks[i - 1]);
	return numbers;
}

/* The time of each point, in ms, of what was checked. NULL where there are none. */
static const int64_t *list_times(struct line_reader *reader)
{
	size_t n = reader->parts[SERIES].count;

	if (!reader->parts[TIMES].seen && !has_range(reader))
		return NULL;
	reader->times =
		memory_grow(reader->times, &reader->time_capacity, n + 1, sizeof *reader->times);
	for (size_t i = 0; i < n && !reader->parts[TIMES].seen; i++)
		reader->times[i] = reader->start + llround(1000 * reader->step * (double)i);
	return reader->times;
}

bool line_read(struct line_reader *reader, const char *text, size_t length, struct line *out,
	struct error *error)
{
	struct scan *scan = &reader->scan;
	*scan = (struct scan){.at = text, .end = text + length, .text = scan->text};
	memset(reader->parts, 0, sizeof reader->parts);
	reader->id = reader->id_problem = reader->options_problem = NULL;
	reader->options_text = reader->options_end = NULL;
	reader->option_count = 0;
	for (size_t i = 0; i < reader->wanted_count; i++)
		*reader->wanted[i].part = (struct line_part){0};
	scan_space(scan);
	bool whole = scan_open(scan, '{');
	while (whole && scan_key(scan))
		whole = read_member(reader, scan);
	whole = whole && !scan->problem && scan_end(scan);
	*out = (struct line){.id = reader->id,
		.id_length = reader->id ? (size_t)(reader->id_end - reader->id) : 0};
	if (!whole)
		return error_set(error, ERROR_DATA, "not valid JSON at byte %zu",
			(size_t)(scan->at - text) + 1);
	if (!check_shape(reader, error))
		return false;
	out->values = reader->values;
	out->n = reader->parts[SERIES].count;
	out->runs = number_runs(reader);
	out->hashes = reader->parts[HASHES].seen ? reader->marks[1].items : NULL;
	out->times = list_times(reader);
	out->options = reader->options;
	out->option_count = reader->option_count;
	out->options_text = reader->options_text;
	out->options_length =
		reader->options_text ? (size_t)(reader->options_end - reader->options_text) : 0;
	return true;
}
