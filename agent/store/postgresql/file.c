/*
 * A statement without result rows is sent without waiting for its answer, so that a transaction
 * that only writes takes few round trips; failures are found by the next that waits, at the latest
 * by COMMIT.
 *
 * Changes are not counted by triggers: agents would wait for one another. If there are many they
 * are counted at most every COUNTED_MS.
 */
#include "agent/store/postgresql/file.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/clock.h"
#include "agent/base/database.h"
#include "agent/base/utf8.h"
#include "agent/store/backend.h"
#include "agent/store/postgresql/fleet.h"
#include "agent/store/postgresql/statements.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/statements.h"

enum {
	COUNTED_MS = 10000,
	FEW_CHANGES = 20000, /* are counted each time */
	COPIES_MOST = 8,
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
	char *copies[COPIES_MOST]; /* of texts that are not as they were given */
	size_t copy_count;
	PGresult *result;
	int row;
};

struct postgresql_file {
	struct tx tx;
	char *address, *label;
	struct connection *connection;
	bool copy;    /* nothing is committed */
	bool loading; /* the rows of an insert */
	_Atomic int64_t size;

	int64_t states[CHANGE_STATES]; /* how many changes there were of each ... */
	int64_t counted;               /* ... then: ms, monotonic; 0: never */
};

static struct postgresql_file *of(struct tx *tx)
{
	return (struct postgresql_file *)tx;
}

/* Statements */

/* "?7" becomes "$7"; returns how many parameters there are. */
static int translate(char *text)
{
	int most = 0;

	for (; *text; text++)
		if (*text == '?' && text[1] >= '0' && text[1] <= '9') {
			int number = atoi(text + 1);

			*text = '$';
			most = number > most ? number : most;
		}
	return most;
}

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
	statement->count = translate(statement->text);
	return statement;
}

static void reset(struct sql_statement *statement)
{
	PQclear(statement->result);
	statement->result = NULL;
	while (statement->copy_count > 0)
		free(statement->copies[--statement->copy_count]);
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

static bool is_utf8(const char *text)
{
	for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
		length = utf8_length(text, left);
		if (length == 0)
			return false;
	}
	return true;
}

/* The server takes no text that is not UTF-8; bytes that are not become '?'. */
static const char *clean(struct sql_statement *statement, const char *text)
{
	char *copy;

	if (!text || is_utf8(text))
		return text;
	if (statement->copy_count == COPIES_MOST)
		return "?";
	copy = memory_strdup(text);
	statement->copies[statement->copy_count++] = copy;
	for (size_t left = strlen(copy), length; left > 0; copy += length, left -= length) {
		length = utf8_length(copy, left);
		if (length > 0)
			continue;
		*copy = '?';
		length = 1;
	}
	return statement->copies[statement->copy_count - 1];
}

static void bind_value(struct sql_statement *statement, int parameter, const struct value *value)
{
	struct value clear = *value;

	if (clear.type == SQL_TEXT)
		clear.text = clean(statement, clear.text);
	statement->parameters.count = parameter - 1;
	parameter_add(&statement->parameters, clear);
}

/* The rows of long lists are read in the order of an index, up to a limit. Without statistics,
 * which come a minute after many changes, a planner takes all rows for few, reads them and sorts
 * them. */
static PGresult *ask_in_order(struct sql_statement *statement)
{
	static const char *const plans[] = {"SELECT set_config('enable_seqscan', 'off', true),"
					    " set_config('enable_bitmapscan', 'off', true)",
		"SELECT set_config('enable_seqscan', 'on', true), set_config('enable_bitmapscan',"
		" 'on', true)"};
	struct connection *connection = statement->file->connection;
	PGresult *result;

	if (statement->in_order && !connection_send(connection, plans[0], NULL))
		return NULL;
	result = connection_ask(connection, statement->text, &statement->parameters);
	if (statement->in_order && result)
		(void)!connection_send(connection, plans[1], NULL);
	return result;
}

static enum sql_step run(struct sql_statement *statement)
{
	struct postgresql_file *file = statement->file;
	struct connection *connection = file->connection;
	bool done;

	statement->parameters.count = statement->count;
	if (file->loading || !statement->has_rows) {
		done = file->loading ? connection_load_row(connection, &statement->parameters)
				     : connection_send(
					       connection, statement->text, &statement->parameters);
		return done ? SQL_DONE : SQL_FAILED;
	}
	statement->result = ask_in_order(statement);
	statement->row = -1;
	return statement->result ? SQL_ROW : SQL_FAILED;
}

