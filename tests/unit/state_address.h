/*
 * The state that a test works on: a file in the test's folder or, with
 * HUNTER_TEST_STATE=postgresql, a database of its own on the server HUNTER_TEST_POSTGRES (an
 * address whose user may create databases). Without a server the program ends as skipped. cmocka's
 * headers come before it.
 */
#ifndef TESTS_STATE_ADDRESS_H
#define TESTS_STATE_ADDRESS_H

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/database.h"

enum { STATE_SKIPPED = 77 };

/* Whether tests work on databases. */
static inline bool state_is_database(void)
{
	const char *kind = getenv("HUNTER_TEST_STATE");

	return kind && strcmp(kind, "file") != 0;
}

/* For tests of what only a file has. */
#define STATE_IS_A_FILE()                                                                          \
	do                                                                                         \
		if (state_is_database())                                                           \
			skip("it is about a state that is a file");                                \
	while (0)

static inline const char *state_server(void)
{
	const char *server = getenv("HUNTER_TEST_POSTGRES");

	if (server && *server)
		return server;
	fputs("skipped: HUNTER_TEST_POSTGRES names no server of PostgreSQL\n", stderr);
	exit(STATE_SKIPPED);
}

static inline void state_administer(const char *sql)
{
	PGconn *server = PQconnectdb(state_server());
	PGresult *result = PQexec(server, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(server));
	PQclear(result);
	PQfinish(server);
}

/* The server's address with another database. */
static inline void state_database(const char *name, char *out, size_t size)
{
	const char *server = state_server(), *hosts = strstr(server, "://") + 3;
	const char *path = strpbrk(hosts, "/?"), *parameters = strchr(hosts, '?');
	int length = (int)(path ? path - server : (ptrdiff_t)strlen(server));

	snprintf(out, size, "%.*s/%s%s", length, server, name, parameters ? parameters : "");
}

/* Where a new state is to be. */
static inline void state_new(const char *folder, char *out, size_t size)
{
	static int made;
	char name[48], sql[96];

	if (!state_is_database()) {
		snprintf(out, size, "%s/state.db", folder);
		return;
	}
	snprintf(name, sizeof name, "hunter_c_%ld_%d", (long)getpid(), ++made);
	snprintf(sql, sizeof sql, "CREATE DATABASE %s", name);
	state_administer(sql);
	state_database(name, out, size);
}

/* Removes a database again; a file goes with its folder. */
static inline void state_drop(const char *state)
{
	const char *name = strrchr(state, '/');
	char sql[128];

	if (!database_is(state))
		return;
	name = name + 1;
	snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %.*s WITH (FORCE)",
		(int)strcspn(name, "?"), name);
	state_administer(sql);
}

/* The first number of a query's answer. */
static inline int64_t state_number(const char *state, const char *sql)
{
	sqlite3 *database;
	sqlite3_stmt *statement;
	int64_t number;

	if (database_is(state)) {
		PGconn *server = PQconnectdb(state);
		PGresult *result = PQexec(server, sql);

		if (PQresultStatus(result) != PGRES_TUPLES_OK || PQntuples(result) == 0)
			fail_msg("%s: %s", sql, PQerrorMessage(server));
		number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
		PQclear(result);
		PQfinish(server);
		return number;
	}
	assert_int_equal(sqlite3_open(state, &database), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return number;
}

/* Whether a script is carried out; false if a constraint refuses it. Of a file: with its foreign
 * keys or without. */
static inline bool state_run(const char *state, const char *sql, bool keys)
{
	sqlite3 *database;
	int result;

	if (database_is(state)) {
		PGconn *server = PQconnectdb(state);
		PGresult *answer = PQexec(server, sql);
		ExecStatusType status = PQresultStatus(answer);
		bool allowed = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
		const char *code = PQresultErrorField(answer, PG_DIAG_SQLSTATE);

		if (!allowed && (!code || strncmp(code, "23", 2) != 0))
			fail_msg("%s: %s", sql, PQerrorMessage(server));
		PQclear(answer);
		PQfinish(server);
		return allowed;
	}
	assert_int_equal(sqlite3_open(state, &database), SQLITE_OK);
	if (keys)
		assert_int_equal(
			sqlite3_exec(database, "PRAGMA foreign_keys = ON", NULL, NULL, NULL),
			SQLITE_OK);
	result = sqlite3_exec(database, sql, NULL, NULL, NULL);
	if (result != SQLITE_OK && result != SQLITE_CONSTRAINT)
		fail_msg("%s: %s", sql, sqlite3_errmsg(database));
	sqlite3_close(database);
	return result == SQLITE_OK;
}

static inline bool state_allows(const char *state, const char *sql)
{
	return state_run(state, sql, true);
}

static inline void state_execute(const char *state, const char *sql)
{
	if (!state_run(state, sql, false))
		fail_msg("%s: refused", sql);
}

#endif
