/*
 * Bisections of commits that were never written: a lab with workers, noise, drift, outliers and
 * broken builds, for tests/unit/test_bisection.c and bench_bisect.
 */
#ifndef TESTS_BENCH_SIMULATE_BISECT_H
#define TESTS_BENCH_SIMULATE_BISECT_H

#include "agent/bisect/bisection.h"

struct simulated_lab {
	size_t candidates, culprit; /* its position; 0: the range is flat */
	size_t workers;
	double step;     /* in standard deviations of a run */
	double noise;    /* that deviation, relative to the level of 100 */
	double broken;   /* share of commits that cannot be tested, the ends not */
	double drift;    /* per run of a worker: slope up to it, and a random walk of it */
	double outliers; /* share of runs raised by 30 to 100% */
	double failures; /* share of runs that fail */
	double uneven;   /* how far the levels of the workers differ, as a standard deviation */
	double second;   /* another step, in standard deviations, at `second_at`; 0: none */
	size_t second_at;
	bool still; /* no noise at all: `noise` is but the unit of steps */
	uint64_t seed;
};

struct simulated_end {
	enum bisect_end end;
	size_t runs, searching, verifying; /* of all phases and of two of them; the rest are ends */
	size_t rounds, search_rounds;      /* rounds: of one run a worker, at once */
	size_t builds;                     /* runs whose worker had another commit before */
	double best;                       /* the probability of the likeliest candidate */
	double claimed;                    /* of the set */
	bool holds;                        /* the culprit is in the set */
	bool hit;                          /* it is the likeliest, or cannot be told from it */
	bool more_steps;
	size_t set_count;
	struct bisect_estimate ends, verified;
};

/* Levels at which sets were asked for after each round of search, and how many held the culprit. */
enum { SIMULATED_LEVELS = 7 };
extern const double simulated_levels[SIMULATED_LEVELS];

struct simulated_coverage {
	size_t asked[SIMULATED_LEVELS], held[SIMULATED_LEVELS];
	double claimed[SIMULATED_LEVELS];
};

/* Runs a bisection to its end; `coverage` may be NULL. */
void simulate_bisect(const struct simulated_lab *lab, const struct bisect_options *options,
	struct simulated_end *out, struct simulated_coverage *coverage);

#endif
