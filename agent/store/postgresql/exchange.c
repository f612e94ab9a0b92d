#include "agent/store/postgresql/exchange.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/log.h"
#include "agent/base/when.h"

enum {
	POLL_MS = 200,   /* TLS may have read ahead data that poll() does not see */
	SAY_MS = 5000,   /* then it is logged that it waits */
	QUICK_MS = 1000, /* an answer by which a connection is proven */
	LATE_MS = 2000,  /* how much later than the server we give up */
	LOAD_BYTES = 65536,
};

enum ready exchange_wait(PGconn *link, short events, int64_t deadline)
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
	connection_note_late(
		connection, "no response from the server", connection->patience_ms + LATE_MS, "");
	connection_drop(connection);
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

bool exchange_queue(
	struct connection *connection, const char *sql, const struct parameters *parameters)
{
	static const struct parameters none;

	if (!parameters)
		parameters = &none;
	if (connection->open && connection->doomed)
		return false; /* with the problem as it was */
	if (!connection->link) {
		connection_note(connection, TROUBLE_AWAY, NULL, "connection to the server closed");
		return false;
	}
	if (!send_statement(connection, sql, parameters))
		return connection_lost(connection);
	connection->pending++;
	return true;
}

bool exchange_ignore(struct connection *connection, const char *sql)
{
	if (!exchange_queue(connection, sql, NULL))
		return false;
	connection->pending--;
	connection->ignored++;
	return (PQpipelineSync(connection->link) && PQflush(connection->link) >= 0) ||
	       connection_lost(connection);
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
			return connection_lost(connection);
		if (!PQisBusy(connection->link) && left == 0)
			break;
		ready = exchange_wait(
			connection->link, (short)(left ? POLLIN | POLLOUT : POLLIN), deadline);
		if (ready == TOO_LATE)
			return late(connection);
		say_waiting(connection, deadline);
		if (!PQconsumeInput(connection->link))
			return connection_lost(connection);
	}
	*result = PQgetResult(connection->link);
	if (*result || PQstatus(connection->link) == CONNECTION_OK)
		return true;
	return connection_lost(connection);
}

/* Takes a result of a statement; false if it is an error. The last one is kept. */
static bool take(struct connection *connection, PGresult *result, PGresult **last)
{
	ExecStatusType status = PQresultStatus(result);

	PQclear(*last);
	*last = NULL;
	if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
		connection->changed = strtoll(PQcmdTuples(result), NULL, 10);
		*last = result;
		return true;
	}
	if (status != PGRES_PIPELINE_ABORTED)
		connection_note_result(connection, result);
	PQclear(result);
	return false;
}

/* Reads the answers to all that was sent, up to the last synchronisation point. */
static bool read_all(struct connection *connection, int64_t deadline, PGresult **last)
{
	bool good = true;
	PGresult *result = NULL;

	for (;;) {
		if (!next_result(connection, deadline, &result))
			return false;
		if (!result)
			continue; /* between two statements */
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC && connection->ignored == 0)
			break;
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
			connection->ignored--;
			PQclear(result);
			continue;
		}
		/* After an error the rest is skipped by the server. */
		good = take(connection, result, last) && good;
	}
	PQclear(result);
	connection->pending = 0;
	return good;
}

PGresult *exchange_drain(struct connection *connection)
{
	int64_t started = clock_monotonic_ns();
	int64_t deadline = clock_monotonic() + connection->patience_ms + LATE_MS;
	PGresult *last = NULL;
	bool good;

	connection->said = false;
	if (!connection->link) {
		connection_note(connection, TROUBLE_AWAY, NULL, "connection to the server closed");
		return NULL;
	}
	if (!PQpipelineSync(connection->link)) {
		connection_lost(connection);
		return NULL;
	}
	good = read_all(connection, deadline, &last);
	connection_answered((clock_monotonic_ns() - started) / 1000);
	connection->proven = good && clock_monotonic_ns() - started < QUICK_MS * INT64_C(1000000);
	if (good)
		return last;
	PQclear(last);
	connection->doomed = connection->open;
	/* A server that does not take writes any more, or is about to stop: another host. */
	if (connection->link && connection->trouble == TROUBLE_AWAY)
		connection_drop(connection);
	return NULL;
}

bool exchange_drained(struct connection *connection)
{
	PGresult *result = exchange_drain(connection);

	PQclear(result);
	return result != NULL;
}

/* Loading: not in a pipeline, which has no COPY. */

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
		if (exchange_wait(connection->link, POLLIN | POLLOUT, deadline) == TOO_LATE)
			return late(connection);
		if (!PQconsumeInput(connection->link))
			return connection_lost(connection);
	}
	return left == 0 || connection_lost(connection);
}

static bool send_rows(struct connection *connection)
{
	struct buf *rows = &connection->rows;
	bool done = PQputCopyData(connection->link, rows->data, (int)rows->length) == 1
			    ? flush(connection)
			    : connection_lost(connection);

	buf_clear(rows);
	return done;
}

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
			connection_note_result(connection, result);
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

	if (connection->pending > 0 && !exchange_drained(connection))
		return false;
	if (!connection->link || connection->doomed)
		return false; /* with the problem as it was */
	if (!PQexitPipelineMode(connection->link) || !PQsendQuery(connection->link, sql))
		return connection_lost(connection);
	buf_clear(&connection->parsed);
	buf_clear(&connection->rows);
	buf_append(&connection->rows, header, sizeof header);
	connection->loading = take_until(connection, PGRES_COPY_IN, deadline);
	connection->doomed = !connection->loading;
	if (!connection->loading && connection->link && !PQenterPipelineMode(connection->link))
		return connection_lost(connection);
	return connection->loading;
}

bool connection_load_row(struct connection *connection, const struct parameters *row)
{
	struct buf *rows = &connection->rows;

	if (!connection->loading)
		return false;
	put_bits(rows, (uint32_t)row->count, 2);
	for (int i = 0; i < row->count; i++) {
		put_bits(rows, row->values[i] ? (uint32_t)row->lengths[i] : UINT32_MAX, 4);
		if (row->values[i] && row->lengths[i] > 0)
			buf_append(rows, row->values[i], (size_t)row->lengths[i]);
	}
	return rows->length < LOAD_BYTES || send_rows(connection);
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
		return connection_lost(connection);
	if (!flush(connection))
		return false;
	good = take_until(connection, PGRES_COMMAND_OK, deadline);
	connection->doomed = !good;
	if (connection->link && !PQenterPipelineMode(connection->link))
		return connection_lost(connection);
	return good;
}
