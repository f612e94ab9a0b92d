/*
 * Most series have one point for each time: for them nothing is allocated.
 */
#include "agent/analysis/sampling.h"

#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/hash.h"

static bool is_same_run(
	const struct axis *axis, const struct column *column, size_t one, size_t other)
{
	if (!column)
		return axis->times[one] == axis->times[other];
	const char *a = column->values[one], *b = column->values[other];
	return a && b && strcmp(a, b) == 0;
}

static bool find_column(const struct axis *axis, const char *option, const char *name,
	const struct column **out, struct error *error)
{
	*out = name ? axis_column(axis, name) : NULL;
	if (!name || *out)
		return true;
	return error_set(error, ERROR_DATA,
		"%s: the points have no attribute \"%.80s\"; add it to `attributes`", option, name);
}

bool sampling_read(struct arena *arena, const struct test *test, const struct axis *axis,
	struct sampling *out, struct error *error)
{
	const struct column *run, *hash;
	*out = (struct sampling){.axis = axis};
	if (axis->n == 0)
		return true;
	if (!find_column(axis, "run_attribute", test->run_attribute, &run, error) ||
		!find_column(axis, "hash_attribute", test->hash_attribute, &hash, error))
		return error_prefix(error, "test \"%s\": ", test->name);
	size_t shared = 1, *runs;
	while (shared < axis->n && !is_same_run(axis, run, shared - 1, shared))
		shared++;
	if (shared < axis->n) {
		out->runs = runs = arena_array(arena, axis->n, sizeof *runs);
		for (size_t i = 1; i < axis->n; i++)
			runs[i] = runs[i - 1] + !is_same_run(axis, run, i - 1, i);
	}
	if (!hash)
		return true;
	uint64_t *hashes = arena_array(arena, axis->n, sizeof *hashes);
	for (size_t i = 0; i < axis->n; i++) { /* never 0 where there is a value */
		const char *value = hash->values[i];
		if (value && *value)
			hashes[i] = hash_add(HASH_START, value, strlen(value)) | 1;
	}
	out->hashes = hashes;
	return true;
}

struct samples sampling_of(const struct sampling *sampling, const struct series *series)
{
	return (struct samples){.values = series->values,
		.n = series->axis->n,
		.direction = series_direction(series),
		.runs = sampling->runs,
		.hashes = sampling->hashes};
}
