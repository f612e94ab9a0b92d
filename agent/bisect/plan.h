/*
 * Bisections on paper: rounds and probes without noise, about how many runs with it, and how many
 * devices a lab needs. Pure arithmetic; docs/bisect.md tells how far that holds.
 */
#ifndef AGENT_BISECT_PLAN_H
#define AGENT_BISECT_PLAN_H

#include <stdbool.h>
#include <stddef.h>

/* Rounds that k workers take without noise for a culprit among `candidates`: the least r with
 * (k + 1)^r at least that. */
size_t plan_rounds(size_t candidates, size_t workers);

/*
 * The positions that k workers measure in a round that begins with `candidates`, 1 to that, in
 * order; returns how many of `out[workers]` there are: fewer than workers if there are few
 * candidates. What is left has at most plan_left() candidates.
 */
size_t plan_probes(size_t candidates, size_t workers, size_t *out);
size_t plan_left(size_t candidates, size_t workers);

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

/* A lab that tests every n-th commit, and bisects what it finds with some devices more. */
struct plan_lab {
	size_t every;                         /* at least 1 */
	double commits_per_hour, run_minutes; /* > 0 */
	size_t workers;                       /* devices that bisect at once */
};

struct plan_lab_needs {
	double each;    /* devices that are busy if each commit is tested, once */
	double sparse;  /* those that are with every n-th */
	size_t devices; /* whole ones for that, and those that bisect */
	size_t rounds;  /* of a bisection among the commits between two tests */
	double bisect_minutes, device_minutes; /* its duration, and the time of devices it takes */
	double wait_minutes; /* from a commit to the end of the first test that has it, on average
			      */
	double a_day;        /* bisections that the devices can do */
};

struct plan_lab_needs plan_lab_needs(const struct plan_lab *lab);

#endif
