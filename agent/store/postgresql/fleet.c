/*
 * Each statement here is a transaction of its own, READ COMMITTED. What follows is why that does.
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
 * A shard has one count of terms and epochs: each is larger than all before, of either kind. So
 * what an agent began as the shard's holder is not taken for its deputy's, or the other way round.
 *
 * Ids are not in the order in which transactions are committed, so what is new is not what has
 * larger ids; sums tell that there is something.
 */
#include "agent/store/postgresql/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/store/postgresql/file.h"
#include "agent/store/postgresql/statements.h"

enum { LATEST = 200 };

#define MOMENT                                                                                     \
	" moment AS (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now)"
#define DAY "86400000"
#define LIVES "EXISTS (SELECT 1 FROM agents WHERE instance = $1 AND gone = 0)"

static const char join[] =
	"WITH" MOMENT " INSERT INTO agents (instance, name, address, version, configuration,"
	" tests, joined, renewed, until, late, gone)"
	" SELECT $1, $2, $3, $4, $5, $6, now, now, now + $7, 0, 0 FROM moment"
	" ON CONFLICT (instance) DO NOTHING";

static const char leave[] = "WITH" MOMENT " UPDATE agents SET gone = now, until = now FROM moment"
			    " WHERE instance = $1 AND gone = 0";

static const char release[] =
	"UPDATE shards SET holder = 0, deputy = 0, epoch = greatest(term, epoch) + 1"
	" WHERE holder = $1"
	" AND shard IN (SELECT CAST(value AS BIGINT)"
	" FROM json_array_elements_text(CAST($2 AS JSON)) AS listed (value))";

static const char reap[] =
	"WITH" MOMENT " UPDATE agents SET gone = now FROM moment WHERE gone = 0"
	" AND instance != $1 AND (until <= now OR until > now + 2 * $2) RETURNING instance";

static const char *const clean[] = {
	"WITH" MOMENT " DELETE FROM agents USING moment WHERE gone != 0 AND gone < now - " DAY
	" AND NOT EXISTS (SELECT 1 FROM shards WHERE holder = instance OR deputy = instance)",
	"DELETE FROM views WHERE NOT EXISTS"
	" (SELECT 1 FROM agents WHERE agents.instance = views.instance AND gone = 0)",
	"WITH" MOMENT " DELETE FROM requests USING moment WHERE asked < now - 600000",
};

/* Takers begin at different shards, so that they seldom meet. An agent that has left is gone at the
 * moment at which its lease ended; one that was reaped is not. */
static const char take[] =
	"WITH free AS (SELECT shard, holder FROM shards WHERE (holder = 0 OR EXISTS"
	" (SELECT 1 FROM agents WHERE instance = holder AND gone != 0)) AND " LIVES
	" ORDER BY (shard + $3) % 256 LIMIT $2 FOR UPDATE OF shards SKIP LOCKED)"
	" UPDATE shards SET holder = $1, term = greatest(term, epoch) + 1, deputy = 0,"
	" epoch = greatest(term, epoch) + 1"
	" FROM free WHERE shards.shard = free.shard RETURNING CAST(coalesce("
	" (SELECT CASE WHEN gone != until THEN 1 ELSE 0 END FROM agents"
	" WHERE instance = free.holder), 0) AS BIGINT)";

/* Of `requests` and `shards`. */
#define RUNNER                                                                                     \
	"CASE WHEN EXISTS (SELECT 1 FROM delegated WHERE delegated.shard = shards.shard"           \
	" AND delegated.epoch = shards.epoch AND delegated.test = requests.test)"                  \
	" THEN deputy ELSE holder END"

