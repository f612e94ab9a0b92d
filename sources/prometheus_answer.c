/*
 * One pass, each object a loop over its keys with a function that knows them. `result` is read
 * where its type is known; an answer that puts `resultType` behind it has it skipped first and read
 * at the end of `data`.
 */
#include "sources/prometheus_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/number.h"
#include "agent/core/scan.h"

enum { LABELS_MAX = 512, WARNINGS_MAX = 20 };

static const double latest = 1e11; /* seconds: the year 5138 */

struct reader {
	struct scan scan;
	const char *begin;
	struct arena *arena;
	answer_take *take;
	void *context;
	struct answer *out;
	const char *problem; /* why it is no answer, for people */
	struct buf text;     /* a string that was decoded */

	const char *status, *error_type, *error;
	bool seen_data, seen_result, seen_warnings;
	struct scan later; /* a result that came before its type */

	struct pair labels[LABELS_MAX];
	size_t label_count;
	int64_t *times;
	double *values;
	size_t n, capacity;
	bool seen_metric, seen_values, seen_histograms;
};

/* The key is good until something is decoded. */
typedef bool read_value(struct reader *reader, const char *key, int depth);

static bool fail(struct reader *reader, const char *problem)
{
	if (!reader->problem)
		reader->problem = problem;
	return false;
}

static bool expect(struct reader *reader, char c)
{
	scan_space(&reader->scan);
	return scan_take(&reader->scan, c) || fail(reader, "it is no valid JSON");
}

static bool skip(struct reader *reader, int depth)
{
	return scan_value(&reader->scan, depth) || fail(reader, "it is no valid JSON");
}

/* Decodes the string that is next into reader->text, where it stays until the next one. */
static bool decode(struct reader *reader)
{
	const char *from = reader->scan.at;
	if (!scan_sees(&reader->scan, '"'))
		return fail(reader, "a text is missing");
	if (!scan_string(&reader->scan))
		return fail(reader, "it is no valid JSON");
	buf_clear(&reader->text);
	buf_reserve(&reader->text, 0);
	scan_decode(from, reader->scan.at, &reader->text);
	return true;
}

/* What was decoded, in the arena: `before` itself if it is the same text. */
static const char *keep(struct reader *reader, const char *before)
{
	if (before && strcmp(before, reader->text.data) == 0)
		return before;
	return arena_strndup(reader->arena, reader->text.data, reader->text.length);
}

static bool read_string(struct reader *reader, const char **out)
{
	if (!decode(reader))
		return false;
	*out = keep(reader, NULL);
	return true;
}

static bool read_once(struct reader *reader, const char **out)
{
	return *out ? fail(reader, "a key comes twice") : read_string(reader, out);
}

static bool once(struct reader *reader, bool *seen)
{
	if (*seen)
		return fail(reader, "a key comes twice");
	*seen = true;
	return true;
}

/* An object at `depth`, each of whose values is read by `read`. */
static bool read_object(struct reader *reader, int depth, read_value *read)
{
	if (!scan_sees(&reader->scan, '{'))
		return fail(reader, "an object is missing");
	reader->scan.at++;
	scan_space(&reader->scan);
	if (scan_take(&reader->scan, '}'))
		return true;
	do {
		scan_space(&reader->scan);
		if (!decode(reader) || !expect(reader, ':'))
			return false;
		scan_space(&reader->scan);
		if (!read(reader, reader->text.data, depth + 1))
			return false;
		scan_space(&reader->scan);
	} while (scan_take(&reader->scan, ','));
	return expect(reader, '}');
}

typedef bool read_item(struct reader *reader, int depth);

static bool read_array(struct reader *reader, int depth, read_item *read)
{
	if (!scan_sees(&reader->scan, '['))
		return fail(reader, "an array is missing");
	reader->scan.at++;
	scan_space(&reader->scan);
	if (scan_take(&reader->scan, ']'))
		return true;
	do {
		scan_space(&reader->scan);
		if (!read(reader, depth + 1))
			return false;
		scan_space(&reader->scan);
	} while (scan_take(&reader->scan, ','));
	return expect(reader, ']');
}

