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
#include "agent/notify/announcer.h"

struct cluster_pass;

struct cluster_begin {
	struct agent *agent;
	struct announcer *announcer; /* gets what is new */
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

struct cluster_pass *cluster_pass_begin(const struct cluster_begin *begin);

/* Nobody wants its results any more. */
void cluster_pass_drop(struct cluster_pass *pass);

/* Of one that has not ended, after the engine is gone. NULL is welcome. */
void cluster_pass_free(struct cluster_pass *pass);

#endif
