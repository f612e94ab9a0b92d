/*
 * One pass; each object is a loop over its keys with a function that knows them. `result` can be
 * read once its type is known. If `resultType` comes after it, it is skipped and read at the end of
 * `data`.
 */
#include "sources/prometheus/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "sources/prometheus/json.h"

enum { SENTENCES_MAX = 20, WORD_MAX = 9 /* "-Infinity" */ };

static const double latest = 1e11; /* seconds: the year 5138 */

struct reader {
	struct parse parse;
	answer_take *take;
	void *context;
	struct answer *out;

	const char *status, *error_type, *error;
	bool seen_data, seen_result, seen_warnings, seen_infos;
	const char *later;         /* a result that came before `resultType` */
	struct strings *sentences; /* the list being read */

	size_t n, time_count; /* time_count: of an export */
	bool seen_metric, seen_values, seen_histograms, seen_times;
};

static struct reader *reader_of(struct parse *parse)
{
	return (struct reader *)parse;
}

const struct pair *answer_label(const struct pair *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].key, name) == 0)
			return &labels[i];
	return NULL;
}

/* A number in a string: "1.5", "NaN", "+Inf". */
static bool read_sample(struct parse *parse, double *out)
{
	struct scan *scan = &parse->scan;
	if (!scan_sees(scan, '"'))
		return scan_fail(&parse->scan, "a value is not a string");
	const char *after = number_scan(scan->at + 1, scan->end, out);
	if (after && after < scan->end && *after == '"') {
		scan->at = after + 1;
		return true;
	}
	if (!scan_text(&parse->scan))
		return false;
	if (strcmp(parse->scan.text.data, "NaN") == 0)
		*out = (double)NAN;
	else if (!number_parse(parse->scan.text.data, parse->scan.text.length, out))
		return scan_fail(&parse->scan, "a value is not a number");
	return true;
}

static bool read_stamp(struct parse *parse, int64_t *out)
{
	double seconds;
	if (!scan_number(&parse->scan, &seconds) || !(fabs(seconds) <= latest))
		return scan_fail(&parse->scan, "a timestamp is not a number of seconds");
	*out = llround(seconds * 1000);
	return true;
}

static bool read_point(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	if (reader->n == parse->capacity)
		parse_grow(parse);
	size_t n = reader->n++;
	if (!scan_take(&parse->scan, '['))
		return scan_fail(&parse->scan, "a point is not a pair");
	scan_space(&parse->scan);
	if (!read_stamp(parse, &parse->times[n]) || !scan_expect(&parse->scan, ','))
		return false;
	if (n > 0 && parse->times[n] < parse->times[n - 1])
		return scan_fail(
			&parse->scan, "the time stamps of a series are not in ascending order");
	scan_space(&parse->scan);
	return read_sample(parse, &parse->values[n]) && scan_expect(&parse->scan, ']');
}

/* Hands over the series that was read, unless it is left out. */
static bool take_series(struct reader *reader, size_t n)
{
	const struct parse *parse = &reader->parse;
	if (parse->unlabelled)
		return true;
	const struct answer_series series = {
		.labels = parse->labels,
		.label_count = parse->label_count,
		.times = parse->times,
		.values = parse->values,
		.n = n,
		.histograms = reader->seen_histograms,
	};
	reader->out->series++;
	reader->take(reader->context, &series);
	return true;
}

static bool read_series_key(struct parse *parse, const char *key)
{
	struct reader *reader = reader_of(parse);
	if (strcmp(key, "metric") == 0)
		return parse_once(parse, &reader->seen_metric) && parse_labels(parse);
	if (strcmp(key, "values") == 0)
		return parse_once(parse, &reader->seen_values) && parse_array(parse, read_point);
	if (strcmp(key, "histograms") == 0)
		return parse_once(parse, &reader->seen_histograms) && scan_value(&parse->scan);
	return scan_value(&parse->scan);
}

static bool read_series(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	reader->n = 0;
	reader->seen_metric = reader->seen_values = reader->seen_histograms = false;
	if (!parse_object(parse, read_series_key))
		return false;
	if (!reader->seen_metric || !(reader->seen_values || reader->seen_histograms))
		return scan_fail(&parse->scan, "a series without \"metric\" or \"values\"");
	return take_series(reader, reader->n);
}

