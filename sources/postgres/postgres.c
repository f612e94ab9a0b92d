/*
 * Each run of a test executes its query once, in a read-only transaction. Rows are fetched one by
 * one, so that a large result is not held twice. The session does everything that may wait, within
 * its deadlines. Each query makes a connection of its own, since queries are far apart.
 */
#include "sources/postgres/postgres.h"

#include <stdio.h>

#include "sources/postgres/bind.h"
#include "sources/postgres/rows.h"
#include "sources/postgres/session.h"

/* The values of libpq's sslmode; the first stands for "not given". */
const char *const postgres_ssl_modes[] = {
	"default", "disable", "allow", "prefer", "require", "verify-ca", "verify-full", NULL};

static const struct field postgres_fields[] = {
	OPTION_STRING(struct postgres_options, query, NULL,
		"SELECT whose rows are points; %{BRANCH} is the requested branch, as a bound "
		"parameter",
		.flags = FIELD_REQUIRED),
	OPTION_STRING(struct postgres_options, time_column, "time",
		"timestamp column: timestamp (UTC without a zone), date, or epoch seconds or "
		"milliseconds"),
	OPTION_STRING(struct postgres_options, commit_column, NULL,
		"column of a point's commit; default: commit"),
	OPTION_STRING(struct postgres_options, version_column, NULL, "the same for its version"),
	OPTION_LIST(struct postgres_options, attributes,
		"columns shown with a change: commit, version, machine ..."),
	OPTION_STRING(struct postgres_options, base_branch, NULL, "default branch"),
	OPTION_STRING(struct postgres_options, update_statement, NULL,
		"statement that analyze --update-postgres runs for each change: {metric}, the time "
		"column and the attributes in braces, %s for the change forward and backward in "
		"percent and p"),
	{0},
};

static const struct field server_fields[] = {
	OPTION_STRING(struct postgres_server, hostname, NULL,
		"the server's name or address, or the folder of its socket; by default "
		"$POSTGRES_HOSTNAME, else $PGHOST, else the local socket",
		.alias = "host", .variable = "POSTGRES_HOSTNAME"),
	OPTION_INT(struct postgres_server, port, NULL, 0, 65535,
		"by default $POSTGRES_PORT, else $PGPORT, else 5432", .variable = "POSTGRES_PORT"),
	OPTION_STRING(struct postgres_server, username, NULL,
		"default: $POSTGRES_USERNAME, else $PGUSER, else the current user", .alias = "user",
		.variable = "POSTGRES_USERNAME"),
	OPTION_SECRET(struct postgres_server, password,
		"default: $POSTGRES_PASSWORD, else $PGPASSWORD, else ~/.pgpass",
		.variable = "POSTGRES_PASSWORD", .flags = FIELD_EMPTY),
	OPTION_STRING(struct postgres_server, password_file, NULL,
		"file with the password, read at each use"),
	OPTION_STRING(struct postgres_server, database, NULL,
		"by default $POSTGRES_DATABASE, else $PGDATABASE, else the user's name",
		.alias = "dbname", .variable = "POSTGRES_DATABASE"),
	OPTION_CHOICE(struct postgres_server, sslmode, "default", postgres_ssl_modes,
		"TLS mode; default: verify-full with sslrootcert, else $PGSSLMODE, else prefer"),
	OPTION_STRING(struct postgres_server, sslrootcert, NULL,
		"CA certificates to verify the server's certificate"),
	OPTION_STRING(struct postgres_server, sslcert, NULL, "client certificate"),
	OPTION_STRING(struct postgres_server, sslkey, NULL, "client key"),
	OPTION_DURATION(
		struct postgres_server, connect_timeout, "10s", 1, 3600e3, "connection timeout"),
	OPTION_DURATION(struct postgres_server, timeout, "60s", 1, 3600e3,
		"total timeout of connection, query and response"),
	OPTION_DURATION(struct postgres_server, statement_timeout, NULL, 0, 3600e3,
		"statement timeout of the server; default: the rest of timeout"),
	OPTION_INT(struct postgres_server, max_rows, "1000000", 1, ROWS_MAX,
		"maximum number of rows a query may return for the selected range"),
	OPTION_BYTES(struct postgres_server, max_body, "500MB", 1024, 1e12,
		"maximum total size of the values a query returns"),
	{0},
};

static bool bind(struct query *query, struct bound *bound, struct error *error)
{
	const struct postgres_options *options = query->options;
	const char *branch = query->branch ? query->branch : options->base_branch;
	bool wanted = bind_wants_branch(options->query);
	if (wanted && !branch)
		return error_set(error, ERROR_USAGE,
			"the query has %%{BRANCH}: choose one with --branch, or set base_branch in "
			"the test");
	if (!wanted && query->branch)
		query_notice(query, "--branch has no effect: the query has no %%{BRANCH}");
	return bind_query(query->arena, options->query, branch, bound, error);
}

static bool read_results(struct session *session, struct postgres_rows *rows, struct error *error)
{
	PGresult *result;
	enum session_step step;
	while ((step = session_next(session, &result, error)) == SESSION_RESULT) {
		bool taken = postgres_rows_take(rows, result, error);
		PQclear(result);
		if (!taken)
			return false;
	}
	return step == SESSION_DONE;
}

static bool postgres_read(struct query *query, struct error *error)
{
	const struct postgres_server *server = query->server;
	struct session session;
	struct bound bound;
	if (!bind(query, &bound, error))
		return false;
	bool good = session_open(&session, query, SESSION_READ, error) &&
		    session_send(&session, &bound, error);
	struct postgres_rows rows = {.query = query,
		.place = session.place,
		.max_rows = server->max_rows,
		.max_body = server->max_body};
	good = good && read_results(&session, &rows, error);
	session_close(&session);
	if (good)
		postgres_rows_finish(&rows);
	rows_free(&rows.table.rows);
	return good;
}

const char *postgres_library(char out[POSTGRES_LIBRARY_TEXT])
{
	int version = PQlibVersion();
	snprintf(out, POSTGRES_LIBRARY_TEXT, "%d.%d", version / 10000, version % 10000);
	return out;
}

static int64_t postgres_timeout(const struct query *query)
{
	const struct postgres_server *server = query->server;

	return server->timeout;
}

const struct source postgres_source = {
	.plugin = {.name = "postgres",
		.summary = "PostgreSQL: a query with a row for each run",
		.fields = postgres_fields,
		.options_size = sizeof(struct postgres_options),
		.server_fields = server_fields,
		.server_size = sizeof(struct postgres_server)},
	.read = postgres_read,
	.timeout = postgres_timeout,
};
