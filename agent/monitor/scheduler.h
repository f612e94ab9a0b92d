/*
 * The scheduler: runs each test and each cluster at its interval, and tests on demand.
 *
 * Several jobs run at a time, but each only once. The configuration may change during runs. In a
 * fleet (agent/fleet/fleet.h) the jobs of shards that other agents hold are known, but do not
 * run.
 */
#ifndef AGENT_MONITOR_SCHEDULER_H
#define AGENT_MONITOR_SCHEDULER_H

#include "agent/monitor/cluster_round.h"
#include "agent/monitor/expected.h"

struct scheduler;

/* The jobs are the tests and clusters of the agent's configuration. */
struct scheduler *scheduler_new(struct agent *agent, struct expected *expected);
/* To be called after the engine was freed. Callbacks of waiting callers are not called any more. */
void scheduler_free(struct scheduler *scheduler);

/* What the clusters decide about changes. */
struct filter scheduler_filter(struct scheduler *scheduler);

/* Starts running: by schedule, or if the agent runs `once` each job once. `restored` is the answer
 * to store_restore. */
void scheduler_start(struct scheduler *scheduler, const struct store_restore *restored);

/* The result of a run. */
struct run_report {
	const char *test;
	bool failed;
	const char *problem; /* why it failed, or NULL */
	size_t series, points;
	size_t fresh, silent; /* changes confirmed by this run: announced, or not */
	size_t candidates;    /* changes not confirmed yet */
	size_t moved, withdrawn, returned;
	bool written;     /* changes were written to the store, */
	int64_t recorded; /* ... with this timestamp: wall clock, ms */
	int64_t duration; /* ms */
	bool unrecorded;  /* the state could not be used, or has another holder of the test */
};

typedef void scheduler_run_done(void *context, const struct run_report *report);

/*
 * Runs the test soon, out of schedule; several on-demand runs take turns. If the test is running,
 * it runs once more afterwards. `done`, if not NULL, is called on the loop's thread when that run
 * has ended or failed to begin, possibly before this returns. False: there is no such test, and
 * `done` is not called. If another agent runs the test, the run is requested from it, and `done` is
 * called at once with that.
 */
bool scheduler_run_now(
	struct scheduler *scheduler, const char *test, scheduler_run_done *done, void *context);

/*
 * Something that the test reads has been written: runs it once when nothing more was written for a
 * moment, and in the midst of continuous writes every few seconds. Does nothing if there is no such
 * test.
 */
void scheduler_written(struct scheduler *scheduler, const char *test);

/* The agent that runs the test: NULL: this one, or there is no such test; "": none is known. */
const char *scheduler_elsewhere(const struct scheduler *scheduler, const char *test);

struct scheduler_test {
	const struct test *test;
	const char *elsewhere; /* the agent that runs it, "": none is known, and nothing below is;
				  NULL: this one */
	bool running, failing;
	int64_t down_since;     /* ms, wall clock: its source is known to be down; 0: it is up */
	bool stale;             /* its data are */
	const char *problem;    /* why it is failing, or NULL */
	int64_t last_run;       /* wall clock, ms; 0: not yet */
	int64_t next_due;       /* wall clock, ms; INT64_MAX: never */
	int64_t duration;       /* ms, of the last run */
	size_t series, points;  /* of the last successful run */
	int64_t newest;         /* ms, the last point that was read; WHEN_ALWAYS: none yet */
	const double *smallest; /* for some of the series: smallest change in percent that would be
				   announced; HUGE_VAL: none */
	size_t measured;
};

/* Calls back for each monitored test, in order of names. */
void scheduler_each(const struct scheduler *scheduler,
	void (*call)(void *context, const struct scheduler_test *state), void *context);

struct scheduler_cluster {
	const struct group *group;
	size_t tests;          /* of it that are monitored */
	const char *elsewhere; /* as of a test */
	bool running, failing;
	int64_t interval; /* ms */
	int64_t next_due; /* wall clock, ms; INT64_MAX: never */
	const struct cluster_rounds *rounds;
};

/* Calls back for each cluster, in order of names. */
void scheduler_each_cluster(const struct scheduler *scheduler,
	void (*call)(void *context, const struct scheduler_cluster *state), void *context);

#endif
