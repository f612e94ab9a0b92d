/*
 * A series as it would have come in: what the agent makes of it point by point, and how large a
 * step has to be so that it is told.
 *
 * The machinery is the agent's own, memory and news, on a past that is cut before the place.
 * Nothing is read and nothing is written.
 */
#ifndef AGENT_MONITOR_POWER_H
#define AGENT_MONITOR_POWER_H

#include "agent/monitor/news.h"

enum {
	POWER_POINTS = 24, /* that a step may take to be told */
	POWER_SIZES = 10,
	POWER_PAST = 50000, /* points before the place that are run through, and those more to where
			      windows begin */
};

/* For the limit: a series takes some seconds at most, and one look more. */
#define POWER_STEPS DETECTOR_STEPS

extern const double power_sizes[POWER_SIZES]; /* percent, ascending */

struct power_request {
	const struct test *test;
	const struct dataset *data; /* of the test */
	const struct companions *companions;
	const struct series *series; /* of the data, the one that is asked about */
	size_t front;                /* the first of its points that counts */
	int64_t max_age;             /* ms; WHEN_NEVER */
	struct scratch *scratch;
	uint64_t limit; /* of scratch_done, after which nothing more is begun; 0: none */
};

/* What becomes of a change at a place while points come. Each is said by the number of points that
 * there were from the place on: 1 is the first of the new level. 0: it did not happen. */
struct arrival {
	bool cut;           /* it took too much work */
	size_t seen;        /* points that came */
	size_t found, told; /* as a candidate or at once; to be told */
	size_t lost;        /* it was not found any more, and is not in the end */
	bool back;          /* recorded as the way back of another, which tells it */
	bool rule;          /* when it was found last the rule of confirmation held */
	int64_t held_until; /* ms; what was found last is believed, and held so long; 0 */
	double pvalue;      /* when it was found first, or told; NaN */
	int64_t found_time, told_time; /* ms, of the newest point by then */
};

/*
 * Runs the series point by point from the place on, up to `points` existing ones. `sign`: which way
 * the change goes that is looked for near the place, and the end of another counts as told; 0: any.
 * `values` stand for the series' own. Fails where detection does; *out has no points where fewer
 * than FOLLOW_FIRST are before the place.
 */
bool power_arrive(const struct power_request *ask, const double *values, size_t place,
	size_t points, int sign, struct arrival *out, struct error *error) MUST_USE;

struct power_side {
	double smallest;                   /* percent; NaN: not even the largest is told */
	struct arrival tries[POWER_SIZES]; /* of those that were tried, from the largest down */
	bool anyway; /* something that goes that way was told there without a step; none is tried */
	bool cut;    /* it takes too much work: smaller ones were not tried to the end */
	size_t tried; /* sizes, the last of which may not have been told */
};

struct power {
	size_t place; /* the first point of the step */
	bool moved;   /* it lies earlier than asked, so that POWER_POINTS follow */
	bool added;   /* a level near 0: the step is in percent of the values' mean size */
	bool evened;  /* a change of the series near the place was taken out of it first */
	struct power_side up, down;
};

/* `found` are the changes of the series. False without an error: too few points. */
bool power_measure(const struct power_request *ask, size_t place, const struct change *found,
	size_t count, struct power *out, struct error *error);

/* The same at the usual place, POWER_POINTS before the newest point. */
bool power_typical(const struct power_request *ask, struct arena *arena, struct power *out,
	struct error *error);

#endif
