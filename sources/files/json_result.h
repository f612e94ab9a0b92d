/*
 * The results of a JSON file, one by one, with the columns that their metrics and attributes belong
 * to.
 */
#ifndef SOURCES_FILES_JSON_RESULT_H
#define SOURCES_FILES_JSON_RESULT_H

#include "sources/files/found.h"
#include "sources/files/jsonread.h"

struct json_value {
	size_t column; /* in rows.numbers */
	double number; /* as in the file; NaN where missing */
};

struct json_attribute {
	size_t column; /* in rows.texts */
	const char *text;
};

/* One result. Metrics and attributes that are not wanted are left out, but for the branch. */
struct json_result {
	size_t line;
	bool timed;
	int64_t time;
	const char *branch; /* or NULL */
	struct json_value *values;
	struct json_attribute *attributes;
	size_t value_count, value_capacity, attribute_count, attribute_capacity;
};

struct json_results {
	struct query *query;
	struct json_reader *json; /* owned from here on */
	struct error *error;
	struct pairs said; /* attributes that are wanted, and their names */
	bool all;          /* and all others, by their own names */

	struct rows rows; /* the reader makes the columns, the caller the rows */
	struct metric_columns found;
	struct name_index attributes; /* a name's number is its column's */
	struct json_result result;
};

/* The caller fills the first part, zeroes the second, and ends it with json_results_free, also
 * after a failure. */
bool json_results_start(struct json_results *reader) MUST_USE;
void json_results_free(struct json_results *reader);

/* Reads the next result, or to the end of the file: then *more is false. */
bool json_results_next(struct json_results *reader, bool *more) MUST_USE;

#endif
