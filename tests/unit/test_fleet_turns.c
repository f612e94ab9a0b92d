/*
 * Turns of agents on a database, many at once. Needs a server: HUNTER_TEST_POSTGRES is the address
 * of one on which databases may be created (tests/on_postgres starts one).
 */
#include "unit.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/fleet/fleet.h"
#include "agent/store/backend.h"
#include "agent/store/postgresql/connection.h"
#include "agent/store/postgresql/fleet.h"
#include "agent/store/postgresql/statements.h"
#include "tests/unit/waiting.h"

static char address[512], name[64];

static void administer(const char *sql)
{
	PGconn *server = PQconnectdb(getenv("HUNTER_TEST_POSTGRES"));
	PGresult *result = PQexec(server, sql);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(server));
	PQclear(result);
	PQfinish(server);
}

static int64_t sql(const char *text)
{
	PGconn *server = PQconnectdb(address);
	PGresult *result = PQexec(server, text);
	int64_t number = 0;

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0)
		number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	else if (PQresultStatus(result) != PGRES_COMMAND_OK)
		fail_msg("%s: %s", text, PQerrorMessage(server));
	PQclear(result);
	PQfinish(server);
	return number;
}

static int set_up(void **state)
{
	const char *server = getenv("HUNTER_TEST_POSTGRES");
	static int made;
	char text[128], *tables;
	const char *path;

	(void)state;
	if (!server || !*server)
		return 0;
	snprintf(name, sizeof name, "hunter_c_turns_%ld_%d", (long)getpid(), ++made);
	snprintf(text, sizeof text, "CREATE DATABASE %s", name);
	administer(text);
	path = strpbrk(strstr(server, "://") + 3, "/?");
	snprintf(address, sizeof address, "%.*s/%s%s",
		(int)(path ? path - server : (ptrdiff_t)strlen(server)), server, name,
		path && strchr(path, '?') ? strchr(path, '?') : "");
	tables = schema_text_new(&postgresql_words);
	sql(tables);
	free(tables);
	snprintf(text, sizeof text, "INSERT INTO schema VALUES (1, %lld, 0)",
		(long long)schema_version(&postgresql_words));
	sql(text);
	return 0;
}

static int tear_down(void **state)
{
	char text[128];

	(void)state;
	if (!*name)
		return 0;
	snprintf(text, sizeof text, "DROP DATABASE %s WITH (FORCE)", name);
	administer(text);
	return 0;
}

#define NEEDS_SERVER()                                                                             \
	do                                                                                         \
		if (!*name) {                                                                      \
			skip("HUNTER_TEST_POSTGRES names no server");                              \
		}                                                                                  \
	while (0)

static struct tx *connect(void)
{
	struct error error;
	struct tx *connection = postgresql_backend.open(address, STORE_READ, &error);

	if (!connection)
		fail_msg("%s", error.text);
	return connection;
}

static struct store_turn *turn_of(int64_t instance)
{
	struct store_turn *turn = store_turn_new(NULL, NULL);

	turn->self = (struct store_agent){
		.instance = instance, .name = "eu-1", .address = "", .version = "1", .tests = 7};
	return turn;
}

static void perform(struct tx *connection, struct store_call *call)
{
	struct error error;

	connection->call = call;
	connection->arena = call->arena;
	connection->error = &error;
	connection->failed = false;
	call->work->run(connection, call);
	if (connection->failed)
		fail_msg("%s", error.text);
}

static struct store_turn *join(struct tx *connection, int64_t instance)
{
	struct store_turn *turn = turn_of(instance);

	turn->join = true;
	perform(connection, &turn->call);
	assert_true(turn->renewed);
	return turn;
}

static struct store_turn *take(struct tx *connection, int64_t instance, int64_t count)
{
	struct store_turn *turn = turn_of(instance);

	turn->reap = true;
	turn->take = count;
	perform(connection, &turn->call);
	return turn;
}

static int held(const struct store_turn *turn, int64_t instance)
{
	int count = 0;

	for (int i = 0; i < STORE_SHARDS; i++)
		count += turn->shards[i].holder == instance;
	return count;
}

static void end(struct store_turn *turn)
{
	store_call_free(&turn->call);
}

