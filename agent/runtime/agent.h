/*
 * The running agent: what its parts share.
 *
 * The parts are watch (passes over the tests), clusters (passes over groups), announcer (what is
 * new waits for its group and becomes messages) and courier (messages go out). They live on the
 * loop's thread; the first two know the announcer and it the courier, none the other way round. The
 * ledger stands between them and the store.
 */
#ifndef AGENT_RUNTIME_AGENT_H
#define AGENT_RUNTIME_AGENT_H

#include "agent/core/log.h"
#include "agent/engine/engine.h"
#include "agent/engine/timers.h"
#include "agent/runtime/metrics.h"
#include "agent/store/store.h"

/*
 * A configuration in use. After a reload the one before stays for whoever began under it (a pass, a
 * delivery that is being sent), and the last holder frees it. For the loop's thread.
 */
struct config_ref {
	struct config *config;
	const struct test *const *tests; /* those that are watched */
	size_t test_count;
	size_t holders;
};

/* Takes the configuration over; the tests lie in its arena. Its one holder is the caller. */
struct config_ref *config_ref_new(
	struct config *config, const struct test *const *tests, size_t test_count);
struct config_ref *config_ref_hold(struct config_ref *config_ref);
void config_ref_release(struct config_ref *config_ref); /* NULL is welcome */

/*
 * The tests of those names, or all, of a configuration that was loaded and is complete; receivers
 * that cannot work are better known now than when there is something to tell. NULL and an error
 * after freeing the configuration. May be called on a worker.
 */
struct config_ref *config_ref_of(
	struct config *config, const struct strings *names, struct error *error);

/* The same for the `release` of a task, whose `holder` is the generation. */
void config_ref_release_task(void *config_ref);

struct agent;

/*
 * What stands between the agent's parts and the world where that is not the world itself: a replay
 * (agent/commands/replay.c) puts other data and another time under the same parts.
 */
struct simulation {
	int64_t (*now)(const struct agent *agent); /* wall clock, ms */
	/* Gets a task its data and has its work done, as engine_submit does. */
	void (*fetch)(struct agent *agent, struct task *task);
	/* The same for a look at a test's data beside its own runs. */
	void (*look)(struct agent *agent, struct task *task);
	/* After a run of the test: until when, in engine_now's time, it need not run again. */
	int64_t (*rest)(struct agent *agent, const struct test *test);
	void (*notice)(struct agent *agent, const struct notice *notice); /* one is told */
};

/* How a reload of the configuration ended; gone when the callback returns. */
struct reload_report {
	bool loaded;             /* false: the configuration before stays */
	const char *problem;     /* why it was not loaded, or NULL */
	struct strings problems; /* of the files, errors and warnings, a sentence each */
	struct strings kept;     /* settings that need a restart: "agent.listen" */
	size_t tests, added, removed, changed;
};

/* Called on the loop's thread, once, but not if the agent ends first. */
typedef void reload_done(void *context, const struct reload_report *report);

struct agent {
	const struct simulation *simulation; /* NULL: the world */
	struct config_ref *config_ref;       /* the current one, ... */
	const struct config *config;         /* ... and its configuration */
	const struct schema *schema;
	struct engine *engine;
	struct metrics *metrics;
	struct store *store;
	struct reloader *reloader; /* NULL: the configuration is not read again; see reload.h */
	int64_t (*now)(void);      /* wall clock, ms */
	bool once;                 /* one pass, then all is told and the program ends */
	bool stopping;             /* nothing new is begun */
	bool measures;             /* passes measure what would be told: a sign of life is near */
	bool misconfigured, incomplete, stateless; /* what makes the exit code */

	bool clock_wrong;    /* a server has another time, by over an hour ... */
	int64_t clock_ahead; /* ... and ours is ahead by so many ms; else 0 */

	size_t asked;        /* requests the store has not answered */
	size_t under_way;    /* deliveries that have begun */
	struct error ledger; /* why the store failed last; ERROR_NONE: it works */
	struct alarm probe;  /* the next look whether it works again */
};

/* The wall clock, ms: for what people see, and for ages. Waits are engine_now's. */
int64_t agent_now(const struct agent *agent);

/* Compares the clock with a server's, which is at that URL: it is ahead by so many ms. A difference
 * of over an hour is a warning, and counts where ages are judged. */
void agent_compare_clock(struct agent *agent, const char *url, int64_t ahead);

/*
 * Hands a request to the store; `reply` is called with the answer, which it owns, and with what the
 * request's context was. Keeps the engine running until then and notes whether the store works.
 */
void store_client_call(struct agent *agent, struct store_request *request);

/* To be called when something has ended: ends the loop of an agent that is stopping. */
void agent_ended(struct agent *agent);

/* True if no delivery is under way and the store has answered all. */
bool agent_idle(const struct agent *agent);

/* The receiver of that name, or NULL. */
const struct receiver *agent_receiver(const struct agent *agent, const char *name);

#endif
