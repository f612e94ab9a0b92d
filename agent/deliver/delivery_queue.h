/*
 * The deliveries for one destination of one receiver, sent in order.
 *
 * One delivery is in progress at a time, with the notifier's spacing in between. A failing queue
 * backs off as agent/decide/retry.h says. A queue whose receiver or destination is no longer
 * configured keeps its deliveries for a while, then gives them up: their changes are announced to
 * the other receivers.
 *
 *   any that waits   its receiver or destination is gone      UNROUTABLE
 *   UNROUTABLE       they are back, or nothing is left        WAITING
 *   any that waits   there is a delivery, and it is time      RECORDING, the first time; SENDING
 *   RECORDING        the store has the attempt                SENDING
 *   RECORDING        it has not; nothing is left to send      WAITING
 *   SENDING          sent; given up; the receiver says when   WAITING
 *   SENDING          failed                                   BACKING_OFF
 *   SENDING          failed, the configuration is wrong       MISCONFIGURED
 *   any              a single pass would wait for too long    DEFERRED
 */
#ifndef AGENT_DELIVER_DELIVERY_QUEUE_H
#define AGENT_DELIVER_DELIVERY_QUEUE_H

#include "agent/deliver/outbox.h"
#include "agent/io/timers.h"
#include "agent/runtime/agent.h"

enum queue_state {
	QUEUE_WAITING,       /* for a delivery, and for `not_before` */
	QUEUE_BACKING_OFF,   /* the same, until its receiver's configuration changes */
	QUEUE_MISCONFIGURED, /* the same, until the configuration changes */
	QUEUE_RECORDING,     /* the store records that the first delivery's attempt begins */
	QUEUE_SENDING,       /* the attempt is in progress */
	QUEUE_UNROUTABLE,    /* receiver or destination is not configured */
	QUEUE_DEFERRED,      /* left to the next process; in a single pass only */
};

struct delivery_queue {
	struct agent *agent;
	const char *receiver, *destination;
	struct outgoing *first, **last;
	size_t count;
	enum queue_state state;
	int64_t not_before; /* engine_now, of the next attempt */
	int64_t orphan_at;  /* engine_now, while QUEUE_UNROUTABLE */
	struct alarm alarm; /* for the one that it waits for */
	/* Of the attempt, while QUEUE_SENDING; the fingerprint is that of the last attempt's
	 * receiver. */
	const struct notifier *notifier;
	struct config_ref *config_ref;
	struct attempt attempt;
	uint64_t fingerprint;
	bool noticed; /* the receiver's notice was logged */
	/* Shown to users, since the process started: wall clock, ms; 0: never. */
	int64_t sent, failed;  /* last delivery sent, last failed attempt */
	struct error *trouble; /* of the last failure, NULL before; owned */
	struct delivery_queue *next;
};

/* Initialises a queue whose agent, receiver and destination are set and all else is zero. It must
 * live as long as the engine. */
void delivery_queue_open(struct delivery_queue *queue);

/* Frees its content; the engine must have let go of its attempt. */
void delivery_queue_close(struct delivery_queue *queue);

/* Takes over a delivery; if the queue is full, gives up the oldest. */
void delivery_queue_add(struct delivery_queue *queue, struct outgoing *outgoing);

/* Whether the delivery is in the queue. One that was lost while in progress belongs to this agent
 * again. */
bool delivery_queue_has(struct delivery_queue *queue, int64_t delivery);

/* In a fleet: another agent has its receiver now. The attempt in progress completes, but its result
 * is not recorded. */
void delivery_queue_lose(struct delivery_queue *queue);

/* In a fleet: whether an attempt is in progress, or this agent keeps its receiver's pace. */
bool delivery_queue_is_busy(const struct delivery_queue *queue);

/* Call after a configuration reload. */
void delivery_queue_adopt(struct delivery_queue *queue);

#endif
