/*
 * From the clusters that a pass found to what the store shall write, and to what they cover.
 */
#ifndef AGENT_MONITOR_CLUSTER_NEWS_H
#define AGENT_MONITOR_CLUSTER_NEWS_H

#include "agent/analysis/shapes.h"
#include "agent/monitor/news.h"

/* A cluster as it was found last. */
struct cluster_change_key {
	int64_t id, time; /* of its record; ms */
	double regression;
};

/* A series that is in a cluster. */
struct covered {
	uint64_t series; /* hash of its test and identity */
	int64_t time, spacing;
	int sign;
};

/* What a cluster's passes leave for one another. Zeroed: nothing. */
struct cluster_memory {
	struct cluster_change_key *sightings;
	size_t sighting_count;
	struct covered *covered; /* by the last pass, in order of the series */
	size_t covered_count;
	int64_t reach; /* ms: it can tell of changes up to then */
};

void cluster_memory_free(struct cluster_memory *memory);

/*
 * Fills `request` (STORE_RECORD) with records of clusters that are new and updates of known ones
 * that show more clearly than before. `known` are the group's, as STORE_KNOWN gives them; a change
 * that is too old by the clock (see news_oldest) is recorded as NOTIFY_SILENT. `memory` is brought
 * up to date. For a worker.
 */
void cluster_news(const char *group, const struct shape_report *report,
	const struct change_record *known, size_t known_count, const struct news_clock *clock,
	struct cluster_memory *memory, struct store_request *request);

/* Whether the change is that of a cluster its series was in in the last pass. */
bool cluster_covers(const struct cluster_memory *memory, const struct change_record *record);

#endif