/* Rows of three kinds: one of numbers, the agents, the shards. */
#define PICTURE                                                                                    \
	" SELECT 0, now, (SELECT count(*) FROM renewed), changes, recoveries, retractions, said,"  \
	" (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM changes WHERE news = 1)"               \
	" + 3 * (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM changes WHERE news = 4),"        \
	" (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) + count(*) FROM deliveries"                 \
	" WHERE state = 1), (SELECT CAST(coalesce(sum(id), 0) AS BIGINT) FROM"                     \
	" (SELECT id FROM audit ORDER BY id DESC LIMIT $5) AS latest),"                            \
	" (SELECT CAST(coalesce(sum(changed), 0) AS BIGINT) FROM views JOIN agents"                \
	" ON agents.instance = views.instance WHERE gone = 0),"                                    \
	" (SELECT count(*) FROM requests JOIN shards ON requests.shard = shards.shard"             \
	" WHERE " RUNNER " = $1), NULL, NULL, NULL FROM moment, due"                               \
	" UNION ALL SELECT 1, instance, configuration, tests, joined, renewed, until, late, gone," \
	" 0, 0, 0, name, address, version FROM agents"                                             \
	" UNION ALL SELECT 2, shard, holder, term, deputy, epoch, 0, 0, 0, 0, 0, 0, NULL, NULL,"   \
	" NULL FROM shards"

/* %s: what is to be announced. The parameters of both are the same. */
static const char renewing[] =
	"WITH" MOMENT ", renewed AS (UPDATE agents SET renewed = now, until = now + $2,"
	" late = late + CASE WHEN until <= now THEN 1 ELSE 0 END, configuration = $3, tests = $4"
	" FROM moment WHERE instance = $1 AND gone = 0 RETURNING 1),"
	" due (changes, recoveries, retractions, said) AS (%s)" PICTURE;
static const char looking[] = "WITH" MOMENT ", renewed AS (SELECT 1 WHERE $1 + $2 + $3 + $4 < 0),"
			      " due (changes, recoveries, retractions, said) AS (%s)" PICTURE;

enum { ROW_NUMBERS, ROW_AGENT, ROW_SHARD, FIRST_TEXT = 12 };

static bool enter(
	struct connection *connection, const struct store_agent *self, struct error *error)
{
	struct parameters parameters = {0};

	parameter_integer(&parameters, self->instance);
	parameter_text(&parameters, self->name);
	parameter_text(&parameters, self->address);
	parameter_text(&parameters, self->version);
	parameter_integer(&parameters, self->configuration);
	parameter_integer(&parameters, self->tests);
	parameter_integer(&parameters, STORE_LEASE);
	return connection_run_again(connection, join, &parameters, error);
}

static bool give_back(
	struct connection *connection, const struct store_turn *turn, struct error *error)
{
	struct parameters parameters = {0};
	struct buf list = {0};
	bool done = true;

	for (int i = 0; i < STORE_SHARDS; i++)
		if (turn->release[i])
			buf_printf(&list, "%c%d", list.length > 0 ? ',' : '[', i);
	if (list.length > 0) {
		buf_char(&list, ']');
		parameter_integer(&parameters, turn->self.instance);
		parameter_text(&parameters, list.data);
		done = connection_run_again(connection, release, &parameters, error);
	}
	buf_free(&list);
	return done;
}

static bool end_leases(struct connection *connection, struct store_turn *turn, struct error *error)
{
	struct parameters parameters = {0};
	PGresult *result;

	parameter_integer(&parameters, turn->self.instance);
	parameter_integer(&parameters, STORE_LEASE);
	result = connection_ask_again(connection, reap, &parameters, error);
	turn->reaped = result ? (size_t)PQntuples(result) : 0;
	PQclear(result);
	for (size_t i = 0; i < sizeof clean / sizeof clean[0] && result && turn->reaped > 0; i++)
		if (!connection_run_again(connection, clean[i], NULL, error))
			return false;
	return result != NULL;
}

static bool take_shards(struct connection *connection, struct store_turn *turn, struct error *error)
{
	struct parameters parameters = {0};
	PGresult *result;

	parameter_integer(&parameters, turn->self.instance);
	parameter_integer(&parameters, turn->take);
	parameter_integer(&parameters, turn->self.instance % STORE_SHARDS);
	result = connection_ask_again(connection, take, &parameters, error);
	for (int i = 0; result && i < PQntuples(result); i++)
		turn->taken_over += cell_integer(result, i, 0) != 0;
	PQclear(result);
	return result != NULL;
}

