/*
 * A dataset as people read it: one row a point in time, whatever axes its series are on, and the
 * change points on them. Points of one time share a row unless an attribute tells them apart: two
 * series that were measured at midnight on different commits were not measured together.
 *
 * Rows are never laid out in memory, as series with times of their own have as many rows as points
 * and most of them nothing on each: a row is known by its moment and found by search, and a cursor
 * goes through all of them.
 */
#ifndef AGENT_ANALYSIS_TIMELINE_H
#define AGENT_ANALYSIS_TIMELINE_H

#include "agent/analysis/analysis.h"

struct timeline {
	struct axis **axes;
	size_t axis_count;
	struct strings names;          /* of the attributes, each once */
	const struct column **columns; /* by axis, then by name; NULL where it has no such */
};

/* A row: its time, and its number among the rows of that time. Points of one axis are never on one
 * row, nor are two that have different values of an attribute; one without it goes with any. */
struct moment {
	int64_t time; /* ms */
	size_t ordinal;
};

/* A change point, the row it is on and the number of its series in the dataset. */
struct hit {
	struct moment moment;
	size_t series;
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

struct timeline timeline_of(struct arena *arena, const struct dataset *data);
struct hits hits_of(
	const struct analysis *analysis, const struct timeline *timeline, struct arena *arena);
int moment_compare(const struct moment *a, const struct moment *b);

/* The number of a series' axis. */
size_t timeline_axis(const struct timeline *timeline, const struct series *series);

/* The attribute of the point at which a series changed, or NULL. */
const char *change_attribute(
	const struct series *series, const struct change *change, const char *name);

/* The attribute of the last point before the change that has a value and the attribute, or NULL: of
 * "commit", the last good one. */
const char *change_attribute_before(
	const struct series *series, const struct change *change, const char *name);

/* Names of attributes: `wanted` if there are any, else those of the axes; without `all` only those
 * that are set somewhere. */
struct strings timeline_attributes(
	struct arena *arena, const struct timeline *timeline, struct strings wanted, bool all);

/* Goes through the rows: before the first one at the beginning and after a rewind. */
struct cursor {
	const struct timeline *timeline;
	bool started; /* it is on a row, or behind the last */
	struct moment moment;
	size_t *next;            /* by axis: the first point after this row */
	size_t *point;           /* by axis: the one on this row, or SIZE_MAX */
	const char **attributes; /* by name: what the row's points have, or NULL */
};

struct cursor cursor_of(struct arena *arena, const struct timeline *timeline);
void cursor_rewind(struct cursor *cursor);
bool cursor_next(struct cursor *cursor); /* false behind the last row */

/* The value of a series on the row, NaN where it has none; `axis` is the number of its axis. */
double cursor_value(const struct cursor *cursor, const struct series *series, size_t axis);
const char *cursor_attribute(const struct cursor *cursor, const char *name);

#endif