static void test_one_takes_over_from_another(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	turn = take(connection, 1, 200);
	assert_int_equal(held(turn, 1), 200);
	assert_int_equal(turn->taken_over, 0);
	assert_int_equal(turn->agent_count, 2);
	end(turn);
	turn = take(connection, 2, 200);
	assert_int_equal(held(turn, 2), 56);
	assert_int_equal(turn->reaped, 0);
	end(turn);

	sql("UPDATE agents SET until = renewed - 1 WHERE instance = 1");
	turn = take(connection, 2, 150);
	assert_int_equal(turn->reaped, 1);
	assert_int_equal(turn->taken_over, 150);
	assert_int_equal(held(turn, 2), 206);
	assert_int_equal(sql("SELECT sum(term) FROM shards"), 256 + 150);
	end(turn);

	/* Too late: it is gone, also if it asks for shards. */
	turn = take(connection, 1, 256);
	assert_false(turn->renewed);
	assert_int_equal(held(turn, 1), 50);
	assert_int_equal(turn->taken_over, 0);
	end(turn);
	turn = take(connection, 2, 256);
	assert_int_equal(held(turn, 2), 256);
	end(turn);
	postgresql_backend.close(connection);
}

/* Nobody was in need of what it held: it goes on, and that is counted. */
static void test_a_late_renewal(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(take(connection, 1, 256));
	sql("UPDATE agents SET until = until - 60000");
	turn = turn_of(1);
	perform(connection, &turn->call);
	assert_true(turn->renewed);
	assert_int_equal(held(turn, 1), 256);
	assert_int_equal(turn->agents[0].until, turn->now + STORE_LEASE);
	assert_int_equal(sql("SELECT until - renewed FROM agents"), STORE_LEASE);
	assert_int_equal(sql("SELECT late FROM agents"), 1);
	end(turn);
	postgresql_backend.close(connection);
}

/* Of another primary, whose clock was ahead. */
static void test_a_lease_that_ends_too_late(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	sql("UPDATE agents SET until = until + 20000 WHERE instance = 1");
	turn = take(connection, 2, 0);
	assert_int_equal(turn->reaped, 1);
	end(turn);
	end(join(connection, 3));
	sql("UPDATE agents SET until = until + 10000 WHERE instance = 3");
	turn = take(connection, 2, 0);
	assert_int_equal(turn->reaped, 0);
	end(turn);
	postgresql_backend.close(connection);
}

static void test_leaving(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	turn = turn_of(1);
	turn->release[3] = turn->release[4] = true;
	perform(connection, &turn->call);
	assert_int_equal(held(turn, 1), 254);
	end(turn);
	turn = turn_of(1);
	turn->leave = true;
	perform(connection, &turn->call);
	end(turn);
	turn = take(connection, 2, 256);
	assert_int_equal(held(turn, 2), 256);
	assert_int_equal(turn->taken_over, 0); /* they were given back */
	end(turn);
	postgresql_backend.close(connection);
}

/* `test`: in that shard, or leased by itself; or NULL. */
static bool lock_test_as(struct tx *connection, int64_t holder, int shard, const char *test,
	bool single, int64_t term)
{
	struct store_call *call = store_probe_new();
	struct error error;
	bool done, fenced;

	call->holder = holder;
	call->shard = shard;
	call->test = test;
	call->single = single;
	call->term = term;
	connection->error = &error;
	connection->failed = false;
	fleet_lock(connection, call);
	done = !connection->failed;
	fenced = call->fenced;
	store_call_free(call);
	if (!done && !fenced)
		fail_msg("%s", error.text);
	return done;
}

static bool lock_as(struct tx *connection, int64_t holder, int shard, int64_t term)
{
	return lock_test_as(connection, holder, shard, NULL, false, term);
}

static void test_a_writer_is_fenced(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect(), *writer = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	assert_true(connection_begin(connection_of(writer), TRANSACTION_WRITES));
	assert_true(lock_as(writer, 1, 9, 1));
	assert_false(lock_as(writer, 1, 9, 2));
	assert_false(lock_as(writer, 2, 9, 1));
	assert_false(lock_as(writer, 1, 9, -1));

	/* While its transaction lasts the shard is not taken over. */
	sql("UPDATE agents SET until = renewed - 1 WHERE instance = 1");
	turn = take(connection, 2, 256);
	assert_int_equal(held(turn, 2), 255);
	assert_int_equal(turn->shards[9].holder, 1);
	end(turn);
	assert_true(connection_commit(connection_of(writer)));
	turn = take(connection, 2, 256);
	assert_int_equal(turn->shards[9].term, 2);
	end(turn);
	assert_true(connection_begin(connection_of(writer), TRANSACTION_WRITES));
	assert_false(lock_as(writer, 1, 9, 1));
	assert_true(lock_as(writer, 2, 9, 2));
	connection_rollback(connection_of(writer));
	postgresql_backend.close(writer);
	postgresql_backend.close(connection);
}

