/*
 * The incidents of the changes in a round of messages.
 */
#ifndef AGENT_NOTIFY_INCIDENTS_H
#define AGENT_NOTIFY_INCIDENTS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* Sets the query. */
void incidents_ask(const struct store_pending *pending, struct store_incidents *request);

/* Puts the records announced at `found->now`, or covered by other messages, into incidents, unless
 * they are in one; changed incidents are left in `found`. For any thread. */
void incidents_assign(
	struct store_pending *pending, struct store_incidents *found, const struct config *config);

/* The worst that the thread of such a message shows of its incident. */
struct incident_worst incidents_worst(
	const struct store_incidents *found, const struct incident_message *first);

/* The number of an event's changes announced to the destination before the event was found. */
size_t incidents_early(const struct store_incidents *found, int64_t event, const char *receiver,
	const char *destination);

/* Adds updates of incidents and of their changes to a store_queue, borrowed. */
void incidents_write(const struct store_pending *pending, const struct store_incidents *found,
	struct store_queue *request);

#endif
