/*
 * The plan of a bisection: rounds without noise, and an estimate of runs with it. Pure arithmetic;
 * docs/design/bisection.md states its accuracy.
 */
#ifndef AGENT_BISECT_PLAN_H
#define AGENT_BISECT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

/* Rounds that k workers take without noise for a culprit among `candidates`: the least r with
 * (k + 1)^r at least that. */
size_t plan_rounds(size_t candidates, size_t workers);

/*
 * Runs a probe so that all answers of the rounds hold at `confidence`, if each is whether a mean is
 * above the middle of two levels `strength` spreads apart: ceil((2 z / strength)^2).
 */
size_t plan_runs_a_probe(double strength, double confidence, size_t candidates, size_t workers);

struct plan_estimate {
	size_t rounds, runs_a_probe;       /* of the plan without noise, repeated against noise */
	size_t fixed_runs;                 /* that takes, with both ends in each round */
	size_t ends, search, verification; /* expected runs with early stopping */
	size_t runs;                       /* their sum */
	double turns; /* consecutive runs of a worker; times a run's duration: the time it takes */
	bool worthwhile; /* false: the noise would need too many runs */
};

/* Of a step that is `strength` > 0 spreads of a run. */
struct plan_estimate plan_estimate(
	double strength, double confidence, size_t candidates, size_t workers);

#endif
