/*
 * Confirmation: passes the candidates of a run to agent/decide/confirm.h, and updates their
 * records.
 */
#ifndef AGENT_MONITOR_CONFIRMATION_H
#define AGENT_MONITOR_CONFIRMATION_H

#include "agent/decide/confirm.h"
#include "agent/monitor/news.h"
#include "sources/source.h"

struct candidate {
	struct change_record *record; /* as written if confirmed; one of the request's records */
	const struct change_record *known; /* the candidate as recorded before; NULL: it is new */
	struct confirm_case *at;
	struct realignment *realignment; /* of its series */
	size_t first_count;              /* points that followed its place when it was first seen */
};

struct candidates {
	struct candidate *items;
	struct confirm_case *cases; /* of these, in the same order */
	size_t count;
};

/* Adds a notice to the query that with so few series the share has no effect beyond the detector's
 * p_value. */
void confirmation_notice(const struct test *test, struct query *query);

/* Decides about the candidates, removes records that need not be written from the request, adds
 * updates, for which it must have room, and counts both. */
void confirmation_write(const struct analysis *analysis, const struct candidates *candidates,
	struct store_record *request, struct news_tally *tally);

#endif
