/*
 * A fleet: several agents on one state. The work is divided into shards; an agent works on those
 * that it holds. Without a fleet (agent->fleet is NULL: the state is a file) an agent holds all.
 *
 * A test belongs to the shard of its name, a receiver (its deliveries and their follow-ups) to the
 * shard of its own. Whatever must see everything, such as groups and digests, belongs to the
 * leader, which is a shard as well. A test may leave its shard and be singly leased (tests.h).
 *
 * An agent has a lease, a row in the database, which it renews with each of its turns. It trusts
 * its lease, and the shards it holds, for a time that ends before the database's. A call that
 * writes about a shard carries a fence: the store performs it only if this agent still holds the
 * shard with the same term. An agent whose lease is over loses its shards once another agent has
 * noticed; if none has, it continues with them.
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

/* Writes of other agents, as seen by the last turn. A number differs, but need not be larger, after
 * an event. */
struct fleet_news {
	struct store_due due;  /* pending announcements, ... */
	int64_t due_set;       /* ... a number that is another one when other changes are, ... */
	int64_t last_delivery; /* ... when other deliveries are queued, ... */
	int64_t last_audit;    /* ... triage and silences, ... */
	int64_t requests; /* ... the number of requested runs of shards that this agent holds */
	uint64_t views;   /* ... when an agent's view of a source has changed, ... */
	uint64_t configuration; /* ... and when agents, the leader or configurations have */
};

struct fleet_listener {
	/* The shards were gained. `restored`, read after that, is the stored state of all
	 * shards. */
	void (*gained)(void *context, const struct fleet_shards *shards,
		const struct store_restore *restored);
	/* The shards were lost: nothing about them can be written any more. */
	void (*lost)(void *context, const struct fleet_shards *shards);
	/* Whether work is in progress that should end before the shard is given up; no new work
	 * begins for it (fleet_holds is already false). Fenced calls of the store are taken into
	 * account. After half a minute the shard is given up in any case. */
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

/* Whether it has gained the shard and not lost it: what is kept about it is up to date. */
bool fleet_keeps(const struct agent *agent, int shard);

/* Whether other agents may work on the same state: false without a fleet, and for a single run,
 * which holds all shards. */
bool fleet_is_shared(const struct agent *agent);

/* The call is about the shard: it fails, with `fenced`, unless the agent holds that when it is
 * written. For calls that write; before store_client_call. */
void fleet_fence(const struct agent *agent, struct store_call *call, int shard);

/* Sets the hash of the configuration that the agent publishes with each turn. */
void fleet_announce(struct agent *agent, int64_t configuration);

/* Has the listener called from now on, in the order of these calls; its functions may be NULL. Does
 * nothing without a fleet. */
void fleet_listen(struct agent *agent, const struct fleet_listener *listener);

/* The live agents; without a fleet it is one. Limits of a server are divided by it. */
size_t fleet_size(const struct agent *agent);

/* The agent's own name; "" without a fleet. */
const char *fleet_name(const struct agent *agent);
int64_t fleet_instance(const struct agent *agent); /* 0 without a fleet */

/* The name of a live agent; or NULL. */
const char *fleet_agent_name(const struct agent *agent, int64_t instance);

/* The name of the agent that holds the shard, as the last turn saw it; NULL: none, or without a
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
 * stays NULL), asks the database for the time, and fails with an ERROR_STATE if the database is
 * unavailable. fleet_start takes the first turn. With `ready` (or NULL) the agent takes all shards
 * and calls it when it has them, without calls of `gained`, or with an error if it cannot; it keeps
 * the engine running until then. fleet_leave, for an agent that stops, gives back everything, when
 * nothing is in progress any more.
 */
bool fleet_new(struct agent *agent, struct error *error) MUST_USE;
void fleet_start(struct agent *agent, void (*ready)(void *context, const struct error *error),
	void *context);
void fleet_leave(struct agent *agent);
void fleet_free(struct agent *agent); /* sets agent->fleet to NULL */

/* Of struct shared_state, for agents with a fleet. */
void fleet_call_begins(struct agent *agent, struct store_call *call);
void fleet_call_ends(struct agent *agent, const struct store_call *call);

/* For tests: a fleet without turns, which trusts in what it holds or does not. */
void fleet_scripted(struct agent *agent);
void fleet_script_trust(struct agent *agent, bool trusted);

/* The answer of a turn, which is taken over. */
void fleet_take(struct agent *agent, struct store_turn *turn);

/*
 * How shards are shared out, a pure function of what a turn has seen: the agents' numbers of shards
 * differ by at most one. Each agent decides for itself.
 */
struct fleet_plan {
	int take;    /* so many free shards */
	int release; /* so many of its own */
};
struct fleet_plan fleet_plan(const struct store_turn *seen, int64_t self, bool all);

#endif
