/*
 * Compares the clusters that a run found with the known ones: what the store has to record, and
 * which changes of tests they cover.
 */
#ifndef AGENT_MONITOR_CLUSTER_NEWS_H
#define AGENT_MONITOR_CLUSTER_NEWS_H

#include "agent/analysis/shapes.h"
#include "agent/monitor/news.h"

/* A cluster as it was last found. */
struct cluster_change_key {
	int64_t id, time; /* id of its record; time in ms */
	double regression;
};

/* A series that is part of a cluster. */
struct covered {
	uint64_t series; /* hash of test and identity */
	int64_t time, spacing;
	int sign;
};

/* What one run of a cluster keeps for the next. All zero: nothing. */
struct cluster_cache {
	struct cluster_change_key *keys;
	size_t key_count;
	struct covered *covered; /* by the last run, sorted by series */
	size_t covered_count;
	int64_t reach; /* ms: changes up to then can be reported */
};

void cluster_cache_free(struct cluster_cache *cache);

/*
 * Fills `request` with records of new clusters and updates of known ones that show
 * more clearly than before. `known` are the group's, as returned by store_known; a change that is
 * too old (see news_oldest) is recorded as NOTIFY_SILENT. Updates `cache`. changes[i] is the id of
 * the record that shapes[i] of the report is, or, if it is a new one, -1 - its index in the
 * request. Runs on a worker.
 */
void cluster_news(const char *group, const struct shape_report *report,
	const struct change_record *known, size_t known_count, const struct news_clock *clock,
	struct cluster_cache *cache, struct store_record *request, int64_t *changes);

/* Whether the change belongs to a cluster that contained its series in the last run. */
bool cluster_covers(const struct cluster_cache *cache, const struct change_record *record);

#endif
