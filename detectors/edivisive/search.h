/*
 * The best split of an interval by the statistic of e-divisive, kappa swept: docs/algorithms.md
 * section 1, "q-hat".
 *
 * Matteson and James 2014 with alpha = 1; Apache Otava maximises over both tau and kappa. There is
 * a scalar search and one for AVX2; they agree to the bit, and the fastest that the machine can do
 * is chosen at run time.
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
	double *right[SEARCH_ROWS]; /* B(tau, kappa), for the last one or eight kappas */
	double *halves;             /* 2 / m */
	double *reciprocals;        /* 1 / (b - 1), read backwards */
	double *best;               /* max over kappa of Q(tau, kappa) */
	void (*sweep)(const struct search *search, const double *values, size_t n);
};

/* What a machine can do; SEARCH_BEST takes the fastest. Asking for what the machine lacks gives the
 * scalar one. */
enum search_kind { SEARCH_BEST, SEARCH_SCALAR, SEARCH_AVX2 };

bool search_has(enum search_kind kind);

struct search search_new(size_t capacity, enum search_kind kind, struct scratch *scratch);

/* The split with the largest q; the smallest tau on ties. n <= capacity; the values are finite.
 * None once the scratch is spent. */
struct split search_split(const struct search *search, const double *values, size_t n);

#endif
