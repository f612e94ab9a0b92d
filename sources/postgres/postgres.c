/*
 * A test's query is asked once a run, in a transaction that can only read, and its rows are read
 * one by one, so that a large result is not held twice. Everything that may wait does so in the
 * session, within its deadlines; a new connection is made for each question, which a server hours
 * apart from the next one does not mind.
 */
#include "sources/postgres/postgres.h"

#include <stdio.h>

#include "sources/postgres/bind.h"
#include "sources/postgres/rows.h"
#include "sources/postgres/session.h"

#define OPTION(member) offsetof(struct postgres_options, member)
#define SERVER(member) offsetof(struct postgres_server, member)

/* libpq's, behind what stands for "not given". */
const char *const postgres_ssl_modes[] = {
	"default", "disable", "allow", "prefer", "require", "verify-ca", "verify-full", NULL};

static const struct field postgres_fields[] = {
	{.name = "query",
		.type = FIELD_STRING,
		.offset = OPTION(query),
		.flags = FIELD_REQUIRED,
		.metavar = "SQL",
		.help = "a SELECT whose rows are points; %{BRANCH} in it is the branch asked for, "
			"as a bound parameter"},
	{.name = "time_column",
		.type = FIELD_STRING,
		.offset = OPTION(time_column),
		.initial = "time",
		.metavar = "COLUMN",
		.help = "the column of time stamps: timestamp (UTC if it has no zone), date, or "
			"epoch seconds, milliseconds"},
	{.name = "commit_column",
		.type = FIELD_STRING,
		.offset = OPTION(commit_column),
		.metavar = "COLUMN",
		.help = "the column that holds a point's commit, where it has another name than "
			"commit"},
	{.name = "version_column",
		.type = FIELD_STRING,
		.offset = OPTION(version_column),
		.metavar = "COLUMN",
		.help = "the same for its version"},
	{.name = "attributes",
		.type = FIELD_LIST,
		.offset = OPTION(attributes),
		.metavar = "COLUMNS",
		.help = "columns that are shown with a change: commit, version, machine ..."},
	{.name = "base_branch",
		.type = FIELD_STRING,
		.offset = OPTION(base_branch),
		.metavar = "NAME",
		.help = "the branch where none is asked for by --branch"},
	{.name = "update_statement",
		.type = FIELD_STRING,
		.offset = OPTION(update_statement),
		.metavar = "SQL",
		.help = "what analyze --update-postgres runs for each change: {metric}, the time "
			"column and the attributes in braces, %s for the change forward and "
			"backward in percent and p"},
	{0}};

static const struct field server_fields[] = {
	{.name = "hostname",
		.alias = "host",
		.type = FIELD_STRING,
		.offset = SERVER(hostname),
		.variable = "POSTGRES_HOSTNAME",
		.help = "the server's name or address, or the folder of its socket; by default "
			"$POSTGRES_HOSTNAME, else $PGHOST, else the local socket"},
	{.name = "port",
		.type = FIELD_INT,
		.offset = SERVER(port),
		.variable = "POSTGRES_PORT",
		.max = 65535,
		.help = "by default $POSTGRES_PORT, else $PGPORT, else 5432"},
	{.name = "username",
		.alias = "user",
		.type = FIELD_STRING,
		.offset = SERVER(username),
		.variable = "POSTGRES_USERNAME",
		.help = "by default $POSTGRES_USERNAME, else $PGUSER, else the user who runs the "
			"program"},
	{.name = "password",
		.type = FIELD_SECRET,
		.offset = SERVER(password),
		.variable = "POSTGRES_PASSWORD",
		.flags = FIELD_EMPTY,
		.help = "by default $POSTGRES_PASSWORD, else $PGPASSWORD, else that of ~/.pgpass"},
	{.name = "password_file",
		.type = FIELD_STRING,
		.offset = SERVER(password_file),
		.help = "file that holds the password, read at each use"},
	{.name = "database",
		.alias = "dbname",
		.type = FIELD_STRING,
		.offset = SERVER(database),
		.variable = "POSTGRES_DATABASE",
		.help = "by default $POSTGRES_DATABASE, else $PGDATABASE, else the user's name"},
	{.name = "sslmode",
		.type = FIELD_CHOICE,
		.offset = SERVER(sslmode),
		.initial = "default",
		.choices = postgres_ssl_modes,
		.help = "whether TLS is used and what is checked; by default verify-full with "
			"sslrootcert, else $PGSSLMODE, else prefer"},
	{.name = "sslrootcert",
		.type = FIELD_STRING,
		.offset = SERVER(sslrootcert),
		.metavar = "FILE",
		.help = "certificates of the authorities that may have signed the server's"},
	{.name = "sslcert",
		.type = FIELD_STRING,
		.offset = SERVER(sslcert),
		.metavar = "FILE",
		.help = "the client's certificate"},
	{.name = "sslkey",
		.type = FIELD_STRING,
		.offset = SERVER(sslkey),
		.metavar = "FILE",
		.help = "the client's key"},
	{.name = "connect_timeout",
		.type = FIELD_DURATION,
		.offset = SERVER(connect_timeout),
		.initial = "10s",
		.min = 1,
		.max = 3600e3,
		.help = "how long a connection may take"},
	{.name = "timeout",
		.type = FIELD_DURATION,
		.offset = SERVER(timeout),
		.initial = "60s",
		.min = 1,
		.max = 3600e3,
		.help = "how long connection, query and answer may take in all"},
	{.name = "statement_timeout",
		.type = FIELD_DURATION,
		.offset = SERVER(statement_timeout),
		.max = 3600e3,
		.help = "how long the server may work on a statement before it cancels it; by "
			"default what is left of timeout"},
	{.name = "max_rows",
		.type = FIELD_INT,
		.offset = SERVER(max_rows),
		.initial = "1000000",
		.min = 1,
		.max = ROWS_MAX,
		.help = "how many rows of the selected range a query may return"},
	{.name = "max_body",
		.type = FIELD_BYTES,
		.offset = SERVER(max_body),
		.initial = "500MB",
		.min = 1024,
		.max = 1e12,
		.help = "how large the values of all rows that a query returns may be together"},
	{0}};

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
	postgres_rows_free(&rows);
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
	.name = "postgres",
	.summary = "PostgreSQL: a query with a row for each run",
	.fields = postgres_fields,
	.options_size = sizeof(struct postgres_options),
	.server_fields = server_fields,
	.server_size = sizeof(struct postgres_server),
	.read = postgres_read,
	.timeout = postgres_timeout,
};
