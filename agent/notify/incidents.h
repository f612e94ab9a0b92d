/*
 * The incidents of the changes that a round of messages tells.
 */
#ifndef AGENT_NOTIFY_INCIDENTS_H
#define AGENT_NOTIFY_INCIDENTS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* Puts the records that are told now (ms), or that other messages cover, into incidents, unless
 * they are in one. For any thread. */
void incidents_assign(struct store_pending *pending, const struct config *config, int64_t now);

/* Adds what is new of incidents and of their changes to a store_queue, borrowed. */
void incidents_write(const struct store_pending *pending, struct store_queue *request);

#endif
