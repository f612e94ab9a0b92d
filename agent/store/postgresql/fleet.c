/*
 * Each statement here is a transaction of its own, READ COMMITTED. The reasons why that suffices
 * follow.
 *
 * An agent's lease is its row in `agents`; it is over when `gone` is set, which is never undone.
 * A renewal and a reaper meet at that row: whoever comes second sees what the first has written, a
 * renewal that the agent is gone, a reaper that the lease has not ended. So a lease that is not
 * renewed in time is not over as long as nobody needs its shards.
 *
 * A shard is free if it has no holder or if its holder is gone. Only that is evidence: an agent
 * that a statement does not see may have joined after it began. Two takers of one shard meet at
 * its row: the second passes over it while it is locked, and sees the new holder later. So they
 * pass over a shard about which an agent that is gone has a transaction open, too; the server ends
 * that when it is idle for a while.
 *
 * A writer reads the shard's row FOR SHARE. A taker waits for it, or it for the taker, and then its
 * serializable transaction fails and, repeated, sees the new holder.
 *
 * The same goes for a test that is singly leased. Its row comes and goes, so its terms are times.
 * As long as it is there, a write about the test with its shard's term is refused, too.
 *
 * Ids are not in the order in which transactions are committed, so what is new is not what has
 * larger ids; sums tell that there is something.
 */
#include "agent/store/postgresql/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/store/sql/rows.h"

enum { LATEST = 200 };

enum { ROW_NUMBERS, ROW_AGENT, ROW_SHARD };

/* Requests for runs that the agent makes. */
#define ASKED                                                                                      \
	" FROM requests JOIN shards ON requests.shard = shards.shard"                              \
	" LEFT JOIN singles ON singles.test = requests.test"                                       \
	" WHERE coalesce(singles.holder, shards.holder) = ?1"

static void give_back(struct tx *tx, const struct store_turn *turn)
{
	struct owners shards = {0};

	for (int i = 0; i < STORE_SHARDS; i++)
		if (turn->release[i])
			owners_add(&shards, tx, i, 0);
	if (shards.count > 0)
		RUN(tx, "UPDATE shards SET holder = 0 WHERE holder = ?1 AND shard IN @ids{?2}",
			v_int(turn->self.instance), v_owners(tx, &shards));
}

static void end_leases(struct tx *tx, struct store_turn *turn)
{
	struct sql_query query = QUERY(tx,
		"WITH" MOMENT
		" UPDATE agents SET gone = now FROM moment WHERE gone = 0 AND instance != ?1 AND"
		" (until <= now OR until > now + 2 * ?2) RETURNING instance",
		v_int(turn->self.instance), v_int(STORE_LEASE));

	turn->reaped = 0;
	while (query_next(&query))
		turn->reaped++;
	if (turn->reaped == 0)
		return;
	RUN(tx, "WITH" MOMENT
		" DELETE FROM agents USING moment WHERE gone != 0 AND gone < now - 86400000 AND"
		" NOT EXISTS (SELECT 1 FROM shards WHERE holder = instance) AND NOT EXISTS"
		" (SELECT 1 FROM singles WHERE holder = instance)");
	RUN(tx, "DELETE FROM views WHERE NOT EXISTS (SELECT 1 FROM agents WHERE agents.instance ="
		" views.instance AND gone = 0)");
	RUN(tx, "WITH" MOMENT " DELETE FROM requests USING moment WHERE asked < now - 600000");
}

static void read_numbers(struct sql_query *query, struct store_turn *turn)
{
	turn->now = read_integer(query);
	turn->renewed = read_integer(query) > 0;
	turn->due.changes = read_integer(query);
	turn->due.events = read_integer(query);
	turn->due.held = read_integer(query);
	turn->due_set = read_integer(query);
	turn->queued = read_integer(query);
	turn->said = read_integer(query);
	turn->views = read_integer(query);
	turn->requests = read_integer(query);
	turn->singles = read_integer(query);
}

