/*
 * A cluster's pass: from the answers of its tests' sources to what the store has recorded.
 *
 * All its tests are read, beside their own passes; their series are clustered on a worker and the
 * clusters compared with those that are known. Tests that cannot be read are left out, as the
 * others' shapes do not depend on them; if more than half cannot be read, the pass fails and
 * changes nothing. It holds the generation that it began under.
 */
#ifndef AGENT_MONITOR_CLUSTER_PASS_H
#define AGENT_MONITOR_CLUSTER_PASS_H

#include "agent/monitor/cluster_news.h"
#include "agent/notify/dispatcher.h"

struct cluster_run;

struct cluster_begin {
	struct agent *agent;
	struct dispatcher *dispatcher; /* gets what is new */
	const struct group *group;
	const struct test *const *tests; /* of the group, that are watched; at least one; copied */
	size_t test_count;
	bool silent;                   /* what is found was there before: it is not told */
	struct cluster_memory *memory; /* the pass' own until its end */
	/* Called at the end, on the loop's thread; the pass is gone by then. `problem`: why it
	 * failed, or NULL. */
	void (*done)(void *context, const char *problem);
	void *context;
};

struct cluster_run *cluster_run_begin(const struct cluster_begin *begin);

/* Nobody wants its results any more. */
void cluster_run_drop(struct cluster_run *run);

/* Of one that has not ended, after the engine is gone. NULL is welcome. */
void cluster_run_free(struct cluster_run *run);

#endif
