/*
 * The announcer holds what is new until its group is complete, and makes messages of it.
 *
 * What it is handed is in the store already, as pending. Once the messages are in the store's
 * outbox, they are the courier's.
 */
#ifndef AGENT_NOTIFY_ANNOUNCER_H
#define AGENT_NOTIFY_ANNOUNCER_H

#include "agent/notify/delivery_manager.h"
#include "agent/notify/environments.h"

struct dispatcher;

struct dispatcher *dispatcher_new(struct agent *agent, struct delivery_manager *delivery_manager);
void dispatcher_free(struct dispatcher *dispatcher);

/*
 * Takes over a request whose records are recorded; those with NOTIFY_PENDING will be told. They
 * wait for `group_wait` from the first on, in a single pass for dispatcher_flush. What its updates
 * withdraw meanwhile is not told.
 */
void dispatcher_add(struct dispatcher *dispatcher, struct store_request *records);

/* Takes up what the answer to STORE_RESTORE says was left over; owns it. What comes later may
 * belong to what was told, or still waits to be. */
void dispatcher_restore(struct dispatcher *dispatcher, struct store_request *restored);

/* Adds a filter, which is asked before those that are there; at most DISPATCHER_FILTERS. The one of
 * environments is there from the beginning. */
enum { DISPATCHER_FILTERS = 4 };
void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter);

/* A filter may think otherwise from now on. */
void dispatcher_look(struct dispatcher *dispatcher);

/* What runs see of environments is for these. */
struct environments *dispatcher_environments(const struct dispatcher *dispatcher);

/* Makes messages of all that waits. */
void dispatcher_flush(struct dispatcher *dispatcher);

/*
 * Queues a notice to the receivers of those names; a name that is not configured is passed over.
 * With a condition that one is stored, or forgotten, in the same transaction: what is lost if the
 * program ends before is told by the next one. What is in the outbox is sent whatever happens.
 */
void dispatcher_notice(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition);

/* The same with whatever a STORE_QUEUE may write; takes the request over. */
void dispatcher_notice_storing(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, struct store_request *request);

/* Says of changes that are withdrawn that they are, where they were told; see retraction.h. */
void dispatcher_withdrawn(struct dispatcher *dispatcher, const struct store_request *written);

#endif
