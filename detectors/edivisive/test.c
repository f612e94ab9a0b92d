/*
 * Is the difference between two neighbouring segments more than chance? docs/design/algorithms.md
 * section 2.4.
 *
 * A Welch test whose variances are pulled towards the pooled one (short sides say little about
 * their own), with the variance of the means inflated for the lag-1 autocorrelation of the
 * residuals, and the p-value raised because the split was chosen as the best of many. A rank test
 * on the unclipped values must agree, which rejects differences that a few extreme values make.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/loops.h"
#include "detectors/sort.h"
#include "detectors/stats.h"

/* The limit of alternation. */
static const double MOST_ALTERNATING = -0.8;
/* By how much alternation can raise t, at most. */
static const double MOST_GAIN = 3;
/* p is divided by 1 - r to this power: r is an estimate, and where values depend on each other they
 * seldom do so as simply as the test supposes. */
static const double DEPENDENCE = 5, ONSET_DEPENDENCE = 2;
/* Up to ONSET values behind a split, of which only services announce anything, are tested as the
 * onset of a step in AR(1) noise, if BEFORE_ONSET values precede it and r is MOST_R at most: the
 * test of means, which decides later, must not know less. r is raised by ALLOWANCE standard errors.
 */
enum { ONSET = 4, BEFORE_ONSET = 30 };
static const double ALLOWANCE = 0.5, MOST_R = 0.75;
/* The deviations by which the ranks must differ, at most. */
static const double MOST_NEEDED = 3;
/* Noise may grow with the level where this many times lies between the levels. */
static const double FAR_LEVELS = 1.5;
/* Sums of squares below this share of those around zero are rounding. */
static const double ROUNDING = 1e-26;

/* The share of values that repeat the one before from which the rule for repeated values applies,
 * and the parameter of its beta prior. */
static const double REPEATED = 0.6, BETA = 0.05;

/* The p of a step that stands by separation: with it, `confirm: auto` waits for more points. */
static const double SEPARATED_P = 0.0005;
/* The nearest values on each side that it looks at, at most and at least; the share of pairs of
 * them that must differ in one direction, beyond that in the other. A step is sharp if the one
 * between the means of the EDGE nearest values is SHARP times the median of those elsewhere in its
 * segments. */
enum { SEPARATED_MOST = 20, SEPARATED_LEAST = 8, EDGE = 3 };
static const double APART = 0.9, SHARP = 7;

/* The two sides of a split. */
struct sides {
	const double *values; /* clipped: those before, then those after */
	struct moments before, after;
	double total; /* points in both */
	double delta;
	double between; /* n1 n2 / N delta^2 */
	double within;  /* sum of squares within both */
};

void chunk_add_up(const struct chunk *chunk)
{
	double sum = 0;
	for (size_t i = 0; i < chunk->n; i++) {
		chunk->sum[i] = sum;
		sum += chunk->y[i];
	}
	chunk->sum[chunk->n] = sum;
}

/* Sets rounding errors of a side's squares to 0. */
static struct moments exact(const struct chunk *chunk, struct moments side)
{
	double level = side.mean + chunk->shift;
	if (side.squares <= ROUNDING * (side.squares + (double)side.n * level * level))
		side.squares = 0;
	return side;
}

static struct sides sides_of(const struct chunk *chunk, struct moments before, struct moments after,
	const double *values)
{
	struct sides sides = {
		.values = values,
		.before = exact(chunk, before),
		.after = exact(chunk, after),
		.total = (double)(before.n + after.n),
		.delta = after.mean - before.mean,
	};
	double n1 = (double)before.n, n2 = (double)after.n;
	double level1 = before.mean + chunk->shift, level2 = after.mean + chunk->shift;
	sides.between = n1 * n2 / sides.total * sides.delta * sides.delta;
	if (sides.between <= ROUNDING * (n1 * level1 * level1 + n2 * level2 * level2))
		sides.between = sides.delta = 0;
	sides.within = sides.before.squares + sides.after.squares;
	return sides;
}

