/*
 * The spread, pulses and the clip: docs/design/algorithms.md section 2.2.
 *
 * Single outliers are clipped to their neighbourhood. Pulses, a few outliers in a row, are found
 * here and filled by chunk.c: an outage of some points would look like two changes and hide a
 * lasting one close by.
 */
#include <math.h>
#include <string.h>

#include "detectors/edivisive/chunk.h"
#include "detectors/loops.h"

enum { SAMPLE = CLIP_BLOCK + 2 * CLIP_REACH };

/* A pulse has 2 to PULSE_MOST points. The levels beside it are medians of up to PULSE_SIDE points;
 * each side has at least PULSE_LEAST. */
enum { PULSE_MOST = 4, PULSE_SIDE = 7, PULSE_LEAST = 5 };
/* Spreads by which it differs from both levels; a pulse of more points, where the series may have
 * such, needs fewer. */
static const double PULSE_SPREADS = 6, LONG_PULSE_SPREADS = 4;

static void sort_few(double *values, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		double value = values[i];
		size_t j = i;
		for (; j > 0 && values[j - 1] > value; j--)
			values[j] = values[j - 1];
		values[j] = value;
	}
}

/*
 * Writes the values of the ranks from `first` to `last` to ranked[0 .. last - first]. The counts of
 * values below ascending limits, which vector instructions make fast, give the limits between which
 * these ranks lie; only values between those are sorted, few if the limits are good.
 */
static void values_of_ranks(const double *values, size_t n, size_t first, size_t last,
	const double limits[LIMITS], const size_t below[LIMITS], double *ranked)
{
	double low = -1, high = HUGE_VAL, some[SAMPLE];
	size_t before = 0, count = 0;
	for (int k = 0; k < LIMITS && below[k] <= first; k++) {
		low = limits[k];
		before = below[k];
	}
	for (int k = LIMITS; k-- > 0 && below[k] > last;)
		high = limits[k];
	for (size_t i = 0; i < n; i++) {
		some[count] = values[i];
		count += (values[i] >= low) & (values[i] < high);
	}
	sort_few(some, count);
	for (size_t rank = first; rank <= last; rank++)
		ranked[rank - first] = some[rank - before];
}

/* q80, the value of rank floor(0.8 (n - 1)). Limits near where it lies in noise: multiples of the
 * mean. */
static double high_size(const double *values, size_t n, double mean)
{
	static const double shares[LIMITS] = {1.25, 1.45, 1.6, 1.75, 2};
	double limits[LIMITS], high;
	size_t below[LIMITS], rank = (size_t)floor(0.8 * (double)(n - 1));
	for (int k = 0; k < LIMITS; k++)
		limits[k] = shares[k] * mean;
	loops_best()->count_below(values, n, limits, below);
	values_of_ranks(values, n, rank, rank, limits, below, &high);
	return high;
}

/* The median; 0 if it is less than `least`. */
static double median_size(const double *values, size_t n, double least)
{
	static const double shares[LIMITS] = {0.9, 1, 1.1, 1.22, 1.4};
	double limits[LIMITS], middle[2];
	size_t below[LIMITS], rank = n / 2, first = n % 2 ? rank : rank - 1;
	for (int k = 0; k < LIMITS; k++)
		limits[k] = shares[k] * least;
	loops_best()->count_below(values, n, limits, below);
	if (below[1] > rank)
		return 0;
	values_of_ranks(values, n, first, rank, limits, below, middle);
	return n % 2 ? middle[0] : 0.5 * (middle[0] + middle[1]);
}

/* The mean of sizes, each counted as at most `most`, so that outliers do not raise it. */
static double capped_mean(const double *sizes, size_t m, double most)
{
	double lanes[4] = {0};
	size_t i = 0;
	for (; i + 4 <= m; i += 4)
		for (size_t lane = 0; lane < 4; lane++)
			lanes[lane] += sizes[i + lane] < most ? sizes[i + lane] : most;
	for (; i < m; i++)
		lanes[0] += sizes[i] < most ? sizes[i] : most;
	return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) / (double)m;
}

/* s from the differences of n values, 2 <= n <= SAMPLE: the largest of three estimates. Whether
 * that of the median can be the largest is decided by one count, with a margin for rounding. */
static double spread_of(const double *x, size_t n)
{
	static const double little = 1e-12, of_median = 1.4826 / M_SQRT2;
	double sizes[SAMPLE];
	size_t m = n - 1;
	struct sizes all = loops_best()->distances_to_next(x, m, sizes);
	double mean = all.sum / (double)m, high = high_size(sizes, m, mean);
	if (high > 0 && all.largest > 20 * high)
		mean = capped_mean(sizes, m, 20 * high);
	double spread = fmax(0.2216 * mean, high / 1.812);
	return fmax(spread, of_median * median_size(sizes, m, spread / of_median * (1 - little)));
}

