/*
 * Without run numbers each point is its own run.
 */
#include "detectors/runs.h"

#include "detectors/scratch.h"
#include "detectors/stats.h"

struct runs runs_of(
	const struct samples *samples, const struct segments *segments, struct scratch *scratch)
{
	size_t n = segments->n;
	const size_t *places = segments->places;
	struct runs runs = {
		.starts = scratch_take(scratch, n + 1, sizeof(size_t)),
		.hashes = scratch_take(scratch, n + 1, sizeof(uint64_t)),
	};
	for (size_t i = 0; i < n; i++) {
		uint64_t hash = samples->hashes ? samples->hashes[places[i]] : 0;
		if (i == 0 || !samples->runs ||
			samples->runs[places[i - 1]] != samples->runs[places[i]]) {
			runs.starts[runs.count] = i;
			runs.hashes[runs.count++] = hash;
		} else if (runs.hashes[runs.count - 1] == 0) {
			runs.hashes[runs.count - 1] = hash;
		}
	}
	runs.starts[runs.count] = n;
	return runs;
}

void runs_pool(struct runs *runs)
{
	size_t kept = 0, end = runs->starts[runs->count];
	for (size_t i = 0; i < runs->count; i++) {
		if (kept > 0 && runs->hashes[i] != 0 && runs->hashes[kept - 1] == runs->hashes[i])
			continue;
		runs->starts[kept] = runs->starts[i];
		runs->hashes[kept++] = runs->hashes[i];
	}
	runs->starts[kept] = end;
	runs->count = kept;
}

void runs_means(const struct runs *runs, const struct segments *segments, double *means)
{
	for (size_t i = 0; i < runs->count; i++)
		means[i] = moments_of(
			segments->values + runs->starts[i], runs->starts[i + 1] - runs->starts[i])
				   .mean;
}