static void read_numbers(const PGresult *result, int row, struct store_turn *turn)
{
	turn->now = cell_integer(result, row, 1);
	turn->renewed = cell_integer(result, row, 2) > 0;
	turn->due.changes = cell_integer(result, row, 3);
	turn->due.recoveries = cell_integer(result, row, 4);
	turn->due.retractions = cell_integer(result, row, 5);
	turn->due.said = cell_integer(result, row, 6);
	turn->due_set = cell_integer(result, row, 7);
	turn->queued = cell_integer(result, row, 8);
	turn->said = cell_integer(result, row, 9);
	turn->views = cell_integer(result, row, 10);
	turn->requests = cell_integer(result, row, 11);
}

static void read_agent(const PGresult *result, int row, struct store_turn *turn)
{
	struct arena *arena = turn->call.arena;

	turn->agents[turn->agent_count++] =
		(struct store_agent){.instance = cell_integer(result, row, 1),
			.configuration = cell_integer(result, row, 2),
			.tests = cell_integer(result, row, 3),
			.joined = cell_integer(result, row, 4),
			.renewed = cell_integer(result, row, 5),
			.until = cell_integer(result, row, 6),
			.late = cell_integer(result, row, 7),
			.gone = cell_integer(result, row, 8),
			.name = arena_strdup(arena, cell_text(result, row, FIRST_TEXT)),
			.address = arena_strdup(arena, cell_text(result, row, FIRST_TEXT + 1)),
			.version = arena_strdup(arena, cell_text(result, row, FIRST_TEXT + 2))};
}