/* The median of a few values, at least one, which it sorts. */
static double median_of(double *values, size_t n)
{
	sort_few(values, n);
	return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

/*
 * The sample of a block reaches CLIP_REACH points beyond it on each side; if the chunk ends before
 * that, the sample is its first or last SAMPLE points. A block whose whole sample is known keeps
 * its spread.
 */
void chunk_spread(struct chunk *chunk, size_t known)
{
	size_t n = chunk->n, last_start = SIZE_MAX;
	double spread = 0;
	for (size_t from = 0; from < n; from += CLIP_BLOCK) {
		size_t start = from < CLIP_REACH ? 0 : from - CLIP_REACH;
		if (start + SAMPLE <= known)
			continue;
		if (start + SAMPLE > n)
			start = n < SAMPLE ? 0 : n - SAMPLE;
		if (start != last_start && n > 1)
			spread = spread_of(chunk->x + start, n < SAMPLE ? n : SAMPLE);
		last_start = start;
		chunk->spread[from / CLIP_BLOCK] = spread;
	}
}

/* A quick check: whether the values of [from, to) differ enough for a pulse. */
static bool may_pulse(const double *x, size_t from, size_t to, double apart)
{
	double least[4], most[4];
	for (size_t lane = 0; lane < 4; lane++)
		least[lane] = most[lane] = x[from];
	for (; from + 4 <= to; from += 4)
		for (size_t lane = 0; lane < 4; lane++) {
			double value = x[from + lane];
			least[lane] = value < least[lane] ? value : least[lane];
			most[lane] = value > most[lane] ? value : most[lane];
		}
	for (; from < to; from++) {
		least[0] = x[from] < least[0] ? x[from] : least[0];
		most[0] = x[from] > most[0] ? x[from] : most[0];
	}
	for (size_t lane = 1; lane < 4; lane++) {
		least[0] = least[lane] < least[0] ? least[lane] : least[0];
		most[0] = most[lane] > most[0] ? most[lane] : most[0];
	}
	return most[0] - least[0] > apart;
}

/* The median of up to PULSE_SIDE values from `from` on. */
static double side_median(const double *x, size_t from, size_t to)
{
	double side[PULSE_SIDE];
	size_t n = to - from < PULSE_SIDE ? to - from : PULSE_SIDE;
	memcpy(side, x + from, n * sizeof(double));
	return median_of(side, n);
}

/* A quick check: whether x[i] is that close to most of the values before it whose median is the
 * level, and so to the median. */
static bool is_near(const double *x, size_t i, double apart)
{
	size_t from = i < PULSE_SIDE ? 0 : i - PULSE_SIDE, near = 0;
	for (size_t k = from; k < i; k++)
		near += fabs(x[i] - x[k]) <= apart;
	return near > (i - from) / 2;
}

/* The number of points from i on that are a pulse; 0 for none. */
static size_t pulse_at(const struct chunk *chunk, size_t i, double apart)
{
	const double *x = chunk->x;
	if (is_near(x, i, apart))
		return 0;
	double before = side_median(x, i < PULSE_SIDE ? 0 : i - PULSE_SIDE, i);
	if (!(fabs(x[i] - before) > apart) || fabs(x[i - 1] - before) > apart)
		return 0;
	double sign = x[i] > before ? 1 : -1;
	for (size_t length = 2; length <= PULSE_MOST && i + length + PULSE_LEAST <= chunk->n;
		length++) {
		double after = side_median(x, i + length, chunk->n);
		double level = sign > 0 ? fmax(before, after) : fmin(before, after);
		/* Otherwise the last points before a large step would be a pulse. */
		double far = fmax(apart, fabs(after - before));
		bool back = sign * (x[i + length] - after) < apart;
		size_t out = 0;
		while (out < length && sign * (x[i + out] - level) > far)
			out++;
		if (out < length)
			return 0;
		if (back)
			return length;
	}
	return 0;
}

void chunk_mirror(struct chunk *chunk, const struct excursion *excursion)
{
	double *x = chunk->x;
	size_t start = excursion->start, end = excursion->end;
	size_t half = (end - start) / 2, rest = end - start - half;
	for (size_t j = 0; j < rest && j < start; j++)
		x[start + j] = x[start - 1 - j];
	for (size_t j = 0; j < half && end + j < chunk->n; j++)
		x[end - 1 - j] = x[end + j];
}

/* The same for a pulse of PULSE_MOST + 1 to `excursion` points. */
static size_t long_pulse_at(const struct chunk *chunk, size_t i, double apart)
{
	const double *x = chunk->x;
	if (chunk->excursion <= PULSE_MOST || is_near(x, i, apart))
		return 0;
	double before = side_median(x, i < PULSE_SIDE ? 0 : i - PULSE_SIDE, i);
	double sign = x[i] > before ? 1 : -1;
	size_t length = 0;
	if (fabs(x[i - 1] - before) > apart)
		return 0;
	while (length <= chunk->excursion && i + length < chunk->n &&
		sign * (x[i + length] - before) > apart)
		length++;
	if (length <= PULSE_MOST || length > chunk->excursion ||
		i + length + PULSE_LEAST > chunk->n)
		return 0;
	double after = side_median(x, i + length, chunk->n);
	for (size_t out = 0; out < length; out++)
		if (!(sign * (x[i + out] - after) > apart))
			return 0;
	return sign * (x[i + length] - after) < apart ? length : 0;
}

size_t chunk_pulses(const struct chunk *chunk, struct excursion *out)
{
	size_t n = chunk->n, count = 0;
	size_t most = chunk->excursion > PULSE_MOST ? chunk->excursion : PULSE_MOST;
	double least = most > PULSE_MOST ? LONG_PULSE_SPREADS : PULSE_SPREADS;
	for (size_t block = 0; block < n; block += CLIP_BLOCK) {
		double spread = chunk->spread[block / CLIP_BLOCK];
		size_t from = block < PULSE_SIDE ? 0 : block - PULSE_SIDE;
		size_t to = block + CLIP_BLOCK + most + PULSE_SIDE;
		if (spread <= 0 || !may_pulse(chunk->x, from, to < n ? to : n, least * spread))
			continue;
		for (size_t i = block < PULSE_LEAST ? PULSE_LEAST : block;
			i < block + CLIP_BLOCK && i + PULSE_LEAST < n; i++) {
			size_t length = pulse_at(chunk, i, PULSE_SPREADS * spread);
			if (length == 0)
				length = long_pulse_at(chunk, i, LONG_PULSE_SPREADS * spread);
			if (length == 0)
				continue;
			out[count++] = (struct excursion){i, i + length};
			i += length;
		}
	}
	return count;
}

/* The clipped value of point i, near an end of the chunk. */
static double clip_at_end(const struct chunk *chunk, size_t i, double reach)
{
	double around[5], value = chunk->x[i];
	size_t from = i < 2 ? 0 : i - 2, to = i + 3 < chunk->n ? i + 3 : chunk->n;
	memcpy(around, chunk->x + from, (to - from) * sizeof(double));
	double median = median_of(around, to - from);
	value = value > median + reach ? median + reach : value;
	return value < median - reach ? median - reach : value;
}

/* Clips [from, to), a block. Returns the first of these points whose y has changed, or `to`; the
 * first `kept` points of y are those of the last evaluation. */
static size_t clip_block(struct chunk *chunk, size_t from, size_t to, size_t kept)
{
	double reach = 3 * chunk->spread[from / CLIP_BLOCK], clipped[CLIP_BLOCK];
	size_t inner = from < 2 ? 2 : from, outer = to + 2 > chunk->n ? chunk->n - 2 : to;
	size_t same = from;
	if (chunk->n < 5)
		inner = outer = to;
	for (size_t i = from; i < inner && i < to; i++)
		clipped[i - from] = clip_at_end(chunk, i, reach);
	if (outer > inner)
		loops_best()->clip_to_medians(
			chunk->x + inner - 2, outer - inner, reach, clipped + (inner - from));
	for (size_t i = outer > inner ? outer : inner; i < to; i++)
		clipped[i - from] = clip_at_end(chunk, i, reach);
	while (same < to && same < kept && chunk->y[same] == clipped[same - from])
		same++;
	memcpy(chunk->y + from, clipped, (to - from) * sizeof(double));
	return same;
}

size_t chunk_clip(struct chunk *chunk, size_t known, size_t kept)
{
	size_t n = chunk->n, same = n;
	for (size_t from = 0; from < n; from += CLIP_BLOCK) {
		size_t start = from < CLIP_REACH ? 0 : from - CLIP_REACH;
		if (start + SAMPLE <= known)
			continue;
		size_t to = from + CLIP_BLOCK < n ? from + CLIP_BLOCK : n;
		size_t first = clip_block(chunk, from, to, kept);
		same = first < to && first < same ? first : same;
	}
	return same;
}
