/* The audit log: those events that are actions. */
#ifndef AGENT_STORE_EVENTS_H
#define AGENT_STORE_EVENTS_H

#include "agent/model/event.h"
#include "agent/store/call.h"

/* The audit log, latest first. Delays no other call. */
struct store_audit {
	struct store_call call;
	int64_t since;     /* ms */
	int64_t before_id; /* only entries with a smaller id; 0: all */
	int64_t limit;     /* 0: none */
	int64_t change;    /* id; 0: all */

	struct event *entries; /* out */
	size_t entry_count;
	bool more; /* out: more entries than the limit */
};

STORE_CALL(audit);

struct store_audit_add {
	struct store_call call;
	struct event entry; /* without id */
};

STORE_CALL(audit_add);

#endif