static enum sql_step step(struct sql_statement *statement)
{
	if (!statement->result) {
		enum sql_step first = run(statement);

		if (first != SQL_ROW)
			return first;
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
	return connection_changed(of(tx)->connection);
}

static bool fail(struct tx *tx, const char *doing)
{
	return error_set(tx->error, ERROR_STATE, "%s: cannot %s: %s", tx->label, doing,
		connection_problem(of(tx)->connection));
}

/* "INSERT INTO table (columns) VALUES ..." */
static bool load_begin(struct tx *tx, struct sql_statement *insert)
{
	struct postgresql_file *file = of(tx);
	const char *text = insert->text + strlen("INSERT INTO ");
	const char *end = strstr(text, " VALUES ");
	char *copy = memory_printf("COPY %.*s FROM STDIN (FORMAT binary)", (int)(end - text), text);

	file->loading = connection_load_begin(file->connection, copy);
	free(copy);
	return file->loading;
}

static bool load_end(struct tx *tx)
{
	of(tx)->loading = false;
	return connection_load_end(of(tx)->connection);
}

/* Opening */

bool postgresql_ask_number(struct tx *tx, const char *sql, int64_t *number, struct error *error)
{
	PGresult *result = connection_ask(of(tx)->connection, sql, NULL);
	bool done = result && PQntuples(result) == 1;

	if (done)
		*number = cell_integer(result, 0, 0);
	else if (result)
		error_set(error, ERROR_STATE, "%s: a row is missing", tx->label);
	else
		connection_fail(of(tx)->connection, error);
	PQclear(result);
	return done;
}

/* 0: the tables are not there. Fails if they are of another version. */
static bool read_version(struct postgresql_file *file, int64_t *version, struct error *error)
{
	int64_t there;

	*version = 0;
	if (!postgresql_ask_number(&file->tx,
		    "SELECT count(*) FROM information_schema.tables WHERE table_schema ="
		    " current_schema() AND table_name = 'schema'",
		    &there, error))
		return false;
	if (there == 0)
		return true;
	if (!postgresql_ask_number(
		    &file->tx, "SELECT version FROM schema WHERE one = 1", version, error))
		return false;
	return schema_check(file->label, *version, &postgresql_words, error);
}

static bool check_server(struct postgresql_file *file, struct error *error)
{
	int64_t version;

	if (!postgresql_ask_number(&file->tx,
		    "SELECT CAST(current_setting('server_version_num') AS BIGINT)", &version,
		    error))
		return false;
	return version >= OLDEST_SERVER ||
	       error_set(error, ERROR_STATE, "%s: the server is older than PostgreSQL %d",
		       file->label, OLDEST_SERVER / 10000);
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
static bool make_locked(struct postgresql_file *file, struct error *error)
{
	struct connection *connection = file->connection;
	int64_t version;
	char *text, made[64];
	bool done;

	if (!connection_run(connection, "SELECT pg_advisory_xact_lock(5208909)", NULL))
		return connection_fail(connection, error);
	if (!read_version(file, &version, error))
		return false;
	text = schema_text_new(&postgresql_words);
	snprintf(made, sizeof made, "INSERT INTO schema VALUES (1, %d, 0)",
		(int)schema_version(&postgresql_words));
	done = (version != 0 ||
		       (run_script(connection, text) && connection_run(connection, made, NULL))) &&
	       connection_commit(connection);
	free(text);
	return done || connection_fail(connection, error);
}

static bool make_tables(struct postgresql_file *file, struct error *error)
{
	struct connection *connection = file->connection;
	struct error first;
	int64_t version;

	if (!connection_begin_plain(connection))
		connection_fail(connection, &first);
	else if (make_locked(file, &first))
		return true;
	connection_rollback(connection);
	if (read_version(file, &version, error) && version != 0)
		return true; /* another has done it */
	*error = first;
	return error_prefix(error, "cannot create the tables (the owner of the database must do "
				   "so, see docs/operate/fleet.md): ");
}

static int64_t size_of(struct postgresql_file *file)
{
	struct error error;
	int64_t size = 0;

	return postgresql_ask_number(
		       &file->tx, "SELECT pg_database_size(current_database())", &size, &error)
		       ? size
		       : 0;
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
	postgresql_close(&file->tx);
	return NULL;
}

void postgresql_close(struct tx *tx)
{
	struct postgresql_file *file = of(tx);

	connection_free(file->connection);
	statements_free(tx);
	explicit_bzero(file->address, strlen(file->address)); /* which may have a password */
	free(file->address);
	free(file->label);
	free(file);
}

/* Opens an existing state of this version. */
struct tx *postgresql_open_as_it_is(const char *address, struct error *error)
{
	struct postgresql_file *file = file_new(address, error);
	int64_t version;

	if (!file)
		return NULL;
	if (read_version(file, &version, error)) {
		if (version != 0)
			return &file->tx;
		error_set(error, ERROR_STATE, "%s has no state yet", file->label);
	}
	postgresql_close(&file->tx);
	return NULL;
}

static struct tx *open_own(const char *address, struct error *error)
{
	struct postgresql_file *file = file_new(address, error);
	int64_t version;

	if (!file)
		return NULL;
	if (check_server(file, error) && read_version(file, &version, error) &&
		(version != 0 || make_tables(file, error))) {
		connection_number(file->connection);
		file->size = size_of(file);
		return &file->tx;
	}
	postgresql_close(&file->tx);
	return NULL;
}

static struct tx *open_database(const char *address, enum store_use use, struct error *error)
{
	struct tx *tx = use == STORE_OWN ? open_own(address, error)
					 : postgresql_open_as_it_is(address, error);

	if (tx)
		of(tx)->copy = use == STORE_TRY;
	return tx;
}

/* Transactions */

static void begin(struct tx *tx, bool writes)
{
	struct postgresql_file *file = of(tx);

	connection_patience(file->connection, CONNECTION_PATIENCE);
	tx->failed = !connection_begin(file->connection, writes) &&
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
	of(tx)->loading = false;
	connection_rollback(of(tx)->connection);
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

/* A time that differs from agent to agent. */
static void pause_for(int tries)
{
	int64_t most = tries < 7 ? 2 << tries : PAUSE_MOST;
	struct timespec pause = {.tv_nsec = (clock_monotonic_ns() / 64 % (most * 1000)) * 1000};

	nanosleep(&pause, NULL);
}

static bool again(struct tx *tx, int tries)
{
	enum trouble trouble = connection_trouble(of(tx)->connection);

	if (trouble == TROUBLE_CONFLICT && tries < CONFLICTS_MOST)
		pause_for(tries);
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
	if (call->work->is_long)
		connection_patience(file->connection, CONNECTION_PATIENCE_LONG);
	fleet_lock(tx, call);
	if (call->work == &store_prune_work) /* of writers that are gone for long */
		RUN(tx, "DELETE FROM commits WHERE used < CAST(extract(epoch FROM"
			" clock_timestamp() - INTERVAL '30 days') * 1000 AS BIGINT)");
	return !tx->failed;
}

/* How many agents are at work on it. */
static bool count_agents(const char *address, int64_t *alive, struct error *error)
{
	struct tx *tx = postgresql_open_as_it_is(address, error);
	bool done = tx && postgresql_ask_number(tx,
				  "SELECT count(*) FROM agents WHERE gone = 0 AND until >"
				  " CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
				  alive, error);

	if (tx)
		postgresql_close(tx);
	return done;
}

static bool is_held(const char *address)
{
	struct error error;
	int64_t alive;

	return count_agents(address, &alive, &error) && alive > 0;
}

/* Nobody joins or renews a lease meanwhile. The transaction may have begun to see the state before
 * it had to wait, so another one checks for live agents. */
static void reserve(struct tx *tx)
{
	struct postgresql_file *file = of(tx);
	int64_t alive = 0;

	connection_patience(file->connection, CONNECTION_PATIENCE_LONG);
	if (connection_run(file->connection, "LOCK TABLE agents IN SHARE MODE", NULL))
		tx->failed = !count_agents(file->address, &alive, tx->error);
	else
		tx->failed = !connection_fail(file->connection, tx->error);
	if (alive > 0)
		tx_fail(tx, ERROR_STATE, "%s is in use by an agent: stop it first",
			connection_shown(file->connection));
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
		postgresql_close(&file->tx);
	return there;
}

static int64_t size_at(const char *address)
{
	struct error error;
	struct tx *tx = postgresql_open_as_it_is(address, &error);
	int64_t size = tx ? size_of(of(tx)) : 0;

	if (tx)
		postgresql_close(tx);
	return size;
}

static bool backup(const char *address, const char *target, bool force, struct error *error)
{
	struct arena *scratch = arena_new();

	(void)force;
	error_set(error, ERROR_USAGE,
		"backup %s: back up the state database %s with PostgreSQL's tools: pg_dump "
		"--format=custom --file=%s for a snapshot, pg_basebackup and a WAL archive for "
		"point-in-time recovery; or run `hunter-c store copy` into a file",
		target, database_shown(scratch, address), target);
	arena_free(scratch);
	return false;
}

struct connection *postgresql_connection(struct tx *tx)
{
	return of(tx)->connection;
}

const struct store_backend postgresql_backend = {
	.open = open_database,
	.close = postgresql_close,
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
	.check = postgresql_check,
	.backup = backup,
	.reserve = reserve,
	.is_held = is_held,
	.is_there = is_there,
	.size = size_at,
	.size_now = size_now,
	.traffic = connection_traffic,
};
