/*
 * Letters: parcels of the outbox as the courier carries them, and what the store is told of them.
 *
 * The store has the last word: a letter that was carried out is kept until the store knows it. A
 * letter that waits behind another has no payload in memory; it is fetched when its turn comes, so
 * that a receiver that is dead for a day costs little.
 */
#ifndef AGENT_OUTBOX_H
#define AGENT_OUTBOX_H

#include "agent/watch/agent.h"

struct outbox;

struct letter {
	struct arena *arena;
	struct outbox *outbox;
	struct parcel parcel; /* its payload is NULL until it is fetched */
	const char *what;     /* the changes in it, for people; NULL until they are known */
	enum doubt doubt;
	int64_t made;  /* ms */
	int64_t since; /* engine_now, for setback.trying */
	int64_t tries; /* of this process */
	struct letter *next;
};

struct outbox *outbox_new(struct agent *agent);
void outbox_free(struct outbox *outbox);

/* A copy of the parcel, its payload excepted, unless `whole`. */
struct letter *letter_new(struct outbox *outbox, const struct parcel *parcel, bool whole);
void letters_free(struct letter *letters); /* linked by next */

/* Takes the letter over and sees to it that the store knows what became of it. */
void letter_settle(struct letter *letter, enum parcel_state state);

/* Writes down the receipt and the attempts so far. Losing that costs a look at what is there. */
void letter_note(const struct letter *letter);

/* Fetches the payload, then calls back: false if the store could not. A payload that is NULL then
 * is not in the store. The letter stays where it is until then. */
typedef void letter_fetched(void *context, bool read);
void letter_fetch(struct letter *letter, letter_fetched *done, void *context);

#endif
