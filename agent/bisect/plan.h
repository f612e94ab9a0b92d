/* The plan of a bisection on paper: its rounds without noise, and the runs that noise takes. */
#ifndef AGENT_BISECT_PLAN_H
#define AGENT_BISECT_PLAN_H

#include <stddef.h>

/* Rounds that k workers take without noise for a culprit among `candidates`: the least r with
 * (k + 1)^r at least that. */
size_t plan_rounds(size_t candidates, size_t workers);

/*
 * Runs a probe so that all answers of the rounds hold at `confidence`, if each is whether a mean is
 * above the middle of two levels `strength` spreads apart: ceil((2 z / strength)^2).
 */
size_t plan_runs_a_probe(double strength, double confidence, size_t candidates, size_t workers);

#endif