/* Series follow one another with mostly the same labels: what is equal is kept once. */
static bool read_label(struct reader *reader, const char *key, int depth)
{
	(void)key, (void)depth;
	if (reader->label_count == LABELS_MAX)
		return fail(reader, "a series has more than 512 labels");
	struct pair *label = &reader->labels[reader->label_count++];
	label->key = keep(reader, label->key);
	if (!decode(reader))
		return false;
	label->value = keep(reader, label->value);
	return true;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->key, ((const struct pair *)b)->key);
}

static bool read_metric(struct reader *reader, int depth)
{
	if (!read_object(reader, depth, read_label))
		return false;
	qsort(reader->labels, reader->label_count, sizeof *reader->labels, compare_labels);
	for (size_t i = 1; i < reader->label_count; i++)
		if (strcmp(reader->labels[i - 1].key, reader->labels[i].key) == 0)
			return fail(reader, "a label comes twice");
	return true;
}

/* The number within a string: "1.5", "NaN", "+Inf". */
static bool read_sample(struct reader *reader, double *out)
{
	struct scan *scan = &reader->scan;
	if (!scan_sees(scan, '"'))
		return fail(reader, "a value is no text");
	const char *after = number_scan(scan->at + 1, scan->end, out);
	if (after && after < scan->end && *after == '"') {
		scan->at = after + 1;
		return true;
	}
	if (!decode(reader))
		return false;
	if (strcmp(reader->text.data, "NaN") == 0)
		*out = (double)NAN;
	else if (!number_parse(reader->text.data, reader->text.length, out))
		return fail(reader, "a value is no number");
	return true;
}

static bool read_stamp(struct reader *reader, int64_t *out)
{
	double seconds;
	const char *after = number_scan(reader->scan.at, reader->scan.end, &seconds);
	if (!after || !(fabs(seconds) <= latest))
		return fail(reader, "a time stamp is no number of seconds");
	reader->scan.at = after;
	*out = llround(seconds * 1000);
	return true;
}

static bool read_point(struct reader *reader, int depth)
{
	(void)depth;
	if (reader->n == reader->capacity) {
		reader->capacity = reader->capacity ? 2 * reader->capacity : 1024;
		reader->times =
			memory_resize(reader->times, reader->capacity, sizeof *reader->times);
		reader->values =
			memory_resize(reader->values, reader->capacity, sizeof *reader->values);
	}
	size_t n = reader->n++;
	if (!scan_take(&reader->scan, '['))
		return fail(reader, "a point is no pair");
	scan_space(&reader->scan);
	if (!read_stamp(reader, &reader->times[n]) || !expect(reader, ','))
		return false;
	if (n > 0 && reader->times[n] < reader->times[n - 1])
		return fail(reader, "the time stamps of a series do not ascend");
	scan_space(&reader->scan);
	return read_sample(reader, &reader->values[n]) && expect(reader, ']');
}

static bool read_series_key(struct reader *reader, const char *key, int depth)
{
	if (strcmp(key, "metric") == 0)
		return once(reader, &reader->seen_metric) && read_metric(reader, depth);
	if (strcmp(key, "values") == 0)
		return once(reader, &reader->seen_values) && read_array(reader, depth, read_point);
	if (strcmp(key, "histograms") == 0)
		return once(reader, &reader->seen_histograms) && skip(reader, depth);
	return skip(reader, depth);
}

static bool read_series(struct reader *reader, int depth)
{
	reader->label_count = reader->n = 0;
	reader->seen_metric = reader->seen_values = reader->seen_histograms = false;
	if (!read_object(reader, depth, read_series_key))
		return false;
	if (!reader->seen_metric || !(reader->seen_values || reader->seen_histograms))
		return fail(reader, "a series lacks its metric or its values");
	const struct answer_series series = {
		.labels = reader->labels,
		.label_count = reader->label_count,
		.times = reader->times,
		.values = reader->values,
		.n = reader->n,
		.histograms = reader->seen_histograms,
	};
	reader->out->series++;
	reader->take(reader->context, &series);
	return true;
}

