/*
 * Histogram logs of any bytes: no crash, an error that says something, points in order of time.
 */
#include <stdlib.h>

#include "agent/base/when.h"
#include "sources/files/files.h"
#include "tests/unit/memory_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct metric metrics[] = {
		{.name = "a.count", .scale = 1}, {.name = "b.max", .scale = 1e-6}};
	struct histostat_options options = {.file = "fuzz"};
	struct input input = input_bytes("fuzz", data, size);
	struct error error = {0};
	struct query query = {.arena = arena_new(),
		.options = &options,
		.metrics = metrics,
		.metric_count = size % 2 ? 2 : 0,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER};

	if (histostat_parse(&query, &input, &error)) {
		for (size_t i = 0; i < query.data.count; i++)
			for (size_t k = 1; k < query.data.series[i].axis->n; k++)
				check(query.data.series[i].axis->times[k] >=
					query.data.series[i].axis->times[k - 1]);
	} else {
		check(error.kind == ERROR_DATA && error.text[0]);
	}
	arena_free(query.arena);
	return 0;
}
