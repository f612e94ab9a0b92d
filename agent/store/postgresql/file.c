/*
 * A statement without result rows is sent without waiting for its answer, so that a transaction
 * that only writes takes few round trips; failures are found by the next that waits, at the latest
 * by COMMIT.
 *
 * Changes are not counted by triggers: agents would wait for one another. If there are many they
 * are counted at most every COUNTED_MS.
 */

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/base/database.h"
#include "agent/base/utf8.h"
#include "agent/store/backend.h"
#include "agent/store/postgresql/connection.h"
#include "agent/store/postgresql/fleet.h"
#include "agent/store/postgresql/statements.h"
#include "agent/store/sql/check.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/statements.h"

enum {
	COUNTED_MS = 10000,
	FEW_CHANGES = 20000, /* are counted each time */
	CONFLICTS_MOST = 60, /* tries */
	AWAY_MOST = 2,
	PAUSE_MOST = 250, /* ms */
	TURN_MS = 5000,
	OLDEST_SERVER = 130000,
};

struct sql_statement {
	struct postgresql_file *file;
	char *text;
	int count; /* of parameters */
	bool has_rows;
	bool in_order; /* see statements.h */
	struct parameters parameters;
	PGresult *result;
	int row;
};

struct postgresql_file {
	struct tx tx;
	char *address, *label;
	struct connection *connection;
	bool copy; /* nothing is committed */
	_Atomic int64_t size;

	int64_t states[CHANGE_STATES]; /* how many changes there were of each ... */
	int64_t counted;               /* ... then: ms, monotonic; 0: never */
};

static struct postgresql_file *of(struct tx *tx)
{
	return (struct postgresql_file *)tx;
}

struct connection *connection_of(struct tx *tx)
{
	return of(tx)->connection;
}

/* Statements */

static bool has_rows(const char *text)
{
	if (strncmp(text, "SELECT", 6) == 0 || strstr(text, " RETURNING "))
		return true;
	return strncmp(text, "WITH", 4) == 0 && !strstr(text, "INSERT INTO") &&
	       !strstr(text, "UPDATE ") && !strstr(text, "DELETE FROM");
}

static struct sql_statement *prepare(struct tx *tx, const char *text)
{
	struct sql_statement *statement = memory_new(1, sizeof *statement);

	*statement = (struct sql_statement){.file = of(tx),
		.text = memory_strdup(text),
		.has_rows = has_rows(text),
		.in_order = strstr(text, POSTGRESQL_IN_ORDER) != NULL};
	for (char *at = statement->text; *at; at++) /* "?7" becomes "$7" */
		if (*at == '?' && at[1] >= '0' && at[1] <= '9') {
			int number = atoi(at + 1);

			*at = '$';
			if (number > statement->count)
				statement->count = number;
		}
	return statement;
}

static void reset(struct sql_statement *statement)
{
	PQclear(statement->result);
	statement->result = NULL;
	for (int i = 0; i < statement->count; i++) {
		statement->parameters.values[i] = NULL;
		statement->parameters.types[i] = 0;
		statement->parameters.formats[i] = 1;
	}
}

static void finish(struct sql_statement *statement)
{
	reset(statement);
	free(statement->text);
	free(statement);
}

/* The server takes no text that is not UTF-8; bytes that are not become '?'. */
static const char *clean(struct arena *arena, const char *text)
{
	char *copy = NULL;

	for (size_t at = 0, left = text ? strlen(text) : 0, length; left > 0;
		at += length, left -= length) {
		length = utf8_length(text + at, left);
		if (length > 0)
			continue;
		if (!copy)
			text = copy = arena_strndup(arena, text, at + left);
		copy[at] = '?';
		length = 1;
	}
	return text;
}

static void bind_value(struct sql_statement *statement, int parameter, const struct value *value)
{
	struct value clear = *value;

	if (clear.type == SQL_TEXT)
		clear.text = clean(statement->file->tx.arena, clear.text);
	statement->parameters.count = parameter - 1;
	parameter_add(&statement->parameters, clear);
}

/* The rows of long lists are read in the order of an index, up to a limit. Without statistics,
 * which come a minute after many changes, a planner takes all rows for few, reads them and sorts
 * them. */
static const char in_order[] = "SELECT set_config('enable_seqscan', 'off', true),"
			       " set_config('enable_bitmapscan', 'off', true)";
static const char in_any[] = "SELECT set_config('enable_seqscan', 'on', true),"
			     " set_config('enable_bitmapscan', 'on', true)";

static enum sql_step step(struct sql_statement *statement)
{
	struct connection *connection = statement->file->connection;

