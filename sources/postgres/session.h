/*
 * A session: a connection to PostgreSQL with one transaction and a deadline, after which it is
 * given up whatever the server does.
 *
 * Everything blocks the calling thread, which is one of those for blocking calls. Errors name
 * server and database, SQLSTATE, the first line of the server's message, and advice if there is
 * any.
 */
#ifndef SOURCES_POSTGRES_SESSION_H
#define SOURCES_POSTGRES_SESSION_H

#include <libpq-fe.h>

#include "sources/postgres/bind.h"
#include "sources/postgres/postgres.h"

enum session_kind { SESSION_READ, SESSION_WRITE };

enum session_step { SESSION_RESULT, SESSION_DONE, SESSION_FAILED };

struct session {
	struct query *query;
	const struct postgres_server *server;
	PGconn *connection;
	const char *place; /* "db.example:5432/bench", for messages */
	int64_t deadline;  /* ms of the monotonic clock */
};

/* Connects and begins a transaction, read-only with SESSION_READ. Call session_close in either
 * case. */
bool session_open(struct session *session, struct query *query, enum session_kind kind,
	struct error *error) MUST_USE;

/* Rolls back the open transaction. */
void session_close(struct session *session);

/* Sends a statement; session_next returns its rows one by one. */
bool session_send(struct session *session, const struct bound *bound, struct error *error) MUST_USE;

/*
 * The next result of the statement, with one row, or without rows if it is the last; the caller
 * clears it by PQclear. SESSION_DONE: no more results.
 */
enum session_step session_next(
	struct session *session, PGresult **result, struct error *error) MUST_USE;

/* Runs a statement to its end; *rows is the number of rows written. */
bool session_run(struct session *session, const struct bound *bound, size_t *rows,
	struct error *error) MUST_USE;

bool session_commit(struct session *session, struct error *error) MUST_USE;

#endif
