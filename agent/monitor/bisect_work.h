/*
 * One bisection at work: from the row that says so to the verdict in the row of its change.
 *
 * The commits come from the test's clone, what is to be run next from agent/bisect/bisection.h, and
 * the runs are made by workers of this machine (agent/bisect/workers.h) or by a lab, which is asked
 * over HTTP and answers by the API. Each run is recorded before it begins, each result when it is
 * there: whoever has the bisection next, after a crash or in a fleet, goes on from the rows. Runs
 * of workers that were in hand are lost then and made again; a lab is asked again for the same
 * runs.
 *
 * For the loop's thread; nothing here waits.
 */
#ifndef AGENT_MONITOR_BISECT_WORK_H
#define AGENT_MONITOR_BISECT_WORK_H

#include "agent/runtime/agent.h"

struct bisect_work;

struct bisect_work_listener {
	/* When `bisect_work_due` may be sooner. */
	void (*due)(void *context);
	/* It has ended, or another agent has it; nothing uses it any more, and it is to be freed.
	 * `told`: there is a verdict of which people are to be told. */
	void (*ended)(void *context, struct bisect_work *work, bool told);
	void *context;
};

/* Takes a bisection up that runs, of a test with `bisect`. The listener is copied. */
struct bisect_work *bisect_work_new(struct agent *agent, const struct bisection_row *row,
	const struct test *test, int shard, const struct bisect_work_listener *listener);
/* After `ended`, or after the engine was freed. */
void bisect_work_free(struct bisect_work *work);

int64_t bisect_work_id(const struct bisect_work *work);
int bisect_work_shard(const struct bisect_work *work);
const char *bisect_work_test(const struct bisect_work *work);
bool bisect_work_asks_a_lab(const struct bisect_work *work);

/* It is to end, as `why` says. */
void bisect_work_cancel(struct bisect_work *work, const char *why);

/* What a lab has said of its runs, as it is stored. */
void bisect_work_answers(struct bisect_work *work, const struct bisection_lines *lines);

/* Another agent has it: nothing is written any more, its runs end. */
void bisect_work_drop(struct bisect_work *work);

/* When it has something to do (engine_now), WHEN_NEVER: not by itself; and does that. */
int64_t bisect_work_due(const struct bisect_work *work);
void bisect_work_tick(struct bisect_work *work);

#endif