static void read_agent(struct sql_query *query, struct store_agent *agent)
{
	agent->instance = read_integer(query);
	agent->configuration = read_integer(query);
	agent->tests = read_integer(query);
	agent->joined = read_integer(query);
	agent->renewed = read_integer(query);
	agent->until = read_integer(query);
	agent->late = read_integer(query);
	agent->gone = read_integer(query);
	query->column += 3; /* of the numbers */
	agent->name = read_name(query);
	agent->address = read_name(query);
	agent->version = read_name(query);
}

/* Those that are gone last, else by name. */
static int compare(const void *a, const void *b)
{
	const struct store_agent *one = a, *other = b;
	int by_name = strcmp(one->name, other->name);

	if ((one->gone != 0) != (other->gone != 0))
		return one->gone != 0 ? 1 : -1;
	if (by_name != 0)
		return by_name;
	return (one->joined > other->joined) - (one->joined < other->joined);
}

/* Rows of three kinds: one of numbers, the agents, the shards. */
#define PICTURE                                                                                    \
	" SELECT 0, now, (SELECT count(*) FROM renewed), changes, events, held,"                   \
	" (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM changes WHERE news = @news{pending})"  \
	" + 3 * (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM events WHERE due IS NOT NULL "   \
	"AND"                                                                                      \
	" reason IS NULL), (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) + count(*) FROM"           \
	" deliveries WHERE state = @delivery{queued}), (SELECT CAST(coalesce(sum(id), 0) AS"       \
	" BIGINT) FROM (SELECT id FROM events WHERE kind >= @event{triaged} ORDER BY id DESC"      \
	" LIMIT ?5) AS "                                                                           \
	"latest),"                                                                                 \
	" (SELECT CAST(coalesce(sum(changed), 0) AS BIGINT) FROM views JOIN agents"                \
	" ON agents.instance = views.instance WHERE gone = 0),"                                    \
	" (SELECT count(*)" ASKED "),"                                                             \
	" (SELECT CAST(coalesce(sum(term), 0) AS BIGINT) FROM singles), NULL, NULL, NULL"          \
	" FROM moment, due"                                                                        \
	" UNION ALL SELECT 1, instance, configuration, tests, joined, renewed, until, late, gone," \
	" 0, 0, 0, name, address, version FROM agents"                                             \
	" UNION ALL SELECT 2, shard, holder, term, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL"       \
	" FROM shards"

static void renew(struct tx *tx, struct store_turn *turn)
{
	const struct store_agent *self = &turn->self;
	struct sql_query query = QUERY(tx,
		self->instance != 0
			?
			/* The parameters of both are the same. */
			"WITH" MOMENT
			", renewed AS (UPDATE agents SET renewed = now, until = now + ?2, late ="
			" late + CASE WHEN until <= now THEN 1 ELSE 0 END, configuration = ?3,"
			" tests = ?4 FROM moment WHERE instance = ?1 AND gone = 0 RETURNING 1),"
			" due (changes, events, held) AS (" DUE ")" PICTURE
			: "WITH" MOMENT
			  ", renewed AS (SELECT 1 WHERE ?1 + ?2 + ?3 + ?4 < 0), due (changes,"
			  " events, held) AS (" DUE ")" PICTURE,
		v_int(self->instance), v_int(STORE_LEASE), v_int(self->configuration),
		v_int(self->tests), v_int(LATEST));
	struct store_shard *shard;

	turn->agents = NULL;
	turn->agent_count = 0;
	while (query_next(&query))
		switch (read_choice(&query, ROW_NUMBERS, ROW_SHARD)) {
		case ROW_NUMBERS: read_numbers(&query, turn); break;
		case ROW_SHARD:
			shard = &turn->shards[read_choice(&query, 0, STORE_SHARDS - 1)];
			shard->holder = read_integer(&query);
			shard->term = read_integer(&query);
			break;
		default: read_agent(&query, ADD_ROW(tx, turn->agents, turn->agent_count));
		}
	if (turn->agent_count > 0)
		qsort(turn->agents, turn->agent_count, sizeof *turn->agents, compare);
	/* The statement shows the rows as they were before it. */
	for (size_t i = 0; i < turn->agent_count && turn->renewed; i++)
		if (turn->agents[i].instance == self->instance) {
			turn->agents[i].renewed = turn->now;
			turn->agents[i].until = turn->now + STORE_LEASE;
		}
}

