/*
 * The delivery manager sends deliveries from the outbox.
 *
 * Each destination of each receiver has a delivery queue: one delivery at a time, in order, with
 * the notifier's spacing in between. A failing queue backs off, exponentially or as long as the
 * receiver asks, without delaying the others. The store records sent deliveries. A delivery that
 * cannot be sent within `give_up_after` is given up with a log entry; so is the oldest when a queue
 * is full.
 *
 * It reads what is queued from the store at each HINT_DELIVERIES. In a fleet the agent that holds a
 * receiver's shard sends its messages, also those queued by other agents.
 *
 * Receivers are known by name: after a reload a queue uses the new configuration, while an attempt
 * in progress finishes with the one it started with.
 */
#ifndef AGENT_DELIVER_DELIVERY_MANAGER_H
#define AGENT_DELIVER_DELIVERY_MANAGER_H

#include "agent/runtime/agent.h"

enum { DELIVERY_MANAGER_QUEUE = 1000 }; /* deliveries that may wait for one destination */

struct delivery_manager;

struct delivery_manager *delivery_manager_new(struct agent *agent);
void delivery_manager_free(struct delivery_manager *delivery_manager);

/* Adds deliveries that are queued in the store; copies them. Ignores those that it has, and in a
 * fleet those of receivers whose shard another agent holds. */
void delivery_manager_add(
	struct delivery_manager *delivery_manager, const struct delivery_rows *deliveries);

/* A destination of a receiver that had a delivery since this process began. Times: wall clock, ms;
 * 0: none. */
struct destination_state {
	const char *receiver, *destination;
	const char *state; /* "idle", "waiting", "sending", "retrying", "misconfigured",
			      "unknown receiver" */
	size_t waiting;
	int64_t since;       /* when the oldest that waits was made */
	int64_t next;        /* next attempt; 0: not known yet */
	int64_t attempts;    /* failed attempts of the oldest */
	int64_t sent;        /* the last delivery */
	int64_t failed;      /* last failed attempt, ... */
	const char *problem; /* ... and its problem; or NULL */
};

/* Calls back for each destination, in no particular order. */
void delivery_manager_each(const struct delivery_manager *delivery_manager,
	void (*call)(void *context, const struct destination_state *state), void *context);

#endif
