/*
 * Restless levels: docs/design/algorithms.md section 2.5, step 4, stays and wandering.
 *
 * A test between two neighbouring segments estimates the noise from what is left within them. If a
 * series wanders, or alternates between two levels and stays on each for a while, the points found
 * so far have split that noise: every stay looks like a level of its own. So here the noise is
 * estimated over all segments of the chunk.
 */
#include <math.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/stats.h"

/* The rates of wandering that are tried: the variance by which the level moves from point to point,
 * in variances of a point. The first is a constant level. */
enum { RATES = 7 };
static const double rates[RATES] = {0, .003, .01, .03, .1, .3, 1};

/* A wandering level may be less likely than a constant one by UNLIKELIER (logarithm), among
 * FEWEST points at least. A step is one of its movements if so large ones are expected more than
 * EXPECTED times. */
static const double UNLIKELIER = 2, EXPECTED = 0.5;
/* The largest usual movement, in heights of the step: its resolution, and where the search ends. */
static const double FINE = 0.02, MOST = 100;
enum { FEWEST = 10 };

/* Chunks that cannot hold so many points cannot estimate their noise. */
enum { KNOWN_FROM = 150 };

static bool knows_noise(const struct chunk *chunk)
{
	return CHUNK_WINDOWS * (size_t)chunk->options.window >= KNOWN_FROM;
}

/* For each rate, how well the points of the segments are predicted by the points before them: the
 * sum of squared errors over their variances, and the sum of the logarithms of these variances. */
struct wander {
	double squares[RATES], logs[RATES];
	double within, lagged; /* of deviations from the segments' means: their squares, and the
				  products of successive ones */
	double n, segments;
};

/* Adds a segment: predicts each of its points by a Kalman filter for each rate. */
static void add_predictions(struct wander *wander, const double *y, size_t n)
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

/* Adds a segment: its deviations from the mean. */
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

/* Calls `add` with each segment that no ramp bounds. */
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

/* The likeliest rate, if a constant level with noise of lag-1 autocorrelation r is not clearly
 * likelier; else 0. */
static size_t likeliest_rate(const struct wander *wander, double r)
{
	double half = 0.5 * (wander->n - wander->segments);
	double most = -UNLIKELIER - half * log(wander->within * (1 - r * r));
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

/* The filtered level after n values that begin at y and are `step` apart; writes its variance. */
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

/* Where segment k of those between the steps begins; the end of the last one for k = count + 1. */
static size_t segment_edge(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, size_t k)
{
	return k == 0 ? 0 : k <= count ? steps[k - 1].tau : chunk->n;
}

/* The distance of the filtered levels before and behind step k, in deviations. */
static double step_beyond(const struct chunk *chunk, const struct chunk_step *steps, size_t count,
	size_t k, double rate, double variance)
{
	size_t cap = 2 * (size_t)chunk->options.window, tau = steps[k].tau;
	size_t n1 = tau - segment_edge(chunk, steps, count, k);
	size_t n2 = segment_edge(chunk, steps, count, k + 2) - tau;
	double v1, v2;
	n1 = n1 < cap ? n1 : cap;
	n2 = n2 < cap ? n2 : cap;
	double before = level_after(chunk->y + tau - n1, n1, 1, rate, &v1);
	double after = level_after(chunk->y + tau + n2 - 1, n2, -1, rate, &v2);
	return fabs(after - before) / sqrt(variance * (v1 + v2 + rate));
}

/* How often a movement of t deviations is expected among n points. */
static double expected_of(double t, double n, double df)
{
	return (1 + 8 * log(n)) * student_two_sided(t, df);
}

size_t chunk_wanders(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, double *usual)
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
	for_segments(chunk, steps, count, &wander, add_predictions);
	size_t rate = likeliest_rate(&wander, fmin(r, 0.99));
	if (rate == 0)
		return count;
	double df = wander.n - wander.segments, least = HUGE_VAL;
	for (size_t k = 0; k < count; k++) {
		size_t start = segment_edge(chunk, steps, count, k);
		size_t end = segment_edge(chunk, steps, count, k + 2);
		bool stands = steps[k].ramp || chunk_separated(chunk, start, steps[k].tau, end);
		double t = stands ? HUGE_VAL
				  : step_beyond(chunk, steps, count, k, rates[rate],
					    wander.squares[rate] / df);
		if (t < least) {
			least = t;
			weakest = k;
		}
	}
	if (!(expected_of(least, wander.n, df) >= EXPECTED))
		return count;
	double least_usual = 1;
	for (*usual = MOST; *usual - least_usual > FINE;) {
		double middle = 0.5 * (least_usual + *usual);
		if (expected_of(middle * least, wander.n, df) >= EXPECTED)
			least_usual = middle;
		else
			*usual = middle;
	}
	return weakest;
}

