/*
 * libpq's asynchronous functions are used: each wait is a poll() with the time that is left. Only
 * the look-up of the host name is outside our control, since libpq leaves it to libc.
 *
 * A statement that takes too long is cancelled by the server itself: statement_timeout is set to
 * the remaining time, so it stops even if we are gone. PQcancel() is not used, since it waits
 * without limit for a server that hangs, which is when it would be needed.
 *
 * Statements use the extended protocol, which takes one statement at a time: a query cannot commit
 * the read-only transaction and continue.
 */
#include "sources/postgres/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/secret.h"
#include "agent/base/utf8.h"
#include "agent/base/when.h"

/*
 * Turns errors of PostgreSQL and libpq into messages: server and database, first line of the
 * message, SQLSTATE, and advice. All postgres_fail_* return false.
 *
 * libpq reports a failed connection as text only, so words are searched in it. The program never
 * leaves the C locale; a server that uses another language only costs the advice. Failed statements
 * have a SQLSTATE.
 */

enum { LINE_SHOWN = 400 };

struct advice {
	const char *sign, *text;
};

/* "host:port/database" of a connection, established or not, in the arena. */
static const char *postgres_place(struct arena *arena, const PGconn *connection)
{
	const char *host = PQhost(connection), *port = PQport(connection), *db = PQdb(connection);
	return arena_printf(arena, "%s:%s/%s", host && *host ? host : "localhost",
		port && *port ? port : "5432", db && *db ? db : "");
}

/* The first line of the server's message (NULL: none) without control characters and the password,
 * cut to a few hundred bytes, in the query's arena. */
static const char *postgres_first_line(const struct session *session, const char *text)
{
	const char *password = PQpass(session->connection);
	const struct strings secrets = {&password, password ? 1 : 0};
	if (!text)
		return "";
	char *line = arena_strndup(session->query->arena, text, strcspn(text, "\r\n"));
	secret_mask(line, strlen(line), &secrets);
	line[utf8_cut(line, LINE_SHOWN)] = '\0';
	utf8_blank(line, ' ');
	return line;
}

/* If a host has several addresses, libpq lists each attempt; the last is the most useful. */
static const char *last_attempt(const char *text)
{
	static const char attempt[] = "connection to server ";
	for (const char *at = text; (at = strstr(at, attempt)); at++)
		if (at == text || at[-1] == '\n')
			text = at;
	return text;
}

static const char *find_advice(const struct advice *advice, const char *text)
{
	for (; advice->sign; advice++)
		if (strstr(text, advice->sign))
			return advice->text;
	return "";
}

static bool postgres_fail_connect(const struct session *session, struct error *error)
{
	static const struct advice known[] = {
		{"no password supplied", ": set password or password_file"},
		{"password authentication failed", ": check username and password"},
		{"no pg_hba.conf entry",
			": the server's pg_hba.conf does not admit this user from this host to "
			"this database; if it says \"no encryption\", set sslmode: require"},
		{"pg_hba.conf rejects",
			": the server's pg_hba.conf rejects this user, host or database"},
		{"Connection refused", ": is a server running there? check hostname and port"},
		{"could not translate host name", ": check hostname"},
		{"server does not support SSL", ": the server has no TLS, but sslmode requires it"},
		{"root certificate file",
			": set sslrootcert to the certificate of the authority that signed the "
			"server's"},
		{"certificate verify failed",
			": the server's certificate is not signed by one of sslrootcert"},
		{"does not match host name",
			": set hostname to a name in the server's certificate, or use "
			"sslmode: verify-ca"},
		{"requires a valid client certificate", ": set sslcert and sslkey"},
		{"remaining connection slots", ": the server has too many connections"},
		{"too many clients", ": the server has too many connections"},
		{"No such file or directory",
			": no server socket there; set hostname to connect by TCP"},
		{"expected authentication request", ": the server is not PostgreSQL"},
		{"received invalid response", ": the server is not PostgreSQL"},
		{"database \"", ": check database"},
		{"role \"", ": check username"},
		{NULL, NULL},
	};
	const char *text = last_attempt(PQerrorMessage(session->connection));
	return error_set(error, ERROR_DATA, "%s: %s%s", session->place,
		postgres_first_line(session, text), find_advice(known, text));
}

static bool postgres_fail_lost(const struct session *session, struct error *error)
{
	return error_set(error, ERROR_DATA, "%s: the connection broke: %s", session->place,
		postgres_first_line(session, PQerrorMessage(session->connection)));
}

