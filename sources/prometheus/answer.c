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

enum { STATUS, ERROR_TYPE, ERROR_REASON, RESULT_TYPE, TEXTS };

struct reader {
	struct scan scan;
	struct query *query; /* gets notices of series that are left out, and kept texts */

	struct pair labels[ANSWER_LABELS_MAX];
	size_t label_count;
	bool unlabelled; /* the labels read last cannot be used */
	int64_t *times;  /* ms */
	double *values;
	size_t capacity, n, time_count; /* time_count: of an export */

	answer_take *take;
	void *context;
	struct answer *out;

	const char *texts[TEXTS];
	const char *later;         /* a result that came before `resultType` */
	struct strings *sentences; /* the list being read */
};

typedef bool reader_item(struct reader *reader);

/* A key of an object, and what reads its value; NULL: a string, which is kept as `text`. */
struct key {
	const char *name;
	reader_item *read;
	int text;
};

const struct pair *answer_label(struct pairs labels, const char *name)
{
	for (size_t i = 0; i < labels.count; i++)
		if (strcmp(labels.items[i].key, name) == 0)
			return &labels.items[i];
	return NULL;
}

/* The text decoded last, in the arena; `before` itself if it is equal: consecutive series have
 * mostly the same labels. */
static const char *parse_keep(struct reader *reader, const char *before)
{
	const struct buf *text = &reader->scan.text;

	return before && strcmp(before, text->data) == 0
		       ? before
		       : arena_strndup(reader->query->arena, text->data, text->length);
}

static bool skip_value(struct reader *reader)
{
	return scan_value(&reader->scan);
}

/* Reads an object, of which the last key stands for unknown ones. The bits of *seen are the
 * indices of the keys that it has. */