/*
 * Two levels need MODES_FROM points, FEWEST_STAYED on each. NEAR: a value is on a level if it is
 * nearer than this share of their distance; at most the share MIDDLE may be on neither. ELSEWHERE:
 * a segment whose mean lies so many heights of the step beyond its levels is on another one.
 * Changes between the levels must be FEWEST_CHANGES and the share OFTEN of the values; or, with the
 * step's and without stays of a single point, FEWEST_RARE and the share RARE, if the squares around
 * the levels are at most EXACT times those from value to value. STAYS_CHOSEN: the factor of p for
 * the choice of the place.
 */
enum { MODES_FROM = 50, FEWEST_STAYED = 5, ROUNDS = 3, FEWEST_CHANGES = 4, FEWEST_RARE = 6 };
static const double MIDDLE = 0.1, STAY_P = 10, NEAR = 0.3, ELSEWHERE = 1, OFTEN = 0.04, RARE = 0.02,
		    EXACT = 1.3;
static const double STAYS_CHOSEN = 40, STICKY = 3;

/* The values around a step, whose segments are [start, tau) and [tau, end). */
struct reach {
	const double *x;
	size_t n, start, tau, end;
	double before, after; /* the step's levels */
};

struct modes {
	double low, high;
};

/* The stays on the two levels. By part (the step's segments, the rest) and level (lower, upper):
 * the points at which a stay on it could have ended, and the changes that ended one. */
struct stays {
	double points[3][2], changes[3][2];
	double middle;       /* values on neither level */
	double lasting;      /* changes to stays of two values or more */
	double apart, jumps; /* sums of squares: around the levels; half of those from value to
				value on one level */
};

static double mean_of(const struct chunk *chunk, size_t start, size_t end)
{
	return (chunk->sum[end] - chunk->sum[start]) / (double)(end - start);
}

/* The segments by which step k is judged: its own two, and to either side the next ones up to the
 * first that is on another level. */
static struct reach reach_of(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, size_t k)
{
	size_t edges[3], from, to, first = k, last = k + 2;
	for (size_t i = 0; i < 3; i++)
		edges[i] = segment_edge(chunk, steps, count, k + i);
	double before = mean_of(chunk, edges[0], edges[1]);
	double after = mean_of(chunk, edges[1], edges[2]), far = ELSEWHERE * fabs(after - before);
	double least = fmin(before, after) - far, most = fmax(before, after) + far;
	for (from = edges[0]; first > 0; first--) {
		size_t next = segment_edge(chunk, steps, count, first - 1);
		double mean = mean_of(chunk, next, from);
		if (mean < least || mean > most)
			break;
		from = next;
	}
	for (to = edges[2]; last <= count; last++) {
		size_t next = segment_edge(chunk, steps, count, last + 1);
		double mean = mean_of(chunk, to, next);
		if (mean < least || mean > most)
			break;
		to = next;
	}
	return (struct reach){.x = chunk->x + from,
		.n = to - from,
		.start = edges[0] - from,
		.tau = edges[1] - from,
		.end = edges[2] - from,
		.before = before,
		.after = after};
}

/* The means of the values above and below the middle, which is then their own; ROUNDS times. False
 * if one has too few values. */
