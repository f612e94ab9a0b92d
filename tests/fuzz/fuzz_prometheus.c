/*
 * The reader of Prometheus' answers against jansson: what one accepts as an answer the other does,
 * with the same series, labels, times and values to the bit, without the series whose labels cannot
 * be used. Texts in which a key comes twice, which ours may reject, and numbers too big for a
 * double, which jansson rejects, are stepped around. Where labels are no Unicode text, which
 * jansson rejects, it must read the rest.
 */
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "sources/prometheus/answer.h"
#include "tests/fuzz/spoilt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the readers differ: %s\n", what);
	abort();
}

/* Whether a point has the shape of one, and what it says. */
static bool read_point(const json_t *point, int64_t *time, double *value)
{
	const json_t *stamp = json_array_get(point, 0), *text = json_array_get(point, 1);
	if (json_array_size(point) != 2 || !json_is_number(stamp) || !json_is_string(text))
		return false;
	double seconds = json_number_value(stamp);
	if (!(fabs(seconds) <= 1e11))
		return false;
	*time = llround(seconds * 1000);
	if (strcmp(json_string_value(text), "NaN") == 0) {
		*value = (double)NAN;
		return true;
	}
	return number_parse(json_string_value(text), json_string_length(text), value);
}

/* Whether the series can be labelled; else it is left out. */
static bool is_labelled(const json_t *series)
{
	json_t *metric = json_object_get(series, "metric"), *label;
	const char *key;
	json_object_foreach(metric, key, label)
	{
		if (!json_is_string(label))
			return false;
	}
	return json_object_size(metric) <= 512;
}

static bool series_fits(const json_t *series)
{
	const json_t *values = json_object_get(series, "values");
	int64_t before = INT64_MIN, time;
	double value;
	if (!json_is_object(json_object_get(series, "metric")))
		return false;
	if (!values)
		return json_object_get(series, "histograms") != NULL;
	if (!json_is_array(values))
		return false;
	for (size_t i = 0; i < json_array_size(values); i++) {
		if (!read_point(json_array_get(values, i), &time, &value) || time < before)
			return false;
		before = time;
	}
	return true;
}

static bool texts_fit(const json_t *root)
{
	static const char *const names[] = {"status", "errorType", "error"};
	for (int i = 0; i < 3; i++) {
		const json_t *value = json_object_get(root, names[i]);
		if (value && !json_is_string(value))
			return false;
	}
	static const char *const lists[] = {"warnings", "infos"};
	for (int k = 0; k < 2; k++) {
		const json_t *list = json_object_get(root, lists[k]);
		for (size_t i = 0; i < json_array_size(list) && i < 20; i++)
			if (!json_is_string(json_array_get(list, i)))
				return false;
	}
	return json_object_get(root, "status") != NULL;
}

/* What sources/prometheus/answer.h promises, said about jansson's tree. */
static bool has_shape(const json_t *root)
{
	const json_t *data = json_object_get(root, "data");
	const json_t *type = json_object_get(data, "resultType");
	const json_t *result = json_object_get(data, "result");
	if (!json_is_object(root) || !texts_fit(root))
		return false;
	if (!data || json_is_null(data))
		return true;
	if (!json_is_object(data) || (type && !json_is_string(type)))
		return false;
	if (!type || strcmp(json_string_value(type), "matrix") != 0)
		return true;
	if (!json_is_array(result))
		return false;
	for (size_t i = 0; i < json_array_size(result); i++)
		if (!series_fits(json_array_get(result, i)))
			return false;
	return true;
}

struct check {
	const json_t *result; /* NULL: only read */
	size_t at;
};

static const json_t *next_series(struct check *check)
{
	const json_t *series;
	do
		series = json_array_get(check->result, check->at++);
	while (series && !is_labelled(series));
	return series;
}

static void take(void *context, const struct answer_series *series)
{
	struct check *check = context;
	if (!check->result)
		return;
	const json_t *theirs = next_series(check);
	const json_t *metric = json_object_get(theirs, "metric");
	const json_t *values = json_object_get(theirs, "values");
	require(json_object_size(metric) == series->labels.count, "how many labels there are");
	for (size_t i = 0; i < series->labels.count; i++) {
		const char *value =
			json_string_value(json_object_get(metric, series->labels.items[i].key));
		require(value && strcmp(value, series->labels.items[i].value) == 0, "a label");
		require(i == 0 || strcmp(series->labels.items[i - 1].key,
					  series->labels.items[i].key) < 0,
			"the order of labels");
	}
	require(json_array_size(values) == series->n, "how many points there are");
	require(series->histograms == (json_object_get(theirs, "histograms") != NULL),
		"histograms");
	for (size_t i = 0; i < series->n; i++) {
		int64_t time;
		double value;
		require(read_point(json_array_get(values, i), &time, &value), "a point");
		require(time == series->times[i], "a time");
		require(memcmp(&value, &series->values[i], sizeof value) == 0 ||
				(isnan(value) && isnan(series->values[i])),
			"a value");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	if (memchr(data, 0, size))
		return 0;
	struct arena *arena = arena_new();
	struct answer answer;
	struct error error;
	json_error_t problem, ignored;
	json_t *root = json_loadb(text, size, JSON_DECODE_INT_AS_REAL, &problem);
	json_t *unique =
		json_loadb(text, size, JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, &ignored);
	struct check check = {0};
	if (root && unique && has_shape(root))
		check.result = json_object_get(json_object_get(root, "data"), "result");
	struct query query = {.arena = arena};
	bool ours = answer_read(&query, text, size, take, &check, &answer, &error);
	if (unique) {
		require(ours == has_shape(unique), "what is an answer");
		if (ours && answer.type && strcmp(answer.type, "matrix") == 0)
			require(!next_series(&check), "how many series there are");
	} else if (ours && !root && query.incomplete) {
		char *mended = spoilt_mend(text, size);
		json_t *rest = json_loadb(mended, size, JSON_DECODE_INT_AS_REAL, &problem);
		require(rest || json_error_code(&problem) == json_error_numeric_overflow,
			"what is valid but for its strings");
		json_decref(rest);
		free(mended);
	} else if (ours && !root) {
		require(json_error_code(&problem) == json_error_numeric_overflow,
			"what is valid JSON");
	}
	json_decref(root);
	json_decref(unique);
	arena_free(arena);
	return 0;
}