STORE_DEFINE(turn, .lane = STORE_TURNS, .writes = true)
{
	const struct store_agent *self = &call->self;
	struct value instance = v_int(self->instance);
	struct sql_query query;

	if (call->leave) {
		RUN(tx,
			"WITH" MOMENT
			" UPDATE agents SET gone = now, until = now FROM moment WHERE instance ="
			" ?1 AND gone = 0",
			instance);
		return;
	}
	if (call->join)
		RUN(tx,
			"WITH" MOMENT
			" INSERT INTO agents (instance, name, address, version, configuration,"
			" tests, joined, renewed, until, late, gone) SELECT ?1, ?2, ?3, ?4, ?5,"
			" ?6, now, now, now + ?7, 0, 0 FROM moment ON CONFLICT (instance) DO"
			" NOTHING",
			instance, v_text(self->name), v_text(self->address), v_text(self->version),
			v_int(self->configuration), v_int(self->tests), v_int(STORE_LEASE));
	give_back(tx, call);
	if (call->reap)
		end_leases(tx, call);
	if (call->take > 0) {
		query = QUERY(tx,
			/* Takers begin at different shards, so that they seldom meet. An agent that
			 * has left is gone at the moment at which its lease ended; one that was
			 * reaped is not. */
			"WITH free AS (SELECT shard, holder FROM shards WHERE" FREE
			" AND " AGENT_LIVES
			" ORDER BY (shard + ?3) % 256 LIMIT ?2 FOR UPDATE OF shards SKIP LOCKED)"
			" UPDATE shards SET holder = ?1, term = term + 1 FROM free WHERE"
			" shards.shard = free.shard RETURNING CAST(coalesce( (SELECT CASE WHEN"
			" gone != until THEN 1 ELSE 0 END FROM agents WHERE instance ="
			" free.holder), 0) AS BIGINT)",
			instance, v_int(call->take), v_int(self->instance % STORE_SHARDS));
		while (query_next(&query))
			call->taken_over += read_flag(&query);
	}
	if (call->alone)
		RUN(tx,
			"DELETE FROM singles WHERE test IN (SELECT test FROM singles WHERE" FREE
			" AND " AGENT_LIVES " FOR UPDATE SKIP LOCKED)",
			instance);
	renew(tx, call);
}

/* The agents' views of sources. */
STORE_DEFINE(views, .lane = STORE_FLEET, .writes = true)
{
	int64_t holder = call->call.holder;
	struct strings sources = {0};
	struct sql_query query;

	/* Others may read between the statements, so what is still there is never missing. */
	for (size_t i = 0; i < call->write_count && call->replaces; i++) {
		const struct source_view *view = &call->write[i];

		RUN(tx,
			"WITH" MOMENT
			" INSERT INTO views (instance, source, verdict, since, text, failing_told,"
			" failing_many, stale_told, stale_many, awaited, changed) SELECT ?1, ?2,"
			" ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, now FROM moment WHERE " AGENT_LIVES
			" ON CONFLICT (source, instance) DO UPDATE SET verdict = excluded.verdict,"
			" since = excluded.since, text = excluded.text, failing_told ="
			" excluded.failing_told, failing_many = excluded.failing_many, stale_told ="
			" excluded.stale_told, stale_many = excluded.stale_many, awaited ="
			" excluded.awaited, changed = excluded.changed",
			v_int(holder), v_text(view->source), v_int(view->verdict),
			v_int(view->since), v_text(view->text ? view->text : ""),
			v_int(view->told[VIEW_FAILS]), v_int(view->many[VIEW_FAILS]),
			v_int(view->told[VIEW_STALE]), v_int(view->many[VIEW_STALE]),
			v_int(view->awaited));
		strings_add(&sources, tx->arena, view->source);
	}
	if (call->replaces)
		RUN(tx,
			"DELETE FROM views WHERE instance = ?1 AND source NOT IN (SELECT value"
			" FROM @texts{?2})",
			v_int(holder), v_names(tx, &sources));
	query = sql_query_of(tx,
		"SELECT source, name, verdict, since, text, failing_told, failing_many,"
		" stale_told, stale_many, awaited, views.instance FROM views JOIN agents ON"
		" agents.instance = views.instance WHERE gone = 0 ORDER BY source, views.instance");
	while (query_next(&query)) {
		struct source_view *view = ADD_ROW(tx, call->views, call->view_count);

		view->source = read_name(&query);
		view->agent = read_name(&query);
		view->verdict = (enum view_verdict)read_integer(&query);
		view->since = read_integer(&query);
		view->text = read_name(&query);
		for (int i = 0; i < VIEW_ASPECTS; i++) {
			view->told[i] = read_integer(&query);
			view->many[i] = read_integer(&query);
		}
		view->awaited = read_flag(&query);
		view->own = read_integer(&query) == holder;
	}
}

