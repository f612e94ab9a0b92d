/*
 * libpq's asynchronous functions are used, always in pipeline mode: each wait is a poll() with the
 * time that is left. Only the look-up of a host's name is outside our control, since libpq leaves
 * it to libc. Hosts are tried one by one, each within a limit, which libpq's own functions for
 * several hosts do not have when they do not block.
 *
 * The server has a limit of its own (statement_timeout), and gives up a transaction of which it
 * hears nothing (idle_in_transaction_session_timeout), such as that of an agent that was stopped.
 * Outside of transactions the limit is sent until the connection has answered one quickly, and
 * after any that it has not: each connection that is given up leaves at most one statement behind.
 * Neither is true of COMMIT, which may wait for a standby: a server that gives up waiting would say
 * that it is committed, while the standby does not have it.
 */
#include "agent/store/postgresql/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/base/secret.h"
#include "agent/base/when.h"
#include "agent/store/postgresql/servers.h"
#include "agent/store/store.h"

enum {
	WRITER_TEXT = 33,
	CONFIRMED_KEPT = 64,
	ATTEMPTS = 3,       /* of a statement that meets conflicts */
	IDLE_MS = 10000,    /* of a transaction, unless it is given more time */
	AWAY_MS = 500,      /* after all hosts failed: nothing is tried for so long */
	PENDING_MOST = 500, /* statements without an answer */
	POLL_MS = 200,      /* TLS may have read ahead data that poll() does not see */
	SAY_MS = 5000,      /* then it is logged that it waits */
	QUICK_MS = 1000,    /* an answer by which a connection is proven */
	LATE_MS = 2000,     /* how much later than the server we give up */
	LOAD_BYTES = 65536,
};

struct connection {
	struct arena *arena; /* has secrets */
	struct servers servers;
	size_t at; /* the host to try first */
	int64_t patience_ms;
	int64_t away_until; /* monotonic */

	PGconn *link; /* NULL: none */
	bool open, committing;
	bool reads;       /* the transaction, and does not write */
	bool number_sent; /* it has a number */
	bool doomed;      /* a statement of the open transaction has failed */
	bool proven;      /* the last answer was quick */
	bool loading;     /* rows are being sent, outside of the pipeline */
	bool said;        /* that it waits for an answer */
	size_t pending;   /* statements that were sent and have no answer yet */
	size_t ignored;   /* the same, before them, whose answers nobody waits for */
	int64_t changed;
	struct buf parsed; /* the statement that the server parsed last, in the open transaction */
	struct buf rows;   /* to be loaded */
	Oid parsed_types[PARAMETERS_MOST];
	int parsed_count;
	struct error problem; /* of the last failure, and its kind: */
	enum trouble trouble;

	bool numbered;
	char writer[WRITER_TEXT];
	int64_t number;                    /* of the last transaction */
	int64_t doubtful;                  /* its number; 0: none */
	int64_t confirmed[CONFIRMED_KEPT]; /* numbers that were in doubt, and were committed */
	size_t confirmed_count;
};

enum ready { READY, NOT_YET, TOO_LATE };

static _Atomic int64_t round_trips, waited_us, connects, retries;

void connection_traffic(struct store_traffic *out)
{
	*out = (struct store_traffic){round_trips, connects, retries, (double)waited_us / 1e6};
}

void connection_retried(void)
{
	retries++;
}

/* Failures */

enum trouble connection_trouble(const struct connection *connection)
{
	return connection->trouble;
}

const char *connection_problem(const struct connection *connection)
{
	return connection->problem.text;
}

/* The last failure: the first line of the text, without the password. */
static void note(
	struct connection *connection, enum trouble trouble, const char *state, const char *text)
{
	const char *password = connection->link ? PQpass(connection->link) : NULL;
	const struct strings secrets = {&password, password && *password ? 1 : 0};
	struct arena *scratch = arena_new();
	char *line;

	text = text ? text : "";
	line = arena_strndup(scratch, text, strcspn(text, "\r\n"));
	secret_mask(line, strlen(line), &secrets);
	connection->trouble = trouble;
	error_set(&connection->problem, ERROR_STATE, "%s%s%s%s", *line ? line : "no message",
		state ? " (SQLSTATE " : "", state ? state : "", state ? ")" : "");
	arena_free(scratch);
}

