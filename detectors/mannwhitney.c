/*
 * The exact distribution takes in the groups of equal values from the smallest up and chooses how
 * many of each belong to the first sample: ways[j][w] is the number of choices of j values so far
 * with 2 U = w. Without ties every group has one value, and this is the classic recursion.
 */
#include "detectors/mannwhitney.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detectors/scratch.h"

enum { EXACT_MOST = 50, EXACT_MOST_TIED = 25 };

struct ranked {
	double value;
	bool first;
};

/* The ranks of all values. */
struct ranking {
	size_t n1, n2;
	size_t *groups; /* sizes of the groups of equal values, ascending */
	size_t count;
	double u;
	double tied; /* sum of t^3 - t over the groups */
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *one = a, *other = b;
	return (one->value > other->value) - (one->value < other->value);
}

static struct ranking rank(
	const double *first, size_t n1, const double *second, size_t n2, struct scratch *scratch)
{
	size_t n = n1 + n2;
	scratch_reset(scratch);
	struct ranking ranking = {
		.n1 = n1, .n2 = n2, .groups = scratch_take(scratch, n, sizeof(size_t))};
	struct ranked *all = scratch_take(scratch, n, sizeof(*all));
	for (size_t i = 0; i < n; i++) {
		double value = i < n1 ? first[i] : second[i - n1];
		all[i] = (struct ranked){isnan(value) ? HUGE_VAL : value, i < n1};
	}
	qsort(all, n, sizeof(*all), by_value);
	size_t seconds = 0; /* values of the second sample below the group */
	for (size_t from = 0, to; from < n; from = to) {
		size_t firsts = 0;
		for (to = from; to < n && all[to].value == all[from].value; to++)
			firsts += all[to].first;
		size_t others = to - from - firsts;
		ranking.u += (double)firsts * ((double)seconds + 0.5 * (double)others);
		seconds += others;
		double t = (double)(to - from);
		ranking.tied += t * t * t - t;
		ranking.groups[ranking.count++] = to - from;
	}
	return ranking;
}

/* The binomial coefficient t over c. */
static double choose(size_t t, size_t c)
{
	double ways = 1;
	for (size_t i = 1; i <= c; i++)
		ways = ways * (double)(t - c + i) / (double)i;
	return ways;
}

struct table {
	double *ways; /* [j][w], w = 2U up to `most` */
	size_t most;
};

/*
 * Takes in a group of t values with `below` values before it. If c of them are chosen after j
 * earlier ones, each is larger than the below - j values that were not chosen and ties with t - c.
 * Goes from many chosen to few, so that rows are overwritten only after they were read.
 */
static void add_group(struct table *table, size_t n1, size_t n2, size_t below, size_t t)
{
	size_t width = table->most + 1;
	for (size_t chosen = n1 < below + t ? n1 : below + t; chosen > 0; chosen--) {
		double *to = table->ways + chosen * width;
		for (size_t c = 1; c <= t && c <= chosen; c++) {
			size_t j = chosen - c;
			if (j > below || below - j > n2 || below - j + t - c > n2)
				continue;
			size_t more = c * (2 * (below - j) + (t - c));
			const double *from = table->ways + j * width;
			double weight = choose(t, c);
			for (size_t w = more; w < width; w++)
				to[w] += weight * from[w - more];
		}
	}
}

/* P(U <= u) over all choices of n1 values. */
static double lower_tail(
	const struct ranking *ranking, size_t n1, size_t n2, double u, struct scratch *scratch)
{
	struct table table = {.most = (size_t)(2 * u)};
	size_t size = (n1 + 1) * (table.most + 1), below = 0, terms = 0;
	/* A group of t values takes part in up to t sums for each number chosen. */
	for (size_t i = 0; i < ranking->count; i++)
		terms += n1 * (ranking->groups[i] < n1 ? ranking->groups[i] : n1);
	if (!scratch_spend(scratch, terms * (table.most + 1) / 2))
		return 1;
	table.ways = scratch_take(scratch, size, sizeof(double));
	memset(table.ways, 0, size * sizeof(double));
	table.ways[0] = 1;
	for (size_t i = 0; i < ranking->count; i++) {
		add_group(&table, n1, n2, below, ranking->groups[i]);
		below += ranking->groups[i];
	}
	double sum = 0;
	for (size_t w = 0; w <= table.most; w++)
		sum += table.ways[n1 * (table.most + 1) + w];
	return sum / choose(n1 + n2, n1);
}

/* With ties the distribution of U is not symmetric: its upper tail is the other sample's lower
 * one. */
static double exact_p(const struct ranking *ranking, struct scratch *scratch)
{
	size_t n1 = ranking->n1, n2 = ranking->n2;
	double u = ranking->u, other = (double)n1 * (double)n2 - u;
	double p = u <= other ? 2 * lower_tail(ranking, n1, n2, u, scratch)
			      : 2 * lower_tail(ranking, n2, n1, other, scratch);
	return p < 1 ? p : 1;
}

static double normal_p(const struct ranking *ranking)
{
	double n1 = (double)ranking->n1, n2 = (double)ranking->n2, n = n1 + n2;
	double variance = n1 * n2 / 12 * (n + 1 - ranking->tied / (n * (n - 1)));
	double away = fabs(ranking->u - n1 * n2 / 2) - 0.5;
	return away <= 0 || !(variance > 0) ? 1 : erfc(away / sqrt(2 * variance));
}

struct mannwhitney mannwhitney_test(const double *first, size_t n1, const double *second, size_t n2,
	bool exact, struct scratch *scratch)
{
	if (n1 == 0 || n2 == 0)
		return (struct mannwhitney){.p = 1};
	if (!scratch_spend(scratch, 100 * (n1 + n2)))
		return (struct mannwhitney){.p = 1};
	struct ranking ranking = rank(first, n1, second, n2, scratch);
	struct mannwhitney result = {.u = ranking.u, .p = 1, .flat = ranking.count == 1};
	size_t larger = n1 > n2 ? n1 : n2;
	size_t most = ranking.tied > 0 ? EXACT_MOST_TIED : EXACT_MOST;
	if (!result.flat)
		result.p =
			exact && larger <= most ? exact_p(&ranking, scratch) : normal_p(&ranking);
	return result;
}