/* The database refuses such a lock in a transaction that only reads. */
static void test_a_reader_is_not_fenced(void **state)
{
	NEEDS_SERVER();
	struct tx *reader = connect();
	struct store_call *call = &store_reminders_new(NULL, NULL)->call;
	struct error error;

	(void)state;
	call->holder = call->term = 1;
	reader->error = &error;
	assert_true(connection_begin(connection_of(reader), TRANSACTION_READS));
	fleet_lock(reader, call);
	assert_false(reader->failed);
	connection_rollback(connection_of(reader));
	store_call_free(call);
	postgresql_backend.close(reader);
}

/* Connections that wait for a lock. */
static const char waiting[] =
	"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
	" AND wait_event_type = 'Lock'";

/* Tests that are leased by themselves. */

enum move { LEAVES, CLAIMS, RELEASES, JOINS };

/* What the agent does about the test "t" of that shard. */
static struct store_configuration *move(
	struct tx *connection, int64_t instance, enum move what, int shard)
{
	static const char *const names[] = {"t"};
	struct store_configuration *call = store_configuration_new(NULL, NULL);
	struct strings *lists[] = {[LEAVES] = &call->leave,
		[CLAIMS] = &call->claim,
		[RELEASES] = &call->release,
		[JOINS] = &call->join};

	call->call.holder = instance;
	call->leave_shards = &shard;
	*lists[what] = (struct strings){names, 1};
	perform(connection, &call->call);
	return call;
}

static void done(struct store_configuration *call)
{
	store_call_free(&call->call);
}

/* Moves it, and checks who holds it then; -1: it is in its shard. */
static int64_t assert_moved(struct tx *connection, int64_t instance, enum move what, int64_t holder)
{
	struct store_configuration *call = move(connection, instance, what, 9);
	int64_t term = 0;

	assert_int_equal(call->single_count, holder >= 0);
	if (holder >= 0) {
		assert_string_equal(call->singles[0].test, "t");
		assert_int_equal(call->singles[0].holder, holder);
		term = call->singles[0].term;
	}
	done(call);
	return term;
}

static int64_t singles(struct tx *connection)
{
	struct store_turn *turn = turn_of(1);
	int64_t number;

	perform(connection, &turn->call);
	number = turn->singles;
	end(turn);
	return number;
}

static bool writes_as(struct tx *writer, int64_t instance, int64_t term)
{
	bool holds;

	assert_true(connection_begin(connection_of(writer), TRANSACTION_WRITES));
	holds = lock_test_as(writer, instance, 9, "t", true, term);
	connection_rollback(connection_of(writer));
	return holds;
}

/* Its holder alone moves it; who is gone does not. Each holder has another term. */
static void test_a_test_is_leased_by_itself(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect(), *writer = connect();
	int64_t first, second, number;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	assert_moved(connection, 2, LEAVES, -1); /* it is not in a shard of that */
	assert_int_equal(singles(connection), 0);
	assert_moved(connection, 1, LEAVES, 0);
	number = singles(connection);
	assert_int_not_equal(number, 0);
	first = assert_moved(connection, 1, CLAIMS, 1);
	assert_int_not_equal(singles(connection), number);
	assert_true(writes_as(writer, 1, first));
	assert_false(writes_as(writer, 1, first + 1));
	assert_false(writes_as(writer, 2, first));
	assert_moved(connection, 2, LEAVES, 1); /* ... nor is any of the others' doing */
	assert_moved(connection, 2, CLAIMS, 1);
	assert_moved(connection, 2, RELEASES, 1);
	assert_moved(connection, 2, JOINS, 1);
	number = singles(connection);
	assert_moved(connection, 1, RELEASES, 0);
	assert_false(writes_as(writer, 1, first));
	assert_int_not_equal(singles(connection), number);
	number = singles(connection);
	second = assert_moved(connection, 2, CLAIMS, 2);
	assert_true(second > first);
	assert_int_not_equal(singles(connection), number);
	assert_true(writes_as(writer, 2, second));
	assert_moved(connection, 2, JOINS, -1);
	assert_false(writes_as(writer, 2, second));
	assert_int_equal(singles(connection), 0);
	assert_moved(connection, 1, LEAVES, 0);
	assert_true(assert_moved(connection, 1, CLAIMS, 1) > second);

	/* Nobody's, in its shard again by an agent that is gone. */
	sql("UPDATE singles SET holder = 0");
	sql("UPDATE agents SET gone = 1 WHERE instance = 2");
	assert_moved(connection, 2, CLAIMS, 0);
	assert_moved(connection, 2, JOINS, 0);
	assert_moved(connection, 1, JOINS, -1);
	postgresql_backend.close(writer);
	postgresql_backend.close(connection);
}

