/*
 * Filters decide whether a change is announced, held back or suppressed.
 *
 * The dispatcher asks them in order; each sees the records that all earlier ones passed. Held
 * records are read and judged again in each round, so a filter must key its own data by the
 * change's id, not by the record's address.
 */
#ifndef AGENT_NOTIFY_FILTER_H
#define AGENT_NOTIFY_FILTER_H

#include "agent/store/store.h"

enum filter_verdict {
	FILTER_PASS,
	FILTER_HOLD,     /* keep waiting */
	FILTER_SUPPRESS, /* another message covers it: it counts as announced */
};

struct filter {
	const char *name;
	/* Optional: the records of the next round, valid until its end. */
	void (*begin)(void *context, struct change_record *const *records, size_t count);
	/* May set the record's environment_event. `reason`: set to a literal, or left as it is. */
	enum filter_verdict (*judge)(
		void *context, struct change_record *record, const char **reason);
	void *context;
	/* Optional: what a run has recorded, before any round with it. */
	void (*note)(void *context, const struct record_rows *records);
};

#endif
