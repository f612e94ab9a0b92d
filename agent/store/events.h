/* The log of events: what happened to changes, and what people and the agent did. */
#ifndef AGENT_STORE_EVENTS_H
#define AGENT_STORE_EVENTS_H

#include "agent/store/call.h"

/* What happens to a change. */
enum event_kind {
	EVENT_FOUND = 1, /* first seen */
	EVENT_CONFIRMED, /* a candidate was confirmed */
	EVENT_MOVED,
	EVENT_WITHDRAWN,
	EVENT_RETURNED,  /* found again after it was withdrawn */
	EVENT_ANNOUNCED, /* a message about it was delivered */
	EVENT_RECOVERED,
	EVENT_STORED,                 /* those before it; the audit log has the others: */
	EVENT_TRIAGED = EVENT_STORED, /* a person said something about it */
	EVENT_REOPENED, /* its triage is open again: it expired, or the change has grown */
	EVENT_KINDS,
};

/* By kind: "found", "confirmed" ...; NULL for 0. */
extern const char *const event_names[EVENT_KINDS];

struct event {
	enum event_kind kind;
	int64_t time;  /* ms, when it happened */
	int64_t point; /* ms, the change's time at that moment */
	union {
		const char *receiver; /* EVENT_ANNOUNCED; else NULL */
		const char *person;   /* EVENT_TRIAGED, EVENT_REOPENED: who, ... */
	};
	union {
		const char *destination; /* EVENT_ANNOUNCED; else NULL */
		const char *origin;      /* ... from where, ... */
	};
	const char *detail; /* ... and what; else NULL */
};

/* Who does something, from where: "10.1.2.3", "unix socket", "Slack #perf", "command line". */
struct actor {
	const char *person, *origin;
};

/* A row of the audit log: what a person, or the agent itself, has changed. The log is also the
 * history of triage. */
struct audit_entry {
	int64_t id, time; /* ms */
	struct actor actor;
	const char *action;  /* "triage", "reopen", "silence", "end silence", "run", "reload" */
	int64_t change;      /* id; 0: it is about none */
	const char *subject; /* what it is about, or NULL */
	const char *detail;  /* or NULL */
};

/* The audit log, latest first. Delays no other call. */
struct store_audit {
	struct store_call call;
	void (*reply)(struct store_audit *list);
	int64_t since;     /* ms */
	int64_t before_id; /* only entries with a smaller id; 0: all */
	int64_t limit;     /* 0: none */
	int64_t change;    /* id; 0: all */

	struct audit_entry *entries; /* out */
	size_t entry_count;
	bool more; /* out: more entries than the limit */
};

STORE_CALL(audit);

struct store_audit_add {
	struct store_call call;
	void (*reply)(struct store_audit_add *added);
	struct audit_entry entry; /* without id */
};

STORE_CALL(audit_add);

#endif
