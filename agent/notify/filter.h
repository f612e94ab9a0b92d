/*
 * Filters: who may hold a change back, or tell it otherwise, before it is announced.
 *
 * The announcer asks them one after the other about what is to be told, each about those that all
 * before it let pass. It asks again about those that wait.
 */
#ifndef AGENT_NOTIFY_FILTER_H
#define AGENT_NOTIFY_FILTER_H

#include "agent/store/store.h"

enum filter_verdict {
	FILTER_PASS,
	FILTER_HOLD,     /* not yet */
	FILTER_SUPPRESS, /* something else tells it: it counts as told */
};

struct filter {
	const char *name;
	/* Optional: all that it is asked about next, until the end of that round. */
	void (*begin)(void *context, struct change_record *const *records, size_t count);
	/* May set the record's environment_event. `reason`: why, a literal; as it was where there
	 * is none. */
	enum filter_verdict (*judge)(
		void *context, struct change_record *record, const char **reason);
	void *context;
};

#endif