/* Of an agent that dies with it, also while it writes: then nobody has it until that has ended. */
static void test_a_test_outlives_its_holder(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect(), *writer = connect();
	struct store_turn *turn;
	int64_t term;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	done(move(connection, 1, LEAVES, 9));
	term = assert_moved(connection, 2, CLAIMS, 2);
	assert_true(connection_begin(connection_of(writer), TRANSACTION_WRITES));
	assert_true(lock_test_as(writer, 2, 9, "t", true, term));
	sql("UPDATE agents SET until = renewed - 1 WHERE instance = 2");
	assert_moved(connection, 1, CLAIMS, 2); /* its lease is over, but it is not gone */
	turn = take(connection, 1, 0);
	assert_int_equal(turn->reaped, 1);
	end(turn);
	assert_moved(connection, 1, CLAIMS, 0);
	assert_moved(connection, 1, JOINS, 0);
	turn = turn_of(1);
	turn->alone = true;
	perform(connection, &turn->call);
	assert_int_not_equal(turn->singles, 0);
	end(turn);
	assert_true(connection_commit(connection_of(writer)));

	/* Its row stays as long as that is how one knows that it is gone. */
	sql("UPDATE agents SET gone = 1 WHERE instance = 2");
	end(join(connection, 3));
	sql("UPDATE agents SET until = renewed - 1 WHERE instance = 3");
	end(take(connection, 1, 0));
	assert_int_equal(sql("SELECT count(*) FROM agents WHERE instance = 2"), 1);
	assert_moved(connection, 1, CLAIMS, 1);
	assert_false(writes_as(writer, 2, term));
	turn = turn_of(3); /* what somebody holds stays apart, ... */
	turn->alone = true;
	perform(connection, &turn->call);
	assert_int_not_equal(turn->singles, 0);
	end(turn);
	done(move(connection, 1, RELEASES, 9));
	turn = turn_of(1); /* ... and what nobody does joins the shards of a single run */
	turn->alone = true;
	perform(connection, &turn->call);
	end(turn);
	assert_int_equal(singles(connection), 0);
	postgresql_backend.close(writer);
	postgresql_backend.close(connection);
}

/* A test leaves its shard, or somebody takes that: then the next holder finds what has left. */
static void test_a_test_leaves_while_its_shard_is_taken(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect(), *leaving = connect();
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	assert_true(connection_begin(connection_of(leaving), TRANSACTION_PLAIN));
	done(move(leaving, 1, LEAVES, 9));
	sql("UPDATE agents SET gone = 1 WHERE instance = 1");
	turn = take(connection, 2, 256);
	assert_int_not_equal(turn->shards[9].holder, 2);
	end(turn);
	assert_true(connection_commit(connection_of(leaving)));
	turn = take(connection, 2, 256);
	assert_int_equal(turn->shards[9].holder, 2);
	end(turn);
	assert_moved(connection, 2, CLAIMS, 2);
	sql("DELETE FROM singles");
	assert_moved(connection, 1, LEAVES, -1); /* the other way round */
	postgresql_backend.close(leaving);
	postgresql_backend.close(connection);
}

static void *leave_shard(void *connection)
{
	done(move(connection, 1, LEAVES, 9));
	return NULL;
}

/* A write about a test with its shard's term comes before the test has left, or is refused; one
 * that began before is repeated. Another test's is not. */
static void test_a_write_does_not_overtake_a_leaving_test(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect(), *writer = connect(), *leaving = connect();
	struct connection *of_writer = connection_of(writer);
	pthread_t thread;

	(void)state;
	end(join(connection, 1));
	end(take(connection, 1, 256));
	assert_true(connection_begin(of_writer, TRANSACTION_WRITES));
	assert_true(lock_test_as(writer, 1, 9, "t", false, 1));
	pthread_create(&thread, NULL, leave_shard, leaving);
	wait_until(sql(waiting) == 1);
	assert_int_equal(sql("SELECT count(*) FROM singles"), 0);
	assert_true(connection_commit(of_writer));
	pthread_join(thread, NULL);
	assert_int_equal(sql("SELECT count(*) FROM singles"), 1);
	assert_true(connection_begin(of_writer, TRANSACTION_WRITES));
	assert_false(lock_test_as(writer, 1, 9, "t", false, 1));
	connection_rollback(of_writer);
	assert_true(connection_begin(of_writer, TRANSACTION_WRITES));
	assert_true(lock_test_as(writer, 1, 9, "u", false, 1));
	assert_true(lock_as(writer, 1, 9, 1));
	connection_rollback(of_writer);
	postgresql_backend.close(leaving);
	postgresql_backend.close(writer);
	postgresql_backend.close(connection);
}