	if (!statement->result) {
		statement->parameters.count = statement->count;
		statement->row = -1;
		if (!statement->has_rows)
			return connection_send(connection, statement->text, &statement->parameters)
				       ? SQL_DONE
				       : SQL_FAILED;
		if (!statement->in_order || connection_send(connection, in_order, NULL))
			statement->result =
				connection_ask(connection, statement->text, &statement->parameters);
		if (!statement->result)
			return SQL_FAILED;
		if (statement->in_order)
			(void)!connection_send(connection, in_any, NULL);
	}
	return ++statement->row < PQntuples(statement->result) ? SQL_ROW : SQL_DONE;
}

static struct value column_of(struct sql_statement *statement, int column)
{
	return cell_value(statement->result, statement->row, column);
}

/* A failed statement changed nothing; the next one that waits sees the failure. */
static int64_t changed(struct tx *tx)
{
	return connection_changed(connection_of(tx));
}

static bool fail(struct tx *tx, const char *doing)
{
	return error_set(tx->error, ERROR_STATE, "%s: cannot %s: %s", tx->label, doing,
		connection_problem(connection_of(tx)));
}

/* "INSERT INTO table (columns) VALUES ..." */
static bool load_begin(struct tx *tx, struct sql_statement *insert)
{
	const char *text = insert->text + strlen("INSERT INTO ");
	const char *end = strstr(text, " VALUES ");
	char *copy = memory_printf("COPY %.*s FROM STDIN (FORMAT binary)", (int)(end - text), text);
	bool begun = connection_load_begin(connection_of(tx), copy);

	free(copy);
	return begun;
}

static bool load_end(struct tx *tx)
{
	return connection_load_end(connection_of(tx));
}

/* Opening */

static bool ask_number(struct tx *tx, const char *sql, int64_t *number, struct error *error)
{
	PGresult *result = connection_ask(connection_of(tx), sql, NULL);
	bool done = result != NULL;

	*number = done && PQntuples(result) > 0 ? cell_integer(result, 0, 0) : 0;
	PQclear(result);
	return done || connection_fail(connection_of(tx), error);
}

/* 0: the tables are not there. Fails if they are of another version. */
static bool read_version(struct postgresql_file *file, int64_t *version, struct error *error)
{
	int64_t there;

	*version = 0;
	if (!ask_number(&file->tx,
		    "SELECT count(*) FROM information_schema.tables WHERE table_schema ="
		    " current_schema() AND table_name = 'schema'",
		    &there, error))
		return false;
	if (there == 0)
		return true;
	if (!ask_number(&file->tx, "SELECT version FROM schema WHERE one = 1", version, error))
		return false;
	return schema_check(file->label, *version, &postgresql_words, error);
}

/* Statements end with a semicolon at the end of a line. */
static bool run_script(struct connection *connection, const char *sql)
{
	while (*sql) {
		const char *end = strstr(sql, ";\n");
		size_t length = end ? (size_t)(end - sql) : strlen(sql);
		char *statement = memory_printf("%.*s", (int)length, sql);
		bool done = connection_run(connection, statement, NULL);

		free(statement);
		if (!done)
			return false;
		sql += length + (end ? 2 : 0);
	}
	return true;
}

/* One agent makes the tables: those that wait for the lock find that it is done. A database without
 * such locks (CockroachDB) refuses the second by itself. */
static bool make_tables(struct postgresql_file *file, struct error *error)
{
	struct connection *connection = file->connection;
	char *text = schema_text_new(&postgresql_words);
	char *script = memory_printf("%sINSERT INTO schema VALUES (1, %d, 0)", text,
		(int)schema_version(&postgresql_words));
	struct error first;
	int64_t version = 0;
	bool done = (connection_begin(connection, TRANSACTION_PLAIN) &&
			    connection_run(
				    connection, "SELECT pg_advisory_xact_lock(5208909)", NULL)) ||
		    connection_fail(connection, &first);

	done = done && read_version(file, &version, &first) &&
	       (version != 0 || (run_script(connection, script) && connection_commit(connection)) ||
		       connection_fail(connection, &first));
	free(script);
	free(text);
	connection_rollback(connection);
	if (done || (read_version(file, &version, error) && version != 0)) /* by another */
		return true;
	*error = first;
	return error_prefix(error, "cannot create the tables (the owner of the database must do "
				   "so, see docs/operate/fleet.md): ");
}

static int64_t size_of(struct postgresql_file *file)
{
	struct error error;
	int64_t size = 0;

	(void)!ask_number(&file->tx, "SELECT pg_database_size(current_database())", &size, &error);
	return size;
}

