/*
 * Rows while they are read: columns that grow with the file and become the dataset of a query. Also
 * the branch checks that the file sources share.
 */
#ifndef SOURCES_FILES_ROWS_H
#define SOURCES_FILES_ROWS_H

#include "agent/base/dict.h"
#include "sources/files/input.h"
#include "sources/source.h"

enum {
	ROWS_MAX = 100000000,
	ROWS_CELLS_MAX = 1 << 26, /* of eight bytes: rows times columns, including the times */
	ROWS_TEXT_MAX = 1 << 28,  /* bytes of texts, for the caller to enforce */
	ROWS_RECENT = 1024,
};

/* `from`: the caller's number of the column in the file. */
struct number_column {
	const struct metric *metric; /* or NULL: it becomes no series */
	size_t from;
	double *values; /* as in the file; rows_finish scales them */
};

struct text_column {
	const char *name;
	size_t from;
	const char **values;
};

/* A zeroed struct is empty. The columns are on the heap until rows_finish or rows_free. */
struct rows {
	size_t n, capacity;
	int64_t *times;
	struct number_column *numbers;
	struct text_column *texts;
	size_t number_count, text_count, number_capacity, text_capacity;
	size_t text_bytes;               /* copied by rows_text */
	const char *recent[ROWS_RECENT]; /* texts stored recently, by hash: most texts repeat */
};

void rows_free(struct rows *rows);

/* Adds a column, whose existing rows are missing values. Fails (ERROR_DATA) at the limits. */
bool rows_add_number(
	struct rows *rows, const struct metric *metric, size_t from, struct error *error) MUST_USE;
bool rows_add_text(struct rows *rows, const char *name, size_t from, struct error *error) MUST_USE;

/* Adds a row of missing values; the caller sets the values of n - 1. */
bool rows_append(struct rows *rows, int64_t time, struct error *error) MUST_USE;

/* A copy of the text in the arena, shared with recent equal texts. */
const char *rows_text(struct rows *rows, struct arena *arena, const char *text, size_t length);

/*
 * Turns the rows into query->data, sorted by time (with a notice naming `file` if they were not):
 * one series per number column with a metric, on one axis with the text columns. Frees the rows.
 */
void rows_finish(struct rows *rows, struct query *query, const char *file);

/*
 * Metrics that a file names in its rows (not in a header), each with a column of numbers: all of
 * them, or the configured ones.
 */

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

/* The branches found in a file, up to as many as a message names. A zeroed struct is empty. */
enum { BRANCHES_NAMED = 20 };
struct branches {
	const char *selected; /* or NULL: all; set by the caller */
	const char *names[BRANCHES_NAMED];
	size_t count, last;
	bool more, selected_seen;
};

/* Adds the branch of a row (NULL: none). Returns whether it is selected. */
bool branches_take(struct branches *branches, struct arena *arena, const char *text, size_t length);

/* Fails (ERROR_DATA) if the file has branches, but not the selected one; `noun`: the thing with a
 * branch. */
bool branches_check(struct branches *branches, struct arena *arena, const char *file,
	const char *noun, struct error *error) MUST_USE;
const char *branches_list(
	struct branches *branches, struct arena *arena); /* "a, b, c and others", sorted */

/* Reads the file, with whose name the options begin, by `parse`. */
typedef bool rows_parse(struct query *query, struct input *input, struct error *error);
bool rows_read_file(struct query *query, rows_parse *parse, struct error *error) MUST_USE;

#endif
