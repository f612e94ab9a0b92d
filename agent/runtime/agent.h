/*
 * The running agent: the context that its parts share.
 *
 * There are three loops: monitor (runs of tests and clusters), notify (filters and groups new
 * changes and has messages written) and deliver (sends messages and follows up). They live on the
 * loop's thread and know nothing of one another: each writes to the store, hints at what it has
 * left there, and goes on from what the store has. The store client stands between them and the
 * store.
 */
#ifndef AGENT_RUNTIME_AGENT_H
#define AGENT_RUNTIME_AGENT_H

#include "agent/base/log.h"
#include "agent/io/engine.h"
#include "agent/io/timers.h"
#include "agent/runtime/metrics.h"
#include "agent/store/store.h"

/*
 * A configuration in use. After a reload the previous one stays for runs and deliveries that
 * started with it, and the last holder frees it. For the loop's thread.
 */
struct config_ref {
	struct config *config;
	const struct test *const *tests; /* those that are monitored */
	size_t test_count;
	size_t holders;
};

/* Takes over the configuration; the tests lie in its arena. The caller is its only holder. */
struct config_ref *config_ref_new(
	struct config *config, const struct test *const *tests, size_t test_count);
struct config_ref *config_ref_hold(struct config_ref *config_ref);
void config_ref_release(struct config_ref *config_ref); /* accepts NULL */

/*
 * The tests of those names, or all, of a configuration that was loaded, after checking its
 * receivers: errors should show now and not when there is something to announce. NULL and an
 * error after freeing the configuration. May be called on a worker.
 */
struct config_ref *config_ref_of(
	struct config *config, const struct strings *names, struct error *error);

/* Holds it until the task is released. */
void config_ref_hold_for(struct config_ref *config_ref, struct task *task);

struct agent;

/* Of a fleet (agent/fleet/fleet.h), whose clock is the database's. */
struct shared_state {
	int64_t (*now)(const struct agent *agent); /* ms since 1970 */
	/* A call of the store is in progress, or was answered. */
	void (*begins)(struct agent *agent, struct store_call *call);
	void (*ends)(struct agent *agent, const struct store_call *call);
};

/*
 * Replaces the clock and the data: replay (agent/commands/replay.c) runs the same parts on past
 * data at simulated times.
 */
struct simulation {
	int64_t (*now)(const struct agent *agent); /* wall clock, ms */
	/* Fetches a task's data and runs its work, as engine_submit does. */
	void (*fetch)(struct agent *agent, struct task *task);
	/* The same for reading a test's data outside of its own runs. */
	void (*look)(struct agent *agent, struct task *task);
	/* After a run of the test: the time (engine_now) before which it need not run again. */
	int64_t (*rest)(struct agent *agent, const struct test *test);
	void (*notice)(
		struct agent *agent, const struct notice *notice); /* called for each notice */
};

/* The result of a reload; valid during the callback. */
struct reload_report {
	bool loaded;             /* false: the previous configuration stays */
	const char *problem;     /* why it was not loaded, or its web_config not; or NULL */
	struct strings problems; /* errors and warnings of the files, a sentence each */
	struct strings kept;     /* changed settings that need a restart: "agent.listen" */
	size_t tests, added, removed, changed;
};

/* Called on the loop's thread, once, but not if the agent stops first. */
typedef void reload_done(void *context, const struct reload_report *report);

enum { AGENT_TRIAGES = 256 };

/* What a transaction has left in the store for others, and what happens to the agent. */
enum hint {
	HINT_CHANGES,    /* changes may be due for announcement, or filters decide otherwise */
	HINT_DELIVERIES, /* messages were queued */
	HINT_WAITING,    /* changes wait, perhaps for what tests of their environment have seen */
	HINT_SEEN,       /* that was written */
	HINT_TRIAGE,     /* triage, or a bisection's verdict: it may expire, and messages show it */
	HINT_CONFIGURATION, /* another configuration is in use */
	HINT_LOOK,          /* the same, or the agent has begun: something may be due by it */
	HINT_METRICS,       /* the metrics are about to be read */
	HINTS,
};
enum { HINT_LISTENERS = 8 };

struct hint_listener {
	void (*call)(void *context);
	void *context;
};