static void close_database(struct tx *tx)
{
	struct postgresql_file *file = of(tx);

	connection_free(file->connection);
	statements_free(tx);
	explicit_bzero(file->address, strlen(file->address)); /* which may have a password */
	free(file->address);
	free(file->label);
	free(file);
}

static struct postgresql_file *file_new(const char *address, struct error *error)
{
	struct postgresql_file *file = memory_new(1, sizeof *file);
	struct arena *scratch = arena_new();

	*file = (struct postgresql_file){.address = memory_strdup(address)};
	file->label = memory_printf("state database %s", database_shown(scratch, address));
	arena_free(scratch);
	file->tx = (struct tx){
		.backend = &postgresql_backend, .path = file->address, .label = file->label};
	file->connection = connection_new(address, error);
	if (file->connection)
		return file;
	close_database(&file->tx);
	return NULL;
}

static bool take_into_use(struct postgresql_file *file, struct error *error)
{
	int64_t server, version;

	if (!ask_number(&file->tx, "SELECT CAST(current_setting('server_version_num') AS BIGINT)",
		    &server, error))
		return false;
	if (server < OLDEST_SERVER)
		return error_set(error, ERROR_STATE, "%s: the server is older than PostgreSQL %d",
			file->label, OLDEST_SERVER / 10000);
	if (!read_version(file, &version, error) || (version == 0 && !make_tables(file, error)))
		return false;
	connection_number(file->connection);
	file->size = size_of(file);
	return true;
}

static struct tx *open_database(const char *address, enum store_use use, struct error *error)
{
	struct postgresql_file *file = file_new(address, error);
	int64_t version = 1;
	bool good;

	if (!file)
		return NULL;
	file->copy = use == STORE_TRY;
	good = use == STORE_OWN ? take_into_use(file, error) : read_version(file, &version, error);
	if (good && version != 0)
		return &file->tx;
	if (good)
		error_set(error, ERROR_STATE, "%s has no state yet", file->label);
	close_database(&file->tx);
	return NULL;
}

/* Transactions */

static void begin(struct tx *tx, bool writes)
{
	struct postgresql_file *file = of(tx);

	connection_patience(file->connection, CONNECTION_PATIENCE);
	tx->failed = !connection_begin(
			     file->connection, writes ? TRANSACTION_WRITES : TRANSACTION_READS) &&
		     !connection_fail(file->connection, tx->error);
}

/* Within a transaction others would wait for one that counts. If that fails, the last counts stay.
 */
static void count(struct tx *tx, int64_t states[CHANGE_STATES])
{
	struct postgresql_file *file = of(tx);
	bool old = file->counted == 0 || clock_monotonic() - file->counted >= COUNTED_MS;
	int64_t total = 0, counts[CHANGE_STATES] = {0};

	for (int state = 1; state < CHANGE_STATES; state++)
		total += file->states[state];
	if (old || total < FEW_CHANGES) {
		sql_count(tx, counts);
		file->counted = clock_monotonic();
		if (!tx->failed)
			memcpy(file->states, counts, sizeof file->states);
	}
	if (old)
		file->size = size_of(file);
	memcpy(states, file->states, sizeof file->states);
}

static void rollback(struct tx *tx)
{
	connection_rollback(connection_of(tx));
}

static void commit(struct tx *tx)
{
	struct postgresql_file *file = of(tx);

	if (file->copy)
		rollback(tx);
	else if (!connection_commit(file->connection))
		tx->failed = !connection_fail(file->connection, tx->error);
}

static bool is_stuck(const struct tx *tx)
{
	enum trouble trouble = connection_trouble(((const struct postgresql_file *)tx)->connection);

	return trouble == TROUBLE_AWAY || trouble == TROUBLE_DOUBT;
}

static bool again(struct tx *tx, int tries)
{
	enum trouble trouble = connection_trouble(connection_of(tx));
	int64_t most = tries < 7 ? 2 << tries : PAUSE_MOST;
	/* A time that differs from agent to agent. */
	struct timespec pause = {.tv_nsec = (clock_monotonic_ns() / 64 % (most * 1000)) * 1000};

	if (trouble == TROUBLE_CONFLICT && tries < CONFLICTS_MOST)
		nanosleep(&pause, NULL);
	else if (trouble != TROUBLE_AWAY || tries >= AWAY_MOST)
		return false;
	connection_retried();
	return true;
}

