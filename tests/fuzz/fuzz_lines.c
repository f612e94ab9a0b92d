/*
 * The reader of detect's lines against jansson: both must accept and reject the same texts, see the
 * same series bit for bit, the same id and the same options. Two differences are wanted and stepped
 * around: numbers too big for a double (jansson rejects the document) and the words NaN and
 * Infinity (which are not JSON).
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/series_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the readers differ: %s\n", what);
	abort();
}

static bool is_scalar(const json_t *value)
{
	return !json_is_array(value) && !json_is_object(value);
}

static bool options_fit(json_t *options)
{
	const char *key;
	json_t *value;
	if (!options || json_is_null(options))
		return true;
	if (!json_is_object(options) || json_object_size(options) > LINE_OPTIONS_MAX)
		return false;
	json_object_foreach(options, key, value) if (!is_scalar(value)) return false;
	return true;
}

static bool marks_fit(const json_t *marks, size_t n)
{
	if (!marks || json_is_null(marks))
		return true;
	if (!json_is_array(marks) || json_array_size(marks) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *mark = json_array_get(marks, i);
		if (!json_is_string(mark) && !json_is_number(mark) && !json_is_null(mark))
			return false;
	}
	return true;
}

/* Whether a time stamp is one is for the fuzz target of their reader; here, what no reader takes.
 */
static bool may_be_time(const json_t *value)
{
	return json_is_string(value) || json_is_number(value);
}

static bool times_may_fit(const json_t *row, size_t n)
{
	const json_t *times = json_object_get(row, "times"), *start = json_object_get(row, "start");
	const json_t *step = json_object_get(row, "step");
	bool listed = times && !json_is_null(times);
	bool spaced = start && !json_is_null(start) && step && !json_is_null(step);
	if (listed && (!json_is_array(times) || json_array_size(times) != n || spaced))
		return false;
	for (size_t i = 0; i < json_array_size(times); i++)
		if (!may_be_time(json_array_get(times, i)))
			return false;
	return !spaced || (may_be_time(start) && json_number_value(step) > 0);
}

/* Whether it has times that are to be understood. */
static bool is_timed(const json_t *row)
{
	const json_t *times = json_object_get(row, "times");
	return (times && !json_is_null(times)) || json_object_get(row, "start");
}

/* What agent/analysis/series_lines.h promises, said about jansson's tree. */
static bool has_shape(const json_t *row)
{
	const json_t *id = json_object_get(row, "id");
	const json_t *series = json_object_get(row, "series");
	if (!json_is_object(row) || !json_is_array(series))
		return false;
	if (id && !json_is_string(id) && !json_is_number(id) && !json_is_null(id))
		return false;
	for (size_t i = 0; i < json_array_size(series); i++) {
		const json_t *value = json_array_get(series, i);
		if (!json_is_number(value) && !json_is_null(value))
			return false;
	}
	size_t n = json_array_size(series);
	return marks_fit(json_object_get(row, "runs"), n) &&
	       marks_fit(json_object_get(row, "hashes"), n) && times_may_fit(row, n) &&
	       options_fit(json_object_get(row, "options"));
}

static void compare_series(const json_t *series, const struct line *line)
{
	require(json_array_size(series) == line->n, "points of the series");
	for (size_t i = 0; i < line->n; i++) {
		const json_t *value = json_array_get(series, i);
		double theirs = json_number_value(value);
		if (json_is_null(value))
			require(isnan(line->values[i]), "a missing point");
		else
			require(memcmp(&theirs, &line->values[i], sizeof theirs) == 0, "a value");
	}
}

/* Of equal names, that they are equal where they are written alike; and what is none. */
static void compare_marks(const json_t *row, const struct line *line)
{
	const json_t *runs = json_object_get(row, "runs");
	const json_t *hashes = json_object_get(row, "hashes");
	require(json_is_array(runs) == (line->runs != NULL), "runs");
	require(json_is_array(hashes) == (line->hashes != NULL), "hashes");
	for (size_t i = 0; line->hashes && i < line->n; i++)
		require(json_is_null(json_array_get(hashes, i)) == (line->hashes[i] == 0),
			"a hash");
	for (size_t i = 1; line->runs && i < line->n; i++) {
		bool same = line->runs[i] == line->runs[i - 1];
		const json_t *one = json_array_get(runs, i - 1), *other = json_array_get(runs, i);
		require(same || line->runs[i] == line->runs[i - 1] + 1, "the next run");
		require(!same || (!json_is_null(one) && json_equal(one, other)), "a run");
	}
}

