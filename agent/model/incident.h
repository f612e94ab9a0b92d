/*
 * Changes that share a cause. A change is in one incident, for good; one that is held is in none.
 */
#ifndef AGENT_MODEL_INCIDENT_H
#define AGENT_MODEL_INCIDENT_H

#include "agent/base/error.h"
#include "agent/model/change_record.h"

/* The numbers are stored: never change them. */
enum incident_cause {
	INCIDENT_ALONE,       /* of one change, of whose cause nothing is known */
	INCIDENT_DEPLOYMENT,  /* a deployment or commit is in the range of each */
	INCIDENT_ENVIRONMENT, /* they are of one environment event */
	INCIDENT_CLUSTER,     /* they are those of a cluster */
	INCIDENT_LABEL,       /* their places overlap, and few other series have a label of them */
	INCIDENT_TIME,        /* their places overlap, and there are few other series */
	INCIDENT_CAUSES,
};

/* Reads "i12", or "12". */
bool incident_parse(const char *text, int64_t *id) MUST_USE;

/* By value: "alone", "deployment" ... */
extern const char *const incident_cause_names[INCIDENT_CAUSES];

struct incident {
	int64_t id;     /* that of the change that opened it; of an environment event: the event's
			 */
	int64_t opened; /* ms */
	int64_t joined; /* ms, when a change last joined it */
	int64_t until;  /* ms: open to further changes until then */
	enum incident_cause cause;
	const char *words; /* the cause: "4f2a91c", "service=checkout", "runner-7"; or "" */
};

/* The largest of a message's changes, as |size| in percent; 0: there is none. */
struct incident_worst {
	double regression, other;
};

/* An incident, and the change that opened it. */
struct opened_incident {
	struct incident incident;
	const struct change_record *first;
};

struct incident_rows {
	struct opened_incident *items;
	size_t count;
};

#endif