bool connection_fail(const struct connection *connection, struct error *error)
{
	return error_set(error, ERROR_STATE, "state database %s: %s", connection->servers.shown,
		connection->problem.text);
}

/* Gives the connection up. A commit in progress is in doubt. A transaction stays open, so that
 * nothing else of it is sent, which would be outside of it on the next connection. */
static void drop(struct connection *connection)
{
	PQfinish(connection->link); /* does not wait: the connection does not block */
	connection->link = NULL;
	connection->pending = connection->ignored = 0;
	connection->loading = false;
	if (connection->committing && connection->number != 0) {
		connection->doubtful = connection->number;
		connection->trouble = TROUBLE_DOUBT;
	}
	connection->doomed = connection->open;
	connection->committing = false;
}

/* If a host has several addresses, libpq lists each attempt; the last is the most informative. */
static const char *last_attempt(const char *text)
{
	static const char attempt[] = "connection to server ";

	for (const char *at = text; (at = strstr(at, attempt)); at++)
		if (at == text || at[-1] == '\n')
			text = at;
	return text;
}

/* Gives it up with libpq's message. Always false. */
static bool lost(struct connection *connection)
{
	const char *text = PQerrorMessage(connection->link);

	note(connection, TROUBLE_AWAY, NULL,
		text && *text ? text : "connection to the server closed");
	drop(connection);
	return false;
}

/* By SQLSTATE. A server that is no longer the primary, that stops, or is out of something would
 * fail any call. */
static enum trouble trouble_of(const char *state)
{
	static const char *const away[] = {"08", "25006", "25P03", "53", "57", "58", "XX"};

	if (strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0)
		return TROUBLE_CONFLICT;
	for (size_t i = 0; i < sizeof away / sizeof *away; i++)
		if (strncmp(state, away[i], strlen(away[i])) == 0)
			return TROUBLE_AWAY;
	return TROUBLE_STATEMENT;
}

static void note_result(struct connection *connection, const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *said = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	note(connection, state ? trouble_of(state) : TROUBLE_AWAY, state,
		said ? said : PQresultErrorMessage(result));
}

/* It took longer than the limit of `option`. */
static void note_late(
	struct connection *connection, const char *what, int64_t ms, const char *option)
{
	char text[80], limit[WHEN_TEXT];

	when_format_duration(ms, limit);
	snprintf(text, sizeof text, "%s within %s%s", what, limit, option);
	note(connection, TROUBLE_AWAY, NULL, text);
}

/* Statements and answers */

/* Waits a little, at most until then (monotonic). */
static enum ready wait_for(PGconn *link, short events, int64_t deadline)
{
	struct pollfd fd = {.fd = PQsocket(link), .events = events};
	int64_t left = deadline - clock_monotonic();
	int ready;

	if (left <= 0)
		return TOO_LATE;
	ready = poll(&fd, 1, left > POLL_MS ? POLL_MS : (int)left);
	if (ready > 0 || (ready < 0 && errno != EINTR))
		return READY; /* libpq reports any error */
	return NOT_YET;
}

static bool late(struct connection *connection)
{
	note_late(connection, "no response from the server", connection->patience_ms + LATE_MS, "");
	drop(connection);
	return false;
}

/* A statement that is repeated in a transaction is parsed once: the server keeps the last statement
 * without a name, and in a transaction poolers change neither the server nor that. */
static bool send_statement(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	struct buf *parsed = &connection->parsed;
	size_t types = (size_t)parameters->count * sizeof *parameters->types;

	if (connection->open && parsed->length > 0 && strcmp(parsed->data, sql) == 0 &&
		connection->parsed_count == parameters->count &&
		memcmp(connection->parsed_types, parameters->types, types) == 0)
		return PQsendQueryPrepared(connection->link, "", parameters->count,
			parameters->values, parameters->lengths, parameters->formats, 1);
	buf_clear(parsed);
	buf_text(parsed, sql);
	connection->parsed_count = parameters->count;
	memcpy(connection->parsed_types, parameters->types, types);
	return PQsendQueryParams(connection->link, sql, parameters->count, parameters->types,
		parameters->values, parameters->lengths, parameters->formats, 1);
}

