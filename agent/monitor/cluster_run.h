/*
 * A run of a cluster: fetch the data of all its tests, cluster the series, record the result.
 *
 * The tests are read independently of their own runs; the series are clustered on a worker and the
 * clusters compared with the known ones. Tests that cannot be read are left out, since the shapes
 * of the others do not depend on them; if more than half cannot be read, the run fails and changes
 * nothing. A run holds a reference to the configuration that it began under.
 */
#ifndef AGENT_MONITOR_CLUSTER_RUN_H
#define AGENT_MONITOR_CLUSTER_RUN_H

#include "agent/monitor/cluster_news.h"
#include "agent/monitor/scheduled_job.h"

struct cluster_run;

struct cluster_begin {
	struct agent *agent;
	struct dispatcher *dispatcher;   /* receives new clusters */
	const struct scheduled_job *job; /* its tests are copied */
	const struct group *group;
	bool silent;                 /* the findings are old: they are not announced */
	struct cluster_cache *cache; /* owned by the run until its end */
	/* Called at the end, on the loop's thread; the run is freed by then. `problem` says why it
	 * failed; NULL: it succeeded. */
	void (*done)(void *context, const char *problem);
	void *context;
};

struct cluster_run *cluster_run_begin(const struct cluster_begin *begin);

/* Frees a run that has not ended; to be called after the engine was freed. NULL is allowed. */
void cluster_run_free(struct cluster_run *run);

#endif
