/*
 * One bisection in progress: from its row to the verdict in the row of its change.
 *
 * The commits come from the test's clone, the next run from agent/bisect/bisection.h, and the runs
 * are made by workers of this machine (agent/bisect/workers.h) or by a lab, with requests over HTTP
 * and answers by the API. Each run is recorded before it begins, each result when it arrives: after
 * a crash, or with another agent of a fleet, the bisection resumes from the rows. Runs of workers
 * in progress are lost then and repeated; a lab gets the same requests again.
 *
 * For the loop's thread; nothing here waits.
 */
#ifndef AGENT_MONITOR_BISECT_WORK_H
#define AGENT_MONITOR_BISECT_WORK_H

#include "agent/runtime/agent.h"

enum bisect_stage {
	STAGE_LOADING, /* the row with its journal and its change is read, */
	STAGE_RANGE,   /* git lists the commits, */
	STAGE_SETUP,   /* the first line is written */
	STAGE_SEARCH,
	STAGE_END,      /* the end is written, */
	STAGE_CLEANING, /* the work trees are removed */
	STAGE_OVER,
};

/* Only id, test, shard, settings and `told` are for others than its lab. */
struct bisect_work {
	struct agent *agent;
	struct bisections *owner; /* notified when it is due sooner, and when it has ended */
	struct arena *arena;
	int64_t id, change;
	const char *test, *metric;
	int shard;
	struct config_ref *config_ref;
	const struct bisect_settings *settings;
	const char *repository_given;
	enum bisect_stage stage;
	bool dropped;
	const char *cancelled; /* why it is to end, or NULL */

	struct journal_setup *setup;
	struct candidates_search *searching; /* git runs, ... */
	struct store_bisections *range;      /* ... about the change in it */
	struct bisect_driver *driver;
	struct workers *workers; /* or ... */
	struct lab *lab;
	int64_t pause_until; /* engine_now */

	struct bisection_line *lines; /* all of this process, */
	size_t line_count, stored;    /* ... of which the first are in the store */
	bool writing;
	int64_t write_at;          /* engine_now, after a failure; 0: now */
	const char *end, *verdict; /* the final write */
	const struct culprit *culprit;
	size_t calls; /* in progress: they have this work as their context */
	bool told;    /* there is a verdict to announce */
};

/* Takes a bisection up that runs, of a test with `bisect`. */
struct bisect_work *bisect_work_new(struct agent *agent, const struct bisection_row *row,
	const struct test *test, int shard, struct bisections *owner);
/* After bisections_work_ended, or after the engine was freed. */
void bisect_work_free(struct bisect_work *work);

/* Ends it, for the reason `why`. */
void bisect_work_cancel(struct bisect_work *work, const char *why);

/* A lab's answers, in their stored form. */
void bisect_work_answers(struct bisect_work *work, const struct bisection_lines *lines);

/* Something that it waits for has happened. */
void bisect_work_advance(struct bisect_work *work);

/* Another agent has it: nothing is written any more, its runs end. */
void bisect_work_drop(struct bisect_work *work);

/* When it has something to do (engine_now), WHEN_NEVER: not by itself; and does that. */
int64_t bisect_work_due(const struct bisect_work *work);
void bisect_work_tick(struct bisect_work *work);

#endif
