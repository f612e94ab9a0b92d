/*
 * How a CSV file is to be read: its dialect, and which of its columns goes where, decided from the
 * header.
 */
#ifndef SOURCES_FILES_CSV_PLAN_H
#define SOURCES_FILES_CSV_PLAN_H

#include <stdint.h>

#include "sources/files/delimited.h"
#include "sources/files/files.h"

#define NO_COLUMN SIZE_MAX

enum column_state { COLUMN_UNKNOWN, COLUMN_NUMBERS, COLUMN_TEXT }; /* shown by its first value */

struct number_column {
	size_t column;
	const struct metric *metric;
	enum column_state state;
};

struct text_column {
	size_t column;
	const char *name;
};

struct csv_plan {
	struct strings header;
	size_t time, branch; /* branch may be NO_COLUMN */
	struct number_column *numbers;
	struct text_column *texts;
	size_t number_count, text_count;
	bool guessing; /* no metrics are configured: numbers are all columns that may hold some */
};

/* Reads csv_options; quote 0 is none. Fails (ERROR_USAGE) on unknown keys and impossible
 * characters. */
bool csv_dialect(const struct csv_options *options, char *delimiter, char *quote,
	struct error *error) MUST_USE;

/* Fails (ERROR_DATA) where a column that is needed is missing or there twice, naming file and
 * column. */
bool csv_plan_make(struct csv_plan *plan, const struct query *query, const char *file,
	const struct row *header, struct error *error) MUST_USE;

#endif
