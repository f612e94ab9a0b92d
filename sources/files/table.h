/*
 * A table whose columns have names: which of them are the time, metrics and attributes. For the
 * rows of CSV files and of queries.
 *
 * Only columns that are used are looked up, so there may be others, even unnamed ones or several of
 * the same name.
 */
#ifndef SOURCES_FILES_TABLE_H
#define SOURCES_FILES_TABLE_H

#include "agent/base/dict.h"
#include "sources/files/delimited.h"
#include "sources/files/rows.h"

#define TABLE_NO_COLUMN SIZE_MAX

struct row_table {
	/* Set by the source. */
	struct query *query;
	const char *file;  /* for messages about rows: its name, or the query's place */
	const char *place; /* for those about the header */
	struct error *error;
	const char *lone; /* advice where a column is missing and there is only one, or NULL */
	bool is_query; /* of several columns of one name the first counts (else an error), and the
			  time may be an attribute, too */
	/* Without configured metrics: whether the column may be one. */
	bool (*may_be_metric)(const struct row_table *table, size_t column);

	/* Set by table_begin and table_plan. */
	struct strings header;
	struct name_index names;
	size_t *first, *second; /* by index of the name: its columns; second: 0 if there is none */
	struct rows rows;       /* whose columns come `from` one of the table */
	size_t time;            /* the column of the time */
	/* Where the values decide whether a column is a metric, by index in rows.numbers; else
	 * NULL. */
	enum table_state { TABLE_UNKNOWN, TABLE_NUMBERS, TABLE_TEXT } * states;
};

/* Takes the names, as many as there are columns, without blanks around them. */
void table_begin(struct row_table *table, struct strings header);

/* The column of that name, or TABLE_NO_COLUMN. */
bool table_find(struct row_table *table, const char *name, size_t *column) MUST_USE;

/* Adds the columns that are used to `rows`; fails (ERROR_DATA) if a required one is missing. */
bool table_plan(struct row_table *table, const char *time, const char *commit, const char *version,
	struct strings attributes) MUST_USE;

/* Adds a row, the number `row` in messages, unless its time is outside of the query's range; its
 * cells are those of all columns. Fails (ERROR_DATA) on a value of the wrong type or too much
 * text. */
bool table_take(struct row_table *table, const struct cell *cells, size_t row) MUST_USE;

#endif
