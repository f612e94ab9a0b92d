/*
 * What PostgreSQL and libpq say, as sentences for people: server and database, the first line of
 * the message, SQLSTATE, and what to do. All postgres_fail_* return false.
 */
#ifndef SOURCES_POSTGRES_ERRORS_H
#define SOURCES_POSTGRES_ERRORS_H

#include "sources/postgres/session.h"

/* "host:port/database" of a connection, made or not, in the arena. */
const char *postgres_place(struct arena *arena, const PGconn *connection);

/* The first line of what the server says (NULL: nothing), without control characters and the
 * password, cut to a few hundred bytes, in the query's arena. */
const char *postgres_first_line(const struct session *session, const char *text);

bool postgres_fail_connect(const struct session *session, struct error *error);
bool postgres_fail_lost(const struct session *session, struct error *error);
bool postgres_fail_result(
	const struct session *session, const PGresult *result, struct error *error);

#endif
