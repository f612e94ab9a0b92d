/*
 * A lane of the courier's: one destination of one receiver, and the messages for it in order.
 *
 * One message is under way at a time, with the receiver's spacing between two. A lane that fails
 * waits, as retry_policy.h says; one whose receiver, or its destination, is not configured any more
 * keeps its messages for a while and then hands them back.
 */
#ifndef AGENT_NOTIFY_LANE_H
#define AGENT_NOTIFY_LANE_H

#include "agent/engine/timers.h"
#include "agent/notify/outbox.h"
#include "agent/notify/threads.h"
#include "agent/runtime/agent.h"

struct delivery_queue {
	struct agent *agent;
	struct threads *threads;
	/* Takes over a message that nobody will carry, and its content is gone from it. */
	void (*orphan)(void *context, struct outgoing *outgoing);
	void *context;
	const char *receiver, *destination;
	struct outgoing *first, **last;
	size_t count;
	const struct notifier *notifier;
	struct config_ref *config_ref; /* of the delivery, while busy */
	struct attempt attempt;        /* of the first letter, while busy */
	bool busy;                     /* the first letter is being fetched or sent */
	bool noticed;
	bool left;  /* for the next run, as its receiver wants to be left alone for so long */
	bool known; /* its receiver has this destination */
	uint64_t fingerprint; /* of the receiver, as the last delivery knew it */
	bool mendable;        /* it waits for somebody to mend something, ... */
	bool own_wait;        /* ... or for as long as we chose, not the receiver */
	bool missing;         /* its receiver is not configured, or not with its destination, ... */
	int64_t missing_since; /* ... from then on, as far as its messages know */
	int64_t not_before;    /* engine_now */
	struct alarm alarm;    /* when to look again */
	struct delivery_queue *next;
};

/* Makes a lane of one whose agent, threads, orphan, receiver and destination are set, all else
 * being zero. It must live as long as the engine. */
void delivery_queue_open(struct delivery_queue *queue);

/* Frees what it holds; its delivery must not be the engine's any more. */
void delivery_queue_close(struct delivery_queue *queue);

/* Takes over a message, and drops the one that waits longest if there are too many. */
void delivery_queue_add(struct delivery_queue *queue, struct outgoing *outgoing);

/* The agent has another configuration. */
void delivery_queue_adopt(struct delivery_queue *queue);

#endif
