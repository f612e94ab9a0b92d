/*
 * A call: a function that runs in a transaction on one of the store's threads, with a reply on the
 * loop. Each is a struct store_NAME in the header of its noun, begins with a struct store_call, and
 * is made by store_NAME_new, which takes the client's reply function: that takes over the call;
 * with NULL the call is freed. Input is borrowed until the reply; output lies in the call's arena.
 */
#ifndef AGENT_STORE_CALL_H
#define AGENT_STORE_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/error.h"

/* The threads that calls are performed on: the store's, one for calls that may read many rows, and
 * two of a fleet (see agent/fleet/fleet.h). */
enum store_lane { STORE_WORK, STORE_LISTS, STORE_TURNS, STORE_FLEET, STORE_LANES };

struct tx;

/* The function of a call. It runs in one transaction with other waiting calls, or alone if one of
 * them fails. So it may run more than once, each time on the call as it was submitted, with an
 * empty arena. */
struct store_work {
	void (*run)(struct tx *tx, void *call);
	enum store_lane lane;
	bool writes;
	bool is_long; /* it may read or write much of the state */
};

struct store_counts;

/* The first member of every call. */
struct store_call {
	const struct store_work *work;
	struct arena *arena;                    /* owns the call and all its content */
	void (*reply)(struct store_call *call); /* on the loop; takes over the call */
	void (*client)(void); /* the reply function that the constructor was given */
	void *context;        /* the client's */
	void (*first)(struct store_call *call); /* or NULL: is given the call instead, ... */
	void *owner;                            /* ... and hands it over; the context of that */
	bool failed;                            /* nothing was written; see error */
	struct error *error;                    /* if it failed; else not to be read */
	int shard;        /* with a term: the shard of the call (see agent/fleet/fleet.h), ... */
	const char *test; /* ... a test of it, which has not left it; or NULL */
	bool single;      /* it has: it is singly leased, and the term is its own */
	int64_t term;     /* performed only if this agent holds the shard with it; 0: in any case */
	int64_t holder;   /* the agent's instance, in a fleet; set with the term, or by
			     store_client_call */
	bool fenced;      /* it failed, since another agent has taken that over */
	struct store_counts *counts; /* out: if it may have changed or requests them; or NULL */
	int64_t transaction;         /* the backend's: the one that was to write it; 0: none */
	struct store_call *next;     /* for the client */
	size_t size;                 /* bytes, with the rest of the call's struct, ... */
	void *submitted;             /* ... which is kept here from its first run on */
	struct arena *read;          /* memory of the last try, until it is the arena's; or NULL */
};

/* Declares the function of a call, and its constructor. Defined by STORE_DEFINE, in the file of its
 * noun. */
#define STORE_CALL(name)                                                                           \
	extern const struct store_work store_##name##_work;                                        \
	struct store_##name *store_##name##_new(                                                   \
		void (*reply)(struct store_##name * name), void *context)

/* Numbers of pending announcements. */
struct store_due {
	int64_t changes; /* in NOTIFY_PENDING */
	int64_t events;  /* about announced changes, that no round has seen yet, ... */
	int64_t held;    /* ... and that wait */
};

/* For STORE_DEFINE: zeroed, in an arena of its own. */
void *store_call_new(size_t size, const struct store_work *work,
	void (*reply)(struct store_call *call), void *context);
void store_call_free(struct store_call *call);

#endif
