/*
 * The dispatcher takes new changes, asks the filters, waits until their group is complete, and has
 * messages written.
 *
 * It is handed changes that the store has recorded as pending. Once their messages are in the
 * store's outbox, the delivery manager takes over.
 */
#ifndef AGENT_NOTIFY_DISPATCHER_H
#define AGENT_NOTIFY_DISPATCHER_H

#include "agent/notify/delivery_manager.h"
#include "agent/notify/environments.h"

struct dispatcher;

struct dispatcher *dispatcher_new(struct agent *agent, struct delivery_manager *delivery_manager);
void dispatcher_free(struct dispatcher *dispatcher);

/*
 * Takes over a stored request; its records with NOTIFY_PENDING are announced `group_wait` after the
 * first of them, in a single pass by dispatcher_flush. Changes that its updates withdraw in the
 * meantime are not announced.
 */
void dispatcher_add(struct dispatcher *dispatcher, struct store_record *recorded);

/* Resumes from the reply to store_restore, which it takes over: pending changes, and recent
 * messages that later changes may continue. */
void dispatcher_restore(struct dispatcher *dispatcher, struct store_restore *restored);

/* Adds a filter, at most DISPATCHER_FILTERS; it is asked before the earlier ones. The environment
 * filter is always there. */
enum { DISPATCHER_FILTERS = 4 };
void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter);

/* Asks the filters again; call when a filter's answers may have changed. */
void dispatcher_look(struct dispatcher *dispatcher);

/* For the monitor, which reports to it what each run saw. */
struct environments *dispatcher_environments(const struct dispatcher *dispatcher);

/* Announces all waiting changes. */
void dispatcher_flush(struct dispatcher *dispatcher);

/*
 * Queues a notice to the named receivers; names that are not configured are skipped. A condition is
 * stored, or deleted, in the same transaction, so that a crash before it loses neither and the next
 * process sends the notice.
 */
void dispatcher_notice(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition);

/* The same with any store_queue, which it takes over. */
void dispatcher_notice_storing(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request);

/* Sends retractions to the threads of the messages that announced withdrawn changes. */
void dispatcher_withdrawn(struct dispatcher *dispatcher, const struct delivery_rows *retractions);

#endif
