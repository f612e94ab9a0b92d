/*
 * Graphite and servers with its render API.
 */
#ifndef SOURCES_GRAPHITE_GRAPHITE_H
#define SOURCES_GRAPHITE_GRAPHITE_H

#include "sources/source.h"

struct graphite_options {
	const char *prefix, *branch_prefix; /* precede the metrics' suffixes */
	const char *target;                 /* an expression instead of a prefix */
	int64_t range;                      /* ms before the end, if no --since is given */
	int events;                         /* enum graphite_event_mode */
};

/* Whether an event applies to everything measured from then on, or to one result. */
enum graphite_event_mode { EVENTS_DEPLOYMENTS, EVENTS_PER_RUN };

extern const struct source graphite_source;

#endif
