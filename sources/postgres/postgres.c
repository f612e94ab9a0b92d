/*
 * Each run of a test executes its query once, in a read-only transaction. Rows are fetched one by
 * one, so that a large result is not held twice. The session does everything that may wait, within
 * its deadlines. Each query makes a connection of its own, since queries are far apart.
 */
#include "sources/postgres/postgres.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/when.h"
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

/*
 * `--update-postgres`: writes changes into the tables they were read from, as Otava does. The
 * statement runs once per change, with the attributes of the first point of the new level.
 */
/* The columns that are attributes, and their names. */
static struct pairs attributes_of(struct arena *arena, const struct postgres_options *options)
{
	return attribute_names(
		arena, options->commit_column, options->version_column, options->attributes);
}

bool postgres_update_check(struct arena *arena, const struct postgres_options *options,
	const struct metric *metrics, size_t metric_count, struct error *error)
{
	struct pairs names = attributes_of(arena, options);
	struct pair *pairs = arena_array(arena, 2 * names.count + 1, sizeof *pairs);
	size_t count = 0;
	struct bound bound;
	if (!options->update_statement || !*options->update_statement)
		return error_set(error, ERROR_USAGE, "\"update_statement\" is missing");
	for (size_t i = 0; i < names.count; i++) {
		pairs[count++] = (struct pair){names.items[i].value, "x"};
		pairs[count++] = (struct pair){names.items[i].key, "x"};
	}
	pairs[count++] = (struct pair){options->time_column, "x"};
	for (size_t i = 0; i < metric_count || i == 0; i++) {
		struct bind_values values = {
			.metric = metric_count ? metrics[i].name : "x", .named = {pairs, count}};
		if (!bind_update(arena, options->update_statement, &values, &bound, error)) {
			error->kind = ERROR_USAGE;
			return false;
		}
	}
	return true;
}

/* The time as the server wrote it. dataset_keep cuts axes by advancing their pointers. */
static const char *stamp(const struct query *query, const struct axis *axis, size_t index)
{
	const struct postgres_stamps *stamps = query->state;
	char text[WHEN_TEXT];
	if (stamps)
		return stamps->texts[(axis->times - stamps->times) + (ptrdiff_t)index];
	return arena_strdup(query->arena, when_format_iso(axis->times[index], text));
}

static bool bind_change(const struct query *query, const struct postgres_change *at,
	struct bound *bound, struct error *error)
{
	const struct postgres_options *options = query->options;
	const struct axis *axis = at->series->axis;
	const struct change *change = at->change;
	size_t index = change->index, count = 0;
	/* How much the old level differs from the new, in percent of the new. */
	double backward = change->mean_after == 0
				  ? 0
				  : 100.0 * (change->mean_before / change->mean_after - 1.0);
	struct pairs names = attributes_of(query->arena, options);
	struct pair *pairs = arena_array(query->arena, 2 * names.count + 1, sizeof *pairs);
	for (size_t i = 0; i < names.count; i++) {
		const struct column *column = axis_column(axis, names.items[i].value);
		if (!column)
			continue;
		pairs[count++] = (struct pair){column->name, column->values[index]};
		pairs[count++] = (struct pair){names.items[i].key, column->values[index]};
	}
	pairs[count++] = (struct pair){options->time_column, stamp(query, axis, index)};
	struct bind_values values = {.metric = at->series->name,
		.named = {pairs, count},
		.numbers = {change_percent(change), backward, change->pvalue}};
	return bind_update(query->arena, options->update_statement, &values, bound, error);
}

static bool update_all(struct session *session, const struct postgres_change *changes, size_t count,
	size_t *rows, struct error *error)
{
	struct query *query = session->query;
	for (size_t i = 0; i < count; i++) {
		const struct series *series = changes[i].series;
		char text[WHEN_TEXT];
		struct bound bound;
		size_t written = 0;
		when_format(series->axis->times[changes[i].change->index], text);
		if (!bind_change(query, &changes[i], &bound, error) ||
			!session_run(session, &bound, &written, error))
			return error_prefix(
				error, "update_statement for %s at %s: ", series->name, text);
		if (written == 0)
			query_notice(query, "update_statement wrote no row for %s at %s",
				series->name, text);
		*rows += written;
	}
	return session_commit(session, error);
}

bool postgres_update(struct query *query, const struct postgres_change *changes, size_t count,
	size_t *rows, struct error *error)
{
	struct session session;
	*rows = 0;
	if (count == 0)
		return true;
	bool good = session_open(&session, query, SESSION_WRITE, error) &&
		    update_all(&session, changes, count, rows, error);
	session_close(&session);
	return good;
}
