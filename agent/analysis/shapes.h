/*
 * Shapes: series of many tests that changed together, found by clustering.
 *
 * Series are collected test by test, put on one time axis and clustered by their shape (k-means).
 * Clusters whose centroid is a step are reported, each with its series and their common labels.
 * This is Skia Perf's method (https://perf.skia.org). Clusters with the same change point and
 * direction are merged.
 */
#ifndef AGENT_ANALYSIS_SHAPES_H
#define AGENT_ANALYSIS_SHAPES_H

#include "agent/analysis/kmeans.h"
#include "agent/base/arena.h"
#include "agent/model/attribution.h"
#include "agent/model/change.h"
#include "agent/model/labels.h"
#include "agent/model/series.h"

struct shapes;

struct shapes *shapes_new(void);
void shapes_free(struct shapes *shapes);

/* Copies the series of a test. */
void shapes_add(struct shapes *shapes, const char *test, const struct dataset *data);

/* Moves the series collected in `others` here, and frees it. */
void shapes_join(struct shapes *shapes, struct shapes *others);

struct shape_options {
	int64_t k; /* clusters; 0: chosen by the number of series */
	int64_t seed;
	double interesting; /* a cluster is reported if its regression is at least this */
	int64_t least;      /* and it has at least so many members */
};

extern const struct field shape_fields[];

struct shape_member {
	const char *test, *series, *identity;
};

/* An interesting cluster. */
struct shape {
	int64_t time;      /* ms, of the first point after the step */
	int64_t spacing;   /* ms between points of the axis, near the step */
	int sign;          /* 1: up, -1: down */
	double regression; /* negative: up, as in Skia Perf */
	double ratio;      /* level after by level before, median of the members; NaN: none */
	/* Of the nearest member, as a detector would report it: all points before against all
	 * after. */
	struct change change;
	const char *unit;
	int direction; /* the metric's, if all members agree; else 0 */
	/* Of the nearest member that has one; NULL if unknown. */
	const char *commit_before, *commit_after, *version_before, *version_after;
	struct attribution suspects;        /* of all members */
	const struct shape_member *members; /* nearest to the centroid first */
	size_t count;
	const struct label_share *labels; /* most significant first */
	size_t label_count;
	const float *centroid; /* the mean of the members' shapes, by point of the axis */
};

struct shape_report {
	const struct shape *shapes; /* largest regression first */
	size_t count;
	size_t series;        /* series that were clustered */
	size_t left_out;      /* series with too few values on the axis */
	size_t points;        /* points of the axis, ... */
	const int64_t *times; /* ... ms */
	int64_t reach; /* ms: later steps are not reported yet, since too few points follow */
	size_t k, iterations;
	double error;
};

/* The result is in the arena; names are borrowed from the shapes. `parallel` may be NULL. */
void shapes_find(const struct shapes *shapes, const struct shape_options *options,
	const struct parallel *parallel, struct arena *arena, struct shape_report *out);

#endif
