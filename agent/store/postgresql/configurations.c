/*
 * Each statement is a transaction of its own, as in fleet.c. A configuration counts once its row
 * is there, which is written after those of its tests. A list is written together with its
 * number, the shard's epoch, and read together with it.
 */
#include "agent/store/postgresql/file.h"

#include "agent/base/buf.h"

enum { TESTS_AT_ONCE = 5000 };

#define MOMENT                                                                                     \
	" moment AS (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now)"

static const char renew[] = "WITH" MOMENT " UPDATE configurations SET announced = now FROM moment"
			    " WHERE configuration = $1 RETURNING 1";

static const char add_tests[] =
	"INSERT INTO fingerprints (configuration, test, fingerprint, shard)"
	" SELECT $1, value ->> 0, CAST(value ->> 1 AS BIGINT), CAST(value ->> 2 AS BIGINT)"
	" FROM json_array_elements(CAST($2 AS JSON)) AS listed (value)"
	" ON CONFLICT (configuration, test) DO NOTHING";

static const char add[] = "WITH" MOMENT " INSERT INTO configurations (configuration, announced)"
			  " SELECT $1, now FROM moment ON CONFLICT (configuration)"
			  " DO UPDATE SET announced = excluded.announced";

/* Of configurations that no agent has had for a day. */
#define OLD                                                                                        \
	" WHERE configuration IN (SELECT configuration FROM configurations, moment"                \
	" WHERE announced < now - 86400000 AND configuration NOT IN"                               \
	" (SELECT configuration FROM agents WHERE gone = 0))"
static const char *const clean[] = {
	"WITH" MOMENT " DELETE FROM fingerprints" OLD,
	"WITH" MOMENT " DELETE FROM configurations" OLD,
	("DELETE FROM delegated WHERE NOT EXISTS (SELECT 1 FROM shards"
	 " WHERE shards.shard = delegated.shard AND shards.epoch = delegated.epoch)"),
};

static const char delegate[] =
	"WITH moved AS (UPDATE shards SET deputy = $3, epoch = greatest(term, epoch) + 1"
	" WHERE shard = $2 AND holder = $1 RETURNING shard, epoch),"
	" gone AS (DELETE FROM delegated WHERE shard IN (SELECT shard FROM moved))"
	" INSERT INTO delegated (shard, epoch, test) SELECT shard, epoch, value"
	" FROM moved, json_array_elements_text(CAST($4 AS JSON)) AS listed (value)";

/* Those of agents that live, for which this agent's row may still have what it had before. */
#define LIVE                                                                                       \
	" live AS (SELECT configuration, announced FROM configurations WHERE configuration = $2"   \
	" OR configuration IN (SELECT configuration FROM agents WHERE gone = 0"                    \
	" AND instance != $1))"

static const char read_configurations[] =
	"WITH" LIVE " SELECT configuration, announced FROM live ORDER BY configuration";

static const char read_versions[] =
	"WITH" LIVE ", apart AS (SELECT test FROM fingerprints JOIN live USING (configuration)"
	" GROUP BY test HAVING count(*) != (SELECT count(*) FROM live)"
	" OR min(fingerprint) != max(fingerprint) OR min(shard) != max(shard))"
	" SELECT test, configuration, fingerprint, shard FROM fingerprints"
	" JOIN live USING (configuration) JOIN apart USING (test)"
	" WHERE (SELECT count(*) FROM live) > 1 ORDER BY test, configuration";

static const char read_delegated[] =
	"SELECT shards.shard, shards.epoch, test FROM shards JOIN delegated"
	" ON delegated.shard = shards.shard AND delegated.epoch = shards.epoch"
	" WHERE deputy = $1 ORDER BY shards.shard, test";

static bool write_tests(struct connection *connection, const struct store_configuration *call,
	size_t first, size_t count, struct error *error)
{
	struct parameters parameters = {0};
	struct buf list = {0};
	bool done;

	for (size_t i = first; i < first + count; i++) {
		buf_text(&list, i > first ? ",[" : "[[");
		buf_json_text(&list, call->tests[i].name);
		buf_printf(&list, ",%lld,%d]", (long long)call->tests[i].fingerprint,
			call->tests[i].shard);
	}
	buf_char(&list, ']');
	parameter_integer(&parameters, call->configuration);
	parameter_text(&parameters, list.data);
	done = connection_run_again(connection, add_tests, &parameters, error);
	buf_free(&list);
	return done;
}

static bool announce(
	struct connection *connection, const struct store_configuration *call, struct error *error)
{
	struct parameters parameters = {0};
	PGresult *result;
	bool known;