/* Which version of a test decides. */

static void announces(struct tx *connection, int64_t instance, int64_t configuration,
	const struct announced_test *tests, size_t count)
{
	struct store_configuration *call = store_configuration_new(NULL, NULL);
	char text[128];

	call->call.holder = instance;
	call->configuration = configuration;
	call->announce = true;
	call->tests = tests;
	call->test_count = count;
	perform(connection, &call->call);
	done(call);
	snprintf(text, sizeof text, "UPDATE agents SET configuration = %lld WHERE instance = %lld",
		(long long)configuration, (long long)instance);
	sql(text);
}

/* "a=7 b=8 ": the configurations that have each test as it is to be run, as that agent reads it. */
static void assert_decided(
	struct tx *connection, int64_t instance, int64_t configuration, const char *expected)
{
	struct store_configuration *call = store_configuration_new(NULL, NULL);
	char text[256] = "";
	size_t length = 0;

	call->call.holder = instance;
	call->configuration = configuration;
	perform(connection, &call->call);
	for (size_t i = 0; i < call->version_count; i++)
		if (call->versions[i].decides)
			length += (size_t)snprintf(text + length, sizeof text - length, "%s=%lld ",
				call->versions[i].name, (long long)call->versions[i].configuration);
	assert_string_equal(text, expected);
	done(call);
}

#define OF(...)                                                                                    \
	(const struct announced_test[]){__VA_ARGS__},                                              \
		sizeof((const struct announced_test[]){__VA_ARGS__}) /                             \
			sizeof(struct announced_test)

static void test_which_version_decides(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct announced_test a7 = {.name = "a", .fingerprint = 7};
	struct announced_test a8 = {.name = "a", .fingerprint = 8};
	struct announced_test same = {.name = "b", .fingerprint = 1};
	struct announced_test newer = {.name = "new", .fingerprint = 1};
	struct announced_test older = {.name = "old", .fingerprint = 1};

	(void)state;
	for (int64_t instance = 1; instance <= 3; instance++)
		end(join(connection, instance));
	announces(connection, 1, 100, OF(a7, same, older));
	assert_decided(connection, 1, 100, ""); /* the others have said nothing yet */
	announces(connection, 2, 100, OF(a7, same, older));
	assert_decided(connection, 1, 100, "");
	announces(connection, 3, 200, OF(a8, same, newer));
	/* That of most; whoever has not got a test has no vote. */
	assert_decided(connection, 1, 100, "a=100 new=200 old=100 ");
	assert_decided(connection, 3, 200, "a=100 new=200 old=100 ");
	/* What an agent has loaded counts before its next turn says so. */
	assert_decided(connection, 2, 200, "a=200 new=200 old=100 ");
	announces(connection, 2, 200, OF(a8, same, newer));
	assert_decided(connection, 1, 100, "a=200 new=200 old=100 ");
	/* A third has the test as one of the others has. */
	announces(connection, 1, 300, OF(a7, same));
	assert_decided(connection, 1, 300, "a=200 new=200 ");

	/* Of equals, what was announced last; of agents that live. */
	sql("UPDATE agents SET gone = 1 WHERE instance = 3");
	sql("UPDATE configurations SET announced = configuration");
	assert_decided(connection, 1, 300, "a=300 new=200 ");
	sql("UPDATE configurations SET announced = 500 - configuration");
	assert_decided(connection, 1, 300, "a=200 new=200 ");
	announces(connection, 1, 200, OF(a8));
	assert_decided(connection, 1, 200, "");
	postgresql_backend.close(connection);
}

/* Threads: each does one thing once all are there. */

struct racer {
	pthread_barrier_t *start;
	struct tx *connection;
	int64_t instance, count;
	bool reap; /* a slow machine takes longer than a lease for a round */
	struct store_turn *turn;
};

static void *race(void *argument)
{
	struct racer *racer = argument;

	racer->turn = turn_of(racer->instance);
	racer->turn->reap = racer->reap;
	racer->turn->take = racer->count;
	pthread_barrier_wait(racer->start);
	perform(racer->connection, &racer->turn->call);
	return NULL;
}

