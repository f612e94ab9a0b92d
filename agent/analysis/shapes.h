/*
 * Shapes: series of many tests that changed together, found by clustering.
 *
 * Series are collected as their tests come in, put on one axis of times, clustered by their shape
 * (k-means), and the clusters whose centroid is a step are reported, each with the series in it and
 * what these have in common. Skia Perf's method (https://perf.skia.org). Clusters with the same
 * change point and direction are one.
 */
#ifndef AGENT_ANALYSIS_SHAPES_H
#define AGENT_ANALYSIS_SHAPES_H

#include "agent/core/arena.h"
#include "agent/core/attribution.h"
#include "agent/core/change.h"
#include "agent/core/labels.h"
#include "agent/core/series.h"
#include "detectors/kmeans.h"

struct shapes;

struct shapes *shapes_new(void);
void shapes_free(struct shapes *shapes);

/* Copies the series of a test. */
void shapes_add(struct shapes *shapes, const char *test, const struct dataset *data);

/* Adds what others have collected, who are gone afterwards. */
void shapes_join(struct shapes *shapes, struct shapes *others);

struct shape_options {
	int64_t k; /* clusters; 0: by the number of series */
	int64_t seed;
	double interesting; /* a cluster is told if its regression is at least this */
	int64_t least;      /* and has at least so many members */
};

extern const struct field shape_fields[];

struct shape_member {
	const char *test, *series, *identity;
};

/* An interesting cluster. */
struct shape {
	int64_t time;      /* ms, of the first point behind the step */
	int64_t spacing;   /* ms from point to point of the axis, near it */
	int sign;          /* 1: up, -1: down */
	double regression; /* negative: up, as Skia has it */
	double ratio;      /* median over the members of level behind by level before; NaN: none */
	/* Of the nearest member, as if found by a detector: all before against all behind. */
	struct change change;
	const char *unit;
	int direction; /* the metric's, if all members have the same; else 0 */
	/* Of the nearest member that has any; NULL where unknown. */
	const char *commit_before, *commit_after, *version_before, *version_after;
	struct attribution suspects;        /* of its members */
	const struct shape_member *members; /* nearest to the centroid first */
	size_t count;
	const struct label_share *labels; /* most telling first */
	size_t label_count;
};

struct shape_report {
	const struct shape *shapes; /* largest regression first */
	size_t count;
	size_t series;   /* that were clustered */
	size_t left_out; /* with too few values on the axis */
	size_t points;   /* of the axis */
	int64_t reach;   /* ms: a later step is not told yet, too few points lie behind it */
	size_t k, iterations;
	double error;
};

/* In the arena; names are borrowed from the shapes. `parallel` may be NULL. */
void shapes_find(const struct shapes *shapes, const struct shape_options *options,
	const struct parallel *parallel, struct arena *arena, struct shape_report *out);

#endif
