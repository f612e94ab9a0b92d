/*
 * The driver of a bisection, one for the command and the agent: it gets a run from the search for
 * each free worker, has it made, and reports the result to the search.
 *
 * Its owner brings the clock, the journal (lines of a file, rows of the store) and the runner that
 * makes the runs (workers of this machine, a lab). A run begins once its start is stored; events
 * are stored in the order in which the search receives them, so that the journal restores the
 * search after a crash.
 */
#ifndef AGENT_BISECT_DRIVER_H
#define AGENT_BISECT_DRIVER_H

#include "agent/bisect/journal.h"

/* Makes runs, one at a time for each worker; reports each by bisect_driver_report. */
struct bisect_runner {
	/* `commit`: full id, borrowed from the setup. `begun`: ms, wall clock; of a run that is
	 * resumed: when it began. */
	void (*begin)(
		void *context, const struct bisect_run *run, const char *commit, int64_t begun);
	bool (*is_busy)(const void *context, size_t worker);
	/* It gets no more runs; NULL: never. */
	bool (*is_gone)(const void *context, size_t worker);
	/* Ends the run of a busy worker, which is reported as BISECT_LOST, at once or later. */
	void (*stop)(void *context, size_t worker);
	/* Its runs continue when the program ends: they are begun again on resumption, not lost. */
	bool keeps_runs;
};

struct bisect_driver_owner {
	int64_t (*now)(void *context); /* ms, wall clock */
	/* Stores an event, which is valid during the call. After JOURNAL_BEGIN it calls
	 * bisect_driver_stored, at once or later; the owner handles events that cannot be
	 * stored. */
	void (*put)(void *context, const struct journal_entry *event);
	void *context;
};

struct bisect_driver;

/* The setup, the owner and the runner are borrowed; the runner is needed from the first advance or
 * resumption. */
struct bisect_driver *bisect_driver_new(const struct journal_setup *setup,
	const struct bisect_driver_owner *owner, const struct bisect_runner *runner, void *runs);
void bisect_driver_free(struct bisect_driver *driver); /* accepts NULL */

/* Restores the state from the journal; to be called once, first of all. Runs without a result are
 * resumed by a runner that keeps them, else lost, with the reason `problem`. */
void bisect_driver_resume(
	struct bisect_driver *driver, const struct journal *journal, const char *problem);

enum bisect_driver_state {
	BISECT_DRIVER_RUNS, /* waits for results, or for the owner to let it begin runs */
	BISECT_DRIVER_GONE, /* no worker answers any more */
	BISECT_DRIVER_OVER, /* the search is, and no run is left */
};

/* Gives runs to free workers if it `may_begin` any, and stops those that are not needed any more.
 * To be called after each report and when bisect_driver_due has come. */
enum bisect_driver_state bisect_driver_advance(struct bisect_driver *driver, bool may_begin);
/* When the budget ends (ms, wall clock); INT64_MAX: not yet known, never, or it has. */
int64_t bisect_driver_due(const struct bisect_driver *driver);

void bisect_driver_stored(struct bisect_driver *driver, uint64_t run);
/* The result of a run, of the runner. `problem`: why there is no value, or NULL. */
void bisect_driver_report(
	struct bisect_driver *driver, const struct bisect_result *result, const char *problem);

/* Ends the search as cancelled; the runs end with the next advance. */
void bisect_driver_cancel(struct bisect_driver *driver);
/* Ends all runs. True if none is left, at once or already. */
bool bisect_driver_stop(struct bisect_driver *driver);

const struct bisect_status *bisect_driver_status(struct bisect_driver *driver);

#endif
