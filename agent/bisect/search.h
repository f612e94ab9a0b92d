/*
 * The evidence of a bisection's runs: each candidate's probability of being the first bad one.
 *
 * A run's value (its logarithm where all values are positive, so that steps are relative and
 * workers may differ by a factor) is the level of its worker, which drifts as a random walk, the
 * step if its commit is at or behind the first bad one, and noise. An outlier carries no
 * information. Level, step and spread are integrated out for each place where the step may be, and
 * so is the strength of the drift. See docs/design/bisection.md.
 *
 * Pure: results depend only on the runs that were added and their order.
 */
#ifndef AGENT_BISECT_SEARCH_H
#define AGENT_BISECT_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

/* A run that was measured. */
struct search_run {
	double value; /* finite */
	size_t worker, position;
	bool verifies; /* made to compare the culprit with its parent */
};

/* A step that was fitted to runs. */
struct search_step {
	double size, error; /* and its standard error, on the scale of the fit */
	double spread;      /* of single runs, on that scale */
	double df;          /* of the error; less than 1: unknown */
	size_t pairs;       /* the lesser of the runs before and behind it */
};

struct bisect_search;

/* `count` candidates; `spread` of single runs, relative, if it is known (else NAN). */
struct bisect_search *bisect_search_new(size_t count, size_t workers, double spread);
/* Accepts NULL. */
void bisect_search_free(struct bisect_search *search);
void bisect_search_add(struct bisect_search *search, const struct search_run *run);

/* Of each position, [count + 1]; [0] is 0. Valid until a run is added. Uniform without runs. */
const double *bisect_search_probability(struct bisect_search *search);
/* The step at the likeliest candidate, of all runs. */
struct search_step bisect_search_fitted(struct bisect_search *search);
/* The bad end against the good end, of their runs alone. */
struct search_step bisect_search_ends(struct bisect_search *search);
/* Position `after` against `before`, of the runs that verify. */
struct search_step bisect_search_verified(
	struct bisect_search *search, size_t before, size_t after);

/* P(|T| >= |size / error|); 1 if unknown. */
double bisect_search_p_value(struct search_step step);
/* The step in spreads; 0 if unknown, at most 1e6. */
double bisect_search_strength(struct search_step step);
/* A size on the scale of the fit as a share of the good level. */
double bisect_search_relative(const struct bisect_search *search, double size);
/* Two-sided: |T| is at most that with the probability 1 - p. */
double bisect_search_quantile(double p, double df);

#endif