struct silence_target;

/* How the monitor has notices queued: set by agent/notify. */
struct notice_calls {
	/* To the named receivers; names that are not configured are skipped. It takes over the
	 * request, which the caller has fenced and which may store more in the same transaction:
	 * then a crash before it loses neither. */
	void (*queue)(void *context, const struct notice *notice, const struct strings *receivers,
		struct store_queue *request);
	/* Whether a notice about the target is held back now. *until: when that may end. */
	bool (*holds)(void *context, const struct silence_target *subject, int64_t *until);
	/* While it stays the same, `holds` answers the same, until its *until. */
	uint64_t (*version)(void *context);
	void *context;
};

struct agent {
	const struct simulation *simulation; /* NULL: real time and data */
	struct config_ref *config_ref;       /* the current one, ... */
	const struct config *config;         /* ... and its configuration */
	const struct schema *schema;
	struct engine *engine;
	struct metrics *metrics;
	struct store *store;
	struct fleet *fleet;                     /* NULL: there is no other agent, ... */
	struct fleet_tests *fleet_tests;         /* ... nor has it other tests, ... */
	const struct shared_state *shared_state; /* ... nor this */
	struct reloader *reloader;               /* NULL: no reloads; see reload.h */
	struct events *events;                   /* NULL: no watchers; see events.h */
	/* Called with each answer of the store, before its client is; NULL: none. */
	void (*seen)(void *seer, const struct store_call *answered);
	void *seer;
	int64_t (*now)(void); /* wall clock, ms */
	bool once;            /* run each test once, deliver everything, then end */
	bool strict;          /* changes that known_changes covers are announced, too */
	bool stopping;        /* nothing new is started */
	bool measures; /* runs measure the smallest detectable change: a heartbeat is due soon */
	bool misconfigured, incomplete, stateless; /* determine the exit code */

	/* ms by which the clock is ahead of that of the server that answered last, or behind: then
	 * negative. 0 unless by over an hour. */
	int64_t clock_ahead;

	size_t asked;                    /* pending calls of the store */
	size_t under_way;                /* deliveries in progress */
	struct error store_error;        /* the last failure of the store; ERROR_NONE: it works */
	struct alarm probe;              /* the next check whether it works again */
	uint64_t triages[AGENT_TRIAGES]; /* see agent_triages */
	struct store_due due;            /* as last known */
	struct hint_listener listeners[HINTS][HINT_LISTENERS];
	struct notice_calls notices;
};

/* Has the function called at each such hint from now on. */
void agent_listen(struct agent *agent, enum hint hint, void (*call)(void *context), void *context);
void agent_hint(const struct agent *agent, enum hint hint);

/* So many changes are to be announced. */
void agent_awaits(struct agent *agent, int64_t changes);

/* Hints at changes if the records of a run have left any to announce, or to announce no more. */
void agent_recorded(struct agent *agent, const struct store_record *recorded);

/* The wall clock, ms, of the database in a fleet: for display and ages. Timers use engine_now. */
int64_t agent_now(const struct agent *agent);

/* Compares the clock with the clock of the server at that URL: ours is ahead by so many ms. A
 * difference of over an hour is logged as a warning, and affects how ages are judged. */
void agent_compare_clock(struct agent *agent, const char *url, int64_t ahead);

/*
 * Makes a call of the store; its reply is called with the answer, which it owns, and with the
 * call's original context. Keeps the engine running until then and notes whether the store
 * works.
 */
void store_client_call(struct agent *agent, struct store_call *call);

/* Sets the metrics of the state's database, if it is one. */
void store_client_collect(struct agent *agent);

/* Version; changes with every triage of a change of the test (or, rarely, of another test). */
uint64_t agent_triages(const struct agent *agent, const char *test);

/* In a fleet: other agents may have received triage of any test. */
void agent_triaged(struct agent *agent);

/* To be called when something has finished: ends the loop of an agent that is stopping. */
void agent_ended(struct agent *agent);

/* Whether no delivery is in progress and the store has answered all calls. */
bool agent_idle(const struct agent *agent);

/* The receiver of that name, or NULL. */
const struct receiver *agent_receiver(const struct agent *agent, const char *name);

#endif
