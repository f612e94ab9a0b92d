/*
 * Broken JSON ends the reading of a line at once. A part that is JSON but not of the shape is
 * remembered as a problem and stepped over, since the same key may come again, and since the id may
 * stand behind it.
 */
#include "agent/commands/lines.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/marks.h"
#include "agent/commands/point_times.h"
#include "agent/core/arena.h"
#include "agent/core/number.h"
#include "agent/core/scan.h"

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