static bool is_matrix(const struct reader *reader)
{
	return reader->out->type && strcmp(reader->out->type, "matrix") == 0;
}

static bool read_data_key(struct parse *parse, const char *key)
{
	struct reader *reader = reader_of(parse);
	if (strcmp(key, "resultType") == 0)
		return parse_string_once(parse, &reader->out->type);
	if (strcmp(key, "result") != 0)
		return scan_value(&parse->scan);
	if (!parse_once(parse, &reader->seen_result))
		return false;
	if (is_matrix(reader))
		return parse_array(parse, read_series);
	reader->later = parse->scan.at;
	return scan_value(&parse->scan);
}

static bool read_data(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	if (scan_sees(&parse->scan, 'n')) /* null, as some proxies send beside an error */
		return scan_value(&parse->scan);
	if (!parse_object(parse, read_data_key))
		return false;
	if (!is_matrix(reader))
		return true;
	if (!reader->seen_result)
		return scan_fail(&parse->scan, "\"data\" without \"result\"");
	if (!reader->later)
		return true;
	const char *here = parse->scan.at;
	parse->scan.at = reader->later;
	parse->scan.depth++;
	if (!parse_array(parse, read_series))
		return false;
	parse->scan.at = here;
	parse->scan.depth--;
	return true;
}

/* Looks for a warning about missing data, and keeps the first sentences. */
static bool read_sentence(struct parse *parse)
{
	static const char promql[] = "PromQL ";
	struct strings *sentences = reader_of(parse)->sentences;
	struct answer *out = reader_of(parse)->out;
	bool full = sentences->count == SENTENCES_MAX;
	if (full && (sentences != &out->warnings || out->lacking || !scan_sees(&parse->scan, '"')))
		return scan_value(&parse->scan);
	if (!scan_text(&parse->scan))
		return false;
	const char *text = NULL;
	if (!out->lacking && sentences == &out->warnings &&
		strncmp(parse->scan.text.data, promql, strlen(promql)) != 0)
		out->lacking = text = parse_keep(parse, NULL);
	if (full)
		return true;
	const char **items = arena_array(parse->arena, sentences->count + 1, sizeof *items);
	if (sentences->count > 0)
		memcpy(items, sentences->items, sentences->count * sizeof *items);
	items[sentences->count] = text ? text : parse_keep(parse, NULL);
	*sentences = (struct strings){items, sentences->count + 1};
	return true;
}

/* A list of sentences, or null. */
static bool read_sentences(struct parse *parse, bool *seen, struct strings *sentences)
{
	if (!scan_sees(&parse->scan, '['))
		return scan_value(&parse->scan);
	reader_of(parse)->sentences = sentences;
	return parse_once(parse, seen) && parse_array(parse, read_sentence);
}

static bool read_top_key(struct parse *parse, const char *key)
{
	struct reader *reader = reader_of(parse);
	struct answer *out = reader->out;
	if (strcmp(key, "status") == 0)
		return parse_string_once(parse, &reader->status);
	if (strcmp(key, "errorType") == 0)
		return parse_string_once(parse, &reader->error_type);
	if (strcmp(key, "error") == 0)
		return parse_string_once(parse, &reader->error);
	if (strcmp(key, "data") == 0)
		return parse_once(parse, &reader->seen_data) && read_data(parse);
	if (strcmp(key, "warnings") == 0)
		return read_sentences(parse, &reader->seen_warnings, &out->warnings);
	if (strcmp(key, "infos") == 0)
		return read_sentences(parse, &reader->seen_infos, &out->infos);
	if (strcmp(key, "isPartial") == 0)
		out->partial = out->partial || scan_sees(&parse->scan, 't');
	return scan_value(&parse->scan);
}

static bool read_all(struct reader *reader)
{
	struct parse *parse = &reader->parse;
	if (!parse_object(parse, read_top_key) || !scan_end(&parse->scan))
		return false;
	if (!reader->status)
		return scan_fail(&parse->scan, "no \"status\"");
	if (strcmp(reader->status, "success") != 0)
		reader->out->failure = arena_printf(parse->arena, "%s: %s",
			reader->error_type ? reader->error_type : reader->status,
			reader->error ? reader->error : "no reason given");
	return true;
}