static void race_all(struct racer *racers, unsigned count)
{
	pthread_barrier_t start;
	pthread_t threads[32];

	pthread_barrier_init(&start, NULL, count);
	for (unsigned i = 0; i < count; i++) {
		racers[i].start = &start;
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
}

/* Either the renewal comes first and nothing is taken, or the reaper does and all is. */
static void test_a_late_renewal_meets_a_reaper(void **state)
{
	enum { ROUNDS = 150 };
	NEEDS_SERVER();
	struct racer racers[2];
	int renewed = 0, reaped = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		racers[i] = (struct racer){.connection = connect(), .instance = i + 1};
	for (int round = 0; round < ROUNDS; round++) {
		sql("DELETE FROM agents");
		sql("UPDATE shards SET holder = 0");
		end(join(racers[0].connection, 1));
		end(join(racers[1].connection, 2));
		end(take(racers[0].connection, 1, 256));
		sql("UPDATE agents SET until = renewed - 1 WHERE instance = 1");
		racers[0].count = 0;
		racers[1].count = 256;
		racers[0].reap = racers[1].reap = true;
		race_all(racers, 2);
		renewed += racers[0].turn->renewed;
		reaped += racers[1].turn->reaped > 0;
		if (racers[0].turn->renewed)
			assert_int_equal(sql("SELECT count(*) FROM shards WHERE holder = 1"), 256);
		else
			assert_int_equal(sql("SELECT count(*) FROM shards WHERE holder = 2"), 256);
		assert_true(racers[0].turn->renewed != (racers[1].turn->reaped > 0));
		end(racers[0].turn);
		end(racers[1].turn);
	}
	assert_int_equal(renewed + reaped, ROUNDS);
	for (int i = 0; i < 2; i++)
		postgresql_backend.close(racers[i].connection);
}

/* Each shard goes to one of them, with one new term, however many there are. */
static void test_many_takers(void **state)
{
	enum { TAKERS = 32 };
	NEEDS_SERVER();
	struct racer racers[TAKERS];

	(void)state;
	for (int i = 0; i < TAKERS; i++) {
		racers[i] = (struct racer){
			.connection = connect(), .instance = i + 1, .count = 256 / TAKERS};
		end(join(racers[i].connection, i + 1));
	}
	for (int round = 1; round <= 10; round++) {
		sql("UPDATE shards SET holder = 0");
		race_all(racers, TAKERS);
		for (int i = 0; i < TAKERS; i++)
			end(racers[i].turn);
		/* Those that were locked when somebody came by are left for the next turn. */
		for (int i = 0; i < TAKERS; i++) {
			struct store_turn *turn = turn_of(i + 1);

			perform(racers[i].connection, &turn->call);
			assert_true(held(turn, i + 1) <= 256 / TAKERS);
			turn->take = 256 / TAKERS - held(turn, i + 1);
			perform(racers[i].connection, &turn->call);
			assert_int_equal(held(turn, i + 1), 256 / TAKERS);
			end(turn);
		}
		assert_int_equal(sql("SELECT min(term) * 1000 + max(term) FROM shards"),
			round * 1000 + round);
	}
	for (int i = 0; i < TAKERS; i++)
		postgresql_backend.close(racers[i].connection);
}

static struct store_requests *ask(
	struct tx *connection, int64_t holder, const char *test, int shard, bool take_them)
{
	struct store_requests *call = store_requests_new(NULL, NULL);
	struct run_request *request = arena_alloc(call->call.arena, sizeof *request);

	*request = (struct run_request){.test = test, .shard = shard};
	call->call.holder = holder;
	call->add = request;
	call->add_count = test != NULL;
	call->take = take_them;
	perform(connection, &call->call);
	return call;
}

static void test_runs_are_asked_for(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_requests *call, *again;
	struct store_turn *turn;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	end(take(connection, 1, 256));
	store_call_free(&ask(connection, 2, "db \"read\"\n", 4, false)->call);
	store_call_free(&ask(connection, 2, "db \"read\"\n", 4, false)->call);
	turn = turn_of(1);
	perform(connection, &turn->call);
	assert_int_equal(turn->requests, 1);
	end(turn);
	call = ask(connection, 2, "other", 5, true); /* which holds nothing */
	assert_int_equal(call->found_count, 0);
	store_call_free(&call->call);

	/* They stay until they are begun; what is asked for again meanwhile stays longer. */
	for (int i = 0; i < 2; i++) {
		call = ask(connection, 1, NULL, 0, true);
		assert_int_equal(call->found_count, 2);
		if (i == 0)
			store_call_free(&call->call);
	}
	store_call_free(&ask(connection, 2, "other", 5, false)->call);
	again = store_requests_new(NULL, NULL);
	again->call.holder = 1;
	again->take = true;
	again->begun = call->found;
	again->begun_count = call->found_count;
	perform(connection, &again->call);
	assert_int_equal(again->found_count, 1);
	assert_string_equal(again->found[0].test, "other");
	store_call_free(&call->call);
	store_call_free(&again->call);
	turn = turn_of(1);
	perform(connection, &turn->call);
	assert_int_equal(turn->requests, 1);
	end(turn);

	/* Of a test that is leased by itself, whoever has it is asked. */
	done(move(connection, 1, LEAVES, 4));
	done(move(connection, 2, CLAIMS, 4));
	store_call_free(&ask(connection, 1, "t", 4, false)->call);
	call = ask(connection, 2, NULL, 0, true);
	assert_int_equal(call->found_count, 1);
	assert_string_equal(call->found[0].test, "t");
	store_call_free(&call->call);
	turn = turn_of(2);
	perform(connection, &turn->call);
	assert_int_equal(turn->requests, 1);
	end(turn);
	postgresql_backend.close(connection);
}

static struct store_views *view(
	struct tx *connection, int64_t holder, const char *source, enum view_verdict verdict)
{
	struct store_views *call = store_views_new(NULL, NULL);
	struct source_view *written = arena_alloc(call->call.arena, sizeof *written);

	*written = (struct source_view){
		.source = source, .verdict = verdict, .text = "it is down", .told = {1, 2}};
	call->call.holder = holder;
	call->write = written;
	call->replaces = source != NULL;
	call->write_count = 1;
	perform(connection, &call->call);
	return call;
}

static void test_views(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_views *call;
	struct store_turn *turn;
	int64_t before;

	(void)state;
	end(join(connection, 1));
	end(join(connection, 2));
	store_call_free(&view(connection, 1, "eu", VIEW_UP)->call);
	turn = turn_of(2);
	perform(connection, &turn->call);
	before = turn->views;
	end(turn);
	call = view(connection, 2, "eu", VIEW_DOWN);
	assert_int_equal(call->view_count, 2);
	assert_int_equal(call->views[0].verdict, VIEW_UP);
	assert_false(call->views[0].own);
	assert_int_equal(call->views[1].verdict, VIEW_DOWN);
	assert_true(call->views[1].own);
	assert_int_equal(call->views[1].told[VIEW_STALE], 2);
	assert_string_equal(call->views[1].agent, "eu-1");
	store_call_free(&call->call);
	call = view(connection, 2, "us", VIEW_UP); /* replaces it */
	assert_int_equal(call->view_count, 2);
	assert_string_equal(call->views[1].source, "us");
	store_call_free(&call->call);

	/* Those of an agent that is gone do not count. */
	turn = turn_of(1);
	turn->leave = true;
	perform(connection, &turn->call);
	end(turn);
	turn = turn_of(2);
	perform(connection, &turn->call);
	assert_int_not_equal(turn->views, before);
	end(turn);
	call = view(connection, 2, NULL, VIEW_NONE);
	assert_int_equal(call->view_count, 1);
	store_call_free(&call->call);
	postgresql_backend.close(connection);
}

/* Answers come on the store's threads. */
static _Atomic int answered_turns, answered_others;

static void answered_turn(struct store_call *turn)
{
	assert_false(turn->failed);
	answered_turns++;
	store_call_free(turn);
}

static void answered_other(struct store_configuration *call)
{
	assert_false(call->call.failed);
	answered_others++;
	store_call_free(&call->call);
}

static void post(
	void *loop, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	(void)loop, (void)drop;
	call(argument);
}

static struct store *open_store(void)
{
	struct error error;
	struct store *store = store_open(address, post, NULL, &error);

	if (!store)
		fail_msg("%s", error.text);
	return store;
}

/* A lease is renewed while the announcement of a large configuration takes its time. */
static void test_a_turn_does_not_wait(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct announced_test test = {.name = "t", .fingerprint = 1};
	struct store *store = open_store();
	struct store_configuration *call = store_configuration_new(answered_other, NULL);
	struct store_turn *turn;

	(void)state;
	answered_turns = answered_others = 0;
	end(join(connection, 1));
	assert_true(connection_begin(connection_of(connection), TRANSACTION_PLAIN));
	assert_true(connection_run(connection_of(connection), "LOCK TABLE fingerprints", NULL));
	call->announce = true;
	call->configuration = 7;
	call->tests = &test;
	call->test_count = 1;
	store_submit(store, &call->call);
	wait_until(sql(waiting) == 1);
	turn = turn_of(1);
	turn->call.reply = answered_turn;
	store_submit(store, &turn->call);
	wait_until(answered_turns > 0);
	assert_int_equal(answered_turns, 1);
	assert_int_equal(answered_others, 0);
	connection_rollback(connection_of(connection));
	assert_true(store_close(store));
	assert_int_equal(answered_others, 1);
	postgresql_backend.close(connection);
}

static void *close_store(void *store)
{
	return store_close(store) ? store : NULL;
}

/* What the agent has still to write needs its lease. */
static void test_the_last_call_comes_last(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store *store = open_store();
	struct store_turn *turn = turn_of(1);
	pthread_t closer;
	void *closed;

	(void)state;
	end(join(connection, 1));
	assert_true(connection_begin(connection_of(connection), TRANSACTION_PLAIN));
	assert_true(connection_run(connection_of(connection), "LOCK TABLE schema", NULL));
	store_submit(store, store_probe_new());
	turn->leave = true;
	store_last(store, &turn->call);
	assert_int_equal(pthread_create(&closer, NULL, close_store, store), 0);
	wait_until(sql(waiting) == 1);
	assert_int_equal(sql("SELECT count(*) FROM agents WHERE gone = 0"), 1);
	connection_rollback(connection_of(connection));
	pthread_join(closer, &closed);
	assert_ptr_equal(closed, store);
	assert_int_equal(sql("SELECT count(*) FROM agents WHERE gone = 0"), 0);
	assert_int_equal(sql("SELECT probed FROM schema"), 1);
	/* Transactions have numbers in the order of their first writes. */
	assert_int_equal(sql("SELECT count(*) FROM agents, schema"
			     " WHERE agents.xmin::text::bigint > schema.xmin::text::bigint"),
		1);
	postgresql_backend.close(connection);
}

/* Ids are not in the order of commits: a row with a smaller id than the last is news, too. */
static void test_what_is_new(void **state)
{
	NEEDS_SERVER();
	struct tx *connection = connect();
	struct store_turn *turn;
	int64_t said;

	(void)state;
	end(join(connection, 1));
	sql("INSERT INTO events (id, time, kind) VALUES (12, 1, 10)");
	turn = turn_of(1);
	perform(connection, &turn->call);
	said = turn->said;
	end(turn);
	sql("INSERT INTO events (id, time, kind) VALUES (11, 1, 10)");
	turn = turn_of(1);
	perform(connection, &turn->call);
	assert_int_not_equal(turn->said, said);
	end(turn);
	postgresql_backend.close(connection);
}

/* What the constraints of the tables do not say. */
static void test_check_finds_what_is_wrong(void **state)
{
	NEEDS_SERVER();
	static const char *const problems[] = {"table silences: the next id is already in use",
		"table events: the next id is already in use", "found 255 of 256 shards"};
	struct arena *arena = arena_new();
	struct store_report report;
	struct error error;

	(void)state;
	assert_true(postgresql_backend.check(address, arena, &report, &error));
	assert_int_equal(report.problems.count, 0);
	assert_true(report.size > 0);
	sql("INSERT INTO events (id, time, kind) VALUES (12, 1, 10)");
	sql("INSERT INTO silences (id, matchers, begins, until, created) VALUES (1, '', 1, 2, 1)");
	sql("INSERT INTO deliveries (id, key, receiver, destination, payload, state, attempts,"
	    " created, updated) VALUES (DEFAULT, 'k', 'r', '', '', 1, 0, 1,"
	    " 1)");
	sql("DELETE FROM shards WHERE shard = 7");
	assert_true(postgresql_backend.check(address, arena, &report, &error));
	assert_int_equal(report.deliveries, 1);
	assert_int_equal(report.queued, 1);
	assert_int_equal(report.problems.count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(report.problems.items[i], problems[i]);
	arena_free(arena);
}

int main(void)
{
#define ON_A_DATABASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ON_A_DATABASE(test_one_takes_over_from_another),
		ON_A_DATABASE(test_a_late_renewal),
		ON_A_DATABASE(test_a_lease_that_ends_too_late),
		ON_A_DATABASE(test_leaving),
		ON_A_DATABASE(test_a_writer_is_fenced),
		ON_A_DATABASE(test_a_reader_is_not_fenced),
		ON_A_DATABASE(test_a_test_is_leased_by_itself),
		ON_A_DATABASE(test_a_test_outlives_its_holder),
		ON_A_DATABASE(test_a_test_leaves_while_its_shard_is_taken),
		ON_A_DATABASE(test_a_write_does_not_overtake_a_leaving_test),
		ON_A_DATABASE(test_which_version_decides),
		ON_A_DATABASE(test_a_late_renewal_meets_a_reaper),
		ON_A_DATABASE(test_many_takers),
		ON_A_DATABASE(test_runs_are_asked_for),
		ON_A_DATABASE(test_views),
		ON_A_DATABASE(test_what_is_new),
		ON_A_DATABASE(test_a_turn_does_not_wait),
		ON_A_DATABASE(test_the_last_call_comes_last),
		ON_A_DATABASE(test_check_finds_what_is_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
