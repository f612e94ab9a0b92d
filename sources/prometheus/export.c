/*
 * A line has values and time stamps in two arrays, in either order. Each fills its column; they are
 * combined at the end of the line.
 */
#include "sources/prometheus/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/number.h"
#include "sources/prometheus/json.h"

enum { WORD_MAX = 9 }; /* "-Infinity" */

static const double latest = 1e14; /* ms: the year 5138 */

struct reader {
	struct parse parse;
	answer_take *take;
	void *context;
	size_t values, times;
	bool seen_metric, seen_values, seen_times;
};

static struct reader *reader_of(struct parse *parse)
{
	return (struct reader *)parse;
}

static bool read_word(const char *text, size_t length, double *out)
{
	*out = (double)NAN;
	return number_missing(text, length) || number_parse(text, length, out);
}

static bool read_value(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	struct scan *scan = &parse->scan;
	if (reader->values == parse->capacity)
		parse_grow(parse);
	double *out = &parse->values[reader->values++];
	if (scan_number(scan, out))
		return true;
	if (scan_sees(scan, '"')) {
		if (!scan_text(&parse->scan))
			return false;
		return read_word(parse->scan.text.data, parse->scan.text.length, out) ||
		       scan_fail(&parse->scan, "a value is not a number");
	}
	size_t length = 0, left = (size_t)(scan->end - scan->at);
	while (length < left && length < WORD_MAX && !strchr(",] \t\r\n", scan->at[length]))
		length++;
	if (length == 0 || !read_word(scan->at, length, out))
		return scan_fail(&parse->scan, "a value is not a number");
	scan->at += length;
	return true;
}

static bool read_time(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	struct scan *scan = &parse->scan;
	if (reader->times == parse->capacity)
		parse_grow(parse);
	size_t n = reader->times++;
	double ms;
	if (!scan_number(scan, &ms) || !(fabs(ms) <= latest))
		return scan_fail(scan, "a time stamp is not a number of milliseconds");
	parse->times[n] = llround(ms);
	if (n > 0 && parse->times[n] < parse->times[n - 1])
		return scan_fail(
			&parse->scan, "the time stamps of a series are not in ascending order");
	return true;
}

static bool read_key(struct parse *parse, const char *key)
{
	struct reader *reader = reader_of(parse);
	if (strcmp(key, "metric") == 0)
		return parse_once(parse, &reader->seen_metric) && parse_labels(parse);
	if (strcmp(key, "values") == 0)
		return parse_once(parse, &reader->seen_values) && parse_array(parse, read_value);
	if (strcmp(key, "timestamps") == 0)
		return parse_once(parse, &reader->seen_times) && parse_array(parse, read_time);
	return scan_value(&parse->scan);
}

static bool read_line(struct reader *reader)
{
	struct parse *parse = &reader->parse;
	reader->values = reader->times = 0;
	reader->seen_metric = reader->seen_values = reader->seen_times = false;
	if (!parse_object(parse, read_key))
		return false;
	if (!reader->seen_metric || !reader->seen_values || !reader->seen_times)
		return scan_fail(
			&parse->scan, "a series without \"metric\", \"values\" or \"timestamps\"");
	if (reader->values != reader->times)
		return scan_fail(
			&parse->scan, "a series whose numbers of values and timestamps differ");
	size_t n = 0;
	for (size_t i = 0; i < reader->values; i++) {
		if (isnan(parse->values[i]))
			continue;
		parse->values[n] = parse->values[i];
		parse->times[n++] = parse->times[i];
	}
	const struct answer_series series = {
		.labels = parse->labels,
		.label_count = parse->label_count,
		.times = parse->times,
		.values = parse->values,
		.n = n,
	};
	reader->take(reader->context, &series);
	return true;
}

bool export_read(struct arena *arena, const char *text, size_t length, answer_take *take,
	void *context, struct error *error)
{
	struct reader *reader = memory_new(1, sizeof *reader);
	struct parse *parse = &reader->parse;
	parse_start(parse, arena, text, length);
	reader->take = take;
	reader->context = context;
	bool read = true;
	scan_space(&parse->scan);
	while (read && parse->scan.at < parse->scan.end) {
		read = read_line(reader);
		scan_space(&parse->scan);
	}
	if (!read)
		error_set(error, ERROR_DATA,
			"not an answer of VictoriaMetrics' export: %s (byte %zu of %zu)",
			parse->scan.problem, (size_t)(parse->scan.at - parse->begin), length);
	parse_end(parse);
	free(reader);
	return read;
}