static void list_requests(
	struct tx *tx, const char *statement, const struct run_request *requests, size_t count)
{
	struct buf list = {0};

	for (size_t i = 0; i < count; i++) {
		buf_text(&list, i > 0 ? ",[" : "[[");
		buf_json_text(&list, requests[i].test);
		buf_printf(&list, ",%d,%lld]", requests[i].shard, (long long)requests[i].asked);
	}
	buf_char(&list, ']');
	if (count > 0)
		RUN(tx, statement, v_text(list.data));
	buf_free(&list);
}

/* Requested runs. */
STORE_DEFINE(requests, .lane = STORE_FLEET, .writes = true)
{
	struct sql_query query;

	list_requests(tx,
		/* In order: two agents that request the same tests wait for one another at most
		 * once. */
		"WITH" MOMENT
		" INSERT INTO requests (test, shard, asked) SELECT CAST(value ->> 0 AS TEXT),"
		" CAST(value ->> 1 AS BIGINT), now FROM @pairs{?1,listed}, moment ORDER BY 1 ON"
		" CONFLICT (test) DO UPDATE SET shard = excluded.shard, asked ="
		" greatest(excluded.asked, requests.asked + 1)",
		call->add, call->add_count);
	list_requests(tx,
		/* Not requests that were repeated. */
		"DELETE FROM requests USING @pairs{?1,listed} WHERE test = value ->> 0 AND asked"
		" = CAST(value ->> 2 AS BIGINT)",
		call->begun, call->begun_count);
	if (!call->take)
		return;
	query = QUERY(tx,
		"SELECT requests.test, asked" ASKED " AND " AGENT_LIVES " ORDER BY requests.test",
		v_int(call->call.holder));
	while (query_next(&query)) {
		struct run_request *found = ADD_ROW(tx, call->found, call->found_count);

		found->test = read_name(&query);
		found->asked = read_integer(&query);
	}
}

void fleet_lock(struct tx *tx, struct store_call *call)
{
	struct value term = v_int(call->term), holder = v_int(call->holder);
	struct sql_query query;

	if (call->term == 0 || !call->work->writes)
		return;
	query = call->single
			? QUERY(tx,
				  "SELECT 1 FROM singles WHERE test = ?1 AND holder = ?3 AND term ="
				  " ?2 FOR SHARE",
				  v_text(call->test), term, holder)
			: QUERY(tx,
				  "SELECT 1 FROM shards WHERE shard = ?1 AND holder = ?3 AND term ="
				  " ?2 AND NOT EXISTS (SELECT 1 FROM singles WHERE test = ?4) FOR"
				  " SHARE",
				  v_int(call->shard), term, holder, v_text(call->test));
	call->fenced = query_ask(query) == 0 && !tx->failed;
	if (call->fenced)
		tx_fail(tx, ERROR_STATE, "another agent has taken over shard %d of the work",
			call->shard);
}
