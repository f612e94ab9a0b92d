/*
 * Deliveries of the outbox in memory, and their records in the store.
 *
 * The store records an attempt before it begins, since from then on the message may arrive; a
 * delivery that was sent or given up is kept until the store has recorded that. Payloads are
 * fetched when their turn comes, so that a receiver that is down for a day costs little memory.
 */
#ifndef AGENT_DELIVER_OUTBOX_H
#define AGENT_DELIVER_OUTBOX_H

#include "agent/fleet/fleet.h"

enum { OUTBOX_SENT = 1000 };

/* Its agent is set, all else is zero. */
struct outbox {
	struct agent *agent;
	struct outgoing *unsettled; /* sent or given up, not yet recorded */
	struct outgoing *settling;  /* being recorded */
	struct outgoing *sent;      /* sent, but lost to another agent before it was recorded: the
				       last OUTBOX_SENT */
};

struct outgoing {
	struct arena *arena;
	struct outbox *outbox;
	struct delivery delivery;      /* payload: NULL until the first attempt */
	const struct excerpted *worst; /* of its changes, for pictures; NULL: none */
	struct error *failure; /* of the last failed attempt: delivery.problem; NULL before */
	const char *what;      /* its changes, for the log; NULL until they are known */
	enum maybe_delivered maybe_delivered;
	int64_t made;             /* ms */
	int64_t not_before;       /* engine_now, of the next attempt */
	int64_t since;            /* engine_now of the first attempt, for failed_attempt.trying */
	int64_t tries;            /* by this process */
	bool begun;               /* the store has recorded the attempt */
	bool withdrawn, accepted; /* of one that the store gave up: some of its changes were */
	bool lost;                /* in a fleet: its receiver is another agent's now */
	bool rerouted;            /* given up, and its changes are announced to other receivers */
	struct outgoing *next;
};

void outbox_close(struct outbox *outbox); /* frees its content */

/* In a fleet: other agents have these receivers now. Sent deliveries that can no longer be recorded
 * as sent are remembered for a while. */
void outbox_lose(struct outbox *outbox, const struct fleet_shards *shards);

/* Whether a delivery that the store lists as queued is being recorded as settled here; starts to
 * record it if this agent remembers sending it. */
bool outbox_has(struct outbox *outbox, int64_t delivery);

/* A copy of the delivery without its payload. One that was restored in the middle of an attempt
 * waits until a message that did arrive is visible. */
struct outgoing *outgoing_new(struct outbox *outbox, const struct delivery *delivery);
void outgoing_free(struct outgoing *deliveries); /* linked by next */

/* Takes over a delivery that was lost during its attempt, and whether it was sent. */
void outgoing_lose(struct outgoing *outgoing, bool sent);

/* Takes over the delivery and records its final state, retrying until the store has it. */
void outgoing_settle(struct outgoing *outgoing, enum delivery_state state);

/* The same for one that is given up as its receiver is gone: its changes become pending again, for
 * the receivers that are configured. */
void outgoing_reroute(struct outgoing *outgoing, const char *problem);

/* Records the receipt, the number of attempts, whether the last one may have arrived, and the pause
 * that the receiver requested. Losing this costs a check, or an attempt that comes too early. */
void outgoing_note(const struct outgoing *outgoing);

/* Takes over the answer when the store has recorded that an attempt begins. It is not `begun` if it
 * is not in the store any more; or only has withdrawn changes, and is DELIVERY_ABANDONED. */
void outgoing_begun(struct outgoing *outgoing, const struct store_attempt *request);

#endif
