/* Agents of a fleet in a shared state: leases, views of sources, configurations
 * (agent/fleet/fleet.h). */
#ifndef AGENT_STORE_FLEET_H
#define AGENT_STORE_FLEET_H

#include "agent/base/field.h"
#include "agent/model/health.h"
#include "agent/store/call.h"

enum {
	STORE_SHARDS = 256,
	STORE_LEASE = 15000, /* ms */
};

/* An agent of a fleet. All times are ms of the database's clock. */
struct store_agent {
	int64_t instance; /* another one with each start; not 0 */
	const char *name, *address, *version;
	int64_t configuration;          /* hash */
	int64_t tests;                  /* that it has */
	int64_t joined, renewed, until; /* its lease ends at `until` */
	int64_t late;                   /* renewals that came after the lease's end */
	int64_t gone;                   /* it has left, or others took over; 0: live */
};

/* The holder of a shard: an agent's instance, 0: none. The term grows with each holder. */
struct store_shard {
	int64_t holder, term;
};

/*
 * An agent's turn in its fleet: it claims and returns shards, renews its lease, and reads the state
 * of the other agents. Without an instance nothing is written. Delays no other call, nor do those
 * after it.
 */
struct store_turn {
	struct store_call call;
	struct store_agent self;    /* instance, name, address, version, configuration, tests */
	bool join;                  /* it is added first */
	bool leave;                 /* it is gone after that, with all that it holds */
	bool release[STORE_SHARDS]; /* it no longer holds these */
	bool reap;    /* agents whose lease is over, or ends implausibly late, are gone */
	int64_t take; /* maximum number of free shards to claim */
	bool alone;   /* singly leased tests without a holder return to their shards */

	bool renewed;               /* out: false: it is gone, and holds nothing */
	int64_t now;                /* out: ms of the database's clock */
	struct store_agent *agents; /* out: all, also those gone for less than a day */
	size_t agent_count;
	struct store_shard shards[STORE_SHARDS]; /* out */
	size_t reaped;                           /* out: agents */
	size_t taken_over;                       /* out: shards of agents that were reaped */
	struct store_due due;                    /* out: pending announcements, ... */
	int64_t due_set, queued, said,
		views; /* out: ... versions of the pending announcements, the queued deliveries, the
			  audit log and the views, ... */
	int64_t requests; /* out: ... the number of requested runs of its shards, ... */
	int64_t singles;  /* out: ... and a version of the singly leased tests; 0: none */
};

STORE_CALL(turn);

/* An agent's view of a source. */
enum view_verdict {
	VIEW_NONE, /* it does not know yet */
	VIEW_UP,
	VIEW_DOWN,
};

enum view_aspect { VIEW_FAILS, VIEW_STALE, VIEW_ASPECTS };

/* How an agent of a fleet sees a source, by those of its tests that it runs itself. */
struct source_view {
	const char *source;
	const char *agent; /* out: its name, ... */
	bool own;          /* ... and whether it is this agent */
	enum view_verdict verdict;
	int64_t since;    /* ms; of one that is down */
	const char *text; /* the same: a sentence for people; else "" */
	/* Numbers of failing and of stale tests, reported individually and not. */
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited; /* some of its tests have not run yet */
};

/* Writes how this agent sees sources, if that is another than before, and reads what all live
 * agents have written. Only in a fleet. */
struct store_views {
	struct store_call call;
	bool replaces;                   /* all that this agent has written, ... */
	const struct source_view *write; /* ... by these */
	size_t write_count;

	struct source_view *views; /* out: by source and agent */
	size_t view_count;
};

STORE_CALL(views);

/* A requested run of a test that another agent has. */
struct run_request {
	const char *test;
	int shard;
	int64_t asked; /* out: which of the requests for the test it is */
};

/* Requests runs from other agents, or reads the requests to this one: as the holder of the shard,
 * or of a singly leased test. A request stays until it is reported as begun; duplicates are merged.
 * Only in a fleet. */
struct store_requests {
	struct store_call call;
	const struct run_request *add;
	size_t add_count;
	bool take;                       /* the runs requested from this agent, ... */
	const struct run_request *begun; /* ... after these, which it has begun to run */
	size_t begun_count;

	struct run_request *found; /* out: each test once */
	size_t found_count;
};

STORE_CALL(requests);

/* A configuration's version of a test. */
struct announced_test {
	const char *name;
	int64_t configuration; /* out: its hash, ... */
	bool decides;          /* ... and whether the test is to be run as that has it */
	int64_t fingerprint;   /* in */
};

/* A test that is singly leased. The term, never 0, grows whenever the holder changes. */
struct single {
	const char *test;
	int64_t holder, term; /* an agent's instance; 0: none */
};

/*
 * The differing configurations of agents, and the tests that are singly leased meanwhile: see
 * agent/fleet/tests.h. The version that most live agents have decides; with equal numbers the one
 * announced last. Only in a fleet.
 */
struct store_configuration {
	struct store_call call;
	int64_t configuration; /* the agent's own, ... */
	bool announce;         /* ... to be announced, with its tests */
	const struct announced_test *tests;
	size_t test_count;
	struct strings leave; /* leave their shards, if this agent holds those, and become free; */
	const int *leave_shards; /* (in order of the names) */
	struct strings claim;    /* become this agent's, if free; */
	struct strings release;  /* become free, if they are this agent's; */
	struct strings join;     /* join their shard, if they are this agent's or free */
	bool gains;              /* `health` is read after that */

	struct single *singles; /* out: by name */
	size_t single_count;
	struct announced_test *versions; /* out: tests that differ between the configurations of
					    live agents, by name */
	size_t version_count;
	struct health_rows health;
};

STORE_CALL(configuration);

#endif
