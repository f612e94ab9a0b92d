/*
 * Is the difference between two neighbouring segments more than chance? docs/algorithms.md
 * section 2.4.
 *
 * A Welch test whose variances are pulled towards the pooled one (short sides say little about
 * their own), with the variance of the means inflated for the lag-1 autocorrelation of the
 * residuals, and the p-value raised because the split was chosen as the best of many. A rank test
 * on the unclipped values must agree, which rejects differences that a few extreme values make.
 */
#include <math.h>

#include "detectors/describe.h"
#include "detectors/edivisive/chunk.h"
#include "detectors/edivisive/pairs.h"
#include "detectors/stats.h"

/* The limit of alternation. */
static const double MOST_ALTERNATING = -0.8;
/* By how much alternation can raise t, at most. */
static const double MOST_GAIN = 3;
/* Sums of squares below this share of those around zero are rounding. */
static const double ROUNDING = 1e-26;
/* Sums of squares of at least this share of the chunk's have some ten correct digits as differences
 * of prefix sums. */
static const double PREFIX_SHARE = 1e-5;

/* The share of values that repeat the one before from which the rule for repeated values applies,
 * and the parameter of its beta prior. */
static const double REPEATED = 0.6, BETA = 0.05;

/* The two sides of a split. */
struct sides {
	const struct chunk *chunk;
	size_t start; /* of the first side */
	struct moments before, after;
	double total; /* points in both */
	double delta;
	double between; /* n1 n2 / N delta^2 */
	double within;  /* sum of squares within both */
};

void chunk_add_up(const struct chunk *chunk)
{
	const struct prefix *prefix = &chunk->prefix;
	const double *y = chunk->y;
	double sum = 0, squares = 0, products[LAGS] = {0};
	for (size_t i = 0; i <= chunk->n; i++) {
		prefix->sum[i] = sum;
		prefix->squares[i] = squares;
		prefix->products[0][i] = products[0];
		prefix->products[1][i] = products[1];
		if (i == chunk->n)
			break;
		sum += y[i];
		squares += y[i] * y[i];
		products[0] += i + 1 < chunk->n ? y[i] * y[i + 1] : 0;
		products[1] += i + 2 < chunk->n ? y[i] * y[i + 2] : 0;
	}
}

/* The moments of a side: from the prefix sums, or if their difference has lost too many digits,
 * from the values. */
static struct moments add_up(const struct chunk *chunk, size_t start, size_t end)
{
	const struct prefix *prefix = &chunk->prefix;
	double sum = prefix->sum[end] - prefix->sum[start], n = (double)(end - start);
	struct moments side = {.n = end - start, .mean = sum / n};
	side.squares = prefix->squares[end] - prefix->squares[start] - sum * side.mean;
	if (side.squares >= PREFIX_SHARE * prefix->squares[chunk->n])
		return side;
	return moments_of(chunk->y + start, end - start);
}

/* The same with rounding errors set to 0. */
static struct moments side_of(const struct chunk *chunk, size_t start, size_t end)
{
	struct moments side = add_up(chunk, start, end);
	double level = side.mean + chunk->shift;
	if (side.squares <= ROUNDING * (side.squares + (double)side.n * level * level))
		side.squares = 0;
	return side;
}

static struct sides sides_of(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	struct sides sides = {
		.chunk = chunk,
		.start = start,
		.before = side_of(chunk, start, tau),
		.after = side_of(chunk, tau, end),
		.total = (double)(end - start),
	};
	double n1 = (double)sides.before.n, n2 = (double)sides.after.n;
	double level1 = sides.before.mean + chunk->shift, level2 = sides.after.mean + chunk->shift;
	sides.delta = sides.after.mean - sides.before.mean;
	sides.between = n1 * n2 / sides.total * sides.delta * sides.delta;
	if (sides.between <= ROUNDING * (n1 * level1 * level1 + n2 * level2 * level2))
		sides.between = sides.delta = 0;
	sides.within = sides.before.squares + sides.after.squares;
	return sides;
}

static double moderated_variance(const struct sides *sides, struct moments side)
{
	return moments_moderated(side, sides->within / (sides->total - 2));
}

/* t and its degrees of freedom, given the variances of the two means. */
static struct ttest welch_t(const struct sides *sides, double error1, double error2, double most_df)
{
	double error = error1 + error2;
	if (sides->delta == 0)
		return (struct ttest){.t = 0, .df = most_df};
	if (error == 0)
		return (struct ttest){.t = HUGE_VAL, .df = most_df};
	double share1 = error1 / error, share2 = error2 / error;
	double f1 = (double)sides->before.n + MODERATION - 1;
	double f2 = (double)sides->after.n + MODERATION - 1;
	double df = 1 / (share1 * share1 / f1 + share2 * share2 / f2);
	return (struct ttest){.t = sides->delta / sqrt(error), .df = df < most_df ? df : most_df};
}

