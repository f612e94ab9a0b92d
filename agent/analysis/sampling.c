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

static const size_t *number_runs(
	struct arena *arena, const struct axis *axis, const struct column *column)
{
	size_t shared = 1;
	while (shared < axis->n && !is_same_run(axis, column, shared - 1, shared))
		shared++;
	if (shared >= axis->n)
		return NULL;
	size_t *runs = arena_array(arena, axis->n, sizeof *runs);
	for (size_t i = 1; i < axis->n; i++)
		runs[i] = runs[i - 1] + !is_same_run(axis, column, i - 1, i);
	return runs;
}

/* Never 0 where there is a value. */
static const uint64_t *hash_values(
	struct arena *arena, const struct axis *axis, const struct column *column)
{
	uint64_t *hashes = arena_array(arena, axis->n, sizeof *hashes);
	for (size_t i = 0; i < axis->n; i++) {
		const char *value = column->values[i];
		if (value && *value)
			hashes[i] = hash_add(HASH_START, value, strlen(value)) | 1;
	}
	return hashes;
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
	out->runs = number_runs(arena, axis, run);
	out->hashes = hash ? hash_values(arena, axis, hash) : NULL;
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
