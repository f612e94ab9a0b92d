/*
 * Filters decide whether a change is announced, held back or suppressed.
 *
 * The dispatcher applies them in order; each sees the records that all earlier ones passed. Held
 * records are read and judged again in each round, so a filter must key its own data by the
 * change's id, not by the record's address.
 */
#ifndef AGENT_RUNTIME_FILTER_H
#define AGENT_RUNTIME_FILTER_H

#include "agent/decide/decision.h"
#include "agent/model/change_record.h"

struct filter {
	const char *name;
	/* Optional: the records of the next round, valid until its end. */
	void (*begin)(void *context, struct change_record *const *records, size_t count);
	/* HOLD: it keeps waiting; DROP: another message covers it, and it counts as announced. May
	 * set the record's environment_event. */
	struct decision (*judge)(void *context, struct change_record *record);
	void *context;
};

#endif
