/*
 * A cache of the points of tests that users view: simultaneous views cost one fetch.
 *
 * A dataset is kept for the interval of its test, at most ten minutes, as long as the configuration
 * is the same, and until the state has later points. All together are kept under a cap of bytes;
 * the oldest go first. A few are fetched at a time; further ones wait in a queue.
 */
#ifndef AGENT_WEB_DATASETS_H
#define AGENT_WEB_DATASETS_H

#include "agent/monitor/plotting.h"
#include "agent/runtime/agent.h"

enum { DATASETS_BYTES = 32 << 20 };

struct datasets;

/* Something to be done with a dataset; the first member of the caller's. */
struct dataset_job {
	/* On a worker, one job of a dataset at a time. `found` is by series and kept with the
	 * data, in `keep`. */
	void (*work)(struct dataset_job *job, const struct task *task, struct plotting_found *found,
		struct arena *keep, struct scratch *scratch);
	/* On the loop's thread, which has the job again. `error`: the data could not be read. */
	void (*done)(struct dataset_job *job, const struct error *error);
	void (*drop)(struct dataset_job *job); /* instead, if the agent ends first */
	struct dataset_job *next;              /* the cache's */
};

/* Whoever has a task's data read; the first member of the task's context. */
struct fetching {
	struct agent *agent;
};

/* Makes the task the caller's: with its context, and the configuration in use. */
void fetching_begin(struct fetching *fetching, struct agent *agent, struct task *task);

/* Reads the data, that of companions first; task->done follows. */
void fetching_submit(struct task *task);

struct datasets *datasets_new(struct agent *agent);
void datasets_free(struct datasets *datasets); /* after the engine; accepts NULL */

/*
 * Has the job done with the data of the task's query, which are fetched unless they are there.
 * Takes the task. `wide`: the query's `since` is not the usual one. Data that were fetched before
 * `newer` (ms, wall clock) are too old.
 */
void datasets_use(struct datasets *datasets, struct task *task, bool wide, int64_t newer,
	struct dataset_job *job);

#endif
