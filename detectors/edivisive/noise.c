/*
 * "Restless levels" of the passes (docs/algorithms.md, 2.5): apparent steps of a series whose level
 * is never quiet.
 *
 * A test between two neighbouring segments estimates the noise from what is left within them. Where
 * a series wanders, or alternates between two levels and stays a while on each, the points found so
 * far have split that noise: every stay looks like a level of its own. So the noise is estimated
 * here over all segments of the chunk and beyond them.
 */
#include <math.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/stats.h"

/* Variances of a wandering level's way from point to point, in variances of a point. The first is
 * that of a level that stays. */
enum { RATES = 7 };
static const double rates[RATES] = {0, .003, .01, .03, .1, .3, 1};

/* A wandering level has to be as much likelier than one that stays (the logarithm), among so many
 * points at least. A step that is p less likely than P by this factor is one of its movements. */
static const double LIKELIER = 1, BY_FAR = 10;
enum { FEWEST = 10 };

/* Chunks that cannot hold so many points do not know their noise. */
enum { KNOWN_FROM = 150 };

static bool knows_noise(const struct chunk *chunk)
{
	return CHUNK_WINDOWS * (size_t)chunk->options.window >= KNOWN_FROM;
}

/* What is known of the noise: of the segments' points given the ones before, for each rate, the sum
 * of squares over their variances and the sum of those variances' logarithms. */
struct wander {
	double squares[RATES], logs[RATES];
	double within, lagged; /* of deviations from the segments' means: their squares, and the
				  products of successive ones */
	double n, segments;
};

static void add_forecasts(struct wander *wander, const double *y, size_t n)
{
	double level[RATES], gain[RATES], grown[RATES];
	for (size_t k = 0; k < RATES; k++) {
		level[k] = y[0];
		gain[k] = grown[k] = 1;
	}
	for (size_t i = 1; i < n; i++) {
		for (size_t k = 0; k < RATES; k++) {
			double known = gain[k] + rates[k], share = 1 / (known + 1);
			double rest = y[i] - level[k];
			gain[k] = known * share;
			level[k] += gain[k] * rest;
			wander->squares[k] += rest * rest * share;
			grown[k] *= known + 1;
		}
		if (i % 64 != 0 && i + 1 < n)
			continue;
		for (size_t k = 0; k < RATES; k++) {
			wander->logs[k] += log(grown[k]);
			grown[k] = 1;
		}
	}
}

static void add_residuals(struct wander *wander, const double *y, size_t n)
{
	struct moments all = moments_of(y, n);
	for (size_t i = 1; i < n; i++)
		wander->lagged += (y[i] - all.mean) * (y[i - 1] - all.mean);
	wander->within += all.squares;
	wander->n += (double)n;
	wander->segments++;
}

static bool is_ramp(const struct chunk_step *steps, size_t count, size_t k)
{
	return k < count && steps[k].ramp;
}

/* Adds up the segments between the steps that no ramp bounds. */
static void for_segments(const struct chunk *chunk, const struct chunk_step *steps, size_t count,
	struct wander *wander, void (*add)(struct wander *, const double *, size_t))
{
	for (size_t k = 0, start = 0; k <= count; k++) {
		size_t end = k < count ? steps[k].tau : chunk->n;
		if (!(k > 0 && is_ramp(steps, count, k - 1)) && !is_ramp(steps, count, k))
			add(wander, chunk->y + start, end - start);
		start = end;
	}
}

/* Which of the rates is likelier than a level that stays, with noise of lag-1 autocorrelation r; 0:
 * none. */
static size_t likeliest_rate(const struct wander *wander, double r)
{
	double half = 0.5 * (wander->n - wander->segments);
	double most = LIKELIER - half * log(wander->within * (1 - r * r));
	size_t best = 0;
	for (size_t k = 1; k < RATES; k++) {
		double likely =
			-half * log(wander->squares[k]) - 0.5 * (wander->logs[k] - wander->logs[0]);
		if (likely > most) {
			most = likely;
			best = k;
		}
	}
	return best;
}

/* Where a level is that wanders at that rate, after n values that begin at y and go on by `step`;
 * its variance goes to *variance. */
static double level_after(const double *y, size_t n, ptrdiff_t step, double rate, double *variance)
{
	double level = *y, gain = 1;
	for (size_t i = 1; i < n; i++) {
		y += step;
		gain = (gain + rate) / (gain + rate + 1);
		level += gain * (*y - level);
	}
	*variance = gain;
	return level;
}

