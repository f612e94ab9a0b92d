/*
 * Watching: pass after pass over the tests, each by its schedule.
 *
 * Several tests are on their way at once, a single test is only once. What is configured may change
 * while passes run.
 */
#ifndef AGENT_MONITOR_WATCH_H
#define AGENT_MONITOR_WATCH_H

#include "agent/notify/dispatcher.h"

struct scheduler;

/* The tests are of the agent's generation. */
struct scheduler *scheduler_new(struct agent *agent, struct dispatcher *dispatcher,
	const struct test *const *tests, size_t count);
/* After the engine was freed. Nobody who waits for a pass is called any more. */
void scheduler_free(struct scheduler *watch);

/* Begins: by schedule, or in a single pass all tests at once. `restored` is the answer to
 * STORE_RESTORE. */
void scheduler_start(struct scheduler *watch, const struct store_request *restored);

/*
 * Takes a new generation's tests, which is the agent's current one. A test that means what it meant
 * keeps its schedule and what is remembered of it; a changed one begins anew, at its place in the
 * schedule; the results of a removed or changed one's running pass are dropped.
 */
void scheduler_adopt(struct scheduler *watch, const struct test *const *tests, size_t count);

/* How a pass ended. */
struct run_report {
	const char *test;
	bool failed;
	const char *problem; /* why, or NULL */
	size_t series, points;
	size_t fresh, silent; /* changes believed now, to be told or not */
	size_t candidates;    /* changes that are not believed yet */
	size_t moved, withdrawn, returned;
	bool written;     /* something about changes is in the store, */
	int64_t recorded; /* ... of this time: wall clock, ms */
	int64_t duration; /* ms */
};

typedef void scheduler_run_done(void *context, const struct run_report *report);

/*
 * Runs the test soon, beside its schedule: many that are asked for at once take turns. If it is
 * running, it is run once more afterwards. `done`, if there is one, is called on the loop's thread
 * when that pass has ended, or failed to begin, which may be before this returns. False: there is
 * no such test, and `done` is not called.
 */
bool scheduler_run_now(
	struct scheduler *watch, const char *test, scheduler_run_done *done, void *context);

struct scheduler_test {
	const struct test *test;
	bool running, failing;
	const char *problem;    /* of a failing one, or NULL */
	int64_t last_run;       /* wall clock, ms; 0: not yet */
	int64_t next_due;       /* wall clock, ms; INT64_MAX: never */
	int64_t duration;       /* ms, of the last run */
	size_t series, points;  /* of the last run that went well */
	const double *smallest; /* of some series: percent that would be told; HUGE_VAL: none */
	size_t measured;
};

/* False while the source is known to be down; true if the test's data are stale. */
bool scheduler_source_up(const struct scheduler *watch, const char *source);
bool scheduler_stale(const struct scheduler *watch, const char *test);

/* Counts the runs that were missed until now, also by tests that hang. */
void scheduler_collect(struct scheduler *watch);

/* Calls back with each test that is watched, in order of names. */
void scheduler_each(const struct scheduler *watch,
	void (*call)(void *context, const struct scheduler_test *state), void *context);

#endif
