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

#include "agent/model/incident.h"

enum {
	INCIDENT_SHARE = 20,       /* percent of the unchanged series: fewer have a label that
				      tells */
	INCIDENT_SERIES_LEAST = 10 /* unchanged series; of fewer no label tells anything, and it is
				      enough that places overlap */
};

/* A change, and those of its labels ("service=checkout", "test[1]=checkout") that tell. */
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
 * Takes the next change, in the order of time, then id, that is told `now` (ms): into the incident
 * that it shares its cause with, which others may join for `interval` (ms) from now on, or into a
 * new one, in the arena. NULL: into none, as another message covers it, but no cluster here does.
 * Borrows the change.
 */
const struct incident *incident_take(struct arena *arena, struct incidents_open *open,
	const struct incident_change *change, int64_t now, int64_t interval);

/* Whether more of an incident makes another headline than what was told: a regression, or one that
 * is twice as large. */
bool incident_is_worse(const struct incident_worst *told, const struct incident_worst *more);

#endif
