/*
 * The incidents of the changes in a round of messages.
 */
#ifndef AGENT_NOTIFY_INCIDENTS_H
#define AGENT_NOTIFY_INCIDENTS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* How long others may join the record's incident after it. ms */
int64_t incidents_interval(const struct config *config, const struct change_record *record);

/* Sets the query. */
void incidents_ask(const struct store_pending *pending, struct store_incidents *request);

/* Puts the records announced at `found->now`, or covered by other messages, into incidents, unless
 * they are in one, and has the queue write the incidents that have changed, and those of their
 * changes; it borrows them. Those that inherit the triage of their incident become covered. For any
 * thread. */
void incidents_assign(struct store_pending *pending, const struct store_incidents *found,
	const struct config *config, struct store_queue *queue);

#endif
