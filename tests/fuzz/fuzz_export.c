/*
 * The reader of VictoriaMetrics' export against jansson: what is JSON and has the shape is
 * accepted, with the same labels, times and values to the bit; what is JSON and has it not is
 * refused; series whose labels cannot be used are left out. Texts in which a key comes twice, or a
 * number is too big for a double, are stepped around; where words stand for values the text is no
 * JSON, and only memory is checked. The telling apart of servers reads the same texts.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "sources/prometheus/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the readers differ: %s\n", what);
	abort();
}

static bool read_value(const json_t *value, double *out)
{
	*out = (double)NAN;
	if (json_is_null(value))
		return true;
	if (json_is_number(value)) {
		*out = json_number_value(value);
		return true;
	}
	if (!json_is_string(value))
		return false;
	return number_missing(json_string_value(value), json_string_length(value)) ||
	       number_parse(json_string_value(value), json_string_length(value), out);
}

/* Whether the series can be labelled; else it is left out. */
static bool is_labelled(const json_t *line)
{
	json_t *metric = json_object_get(line, "metric"), *label;
	const char *key;
	json_object_foreach(metric, key, label)
	{
		if (!json_is_string(label))
			return false;
	}
	return json_object_size(metric) <= 512;
}

static bool line_fits(json_t *line)
{
	const json_t *values = json_object_get(line, "values");
	const json_t *stamps = json_object_get(line, "timestamps");
	double value;
	int64_t before = INT64_MIN;
	if (!json_is_object(json_object_get(line, "metric")) || !json_is_array(values) ||
		!json_is_array(stamps) || json_array_size(values) != json_array_size(stamps))
		return false;
	for (size_t i = 0; i < json_array_size(values); i++) {
		const json_t *stamp = json_array_get(stamps, i);
		if (!read_value(json_array_get(values, i), &value) || !json_is_number(stamp) ||
			!(fabs(json_number_value(stamp)) <= 1e14) ||
			llround(json_number_value(stamp)) < before)
			return false;
		before = llround(json_number_value(stamp));
	}
	return true;
}

/* The lines of a text as jansson reads them; NULL: it is no JSON, or not what can be compared. */
static json_t *read_lines(const char *text, size_t size)
{
	json_t *lines = json_array();
	const size_t flags =
		JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK;
	for (size_t at = 0;;) {
		json_error_t problem;
		at += strspn(text + at, " \t\r\n");
		if (at >= size)
			return lines;
		json_t *line = json_loadb(text + at, size - at, flags, &problem);
		if (!line)
			break;
		json_array_append_new(lines, line);
		at += (size_t)problem.position;
	}
	json_decref(lines);
	return NULL;
}

struct check {
	const json_t *lines; /* NULL: only read */
	size_t at;
};

static const json_t *next_line(struct check *check)
{
	const json_t *line;
	do
		line = json_array_get(check->lines, check->at++);
	while (line && !is_labelled(line));
	return line;
}

static void take(void *context, const struct answer_series *series)
{
	struct check *check = context;
	for (size_t i = 0; i < series->n; i++)
		require(!isnan(series->values[i]), "a point without a value");
	if (!check->lines)
		return;
	const json_t *line = next_line(check);
	const json_t *metric = json_object_get(line, "metric");
	const json_t *values = json_object_get(line, "values");
	const json_t *stamps = json_object_get(line, "timestamps");
	size_t n = 0;
	require(json_object_size(metric) == series->labels.count, "how many labels there are");
	for (size_t i = 0; i < series->labels.count; i++) {
		const char *value =
			json_string_value(json_object_get(metric, series->labels.items[i].key));
		require(value && strcmp(value, series->labels.items[i].value) == 0, "a label");
	}
	for (size_t i = 0; i < json_array_size(values); i++) {
		double value;
		require(read_value(json_array_get(values, i), &value), "a value");
		if (isnan(value))
			continue;
		require(n < series->n, "how many points there are");
		require(memcmp(&value, &series->values[n], sizeof value) == 0, "a value");
		require(llround(json_number_value(json_array_get(stamps, i))) == series->times[n],
			"a time");
		n++;
	}
	require(n == series->n, "how many points there are");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (memchr(data, 0, size))
		return 0;
	char *text = malloc(size + 1); /* ends with a NUL, as bodies do */
	memcpy(text, data, size);
	text[size] = '\0';
	struct arena *arena = arena_new();
	struct error error;
	json_t *lines = read_lines(text, size), *line;
	bool fits = lines;
	size_t i;
	json_array_foreach(lines, i, line) fits = fits && line_fits(line);
	struct check check = {.lines = fits ? lines : NULL};
	struct query query = {.arena = arena};
	struct answer answer;
	bool ours = export_read(&query, text, size, take, &check, &answer, &error);
	require(!lines || ours == fits, "what is an answer");
	require(!fits || !next_line(&check), "how many series there are");
	json_decref(lines);
	arena_free(arena);
	free(text);
	return 0;
}
