/*
 * The deliveries for one destination of one receiver, sent in order.
 *
 * One delivery is in progress at a time, with the notifier's spacing in between. A failing queue
 * backs off as retry_policy.h says. A queue whose receiver or destination is no longer configured
 * keeps its deliveries for a while, then hands them back through `orphan`.
 */
#ifndef AGENT_NOTIFY_DELIVERY_QUEUE_H
#define AGENT_NOTIFY_DELIVERY_QUEUE_H

#include "agent/engine/timers.h"
#include "agent/notify/outbox.h"
#include "agent/notify/threads.h"
#include "agent/runtime/agent.h"

struct delivery_queue {
	struct agent *agent;
	struct threads *threads;
	/* Takes over a delivery that has no receiver any more; its content is freed. */
	void (*orphan)(void *context, struct outgoing *outgoing);
	void *context;
	const char *receiver, *destination;
	struct outgoing *first, **last;
	size_t count;
	const struct notifier *notifier;
	struct config_ref *config_ref; /* of the attempt, while busy */
	struct attempt attempt;        /* of the first delivery, while busy */
	bool busy;                     /* the first delivery is being fetched or sent */
	bool noticed;
	bool deferred;            /* to the next process; in a single pass only */
	bool known;               /* the receiver's configuration has this destination */
	uint64_t fingerprint;     /* of the receiver's configuration at the last attempt */
	bool waits_for_config;    /* waits for a change of the configuration, ... */
	bool own_backoff;         /* ... or for our own backoff, not the receiver's */
	bool unroutable;          /* receiver or destination is not configured, ... */
	int64_t unroutable_since; /* ... since then, as far as its deliveries know */
	int64_t not_before;       /* engine_now */
	struct alarm alarm;       /* of the next attempt */
	struct delivery_queue *next;
};

/* Initialises a queue whose agent, threads, orphan, receiver and destination are set and all else
 * is zero. It must live as long as the engine. */
void delivery_queue_open(struct delivery_queue *queue);

/* Frees its content; the engine must have let go of its attempt. */
void delivery_queue_close(struct delivery_queue *queue);

/* Takes over a delivery; if the queue is full, gives up the oldest. */
void delivery_queue_add(struct delivery_queue *queue, struct outgoing *outgoing);

/* Call after a configuration reload. */
void delivery_queue_adopt(struct delivery_queue *queue);

#endif