/* A statement, whose answer comes later; parameters may be NULL. */
static bool queue(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	static const struct parameters none;

	if (!parameters)
		parameters = &none;
	if (connection->open && connection->doomed)
		return false; /* with the problem as it was */
	if (!connection->link) {
		note(connection, TROUBLE_AWAY, NULL, "connection to the server closed");
		return false;
	}
	if (!send_statement(connection, sql, parameters))
		return lost(connection);
	connection->pending++;
	return true;
}

/* One without parameters, after all others were answered, whose answer nobody waits for. */
static bool queue_ignored(struct connection *connection, const char *sql)
{
	if (!queue(connection, sql, NULL))
		return false;
	connection->pending--;
	connection->ignored++;
	return (PQpipelineSync(connection->link) && PQflush(connection->link) >= 0) ||
	       lost(connection);
}

/* Users who wait for minutes want to know the reason. */
static void say_waiting(struct connection *connection, int64_t deadline)
{
	int64_t since = deadline - connection->patience_ms - LATE_MS;
	char most[WHEN_TEXT];

	if (connection->said || connection->patience_ms <= CONNECTION_PATIENCE ||
		clock_monotonic() < since + SAY_MS)
		return;
	connection->said = true;
	log_event(LEVEL_INFO, "waiting for the state database",
		LOG_TEXT("state", connection->servers.shown),
		LOG_TEXT("at_most", when_format_duration(connection->patience_ms, most)));
}

/* The next result, or NULL at the end of a statement's; false: the connection is lost. */
static bool next_result(struct connection *connection, int64_t deadline, PGresult **result)
{
	for (;;) {
		int left = PQflush(connection->link);
		enum ready ready;

		if (left < 0)
			return lost(connection);
		if (!PQisBusy(connection->link) && left == 0)
			break;
		ready = wait_for(
			connection->link, (short)(left ? POLLIN | POLLOUT : POLLIN), deadline);
		if (ready == TOO_LATE)
			return late(connection);
		say_waiting(connection, deadline);
		if (!PQconsumeInput(connection->link))
			return lost(connection);
	}
	*result = PQgetResult(connection->link);
	if (*result || PQstatus(connection->link) == CONNECTION_OK)
		return true;
	return lost(connection);
}

/* Reads the answers to all that was sent, up to the last synchronisation point. The last result is
 * kept. */
static bool read_all(struct connection *connection, int64_t deadline, PGresult **last)
{
	bool good = true;
	PGresult *result = NULL;
	ExecStatusType status;

	for (;;) {
		if (!next_result(connection, deadline, &result))
			return false;
		status = PQresultStatus(result);
		if (status == PGRES_PIPELINE_SYNC && connection->ignored == 0)
			break;
		if (status == PGRES_PIPELINE_SYNC)
			connection->ignored--;
		if (!result || status == PGRES_PIPELINE_SYNC) { /* NULL: between two statements */
			PQclear(result);
			continue;
		}
		PQclear(*last);
		*last = NULL;
		if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
			connection->changed = strtoll(PQcmdTuples(result), NULL, 10);
			*last = result;
			continue;
		}
		/* After an error the rest is skipped by the server. */
		if (status != PGRES_PIPELINE_ABORTED)
			note_result(connection, result);
		PQclear(result);
		good = false;
	}
	PQclear(result);
	connection->pending = 0;
	return good;
}

/* Waits for the answers to all that was sent; the result of the last is for PQclear. NULL: one has
 * failed, or the connection is lost. */
static PGresult *drain(struct connection *connection)
{
	int64_t started = clock_monotonic_ns();
	int64_t deadline = clock_monotonic() + connection->patience_ms + LATE_MS;
	PGresult *last = NULL;
	bool good;

	connection->said = false;
	if (!connection->link) {
		note(connection, TROUBLE_AWAY, NULL, "connection to the server closed");
		return NULL;
	}
	if (!PQpipelineSync(connection->link)) {
		lost(connection);
		return NULL;
	}
	good = read_all(connection, deadline, &last);
	round_trips++;
	waited_us += (clock_monotonic_ns() - started) / 1000;
	connection->proven = good && clock_monotonic_ns() - started < QUICK_MS * INT64_C(1000000);
	if (good)
		return last;
	PQclear(last);
	connection->doomed = connection->open;
	/* A server that does not take writes any more, or is about to stop: another host. */
	if (connection->link && connection->trouble == TROUBLE_AWAY)
		drop(connection);
	return NULL;
}

