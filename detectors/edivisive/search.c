/*
 * The buffers, and the choice of the best tau; the statistics are a sweep of detectors/loops.h.
 */
#include "detectors/edivisive/search.h"

#include <math.h>

#include "detectors/loops.h"

enum { LANES = 4, ROWS = SEARCH_ROWS };

struct search search_new(size_t capacity, const struct loops *loops, struct scratch *scratch)
{
	size_t padded = (capacity / ROWS + 2) * ROWS, table = capacity + LANES + padded;
	struct search search = {.scratch = scratch, .capacity = capacity, .loops = loops};
	search.values = scratch_take(scratch, padded, sizeof(double));
	search.left = scratch_take(scratch, padded, sizeof(double));
	search.best = scratch_take(scratch, padded, sizeof(double));
	for (size_t k = 0; k < ROWS; k++)
		search.right[k] = scratch_take(scratch, padded, sizeof(double));
	search.halves = scratch_take(scratch, padded, sizeof(double));
	search.reciprocals = scratch_take(scratch, table, sizeof(double));
	for (size_t m = 0; m < padded; m++)
		search.halves[m] = 2 / (double)m;
	size_t least = capacity + LANES - 1; /* the place of b = 1 */
	for (size_t i = 0; i < least; i++)
		search.reciprocals[i] = 1 / (double)(least - i);
	search.reciprocals[least] = 0;
	for (size_t i = least + 1; i < table; i++)
		search.reciprocals[i] = nan("");
	return search;
}

/* The first of the largest of best[1..n); the rest of the last vector is -HUGE_VAL. */
static struct split best_split(const double *best, size_t n)
{
	double most[LANES] = {-HUGE_VAL, best[1], best[2], best[3]}, q = -HUGE_VAL;
	for (size_t tau = LANES; tau < n; tau += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			most[lane] = best[tau + lane] > most[lane] ? best[tau + lane] : most[lane];
	for (size_t lane = 0; lane < LANES; lane++)
		q = most[lane] > q ? most[lane] : q;
	if (q == -HUGE_VAL)
		return (struct split){.q = q};
	size_t tau = 1;
	while (best[tau] != q)
		tau++;
	return (struct split){.tau = tau, .q = q};
}

struct split search_split(const struct search *search, const double *values, size_t n)
{
	if (n < 2 || !scratch_spend(search->scratch, n * n / 2))
		return (struct split){.q = -HUGE_VAL};
	for (size_t tau = 0; tau < n + LANES; tau++)
		search->best[tau] = -HUGE_VAL;
	search->loops->sweep(search, values, n);
	return best_split(search->best, n);
}
