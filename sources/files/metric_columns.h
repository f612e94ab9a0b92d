/*
 * Metrics that a file names in its rows (not in a header), each with a column of numbers: all of
 * them, or the configured ones.
 */
#ifndef SOURCES_FILES_METRIC_COLUMNS_H
#define SOURCES_FILES_METRIC_COLUMNS_H

#include "agent/base/dict.h"
#include "sources/files/rows.h"

/* The index of a name in `names` is that of its column in `rows`. */
struct metric_columns {
	struct query *query;
	struct rows *rows;
	struct name_index names;
	bool *seen;
};

/* Adds the configured metrics, in their order. */
bool metric_columns_start(struct metric_columns *found, struct query *query, struct rows *rows,
	struct error *error) MUST_USE;

/*
 * The column of the metric, or NAME_INDEX_NONE if it is not wanted. Without configured metrics, a
 * new one is added with that direction.
 */
bool metric_columns_column(struct metric_columns *found, const char *name, size_t length,
	int direction, size_t *column, struct error *error) MUST_USE;

/* Calls rows_finish; configured metrics without any value are left out, with a notice. */
void metric_columns_finish(struct metric_columns *found, const char *file);

#endif