static bool is_matrix(const struct reader *reader)
{
	return reader->out->type && strcmp(reader->out->type, "matrix") == 0;
}

static bool read_data_key(struct reader *reader, const char *key, int depth)
{
	if (strcmp(key, "resultType") == 0)
		return read_once(reader, &reader->out->type);
	if (strcmp(key, "result") != 0)
		return skip(reader, depth);
	if (!once(reader, &reader->seen_result))
		return false;
	if (is_matrix(reader))
		return read_array(reader, depth, read_series);
	reader->later = reader->scan;
	return skip(reader, depth);
}

static bool read_data(struct reader *reader, int depth)
{
	if (scan_sees(&reader->scan, 'n')) /* null, as some proxies put beside an error */
		return skip(reader, depth);
	if (!read_object(reader, depth, read_data_key))
		return false;
	if (!is_matrix(reader))
		return true;
	if (!reader->seen_result)
		return fail(reader, "data lacks its result");
	if (!reader->later.at)
		return true;
	struct scan here = reader->scan;
	reader->scan.at = reader->later.at;
	if (!read_array(reader, depth + 1, read_series))
		return false;
	reader->scan = here;
	return true;
}

static bool read_warning(struct reader *reader, int depth)
{
	struct strings *warnings = &reader->out->warnings;
	if (warnings->count == WARNINGS_MAX)
		return skip(reader, depth);
	const char **items = arena_array(reader->arena, warnings->count + 1, sizeof *items);
	if (warnings->count > 0)
		memcpy(items, warnings->items, warnings->count * sizeof *items);
	if (!read_string(reader, &items[warnings->count]))
		return false;
	*warnings = (struct strings){items, warnings->count + 1};
	return true;
}

static bool read_top_key(struct reader *reader, const char *key, int depth)
{
	if (strcmp(key, "status") == 0)
		return read_once(reader, &reader->status);
	if (strcmp(key, "errorType") == 0)
		return read_once(reader, &reader->error_type);
	if (strcmp(key, "error") == 0)
		return read_once(reader, &reader->error);
	if (strcmp(key, "data") == 0)
		return once(reader, &reader->seen_data) && read_data(reader, depth);
	if (strcmp(key, "warnings") == 0 && scan_sees(&reader->scan, '['))
		return once(reader, &reader->seen_warnings) &&
		       read_array(reader, depth, read_warning);
	return skip(reader, depth);
}

static bool read_all(struct reader *reader)
{
	scan_space(&reader->scan);
	if (!read_object(reader, 1, read_top_key))
		return false;
	scan_space(&reader->scan);
	if (reader->scan.at < reader->scan.end)
		return fail(reader, "it is no valid JSON");
	if (!reader->status)
		return fail(reader, "it has no status");
	if (strcmp(reader->status, "success") != 0)
		reader->out->failure = arena_printf(reader->arena, "%s: %s",
			reader->error_type ? reader->error_type : reader->status,
			reader->error ? reader->error : "no reason is given");
	return true;
}

bool answer_read(struct arena *arena, const char *text, size_t length, answer_take *take,
	void *context, struct answer *out, struct error *error)
{
	struct reader *reader = memory_new(1, sizeof *reader);
	*out = (struct answer){0};
	reader->scan = (struct scan){text, text + length};
	reader->begin = text;
	reader->arena = arena;
	reader->take = take;
	reader->context = context;
	reader->out = out;
	bool read = read_all(reader);
	if (!read)
		error_set(error, ERROR_DATA,
			"not an answer of Prometheus' API: %s (byte %zu of %zu)", reader->problem,
			(size_t)(reader->scan.at - reader->begin), length);
	buf_free(&reader->text);
	free(reader->times);
	free(reader->values);
	free(reader);
	return read;
}
