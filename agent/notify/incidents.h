/*
 * The incidents of the changes that a round of messages tells.
 */
#ifndef AGENT_NOTIFY_INCIDENTS_H
#define AGENT_NOTIFY_INCIDENTS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* Whether a record that is not held is in no incident yet. */
bool incidents_wanted(const struct store_pending *pending);

/* Puts the records that are told at `found->now`, or that other messages cover, into incidents,
 * unless they are in one; those that it has changed are left in `found`. For any thread. */
void incidents_assign(
	struct store_pending *pending, struct store_incidents *found, const struct config *config);

/* Adds what is new of incidents and of their changes to a store_queue, borrowed. `found` may be
 * NULL. */
void incidents_write(const struct store_pending *pending, const struct store_incidents *found,
	struct store_queue *request);

#endif