	for (size_t i = 0; i < sizeof clean / sizeof clean[0]; i++)
		if (!connection_run_again(connection, clean[i], NULL, error))
			return false;
	parameter_integer(&parameters, call->configuration);
	result = connection_ask_again(connection, renew, &parameters, error);
	known = result && PQntuples(result) > 0;
	PQclear(result);
	if (!result || known)
		return result != NULL;
	for (size_t i = 0; i < call->test_count; i += TESTS_AT_ONCE) {
		size_t rest = call->test_count - i;

		if (!write_tests(connection, call, i, rest < TESTS_AT_ONCE ? rest : TESTS_AT_ONCE,
			    error))
			return false;
	}
	return connection_run_again(connection, add, &parameters, error);
}

static bool write_list(struct connection *connection, const struct store_configuration *call,
	const struct delegation *delegation, struct error *error)
{
	struct parameters parameters = {0};
	struct buf list = {0};
	bool done;

	buf_char(&list, '[');
	for (size_t i = 0; i < delegation->tests.count; i++) {
		buf_text(&list, i > 0 ? "," : "");
		buf_json_text(&list, delegation->tests.items[i]);
	}
	buf_char(&list, ']');
	parameter_integer(&parameters, call->call.holder);
	parameter_integer(&parameters, delegation->shard);
	parameter_integer(&parameters, delegation->deputy);
	parameter_text(&parameters, list.data);
	done = connection_run_again(connection, delegate, &parameters, error);
	buf_free(&list);
	return done;
}

static bool read_all(
	struct connection *connection, struct store_configuration *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct parameters parameters = {0};
	PGresult *result;

	parameter_integer(&parameters, call->call.holder);
	parameter_integer(&parameters, call->configuration);
	result = connection_ask_again(connection, read_configurations, &parameters, error);
	if (!result)
		return false;
	call->configuration_count = (size_t)PQntuples(result);
	call->configurations =
		arena_array(arena, call->configuration_count, sizeof *call->configurations);
	for (int i = 0; i < PQntuples(result); i++)
		call->configurations[i] = (struct announced_configuration){
			cell_integer(result, i, 0), cell_integer(result, i, 1)};
	PQclear(result);
	result = connection_ask_again(connection, read_versions, &parameters, error);
	if (!result)
		return false;
	call->version_count = (size_t)PQntuples(result);
	call->versions = arena_array(arena, call->version_count, sizeof *call->versions);
	for (int i = 0; i < PQntuples(result); i++)
		call->versions[i] = (struct announced_test){
			.name = arena_strdup(arena, cell_text(result, i, 0)),
			.configuration = cell_integer(result, i, 1),
			.fingerprint = cell_integer(result, i, 2),
			.shard = (int)cell_integer(result, i, 3)};
	PQclear(result);
	return true;
}

static bool read_duties(
	struct connection *connection, struct store_configuration *call, struct error *error)
{
	struct arena *arena = call->call.arena;
	struct parameters parameters = {0};
	struct delegation *last = NULL;
	const char **names;
	PGresult *result;

	parameter_integer(&parameters, call->call.holder);
	result = connection_ask_again(connection, read_delegated, &parameters, error);
	if (!result)
		return false;
	names = arena_array(arena, (size_t)PQntuples(result), sizeof *names);
	call->delegated = arena_array(arena, STORE_SHARDS, sizeof *call->delegated);
	call->delegated_count = 0;
	for (int i = 0; i < PQntuples(result); i++) {
		int shard = (int)cell_integer(result, i, 0);

		if (!last || last->shard != shard) {
			last = &call->delegated[call->delegated_count++];
			*last = (struct delegation){.shard = shard,
				.deputy = call->call.holder,
				.epoch = cell_integer(result, i, 1),
				.tests.items = names + i};
		}
		names[i] = arena_strdup(arena, cell_text(result, i, 2));
		last->tests.count++;
	}
	PQclear(result);
	return true;
}

static bool configurations_perform(struct store_file *file, void *context, struct error *error)
{
	struct store_configuration *call = context;
	struct connection *connection = postgresql_connection(file);

	if (call->announce && !announce(connection, call, error))
		return false;
	for (size_t i = 0; i < call->delegate_count; i++)
		if (!write_list(connection, call, &call->delegate[i], error))
			return false;
	return read_all(connection, call, error) && read_duties(connection, call, error);
}

const struct store_work store_configuration_work = {
	.run = configurations_perform, .lane = STORE_FLEET, .writes = true};
