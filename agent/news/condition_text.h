/*
 * What people read about a condition.
 */
#ifndef AGENT_CONDITION_TEXT_H
#define AGENT_CONDITION_TEXT_H

#include "agent/core/buf.h"
#include "agent/news/condition.h"

enum { CONDITION_TOLD_SINGLY = 5 }; /* tests of a source, before they are told together */

/* Appends one sentence. `newest` is the time of the newest point that the test ever had, ms;
 * WHEN_ALWAYS: none. */
void condition_text(const struct condition *condition, const struct outcome *outcome,
	int64_t newest, struct buf *out);

/* Appends one sentence about the end of a condition whose test or source is not configured any
 * more. */
void condition_text_gone(const struct condition *condition, struct buf *out);

#endif