/* The sides with their values clipped to three deviations around their own median, so that
 * remainders of other steps and outliers in a segment do not count as noise. */
static struct sides clipped_sides(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	const double *y = chunk->y;
	double *room = chunk->room, *values = room + chunk->n;
	size_t n1 = tau - start, n2 = end - tau;
	robust_clip(y + start, n1, robust_of(y + start, n1, room), values);
	robust_clip(y + tau, n2, robust_of(y + tau, n2, room), values + n1);
	return sides_of(chunk, moments_of(values, n1), moments_of(values + n1, n2), values);
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

/* The autocorrelation within both sides at that lag. */
static double correlation(const struct sides *sides, size_t lag)
{
	if (sides->within == 0)
		return 0;
	size_t n1 = sides->before.n;
	return (lagged_products(sides->values, n1, sides->before.mean, lag) +
		       lagged_products(
			       sides->values + n1, sides->after.n, sides->after.mean, lag)) /
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

/*
 * The least-squares step in AR(1) noise: of the innovations y[i] - r y[i-1], each is 1 - r of its
 * level, but the first behind the split, which has all of the new level less r of the old one. A
 * Welch test of so few values knows only their mean, which dependence makes uncertain.
 */
static struct ttest onset_t(const struct sides *sides, double r)
{
	const double *y = sides->values;
	size_t n1 = sides->before.n, n = n1 + sides->after.n;
	double q = 1 - r, first = (1 - r * r) * y[0];
	double aa = 1 - r * r + (double)(n1 - 1) * q * q + r * r, ab = -r;
	double bb = 1 + (double)(n - n1 - 1) * q * q;
	double ya = first, yb = 0, yy = first * y[0];
	for (size_t i = 1; i < n; i++) {
		double innovation = y[i] - r * y[i - 1];
		yy += innovation * innovation;
		ya += i < n1 ? q * innovation : i == n1 ? -r * innovation : 0;
		yb += i > n1 ? q * innovation : i == n1 ? innovation : 0;
	}
	double determinant = aa * bb - ab * ab, df = (double)n - 3;
	double before = (bb * ya - ab * yb) / determinant;
	double after = (aa * yb - ab * ya) / determinant;
	double rest = fmax(yy - before * ya - after * yb, 0);
	double error = rest / df * (aa + bb + 2 * ab) / determinant;
	return (struct ttest){.t = (after - before) / sqrt(error), .df = df};
}

/* The test of means in noise whose lag-1 autocorrelation is `raw` as measured, and r corrected for
 * the few values. */
static struct ttest mean_t(const struct sides *sides, double raw, double r, double *alternation)
{
	double n = sides->total, most_df = n - 2;
	double g1 = correlation_inflation(r, sides->before.n);
	double g2 = correlation_inflation(r, sides->after.n);
	if (g1 > 1 || g2 > 1)
		most_df = fmin(most_df, fmax(2, n * (1 - r) / (1 + r) - 2));
	*alternation = alternation_factor(sides, raw);
	double error1 = moderated_variance(sides, sides->before) * g1 / (double)sides->before.n;
	double error2 = moderated_variance(sides, sides->after) * g2 / (double)sides->after.n;
	return welch_t(sides, *alternation * error1, *alternation * error2, most_df);
}

/* The p of the test, raised for the choice of the split and for dependence; 1 if it is not below
 * `limit`. Writes the factor of alternation. */
static double calibrated_p(
	const struct chunk *chunk, const struct sides *sides, double limit, double *alternation)
{
	double n = sides->total, chosen_of = fmax(1, fmin(1 + 8 * log(n), n - 3));
	*alternation = 1;
	double error1 = moderated_variance(sides, sides->before) / (double)sides->before.n;
	double error2 = moderated_variance(sides, sides->after) / (double)sides->after.n;
	double plain = welch_t(sides, error1, error2, n - 2).t;
	if (!student_can_be(MOST_GAIN * plain, limit / chosen_of))
		return 1;
	double raw = correlation(sides, 1), r = correlation_corrected(raw, n);
	bool onset = chunk->excursion > 0 && sides->after.n <= ONSET &&
		     sides->before.n >= BEFORE_ONSET && sides->within > 0 && r <= MOST_R;
	if (onset)
		r = fmax(r + ALLOWANCE / sqrt(n), 0);
	struct ttest test = onset ? onset_t(sides, r) : mean_t(sides, raw, r, alternation);
	if (!student_can_be(test.t, limit / chosen_of))
		return 1;
	double dependence = pow(1 - r, onset ? ONSET_DEPENDENCE : DEPENDENCE);
	double p = chosen_of * student_two_sided(test.t, test.df) / dependence;
	return p < limit ? p : 1;
}

/* The sides on a logarithmic scale; false unless all values are positive, and the levels far from
 * each other. */
static bool log_sides(const struct chunk *chunk, size_t start, size_t tau, size_t end,
	const struct sides *plain, struct sides *sides)
{
	struct chunk logs = *chunk;
	double level1 = plain->before.mean + chunk->shift;
	double level2 = plain->after.mean + chunk->shift;
	logs.y = chunk->room + 2 * chunk->n;
	logs.shift = 0;
	if (fmax(level1, level2) < FAR_LEVELS * fmin(level1, level2))
		return false;
	for (size_t i = start; i < end; i++) {
		double value = chunk->y[i] + chunk->shift;
		if (value <= 0)
			return false;
		logs.y[i] = log(value);
	}
	*sides = clipped_sides(&logs, start, tau, end);
	return true;
}

/* calibrated_p of the values, or if that is not significant, the smaller one of it and that of
 * their logarithms. */
static double p_of(const struct chunk *chunk, size_t start, size_t tau, size_t end,
	const struct sides *sides, double limit, double *alternation)
{
	struct sides logs;
	double p = calibrated_p(chunk, sides, limit, alternation);
	if (p < chunk->options.p_value || !log_sides(chunk, start, tau, end, sides, &logs))
		return p;
	return fmin(p, calibrated_p(chunk, &logs, limit, alternation));
}

/* Cuts both sides to the points within `reach` of tau. */
static void cap_sides(size_t *start, size_t tau, size_t *end, size_t reach)
{
	*start = tau - *start > reach ? tau - reach : *start;
	*end = *end - tau > reach ? tau + reach : *end;
}

/* The share of the variance of a rank sum that equal values leave. */
static double left_by_ties(const struct chunk *chunk, size_t start, size_t end)
{
	double *sorted = chunk->room, n = (double)(end - start), tied = 0;
	memcpy(sorted, chunk->x + start, (end - start) * sizeof(double));
	sort_sort(sorted, end - start);
	for (size_t from = 0, to; from < end - start; from = to) {
		for (to = from + 1; to < end - start && sorted[to] <= sorted[from];)
			to++;
		double count = (double)(to - from);
		tied += count * (count * count - 1);
	}
	return fmax(1 - tied / (n * (n * n - 1)), 0);
}

/* The rank rule, on up to W points on each side. */
static bool ranks_agree(
	const struct chunk *chunk, size_t start, size_t tau, size_t end, double alternation)
{
	cap_sides(&start, tau, &end, (size_t)chunk->options.window);
	double n1 = (double)(tau - start), n2 = (double)(end - tau), n = n1 + n2;
	double sum =
		loops_best()->sum_signs(chunk->x + start, tau - start, chunk->x + tau, end - tau);
	double z = fabs(sum) / sqrt(alternation * n1 * n2 * (n + 1) / 3);
	if (z >= MOST_NEEDED)
		return true; /* ties only raise z */
	double left = left_by_ties(chunk, start, end);
	z /= sqrt(left);
	double most = sqrt(3 * n1 * n2 / (left * (n + 1)));
	double share = fmin(n1, n2) <= 3 && chunk->excursion == 0 ? 1
		       : fmin(n1, n2) <= 3                        ? 0.9
								  : 0.93;
	double need = fmax(2.3, fmin(MOST_NEEDED, share * most));
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
 * no variance, but prove nothing; nor does 1, 0, 1 after them.
 */
static double least_p(
	const struct chunk *chunk, size_t start, size_t tau, size_t end, const struct sides *sides)
{
	const double *x = chunk->x;
	double n1 = (double)(tau - start), n2 = (double)(end - tau);
	double middle = 0.5 * (sides->before.mean + sides->after.mean);
	bool repeats1 = repeats(x + start, tau - start), repeats2 = repeats(x + tau, end - tau);
	if (!repeats1 && !repeats2)
		return 0;
	double high1 = (double)count_above(x + start, tau - start, middle);
	double high2 = (double)count_above(x + tau, end - tau, middle);
	bool apart = fabs(high2 / n2 - high1 / n1) >= 1;
	if (apart && !(repeats1 && repeats2))
		return 0;
	double odds = log_beta(high1 + high2, n1 - high1 + n2 - high2) + log_beta(0, 0) -
		      log_beta(high1, n1 - high1) - log_beta(high2, n2 - high2);
	return fmin(1, exp(odds));
}

/* The size of the step between the means of the nearest values before i and from i on. */
static double jump_at(const struct chunk *chunk, size_t i)
{
	const double *sum = chunk->sum;
	return fabs((sum[i + EDGE] - sum[i]) - (sum[i] - sum[i - EDGE])) / EDGE;
}

bool chunk_is_sharp(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	size_t count = 0;
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	if (tau - start < EDGE || end - tau < EDGE)
		return false;
	for (size_t i = start + EDGE; i + EDGE <= end; i++)
		if (i + EDGE <= tau || i >= tau + EDGE)
			chunk->room[count++] = jump_at(chunk, i);
	return count > 0 && jump_at(chunk, tau) >= SHARP * sort_median(chunk->room, count);
}

bool chunk_separated(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	size_t from = start, to = end;
	cap_sides(&from, tau, &to, SEPARATED_MOST);
	size_t n1 = tau - from, n2 = to - tau;
	const double *x = chunk->x;
	return chunk->excursion == 0 && n1 >= SEPARATED_LEAST && n2 >= SEPARATED_LEAST &&
	       fabs(loops_best()->sum_signs(x + from, n1, x + tau, n2)) >=
		       APART * (double)(n1 * n2) &&
	       chunk_is_sharp(chunk, start, tau, end);
}

struct chunk_step chunk_test(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	struct sides sides = clipped_sides(chunk, start, tau, end);
	struct chunk_step step = {
		.tau = tau,
		.p = 1,
		.delta = sides.delta,
		.strength = sides.between,
	};
	if (sides.before.n < 2 || sides.after.n < 2)
		return step;
	double alternation, limit = chunk->options.p_value;
	double p = p_of(chunk, start, tau, end, &sides, limit, &alternation);
	step.separated = p >= 1 && sides.delta != 0 && chunk_separated(chunk, start, tau, end);
	if (step.separated)
		p = SEPARATED_P;
	if (step.separated || (p < 1 && ranks_agree(chunk, start, tau, end, alternation))) {
		p = fmax(p, least_p(chunk, start, tau, end, &sides));
		step.p = p < limit ? p : 1;
	}
	return step;
}

struct opinion chunk_opinion(const struct chunk *chunk, size_t start, size_t tau, size_t end)
{
	cap_sides(&start, tau, &end, 2 * (size_t)chunk->options.window);
	struct sides sides = clipped_sides(chunk, start, tau, end);
	struct opinion opinion = {
		.p = 1,
		.before = ldexp(sides.before.mean + chunk->shift, -chunk->exponent),
		.after = ldexp(sides.after.mean + chunk->shift, -chunk->exponent),
	};
	double alternation;
	if (sides.before.n < 2 || sides.after.n < 2)
		return opinion;
	opinion.p = fmin(1, p_of(chunk, start, tau, end, &sides, HUGE_VAL, &alternation));
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