static void compare_times(const json_t *row, const struct line *line)
{
	const json_t *times = json_object_get(row, "times");
	require(!line->times || is_timed(row), "times of nowhere");
	require(!json_is_array(times) || line->times, "times");
	for (size_t i = 1; line->times && i < line->n; i++)
		require(line->times[i - 1] <= line->times[i], "the order of times");
	for (size_t i = 0; line->times && i < json_array_size(times); i++) {
		double theirs = json_number_value(json_array_get(times, i));
		if (json_is_number(json_array_get(times, i)) && fabs(theirs) < 1e11)
			require(fabs(1000 * theirs - (double)line->times[i]) <= 1, "a time");
	}
}

static void compare_id(const json_t *id, const struct line *line)
{
	if (!id || json_is_null(id)) {
		require(!line->id, "no id");
		return;
	}
	require(line->id != NULL, "an id");
	json_error_t error;
	json_t *ours = json_loadb(
		line->id, line->id_length, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &error);
	require(ours && json_equal(ours, id), "the id's value");
	json_decref(ours);
}

static void compare_option(const char *text, const json_t *value)
{
	if (json_is_string(value))
		require(strcmp(text, json_string_value(value)) == 0, "an option's text");
	else if (json_is_boolean(value))
		require(strcmp(text, json_is_true(value) ? "true" : "false") == 0, "a truth");
	else
		require(strtod(text, NULL) == json_number_value(value), "an option's number");
}

static void compare_options(json_t *options, const struct line *line)
{
	const char *key;
	json_t *value;
	size_t count = 0;
	json_object_foreach(options, key, value)
	{
		if (json_is_null(value))
			continue;
		bool found = false;
		for (size_t i = 0; i < line->option_count; i++) {
			if (strcmp(line->options[i].name, key) != 0)
				continue;
			found = true;
			compare_option(line->options[i].value, value);
		}
		require(found, "an option");
		count++;
	}
	require(count == line->option_count, "how many options there are");
}

/* Is there an 'N' or 'I' outside of strings, where no JSON has one? */
static bool has_words(const uint8_t *data, size_t size)
{
	bool inside = false;
	for (size_t i = 0; i < size; i++) {
		if (data[i] == '"')
			inside = !inside;
		else if (inside && data[i] == '\\')
			i++;
		else if (!inside && (data[i] == 'N' || data[i] == 'I'))
			return true;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error mine;
	json_error_t theirs;
	struct line line;
	struct line_reader *reader = line_reader_new();
	/* A line before it must leave nothing behind. */
	static const char before[] = "{\"id\":1,\"series\":[1,2],\"options\":{\"window\":3},"
				     "\"runs\":[1,1],\"hashes\":[\"a\",null],"
				     "\"times\":[7,\"2026-01-02\"]}";
	require(line_read(reader, before, sizeof before - 1, &line, &mine), "a plain line");

	bool accepted = line_read(reader, (const char *)data, size, &line, &mine);
	if (memchr(data, 0, size)) {
		/* jansson 2.14 loses a NUL that stands behind a number. */
		require(!accepted, "a NUL");
		line_reader_free(reader);
		return 0;
	}
	json_t *row = json_loadb((const char *)data, size, JSON_DECODE_INT_AS_REAL, &theirs);
	bool wanted = !row && (json_error_code(&theirs) == json_error_numeric_overflow ||
				      has_words(data, size));
	if (!wanted && accepted)
		require(row && has_shape(row), "whether the line is right");
	if (!wanted && !accepted)
		require(!row || !has_shape(row) || is_timed(row), "whether the line is wrong");
	if (row && accepted) {
		compare_series(json_object_get(row, "series"), &line);
		compare_marks(row, &line);
		compare_times(row, &line);
		compare_id(json_object_get(row, "id"), &line);
		compare_options(json_object_get(row, "options"), &line);
	}
	json_decref(row);
	line_reader_free(reader);
	return 0;
}
