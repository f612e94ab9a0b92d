/*
 * The plan of a bisection: rounds without noise, and about how many runs with it. Pure
 * arithmetic; docs/bisect.md says how far that holds.
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
	size_t ends, search, verification; /* runs that are expected as it stops by what it sees */
	size_t runs;                       /* their sum */
	double turns; /* runs that a worker makes one after the other: times the duration of a run
			 it is how long it takes */
	bool worthwhile; /* else the noise makes it a matter of more runs than anybody wants */
};

/* Of a step that is `strength` > 0 spreads of a run. */
struct plan_estimate plan_estimate(
	double strength, double confidence, size_t candidates, size_t workers);

#endif