static bool parse_object(struct reader *reader, const struct key *keys, unsigned *seen)
{
	struct scan *scan = &reader->scan;

	*seen = 0;
	if (!scan_open(scan, '{'))
		return scan_fail(scan, "an object is expected");
	while (scan_key(scan)) {
		const struct key *key = keys;

		while (key->name && strcmp(key->name, scan->text.data) != 0)
			key++;
		if (key->name && *seen & 1u << (key - keys))
			return scan_fail(scan, "a key occurs twice");
		*seen |= 1u << (key - keys);
		if (!(key->read ? key->read(reader) : scan_text(scan)))
			return false;
		if (!key->read)
			reader->texts[key->text] = parse_keep(reader, NULL);
	}
	return !scan->problem;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static bool read_labels(struct reader *reader)
{
	struct scan *scan = &reader->scan;

	reader->label_count = 0;
	if (!scan_open(scan, '{'))
		return scan_fail(scan, "an object is expected");
	while (scan_key(scan)) {
		if (reader->label_count == ANSWER_LABELS_MAX)
			return scan_fail(scan, "more than 512 labels");
		struct pair *label = &reader->labels[reader->label_count++];
		label->key = parse_keep(reader, label->key);
		if (!scan_text(scan))
			return false;
		label->value = parse_keep(reader, label->value);
	}
	if (scan->problem)
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
static bool take_series(struct reader *reader, size_t n, bool histograms)
{
	const struct answer_series series = {
		.labels = {reader->labels, reader->label_count},
		.times = reader->times,
		.values = reader->values,
		.n = n,
		.histograms = histograms,
	};

	if (!reader->unlabelled) {
		reader->out->series++;
		reader->take(reader->context, &series);
	}
	return true;
}

static bool read_points(struct reader *reader)
{
	return parse_array(reader, read_point);
}

enum { HAS_METRIC = 1, HAS_VALUES = 2, HAS_HISTOGRAMS = 4, HAS_TIMES = 4 };

static bool read_series(struct reader *reader)
{
	static const struct key keys[] = {{"metric", parse_labels, 0}, {"values", read_points, 0},
		{"histograms", skip_value, 0}, {NULL, skip_value, 0}};
	unsigned seen;

	reader->n = 0;
	if (!parse_object(reader, keys, &seen))
		return false;
	if (!(seen & HAS_METRIC) || !(seen & (HAS_VALUES | HAS_HISTOGRAMS)))
		return scan_fail(&reader->scan, "a series without \"metric\" or \"values\"");
	return take_series(reader, reader->n, seen & HAS_HISTOGRAMS);
}

static bool is_matrix(const struct reader *reader)
{
	const char *type = reader->texts[RESULT_TYPE];

	return type && strcmp(type, "matrix") == 0;
}

static bool read_result(struct reader *reader)
{
	if (is_matrix(reader))
		return parse_array(reader, read_series);
	reader->later = reader->scan.at;
	return scan_value(&reader->scan);
}

static bool read_data(struct reader *reader)
{
	static const struct key keys[] = {{"result", read_result, 0},
		{"resultType", NULL, RESULT_TYPE}, {NULL, skip_value, 0}};
	struct scan *scan = &reader->scan;
	unsigned seen;

	if (scan_sees(scan, 'n')) /* null, as some proxies send beside an error */
		return scan_value(scan);
	if (!parse_object(reader, keys, &seen))
		return false;
	if (!is_matrix(reader))
		return true;
	if (!(seen & 1))
		return scan_fail(scan, "\"data\" without \"result\"");
	if (!reader->later)
		return true;
	const char *here = scan->at;
	scan->at = reader->later;
	scan->depth++;
	if (!parse_array(reader, read_series))
		return false;
	scan->at = here;
	scan->depth--;
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
		strings_add(sentences, reader->query->arena, text);
	return true;
}

/* A list of sentences, or null. */
static bool read_sentences(struct reader *reader, struct strings *sentences)
{
	reader->sentences = sentences;
	return scan_sees(&reader->scan, '[') ? parse_array(reader, read_sentence)
					     : scan_value(&reader->scan);
}

static bool read_warnings(struct reader *reader)
{
	return read_sentences(reader, &reader->out->warnings);
}

static bool read_infos(struct reader *reader)
{
	return read_sentences(reader, &reader->out->infos);
}

static bool read_partial(struct reader *reader)
{
	reader->out->partial = scan_sees(&reader->scan, 't');
	return scan_value(&reader->scan);
}

static bool read_all(struct reader *reader)
{
	static const struct key keys[] = {{"status", NULL, STATUS}, {"errorType", NULL, ERROR_TYPE},
		{"error", NULL, ERROR_REASON}, {"data", read_data, 0},
		{"warnings", read_warnings, 0}, {"infos", read_infos, 0},
		{"isPartial", read_partial, 0}, {NULL, skip_value, 0}};
	const char *const *texts = reader->texts;
	unsigned seen;

	if (!parse_object(reader, keys, &seen) || !scan_end(&reader->scan))
		return false;
	if (!texts[STATUS])
		return scan_fail(&reader->scan, "no \"status\"");
	reader->out->type = texts[RESULT_TYPE];
	if (strcmp(texts[STATUS], "success") != 0)
		reader->out->failure = arena_printf(reader->query->arena, "%s: %s",
			texts[texts[ERROR_TYPE] ? ERROR_TYPE : STATUS],
			texts[ERROR_REASON] ? texts[ERROR_REASON] : "no reason given");
	return true;
}

/* Sets the error unless all was read. */
static bool read_with(reader_item *read, const char *api, struct query *query, const char *text,
	size_t length, answer_take *take, void *context, struct answer *out, struct error *error)
{
	struct reader *reader = memory_new(1, sizeof *reader);
	struct scan *scan = &reader->scan;

	*scan = (struct scan){.at = text, .end = text + length};
	reader->query = query;
	reader->take = take;
	reader->context = context;
	reader->out = out;
	*out = (struct answer){0};
	scan_space(scan);
	bool good = read(reader);
	if (!good)
		error_set(error, ERROR_DATA, "not an answer of %s: %s (byte %zu of %zu)", api,
			scan->problem, (size_t)(scan->at - text), length);
	buf_free(&scan->text);
	free(reader->times);
	free(reader->values);
	free(reader);
	return good;
}

bool answer_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	return read_with(
		read_all, "Prometheus' API", query, text, length, take, context, out, error);
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

static bool read_export_values(struct reader *reader)
{
	return parse_array(reader, read_export_value);
}

static bool read_export_times(struct reader *reader)
{
	return parse_array(reader, read_export_time);
}

static bool read_export_line(struct reader *reader)
{
	static const struct key keys[] = {{"metric", parse_labels, 0},
		{"values", read_export_values, 0}, {"timestamps", read_export_times, 0},
		{NULL, skip_value, 0}};
	size_t n = 0;
	unsigned seen;

	reader->n = reader->time_count = 0;
	if (!parse_object(reader, keys, &seen))
		return false;
	if ((seen & (HAS_METRIC | HAS_VALUES | HAS_TIMES)) != (HAS_METRIC | HAS_VALUES | HAS_TIMES))
		return scan_fail(
			&reader->scan, "a series without \"metric\", \"values\" or \"timestamps\"");
	if (reader->n != reader->time_count)
		return scan_fail(
			&reader->scan, "a series whose numbers of values and timestamps differ");
	for (size_t i = 0; i < reader->n; i++) {
		if (isnan(reader->values[i]))
			continue;
		reader->values[n] = reader->values[i];
		reader->times[n++] = reader->times[i];
	}
	return take_series(reader, n, false);
}

static bool read_export(struct reader *reader)
{
	while (reader->scan.at < reader->scan.end) {
		if (!read_export_line(reader))
			return false;
		scan_space(&reader->scan);
	}
	return true;
}

bool export_read(struct query *query, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	return read_with(read_export, "VictoriaMetrics' export", query, text, length, take, context,
		out, error);
}
