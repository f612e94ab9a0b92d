/*
 * Ramps, trends and drift: docs/design/algorithms.md section 2.5, steps 3 to 5.
 *
 * A ramp leaves its first level at u and reaches the second at v. With w rising from 0 to 1 between
 * them it is a regression of y on w, and it explains cov(y, w)^2 / var(w), which prefix sums of y
 * and i y give in O(1) for any u and v.
 */
#include <math.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/scratch.h"

/* GRID: the ends of a ramp are first searched on about so many places. FROM_START: a ramp that
 * begins before has no known first level. */
enum { GRID = 40, SHORTEST_RAMP = 8, FROM_START = 10 };

/* In variances of a point, times ln n: the weight of each parameter that a ramp saves against
 * several steps. In standard deviations: how far it has risen at the place where it is visible. */
static const double PARAMETER = 0.5, VISIBLE = 1.2;

/* A trend without a step: least number of points; places of the rough grid; least rise, in
 * deviations of the residuals; variances that it explains about (a quick check); factor of p for
 * the choice of its ends; limit of the autocorrelation. */
enum { SHORTEST_TREND = 20, ROUGH = 10 };
static const double STEEP = 6, LEAST_TREND = 20, TREND_CHOSEN = 40, MOST_CORRELATED = 0.95;
/* Drift: among at least so many points, a ramp over half of them that rises by less than FLAT
 * deviations and explains DRIFT variances more than the step. */
enum { DRIFT_FROM = 60 };
static const double FLAT = 4.25, DRIFT = 3;
/* Factor of the variance of a ramp's levels, because its ends were chosen. */
static const double ENDS_CHOSEN = 1.3;
/* Sums of squares below this share of those around zero are rounding. */
static const double ROUNDING = 1e-26;

struct sums {
	size_t n;
	const double *plain, *weighted; /* of y and of i y before each point, y from its mean */
};

/* A ramp over the points [start, end) of the sums. */
struct ramp {
	size_t start, end;
	double explained, rise;
};

static struct sums sums_of(const struct chunk *chunk, size_t start, size_t n, double mean)
{
	const struct chunk_workspace *workspace = chunk->workspace;
	const double *y = chunk->y + start;
	double plain = 0, weighted = 0;
	for (size_t i = 0; i < n; i++) {
		workspace->plain[i] = plain;
		workspace->weighted[i] = weighted;
		plain += y[i] - mean;
		weighted += (double)i * (y[i] - mean);
	}
	workspace->plain[n] = plain;
	workspace->weighted[n] = weighted;
	return (struct sums){.n = n, .plain = workspace->plain, .weighted = workspace->weighted};
}

/* The ramp with these ends; a step if they are equal. */
static struct ramp ramp_between(const struct sums *sums, size_t start, size_t end)
{
	double length = (double)(end - start), behind = (double)(sums->n - end);
	double w = 0.5 * length + behind, ww = behind, wy = sums->plain[sums->n] - sums->plain[end];
	if (end > start) {
		double middle = (double)start - 0.5;
		ww += length / 3 - 1 / (12 * length);
		wy += (sums->weighted[end] - sums->weighted[start] -
			      middle * (sums->plain[end] - sums->plain[start])) /
		      length;
	}
	double variance = ww - w * w / (double)sums->n;
	return (struct ramp){
		.start = start,
		.end = end,
		.explained = variance > 0 ? wy * wy / variance : 0,
		.rise = variance > 0 ? wy / variance : 0,
	};
}

/* Tries all ramps with ends from..to, every `step` points, and keeps the best. */
static void search_ramps(
	const struct sums *sums, size_t from[2], size_t to[2], size_t step, struct ramp *best)
{
	for (size_t start = from[0]; start <= from[1]; start += step)
		for (size_t end = to[0] > start + 1 ? to[0] : start + 1; end <= to[1];
			end += step) {
			struct ramp ramp = ramp_between(sums, start, end);
			if (ramp.explained > best->explained)
				*best = ramp;
		}
}

/* The best ramp, on a grid and then around the best one there. */
static struct ramp best_ramp(const struct sums *sums)
{
	size_t n = sums->n, step = n / GRID + 1, all[2] = {0, n}, u[2], v[2];
	struct ramp best = {0};
	search_ramps(sums, all, all, step, &best);
	u[0] = best.start > step ? best.start - step : 0;
	u[1] = best.start + step;
	v[0] = best.end > step ? best.end - step : 0;
	v[1] = best.end + step < n ? best.end + step : n;
	search_ramps(sums, u, v, 1, &best);
	return best;
}

