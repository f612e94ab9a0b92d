/*
 * From the rows of a PostgreSQL query to a dataset. Private to the source and its tests.
 */
#ifndef SOURCES_POSTGRES_ROWS_H
#define SOURCES_POSTGRES_ROWS_H

#include <libpq-fe.h>

#include "sources/files/table.h"
#include "sources/postgres/postgres.h"

/* Object ids of the numeric types: columns of these are metrics if none are configured. */
enum { TYPE_INT8 = 20, TYPE_INT2 = 21, TYPE_INT4 = 23, TYPE_FLOAT4 = 700, TYPE_FLOAT8 = 701 };
enum { TYPE_NUMERIC = 1700 };

/* A zeroed struct with the first four set is ready; rows_free(&table.rows) ends it. */
struct postgres_rows {
	struct query *query;
	const char *place; /* for messages */
	int64_t max_rows;
	int64_t max_body; /* bytes of all values, rows outside the range included */
	/* While rows are taken. */
	const PGresult *result;
	struct error *error;
	struct row_table table;
	bool planned;
	int stamp_text;     /* the text column with the time as the server wrote it, or -1 */
	struct cell *cells; /* of a row */
	size_t seen, timeless;
	int64_t bytes;
};

/* The time stamps as the server wrote them: query->state after reading. */
struct postgres_stamps {
	const int64_t *times; /* those of the axis before it was cut */
	const char **texts;
};

/* Adds the rows of a result, possibly none. Fails (ERROR_DATA) on a missing column and on a value
 * of the wrong type. */
bool postgres_rows_take(
	struct postgres_rows *rows, const PGresult *result, struct error *error) MUST_USE;

/* Turns them into query->data. */
void postgres_rows_finish(struct postgres_rows *rows);

#endif
