/*
 * A pass: one test's way from the source's answer to what the store has recorded.
 *
 * It reads the data and detects on a worker, asks the store what is known, has both reconciled and
 * the difference recorded, and hands what is new to the announcer. A pass that fails changes
 * nothing. It holds the generation that it began under.
 */
#ifndef AGENT_MONITOR_PASS_H
#define AGENT_MONITOR_PASS_H

#include "agent/monitor/health.h"
#include "agent/monitor/scheduler.h"
#include "agent/monitor/series_cache.h"
#include "agent/notify/dispatcher.h"

/* Series of a test whose smallest change is measured that would be told. */
enum { RUN_MEASURED = 5 };

/* A test that is watched, and what its passes leave for one another. */
struct monitored_test {
	const struct test *test; /* of the current generation */
	bool running;            /* a pass of it is under way, */
	bool dropped;            /* ... whose results are not wanted any more */

	bool failing;
	char *problem;         /* of the last pass, if it failed; freed with the subject */
	uint64_t notices;      /* hash of those of the last pass */
	int64_t last_run;      /* wall clock, ms, of the last pass that ended; 0: none has */
	int64_t duration;      /* ms, of that pass */
	size_t series, points; /* of the last pass that went well */
	double smallest[RUN_MEASURED]; /* see struct scheduler_test */
	size_t measured;
	int64_t measured_at; /* wall clock, ms; 0: it is not measured */
	/* Of a test whose points lie on a grid, after a pass that has read the last one there could
	 * be: that one, ms; 0: there may be more to read. */
	int64_t read_to;
	int64_t usual;               /* struct run_outcome's */
	struct series_cache *memory; /* NULL: nothing is remembered; while a pass runs, its own */

	/* What a pass that has its data owns between two places that work on it. */
	struct task *task;           /* while it is not the engine's */
	struct store_request *known; /* what the store knows of the test */
	struct store_request *news;  /* what is to be recorded */

	/* The watch's. */
	size_t id; /* in the schedule */
	uint64_t missed;
	bool fresh;                      /* has no place in the schedule yet */
	bool removed, again;             /* gone with the end of its pass; to be run once more */
	struct waiter *waiting, *served; /* for the next pass, and for the one that runs */
	struct monitored_test *next;
	bool beside;                              /* its pass was asked for beside the schedule */
	struct monitored_test *asked, **asked_at; /* in line for one; NULL: it is not */
};

/* How and where passes run. `done` is called at the end of each, on the loop's thread; the report
 * is gone afterwards. */
struct run_context {
	struct agent *agent;
	struct dispatcher *dispatcher;
	struct health *health;
	void (*done)(
		void *context, struct monitored_test *monitored, const struct run_report *report);
	void *context;
};

/* Begins a pass of a subject of which none is running. Both must live until the end. */
void test_run_begin(const struct run_context *runs, struct monitored_test *monitored);

/* Frees what the subject holds, after the engine is gone or while no pass is running. */
void test_run_clear(struct monitored_test *monitored);

#endif
