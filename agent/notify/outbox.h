/*
 * Letters: parcels of the outbox as the courier carries them, and what the store is told of them.
 *
 * The store has the last word: before a letter is carried the store writes down that it may arrive
 * from now on, and one that was carried out is kept until the store knows it. A letter that waits
 * has no payload in memory; it is fetched when its turn comes, so that a receiver that is dead for
 * a day costs little.
 */
#ifndef AGENT_NOTIFY_OUTBOX_H
#define AGENT_NOTIFY_OUTBOX_H

#include "agent/runtime/agent.h"

struct outbox;

struct outgoing {
	struct arena *arena;
	struct outbox *outbox;
	struct delivery delivery; /* its payload is NULL until its first attempt */
	struct error *failure;    /* of the last attempt that failed: parcel.problem; NULL before */
	const char *what;         /* the changes in it, for people; NULL until they are known */
	enum maybe_delivered maybe_delivered;
	int64_t made;       /* ms */
	int64_t not_before; /* engine_now, when it may be tried */
	int64_t since;      /* engine_now, for setback.trying; from its first try on */
	int64_t tries;      /* of this process */
	bool begun;         /* the store knows that an attempt begins */
	struct outgoing *next;
};

struct outbox *outbox_new(struct agent *agent);
void outbox_free(struct outbox *outbox);

/* `late` is called with what the store answers when a letter that was sent has told changes which
 * were withdrawn in the meantime. */
void outbox_listen(struct outbox *outbox,
	void (*late)(void *context, const struct store_request *settled), void *context);

/* A copy of the parcel, its payload excepted. One that was restored in the middle of an attempt is
 * not tried before what may have arrived can show. */
struct outgoing *outgoing_new(struct outbox *outbox, const struct delivery *delivery);
void outgoing_free(struct outgoing *letters); /* linked by next */

/* Takes the letter over and sees to it that the store knows what became of it. */
void outgoing_settle(struct outgoing *outgoing, enum delivery_state state);

/* Writes down the receipt, the attempts so far, and what the last one left behind: whether it may
 * have arrived, and how long its receiver wants to be left alone. Losing that costs a look at what
 * is there, or an attempt too early. */
void outgoing_note(const struct outgoing *outgoing);

/* Has the store write down that an attempt begins, and fetches the payload, then calls back: false
 * if the store could not. A payload that is NULL then is not in the store; a letter that is
 * DELIVERY_ABANDONED has nothing to tell any more, and is settled. The letter stays where it is
 * until then. */
typedef void outgoing_ready(void *context, bool written);
void outgoing_begin(struct outgoing *outgoing, outgoing_ready *done, void *context);

#endif