static bool find_modes(const struct reach *reach, double middle, struct modes *modes)
{
	for (size_t round = 0; round < ROUNDS; round++) {
		double low = 0, high = 0, above = 0, n = (double)reach->n;
		for (size_t i = 0; i < reach->n; i++) {
			bool is_high = reach->x[i] > middle;
			above += is_high;
			high += is_high ? reach->x[i] : 0;
			low += is_high ? 0 : reach->x[i];
		}
		if (above < FEWEST_STAYED || n - above < FEWEST_STAYED)
			return false;
		*modes = (struct modes){low / (n - above), high / above};
		middle = 0.5 * (modes->low + modes->high);
	}
	return true;
}

/* Counts the stays; a value on neither level counts as being where the one before it was. */
static struct stays count_stays(const struct reach *reach, const struct modes *modes)
{
	struct stays stays = {0};
	double height = modes->high - modes->low, middle = 0.5 * (modes->low + modes->high);
	bool up = reach->x[0] > middle, lasting = up;
	for (size_t i = 0; i < reach->n; i++) {
		bool was = up;
		double share = (reach->x[i] - modes->low) / height;
		up = share > 1 - NEAR || (up && share >= NEAR);
		stays.middle += share >= NEAR && share <= 1 - NEAR;
		double rest = reach->x[i] - (up ? modes->high : modes->low);
		stays.apart += rest * rest;
		if (i > 0 && was == up) {
			double jump = reach->x[i] - reach->x[i - 1];
			stays.jumps += jump * jump / 2;
		}
		if (i == reach->tau || i == 0)
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

/* The log likelihood ratio of m in n events: their own share against `share`. */
static double likelihood_ratio(double m, double n, double share)
{
	double own = 0;
	if (m > 0)
		own += m * log(m / n / share);
	if (n > m)
		own += (n - m) * log((1 - m / n) / (1 - share));
	return own;
}

/* Whether the step's segments stay on the two levels about as long as the other values do, by the
 * likelihood ratio. */
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
			ratio += likelihood_ratio(
				stays->changes[part][was], stays->points[part][was], share);
	}
	return STAYS_CHOSEN * exp(-ratio) >= limit;
}

/* Whether values stay on their level more often than if each were drawn anew, by STICKY standard
 * errors. In counts, for instance, they do not. */
static bool is_sticky(const struct stays *stays)
{
	double beyond = 0, variance = 0;
	for (size_t part = 0; part < 3; part++) {
		const double *points = stays->points[part], *changes = stays->changes[part];
		double n = points[0] + points[1];
		double share = n > 0 ? 2 * points[0] * points[1] / (n * n) : 0;
		beyond += n * share - changes[0] - changes[1];
		variance += n * share * (1 - share);
	}
	return beyond > STICKY * sqrt(variance);
}

/* Whether there are two levels between which the values change often enough. */
static bool goes_both_ways(const struct stays *stays, double n)
{
	double changes = 0;
	for (size_t part = 0; part < 3; part++)
		changes += stays->changes[part][0] + stays->changes[part][1];
	if (stays->middle > MIDDLE * n)
		return false;
	if (changes >= FEWEST_CHANGES && changes >= OFTEN * n)
		return true;
	return stays->lasting >= FEWEST_RARE && stays->lasting >= RARE * n &&
	       stays->apart <= EXACT * stays->jumps;
}

/* Whether step k is only a change between two modes. */
static bool is_stay(
	const struct chunk *chunk, const struct chunk_step *steps, size_t count, size_t k)
{
	struct reach reach = reach_of(chunk, steps, count, k);
	double middle = 0.5 * (reach.before + reach.after);
	struct modes modes;
	size_t crossings = 0;
	for (size_t i = 1; i < reach.n; i++)
		crossings += (reach.x[i] > middle) != (reach.x[i - 1] > middle);
	if (reach.n < MODES_FROM || crossings <= FEWEST_CHANGES ||
		!find_modes(&reach, middle, &modes))
		return false;
	struct stays stays = count_stays(&reach, &modes);
	return is_sticky(&stays) && goes_both_ways(&stays, (double)reach.n) &&
	       is_usual(&stays, STAY_P * chunk->options.p_value);
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
