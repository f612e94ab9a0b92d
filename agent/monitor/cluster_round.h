/*
 * The last rounds of a cluster, as people are shown them. Bounded: of the last one the clearest
 * shapes with their nearest members and a coarse centroid, of earlier ones the numbers.
 */
#ifndef AGENT_MONITOR_CLUSTER_ROUND_H
#define AGENT_MONITOR_CLUSTER_ROUND_H

#include "agent/analysis/shapes.h"
#include "agent/store/store.h"

enum {
	CLUSTER_ROUNDS = 10,
	CLUSTER_ROUND_SHAPES = 30,
	CLUSTER_ROUND_MEMBERS = 30,
	CLUSTER_ROUND_POINTS = 160, /* of the centroids */
};

/* A shape of the last round. */
struct round_shape {
	int64_t change;   /* id of its record; 0: unknown */
	const char *json; /* the members of an object, all but that */
};

struct cluster_round {
	int64_t ended, duration;  /* ms, wall clock; ms */
	char problem[ERROR_TEXT]; /* why it failed; "": it did not */
	size_t tests, failed;     /* read, or not */
	size_t series, left_out, points, k;
	size_t found, fresh; /* shapes, and those of them that were new */
};

/* The last round that did not fail, with its shapes. */
struct cluster_shapes {
	struct arena *arena;
	struct cluster_round round;
	const char *times;         /* of the centroids' points, ms: the items of a JSON list */
	struct round_shape *items; /* at most CLUSTER_ROUND_SHAPES */
	size_t count;
};

/* What is shown of the report; changes[i] is the id of the record that a shape is, or
 * -1 - its index among those that are new. */
struct cluster_shapes *cluster_shapes_new(
	const struct shape_report *report, const int64_t *changes);
void cluster_shapes_free(struct cluster_shapes *shapes); /* accepts NULL */

/* Sets the ids of the shapes whose records are new: as the store has given them. */
void cluster_shapes_recorded(struct cluster_shapes *shapes, const struct store_record *recorded);

/* The last first. */
struct cluster_rounds {
	struct cluster_round items[CLUSTER_ROUNDS];
	size_t count;
	struct cluster_shapes *shapes; /* or NULL */
};

/* Takes over the shapes, which are NULL if it has failed. */
void cluster_rounds_add(struct cluster_rounds *rounds, const struct cluster_round *round,
	struct cluster_shapes *shapes);
void cluster_rounds_clear(struct cluster_rounds *rounds);

#endif
