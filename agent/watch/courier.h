/*
 * The courier carries parcels out of the outbox.
 *
 * Each destination of each receiver has a lane: one parcel at a time, in order, with the receiver's
 * spacing between two. A lane that fails waits, longer each time or as long as the receiver says,
 * and holds up no other. What was sent is settled in the store; what cannot be sent in a day
 * of trying is given up, and said to be.
 */
#ifndef AGENT_COURIER_H
#define AGENT_COURIER_H

#include "agent/watch/agent.h"

struct courier;

struct courier *courier_new(struct agent *agent);
void courier_free(struct courier *courier);

/* Takes over a parcel that is queued in the store; its content is copied. */
void courier_add(struct courier *courier, const struct parcel *parcel);

/* Sets the gauges of the queues. */
void courier_collect(struct courier *courier);

#endif
