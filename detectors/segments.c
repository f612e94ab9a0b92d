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

static int unit_of(const double *values, size_t n)
{
	double largest = 0;
	int exponent = 0;
	for (size_t i = 0; i < n; i++)
		largest = fmax(largest, fabs(values[i]));
	frexp(largest, &exponent);
	return abs(exponent) > ORDINARY_EXPONENT ? -exponent : 0;
}

struct segments segments_of(const struct samples *samples, struct scratch *scratch)
{
	struct segments segments = {
		.values = scratch_take(scratch, samples->n, sizeof(double)),
		.places = scratch_take(scratch, samples->n, sizeof(size_t)),
	};
	segments.n = finite_values(samples->values, samples->n, segments.values, segments.places);
	segments.unit = unit_of(segments.values, segments.n);
	for (size_t i = 0; segments.unit != 0 && i < segments.n; i++)
		segments.values[i] = ldexp(segments.values[i], segments.unit);
	return segments;
}

static struct moments moments_between(const struct segments *segments, size_t from, size_t to)
{
	return moments_of(segments->values + from, to - from);
}

static struct change change_at(
	const struct segments *segments, size_t cut, struct moments before, struct moments after)
{
	struct change change = {
		.index = segments->places[cut],
		.pvalue = ttest_any(before, after),
		.mean_before = ldexp(before.mean, -segments->unit),
		.mean_after = ldexp(after.mean, -segments->unit),
		.stddev_before = ldexp(moments_stddev(before, 1), -segments->unit),
		.stddev_after = ldexp(moments_stddev(after, 1), -segments->unit),
		.count_before = before.n,
		.count_after = after.n,
	};
	change.magnitude = describe_magnitude(change.mean_before, change.mean_after);
	return change;
}

void segments_changes(
	const struct segments *segments, const size_t *cuts, size_t count, struct change *out)
{
	if (count == 0)
		return;
	struct moments before = moments_between(segments, 0, cuts[0]);
	for (size_t i = 0; i < count; i++) {
		size_t start = i > 0 ? cuts[i - 1] : 0;
		size_t end = i + 1 < count ? cuts[i + 1] : segments->n;
		struct moments after = moments_between(segments, cuts[i], end);
		out[i] = change_at(segments, cuts[i], before, after);
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

/* A segment with the cut at its start and that cut's magnitude. */
struct stretch {
	struct moments moments;
	size_t cut;
	double magnitude;
};

static void measure(struct stretch *stretches, size_t i)
{
	stretches[i].magnitude =
		describe_magnitude(stretches[i - 1].moments.mean, stretches[i].moments.mean);
}

static size_t smallest_of(const struct stretch *stretches, size_t count)
{
	size_t smallest = 1;
	for (size_t i = 2; i <= count; i++)
		if (stretches[i].magnitude < stretches[smallest].magnitude)
			smallest = i;
	return smallest;
}

/* Notes in the trace that the cut at the start of stretch k is dropped. */
static void note_small(const struct segments *segments, const struct stretch *stretches, size_t k,
	double magnitude, struct tried_list *tried)
{
	size_t cut = stretches[k].cut;
	struct tried one = segments_tried(
		segments, stretches[k - 1].cut, cut, cut + stretches[k].moments.n, TRIED_MAGNITUDE);

	tried_limit(&one, "magnitude", stretches[k].magnitude, magnitude);
	tried_note(tried, &one);
}

size_t segments_drop_small(const struct segments *segments, size_t *cuts, size_t count,
	double magnitude, struct scratch *scratch)
{
	if (count == 0 || magnitude <= 0)
		return count;
	struct stretch *stretches = scratch_take(scratch, count + 1, sizeof(*stretches));
	for (size_t i = 0; i <= count; i++) {
		size_t from = i > 0 ? cuts[i - 1] : 0, to = i < count ? cuts[i] : segments->n;
		stretches[i] = (struct stretch){
			.moments = moments_between(segments, from, to), .cut = from};
		if (i > 0)
			measure(stretches, i);
	}
	while (count > 0) {
		size_t k = smallest_of(stretches, count);
		if (stretches[k].magnitude > magnitude || !scratch_spend(scratch, 8 * count))
			break;
		if (scratch_tried(scratch))
			note_small(segments, stretches, k, magnitude, scratch_tried(scratch));
		stretches[k - 1].moments =
			moments_join(stretches[k - 1].moments, stretches[k].moments);
		for (size_t i = k; i < count; i++)
			stretches[i] = stretches[i + 1];
		count--;
		if (k > 1)
			measure(stretches, k - 1);
		if (k <= count)
			measure(stretches, k);
	}
	for (size_t i = 0; i < count; i++)
		cuts[i] = stretches[i + 1].cut;
	return count;
}