static void read_shard(const PGresult *result, int row, struct store_turn *turn)
{
	int64_t shard = cell_integer(result, row, 1);

	if (shard >= 0 && shard < STORE_SHARDS)
		turn->shards[shard] = (struct store_shard){.holder = cell_integer(result, row, 2),
			.term = cell_integer(result, row, 3),
			.deputy = cell_integer(result, row, 4),
			.epoch = cell_integer(result, row, 5)};
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

static void read_picture(const PGresult *result, struct store_turn *turn)
{
	int count = PQntuples(result);

	turn->agent_count = 0;
	turn->agents = arena_array(turn->call.arena, (size_t)count, sizeof *turn->agents);
	for (int i = 0; i < count; i++) {
		int64_t kind = cell_integer(result, i, 0);

		if (kind == ROW_NUMBERS)
			read_numbers(result, i, turn);
		else if (kind == ROW_AGENT)
			read_agent(result, i, turn);
		else
			read_shard(result, i, turn);
	}
	qsort(turn->agents, turn->agent_count, sizeof *turn->agents, compare);
	/* The statement shows the rows as they were before it. */
	for (size_t i = 0; i < turn->agent_count && turn->renewed; i++)
		if (turn->agents[i].instance == turn->self.instance) {
			turn->agents[i].renewed = turn->now;
			turn->agents[i].until = turn->now + STORE_LEASE;
		}
}

static bool renew(struct connection *connection, struct store_turn *turn, struct error *error)
{
	struct parameters parameters = {0};
	struct buf sql = {0};
	PGresult *result;

	parameter_integer(&parameters, turn->self.instance);
	parameter_integer(&parameters, STORE_LEASE);
	parameter_integer(&parameters, turn->self.configuration);
	parameter_integer(&parameters, turn->self.tests);
	parameter_integer(&parameters, LATEST);
	buf_printf(&sql, turn->self.instance != 0 ? renewing : looking,
		postgresql_statements[STATEMENT_DUE]);
	result = connection_ask_again(connection, sql.data, &parameters, error);
	buf_free(&sql);
	if (result)
		read_picture(result, turn);
	PQclear(result);
	return result != NULL;
}

static bool take_turn(struct store_file *file, void *context, struct error *error)
{
	struct store_turn *turn = context;
	struct connection *connection = postgresql_connection(file);
	struct parameters parameters = {0};

	parameter_integer(&parameters, turn->self.instance);
	if (turn->leave)
		return connection_run_again(connection, leave, &parameters, error);
	return (!turn->join || enter(connection, &turn->self, error)) &&
	       give_back(connection, turn, error) &&
	       (!turn->reap || end_leases(connection, turn, error)) &&
	       (turn->take == 0 || take_shards(connection, turn, error)) &&
	       renew(connection, turn, error);
}

const struct store_work store_turn_work = {.run = take_turn, .lane = STORE_TURNS, .writes = true};

/* --- What agents see of sources. */

static const char write_view[] =
	"WITH" MOMENT " INSERT INTO views (instance, source, verdict, since, text, failing_told,"
	" failing_many, stale_told, stale_many, awaited, changed)"
	" SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, now FROM moment WHERE " LIVES
	" ON CONFLICT (source, instance) DO UPDATE SET verdict = excluded.verdict,"
	" since = excluded.since, text = excluded.text, failing_told = excluded.failing_told,"
	" failing_many = excluded.failing_many, stale_told = excluded.stale_told,"
	" stale_many = excluded.stale_many, awaited = excluded.awaited,"
	" changed = excluded.changed";

static const char forget_view[] = "DELETE FROM views WHERE instance = $1 AND source = $2";

static const char read_views[] =
	"SELECT source, name, verdict, since, text, failing_told, failing_many, stale_told,"
	" stale_many, awaited, views.instance FROM views JOIN agents"
	" ON agents.instance = views.instance WHERE gone = 0 ORDER BY source, views.instance";

static bool write_one_view(struct connection *connection, int64_t instance,
	const struct source_view *view, struct error *error)
{
	struct parameters parameters = {0};

	parameter_integer(&parameters, instance);
	parameter_text(&parameters, view->source);
	parameter_integer(&parameters, view->verdict);
	parameter_integer(&parameters, view->since);
	parameter_text(&parameters, view->text ? view->text : "");
	parameter_integer(&parameters, view->told[VIEW_FAILS]);
	parameter_integer(&parameters, view->many[VIEW_FAILS]);
	parameter_integer(&parameters, view->told[VIEW_STALE]);
	parameter_integer(&parameters, view->many[VIEW_STALE]);
	parameter_integer(&parameters, view->awaited);
	return connection_run_again(connection, write_view, &parameters, error);
}

static bool write_views(
	struct connection *connection, const struct store_views *call, struct error *error)
{
	for (size_t i = 0; i < call->write_count; i++)
		if (!write_one_view(connection, call->call.holder, &call->write[i], error))
			return false;
	for (size_t i = 0; i < call->forget.count; i++) {
		struct parameters parameters = {0};

		parameter_integer(&parameters, call->call.holder);
		parameter_text(&parameters, call->forget.items[i]);
		if (!connection_run_again(connection, forget_view, &parameters, error))
			return false;
	}
	return true;
}

static bool perform_views(struct store_file *file, void *context, struct error *error)
{
	struct store_views *call = context;
	struct connection *connection = postgresql_connection(file);
	struct arena *arena = call->call.arena;
	PGresult *result = write_views(connection, call, error)
				   ? connection_ask_again(connection, read_views, NULL, error)
				   : NULL;

	if (!result)
		return false;
	call->view_count = (size_t)PQntuples(result);
	call->views = arena_array(arena, call->view_count, sizeof *call->views);
	for (int i = 0; i < PQntuples(result); i++)
		call->views[i] =
			(struct source_view){.source = arena_strdup(arena, cell_text(result, i, 0)),
				.agent = arena_strdup(arena, cell_text(result, i, 1)),
				.own = cell_integer(result, i, 10) == call->call.holder,
				.verdict = (enum view_verdict)cell_integer(result, i, 2),
				.since = cell_integer(result, i, 3),
				.text = arena_strdup(arena, cell_text(result, i, 4)),
				.told = {cell_integer(result, i, 5), cell_integer(result, i, 7)},
				.many = {cell_integer(result, i, 6), cell_integer(result, i, 8)},
				.awaited = cell_integer(result, i, 9) != 0};
	PQclear(result);
	return true;
}

const struct store_work store_views_work = {
	.run = perform_views, .lane = STORE_FLEET, .writes = true};

/* --- Runs that are asked for. */

/* In order: two agents that ask for the same tests wait for one another at most once. */
static const char add_requests[] =
	"WITH" MOMENT " INSERT INTO requests (test, shard, asked)"
	" SELECT CAST(value ->> 0 AS TEXT), CAST(value ->> 1 AS BIGINT), now"
	" FROM json_array_elements(CAST($1 AS JSON)) AS listed (value), moment ORDER BY 1"
	" ON CONFLICT (test) DO UPDATE SET shard = excluded.shard,"
	" asked = greatest(excluded.asked, requests.asked + 1)";

/* Not what has been asked for again. */
static const char forget_requests[] =
	"DELETE FROM requests USING json_array_elements(CAST($1 AS JSON)) AS listed (value)"
	" WHERE test = value ->> 0 AND asked = CAST(value ->> 2 AS BIGINT)";

static const char find_requests[] =
	"SELECT test, asked FROM requests JOIN shards ON requests.shard = shards.shard"
	" WHERE " RUNNER " = $1 AND " LIVES " ORDER BY test";

static bool list_requests(struct connection *connection, const char *sql,
	const struct run_request *requests, size_t count, struct error *error)
{
	struct parameters parameters = {0};
	struct buf list = {0};
	bool done;

	if (count == 0)
		return true;
	for (size_t i = 0; i < count; i++) {
		buf_text(&list, i > 0 ? ",[" : "[[");
		buf_json_text(&list, requests[i].test);
		buf_printf(&list, ",%d,%lld]", requests[i].shard, (long long)requests[i].asked);
	}
	buf_char(&list, ']');
	parameter_text(&parameters, list.data);
	done = connection_run_again(connection, sql, &parameters, error);
	buf_free(&list);
	return done;
}

static bool perform_requests(struct store_file *file, void *context, struct error *error)
{
	struct store_requests *call = context;
	struct connection *connection = postgresql_connection(file);
	struct parameters parameters = {0};
	PGresult *result;

	if (!list_requests(connection, add_requests, call->add, call->add_count, error) ||
		!list_requests(connection, forget_requests, call->begun, call->begun_count, error))
		return false;
	if (!call->take)
		return true;
	parameter_integer(&parameters, call->call.holder);
	result = connection_ask_again(connection, find_requests, &parameters, error);
	if (!result)
		return false;
	call->found_count = (size_t)PQntuples(result);
	call->found = arena_array(call->call.arena, call->found_count, sizeof *call->found);
	for (int i = 0; i < PQntuples(result); i++)
		call->found[i] = (struct run_request){
			.test = arena_strdup(call->call.arena, cell_text(result, i, 0)),
			.asked = cell_integer(result, i, 1)};
	PQclear(result);
	return true;
}

const struct store_work store_requests_work = {
	.run = perform_requests, .lane = STORE_FLEET, .writes = true};

/* --- The fence. */

static const char hold[] = "SELECT 1 FROM shards WHERE shard = $1"
			   " AND ((holder = $3 AND term = $2) OR (deputy = $3 AND epoch = $2))"
			   " FOR SHARE";

bool fleet_lock(struct connection *connection, struct store_call *call, struct error *error)
{
	struct parameters parameters = {0};
	PGresult *result;
	bool holds;

	if (call->term == 0)
		return true;
	parameter_integer(&parameters, call->shard);
	parameter_integer(&parameters, call->term);
	parameter_integer(&parameters, call->holder);
	result = connection_ask(connection, hold, &parameters, error);
	if (!result)
		return false;
	holds = PQntuples(result) == 1;
	PQclear(result);
	call->fenced = !holds;
	return holds || error_set(error, ERROR_STATE,
				"another agent has taken over shard %d of the work", call->shard);
}
