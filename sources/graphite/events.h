/*
 * Graphite's events: what was published about the runs whose results are in the series, and which
 * point belongs to which event.
 */
#ifndef SOURCES_GRAPHITE_EVENTS_H
#define SOURCES_GRAPHITE_EVENTS_H

#include "agent/core/arena.h"
#include "agent/core/series.h"

enum {
	GRAPHITE_RUN,
	GRAPHITE_BRANCH,
	GRAPHITE_VERSION,
	GRAPHITE_COMMIT,
	GRAPHITE_ATTRIBUTES,
};

extern const char
	*const graphite_attributes[GRAPHITE_ATTRIBUTES]; /* run, branch, version, commit */

struct graphite_event {
	int64_t when;                            /* ms */
	size_t order;                            /* its place in the answer */
	const char *values[GRAPHITE_ATTRIBUTES]; /* NULL where it says nothing */
};

struct graphite_events {
	struct graphite_event *items; /* by time, then by order; those that say something */
	size_t count;
	size_t silent;                         /* events that say nothing about any attribute */
	const struct deployments *deployments; /* as they are if they are such */
	bool per_run;                          /* they are not: each is of one point */
};

/*
 * Reads the answer of /events/get_data into the arena. Of an event only `when` is needed; `data`
 * may be JSON text, Python's repr of what was posted, free text (which says nothing), or nothing.
 */
bool graphite_events_read(struct arena *arena, const char *text, size_t length,
	struct graphite_events *out, struct error *error) MUST_USE;

/*
 * Gives the axis a column for each attribute that an event says of one of its points.
 *
 * Deployments: a point is of the branch, version and commit of the last event before the end of its
 * bucket, and the axis has the deployments. The run is said of the bucket only.
 *
 * Per run: an event belongs to the point whose bucket [time, time + width) it is in; the last of
 * several wins. The
 * width is the resolution of the points: `step` (ms, 0 if unknown), or more where all of them lie
 * farther apart, at round times, as the points of nightly runs do.
 */
void graphite_events_match(
	const struct graphite_events *events, struct axis *axis, int64_t step, struct arena *arena);

/* How long a point of the axis tells of, ms: the width of its bucket. */
int64_t graphite_resolution(const struct axis *axis, int64_t step);

#endif
