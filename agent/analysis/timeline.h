/*
 * A dataset as rows of points in time, whatever axes its series have, and the change points on
 * them. Points with the same time share a row unless an attribute differs: two series measured at
 * midnight on different commits were not measured together.
 *
 * Rows are not stored, since series with times of their own make as many rows as points, mostly
 * empty: a row is identified by its moment and found by search, and a cursor goes through all of
 * them.
 */
#ifndef AGENT_ANALYSIS_TIMELINE_H
#define AGENT_ANALYSIS_TIMELINE_H

#include "agent/analysis/analysis.h"

struct timeline {
	struct axis **axes;
	size_t axis_count;
	struct strings names;          /* of the attributes, each once */
	const struct column **columns; /* by axis, then by name; NULL if the axis lacks it */
};

/* A row: its time, and its number among the rows of that time. Points of one axis are never on one
 * row, nor are two with different values of an attribute; a point without the attribute matches
 * any. */
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

/* Sorted by row, then by series. */
struct hits {
	const struct hit *items;
	size_t count;
};

/* The distinct axes of a dataset, in the order of its series. */
struct axis **dataset_axes(const struct dataset *data, struct arena *arena, size_t *count);

struct timeline timeline_of(struct arena *arena, const struct dataset *data);
struct hits hits_of(
	const struct analysis *analysis, const struct timeline *timeline, struct arena *arena);
int moment_compare(const struct moment *a, const struct moment *b);

/* The number of a series' axis. */
size_t timeline_axis(const struct timeline *timeline, const struct series *series);

/* The attribute at the point where a series changed, or NULL. */
const char *change_attribute(
	const struct series *series, const struct change *change, const char *name);

/* The attribute at the last point before the change that has a value and the attribute, or NULL:
 * for "commit", the last good one. */
const char *change_attribute_before(
	const struct series *series, const struct change *change, const char *name);

/* Names of attributes: `wanted` if not empty, else those of the axes; without `all` only those that
 * are set somewhere. */
struct strings timeline_attributes(
	struct arena *arena, const struct timeline *timeline, struct strings wanted, bool all);

/* Iterates over the rows; at the beginning and after a rewind it is before the first one. */
struct cursor {
	const struct timeline *timeline;
	bool started; /* on a row, or after the last */
	struct moment moment;
	size_t *next;            /* by axis: the first point after this row */
	size_t *point;           /* by axis: the one on this row, or SIZE_MAX */
	const char **attributes; /* by name: the attribute on this row, or NULL */
};

struct cursor cursor_of(struct arena *arena, const struct timeline *timeline);
void cursor_rewind(struct cursor *cursor);
bool cursor_next(struct cursor *cursor); /* false after the last row */

/* The value of a series on the row, NaN if it has none; `axis` is the number of its axis. */
double cursor_value(const struct cursor *cursor, const struct series *series, size_t axis);
const char *cursor_attribute(const struct cursor *cursor, const char *name);

#endif
