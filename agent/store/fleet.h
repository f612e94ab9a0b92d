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
	int64_t gone;                   /* it has left, or others took over; 0: neither */
};

/* Who works on a shard: an agent's instance, 0: none. The term grows with each holder. */
struct store_shard {
	int64_t holder, term;
};

/*
 * An agent's turn in its fleet: what it does about shards, then its lease is renewed, and all is
 * read that the agent needs to know of the others. Without an instance nothing is written. Delays
 * no other call, nor do those after it.
 */
struct store_turn {
	struct store_call call;
	void (*reply)(struct store_turn *turn);
	struct store_agent self;    /* instance, name, address, version, configuration, tests */
	bool join;                  /* it is added first */
	bool leave;                 /* it is gone after that, with all that it holds */
	bool release[STORE_SHARDS]; /* it holds these no more */
	bool reap;    /* agents whose lease is over, or ends implausibly late, are gone */
	int64_t take; /* at most so many shards that nobody holds become its own */
	bool alone;   /* tests that are leased by themselves, and nobody holds, return to theirs */

	bool renewed;               /* out: false: it is gone, and holds nothing */
	int64_t now;                /* out: ms of the database's clock */
	struct store_agent *agents; /* out: all, also those gone for less than a day */
	size_t agent_count;
	struct store_shard shards[STORE_SHARDS]; /* out */
	size_t reaped;                           /* out: agents */
	size_t taken_over;                       /* out: shards of agents that were reaped */
	struct store_due due;                    /* out: what is to be announced, ... */
	int64_t due_set, queued, said, views; /* out: ... numbers that are others when what is to be
						 announced is, deliveries that are queued are,
						 rows of the audit log or of views are, ... */
	int64_t requests; /* out: ... how many runs of its shards are asked for, ... */
	int64_t singles;  /* out: ... and another number when other tests are leased by themselves,
			     or by others; 0: none is */
};

STORE_CALL(turn);

/* What an agent thinks of a source. */
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
	/* Tests that fail, and those whose data are stale: told one by one, and not. */
	int64_t told[VIEW_ASPECTS], many[VIEW_ASPECTS];
	bool awaited; /* some of its tests have not run yet */
};

/* Writes how this agent sees sources, and reads what all agents that live have written. Only in a
 * fleet. */
struct store_views {
	struct store_call call;
	void (*reply)(struct store_views *views);
	const struct source_view *write; /* replace what was there of the same source, ... */
	size_t write_count;
	struct strings forget; /* ... of these sources nothing stays */

	struct source_view *views; /* out: by source and agent */
	size_t view_count;
};

STORE_CALL(views);

/* A run that somebody has asked for, of a test that another agent runs. */
struct run_request {
	const char *test;
	int shard;
	int64_t asked; /* out: which of the requests for the test it is */
};

/* Asks other agents to run tests, or looks at what this one is asked to run: as the
 * holder of the shard, or of the test if that is leased by itself. It stays until it is said to
 * have begun. To ask twice is to ask once. Only in a fleet. */
struct store_requests {
	struct store_call call;
	void (*reply)(struct store_requests *requests);
	const struct run_request *add;
	size_t add_count;
	bool take;                       /* what this agent is asked to run, ... */
	const struct run_request *begun; /* ... after these, which it has begun to run */
	size_t begun_count;

	struct run_request *found; /* out: each test once */
	size_t found_count;
};

STORE_CALL(requests);

/* What a configuration says of a test. */
struct announced_test {
	const char *name;
	int64_t configuration; /* out: its hash, ... */
	bool decides;          /* ... and whether the test is to be run as that has it */
	int64_t fingerprint;   /* in */
};

/* A test that is leased by itself. The term, never 0, grows whenever the holder changes. */
struct single {
	const char *test;
	int64_t holder, term; /* an agent's instance; 0: nobody */
};

/*
 * What agents are configured to do, while that differs, and the tests that are leased by themselves
 * meanwhile: see agent/fleet/tests.h. A version that most live agents have decides; of those that
 * equally many have, the one that was announced last. Only in a fleet.
 */
struct store_configuration {
	struct store_call call;
	void (*reply)(struct store_configuration *configuration);
	int64_t configuration; /* the agent's own, ... */
	bool announce;         /* ... to be announced, with its tests */
	const struct announced_test *tests;
	size_t test_count;
	struct strings leave; /* their shards, if this agent holds those; then nobody has them; */
	const int *leave_shards; /* (in order of the names) */
	struct strings claim;    /* become this agent's, if nobody has them; */
	struct strings release;  /* become nobody's, if they are this agent's; */
	struct strings join;     /* join their shard, if they are this agent's or nobody's */
	bool gains;              /* `health` is read after that */

	struct single *singles; /* out: by name */
	size_t single_count;
	struct announced_test *versions; /* out: of tests that the configurations of agents that
					    live, and its own, say different things of, by name */
	size_t version_count;
	struct health_rows health;
};

STORE_CALL(configuration);

#endif