/* How far step k leads from where a wandering level has come from, in deviations. */
static double step_beyond(const struct chunk *chunk, const struct chunk_step *steps, size_t count,
	size_t k, double rate, double variance)
{
	size_t cap = 2 * (size_t)chunk->options.window, tau = steps[k].tau;
	size_t n1 = tau - (k > 0 ? steps[k - 1].tau : 0);
	size_t n2 = (k + 1 < count ? steps[k + 1].tau : chunk->n) - tau;
	double v1, v2;
	n1 = n1 < cap ? n1 : cap;
	n2 = n2 < cap ? n2 : cap;
	double before = level_after(chunk->y + tau - n1, n1, 1, rate, &v1);
	double after = level_after(chunk->y + tau + n2 - 1, n2, -1, rate, &v2);
	return fabs(after - before) / sqrt(variance * (v1 + v2 + rate));
}

size_t chunk_wanders(const struct chunk *chunk, const struct chunk_step *steps, size_t count)
{
	struct wander wander = {0};
	size_t weakest = count;
	if (count == 0 || !knows_noise(chunk))
		return count;
	for_segments(chunk, steps, count, &wander, add_residuals);
	if (wander.n < wander.segments + FEWEST || wander.within <= 0)
		return count;
	double r = (wander.lagged / wander.within) + wander.segments / wander.n;
	if (r <= 0)
		return count;
	for_segments(chunk, steps, count, &wander, add_forecasts);
	size_t rate = likeliest_rate(&wander, fmin(r, 0.99));
	if (rate == 0)
		return count;
	double df = wander.n - wander.segments, least = HUGE_VAL;
	for (size_t k = 0; k < count; k++) {
		double t = steps[k].ramp ? HUGE_VAL
					 : step_beyond(chunk, steps, count, k, rates[rate],
						   wander.squares[rate] / df);
		if (t < least) {
			least = t;
			weakest = k;
		}
	}
	double p = (1 + 8 * log(wander.n)) * student_two_sided(least, df);
	return p >= BY_FAR * chunk->options.p_value ? weakest : count;
}

/* Of two levels: at least so many points, the fewest of them on either, the share that may lie near
 * the middle, and how far beyond the levels of the step, in its heights, values are on neither; so
 * many changes between them and that often, or rarer, the step's own included and none of a single
 * point, where the values are as near to the two levels as to each other. And what p is raised by
 * for the choice of the place. */
enum { MODES_FROM = 50, FEWEST_STAYED = 5, ROUNDS = 3, FEWEST_CHANGES = 4, FEWEST_RARE = 6 };
static const double MIDDLE = 0.1, NEAR = 0.3, ELSEWHERE = 1.5, OFTEN = 0.04, RARE = 0.02,
		    EXACT = 1.3;
static const double STAYS_CHOSEN = 40;

/* Values from `from` to `to`, of which [start, tau) and [tau, end) are the segments of a step; what
 * lies beyond `least` and `most` is on other levels. */
struct reach {
	const double *y;
	size_t from, start, tau, end, to;
	double least, most;
};

static bool is_beside(const struct reach *reach, size_t i)
{
	return reach->y[i] >= reach->least && reach->y[i] <= reach->most;
}

struct modes {
	double low, high;
};

/* Changes from the lower level and from the upper one, and the points at which there could be one:
 * in the two segments and in the rest. */
struct stays {
	double points[3][2], changes[3][2];
	double beside, middle; /* values on the levels or between, and of them those between */
	double lasting;        /* changes after which two values stay */
	double apart, jumps;   /* squares: of the way from the levels, and half those from one
				  value to the next */
};

static struct reach reach_of(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, size_t k)
{
	size_t most = 2 * (size_t)chunk->options.window, tau = steps[k].tau;
	size_t start = k > 0 ? steps[k - 1].tau : 0;
	size_t end = k + 1 < count ? steps[k + 1].tau : chunk->n;
	size_t from = tau > most ? tau - most : 0;
	size_t to = chunk->n - tau > most ? tau + most : chunk->n;
	return (struct reach){
		.y = chunk->y,
		.from = from,
		.start = start > from ? start : from,
		.tau = tau,
		.end = end < to ? end : to,
		.to = to,
	};
}

/* How often the values cross that level. */
static size_t crossings(const struct reach *reach, double level)
{
	size_t count = 0;
	for (size_t i = reach->from + 1; i < reach->to; i++)
		count += (reach->y[i] > level) != (reach->y[i - 1] > level);
	return count;
}

