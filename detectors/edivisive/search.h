/*
 * The best split of an interval by the statistic of e-divisive, for all kappa:
 * docs/design/algorithms.md section 1, step 5 (Matteson and James 2014 with alpha = 1; as in Apache
 * Otava, the maximum is over tau and kappa). O(n^2).
 */
#ifndef DETECTORS_EDIVISIVE_SEARCH_H
#define DETECTORS_EDIVISIVE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "detectors/scratch.h"

struct loops;

struct split {
	size_t tau; /* points left of the split, 1 <= tau < n; 0: there is none */
	double q;   /* the statistic there */
};

enum { SEARCH_ROWS = 8 };

/* Buffers for intervals of up to `capacity` points. They belong to the scratch. */
struct search {
	struct scratch *scratch;
	size_t capacity;
	double *values;             /* the interval, padded to whole vectors */
	double *left;               /* A(tau) / (a - 1) */
	double *right[SEARCH_ROWS]; /* B(tau, kappa), for the last eight kappas */
	double *halves;             /* 2 / m */
	/* 1 / (b - 1), read backwards: for b = kappa - tau at [capacity + 4 - kappa + tau]; 0 for b
	 * = 1, where B is 0, and NaN beyond the end of Y. */
	double *reciprocals;
	double *best; /* max over kappa of Q(tau, kappa) */
	const struct loops *loops;
};

struct search search_new(size_t capacity, const struct loops *loops, struct scratch *scratch);

/* The split with the largest q, the smallest tau on ties; tau 0 if n < 2 or the budget is spent.
 * n <= capacity; the values must be finite. */
struct split search_split(const struct search *search, const double *values, size_t n);

#endif
