/*
 * Step 1 of the default profile: single outliers are cut back to what their neighbourhood allows.
 *
 * How far values may stray is estimated from first differences, which a change of level hardly
 * touches: the largest of three estimates, so that neither heavy tails nor many ties bring it down
 * to nothing.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "detectors/edivisive_chunk.h"

enum { SAMPLE = CLIP_BLOCK + 2 * CLIP_REACH };

/* Moves the value of that rank to its place, smaller ones before it and larger ones behind (Hoare's
 * find). */
static double select_rank(double *values, size_t n, size_t rank)
{
	size_t low = 0, high = n - 1;
	while (low < high) {
		double pivot = values[rank];
		size_t i = low, j = high;
		for (;;) {
			while (values[i] < pivot)
				i++;
			while (pivot < values[j])
				j--;
			if (i <= j) {
				double value = values[i];
				values[i] = values[j];
				values[j] = value;
				i++;
				if (j == 0)
					break;
				j--;
			}
			if (i > j)
				break;
		}
		if (j < rank)
			low = i;
		if (rank < i)
			high = j;
	}
	return values[rank];
}

/* The mean of sizes none of which counts for more than `most`: giants are what is to be cut. */
static double capped_mean(const double *sizes, size_t m, double most)
{
	double sum = 0;
	for (size_t i = 0; i < m; i++)
		sum += sizes[i] < most ? sizes[i] : most;
	return sum / (double)m;
}

/* s for the differences between n values, 2 <= n <= SAMPLE. */
static double spread_of(const double *x, size_t n)
{
	double sizes[SAMPLE];
	size_t m = n - 1, rank = (size_t)floor(0.8 * (double)(m - 1));
	for (size_t i = 0; i < m; i++)
		sizes[i] = fabs(x[i + 1] - x[i]);
	double median = select_rank(sizes, m, m / 2);
	if (m % 2 == 0) {
		double below = sizes[0];
		for (size_t i = 1; i < m / 2; i++)
			below = sizes[i] > below ? sizes[i] : below;
		median = 0.5 * (median + below);
	}
	double high = rank <= m / 2 ? select_rank(sizes, m, rank)
				    : select_rank(sizes + m / 2, m - m / 2, rank - m / 2);
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

/* Of 1 to 5 values, which it sorts. */
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

/* Clips [from, to); returns the first of them that is not as before, of which the first `known` are
 * kept, or `to`. */
static size_t clip_block(struct chunk *chunk, size_t from, size_t to, size_t known)
{
	double reach = 3 * chunk->spread[from / CLIP_BLOCK];
	size_t same = to;
	for (size_t i = to; i-- > from;) {
		double median = local_median(chunk->x, chunk->n, i), value = chunk->x[i];
		value = value > median + reach ? median + reach : value;
		value = value < median - reach ? median - reach : value;
		if (i >= known || chunk->y[i] != value)
			same = i;
		chunk->y[i] = value;
	}
	return same;
}

/*
 * The differences around a block reach CLIP_REACH points to either side; where the chunk ends
 * before that, the sample is its first or last SAMPLE points. A block whose sample was complete
 * stays as it is.
 */
size_t chunk_clip(struct chunk *chunk, size_t known)
{
	size_t n = chunk->n, same = n, last_start = SIZE_MAX;
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
		size_t to = from + CLIP_BLOCK < n ? from + CLIP_BLOCK : n;
		size_t first = clip_block(chunk, from, to, known);
		same = first < to && first < same ? first : same;
	}
	return same;
}
