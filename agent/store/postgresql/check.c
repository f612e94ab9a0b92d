#include "agent/store/sql/check.h"

#include <inttypes.h>

#include "agent/store/postgresql/file.h"
#include "agent/store/sql/rows.h"

static void check_shards(struct check *check, struct tx *tx)
{
	int64_t count = query_ask(
		sql_query_of(tx, "SELECT count(*) FROM shards WHERE shard BETWEEN 0 AND 255"));

	if (count != STORE_SHARDS && !tx->failed)
		check_found(check, "found %" PRId64 " of %d shards", count, STORE_SHARDS);
}

bool postgresql_check(
	const char *address, struct arena *arena, struct store_report *report, struct error *error)
{
	struct check check = {arena, report, NULL};
	struct tx *tx = postgresql_open_as_it_is(address, error);
	struct connection *connection;
	bool done;

	*report = (struct store_report){0};
	if (!tx)
		return false;
	connection = postgresql_connection(tx);
	connection_patience(connection, CONNECTION_PATIENCE_LONG);
	tx->error = error;
	tx->failed = !connection_begin(connection, false) && !connection_fail(connection, error);
	check_content(&check, tx);
	check_shards(&check, tx);
	done = !tx->failed &&
	       postgresql_ask_number(
		       tx, "SELECT pg_database_size(current_database())", &report->size, error) &&
	       (connection_commit(connection) || connection_fail(connection, error));
	postgresql_close(tx);
	return done;
}
