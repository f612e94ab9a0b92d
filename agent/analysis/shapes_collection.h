/*
 * The series collected by shapes.h, before clustering. Private to agent/analysis.
 */
#ifndef AGENT_ANALYSIS_SHAPES_COLLECTION_H
#define AGENT_ANALYSIS_SHAPES_COLLECTION_H

#include "agent/analysis/shapes.h"
#include "agent/analysis/shapes_grid.h"

enum { ATTRIBUTE_COMMIT, ATTRIBUTE_VERSION, ATTRIBUTES };

/* Times with the attributes of their points; NULL where there are none. */
struct times {
	struct grid_times grid;
	const char **attributes[ATTRIBUTES];
	struct axis axis; /* the same, with deployments */
};

struct entry {
	const char *test, *series, *identity, *unit;
	int direction;
	size_t axis;
	double *values;
	struct window window;
};

struct shapes {
	struct arena *arena;
	struct entry *entries;
	size_t count, capacity;
	struct times *axes;
	size_t axis_count, axis_capacity;
};

#endif
