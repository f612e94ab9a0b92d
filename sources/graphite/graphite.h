/*
 * Graphite, and what speaks its render API.
 */
#ifndef SOURCES_GRAPHITE_GRAPHITE_H
#define SOURCES_GRAPHITE_GRAPHITE_H

#include "sources/source.h"

struct graphite_options {
	const char *prefix, *branch_prefix; /* before the metrics' suffixes */
	const char *target;                 /* an expression, instead of a prefix */
	int64_t range; /* ms; how far back from the end, where no since is asked for */
	int events;    /* enum graphite_event_mode */
};

/* Of what an event tells: of all that is measured from then on, or of one result. */
enum graphite_event_mode { EVENTS_DEPLOYMENTS, EVENTS_PER_RUN };

extern const struct source graphite_source;

#endif
