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
#include "agent/base/scan.h"

enum { SENTENCES_MAX = 20, WORD_MAX = 9 /* "-Infinity" */ };

static const double latest = 1e11; /* seconds: the year 5138 */

struct reader {
	struct scan scan;
	const char *begin;
	struct query *query; /* gets notices of series that are left out */
	struct arena *arena; /* for labels and kept texts */

	struct pair labels[ANSWER_LABELS_MAX];
	size_t label_count;
	bool unlabelled; /* the labels read last cannot be used */
	int64_t *times;  /* ms */
	double *values;
	size_t capacity;

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

/* `key` is valid until something is decoded. */
typedef bool reader_value(struct reader *reader, const char *key);
typedef bool reader_item(struct reader *reader);

const struct pair *answer_label(const struct pair *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].key, name) == 0)
			return &labels[i];
	return NULL;
}

/* The text decoded last, in the arena; `before` itself if it is equal: consecutive series have
 * mostly the same labels. */
static const char *parse_keep(struct reader *reader, const char *before)
{
	if (before && strcmp(before, reader->scan.text.data) == 0)
		return before;
	return arena_strndup(reader->arena, reader->scan.text.data, reader->scan.text.length);
}

/* Reads the next string into the arena; fails if *out is set already. */
static bool parse_string_once(struct reader *reader, const char **out)
{
	if (*out)
		return scan_fail(&reader->scan, "a key occurs twice");
	if (!scan_text(&reader->scan))
		return false;
	*out = parse_keep(reader, NULL);
	return true;
}

/* Sets *seen; fails if it is set already. */
static bool parse_once(struct reader *reader, bool *seen)
{
	if (*seen)
		return scan_fail(&reader->scan, "a key occurs twice");
	*seen = true;
	return true;
}

/* Reads an object, each of its values by `read`. */
static bool parse_object(struct reader *reader, reader_value *read)
{
	if (!scan_open(&reader->scan, '{'))
		return scan_fail(&reader->scan, "an object is expected");
	while (scan_key(&reader->scan))
		if (!read(reader, reader->scan.text.data))
			return false;
	return !reader->scan.problem;
}

