/*
 * Values are scaled by a power of two before they are squared, so that 1e-300 and 1e300 work as
 * well as 1; that is exact and changes neither t nor p.
 */
#include "agent/analysis/compare.h"

#include <math.h>
#include <stdlib.h>

#include "detectors/describe.h"
#include "detectors/mannwhitney.h"
#include "detectors/stats.h"

/* The nearest points of either side whose ranks count: so many have an exact p. */
enum { RANKED_BEFORE = 50, RANKED_AFTER = 25 };

/* A single run may be an outlier such as the other side has not shown yet: its degrees of freedom.
 */
enum { SINGLE_DF = 3 };

/* Points needed before constant levels count as different: fewer equal values do not reveal the
 * noise. */
enum { CONSTANT_LEAST = 10 };

/* Rounding error of the squares of values up to 1. */
static const double ROUNDING = 1e-26;

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

/* The finite values of one side, divided by 2^exponent; infinities are ignored. */
struct side {
	double *values;
	struct moments moments;
};

static struct side side_of(const double *all, struct compare_span span, int exponent)
{
	double *values = memory_new(span.to - span.from, sizeof *values);
	size_t n = 0;
	for (size_t i = span.from; i < span.to; i++)
		if (isfinite(all[i]))
			values[n++] = ldexp(all[i], -exponent);
	return (struct side){values, moments_of(values, n)};
}

static double fourth_powers(const struct side *side)
{
	double sum = 0;
	for (size_t i = 0; i < side->moments.n; i++)
		sum += pow(side->values[i] - side->moments.mean, 4);
	return sum;
}

/*
 * The degrees of freedom of Student's distribution with the tails that a mean of the smaller side
 * has: its kurtosis is that of the residuals, less a standard error, over its points.
 */
static double tail_df(const struct side *a, const struct side *b, double within)
{
	double total = (double)(a->moments.n + b->moments.n);
	size_t few = a->moments.n < b->moments.n ? a->moments.n : b->moments.n;
	double excess = total * (fourth_powers(a) + fourth_powers(b)) / (within * within) - 3;

	excess += sqrt(24 / total);
	return excess > 0 ? 4 + 6 * (double)few / excess : HUGE_VAL;
}

/* The p of the ranks of the last points of `a` and the first of `b`. */
static double rank_p(const struct side *a, const struct side *b)
{
	size_t n1 = a->moments.n < RANKED_BEFORE ? a->moments.n : RANKED_BEFORE;
	size_t n2 = b->moments.n < RANKED_AFTER ? b->moments.n : RANKED_AFTER;
	struct scratch *scratch = scratch_new();
	double p = mannwhitney_test(
		a->values + a->moments.n - n1, n1, b->values + b->moments.n - n2, n2, true, scratch)
			   .p;

	scratch_free(scratch);
	return p;
}

/* Writes the p that there would be without outliers. */
static struct ttest test(const struct side *a, const struct side *b, double *plain)
{
	struct moments m1 = a->moments, m2 = b->moments;
	double n1 = (double)m1.n, n2 = (double)m2.n, total = n1 + n2, delta = m2.mean - m1.mean;
	double within = m1.squares + m2.squares, pooled = within / (total - 2);
	struct ttest out = {.df = total - 2, .p = 1};

	*plain = 1;
	if (m1.n == 0 || m2.n == 0 || total < 3)
		return (struct ttest){.p = 1};
	if (fabs(delta) <= sqrt(ROUNDING))
		return out;
	if (within <= ROUNDING * total) {
		*plain = total < CONSTANT_LEAST;
		return (struct ttest){.df = total < CONSTANT_LEAST ? 0 : out.df, .p = *plain};
	}
	double r = (moments_lagged(a->values, m1) + moments_lagged(b->values, m2)) / within;
	r = fmin(fmax(r + (2 + 3 * fmax(r, 0)) / total, 0), 0.9);
	double error1 = moments_moderated(m1, pooled) * correlation_inflation(r, m1.n) / n1;
	double error2 = moments_moderated(m2, pooled) * correlation_inflation(r, m2.n) / n2;
	double share1 = error1 / (error1 + error2), share2 = error2 / (error1 + error2);
	double df = 1 / (share1 * share1 / (n1 + MODERATION - 1) +
				share2 * share2 / (n2 + MODERATION - 1));

	out.t = delta / sqrt(error1 + error2);
	out.df = fmin(fmin(df, out.df), fmax(1, total * (1 - r) / (1 + r) - 2));
	out.p = student_two_sided(out.t, out.df);
	df = tail_df(a, b, within);
	if (df < out.df)
		out.p = fmin(student_two_sided(out.t, df), fmax(out.p, rank_p(a, b)));
	*plain = out.p;
	if (m1.n == 1 || m2.n == 1)
		out.p = fmax(out.p, student_two_sided(out.t, SINGLE_DF));
	return out;
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
	struct side first = side_of(a, before, exponent), second = side_of(b, after, exponent);
	double plain;
	struct ttest tested = test(&first, &second, &plain);
	struct comparison out = {
		.before = level_of(before, first.moments, exponent),
		.after = level_of(after, second.moments, exponent),
		.pvalue = tested.p,
		.plain_pvalue = plain,
		.df = tested.df,
	};
	if (first.moments.mean != 0)
		out.percent = 100 * (second.moments.mean / first.moments.mean - 1);
	set_levels(&out, a, b, exponent);
	free(first.values);
	free(second.values);
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
