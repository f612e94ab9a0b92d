/*
 * Each statement is a transaction of its own, as in fleet.c. A configuration counts once its row
 * is there, which is written after those of its tests. A list is written together with its
 * number, the shard's epoch, and read together with it.
 */
#include "agent/base/buf.h"
#include "agent/store/sql/rows.h"

enum { TESTS_AT_ONCE = 5000 };

static void write_tests(
	struct tx *tx, const struct store_configuration *call, size_t first, size_t count)
{
	struct buf list = {0};

	for (size_t i = first; i < first + count; i++) {
		buf_text(&list, i > first ? ",[" : "[[");
		buf_json_text(&list, call->tests[i].name);
		buf_printf(&list, ",%lld,%d]", (long long)call->tests[i].fingerprint,
			call->tests[i].shard);
	}
	buf_char(&list, ']');
	RUN(tx, STATEMENT_ADD_TESTS, v_id(call->configuration), v_text(list.data));
	buf_free(&list);
}

static void announce(struct tx *tx, const struct store_configuration *call)
{
	RUN(tx, STATEMENT_CLEAN_TESTS);
	RUN(tx, STATEMENT_CLEAN_CONFIGURATIONS);
	RUN(tx, STATEMENT_CLEAN_DELEGATED);
	if (query_ask(QUERY(tx, STATEMENT_ANNOUNCE_AGAIN, v_id(call->configuration))) != 0)
		return;
	for (size_t i = 0; i < call->test_count; i += TESTS_AT_ONCE) {
		size_t rest = call->test_count - i;

		write_tests(tx, call, i, rest < TESTS_AT_ONCE ? rest : TESTS_AT_ONCE);
	}
	RUN(tx, STATEMENT_ADD_CONFIGURATION, v_id(call->configuration));
}

static void read_configurations(struct tx *tx, struct store_configuration *call)
{
	struct sql_query query = QUERY(
		tx, STATEMENT_CONFIGURATIONS, v_id(call->call.holder), v_id(call->configuration));

	while (query_next(&query)) {
		struct announced_configuration *found =
			ADD_ROW(tx, call->configurations, call->configuration_count);

		found->configuration = read_integer(&query);
		found->announced = read_integer(&query);
	}
}

static void read_versions(struct tx *tx, struct store_configuration *call)
{
	struct sql_query query =
		QUERY(tx, STATEMENT_VERSIONS, v_id(call->call.holder), v_id(call->configuration));

	while (query_next(&query)) {
		struct announced_test *test = ADD_ROW(tx, call->versions, call->version_count);

		test->name = read_name(&query);
		test->configuration = read_integer(&query);
		test->fingerprint = read_integer(&query);
		test->shard = (int)read_integer(&query);
	}
}

static void read_duties(struct tx *tx, struct store_configuration *call)
{
	int64_t holder = call->call.holder;
	struct sql_query query = QUERY(tx, STATEMENT_DELEGATED, v_id(holder));
	struct delegation *last = NULL;
	const char **names = NULL;

	call->delegated = arena_array(tx->arena, STORE_SHARDS, sizeof *call->delegated);
	while (query_next(&query)) {
		int shard = (int)read_choice(&query, 0, STORE_SHARDS - 1);
		int64_t epoch = read_integer(&query);

		if (!last || last->shard != shard) {
			last = &call->delegated[call->delegated_count++];
			*last = (struct delegation){
				.shard = shard, .deputy = holder, .epoch = epoch};
			names = NULL;
		}
		*ADD_ROW(tx, names, last->tests.count) = read_name(&query);
		last->tests.items = names;
	}
}

static void configurations_perform(struct tx *tx, void *context)
{
	struct store_configuration *call = context;

	if (call->announce)
		announce(tx, call);
	for (size_t i = 0; i < call->delegate_count; i++) {
		const struct delegation *list = &call->delegate[i];

		RUN(tx, STATEMENT_DELEGATE, v_id(call->call.holder), v_id(list->shard),
			v_id(list->deputy), v_text(rows_names(tx, &list->tests)));
	}
	read_configurations(tx, call);
	read_versions(tx, call);
	read_duties(tx, call);
}

STORE_DEFINE(configuration, .run = configurations_perform, .lane = STORE_FLEET, .writes = true);
