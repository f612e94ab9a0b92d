/*
 * What people read about a condition.
 */
#ifndef AGENT_MONITOR_CONDITION_TEXT_H
#define AGENT_MONITOR_CONDITION_TEXT_H

#include "agent/core/buf.h"
#include "agent/monitor/condition.h"

enum { CONDITION_TOLD_SINGLY = 5 }; /* tests of a source, before they are told together */

/* The data of a condition's test. */
struct condition_data {
	int64_t newest; /* ms, of the newest point that it ever had; WHEN_ALWAYS: none */
	int64_t limit;  /* ms, how long it may be without another; WHEN_NEVER */
};

/* Appends one sentence. */
void condition_text(const struct condition *condition, const struct outcome *outcome,
	const struct condition_data *data, struct buf *out);

/* Appends one sentence about the end of a condition whose test or source is not configured any
 * more. */
void condition_text_gone(const struct condition *condition, struct buf *out);

#endif
