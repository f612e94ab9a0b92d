/*
 * If the largest value is of extreme size, all are multiplied by a power of two that brings it
 * below
 * 1. That rounds only values that are 300 digits smaller than the largest.
 */
#include "detectors/segments.h"

#include <math.h>
#include <stdlib.h>

#include "detectors/describe.h"
#include "detectors/finite.h"
#include "detectors/scratch.h"
#include "detectors/stats.h"

enum { ORDINARY_EXPONENT = 300 };

struct segments segments_of(const struct samples *samples, struct scratch *scratch)
{
	struct segments segments = {
		.values = scratch_take(scratch, samples->n, sizeof(double)),
		.places = scratch_take(scratch, samples->n, sizeof(size_t)),
	};
	segments.n = finite_values(samples->values, samples->n, segments.values, segments.places);
	double largest = 0;
	int exponent = 0;
	for (size_t i = 0; i < segments.n; i++)
		largest = fmax(largest, fabs(segments.values[i]));
	frexp(largest, &exponent);
	segments.unit = abs(exponent) > ORDINARY_EXPONENT ? -exponent : 0;
	for (size_t i = 0; segments.unit != 0 && i < segments.n; i++)
		segments.values[i] = ldexp(segments.values[i], segments.unit);
	return segments;
}

static struct moments moments_between(const struct segments *segments, size_t from, size_t to)
{
	return moments_of(segments->values + from, to - from);
}

void segments_changes(const struct segments *segments, const size_t *cuts, const double *pvalues,
	size_t count, struct change *out)
{
	int unit = -segments->unit;
	if (count == 0)
		return;
	struct moments before = moments_between(segments, 0, cuts[0]);
	for (size_t i = 0; i < count; i++) {
		size_t start = i > 0 ? cuts[i - 1] : 0;
		size_t end = i + 1 < count ? cuts[i + 1] : segments->n;
		struct moments after = moments_between(segments, cuts[i], end);
		out[i] = (struct change){
			.index = segments->places[cuts[i]],
			.pvalue =
				pvalues && pvalues[i] >= 0 ? pvalues[i] : ttest_any(before, after),
			.mean_before = ldexp(before.mean, unit),
			.mean_after = ldexp(after.mean, unit),
			.stddev_before = ldexp(moments_stddev(before, 1), unit),
			.stddev_after = ldexp(moments_stddev(after, 1), unit),
			.count_before = before.n,
			.count_after = after.n,
		};
		out[i].magnitude = describe_magnitude(out[i].mean_before, out[i].mean_after);
		describe_step(&out[i], segments->values, segments->places, start, cuts[i], end,
			segments->unit);
		before = after;
	}
}

struct tried segments_tried(
	const struct segments *segments, size_t from, size_t cut, size_t to, enum tried_fate fate)
{
	struct moments before = moments_between(segments, from, cut);
	struct moments after = moments_between(segments, cut, to);

	return (struct tried){.index = segments->places[cut],
		.fate = fate,
		.pvalue = ttest_any(before, after),
		.mean_before = ldexp(before.mean, -segments->unit),
		.mean_after = ldexp(after.mean, -segments->unit)};
}

/* Without run numbers each point is its own run. */
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