/* A call that is repeated because its commit was in doubt may have been committed. */
static bool enter(struct tx *tx, struct store_call *call)
{
	struct postgresql_file *file = of(tx);
	int64_t number = connection_transaction(file->connection);

	if (call->work->lane == STORE_TURNS)
		connection_patience(file->connection, TURN_MS);
	if (call->work->lane >= STORE_TURNS)
		return true;
	if (number != 0 && connection_has_committed(file->connection, call->transaction))
		return false;
	call->transaction = number;
	if (call->work->is_long && !(call->work == &store_restore_work &&
					   ((const struct store_restore *)call)->queued))
		connection_patience(file->connection, CONNECTION_PATIENCE_LONG);
	fleet_lock(tx, call);
	if (call->work == &store_prune_work) /* of writers that are gone for long */
		RUN(tx, "DELETE FROM commits WHERE used < CAST(extract(epoch FROM"
			" clock_timestamp() - INTERVAL '30 days') * 1000 AS BIGINT)");
	return !tx->failed;
}

/* Nobody joins or renews a lease meanwhile. The transaction may have begun to see the state before
 * it had to wait, so another one checks for live agents. */
static void reserve(struct tx *tx)
{
	struct postgresql_file *file = of(tx);
	struct tx *other;
	int64_t alive = 0;

	connection_patience(file->connection, CONNECTION_PATIENCE_LONG);
	if (!connection_run(file->connection, "LOCK TABLE agents IN SHARE MODE", NULL)) {
		tx->failed = !connection_fail(file->connection, tx->error);
		return;
	}
	other = open_database(file->address, STORE_READ, tx->error);
	tx->failed = !other || !ask_number(other,
				       "SELECT count(*) FROM agents WHERE gone = 0 AND until >"
				       " CAST(extract(epoch FROM clock_timestamp()) * 1000 AS"
				       " BIGINT)",
				       &alive, tx->error);
	if (other)
		close_database(other);
	if (alive > 0)
		tx_fail(tx, ERROR_STATE, "%s is in use by an agent: stop it first", tx->label);
}

static int64_t size_now(const struct tx *tx)
{
	return ((const struct postgresql_file *)tx)->size;
}

static bool is_there(const char *address)
{
	struct error error;
	struct postgresql_file *file = file_new(address, &error);
	int64_t version = 1;
	bool there = !file || !read_version(file, &version, &error) || version != 0;

	if (file)
		close_database(&file->tx);
	return there;
}

static bool backup(
	const char *address, const char *target, bool force, int64_t *size, struct error *error)
{
	struct arena *scratch = arena_new();

	(void)force;
	(void)size;
	error_set(error, ERROR_USAGE,
		"backup %s: back up the state database %s with PostgreSQL's tools: pg_dump "
		"--format=custom --file=%s for a snapshot, pg_basebackup and a WAL archive for "
		"point-in-time recovery; or run `hunter-c store copy` into a file",
		target, database_shown(scratch, address), target);
	arena_free(scratch);
	return false;
}

static bool check(
	const char *address, struct arena *arena, struct store_report *report, struct error *error)
{
	struct check check = {arena, report, NULL};
	struct tx *tx = open_database(address, STORE_READ, error);
	struct connection *connection;
	int64_t shards;
	bool done;

	*report = (struct store_report){0};
	if (!tx)
		return false;
	connection = connection_of(tx);
	connection_patience(connection, CONNECTION_PATIENCE_LONG);
	tx->error = error;
	tx->failed = !connection_begin(connection, TRANSACTION_READS) &&
		     !connection_fail(connection, error);
	check_content(&check, tx);
	shards = query_ask(
		sql_query_of(tx, "SELECT count(*) FROM shards WHERE shard BETWEEN 0 AND 255"));
	if (shards != STORE_SHARDS && !tx->failed)
		check_found(&check, "found %" PRId64 " of %d shards", shards, STORE_SHARDS);
	done = !tx->failed &&
	       ask_number(
		       tx, "SELECT pg_database_size(current_database())", &report->size, error) &&
	       (connection_commit(connection) || connection_fail(connection, error));
	close_database(tx);
	return done;
}

const struct store_backend postgresql_backend = {
	.open = open_database,
	.close = close_database,
	.begin = begin,
	.commit = commit,
	.rollback = rollback,
	.count = count,
	.enter = enter,
	.answers_whole = true,
	.words = &postgresql_words,
	.prepare = prepare,
	.finish = finish,
	.reset = reset,
	.bind = bind_value,
	.step = step,
	.column = column_of,
	.changed = changed,
	.load_begin = load_begin,
	.load_end = load_end,
	.fail = fail,
	.is_stuck = is_stuck,
	.again = again,
	.is_shared = true,
	.check = check,
	.backup = backup,
	.reserve = reserve,
	.is_there = is_there,
	.size = size_now,
	.traffic = connection_traffic,
};