static struct ttest plain_t(const struct sides *sides)
{
	double error1 = moderated_variance(sides, sides->before) / (double)sides->before.n;
	double error2 = moderated_variance(sides, sides->after) / (double)sides->after.n;
	return welch_t(sides, error1, error2, sides->total - 2);
}

/* A t from which on p is at most 0.1 with df >= 2 degrees of freedom: slightly above the quantile.
 */
static double surely_relaxed(double df)
{
	return 1.6449 + 1.53 / df + 2.5 / (df * df);
}

bool relaxed_test(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	struct sides sides = sides_of(chunk, start, tau, end);
	struct ttest test = plain_t(&sides);
	return fabs(test.t) >= surely_relaxed(test.df) ||
	       student_at_most(test.t, test.df, RELAXED_P);
}

/* The sum of products of deviations from the mean that are `lag` points apart. */
static double lagged_products(const double *y, size_t n, double mean, size_t lag)
{
	double lanes[4] = {0};
	size_t i = 0;
	for (; i + lag + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++)
			lanes[lane] += (y[i + lane] - mean) * (y[i + lane + lag] - mean);
	for (; i + lag < n; i++)
		lanes[0] += (y[i] - mean) * (y[i + lag] - mean);
	return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* The same for the side [start, start + side->n), from the prefix sums. */
static double products_of(
	const struct prefix *prefix, size_t start, const struct moments *side, size_t lag)
{
	if (side->n <= lag)
		return 0;
	size_t count = side->n - lag, end = start + side->n;
	const double *sum = prefix->sum, *products = prefix->products[lag - 1];
	double ends = sum[start + count] - sum[start] + (sum[end] - sum[start + lag]);
	return products[start + count] - products[start] +
	       side->mean * ((double)count * side->mean - ends);
}

/* The autocorrelation within both sides at that lag. */
static double correlation(const struct sides *sides, size_t lag)
{
	if (sides->within == 0)
		return 0;
	const struct prefix *prefix = &sides->chunk->prefix;
	size_t n1 = sides->before.n, n2 = sides->after.n;
	if (sides->within >= PREFIX_SHARE * prefix->squares[sides->chunk->n])
		return (products_of(prefix, sides->start, &sides->before, lag) +
			       products_of(prefix, sides->start + n1, &sides->after, lag)) /
		       sides->within;
	const double *y = sides->chunk->y + sides->start;
	return (lagged_products(y, n1, sides->before.mean, lag) +
		       lagged_products(y + n1, n2, sides->after.mean, lag)) /
	       sides->within;
}

/*
 * The factor, at most 1, of the variance of a mean if values alternate, one by one or in pairs.
 * Only a correlation clearly below chance counts, reduced by a standard error.
 */
static double alternation_factor(const struct sides *sides, double r)
{
	double error = 1 / sqrt(sides->total), least = fmin(r, correlation(sides, 2));
	if (least > -3.5 * error)
		return 1;
	least = fmax(least + error, MOST_ALTERNATING);
	return (1 + least) / (1 - least);
}

/* The p of the test, raised for the choice of the split; 1 if it is not below `limit`. Writes the
 * factor of alternation. */
static double calibrated_p(const struct sides *sides, double limit, double *alternation)
{
	double n = sides->total, most_df = n - 2, chosen_of = fmax(1, fmin(1 + 8 * log(n), n - 3));
	*alternation = 1;
	if (!student_can_be(MOST_GAIN * plain_t(sides).t, limit / chosen_of))
		return 1;
	double raw = correlation(sides, 1), r = correlation_corrected(raw, n);
	double g1 = correlation_inflation(r, sides->before.n);
	double g2 = correlation_inflation(r, sides->after.n);
	if (g1 > 1 || g2 > 1)
		most_df = fmin(most_df, fmax(2, n * (1 - r) / (1 + r) - 2));
	*alternation = alternation_factor(sides, raw);
	double error1 = moderated_variance(sides, sides->before) * g1 / (double)sides->before.n;
	double error2 = moderated_variance(sides, sides->after) * g2 / (double)sides->after.n;
	struct ttest test = welch_t(sides, *alternation * error1, *alternation * error2, most_df);
	if (!student_can_be(test.t, limit / chosen_of))
		return 1;
	double p = chosen_of * student_two_sided(test.t, test.df);
	return p < limit ? p : 1;
}

/* Cuts both sides to the points within `reach` of tau. */
static void cap_sides(size_t *start, size_t tau, size_t *end, size_t reach)
{
	*start = tau - *start > reach ? tau - reach : *start;
	*end = *end - tau > reach ? tau + reach : *end;
}

/* The rank rule, on up to W points on each side. */
static bool ranks_agree(
	const struct chunk *chunk, size_t start, size_t tau, size_t end, double alternation)
{
	cap_sides(&start, tau, &end, (size_t)chunk->options.window);
	double n1 = (double)(tau - start), n2 = (double)(end - tau), n = n1 + n2;
	double sum =
		pairs_best()->sum_signs(chunk->x + start, tau - start, chunk->x + tau, end - tau);
	double z = fabs(sum) / sqrt(alternation * n1 * n2 * (n + 1) / 3);
	double most = sqrt(3 * n1 * n2 / (n + 1));
	double share = fmin(n1, n2) <= 3 && chunk->excursion == 0 ? 1
		       : fmin(n1, n2) <= 3                        ? 0.9
								  : 0.93;
	double need = fmax(2.3, fmin(3, share * most));
	return z >= need * (1 - 1e-9);
}

/* Whether at least the share REPEATED of the values equal the one before. */
static bool repeats(const double *x, size_t n)
{
	size_t equal = 0;
	for (size_t i = 1; i < n; i++)
		equal += x[i] <= x[i - 1] && x[i] >= x[i - 1];
	return (double)equal >= REPEATED * (double)(n - 1);
}

static double log_beta(double a, double b)
{
	int sign; /* lgamma would write a global one */

	return lgamma_r(a + BETA, &sign) + lgamma_r(b + BETA, &sign) -
	       lgamma_r(a + b + 2 * BETA, &sign);
}

static size_t count_above(const double *x, size_t n, double level)
{
	size_t above = 0;
	for (size_t i = 0; i < n; i++)
		above += x[i] > level;
	return above;
}

/*
 * The lower bound of p for repeated values: the odds that both sides have one probability of a high
 * value against one probability each, drawn from Beta(BETA, BETA). Two ones after fifty zeros have
 * no variance, but prove nothing.
 */
static double least_p(
	const struct chunk *chunk, size_t start, size_t tau, size_t end, const struct sides *sides)
{
	const double *x = chunk->x;
	double n1 = (double)(tau - start), n2 = (double)(end - tau);
	double middle = 0.5 * (sides->before.mean + sides->after.mean);
	if (!repeats(x + tau, end - tau) || !repeats(x + start, tau - start))
		return 0;
	double high1 = (double)count_above(x + start, tau - start, middle);
	double high2 = (double)count_above(x + tau, end - tau, middle);
	double odds = log_beta(high1 + high2, n1 - high1 + n2 - high2) + log_beta(0, 0) -
		      log_beta(high1, n1 - high1) - log_beta(high2, n2 - high2);
	return fmin(1, exp(odds));
}

struct chunk_step chunk_test(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	struct sides sides = sides_of(chunk, start, tau, end);
	struct chunk_step step = {
		.tau = tau,
		.p = 1,
		.delta = sides.delta,
		.strength = sides.between,
		.magnitude = describe_magnitude(
			sides.before.mean + chunk->shift, sides.after.mean + chunk->shift),
	};
	if (sides.before.n < 2 || sides.after.n < 2)
		return step;
	double alternation, limit = chunk->options.p_value;
	double p = calibrated_p(&sides, limit, &alternation);
	if (p < 1 && ranks_agree(chunk, start, tau, end, alternation)) {
		p = fmax(p, least_p(chunk, start, tau, end, &sides));
		step.p = p < limit ? p : 1;
	}
	return step;
}

struct opinion chunk_opinion(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	struct sides sides = sides_of(chunk, start, tau, end);
	struct opinion opinion = {
		.p = 1,
		.before = ldexp(sides.before.mean + chunk->shift, -chunk->exponent),
		.after = ldexp(sides.after.mean + chunk->shift, -chunk->exponent),
	};
	double alternation;
	if (sides.before.n < 2 || sides.after.n < 2)
		return opinion;
	opinion.p = fmin(1, calibrated_p(&sides, HUGE_VAL, &alternation));
	opinion.agrees = ranks_agree(chunk, start, tau, end, alternation);
	return opinion;
}

size_t chunk_best_place(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	size_t from =
		tau - start > REFINE_REACH + LEAST_SIDE ? tau - REFINE_REACH : start + LEAST_SIDE;
	size_t to = end - tau > REFINE_REACH + LEAST_SIDE ? tau + REFINE_REACH : end - LEAST_SIDE;
	const double *y = chunk->y;
	double mean = moments_of(y + start, end - start).mean, sum = 0, most = -1;
	size_t best = tau;
	for (size_t i = start; i < from; i++)
		sum += y[i] - mean;
	for (size_t at = from; at <= to; sum += y[at] - mean, at++) {
		double explained = sum * sum / ((double)(at - start) * (double)(end - at));
		if (explained > most) {
			most = explained;
			best = at;
		}
	}
	return best;
}