static struct reader *reader_new(struct query *query, const char *text, size_t length,
	answer_take *take, void *context, struct answer *out)
{
	struct reader *reader = memory_new(1, sizeof *reader);
	parse_start(&reader->parse, query, text, length);
	reader->take = take;
	reader->context = context;
	reader->out = out;
	*out = (struct answer){0};
	scan_space(&reader->parse.scan);
	return reader;
}

/* Frees the reader; sets the error unless all was read. */
static bool reader_end(struct reader *reader, bool read, const char *api, struct error *error)
{
	struct parse *parse = &reader->parse;
	if (!read)
		error_set(error, ERROR_DATA, "not an answer of %s: %s (byte %zu of %zu)", api,
			parse->scan.problem, (size_t)(parse->scan.at - parse->begin),
			(size_t)(parse->scan.end - parse->begin));
	parse_end(parse);
	free(reader);
	return read;
}

bool answer_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	struct reader *reader = reader_new(query, text, length, take, context, out);
	return reader_end(reader, read_all(reader), "Prometheus' API", error);
}

/* A line of an export has values and time stamps in two arrays, in either order. Each fills its
 * column; they are combined at the end of the line. */
static bool read_word(const char *text, size_t length, double *out)
{
	*out = (double)NAN;
	return number_missing(text, length) || number_parse(text, length, out);
}

static bool read_export_value(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	struct scan *scan = &parse->scan;
	if (reader->n == parse->capacity)
		parse_grow(parse);
	double *out = &parse->values[reader->n++];
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

static bool read_export_time(struct parse *parse)
{
	struct reader *reader = reader_of(parse);
	struct scan *scan = &parse->scan;
	if (reader->time_count == parse->capacity)
		parse_grow(parse);
	size_t n = reader->time_count++;
	double ms;
	if (!scan_number(scan, &ms) || !(fabs(ms) <= latest * 1000))
		return scan_fail(scan, "a timestamp is not a number of milliseconds");
	parse->times[n] = llround(ms);
	if (n > 0 && parse->times[n] < parse->times[n - 1])
		return scan_fail(
			&parse->scan, "the time stamps of a series are not in ascending order");
	return true;
}

static bool read_export_key(struct parse *parse, const char *key)
{
	struct reader *reader = reader_of(parse);
	if (strcmp(key, "metric") == 0)
		return parse_once(parse, &reader->seen_metric) && parse_labels(parse);
	if (strcmp(key, "values") == 0)
		return parse_once(parse, &reader->seen_values) &&
		       parse_array(parse, read_export_value);
	if (strcmp(key, "timestamps") == 0)
		return parse_once(parse, &reader->seen_times) &&
		       parse_array(parse, read_export_time);
	return scan_value(&parse->scan);
}

static bool read_export_line(struct reader *reader)
{
	struct parse *parse = &reader->parse;
	reader->n = reader->time_count = 0;
	reader->seen_metric = reader->seen_values = reader->seen_times = false;
	if (!parse_object(parse, read_export_key))
		return false;
	if (!reader->seen_metric || !reader->seen_values || !reader->seen_times)
		return scan_fail(
			&parse->scan, "a series without \"metric\", \"values\" or \"timestamps\"");
	if (reader->n != reader->time_count)
		return scan_fail(
			&parse->scan, "a series whose numbers of values and timestamps differ");
	size_t n = 0;
	for (size_t i = 0; i < reader->n; i++) {
		if (isnan(parse->values[i]))
			continue;
		parse->values[n] = parse->values[i];
		parse->times[n++] = parse->times[i];
	}
	return take_series(reader, n);
}

bool export_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	struct reader *reader = reader_new(query, text, length, take, context, out);
	struct scan *scan = &reader->parse.scan;
	bool read = true;
	while (read && scan->at < scan->end) {
		read = read_export_line(reader);
		scan_space(scan);
	}
	return reader_end(reader, read, "VictoriaMetrics' export", error);
}
