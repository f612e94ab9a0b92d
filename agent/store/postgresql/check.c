/*
 * What the constraints of the tables do not say already.
 */
#include "agent/store/postgresql/file.h"
#include "agent/store/postgresql/statements.h"

enum { PROBLEMS_MOST = 100 };

struct check {
	struct tx *tx;
	struct arena *arena;
	struct store_report *report;
	const char **problems;
};

static void found(struct check *check, const char *problem)
{
	struct strings *problems = &check->report->problems;

	if (problems->count >= PROBLEMS_MOST)
		return;
	check->problems =
		arena_grow(check->arena, check->problems, problems->count, sizeof *check->problems);
	check->problems[problems->count++] = problem;
	problems->items = check->problems;
}

static bool check_sequences(struct check *check, struct error *error)
{
	for (size_t i = 0; i < SCHEMA_SEQUENCES; i++) {
		const char *table = schema_sequences[i];
		int64_t bad = 0;

		if (!postgresql_ask_number(check->tx,
			    arena_printf(check->arena,
				    "SELECT count(*) FROM %s_id_seq WHERE last_value <"
				    " (SELECT coalesce(max(id), 0) FROM %s)",
				    table, table),
			    &bad, error))
			return false;
		if (bad != 0)
			found(check, arena_printf(check->arena,
					     "table %s: the next id is already in use", table));
	}
	return true;
}

/* In steps, so that a large state need not be in memory at once. */
static bool check_excerpts(struct check *check, struct error *error)
{
	int64_t last = 0;

	for (int rows = 1; rows > 0;) {
		struct parameters parameters = {0};
		PGresult *result;

		parameter_integer(&parameters, last);
		result = connection_ask(postgresql_connection(check->tx),
			"SELECT change, points FROM excerpts WHERE change > $1 ORDER BY change"
			" LIMIT 1000",
			&parameters, error);
		if (!result)
			return false;
		rows = PQntuples(result);
		for (int row = 0; row < rows; row++) {
			struct packed_excerpt packed = {(const void *)PQgetvalue(result, row, 1),
				(size_t)PQgetlength(result, row, 1)};
			struct arena *scratch = arena_new();
			struct excerpt excerpt;

			last = cell_integer(result, row, 0);
			if (!excerpt_unpack(scratch, packed, &excerpt))
				found(check, arena_printf(check->arena,
						     "cannot decode the points around change %lld",
						     (long long)last));
			arena_free(scratch);
		}
		PQclear(result);
	}
	return true;
}

static bool check_shards(struct check *check, struct error *error)
{
	int64_t count = 0;

	if (!postgresql_ask_number(check->tx,
		    "SELECT count(*) FROM shards WHERE shard BETWEEN 0 AND 255", &count, error))
		return false;
	if (count != 256)
		found(check,
			arena_printf(check->arena, "found %lld of 256 shards", (long long)count));
	return true;
}

static bool check_all(struct check *check, struct error *error)
{
	struct store_report *report = check->report;

	return postgresql_ask_number(
		       check->tx, "SELECT count(*) FROM changes", &report->changes, error) &&
	       postgresql_ask_number(
		       check->tx, "SELECT count(*) FROM deliveries", &report->deliveries, error) &&
	       postgresql_ask_number(check->tx, "SELECT count(*) FROM deliveries WHERE state = 1",
		       &report->queued, error) &&
	       postgresql_ask_number(
		       check->tx, "SELECT count(*) FROM series", &report->series, error) &&
	       postgresql_ask_number(check->tx, "SELECT pg_database_size(current_database())",
		       &report->size, error) &&
	       check_sequences(check, error) && check_shards(check, error) &&
	       check_excerpts(check, error);
}

bool postgresql_check(
	const char *address, struct arena *arena, struct store_report *report, struct error *error)
{
	struct check check = {postgresql_open_as_it_is(address, error), arena, report, NULL};
	struct connection *connection;
	bool done;

	*report = (struct store_report){0};
	if (!check.tx)
		return false;
	connection = postgresql_connection(check.tx);
	connection_patience(connection, CONNECTION_PATIENCE_LONG);
	done = connection_begin(connection, false, error) && check_all(&check, error) &&
	       connection_commit(connection, error);
	postgresql_close(check.tx);
	return done;
}