static bool read_label(struct reader *reader, const char *key)
{
	(void)key;
	if (reader->label_count == ANSWER_LABELS_MAX)
		return scan_fail(&reader->scan, "more than 512 labels");
	struct pair *label = &reader->labels[reader->label_count++];
	label->key = parse_keep(reader, label->key);
	if (!scan_text(&reader->scan))
		return false;
	label->value = parse_keep(reader, label->value);
	return true;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static bool read_labels(struct reader *reader)
{
	reader->label_count = 0;
	if (!parse_object(reader, read_label))
		return false;
	qsort(reader->labels, reader->label_count, sizeof *reader->labels, compare_labels);
	for (size_t i = 1; i < reader->label_count; i++)
		if (strcmp(reader->labels[i - 1].key, reader->labels[i].key) == 0)
			return scan_fail(&reader->scan, "a label occurs twice");
	return true;
}

/*
 * Reads an object of strings into reader->labels, sorted by name. Labels that are JSON but cannot
 * be used (no Unicode text, too many) cost their series only: the query gets a notice, and
 * reader->unlabelled is set. As a series has the same labels in each piece of the range, none is
 * left out of some of them only.
 */
static bool parse_labels(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	const char *from = scan->at;
	int depth = scan->depth;
	bool object = scan_sees(scan, '{');
	reader->unlabelled = !read_labels(reader);
	if (!reader->unlabelled)
		return true;
	const char *why = object ? scan_recover(scan, from, depth) : NULL;
	if (why)
		query_leave_out(reader->query, "series", from, (size_t)(scan->at - from), why);
	return why != NULL;
}

/* Doubles the room for points. */
static void parse_grow(struct reader *reader)
{
	size_t capacity = reader->capacity;

	reader->times = memory_grow(reader->times, &capacity, capacity + 1, sizeof *reader->times);
	reader->values = memory_grow(
		reader->values, &reader->capacity, reader->capacity + 1, sizeof *reader->values);
}

/* Reads an array, each of its items by `read`; inline, so that that is inlined, too: it is called
 * for each point. */
static inline bool parse_array(struct reader *reader, reader_item *read)
{
	if (!scan_open(&reader->scan, '['))
		return scan_fail(&reader->scan, "an array is expected");
	while (scan_item(&reader->scan))
		if (!read(reader))
			return false;
	return !reader->scan.problem;
}

/* A number in a string: "1.5", "NaN", "+Inf". */
static bool read_sample(struct reader *reader, double *out)
{
	struct scan *scan = &reader->scan;
	if (!scan_sees(scan, '"'))
		return scan_fail(&reader->scan, "a value is not a string");
	const char *after = number_scan(scan->at + 1, scan->end, out);
	if (after && after < scan->end && *after == '"') {
		scan->at = after + 1;
		return true;
	}
	if (!scan_text(&reader->scan))
		return false;
	if (strcmp(reader->scan.text.data, "NaN") == 0)
		*out = (double)NAN;
	else if (!number_parse(reader->scan.text.data, reader->scan.text.length, out))
		return scan_fail(&reader->scan, "a value is not a number");
	return true;
}

static bool read_stamp(struct reader *reader, int64_t *out)
{
	double seconds;
	if (!scan_number(&reader->scan, &seconds) || !(fabs(seconds) <= latest))
		return scan_fail(&reader->scan, "a timestamp is not a number of seconds");
	*out = llround(seconds * 1000);
	return true;
}

static bool read_point(struct reader *reader)
{
	if (reader->n == reader->capacity)
		parse_grow(reader);
	size_t n = reader->n++;
	if (!scan_take(&reader->scan, '['))
		return scan_fail(&reader->scan, "a point is not a pair");
	scan_space(&reader->scan);
	if (!read_stamp(reader, &reader->times[n]) || !scan_expect(&reader->scan, ','))
		return false;
	if (n > 0 && reader->times[n] < reader->times[n - 1])
		return scan_fail(
			&reader->scan, "the time stamps of a series are not in ascending order");
	scan_space(&reader->scan);
	return read_sample(reader, &reader->values[n]) && scan_expect(&reader->scan, ']');
}

/* Hands over the series that was read, unless it is left out. */
static bool take_series(struct reader *reader, size_t n)
{
	if (reader->unlabelled)
		return true;
	const struct answer_series series = {
		.labels = reader->labels,
		.label_count = reader->label_count,
		.times = reader->times,
		.values = reader->values,
		.n = n,
		.histograms = reader->seen_histograms,
	};
	reader->out->series++;
	reader->take(reader->context, &series);
	return true;
}

static bool read_series_key(struct reader *reader, const char *key)
{
	if (strcmp(key, "metric") == 0)
		return parse_once(reader, &reader->seen_metric) && parse_labels(reader);
	if (strcmp(key, "values") == 0)
		return parse_once(reader, &reader->seen_values) && parse_array(reader, read_point);
	if (strcmp(key, "histograms") == 0)
		return parse_once(reader, &reader->seen_histograms) && scan_value(&reader->scan);
	return scan_value(&reader->scan);
}

static bool read_series(struct reader *reader)
{
	reader->n = 0;
	reader->seen_metric = reader->seen_values = reader->seen_histograms = false;
	if (!parse_object(reader, read_series_key))
		return false;
	if (!reader->seen_metric || !(reader->seen_values || reader->seen_histograms))
		return scan_fail(&reader->scan, "a series without \"metric\" or \"values\"");
	return take_series(reader, reader->n);
}

static bool is_matrix(const struct reader *reader)
{
	return reader->out->type && strcmp(reader->out->type, "matrix") == 0;
}

static bool read_data_key(struct reader *reader, const char *key)
{
	if (strcmp(key, "resultType") == 0)
		return parse_string_once(reader, &reader->out->type);
	if (strcmp(key, "result") != 0)
		return scan_value(&reader->scan);
	if (!parse_once(reader, &reader->seen_result))
		return false;
	if (is_matrix(reader))
		return parse_array(reader, read_series);
	reader->later = reader->scan.at;
	return scan_value(&reader->scan);
}

static bool read_data(struct reader *reader)
{
	if (scan_sees(&reader->scan, 'n')) /* null, as some proxies send beside an error */
		return scan_value(&reader->scan);
	if (!parse_object(reader, read_data_key))
		return false;
	if (!is_matrix(reader))
		return true;
	if (!reader->seen_result)
		return scan_fail(&reader->scan, "\"data\" without \"result\"");
	if (!reader->later)
		return true;
	const char *here = reader->scan.at;
	reader->scan.at = reader->later;
	reader->scan.depth++;
	if (!parse_array(reader, read_series))
		return false;
	reader->scan.at = here;
	reader->scan.depth--;
	return true;
}

/* Looks for a warning about missing data, and keeps the first sentences. */
static bool read_sentence(struct reader *reader)
{
	static const char promql[] = "PromQL ";
	struct strings *sentences = reader->sentences;
	struct answer *out = reader->out;
	bool full = sentences->count == SENTENCES_MAX;
	if (full && (sentences != &out->warnings || out->lacking || !scan_sees(&reader->scan, '"')))
		return scan_value(&reader->scan);
	if (!scan_text(&reader->scan))
		return false;
	const char *text = parse_keep(reader, NULL);
	if (!out->lacking && sentences == &out->warnings &&
		strncmp(text, promql, strlen(promql)) != 0)
		out->lacking = text;
	if (!full)
		strings_add(sentences, reader->arena, text);
	return true;
}

/* A list of sentences, or null. */
static bool read_sentences(struct reader *reader, bool *seen, struct strings *sentences)
{
	if (!scan_sees(&reader->scan, '['))
		return scan_value(&reader->scan);
	reader->sentences = sentences;
	return parse_once(reader, seen) && parse_array(reader, read_sentence);
}

static bool read_top_key(struct reader *reader, const char *key)
{
	struct answer *out = reader->out;
	if (strcmp(key, "status") == 0)
		return parse_string_once(reader, &reader->status);
	if (strcmp(key, "errorType") == 0)
		return parse_string_once(reader, &reader->error_type);
	if (strcmp(key, "error") == 0)
		return parse_string_once(reader, &reader->error);
	if (strcmp(key, "data") == 0)
		return parse_once(reader, &reader->seen_data) && read_data(reader);
	if (strcmp(key, "warnings") == 0)
		return read_sentences(reader, &reader->seen_warnings, &out->warnings);
	if (strcmp(key, "infos") == 0)
		return read_sentences(reader, &reader->seen_infos, &out->infos);
	if (strcmp(key, "isPartial") == 0)
		out->partial = out->partial || scan_sees(&reader->scan, 't');
	return scan_value(&reader->scan);
}

static bool read_all(struct reader *reader)
{
	if (!parse_object(reader, read_top_key) || !scan_end(&reader->scan))
		return false;
	if (!reader->status)
		return scan_fail(&reader->scan, "no \"status\"");
	if (strcmp(reader->status, "success") != 0)
		reader->out->failure = arena_printf(reader->arena, "%s: %s",
			reader->error_type ? reader->error_type : reader->status,
			reader->error ? reader->error : "no reason given");
	return true;
}

static struct reader *reader_new(struct query *query, const char *text, size_t length,
	answer_take *take, void *context, struct answer *out)
{
	struct reader *reader = memory_new(1, sizeof *reader);
	reader->scan = (struct scan){.at = text, .end = text + length};
	reader->begin = text;
	reader->query = query;
	reader->arena = query->arena;
	reader->take = take;
	reader->context = context;
	reader->out = out;
	*out = (struct answer){0};
	scan_space(&reader->scan);
	return reader;
}

/* Frees the reader; sets the error unless all was read. */
static bool reader_end(struct reader *reader, bool read, const char *api, struct error *error)
{
	if (!read)
		error_set(error, ERROR_DATA, "not an answer of %s: %s (byte %zu of %zu)", api,
			reader->scan.problem, (size_t)(reader->scan.at - reader->begin),
			(size_t)(reader->scan.end - reader->begin));
	buf_free(&reader->scan.text);
	free(reader->times);
	free(reader->values);
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

static bool read_export_value(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	if (reader->n == reader->capacity)
		parse_grow(reader);
	double *out = &reader->values[reader->n++];
	if (scan_number(scan, out))
		return true;
	if (scan_sees(scan, '"')) {
		if (!scan_text(&reader->scan))
			return false;
		return read_word(reader->scan.text.data, reader->scan.text.length, out) ||
		       scan_fail(&reader->scan, "a value is not a number");
	}
	size_t length = 0, left = (size_t)(scan->end - scan->at);
	while (length < left && length < WORD_MAX && !strchr(",] \t\r\n", scan->at[length]))
		length++;
	if (length == 0 || !read_word(scan->at, length, out))
		return scan_fail(&reader->scan, "a value is not a number");
	scan->at += length;
	return true;
}

static bool read_export_time(struct reader *reader)
{
	struct scan *scan = &reader->scan;
	if (reader->time_count == reader->capacity)
		parse_grow(reader);
	size_t n = reader->time_count++;
	double ms;
	if (!scan_number(scan, &ms) || !(fabs(ms) <= latest * 1000))
		return scan_fail(scan, "a timestamp is not a number of milliseconds");
	reader->times[n] = llround(ms);
	if (n > 0 && reader->times[n] < reader->times[n - 1])
		return scan_fail(
			&reader->scan, "the time stamps of a series are not in ascending order");
	return true;
}

static bool read_export_key(struct reader *reader, const char *key)
{
	if (strcmp(key, "metric") == 0)
		return parse_once(reader, &reader->seen_metric) && parse_labels(reader);
	if (strcmp(key, "values") == 0)
		return parse_once(reader, &reader->seen_values) &&
		       parse_array(reader, read_export_value);
	if (strcmp(key, "timestamps") == 0)
		return parse_once(reader, &reader->seen_times) &&
		       parse_array(reader, read_export_time);
	return scan_value(&reader->scan);
}

static bool read_export_line(struct reader *reader)
{
	reader->n = reader->time_count = 0;
	reader->seen_metric = reader->seen_values = reader->seen_times = false;
	if (!parse_object(reader, read_export_key))
		return false;
	if (!reader->seen_metric || !reader->seen_values || !reader->seen_times)
		return scan_fail(
			&reader->scan, "a series without \"metric\", \"values\" or \"timestamps\"");
	if (reader->n != reader->time_count)
		return scan_fail(
			&reader->scan, "a series whose numbers of values and timestamps differ");
	size_t n = 0;
	for (size_t i = 0; i < reader->n; i++) {
		if (isnan(reader->values[i]))
			continue;
		reader->values[n] = reader->values[i];
		reader->times[n++] = reader->times[i];
	}
	return take_series(reader, n);
}

bool export_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	struct reader *reader = reader_new(query, text, length, take, context, out);
	struct scan *scan = &reader->scan;
	bool read = true;
	while (read && scan->at < scan->end) {
		read = read_export_line(reader);
		scan_space(scan);
	}
	return reader_end(reader, read, "VictoriaMetrics' export", error);
}
