/* Events: of changes, and actions of users. */
#ifndef AGENT_MODEL_EVENT_H
#define AGENT_MODEL_EVENT_H

#include <stdint.h>

/* The author of an action, and the origin: "10.1.2.3", "unix socket", "Slack #perf", "command
 * line". */
struct actor {
	const char *person, *origin;
};

/* The numbers are stored: never change them. */
enum event_kind {
	EVENT_FOUND = 1, /* first seen: not stored, as the change's row has it */
	EVENT_CONFIRMED, /* a candidate was confirmed */
	EVENT_MOVED,
	EVENT_WITHDRAWN,
	EVENT_RETURNED,  /* found again after it was withdrawn */
	EVENT_ANNOUNCED, /* a message about it was delivered */
	EVENT_RECOVERED,
	EVENT_GROWN,     /* its size, or the number of a cluster's members, is another one */
	EVENT_CORRECTED, /* its suspects are others */
	EVENT_TRIAGED,   /* from here on the audit log: triage by a person */
	EVENT_REOPENED,  /* its triage is open again: it expired, or the change has grown */
	EVENT_SILENCED,  /* from here on not in the history of a change */
	EVENT_SILENCE_ENDED,
	EVENT_RUN,
	EVENT_RELOADED,
	EVENT_BISECTION_ASKED,
	EVENT_BISECTION_ENDED,
	EVENT_BISECTION_CANCELLED,
	EVENT_KINDS,
};

/* By kind: "found", "confirmed" ...; NULL for 0. */
extern const char *const event_names[EVENT_KINDS];

/* A row of the log, to which rows are only added: the history of changes, and the audit log of the
 * actions of users and of the agent itself. */
struct event {
	int64_t id, time; /* ms */
	enum event_kind kind;
	int64_t change;      /* id; 0: it is about none */
	int64_t point;       /* ms, the change's time at that moment */
	struct actor actor;  /* EVENT_ANNOUNCED: receiver and destination */
	const char *subject; /* of the audit log: its object, or NULL */
	const char *detail;  /* or NULL */
	/* When receivers of the change's messages are to be notified of it, ms; 0: they were, or
	 * are not. */
	int64_t due;
	const char *reason; /* why that waits, or why they were not; or NULL */
};

#endif
