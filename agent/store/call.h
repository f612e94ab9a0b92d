/*
 * A call: something that is done in a transaction on one of the store's threads, and answered on
 * the loop. Each is a struct store_NAME in the header of what it is about, begins with a struct
 * store_call, and is made by store_NAME_new, which takes the client's reply: that takes over the
 * call; with NULL the call is freed. What comes in is borrowed until the reply; what goes out lies
 * in the call's arena.
 */
#ifndef AGENT_STORE_CALL_H
#define AGENT_STORE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/error.h"

/* The threads that calls are performed on: the store's, one for what may read many rows, and two of
 * a fleet (see agent/fleet/fleet.h). */
enum store_lane { STORE_WORK, STORE_LISTS, STORE_TURNS, STORE_FLEET, STORE_LANES };

struct tx;

/* What a call does, defined where it is done: in a transaction with others that wait, or by itself
 * if one of them fails. So it may run more than once, each time on the call as it was
 * submitted, with an empty arena. */
struct store_work {
	void (*run)(struct tx *tx, void *call);
	enum store_lane lane;
	bool writes;
	bool is_long; /* it may read or write much of the state */
};

struct store_counts;

/* What every call begins with. */
struct store_call {
	const struct store_work *work;
	struct arena *arena;                    /* owns the call and all its content */
	void (*reply)(struct store_call *call); /* on the loop; takes over the call */
	void *context;                          /* the client's */
	void (*first)(struct store_call *call); /* or NULL: is given the call instead, ... */
	void *owner;                            /* ... and hands it over; the context of that */
	bool failed;                            /* nothing was written; see error */
	struct error *error;                    /* if it failed; else not to be read */
	int shard;        /* with a term: what the call is about (see agent/fleet/fleet.h), ... */
	const char *test; /* ... a test of it, which has not left it; or NULL */
	bool single;      /* it has: it is leased by itself, and the term is its own */
	int64_t term;     /* performed only if this agent holds that with it; 0: whoever does */
	int64_t holder;   /* the agent's instance, in a fleet; set with the term, or by
			     store_client_call */
	bool fenced;      /* it failed, since another agent has taken that over */
	struct store_counts
		*counts;         /* out: if it may have changed them, or asks for them; or NULL */
	int64_t transaction;     /* the backend's: the one that was to write it; 0: none */
	struct store_call *next; /* for whoever has the call */
	size_t size;             /* bytes, with what follows the call in its struct, ... */
	void *submitted;         /* ... which is kept here from its first run on */
	struct arena *read;      /* what the last try has read, until it is the arena's; or NULL */
};

/* Declares what does a call, and its constructor. Defined by STORE_DEFINE, in the file of what it
 * is about. */
#define STORE_CALL(name)                                                                           \
	extern const struct store_work store_##name##_work;                                        \
	struct store_##name *store_##name##_new(                                                   \
		void (*reply)(struct store_##name * name), void *context)

/* Numbers of what is still to be announced. */
struct store_due {
	int64_t changes;     /* in NOTIFY_PENDING */
	int64_t recoveries;  /* in NOTIFY_RECOVERY */
	int64_t retractions; /* of one message each */
	int64_t said;        /* the same of what is to be said of announced changes */
};

/* For STORE_DEFINE: zeroed, in an arena of its own. */
void *store_call_new(size_t size, const struct store_work *work,
	void (*reply)(struct store_call *call), void *context);
void store_call_free(struct store_call *call);

#endif
