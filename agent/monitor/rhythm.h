/*
 * The rhythm of a series: the recent intervals between its points, and from them how long the next
 * one may take before it counts as missed.
 *
 * A point is missed when three times the longest of the last 20 gaps have passed, but not before
 * ten runs of the test and three steps of the source. With fewer than 10 points there is no limit.
 */
#ifndef AGENT_MONITOR_RHYTHM_H
#define AGENT_MONITOR_RHYTHM_H

#include "agent/model/series.h"

enum { RHYTHM_GAPS = 20, RHYTHM_POINTS = 10 };

struct rhythm {
	int64_t last;  /* ms, of the newest value; WHEN_ALWAYS: none */
	int64_t gap;   /* ms, the longest of the last RHYTHM_GAPS */
	size_t points; /* points considered; at most RHYTHM_GAPS + 1 */
};

/* Parameters beyond the points: interval of the test's runs, step of its source or 0, and age of a
 * point when it is read. All ms. */
struct rhythm_bounds {
	int64_t interval, step, delay;
};

struct rhythm rhythm_of(const struct series *series);

/* How long the series may be without a new point, ms; 0: unknown. */
int64_t rhythm_limit(const struct rhythm *rhythm, const struct rhythm_bounds *bounds);

/*
 * Does so for all series of a dataset, with the time of their newest value in *newest
 * (WHEN_ALWAYS: none): the shortest limit among the series that are not missed themselves.
 */
int64_t rhythm_of_all(
	const struct dataset *data, const struct rhythm_bounds *bounds, int64_t *newest);

/* The time of the newest value of a dataset, ms; WHEN_ALWAYS: none. */
int64_t rhythm_newest(const struct dataset *data);

#endif
