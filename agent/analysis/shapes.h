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

/* The common time axis of series of different tests */

/* The times of one series' points, ms, ascending. */
struct grid_times {
	const int64_t *times;
	size_t n;
};

/*
 * If series share their times, the grid has a point for each time; if every series has its own,
 * the range is cut into as many equal bins as the median series has points.
 */
struct grid {
	int64_t *times; /* of each point, or the start of its bin; ms, ascending */
	size_t n;
};

struct grid grid_make(struct arena *arena, const struct grid_times *axes, size_t count);

/* Puts values on the grid: the mean of those that fall on a point, NaN if none does. `counts` is
 * scratch space for grid->n numbers. */
void grid_place(const struct grid *grid, const struct grid_times *axis, const double *values,
	double *out, size_t *counts);

/*
 * Matches clusters with those of earlier runs.
 *
 * k-means does not name its clusters, and the next run may draw them differently. A cluster is the
 * known one with the same direction and change point; otherwise the one with that direction more
 * than half of whose best members it contains, if the change points are not far apart. (This is
 * Skia Perf's rule without its blind spot: that one ignores the distance, so a group of series
 * that changes again is no news.)
 */
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
