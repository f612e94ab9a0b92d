/*
 * CSV of any bytes. The first byte chooses among dialects and questions. Besides not crashing: what
 * is read is in order of time, within the range asked for, and the same when it is read a second
 * time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "sources/files/files.h"
#include "tests/unit/memory_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static void check_axis(const struct query *query, const struct axis *axis)
{
	for (size_t i = 0; i < axis->n; i++) {
		check(axis->times[i] >= query->since && axis->times[i] < query->until);
		check(i == 0 || axis->times[i] >= axis->times[i - 1]);
	}
	for (size_t i = 0; i < axis->column_count; i++)
		for (size_t k = 0; k < axis->n; k++)
			check(!axis->columns[i].values[k] ||
				strlen(axis->columns[i].values[k]) > 0);
}

static bool run(struct query *query, const uint8_t *data, size_t size, struct error *error)
{
	struct input input = input_bytes("fuzz", data, size);

	*error = (struct error){0};
	if (!csv_parse(query, &input, error)) {
		check(error->kind != ERROR_NONE && error->text[0]);
		return false;
	}
	for (size_t i = 0; i < query->data.count; i++)
		check_axis(query, query->data.series[i].axis);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct metric metrics[] = {
		{.name = "a", .scale = 1}, {.name = "b", .scale = 0.5, .column = "c"}};
	static const struct pair semicolon[] = {{"delimiter", ";"}, {"quotechar", "'"}};
	static const char *const attributes[] = {"commit", "branch"};
	uint8_t choice = size ? data[0] : 0;
	struct csv_options options = {.file = "fuzz", .time_column = "time"};
	struct error error, again;

	if (choice & 1)
		options.attributes = (struct strings){attributes, 2};
	if (choice & 2)
		options.csv_options = (struct pairs){semicolon, 2};
	struct query query = {.options = &options,
		.metrics = metrics,
		.metric_count = choice & 4 ? 2 : 0,
		.branch = choice & 8 ? "main" : NULL,
		.since = choice & 16 ? 1000000 : WHEN_ALWAYS,
		.until = choice & 32 ? 2000000000000 : WHEN_NEVER};
	struct query second = query;
	query.arena = arena_new();
	second.arena = arena_new();
	bool good = run(&query, data + (size > 0), size - (size > 0), &error);
	check(run(&second, data + (size > 0), size - (size > 0), &again) == good);
	check(strcmp(error.text, again.text) == 0);
	for (size_t i = 0; good && i < query.data.count; i++)
		check(memcmp(query.data.series[i].values, second.data.series[i].values,
			      query.data.series[i].axis->n * sizeof(double)) == 0);
	arena_free(query.arena);
	arena_free(second.arena);
	return 0;
}
