/*
 * Counts rows of a state file.
 */
#ifndef TESTS_STATE_COUNT_H
#define TESTS_STATE_COUNT_H

#include <sqlite3.h>
#include <stdio.h>

/* `what` is a table, with or without a condition: "deliveries WHERE state = 1". */
static inline int state_count(const char *path, const char *what)
{
	char sql[160];
	sqlite3 *database;
	sqlite3_stmt *statement;
	int number;

	snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", what);
	assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return number;
}

#endif
