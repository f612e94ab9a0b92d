/*
 * Graphite's events: what was published about the runs whose results are in the series, and which
 * point belongs to which event.
 */
#ifndef SOURCES_GRAPHITE_EVENTS_H
#define SOURCES_GRAPHITE_EVENTS_H

#include "agent/core/arena.h"
#include "agent/core/series.h"

enum { GRAPHITE_ATTRIBUTES = 4 };

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
	size_t silent; /* events that say nothing about any attribute */
};

/*
 * Reads the answer of /events/get_data into the arena. Of an event only `when` is needed; `data`
 * may be JSON text, Python's repr of what was posted, free text (which says nothing), or nothing.
 */
bool graphite_events_read(struct arena *arena, const char *text, size_t length,
	struct graphite_events *out, struct error *error) MUST_USE;

/*
 * Gives the axis a column for each attribute that an event says of one of its points. An event
 * belongs to the point whose bucket [time, time + width) it is in; the last of several wins. The
 * width is the resolution of the points: `step` (ms, 0 if unknown), or more where all of them lie
 * farther apart, at round times, as the points of nightly runs do.
 */
void graphite_events_match(
	const struct graphite_events *events, struct axis *axis, int64_t step, struct arena *arena);

#endif
