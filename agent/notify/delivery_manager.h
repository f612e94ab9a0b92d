/*
 * The courier carries parcels out of the outbox.
 *
 * Each destination of each receiver has a lane: one parcel at a time, in order, with the receiver's
 * spacing between two posts. A lane that fails waits, longer each time or as long as the receiver
 * says, and holds up no other. What was sent is settled in the store; what cannot be sent within
 * `give_up_after` is given up, and said to be, and so is the oldest of too many that wait.
 *
 * Receivers are known by name: after a reload a lane goes on with what the configuration says now,
 * a post that is under way with what it began with.
 */
#ifndef AGENT_NOTIFY_COURIER_H
#define AGENT_NOTIFY_COURIER_H

#include "agent/notify/threads.h"
#include "agent/runtime/agent.h"

enum { DELIVERY_MANAGER_QUEUE = 1000 }; /* parcels that wait for one destination */

struct delivery_manager;

struct delivery_manager *delivery_manager_new(struct agent *agent);
void delivery_manager_free(struct delivery_manager *delivery_manager);

/* Takes over a parcel that is queued in the store; its content is copied. */
void delivery_manager_add(
	struct delivery_manager *delivery_manager, const struct delivery *delivery);

/* To be called when the configuration is another. */
void delivery_manager_adopt(struct delivery_manager *delivery_manager);

/* `orphaned` is called when there are parcels whose receiver is not configured; `late` with the
 * store's answer when a message has told what was withdrawn before it was sent. */
void delivery_manager_listen(struct delivery_manager *delivery_manager,
	void (*orphaned)(void *context),
	void (*late)(void *context, const struct store_request *settled), void *context);

/* Moves these parcels, with what the problem is, to the request. */
void delivery_manager_orphans(
	struct delivery_manager *delivery_manager, struct store_request *request);

/* What was told lately; the courier keeps its receipts. */
struct threads *delivery_manager_threads(struct delivery_manager *delivery_manager);

/* Sets the gauges of the queues. */
void delivery_manager_collect(struct delivery_manager *delivery_manager);

#endif
