/*
 * Values are scaled by a power of two before they are squared, so that 1e-300 and 1e300 work as
 * well as 1; that is exact and changes neither t nor p.
 */
#include "agent/analysis/compare.h"

#include <math.h>
#include <stdlib.h>

#include "detectors/describe.h"
#include "detectors/stats.h"

struct compare_span stable_span(const struct findings *found, size_t index)
{
	struct compare_span span = {0, found->series->axis->n};
	for (size_t i = 0; i < found->count; i++) {
		if (found->changes[i].index > index) {
			span.to = found->changes[i].index;
			break;
		}
		span.from = found->changes[i].index;
	}
	return span;
}

/* The binary exponent of the largest finite value of the span, at least `least`. */
static int exponent_of(const double *values, struct compare_span span, int least)
{
	for (size_t i = span.from; i < span.to; i++) {
		int exponent;
		if (!isfinite(values[i]) || values[i] == 0)
			continue;
		frexp(values[i], &exponent);
		least = exponent > least ? exponent : least;
	}
	return least;
}

/* The moments of the finite values, divided by 2^exponent; infinities are ignored. */
static struct moments scaled_moments(const double *all, struct compare_span span, int exponent)
{
	double *values = memory_new(span.to - span.from, sizeof *values);
	size_t n = 0;
	for (size_t i = span.from; i < span.to; i++)
		if (isfinite(all[i]))
			values[n++] = ldexp(all[i], -exponent);
	struct moments moments = moments_of(values, n);
	free(values);
	return moments;
}

static struct level level_of(struct compare_span span, struct moments moments, int exponent)
{
	return (struct level){span, moments.n, ldexp(moments.mean, exponent),
		ldexp(moments_stddev(moments, 1), exponent)};
}

/* The last finite values of the span, divided by 2^exponent, at most DESCRIBE_SIDE. */
static size_t last_values(const double *values, struct compare_span span, int exponent, double *out)
{
	size_t count = 0, from = span.to;
	while (from > span.from && count < DESCRIBE_SIDE)
		count += isfinite(values[--from]) ? 1 : 0;
	count = 0;
	for (size_t i = from; i < span.to; i++)
		if (isfinite(values[i]))
			out[count++] = ldexp(values[i], -exponent);
	return count;
}

static void set_levels(struct comparison *out, const double *a, const double *b, int exponent)
{
	double values[2 * DESCRIBE_SIDE];
	struct change change;
	size_t n1 = last_values(a, out->before.span, exponent, values);
	size_t n2 = last_values(b, out->after.span, exponent, values + n1);
	out->level_before = out->before.mean;
	out->level_after = out->after.mean;
	out->size = out->size_low = out->size_high = (double)NAN;
	if (n1 == 0 || n2 == 0)
		return;
	describe_step(&change, values, NULL, 0, n1, n1 + n2, -exponent);
	out->level_before = change.level_before;
	out->level_after = change.level_after;
	out->size = change.size;
	out->size_low = change.size_low;
	out->size_high = change.size_high;
}

struct comparison compare_spans(
	const double *a, struct compare_span before, const double *b, struct compare_span after)
{
	int exponent = exponent_of(a, before, -1074);
	exponent = exponent_of(b, after, exponent);
	struct moments first = scaled_moments(a, before, exponent);
	struct moments second = scaled_moments(b, after, exponent);
	struct comparison out = {
		.before = level_of(before, first, exponent),
		.after = level_of(after, second, exponent),
		.pvalue = ttest_any(first, second),
	};
	if (first.mean != 0)
		out.percent = 100 * (second.mean / first.mean - 1);
	set_levels(&out, a, b, exponent);
	return out;
}

bool comparison_is_regression(const struct comparison *comparison, int direction, double threshold)
{
	double change = comparison->level_after - comparison->level_before;
	if (comparison->before.count == 0 || comparison->after.count == 0 ||
		!(comparison->pvalue < threshold))
		return false;
	return direction == 0 ? change != 0 : direction * change < 0;
}
