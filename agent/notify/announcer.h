/*
 * The announcer holds what is new until its group is complete, and makes messages of it.
 *
 * What it is handed is in the store already, as pending. Once the messages are in the store's
 * outbox, they are the courier's.
 */
#ifndef AGENT_NOTIFY_ANNOUNCER_H
#define AGENT_NOTIFY_ANNOUNCER_H

#include "agent/notify/courier.h"
#include "agent/notify/environments.h"

struct announcer;

struct announcer *announcer_new(struct agent *agent, struct courier *courier);
void announcer_free(struct announcer *announcer);

/*
 * Takes over a request whose records are recorded; those with NEWS_PENDING will be told. They wait
 * for `group_wait` from the first on, in a single pass for announcer_flush. What its updates
 * withdraw meanwhile is not told.
 */
void announcer_add(struct announcer *announcer, struct store_request *records);

/* Takes up what the answer to STORE_RESTORE says was left over; owns it. What comes later may
 * belong to what was told, or still waits to be. */
void announcer_restore(struct announcer *announcer, struct store_request *restored);

/* Adds a filter, which is asked before those that are there; at most ANNOUNCER_FILTERS. The one of
 * environments is there from the beginning. */
enum { ANNOUNCER_FILTERS = 4 };
void announcer_filter(struct announcer *announcer, struct filter filter);

/* A filter may think otherwise from now on. */
void announcer_look(struct announcer *announcer);

/* What runs see of environments is for these. */
struct environments *announcer_environments(const struct announcer *announcer);

/* Makes messages of all that waits. */
void announcer_flush(struct announcer *announcer);

/*
 * Queues a notice to the receivers of those names; a name that is not configured is passed over.
 * With a condition that one is stored, or forgotten, in the same transaction: what is lost if the
 * program ends before is told by the next one. What is in the outbox is sent whatever happens.
 */
void announcer_notice(struct announcer *announcer, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition);

/* The same with whatever a STORE_QUEUE may write; takes the request over. */
void announcer_notice_storing(struct announcer *announcer, const struct notice *notice,
	const struct strings *receivers, struct store_request *request);

/* Says of changes that are withdrawn that they are, where they were told; see withdrawal.h. */
void announcer_withdrawn(struct announcer *announcer, const struct store_request *written);

#endif
