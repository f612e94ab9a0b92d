/*
 * Each statement is a transaction of its own, as in fleet.c. A configuration counts once its row is
 * there, which is written after those of its tests. Who has a test leave its shard writes that
 * shard's row anew: the next holder finds the test in `singles`, or this one finds that it holds
 * the shard no more; and a write about the test that is in progress comes before, or is repeated
 * and refused (see fleet_lock).
 */
#include "agent/base/buf.h"
#include "agent/store/postgresql/fleet.h"
#include "agent/store/sql/read.h"

#define NAMED " test IN (SELECT value FROM @texts{?2})"

/* Of configurations that no agent has had for a day. */
#define OLD                                                                                        \
	" WHERE configuration IN (SELECT configuration FROM configurations, moment"                \
	" WHERE announced < now - 86400000 AND configuration NOT IN"                               \
	" (SELECT configuration FROM agents WHERE gone = 0))"

/* Configurations of live agents. This agent's row may still have its previous content. */
#define LIVE                                                                                       \
	" live AS (SELECT configuration, announced, votes FROM configurations JOIN"                \
	" (SELECT configuration, count(*) AS votes FROM (SELECT CAST(?2 AS BIGINT)"                \
	" AS configuration UNION ALL SELECT configuration FROM agents"                             \
	" WHERE gone = 0 AND instance != ?1) AS each GROUP BY configuration) AS votes"             \
	" USING (configuration))"

enum { TESTS_AT_ONCE = 5000 };

static void announce(struct tx *tx, const struct store_configuration *call)
{
	RUN(tx, "WITH" MOMENT " DELETE FROM fingerprints" OLD);
	RUN(tx, "WITH" MOMENT " DELETE FROM configurations" OLD);
	if (query_ask(QUERY(tx,
		    "WITH" MOMENT " UPDATE configurations SET announced = now FROM moment WHERE"
		    " configuration = ?1 RETURNING 1",
		    v_int(call->configuration))) != 0)
		return;
	for (size_t i = 0; i < call->test_count;) {
		struct buf list = {0};

		do {
			buf_text(&list, list.length > 0 ? ",[" : "[[");
			buf_json_text(&list, call->tests[i].name);
			buf_printf(&list, ",%lld]", (long long)call->tests[i].fingerprint);
		} while (++i < call->test_count && i % TESTS_AT_ONCE != 0);
		buf_char(&list, ']');
		RUN(tx,
			"INSERT INTO fingerprints (configuration, test, fingerprint) SELECT ?1,"
			" value ->> 0, CAST(value ->> 1 AS BIGINT) FROM @pairs{?2,listed} ON"
			" CONFLICT (configuration, test) DO NOTHING",
			v_int(call->configuration), v_text(list.data));
		buf_free(&list);
	}
	RUN(tx,
		"WITH" MOMENT
		" INSERT INTO configurations (configuration, announced) SELECT ?1, now FROM"
		" moment ON CONFLICT (configuration) DO UPDATE SET announced = excluded.announced",
		v_int(call->configuration));
}

static void read_singles(struct tx *tx, struct store_configuration *call)
{
	struct sql_query query = QUERY(tx,
		"SELECT test, CAST(coalesce((SELECT instance FROM agents WHERE instance = holder"
		" AND gone = 0), 0) AS BIGINT), term FROM singles ORDER BY test");

	while (query_next(&query)) {
		struct single *single = ADD_ROW(tx, call->singles, call->single_count);

		single->test = read_name(&query);
		single->holder = read_integer(&query);
		single->term = read_integer(&query);
	}
}

static void read_versions(struct tx *tx, struct store_configuration *call)
{
	struct sql_query query = QUERY(tx,
		/* Agents without a test have no vote about it. */
		"WITH" LIVE ", differing AS (SELECT test FROM fingerprints JOIN live USING"
		" (configuration) WHERE (SELECT count(*) FROM live) > 1 GROUP BY test HAVING"
		" count(*) != (SELECT count(*) FROM live) OR min(fingerprint) !="
		" max(fingerprint)), decided AS (SELECT DISTINCT ON (test) test, fingerprint FROM"
		" differing JOIN fingerprints USING (test) JOIN live USING (configuration) GROUP"
		" BY test, fingerprint ORDER BY test, sum(votes) DESC, max(announced) DESC,"
		" fingerprint DESC) SELECT test, configuration, CASE WHEN"
		" fingerprints.fingerprint = decided.fingerprint THEN 1 ELSE 0 END FROM decided"
		" JOIN fingerprints USING (test) JOIN live USING (configuration) ORDER BY test,"
		" configuration",
		v_int(call->call.holder), v_int(call->configuration));

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
		RUN(tx,
			"WITH" MOMENT
			", listed AS (SELECT value ->> 0 AS test, CAST(value ->> 1 AS BIGINT) AS"
			" at FROM @pairs{?2,listed}), held AS (UPDATE shards SET holder = holder"
			" WHERE holder = ?1 AND shard IN (SELECT at FROM listed) RETURNING shard)"
			" INSERT INTO singles (test, holder, term) SELECT test, 0, now FROM"
			" listed JOIN held ON shard = at, moment ORDER BY 1 ON CONFLICT (test) DO"
			" NOTHING",
			v_int(call->call.holder), v_text(list.data));
	buf_free(&list);
}

static void move(struct tx *tx, const struct store_configuration *call, const char *statement,
	const struct strings *tests)
{
	if (tests->count > 0)
		RUN(tx, statement, v_int(call->call.holder), v_names(tx, tests));
}

STORE_DEFINE(configuration, .lane = STORE_FLEET, .writes = true)
{
	if (call->announce)
		announce(tx, call);
	leave_shards(tx, call);
	move(tx, call,
		"WITH" MOMENT ", free AS (SELECT test FROM singles WHERE" NAMED " AND" FREE
		" AND " AGENT_LIVES
		" FOR UPDATE OF singles SKIP LOCKED) UPDATE singles SET holder = ?1, term ="
		" greatest(term + 1, now) FROM free, moment WHERE singles.test = free.test",
		&call->claim);
	move(tx, call,
		"WITH" MOMENT " UPDATE singles SET holder = 0, term = greatest(term + 1, now)"
		" FROM moment WHERE holder = ?1 AND" NAMED,
		&call->release);
	move(tx, call,
		"DELETE FROM singles WHERE test IN (SELECT test FROM singles WHERE" NAMED
		" AND (holder = ?1 OR" FREE ") AND " AGENT_LIVES " FOR UPDATE SKIP LOCKED)",
		&call->join);
	read_singles(tx, call);
	read_versions(tx, call);
	if (call->gains)
		store_load_health(tx, &call->health);
}
