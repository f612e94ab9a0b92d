/*
 * The best split of an interval by the statistic of e-divisive, for all kappa:
 * docs/design/algorithms.md section 1, step 5 (Matteson and James 2014 with alpha = 1; as in Apache
 * Otava, the maximum is over tau and kappa). O(n^2).
 *
 * There are a scalar search and one for AVX2, equal to the bit; the faster one that the machine
 * supports is chosen at run time.
 */
#ifndef DETECTORS_EDIVISIVE_SEARCH_H
#define DETECTORS_EDIVISIVE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "detectors/scratch.h"

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
	double *right[SEARCH_ROWS]; /* B(tau, kappa), for the last kappa or the last eight */
	double *halves;             /* 2 / m */
	double *reciprocals;        /* 1 / (b - 1), read backwards */
	double *best;               /* max over kappa of Q(tau, kappa) */
	void (*sweep)(const struct search *search, const double *values, size_t n);
};

/* The fastest search that the machine supports; `plain`: the scalar one. */
struct search search_new(size_t capacity, bool plain, struct scratch *scratch);

/* The split with the largest q, the smallest tau on ties; tau 0 if n < 2 or the budget is spent.
 * n <= capacity; the values must be finite. */
struct split search_split(const struct search *search, const double *values, size_t n);

#endif
