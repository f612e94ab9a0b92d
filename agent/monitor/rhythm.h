/*
 * The rhythm of series: how often they have had points lately, and from that how long the next one
 * may take before it is missed.
 *
 * A point is missed when three times the longest of the last 20 gaps between points have gone by,
 * and not before ten runs of the test have looked and three steps of the source are over. Of fewer
 * than 10 points nothing is concluded.
 */
#ifndef AGENT_MONITOR_RHYTHM_H
#define AGENT_MONITOR_RHYTHM_H

#include "agent/core/series.h"

enum { RHYTHM_GAPS = 20, RHYTHM_POINTS = 10 };

struct rhythm {
	int64_t last;  /* ms, of the newest value; WHEN_ALWAYS: there is none */
	int64_t gap;   /* ms, the longest of the last RHYTHM_GAPS */
	size_t points; /* that were looked at; at most RHYTHM_GAPS + 1 */
};

/* What cannot be seen in the points: from run to run of the test, from point to point of its source
 * or 0, and how old a point is before it is read. All ms. */
struct rhythm_bounds {
	int64_t interval, step, delay;
};

struct rhythm rhythm_of(const struct series *series);

/* How long it may be without a new point, ms; 0: nobody knows. */
int64_t rhythm_limit(const struct rhythm *rhythm, const struct rhythm_bounds *bounds);

/*
 * The same for the series of a dataset together, and in *newest the time of their newest value
 * (WHEN_ALWAYS: none): that of the one with the shortest limit, of those that are not missed
 * themselves.
 */
int64_t rhythm_of_all(
	const struct dataset *data, const struct rhythm_bounds *bounds, int64_t *newest);

/* The time of the newest value of a dataset, ms; WHEN_ALWAYS: it has none. */
int64_t rhythm_newest(const struct dataset *data);

#endif