static bool postgres_fail_result(
	const struct session *session, const PGresult *result, struct error *error)
{
	static const struct advice known[] = {
		{"25006", ": the query runs in a read-only transaction and must not write"},
		{"57014",
			": timeout or statement_timeout exceeded; narrow the query, or raise them"},
		{"42501", ": grant the user the missing privilege (SELECT to read)"},
		{"42P01", ": check the table's name, its schema (search_path) and database"},
		{"42P18", ": give the placeholder a type, like %{BRANCH}::text"},
		{"42883", ": if it is about a placeholder, cast it: %{BRANCH}::text"},
		{NULL, NULL},
	};
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
	if (!message) {
		ExecStatusType status = PQresultStatus(result);
		if (status == PGRES_EMPTY_QUERY)
			return error_set(
				error, ERROR_USAGE, "%s: the statement is empty", session->place);
		if (status != PGRES_COPY_IN && status != PGRES_COPY_OUT &&
			status != PGRES_COPY_BOTH)
			return postgres_fail_lost(session, error);
		return error_set(error, ERROR_USAGE,
			"%s: COPY is not possible here: the statement must be a SELECT",
			session->place);
	}
	if (!state)
		state = "";
	const char *advice = find_advice(known, state);
	if (strstr(message, "multiple commands"))
		advice = ": only one statement is allowed, without a second one after a semicolon";
	else if (!*advice && hint)
		advice = arena_printf(
			session->query->arena, " (%s)", postgres_first_line(session, hint));
	return error_set(error, ERROR_DATA, "%s: SQLSTATE %s: %s%s", session->place, state,
		postgres_first_line(session, message), advice);
}

enum { CONNECT_OPTIONS = 16, POLL_MS = 200 };

static bool fail_timeout(const struct session *session, const char *what, const char *option,
	int64_t ms, struct error *error)
{
	char text[WHEN_TEXT];
	return error_set(error, ERROR_DATA, "%s: %s within %s (%s)", session->place, what,
		when_format_duration(ms, text), option);
}

static bool fail_slow(const struct session *session, struct error *error)
{
	return fail_timeout(
		session, "the answer did not come", "timeout", session->server->timeout, error);
}

enum ready { READY, NOT_YET, TOO_LATE };

/*
 * Waits briefly for the connection's socket. Input that TLS has read ahead does not make the socket
 * ready, so libpq is asked to look for input in any case.
 */
static enum ready wait_socket(const struct session *session, short events, int64_t deadline)
{
	struct pollfd fd = {.fd = PQsocket(session->connection), .events = events};
	int64_t left = deadline - clock_monotonic();
	if (left <= 0)
		return TOO_LATE;
	int ready = poll(&fd, 1, left > POLL_MS ? POLL_MS : (int)left);
	if (ready > 0 || (ready < 0 && errno != EINTR))
		return READY; /* libpq reports any error */
	return NOT_YET;
}

/* The server's options under libpq's names; NULL means libpq's default or a PG* variable. With a
 * root certificate sslmode is verify-full, which libpq does not set by itself. */
static PGconn *start(const struct postgres_server *server, const char *password, const char *port)
{
	const char *mode = server->sslmode       ? postgres_ssl_modes[server->sslmode]
			   : server->sslrootcert ? "verify-full"
						 : NULL;
	const struct pair given[] = {
		{"host", server->hostname},
		{"port", port},
		{"user", server->username},
		{"password", password},
		{"dbname", server->database},
		{"sslmode", mode},
		{"sslrootcert", server->sslrootcert},
		{"sslcert", server->sslcert},
		{"sslkey", server->sslkey},
		{"client_encoding", "UTF8"},
		{"fallback_application_name", "hunter-c"},
	};
	const char *keys[CONNECT_OPTIONS] = {NULL}, *values[CONNECT_OPTIONS] = {NULL};
	size_t count = 0;
	for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
		if (!given[i].value || !*given[i].value)
			continue;
		keys[count] = given[i].key;
		values[count++] = given[i].value;
	}
	PGconn *connection = PQconnectStartParams(keys, values, 0);
	if (!connection)
		abort(); /* out of memory */
	return connection;
}