static bool drained(struct connection *connection)
{
	PGresult *result = drain(connection);

	PQclear(result);
	return result != NULL;
}

/* Connecting */

struct connection *connection_new(const char *address, struct error *error)
{
	struct arena *arena = arena_new();
	struct connection *connection = arena_alloc(arena, sizeof *connection);

	arena_holds_secrets(arena);
	*connection = (struct connection){.arena = arena, .patience_ms = CONNECTION_PATIENCE};
	if (servers_parse(arena, address, &connection->servers, error))
		return connection;
	arena_free(arena);
	return NULL;
}

void connection_free(struct connection *connection)
{
	if (!connection)
		return;
	PQfinish(connection->link);
	buf_free(&connection->parsed);
	buf_free(&connection->rows);
	arena_free(connection->arena);
}

void connection_number(struct connection *connection)
{
	unsigned char bytes[(WRITER_TEXT - 1) / 2];

	if (connection->numbered)
		return;
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		abort();
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(connection->writer + 2 * i, 3, "%02x", bytes[i]);
	connection->numbered = true;
}

/* By default libpq prints notices on stderr; warnings become ours. */
static void take_notice(void *context, const PGresult *result)
{
	const struct connection *connection = context;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

	if (severity && strcmp(severity, "WARNING") == 0)
		log_event(LEVEL_WARN, "warning from the state database",
			LOG_TEXT("state", connection->servers.shown),
			LOG_TEXT("warning", PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY)));
}

static void start(struct connection *connection, const struct host *host, const char *password)
{
	const char *keys[OPTIONS_MOST + 5] = {NULL}, *values[OPTIONS_MOST + 5] = {NULL};
	const char *const more[][2] = {{"host", host->name}, {"hostaddr", host->address},
		{"port", host->port}, {"password", password}};
	size_t count = connection->servers.options;

	memcpy(keys, connection->servers.keys, count * sizeof *keys);
	memcpy(values, connection->servers.values, count * sizeof *values);
	for (size_t i = 0; i < sizeof more / sizeof *more; i++)
		if (more[i][1]) {
			keys[count] = more[i][0];
			values[count++] = more[i][1];
		}
	connection->link = PQconnectStartParams(keys, values, 0);
	if (!connection->link)
		abort(); /* out of memory */
	PQsetNoticeReceiver(connection->link, take_notice, connection);
}

static bool finish_connecting(struct connection *connection)
{
	int64_t deadline = clock_monotonic() + connection->servers.connect_ms;
	PostgresPollingStatusType polled = PGRES_POLLING_WRITING;

	while (PQstatus(connection->link) != CONNECTION_BAD && polled != PGRES_POLLING_OK &&
		polled != PGRES_POLLING_FAILED) {
		short events = polled == PGRES_POLLING_READING ? POLLIN : POLLOUT;
		enum ready ready = wait_for(connection->link, events, deadline);

		if (ready == TOO_LATE) {
			note_late(connection, "no connection", connection->servers.connect_ms,
				" (connect_timeout)");
			return false;
		}
		if (ready == READY)
			polled = PQconnectPoll(connection->link);
	}
	if (polled == PGRES_POLLING_OK && PQsetnonblocking(connection->link, 1) == 0 &&
		PQenterPipelineMode(connection->link))
		return true;
	note(connection, TROUBLE_AWAY, NULL, last_attempt(PQerrorMessage(connection->link)));
	return false;
}

static bool connect_any(struct connection *connection, const char *password)
{
	for (size_t i = 0; i < connection->servers.host_count; i++) {
		size_t at = (connection->at + i) % connection->servers.host_count;
		const struct host *host = &connection->servers.hosts[at];

		start(connection, host, password);
		connects++;
		if (finish_connecting(connection)) {
			connection->at = at;
			connection->proven = false;
			return true;
		}
		PQfinish(connection->link);
		connection->link = NULL;
		/* Which of several hosts, where libpq's message does not say so. */
		if (connection->servers.host_count > 1 && host->name &&
			!strstr(connection->problem.text, host->name))
			error_prefix(&connection->problem, "%s: ", host->name);
	}
	connection->at = (connection->at + 1) % connection->servers.host_count;
	connection->away_until = clock_monotonic() + AWAY_MS;
	return false;
}

