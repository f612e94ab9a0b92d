/*
 * Which incident a change joins, or that it opens one.
 *
 * A change joins the latest of the incidents whose first change shares its cause, while others may
 * join: a deployment or commit that is in the range of both; the same cluster; or places that
 * overlap in time, and a label in common that few unchanged series have. An environment event is an
 * incident of its own: all of its changes are in it, whenever they come, and no others. A cluster
 * always opens one. Incidents never merge, and a change is compared with the first one alone, so
 * that a chain of neighbours does not grow into a month.
 */
#ifndef AGENT_DECIDE_INCIDENT_H
#define AGENT_DECIDE_INCIDENT_H

#include "agent/decide/decision.h"
#include "agent/model/incident.h"

enum {
	INCIDENT_SHARE = 20,       /* percent of the unchanged series: the most that may share a
				      significant label */
	INCIDENT_SERIES_LEAST = 10 /* unchanged series; with fewer no label is significant, and
				      overlapping places suffice */
};

/* A change and its significant labels ("service=checkout", "test[1]=checkout"). */
struct incident_change {
	const struct change_record *record;
	struct strings labels;
};

struct incident_open {
	struct incident incident;
	struct incident_change first;
	bool changed; /* by incident_take */
};

struct incidents_open {
	struct incident_open *items;
	size_t count;
	bool few; /* unchanged series: less than INCIDENT_SERIES_LEAST */
};

/*
 * Adds the next change announced at `now` (ms), in the order of time, then id, to the incident with
 * the same cause, which stays open to others for `interval` (ms), or to a new one in the arena.
 * NULL: to none, as a message about something else than a cluster of this round covers it. Borrows
 * the change.
 */
const struct incident *incident_take(struct arena *arena, struct incidents_open *open,
	const struct incident_change *change, int64_t now, int64_t interval);

/* Whether a new change of an incident deserves a new headline: a first regression, or one twice as
 * large. */
bool incident_is_worse(const struct incident_worst *told, const struct incident_worst *more);

/* Changes that have joined an incident of which a receiver for people, without threads, has been
 * told. */
struct incident_joiners {
	struct incident_worst told, more; /* what it was told; those that have joined */
	int64_t last;                     /* ms, its last message about the incident */
	int64_t interval;                 /* ms between two that tell nothing worse */
	bool ends;                        /* it is told an end of the incident now */
};

/* The reason of a HOLD of incident_gather. */
extern const char *const incident_gathered;

/* HOLD: it gets them together, once there is something worse, an end, or after `interval`. */
struct decision incident_gather(const struct incident_joiners *joiners, int64_t now);

#endif
