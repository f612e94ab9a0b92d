/*
 * A dataset as people read it: one row a point in time, whatever axes its series are on, and the
 * change points on them.
 */
#ifndef AGENT_ROWS_H
#define AGENT_ROWS_H

#include "agent/analyze.h"

/* The points of all axes by time; points of one time share a row, but points of one axis never do.
 */
struct rows {
	size_t count;
	const int64_t *times;
	struct axis **axes;
	size_t axis_count;
	const size_t *index; /* count x axis_count: the point on that axis, or SIZE_MAX; NULL: one
				axis, its index is the row */
};

/* A change point, the row it is on and the number of its series in the dataset. */
struct hit {
	size_t row, series;
	const struct change *change;
};

/* By row, then by series. */
struct hits {
	const struct hit *items;
	size_t count;
};

/* The distinct axes of a dataset, in the order of its series. */
struct axis **dataset_axes(const struct dataset *data, struct arena *arena, size_t *count);

/* Series and axes of their own on the same times and values, so that cutting one dataset leaves the
 * other. */
struct dataset dataset_view(struct arena *arena, const struct dataset *data);

struct rows rows_of(struct arena *arena, const struct dataset *data);
struct hits hits_of(struct arena *arena, const struct analysis *analysis, const struct rows *rows);

/* The value of a series on a row; NaN where it has none. `axis` is the number of its axis. */
double row_value(const struct rows *rows, size_t row, const struct series *series, size_t axis);
size_t rows_axis(const struct rows *rows, const struct series *series);

/* The attribute on a row, of the first axis that has it there, or NULL. */
const char *row_attribute(const struct rows *rows, size_t row, const char *name);

/* Names of attributes: `wanted` if there are any, else those of the axes; without `all` only those
 * that are set somewhere. */
struct strings rows_attributes(
	struct arena *arena, const struct rows *rows, struct strings wanted, bool all);

#endif