/* Whether the server has closed a connection on which nothing is in progress. */
static bool is_stale(struct connection *connection)
{
	struct pollfd fd = {.fd = PQsocket(connection->link), .events = POLLIN};

	/* The server's last words, and then the end. */
	while (PQstatus(connection->link) == CONNECTION_OK) {
		if (connection->pending > 0 || poll(&fd, 1, 0) == 0)
			return false;
		if (!PQconsumeInput(connection->link))
			return true;
		(void)PQisBusy(connection->link);
	}
	return true;
}

static bool ensure(struct connection *connection)
{
	struct arena *scratch;
	const char *password = NULL;
	struct error error;
	bool done = true;

	if (connection->link && !is_stale(connection))
		return true;
	if (connection->link)
		drop(connection);
	if (clock_monotonic() < connection->away_until) {
		connection->trouble = TROUBLE_AWAY; /* with the problem as it was */
		return false;
	}
	scratch = arena_new();
	if (connection->servers.password_file &&
		!secret_read(scratch, "state_password_file", connection->servers.password_file,
			&password, &error)) {
		note(connection, TROUBLE_AWAY, NULL, error.text);
		done = false;
	}
	done = done && connect_any(connection, password);
	arena_free(scratch);
	return done;
}

/* The limits of a transaction. */
static void add_limits(const struct connection *connection, struct parameters *parameters)
{
	bool patient = connection->patience_ms > CONNECTION_PATIENCE;

	parameter_add(parameters, v_int(connection->patience_ms));
	parameter_add(parameters, v_int(patient ? connection->patience_ms : IDLE_MS));
}

/* Compiling a statement takes seconds where it is expected to take long, and most take none. */
#define NOT_COMPILED "set_config('jit', 'off', true), "

static bool send_limits(struct connection *connection)
{
	struct parameters parameters = {0};

	add_limits(connection, &parameters);
	return queue(connection,
		"SELECT " NOT_COMPILED "set_config('statement_timeout', CAST($1 AS TEXT), true),"
		" set_config('idle_in_transaction_session_timeout', CAST($2 AS TEXT), true)",
		&parameters);
}

/* A statement that is a transaction of its own. */
static bool queue_alone(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	return ensure(connection) &&
	       (connection->proven || connection->pending > 0 || send_limits(connection)) &&
	       queue(connection, sql, parameters);
}

/* Reads whether the doubtful transaction was committed, and refuses it if it was not: then it can
 * no longer be. A transaction that is still open has locked the row, and this waits for it. */
static bool settle(struct connection *connection)
{
	static const char sql[] =
		"INSERT INTO commits AS c (writer, number, refused, used) VALUES ($1, 0, $2,"
		" CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))"
		" ON CONFLICT (writer) DO UPDATE SET refused ="
		" CASE WHEN c.number = $2 THEN c.refused ELSE $2 END RETURNING number";
	struct parameters parameters = {0};
	PGresult *result;

	if (connection->doubtful == 0)
		return true;
	parameter_add(&parameters, v_text(connection->writer));
	parameter_add(&parameters, v_int(connection->doubtful));
	if (!queue_alone(connection, sql, &parameters))
		return false;
	result = drain(connection);
	if (!result)
		return false;
	if (PQntuples(result) == 1 && cell_integer(result, 0, 0) == connection->doubtful)
		connection->confirmed[connection->confirmed_count++ % CONFIRMED_KEPT] =
			connection->doubtful;
	connection->doubtful = 0;
	PQclear(result);
	return true;
}

/* With the limits. */
static bool send_number(struct connection *connection)
{
	struct parameters parameters = {0};

	connection->number++;
	connection->number_sent = true;
	parameter_add(&parameters, v_text(connection->writer));
	parameter_add(&parameters, v_int(connection->number));
	add_limits(connection, &parameters);
	return queue(connection,
		"INSERT INTO commits (writer, number, refused, used) VALUES ($1, $2, 0,"
		" CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))"
		" ON CONFLICT (writer) DO UPDATE SET number = excluded.number,"
		" used = excluded.used RETURNING " NOT_COMPILED
		"set_config('statement_timeout', CAST($3 AS TEXT), true),"
		" set_config('idle_in_transaction_session_timeout', CAST($4 AS TEXT), true)",
		&parameters);
}