/* By default libpq prints notices on stderr; warnings become ours. */
static void take_notice(void *context, const PGresult *result)
{
	struct session *session = context;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	if (!severity || strcmp(severity, "WARNING") != 0)
		return;
	struct query *query = session->query;
	const char *line = query->notices_dropped
				   ? "" /* only counted, to save memory */
				   : postgres_first_line(session,
					     PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	query_notice(query, "%s: %s", session->place, line);
}

static bool connect_all(struct session *session, struct error *error)
{
	int64_t limit = session->server->connect_timeout;
	int64_t deadline = clock_monotonic() + limit;
	PostgresPollingStatusType polled = PGRES_POLLING_WRITING;
	if (deadline > session->deadline)
		deadline = session->deadline;
	while (PQstatus(session->connection) != CONNECTION_BAD && polled != PGRES_POLLING_OK) {
		short events = polled == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		enum ready ready = wait_socket(session, events, deadline);
		if (ready == TOO_LATE)
			return fail_timeout(
				session, "no connection", "connect_timeout", limit, error);
		if (ready == NOT_YET)
			continue;
		polled = PQconnectPoll(session->connection);
		if (polled == PGRES_POLLING_FAILED)
			break;
	}
	return polled == PGRES_POLLING_OK || postgres_fail_connect(session, error);
}

static bool send_all(struct session *session, struct error *error)
{
	int left;
	while ((left = PQflush(session->connection)) > 0) {
		if (wait_socket(session, POLLIN | POLLOUT, session->deadline) == TOO_LATE)
			return fail_slow(session, error);
		if (!PQconsumeInput(session->connection))
			return postgres_fail_lost(session, error);
	}
	return left == 0 || postgres_fail_lost(session, error);
}

enum session_step session_next(struct session *session, PGresult **result, struct error *error)
{
	while (PQisBusy(session->connection)) {
		if (wait_socket(session, POLLIN, session->deadline) == TOO_LATE) {
			fail_slow(session, error);
			return SESSION_FAILED;
		}
		if (!PQconsumeInput(session->connection)) {
			postgres_fail_lost(session, error);
			return SESSION_FAILED;
		}
	}
	*result = PQgetResult(session->connection);
	if (!*result)
		return SESSION_DONE;
	ExecStatusType status = PQresultStatus(*result);
	if (status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
		return SESSION_RESULT;
	postgres_fail_result(session, *result, error);
	PQclear(*result);
	*result = NULL;
	return SESSION_FAILED;
}

/* Reads all results and counts the rows that were written. */
static bool finish(struct session *session, size_t *rows, struct error *error)
{
	PGresult *result;
	enum session_step step;
	while ((step = session_next(session, &result, error)) == SESSION_RESULT) {
		if (rows)
			*rows += strtoul(PQcmdTuples(result), NULL, 10);
		PQclear(result);
	}
	return step == SESSION_DONE;
}

static bool run_simple(struct session *session, const char *sql, struct error *error)
{
	if (!PQsendQuery(session->connection, sql))
		return postgres_fail_lost(session, error);
	return send_all(session, error) && finish(session, NULL, error);
}

/*
 * Time stamps without a zone are UTC in this program, so the session's zone is UTC, too. SET LOCAL
 * lasts for the transaction; behind a pooler others use the connection afterwards. The server's
 * time limit is less than ours, so that its own error arrives in time.
 */
static bool start_transaction(struct session *session, enum session_kind kind, struct error *error)
{
	int64_t left = session->deadline - clock_monotonic(),
		limit = session->server->statement_timeout;
	left -= left / 10 < 1000 ? left / 10 : 1000;
	if (left < 1)
		left = 1;
	return run_simple(session,
		arena_printf(session->query->arena,
			"BEGIN TRANSACTION %s; SET LOCAL statement_timeout = %lld; SET LOCAL "
			"TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL "
			"extra_float_digits = 3; SET LOCAL standard_conforming_strings = on",
			kind == SESSION_READ ? "READ ONLY" : "READ WRITE",
			(long long)(limit > 0 && limit < left ? limit : left)),
		error);
}

bool session_open(
	struct session *session, struct query *query, enum session_kind kind, struct error *error)
{
	const struct postgres_server *server = query->server;
	const char *password = server->password;
	char port[24];
	*session = (struct session){.query = query, .server = server};
	session->deadline = clock_monotonic() + server->timeout;
	snprintf(port, sizeof port, "%lld", (long long)server->port);
	if (server->password_file && !password &&
		!secret_read(
			query->arena, "password_file", server->password_file, &password, error))
		return false;
	session->connection = start(server, password, server->port ? port : NULL);
	session->place = postgres_place(query->arena, session->connection);
	PQsetNoticeReceiver(session->connection, take_notice, session);
	if (!connect_all(session, error))
		return false;
	if (PQsetnonblocking(session->connection, 1) != 0)
		return postgres_fail_lost(session, error);
	return start_transaction(session, kind, error);
}

void session_close(struct session *session)
{
	PQfinish(session->connection); /* NULL is allowed; the server rolls back */
	session->connection = NULL;
}

static bool send_bound(struct session *session, const struct bound *bound, struct error *error)
{
	if (!PQsendQueryParams(session->connection, bound->text, (int)bound->count, bound->types,
		    bound->values, NULL, NULL, 0))
		return postgres_fail_lost(session, error);
	return true;
}

bool session_send(struct session *session, const struct bound *bound, struct error *error)
{
	if (!send_bound(session, bound, error))
		return false;
	if (!PQsetSingleRowMode(session->connection))
		return postgres_fail_lost(session, error);
	return send_all(session, error);
}

bool session_run(
	struct session *session, const struct bound *bound, size_t *rows, struct error *error)
{
	*rows = 0;
	return send_bound(session, bound, error) && send_all(session, error) &&
	       finish(session, rows, error);
}

bool session_commit(struct session *session, struct error *error)
{
	return run_simple(session, "COMMIT", error);
}
