/*
 * Which clusters are known already.
 *
 * k-means gives no names to its clusters, and the next run of it may draw the lines elsewhere. A
 * cluster is the known one of the same direction and change point; or else the one of that
 * direction of whose best members more than half are in it, if its change point has not gone far.
 * (Skia Perf's rule, which knows no distance: there a crowd that moves again is no news.)
 */
#ifndef AGENT_ANALYSIS_SHAPES_COALESCE_H
#define AGENT_ANALYSIS_SHAPES_COALESCE_H

#include "agent/analysis/shapes.h"

enum {
	COALESCE_BEST = 20, /* members by which a cluster is known again */
	COALESCE_NEAR = 5,  /* points between change points that are the same, */
	COALESCE_FAR = 20,  /* ... that may be, if the members say so */
};

#define COALESCE_NONE SIZE_MAX

struct known_shape {
	int64_t time, spacing; /* ms */
	int sign;
	const char *best; /* as coalesce_best wrote it */
};

/* The best members, one a line, in the arena. */
const char *coalesce_best(const struct shape *shape, struct arena *arena);

/* known_of[i]: the known one that shapes[i] is, or COALESCE_NONE. Several may be the same one. */
void coalesce(const struct shape *shapes, size_t count, const struct known_shape *known,
	size_t known_count, size_t *known_of);

#endif
