/*
 * The incidents of the changes that a round of messages tells.
 */
#ifndef AGENT_NOTIFY_INCIDENTS_H
#define AGENT_NOTIFY_INCIDENTS_H

#include "agent/store/store.h"
#include "conf/config.h"

/* Sets what is to be read if any of the records is told; returns whether one is. */
bool incidents_ask(const struct store_pending *pending, struct store_incidents *request);

/* Puts the records that are told at `found->now`, or that other messages cover, into incidents,
 * unless they are in one; those that it has changed are left in `found`. For any thread. */
void incidents_assign(
	struct store_pending *pending, struct store_incidents *found, const struct config *config);

/* Whether a message that shows this change may be continued. */
struct continued {
	bool (*accepts)(void *context, const struct change_record *first);
	void *context;
};

/* The latest message of the receiver and destination about one of the records' incidents, while
 * others may join that; no reply to another message. `continued` may be NULL: any. NULL: there is
 * none. For any thread. */
const struct incident_message *incidents_message(const struct store_incidents *found,
	const char *receiver, const char *destination, const struct change_record *const *records,
	size_t count, const struct continued *continued);

/* The worst that the thread of such a message shows of its incident. */
struct incident_worst incidents_worst(
	const struct store_incidents *found, const struct incident_message *first);

/* How many of an event's changes the destination was told before the event was found. */
size_t incidents_early(const struct store_incidents *found, int64_t event, const char *receiver,
	const char *destination);

/* Adds what is new of incidents and of their changes to a store_queue, borrowed. `found` may be
 * NULL. */
void incidents_write(const struct store_pending *pending, const struct store_incidents *found,
	struct store_queue *request);

#endif