/* The sum of squares explained by the steps, as constant levels between them. */
static double steps_explain(
	const struct sums *sums, const struct chunk_step *steps, size_t count, size_t start)
{
	double explained = 0;
	size_t from = 0;
	for (size_t k = 0; k <= count; k++) {
		size_t to = k < count ? steps[k].tau - start : sums->n;
		double sum = sums->plain[to] - sums->plain[from];
		explained += sum * sum / (double)(to - from);
		from = to;
	}
	return explained;
}

/* The place in `sums` of the best single step. */
static size_t best_step(const struct sums *sums)
{
	struct ramp best = {0};
	for (size_t tau = LEAST_SIDE; tau + LEAST_SIDE <= sums->n; tau++) {
		struct ramp step = ramp_between(sums, tau, tau);
		if (step.explained > best.explained)
			best = step;
	}
	return best.start;
}

/* The place where a ramp has risen out of the noise, at most its middle. */
static size_t visible_from(const struct ramp *ramp, double variance)
{
	double length = (double)(ramp->end - ramp->start);
	double visible = VISIBLE * sqrt(variance) / (fabs(ramp->rise) / length);
	return ramp->start + (size_t)fmin(visible, length / 2);
}

/* How far up the ramp point i is: 0 before it, 1 behind it. */
static double share_of(const struct ramp *ramp, size_t i)
{
	if (i < ramp->start)
		return 0;
	if (i >= ramp->end)
		return 1;
	return ((double)(i - ramp->start) + 0.5) / (double)(ramp->end - ramp->start);
}

/* The residuals of a ramp: the sum of squares, and the lag-1 autocorrelation. */
struct residuals {
	double squares, correlation;
};

static struct residuals residuals_of(const double *y, size_t n, const struct ramp *ramp)
{
	double mean = moments_of(y, n).mean, share = 0, before = 0, lagged = 0;
	struct residuals left = {0};
	for (size_t i = 0; i < n; i++)
		share += share_of(ramp, i) / (double)n;
	for (size_t i = 0; i < n; i++) {
		double rest = y[i] - mean - ramp->rise * (share_of(ramp, i) - share);
		left.squares += rest * rest;
		lagged += i > 0 ? rest * before : 0;
		before = rest;
	}
	left.correlation = left.squares > 0 ? lagged / left.squares : 0;
	return left;
}

/* The lag-1 autocorrelation of the residuals of n points, corrected for its bias and lowered by a
 * quarter of its standard error. */
static double corrected_correlation(const struct residuals *left, double n)
{
	double r = left->correlation;
	r += (4 + 3 * fmax(r, 0)) / n - 0.25 / sqrt(n);
	return fmin(fmax(r, 0), MOST_CORRELATED);
}

/* Degrees of freedom of the residuals of n points with autocorrelation r. */
static double freedom_of(double r, double n)
{
	return r > 0 ? fmax(2, n * (1 - r) / (1 + r) - 4) : n - 4;
}

/* The ramp among n points from `start` on, with its levels: those of a regression of y on the
 * shares w, y = from + (to - from) w. */
static struct slope slope_of(
	const struct chunk *chunk, size_t start, size_t n, const struct ramp *ramp)
{
	const double *y = chunk->y + start;
	double mean = moments_of(y, n).mean, share = 0, squares = 0, m = (double)n;
	for (size_t i = 0; i < n; i++)
		share += share_of(ramp, i) / m;
	for (size_t i = 0; i < n; i++) {
		double apart = share_of(ramp, i) - share;
		squares += apart * apart;
	}
	struct residuals left = residuals_of(y, n, ramp);
	double r = corrected_correlation(&left, m), variance = 0;
	if (n > 4 && squares > 0)
		variance = ENDS_CHOSEN * left.squares / (m - 4) * (1 + r) / (1 - r);
	double rest = 1 - share, per_square = squares > 0 ? variance / squares : 0;
	return (struct slope){
		.start = start + ramp->start,
		.end = start + (ramp->end < n ? ramp->end : n),
		.from = mean - ramp->rise * share,
		.to = mean + ramp->rise * rest,
		.from_variance = variance / m + per_square * share * share,
		.to_variance = variance / m + per_square * rest * rest,
		.covariance = variance / m - per_square * share * rest,
		.df = n > 4 ? freedom_of(r, m) : 0,
	};
}

