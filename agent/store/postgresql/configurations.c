/*
 * Each statement is a transaction of its own, as in fleet.c. A configuration counts once its row
 * is there, which is written after those of its tests. Who has a test leave its shard writes that
 * shard's row anew: the next holder finds the test in `singles`, or this one finds that it holds
 * the shard no more; and a write about the test that is under way comes before, or is repeated and
 * refused (see STATEMENT_HOLD).
 */
#include "agent/base/buf.h"
#include "agent/store/sql/read.h"

enum { TESTS_AT_ONCE = 5000 };

static void write_tests(
	struct tx *tx, const struct store_configuration *call, size_t first, size_t count)
{
	struct buf list = {0};

	for (size_t i = first; i < first + count; i++) {
		buf_text(&list, i > first ? ",[" : "[[");
		buf_json_text(&list, call->tests[i].name);
		buf_printf(&list, ",%lld]", (long long)call->tests[i].fingerprint);
	}
	buf_char(&list, ']');
	RUN(tx, STATEMENT_ADD_TESTS, v_id(call->configuration), v_text(list.data));
	buf_free(&list);
}

static void announce(struct tx *tx, const struct store_configuration *call)
{
	RUN(tx, STATEMENT_CLEAN_TESTS);
	RUN(tx, STATEMENT_CLEAN_CONFIGURATIONS);
	if (query_ask(QUERY(tx, STATEMENT_ANNOUNCE_AGAIN, v_id(call->configuration))) != 0)
		return;
	for (size_t i = 0; i < call->test_count; i += TESTS_AT_ONCE) {
		size_t rest = call->test_count - i;

		write_tests(tx, call, i, rest < TESTS_AT_ONCE ? rest : TESTS_AT_ONCE);
	}
	RUN(tx, STATEMENT_ADD_CONFIGURATION, v_id(call->configuration));
}

static void read_singles(struct tx *tx, struct store_configuration *call)
{
	struct sql_query query = QUERY(tx, STATEMENT_SINGLES);

	while (query_next(&query)) {
		struct single *single = ADD_ROW(tx, call->singles, call->single_count);

		single->test = read_name(&query);
		single->holder = read_integer(&query);
		single->term = read_integer(&query);
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
		test->decides = read_flag(&query);
	}
}

static void leave_shards(struct tx *tx, const struct store_configuration *call)
{
	struct buf list = {0};

	for (size_t i = 0; i < call->leave.count; i++) {
		buf_text(&list, i > 0 ? ",[" : "[[");
		buf_json_text(&list, call->leave.items[i]);
		buf_printf(&list, ",%d]", call->leave_shards[i]);
	}
	buf_char(&list, ']');
	if (call->leave.count > 0)
		RUN(tx, STATEMENT_LEAVE_SHARDS, v_id(call->call.holder), v_text(list.data));
	buf_free(&list);
}

static void move(struct tx *tx, const struct store_configuration *call, enum statement statement,
	const struct strings *tests)
{
	if (tests->count > 0)
		RUN(tx, statement, v_id(call->call.holder), v_text(rows_names(tx, tests)));
}

static void configurations_perform(struct tx *tx, void *context)
{
	struct store_configuration *call = context;

	if (call->announce)
		announce(tx, call);
	leave_shards(tx, call);
	move(tx, call, STATEMENT_CLAIM_TESTS, &call->claim);
	move(tx, call, STATEMENT_RELEASE_TESTS, &call->release);
	move(tx, call, STATEMENT_JOIN_SHARDS, &call->join);
	read_singles(tx, call);
	read_versions(tx, call);
	if (call->gains)
		store_load_health(tx, &call->health);
}

STORE_DEFINE(configuration, .run = configurations_perform, .lane = STORE_FLEET, .writes = true);
