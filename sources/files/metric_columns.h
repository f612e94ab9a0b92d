/*
 * Metrics that a file lists by name, row by row, each with a column of numbers: all of them, or the
 * configured ones.
 */
#ifndef SOURCES_FILES_METRIC_COLUMNS_H
#define SOURCES_FILES_METRIC_COLUMNS_H

#include "agent/core/dict.h"
#include "sources/files/rows.h"

/* A metric's number in `names` is its column's in the rows. */
struct metric_columns {
	struct query *query;
	struct rows *rows;
	struct name_index names;
	const struct metric **metrics;
	bool *seen;
};

/* Adds the configured metrics, in their order. */
bool metric_columns_start(struct metric_columns *found, struct query *query, struct rows *rows,
	struct error *error) MUST_USE;

/*
 * The column of the metric, NAME_INDEX_NONE if it is not wanted. If none are configured, a new one
 * is added with that direction.
 */
bool metric_columns_column(struct metric_columns *found, const char *name, size_t length,
	int direction, size_t *column, struct error *error) MUST_USE;

/* Ends the rows as rows_finish; configured metrics that no row had are left out, with a notice. */
void metric_columns_finish(
	struct metric_columns *found, const char *file, const char *const *text_names);

/* The names a `list` hook answers with: the configured ones, else those of query->data. */
struct strings metric_columns_names(const struct query *query);

#endif