/* The means of the values above and below their middle, from a first one on. */
static bool find_modes(const struct reach *reach, double middle, struct modes *modes)
{
	for (size_t round = 0; round < ROUNDS; round++) {
		double low = 0, high = 0, above = 0, n = 0;
		for (size_t i = reach->from; i < reach->to; i++) {
			bool is_high = reach->y[i] > middle;
			if (!is_beside(reach, i))
				continue;
			n++;
			above += is_high;
			high += is_high ? reach->y[i] : 0;
			low += is_high ? 0 : reach->y[i];
		}
		if (above < FEWEST_STAYED || n - above < FEWEST_STAYED)
			return false;
		*modes = (struct modes){low / (n - above), high / above};
		middle = 0.5 * (modes->low + modes->high);
	}
	return true;
}

/* Values near the middle are taken for where those before them were. */
static struct stays count_stays(const struct reach *reach, const struct modes *modes)
{
	struct stays stays = {0};
	double height = modes->high - modes->low, middle = 0.5 * (modes->low + modes->high);
	bool up = reach->y[reach->from] > middle, lasting = up;
	for (size_t i = reach->from; i < reach->to; i++) {
		if (!is_beside(reach, i))
			continue;
		bool was = up;
		double share = (reach->y[i] - modes->low) / height;
		up = share > 1 - NEAR || (up && share >= NEAR);
		stays.middle += share >= NEAR && share <= 1 - NEAR;
		stays.beside++;
		double rest = reach->y[i] - (up ? modes->high : modes->low);
		stays.apart += rest * rest;
		if (i > reach->from && was == up) {
			double jump = reach->y[i] - reach->y[i - 1];
			stays.jumps += jump * jump / 2;
		}
		if (i == reach->tau || i == reach->from)
			continue;
		if (up != lasting && up == was) {
			stays.lasting++;
			lasting = up;
		}
		size_t part = 2;
		if (i > reach->start && i < reach->end)
			part = i < reach->tau ? 0 : 1;
		stays.points[part][was]++;
		stays.changes[part][was] += was != up;
	}
	return stays;
}

/* m of n, by their own share and not by that of all. */
static double likelier(double m, double n, double share)
{
	double own = 0;
	if (m > 0)
		own += m * log(m / n / share);
	if (n > m)
		own += (n - m) * log((1 - m / n) / (1 - share));
	return own;
}

/* Whether the step's segments stay on the two levels no longer than it goes elsewhere: p of the
 * likelihood ratio, with two degrees of freedom. */
static bool is_usual(const struct stays *stays, double limit)
{
	double ratio = 0;
	for (size_t was = 0; was < 2; was++) {
		double points = 0, changes = 0;
		for (size_t part = 0; part < 3; part++) {
			points += stays->points[part][was];
			changes += stays->changes[part][was];
		}
		double share = (changes + 0.5) / (points + 1);
		for (size_t part = 0; part < 2; part++)
			ratio += likelier(
				stays->changes[part][was], stays->points[part][was], share);
	}
	return STAYS_CHOSEN * exp(-ratio) >= limit;
}

/* Whether there are two levels, and values go from one to the other so often that they are theirs.
 */
static bool goes_both_ways(const struct stays *stays)
{
	double n = stays->beside, changes = 0;
	for (size_t part = 0; part < 3; part++)
		changes += stays->changes[part][0] + stays->changes[part][1];
	if (n < MODES_FROM || stays->middle > MIDDLE * n)
		return false;
	if (changes >= FEWEST_CHANGES && changes >= OFTEN * n)
		return true;
	return stays->lasting >= FEWEST_RARE && stays->lasting >= RARE * n &&
	       stays->apart <= EXACT * stays->jumps;
}

static bool is_stay(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, size_t k)
{
	struct reach reach = reach_of(chunk, steps, count, k);
	const double *sum = chunk->prefix.sum;
	double before = (sum[reach.tau] - sum[reach.start]) / (double)(reach.tau - reach.start);
	double after = (sum[reach.end] - sum[reach.tau]) / (double)(reach.end - reach.tau);
	double middle = 0.5 * (before + after), far = ELSEWHERE * fabs(after - before);
	struct modes modes;
	reach.least = fmin(before, after) - far;
	reach.most = fmax(before, after) + far;
	if (reach.to - reach.from < MODES_FROM || crossings(&reach, middle) <= FEWEST_CHANGES ||
		!find_modes(&reach, middle, &modes))
		return false;
	struct stays stays = count_stays(&reach, &modes);
	return goes_both_ways(&stays) && is_usual(&stays, chunk->options.p_value);
}

size_t chunk_stays(const struct chunk *chunk, const struct chunk_step *steps, size_t count)
{
	size_t weakest = count;
	if (!knows_noise(chunk))
		return count;
	for (size_t k = 0; k < count; k++)
		if (!steps[k].ramp &&
			(weakest == count || steps[k].strength < steps[weakest].strength) &&
			is_stay(chunk, steps, count, k))
			weakest = k;
	return weakest;
}
