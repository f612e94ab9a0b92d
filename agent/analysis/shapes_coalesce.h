/*
 * Matches clusters with those of earlier runs.
 *
 * k-means does not name its clusters, and the next run may draw them differently. A cluster is the
 * known one with the same direction and change point; otherwise the one with that direction more
 * than half of whose best members it contains, if the change points are not far apart. (This is
 * Skia Perf's rule without its blind spot: that one ignores the distance, so a group of series
 * that changes again is no news.)
 */
#ifndef AGENT_ANALYSIS_SHAPES_COALESCE_H
#define AGENT_ANALYSIS_SHAPES_COALESCE_H

#include "agent/analysis/shapes.h"

enum {
	COALESCE_BEST = 20, /* members by which a cluster is recognised */
	COALESCE_NEAR = 5,  /* points between change points that count as the same, */
	COALESCE_FAR = 20,  /* ... or that may be the same if the members agree */
};

#define COALESCE_NONE SIZE_MAX

struct known_shape {
	int64_t time, spacing; /* ms */
	int sign;
	const char *best; /* as written by coalesce_best */
};

/* The best members, one on each line, in the arena. */
const char *coalesce_best(const struct shape *shape, struct arena *arena);

/* known_of[i]: the known cluster that shapes[i] is, or COALESCE_NONE. Several may be the same
 * one. */
void coalesce(const struct shape *shapes, size_t count, const struct known_shape *known,
	size_t known_count, size_t *known_of);

#endif
