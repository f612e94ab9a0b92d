/*
 * A fleet: several agents on one state. What there is to do is divided into shards; an agent works
 * on those that it holds. Without a fleet (agent->fleet is NULL: the state is a file) an agent
 * holds all.
 *
 * A test belongs to the shard of its name, a receiver (its deliveries and their follow-ups) to the
 * shard of its own. Whatever must see everything, such as groups and digests, belongs to the
 * leader, which is a shard as well. A test may leave its shard and be leased by itself (tests.h).
 *
 * An agent has a lease, a row in the database, which it renews with each of its turns. It trusts in
 * that for a while that ends before the database's does, and until then in what it holds. A call
 * that writes about a shard carries a fence: the store performs it only if this agent still holds
 * the shard with the same term. An agent whose lease is over loses its shards once another agent
 * has noticed; if none has, it goes on with them.
 *
 * For the loop's thread.
 */
#ifndef AGENT_FLEET_FLEET_H
#define AGENT_FLEET_FLEET_H

#include "agent/runtime/agent.h"
#include "conf/config.h"

enum { FLEET_SHARDS = STORE_SHARDS, FLEET_LEADER = 0 };

/* A set of shards. */
struct fleet_shards {
	bool has[FLEET_SHARDS];
};

/* What others may have written, as the last turn saw it. The numbers are others, not always larger
 * ones, when something has happened. */
struct fleet_news {
	struct store_due due;   /* what is to be announced, ... */
	int64_t due_set;        /* ... a number that is another one when other changes are, ... */
	int64_t last_delivery;  /* ... when other deliveries are queued, ... */
	int64_t last_audit;     /* ... when people have said something: triage, silences, ... */
	int64_t requests;       /* ... runs asked for, of shards that this agent holds: how many */
	uint64_t views;         /* ... when an agent's view of a source has changed, ... */
	uint64_t configuration; /* ... and when agents, the leader or configurations have */
};

struct fleet_listener {
	/* The shards were gained. `restored` was read after that: what is stored of all shards. */
	void (*gained)(void *context, const struct fleet_shards *shards,
		const struct store_restore *restored);
	/* The shards were lost: nothing about them can be written any more. */
	void (*lost)(void *context, const struct fleet_shards *shards);
	/* Whether something is under way that should end before the shard is handed over; nothing
	 * new is begun for it (fleet_holds is false by then). Calls of the store with a fence are
	 * known. After half a minute it is handed over all the same. */
	bool (*is_busy)(void *context, int shard);
	/* Something in it differs from last time. After `gained` and `lost` of that turn. */
	void (*news)(void *context, const struct fleet_news *news);
	void *context;
};

/* 0 to FLEET_SHARDS - 1; the same in all versions. */
int fleet_shard_of_test(const char *name);
int fleet_shard_of_receiver(const char *name);

/* Whether the agent holds the shard, and may trust in that now. */
bool fleet_holds(const struct agent *agent, int shard);
bool fleet_is_trusted(const struct agent *agent); /* in anything */

/* Whether others may work on the same state meanwhile: neither without a fleet, nor for a single
 * run, which holds all. */
bool fleet_is_shared(const struct agent *agent);

/* The call is about the shard: it fails, with `fenced`, unless the agent holds that when it is
 * written. For calls that write; before store_client_call. */
void fleet_fence(const struct agent *agent, struct store_call *call, int shard);

/* What the agent says of itself with each turn from now on: the hash of its configuration. */
void fleet_announce(struct agent *agent, int64_t configuration);

/* Has the listener called from now on, in the order of these calls; its functions may be NULL. Does
 * nothing without a fleet. */
void fleet_listen(struct agent *agent, const struct fleet_listener *listener);

/* The agents that live; without a fleet it is one. Limits of a server are divided by it. */
size_t fleet_size(const struct agent *agent);

/* The agent's own name; "" without a fleet. */
const char *fleet_name(const struct agent *agent);
int64_t fleet_instance(const struct agent *agent); /* 0 without a fleet */

/* The name of an agent that lives; or NULL. */
const char *fleet_agent_name(const struct agent *agent, int64_t instance);

/* The name of the agent that holds the shard, as the last turn saw it; NULL: nobody, or without a
 * fleet. */
const char *fleet_holder(const struct agent *agent, int shard);

/* All agents, also those that are gone for a while, and all shards, as the last turn saw them; NULL
 * before that. */
const struct store_turn *fleet_picture(const struct agent *agent);

/* Has the next turn taken at once: something is known to have changed. */
void fleet_hurry(struct agent *agent);

/* Why it cannot work as one of the fleet now; NULL: it can. */
const char *fleet_trouble(const struct agent *agent);

/*
 * The life of a fleet. fleet_new sets agent->fleet if the agent's store can be shared (else it
 * stays NULL), asks the database for the time, and fails with an ERROR_STATE if that cannot be had.
 * fleet_start takes the first turn. With `ready` (or NULL) the agent takes all shards and calls it
 * when it has them, without calls of `gained`, or with an error if it cannot; it keeps the engine
 * running until then. fleet_leave, for an agent that stops, gives back everything, when nothing is
 * under way any more.
 */
bool fleet_new(struct agent *agent, struct error *error) MUST_USE;
void fleet_start(struct agent *agent, void (*ready)(void *context, const struct error *error),
	void *context);
void fleet_leave(struct agent *agent);
void fleet_free(struct agent *agent); /* sets agent->fleet to NULL */

/* Of struct shared_state, for agents with a fleet. */
void fleet_call_begins(struct agent *agent, struct store_call *call);
void fleet_call_ends(struct agent *agent, const struct store_call *call);

/*
 * For tests: a fleet without turns. fleet_script has the agent hold these shards, and no others, as
 * a turn would, with these news (NULL: the same as before). fleet_script_trust ends and renews its
 * trust.
 */
void fleet_scripted(struct agent *agent);
void fleet_script(
	struct agent *agent, const struct fleet_shards *held, const struct fleet_news *news);
void fleet_script_trust(struct agent *agent, bool trusted);

/*
 * How shards are shared out, a pure function of what a turn has seen: each agent comes to hold as
 * many as any other, or one more or less. Agents need not be asked: each decides for itself.
 */
struct fleet_plan {
	int take;    /* so many free shards */
	int release; /* so many of its own */
};
struct fleet_plan fleet_plan(const struct store_turn *seen, int64_t self, bool all);

#endif
