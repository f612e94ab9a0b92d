/*
 * Step 1 of the default profile: single outliers are cut back to what their neighbourhood allows,
 * and pulses, a few of them in a row, are replaced by what lies beside them: left as they are, an
 * outage of some points looks like two changes that hide a lasting one close by.
 *
 * How far values may stray is estimated from first differences, which a change of level hardly
 * touches: the largest of three estimates, so that neither heavy tails nor many ties bring it down
 * to nothing.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "detectors/edivisive_chunk.h"
#include "detectors/edivisive_pairs.h"

enum { SAMPLE = CLIP_BLOCK + 2 * CLIP_REACH };

/* A pulse has 2 to PULSE_MOST points; its sides are judged by up to PULSE_SIDE points each, and
 * have at least PULSE_LEAST. */
enum { PULSE_MOST = 4, PULSE_SIDE = 7, PULSE_LEAST = 5 };
/* How many spreads it lies from both of them; one of more points, where excursions may have them,
 * is sure with less. */
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
 * The value of that rank. Counting, which vectors do fast, tells on which side of the bounds around
 * a guess it is; what lies between them is sorted, and with a good guess that is little.
 */
static double value_of_rank(const double *values, size_t n, size_t rank, double guess)
{
	double low = -1, high = HUGE_VAL, some[SAMPLE];
	size_t before = 0, count = 0;
	for (int bound = 1; bound >= 0; bound--) {
		double limit = guess * (bound ? 1.25 : 0.8);
		size_t less = count_below(values, n, limit).less;
		if (less > rank) {
			high = limit;
		} else if (limit > low) {
			low = limit;
			before = less;
		}
	}
	for (size_t i = 0; i < n; i++) {
		some[count] = values[i];
		count += (values[i] >= low) & (values[i] < high);
	}
	sort_few(some, count);
	return some[rank - before];
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Half the sum of the two in the middle where there are two. */
static double median_size(const double *values, size_t n, double guess)
{
	double median = value_of_rank(values, n, n / 2, guess), lanes[4] = {0};
	if (n % 2 == 1 || count_below(values, n, median).less < n / 2)
		return median;
	size_t i = 0;
	for (; i + 4 <= n; i += 4)
		for (size_t lane = 0; lane < 4; lane++)
			lanes[lane] = larger(
				lanes[lane], values[i + lane] < median ? values[i + lane] : 0);
	for (; i < n; i++)
		lanes[0] = larger(lanes[0], values[i] < median ? values[i] : 0);
	double before = larger(larger(lanes[0], lanes[1]), larger(lanes[2], lanes[3]));
	return 0.5 * (median + before);
}

/* The mean of sizes none of which counts for more than `most`: giants are what is to be cut. */
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

/* s for the differences between n values, 2 <= n <= SAMPLE. */
static double spread_of(const double *x, size_t n)
{
	double sizes[SAMPLE];
	size_t m = n - 1, rank = (size_t)floor(0.8 * (double)(m - 1));
	for (size_t i = 0; i < m; i++)
		sizes[i] = fabs(x[i + 1] - x[i]);
	double rough = capped_mean(sizes, m, HUGE_VAL);
	double median = median_size(sizes, m, 0.85 * rough),
	       high = value_of_rank(sizes, m, rank, 1.6 * rough);
	double mean = capped_mean(sizes, m, high > 0 ? 20 * high : HUGE_VAL);
	double spread = fmax(1.4826 / M_SQRT2 * median, 0.2216 * mean);
	return fmax(spread, high / 1.812);
}

static void order(double *a, double *b)
{
	double low = *a < *b ? *a : *b, high = *a < *b ? *b : *a;
	*a = low;
	*b = high;
}

/* Of a few values, at least one, which it sorts. */
static double median_of(double *values, size_t n)
{
	for (size_t pass = n; pass-- > 1;)
		for (size_t i = 0; i < pass; i++)
			order(&values[i], &values[i + 1]);
	return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

static double median_of_five(const double *x)
{
	double a = x[0], b = x[1], c = x[2], d = x[3], e = x[4];
	order(&a, &b);
	order(&d, &e);
	order(&a, &d); /* a is the least of four, */
	order(&b, &e); /* e the largest: neither is the median */
	order(&b, &c);
	order(&c, &d);
	order(&b, &c);
	return c;
}

/* The median of the points within two of i. */
static double local_median(const double *x, size_t n, size_t i)
{
	if (i >= 2 && i + 2 < n)
		return median_of_five(x + i - 2);
	double around[5];
	size_t from = i < 2 ? 0 : i - 2, to = i + 3 < n ? i + 3 : n;
	memcpy(around, x + from, (to - from) * sizeof(double));
	return median_of(around, to - from);
}

/*
 * The differences around a block reach CLIP_REACH points to either side; where the chunk ends
 * before that, the sample is its first or last SAMPLE points. A block whose sample was complete
 * stays as it is.
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

/* Whether values of the points around the block lie far enough apart for a pulse. */
static bool may_pulse(const double *x, size_t from, size_t to, double apart)
{
	double least[4], most[4];
	for (size_t lane = 0; lane < 4; lane++)
		least[lane] = most[lane] = x[from];
	for (size_t i = from; i < to; i++) {
		least[i % 4] = x[i] < least[i % 4] ? x[i] : least[i % 4];
		most[i % 4] = x[i] > most[i % 4] ? x[i] : most[i % 4];
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

/* How many points from i on are a pulse; 0 for none. */
static size_t pulse_at(const struct chunk *chunk, size_t i, double apart)
{
	const double *x = chunk->x;
	double before = side_median(x, i < PULSE_SIDE ? 0 : i - PULSE_SIDE, i);
	if (!(fabs(x[i] - before) > apart) || fabs(x[i - 1] - before) > apart)
		return 0;
	double sign = x[i] > before ? 1 : -1;
	for (size_t length = 2; length <= PULSE_MOST && i + length + PULSE_LEAST <= chunk->n;
		length++) {
		double after = side_median(x, i + length, chunk->n);
		double level = sign > 0 ? fmax(before, after) : fmin(before, after);
		/* Beside a larger step its last point before it would be taken for the next level.
		 */
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

/* Likewise for one of more points, which are back where they were before. */
static size_t long_pulse_at(const struct chunk *chunk, size_t i, double apart)
{
	const double *x = chunk->x;
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

/* Clips [from, to); returns the first of them that is not as before, of which the first `kept` are
 * there, or `to`. */
static size_t clip_block(struct chunk *chunk, size_t from, size_t to, size_t kept)
{
	double reach = 3 * chunk->spread[from / CLIP_BLOCK];
	size_t same = to;
	for (size_t i = to; i-- > from;) {
		double median = local_median(chunk->x, chunk->n, i), value = chunk->x[i];
		value = value > median + reach ? median + reach : value;
		value = value < median - reach ? median - reach : value;
		if (i >= kept || chunk->y[i] != value)
			same = i;
		chunk->y[i] = value;
	}
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
