/*
 * Graphite's events, which report deployments or the run of a result, and their assignment to
 * points.
 */
#ifndef SOURCES_GRAPHITE_EVENTS_H
#define SOURCES_GRAPHITE_EVENTS_H

#include "agent/base/arena.h"
#include "agent/model/series.h"

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
	int64_t when;                            /* ms; first, for searching */
	size_t order;                            /* position in the answer */
	const char *values[GRAPHITE_ATTRIBUTES]; /* NULL if unknown */
};

struct graphite_events {
	struct graphite_event *items; /* by time, then by order; only those with an attribute */
	size_t count;
	size_t ignored;                        /* events without any attribute */
	size_t unusable;                       /* events that are no Unicode text */
	const struct deployments *deployments; /* the events as deployments */
	bool per_run;                          /* each event belongs to one point instead */
};

/*
 * Reads the answer of /events/get_data into the arena. An event needs only `when`; `data` may be
 * JSON text, Python's repr of the posted object, free text (ignored), or absent.
 */
bool graphite_events_read(struct arena *arena, const char *text, size_t length,
	struct graphite_events *out, struct error *error) MUST_USE;

/*
 * Adds a column to the axis for each attribute that an event gives to one of its points.
 *
 * Deployments: a point has branch, version and commit of the last event before the end of its
 * bucket, and the axis has the deployments. The run is only taken from events in the bucket.
 *
 * Per run: an event belongs to the point whose bucket [time, time + width) it is in; the last of
 * several counts.
 */
void graphite_events_match(const struct graphite_events *events, struct axis *axis, int64_t width,
	struct arena *arena);

#endif