/* A failure is found by the next statement. */
void connection_patience(struct connection *connection, int64_t ms)
{
	if (ms == connection->patience_ms)
		return;
	connection->patience_ms = ms;
	if (connection->open)
		(void)send_limits(connection);
}

bool connection_begin(struct connection *connection, enum transaction kind)
{
	static const char *const sql[] = {
		[TRANSACTION_READS] = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
		[TRANSACTION_WRITES] = "BEGIN ISOLATION LEVEL SERIALIZABLE, READ WRITE",
		[TRANSACTION_PLAIN] = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"};

	connection->reads = kind == TRANSACTION_READS;
	connection->trouble = TROUBLE_NONE;
	connection->open = false;
	if (!settle(connection) || !ensure(connection))
		return false;
	connection->open = true;
	connection->doomed = false;
	buf_clear(&connection->parsed);
	connection->number_sent = false;
	connection->changed = 0;
	return queue(connection, sql[kind], NULL) &&
	       (kind == TRANSACTION_WRITES && connection->numbered ? send_number(connection)
								   : send_limits(connection));
}

/* The answer to COMMIT is lost. */
static bool find_out(struct connection *connection)
{
	if (!settle(connection)) {
		connection->trouble = TROUBLE_DOUBT;
		return false;
	}
	if (connection_has_committed(connection, connection->number))
		return true;
	note(connection, TROUBLE_CONFLICT, NULL, "connection lost before the commit");
	return false;
}

bool connection_commit(struct connection *connection)
{
	PGresult *result;
	bool done;

	/* All that was read is there: nothing can fail that anybody needs to know. */
	if (connection->reads && connection->pending == 0) {
		connection->open = !queue_ignored(connection, "COMMIT");
		return !connection->open;
	}
	if (!connection->reads && !queue(connection, "SET LOCAL statement_timeout = 0", NULL))
		return false;
	/* A part of the queue may be sent at once. */
	connection->committing = connection->number_sent;
	result = queue(connection, "COMMIT", NULL) ? drain(connection) : NULL;
	connection->committing = false;
	/* A conflict that COMMIT finds has ended it; so has the end of the connection. */
	if (!connection->link || PQtransactionStatus(connection->link) == PQTRANS_IDLE)
		connection->open = false;
	if (!result)
		return connection->doubtful != 0 && find_out(connection);
	connection->open = false;
	/* A transaction that is in an error is rolled back by COMMIT, which reports that. */
	done = strcmp(PQcmdStatus(result), "COMMIT") == 0;
	PQclear(result);
	if (!done)
		note(connection, TROUBLE_STATEMENT, NULL, "the transaction failed");
	return done;
}

void connection_rollback(struct connection *connection)
{
	if (!connection->open)
		return;
	if (connection->loading)
		drop(connection); /* which ends the transaction */
	/* The first answers belong to earlier statements, whose errors are known. */
	if (connection->link && connection->pending > 0)
		(void)drained(connection);
	connection->doomed = false;
	if (connection->link && (!queue(connection, "ROLLBACK", NULL) || !drained(connection)) &&
		connection->link)
		drop(connection);
	connection->open = false;
}

int64_t connection_transaction(const struct connection *connection)
{
	return connection->open && connection->number_sent ? connection->number : 0;
}

bool connection_has_committed(const struct connection *connection, int64_t number)
{
	for (size_t i = 0; i < CONFIRMED_KEPT; i++)
		if (number != 0 && connection->confirmed[i] == number)
			return true;
	return false;
}

static void put_bits(struct buf *out, uint32_t bits, int bytes)
{
	for (int i = bytes - 1; i >= 0; i--)
		buf_char(out, (char)(bits >> (8 * i)));
}

static bool flush(struct connection *connection)
{
	int64_t deadline = clock_monotonic() + connection->patience_ms + LATE_MS;
	int left;

	while ((left = PQflush(connection->link)) > 0) {
		if (wait_for(connection->link, POLLIN | POLLOUT, deadline) == TOO_LATE)
			return late(connection);
		if (!PQconsumeInput(connection->link))
			return lost(connection);
	}
	return left == 0 || lost(connection);
}

static bool send_rows(struct connection *connection)
{
	struct buf *rows = &connection->rows;
	bool done = PQputCopyData(connection->link, rows->data, (int)rows->length) == 1
			    ? flush(connection)
			    : lost(connection);

	buf_clear(rows);
	return done;
}

static bool load_row(struct connection *connection, const struct parameters *row)
{
	struct buf *rows = &connection->rows;

	put_bits(rows, (uint32_t)row->count, 2);
	for (int i = 0; i < row->count; i++) {
		put_bits(rows, row->values[i] ? (uint32_t)row->lengths[i] : UINT32_MAX, 4);
		if (row->values[i] && row->lengths[i] > 0)
			buf_append(rows, row->values[i], (size_t)row->lengths[i]);
	}
	return rows->length < LOAD_BYTES || send_rows(connection);
}

bool connection_send(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	if (connection->loading)
		return load_row(connection, parameters);
	if (!connection->open)
		return connection_run(connection, sql, parameters);
	return queue(connection, sql, parameters) &&
	       (connection->pending < PENDING_MOST || drained(connection));
}

PGresult *connection_ask(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	PGresult *result = NULL;
	int tries = 0;

	do
		if ((connection->open ? queue : queue_alone)(connection, sql, parameters))
			result = drain(connection);
	while (!result && !connection->open && connection->trouble == TROUBLE_CONFLICT &&
		++tries < ATTEMPTS);
	return result;
}

bool connection_run(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	PGresult *result = connection_ask(connection, sql, parameters);

	PQclear(result);
	return result != NULL;
}

int64_t connection_changed(struct connection *connection)
{
	if (connection->pending > 0 && !drained(connection))
		return 0;
	return connection->changed;
}

/* Loading: not in a pipeline, which has no COPY. */

/* Takes results up to the end of the statement's, or to the first of that status. */
static bool take_until(struct connection *connection, ExecStatusType status, int64_t deadline)
{
	bool good = true, found = false;
	PGresult *result = NULL;

	while (!found) {
		if (!next_result(connection, deadline, &result))
			return false;
		if (!result)
			return good && status == PGRES_COMMAND_OK;
		found = status != PGRES_COMMAND_OK && PQresultStatus(result) == status;
		if (!found && PQresultStatus(result) != PGRES_COMMAND_OK) {
			note_result(connection, result);
			good = false;
		}
		PQclear(result);
	}
	return true;
}

bool connection_load_begin(struct connection *connection, const char *sql)
{
	static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0"; /* and a NUL */
	int64_t deadline = clock_monotonic() + connection->patience_ms + LATE_MS;

	if (connection->pending > 0 && !drained(connection))
		return false;
	if (!connection->link || connection->doomed)
		return false; /* with the problem as it was */
	if (!PQexitPipelineMode(connection->link) || !PQsendQuery(connection->link, sql))
		return lost(connection);
	buf_clear(&connection->parsed);
	buf_clear(&connection->rows);
	buf_append(&connection->rows, header, sizeof header);
	connection->loading = take_until(connection, PGRES_COPY_IN, deadline);
	connection->doomed = !connection->loading;
	if (!connection->loading && connection->link && !PQenterPipelineMode(connection->link))
		return lost(connection);
	return connection->loading;
}

bool connection_load_end(struct connection *connection)
{
	int64_t deadline = clock_monotonic() + connection->patience_ms + LATE_MS;
	bool good;

	if (!connection->loading)
		return false;
	put_bits(&connection->rows, UINT16_MAX, 2);
	if (!send_rows(connection))
		return false;
	connection->loading = false;
	if (PQputCopyEnd(connection->link, NULL) != 1)
		return lost(connection);
	if (!flush(connection))
		return false;
	good = take_until(connection, PGRES_COMMAND_OK, deadline);
	connection->doomed = !good;
	if (connection->link && !PQenterPipelineMode(connection->link))
		return lost(connection);
	return good;
}