bool chunk_trend(const struct chunk *chunk, size_t start, size_t end, struct chunk_step *out)
{
	size_t n = end - start, whole[2] = {0, n};
	struct ramp rough = {0};
	if (n < SHORTEST_TREND)
		return false;
	const double *y = chunk->y + start;
	struct moments all = moments_of(y, n);
	struct sums sums = sums_of(chunk, start, n, all.mean);
	/* A quick check, which decides: whether a ramp on a rough grid explains at least half of
	 * LEAST_TREND variances. Most segments have none. */
	search_ramps(&sums, whole, whole, n / ROUGH + 1, &rough);
	if (!(2 * rough.explained * (double)n >= LEAST_TREND * (all.squares - rough.explained)))
		return false;
	struct ramp ramp = best_ramp(&sums);
	if (ramp.end - ramp.start < SHORTEST_RAMP || ramp.explained <= 0)
		return false;
	struct residuals left = residuals_of(y, n, &ramp);
	double size = left.squares, level = all.mean + chunk->shift;
	if (size <= ROUNDING * (double)n * (level * level + ramp.rise * ramp.rise))
		left = (struct residuals){0};
	double deviation = sqrt(left.squares / (double)(n - 4)), m = (double)n;
	double r = corrected_correlation(&left, m), df = freedom_of(r, m);
	double variance = left.squares / (m - 4) * (1 + r) / (1 - r);
	double t = variance > 0 ? sqrt(ramp.explained / variance) : HUGE_VAL;
	/* Raised for the choice of its ends */
	double p = fmin(1, TREND_CHOSEN * (1 + 8 * log(m)) * student_two_sided(t, df));
	if (!(p < chunk->options.p_value) || fabs(ramp.rise) < STEEP * deviation)
		return false;
	if ((start > 0 && ramp.start < REFINE_REACH) ||
		(end < chunk->n && ramp.end + REFINE_REACH > n))
		return false;
	size_t at = visible_from(&ramp, deviation * deviation);
	at = at < LEAST_SIDE ? LEAST_SIDE : at > n - LEAST_SIDE ? n - LEAST_SIDE : at;
	*out = (struct chunk_step){.tau = start + at,
		.p = p,
		.delta = ramp.rise,
		.ramp = true,
		.slope = slope_of(chunk, start, n, &ramp)};
	return true;
}

bool chunk_drifts(
	const struct chunk *chunk, size_t start, const struct chunk_step *step, size_t end)
{
	size_t n = end - start;
	if (n < DRIFT_FROM)
		return false;
	struct moments all = moments_of(chunk->y + start, n);
	struct sums sums = sums_of(chunk, start, n, all.mean);
	double by_step = steps_explain(&sums, step, 1, start);
	/* A quick check, which decides: whether one of the ramps centred on the step, with lengths
	 * of powers of two, explains more than the step. */
	size_t tau = step->tau - start, half = SHORTEST_RAMP / 2;
	while (half < n &&
		!(ramp_between(&sums, tau > half ? tau - half : 0, tau + half < n ? tau + half : n)
				.explained > by_step))
		half *= 2;
	if (half >= n)
		return false;
	struct ramp ramp = best_ramp(&sums);
	double variance = (all.squares - ramp.explained) / (double)(n - 1);
	return 2 * (ramp.end - ramp.start) >= n && ramp.explained > by_step + DRIFT * variance &&
	       ramp.rise * ramp.rise < FLAT * FLAT * variance;
}

size_t chunk_ramp(const struct chunk *chunk, size_t start, const struct chunk_step *steps,
	size_t count, size_t end, struct slope *slope)
{
	size_t cap = 2 * (size_t)chunk->options.window, last = steps[count - 1].tau;
	start = steps[0].tau - start > cap ? steps[0].tau - cap : start;
	end = end - last > cap ? last + cap : end;
	size_t length = end - start, fine = 2 * (length / GRID + 2);
	if (!scratch_spend(chunk->workspace->scratch, 4 * length))
		return 0;
	struct moments all = moments_of(chunk->y + start, end - start);
	struct sums sums = sums_of(chunk, start, end - start, all.mean);
	double by_steps = steps_explain(&sums, steps, count, start);
	if (!scratch_spend(chunk->workspace->scratch, 12 * (fine * fine + GRID * GRID + length)))
		return 0;
	struct ramp ramp = best_ramp(&sums);
	double n = (double)sums.n, variance = (all.squares - ramp.explained) / (n - 1);
	double saved = PARAMETER * log(n) * (2 * (double)count - 3);
	if (ramp.end - ramp.start < SHORTEST_RAMP || ramp.explained <= by_steps - saved * variance)
		return 0;
	*slope = slope_of(chunk, start, sums.n, &ramp);
	/* Where it is visible, or if its start is not known, where a step fits best. */
	return start + (ramp.start < FROM_START ? best_step(&sums) : visible_from(&ramp, variance));
}
