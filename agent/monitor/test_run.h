/*
 * A run: one test, from its source's answer to what the store has recorded.
 *
 * It fetches the data, detects on a worker, asks the store what is known, reconciles both, records
 * the difference, and passes new changes to the dispatcher. A run that fails changes nothing. It
 * holds a reference to the configuration that it began under.
 */
#ifndef AGENT_MONITOR_TEST_RUN_H
#define AGENT_MONITOR_TEST_RUN_H

#include "agent/monitor/health.h"
#include "agent/monitor/scheduler.h"
#include "agent/monitor/series_cache.h"
#include "agent/notify/dispatcher.h"

/* Series of each test whose smallest detectable change is measured. */
enum { RUN_MEASURED = 5 };

/* A test with its schedule, and what one run keeps for the next. */
struct monitored_test {
	const struct test *test; /* of the current configuration */
	bool running;            /* a run is in progress, */
	bool dropped;            /* ... and its results are not wanted any more */

	bool failing;
	char *problem;                 /* why the last run failed; NULL: it did not; owned */
	uint64_t notices;              /* hash of the last run's notices */
	int64_t last_run;              /* wall clock, ms, of the last finished run; 0: none yet */
	int64_t duration;              /* ms, of that run */
	size_t series, points;         /* of the last successful run */
	double smallest[RUN_MEASURED]; /* see struct scheduler_test */
	size_t measured;
	int64_t measured_at; /* wall clock, ms; 0: not measured */
	/* For a test whose points lie on a grid, after a run that has read the last one possible:
	 * its time, ms; 0: there may be more to read. */
	int64_t read_to;
	int64_t usual; /* struct run_outcome's */
	struct series_cache
		*memory; /* NULL: nothing is kept; owned by the run while one is in progress */

	/* What a run with data owns between two steps. */
	struct task *task;           /* while the engine does not have it */
	struct store_request *known; /* what the store knows of the test */
	struct store_request *news;  /* the records to write */

	/* Used by the scheduler. */
	size_t id; /* in the schedule */
	uint64_t missed;
	bool fresh;                      /* not yet in the schedule */
	bool removed, again;             /* freed when its run ends; to run once more */
	struct waiter *waiting, *served; /* for the next run, and for the current one */
	struct monitored_test *next;
	bool on_demand;                           /* its run was requested out of schedule */
	struct monitored_test *asked, **asked_at; /* queue of on-demand runs; NULL: not in it */
};

/* How and where runs happen. `done` is called at the end of each, on the loop's thread; the report
 * is freed afterwards. */
struct run_context {
	struct agent *agent;
	struct dispatcher *dispatcher;
	struct health *health;
	void (*done)(
		void *context, struct monitored_test *monitored, const struct run_report *report);
	void *context;
};

/* Begins a run of a monitored test that is not running. Both arguments must live until its end. */
void test_run_begin(const struct run_context *runs, struct monitored_test *monitored);

/* Frees what the monitored test holds, after the engine is freed or while no run is in progress. */
void test_run_clear(struct monitored_test *monitored);

#endif
