/* Which shard a test or a receiver belongs to, who gets how many, and what an agent makes of its
 * lease. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/fleet/fleet.h"
#include "tests/unit/folder.h"
#include "tests/unit/scripted_fleet.h"

/* Agents of different versions must agree. */
static void test_shards_never_change(void **state)
{
	(void)state;
	assert_int_equal(fleet_shard_of_test("checkout.latency"), 250);
	assert_int_equal(fleet_shard_of_test("db.read"), 85);
	assert_int_equal(fleet_shard_of_test(""), 32);
	assert_int_equal(fleet_shard_of_receiver("slack"), 52);
	assert_int_equal(fleet_shard_of_receiver("db.read"), 162);
}

/* 10,000 names: 39 a shard. */
static void test_shards_are_even(void **state)
{
	int count[FLEET_SHARDS] = {0};
	char name[32];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "svc.s%04d.latency", i);
		count[fleet_shard_of_test(name)]++;
	}
	for (int i = 0; i < FLEET_SHARDS; i++)
		assert_in_range(count[i], 10, 80);
}

/* Shares: a database of rows, and agents that take their turns one after the other. */

enum { MOST = 70 };

struct rows {
	struct store_turn *turn;
	int gives[MOST]; /* at its next turn */
};

static struct rows rows_new(void)
{
	struct rows rows = {.turn = store_turn_new(NULL, NULL)};

	rows.turn->agents = arena_array(rows.turn->call.arena, MOST, sizeof *rows.turn->agents);
	return rows;
}

static void join(struct rows *rows, int64_t instance)
{
	struct store_turn *turn = rows->turn;

	turn->agents[turn->agent_count++] = (struct store_agent){.instance = instance};
}

static int held(const struct rows *rows, size_t at)
{
	int count = 0;

	for (int i = 0; i < FLEET_SHARDS; i++)
		count += rows->turn->shards[i].holder == rows->turn->agents[at].instance;
	return count;
}

static bool is_free(const struct rows *rows, int shard)
{
	for (size_t i = 0; i < rows->turn->agent_count; i++)
		if (rows->turn->agents[i].instance == rows->turn->shards[shard].holder)
			return rows->turn->agents[i].gone != 0;
	return true;
}

/* What it gives back is decided a turn before; what it takes, it takes at once. */
static void take_turn(struct rows *rows, size_t at)
{
	struct store_turn *turn = rows->turn;
	int64_t self = turn->agents[at].instance;
	struct fleet_plan plan;

	for (int i = 0; i < FLEET_SHARDS && rows->gives[at] > 0; i++)
		if (turn->shards[i].holder == self) {
			turn->shards[i].holder = 0;
			rows->gives[at]--;
		}
	plan = fleet_plan(turn, self, false);
	rows->gives[at] = plan.release;
	for (int i = 0; i < FLEET_SHARDS && plan.take > 0; i++)
		if (is_free(rows, i)) {
			turn->shards[i].holder = self;
			plan.take--;
		}
}

static void check_even(const struct rows *rows, int turns)
{
	int low = FLEET_SHARDS, high = 0, sum = 0;

	for (size_t i = 0; i < rows->turn->agent_count; i++) {
		int count = held(rows, i);

		if (rows->turn->agents[i].gone)
			continue;
		low = count < low ? count : low;
		high = count > high ? count : high;
		sum += count;
	}
	if (sum != FLEET_SHARDS || high - low > 1)
		fail_msg("after %d turns each: %d to %d, %d in all", turns, low, high, sum);
}

/* Everyone is even after four turns, and then stays as it is. */
static void settle(struct rows *rows)
{
	struct store_shard before[FLEET_SHARDS];

	for (int i = 0; i < 4; i++)
		for (size_t at = 0; at < rows->turn->agent_count; at++)
			if (!rows->turn->agents[at].gone)
				take_turn(rows, at);
	check_even(rows, 4);
	memcpy(before, rows->turn->shards, sizeof before);
	for (size_t at = 0; at < rows->turn->agent_count; at++)
		if (!rows->turn->agents[at].gone)
			take_turn(rows, at);
	assert_memory_equal(before, rows->turn->shards, sizeof before);
}

static void test_shares_are_even(void **state)
{
	struct rows rows = rows_new();

	(void)state;
	for (int i = 0; i < 64; i++) {
		join(&rows, 1000 - 7 * i);
		settle(&rows);
	}
	for (size_t i = 0; i < 63; i++) {
		size_t at = i * 37 % 64;

		rows.turn->agents[at].gone = 1;
		rows.gives[at] = 0;
		if (i % 3 == 2 || i > 58)
			settle(&rows);
	}
	store_call_free(&rows.turn->call);
}

/* Only what must move does: of 256, an agent that joins nine others gets 25. */
static void test_a_join_moves_little(void **state)
{
	struct rows rows = rows_new();
	struct store_shard before[FLEET_SHARDS];
	int moved = 0;

	(void)state;
	for (int i = 1; i <= 9; i++)
		join(&rows, i);
	settle(&rows);
	memcpy(before, rows.turn->shards, sizeof before);
	join(&rows, 5000);
	settle(&rows);
	for (int i = 0; i < FLEET_SHARDS; i++)
		moved += before[i].holder != rows.turn->shards[i].holder;
	assert_in_range(moved, 25, 27);
	store_call_free(&rows.turn->call);
}

static void test_one_that_wants_all(void **state)
{
	struct rows rows = rows_new();
	struct fleet_plan plan;

	(void)state;
	join(&rows, 1);
	join(&rows, 2);
	rows.turn->shards[7].holder = 2;
	plan = fleet_plan(rows.turn, 1, true);
	assert_int_equal(plan.take, FLEET_SHARDS - 1);
	assert_int_equal(plan.release, 0);
	assert_int_equal(fleet_plan(rows.turn, 3, true).take, 0); /* it is not one of them */
	store_call_free(&rows.turn->call);
}

/* What the parts are told. */

struct member {
	char folder[64];
	struct config config;
	struct config_ref config_ref;
	struct agent agent;
	int gained, lost, news; /* calls, ... */
	struct fleet_shards last_gained, last_lost;
	bool busy, before_news; /* ... and whether `gained` came before `news` */
};

static void on_gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct member *member = context;

	assert_non_null(restored);
	member->gained++;
	member->last_gained = *shards;
	member->before_news = member->news == 0;
}

static void on_lost(void *context, const struct fleet_shards *shards)
{
	struct member *member = context;

	member->lost++;
	member->last_lost = *shards;
}

static void on_news(void *context, const struct fleet_news *news)
{
	struct member *member = context;

	(void)news;
	member->news++;
}

static void post(
	void *engine, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	engine_post(engine, call, drop, argument);
}

static void listen(struct member *member)
{
	fleet_listen(&member->agent,
		&(struct fleet_listener){
			.gained = on_gained, .lost = on_lost, .news = on_news, .context = member});
	fleet_listen(&member->agent, &(struct fleet_listener){0});
}

static struct member *member_new(void)
{
	struct member *member = calloc(1, sizeof *member);
	struct error error;
	char path[96];

	folder_new(member->folder, sizeof member->folder);
	snprintf(path, sizeof path, "%s/state.db", member->folder);
	member->config_ref.config = &member->config;
	member->agent = (struct agent){.config = &member->config,
		.config_ref = &member->config_ref,
		.now = clock_wall,
		.metrics = metrics_new(),
		.engine = engine_new(&(struct engine_options){.jobs = 1}, &error)};
	member->agent.store = store_open(path, post, member->agent.engine, &error);
	assert_non_null(member->agent.store);
	fleet_scripted(&member->agent);
	listen(member);
	return member;
}

static void member_free(struct member *member)
{
	char command[96];

	store_close(member->agent.store);
	assert_true(engine_free(member->agent.engine));
	fleet_free(&member->agent);
	assert_null(member->agent.fleet);
	metrics_free(member->agent.metrics);
	snprintf(command, sizeof command, "rm -r %s", member->folder);
	assert_int_equal(system(command), 0);
	free(member);
}

static struct fleet_shards shards(int from, int count)
{
	struct fleet_shards set = {0};

	for (int i = from; i < from + count; i++)
		set.has[i] = true;
	return set;
}

static void script(struct member *member, int from, int count, const struct fleet_news *news)
{
	struct fleet_shards held_now = shards(from, count);

	fleet_script(&member->agent, &held_now, news);
}

static void test_parts_are_told(void **state)
{
	struct member *member = member_new();
	struct agent *agent = &member->agent;
	struct fleet_news news = {.last_audit = 7};

	(void)state;
	script(member, 3, 2, &news);
	assert_false(fleet_holds(agent, 3)); /* what is stored is not read yet */
	assert_int_equal(member->gained + member->news, 0);
	assert_true(engine_run(agent->engine));
	assert_true(fleet_holds(agent, 3) && fleet_holds(agent, 4) && !fleet_holds(agent, 5));
	assert_int_equal(member->gained, 1);
	assert_true(member->before_news);
	assert_int_equal(member->news, 1);

	/* Nothing new: nothing is told. Then one goes, one comes. */
	script(member, 3, 2, &news);
	assert_true(engine_run(agent->engine));
	assert_int_equal(member->gained * 10 + member->news, 11);
	script(member, 4, 2, &news);
	assert_int_equal(member->lost, 1);
	assert_true(member->last_lost.has[3] && !member->last_lost.has[4]);
	assert_true(engine_run(agent->engine));
	assert_int_equal(member->gained, 2);
	assert_true(member->last_gained.has[5] && !member->last_gained.has[4]);

	/* Runs that were asked for are told until they are taken. */
	news.requests = 2;
	script(member, 4, 2, &news);
	script(member, 4, 2, &news);
	assert_int_equal(member->news, 3);
	member_free(member);
}

/* What was read before a shard came is not what is stored of it. */
static void test_a_shard_that_comes_while_another_is_read(void **state)
{
	struct member *member = member_new();

	(void)state;
	script(member, 3, 1, NULL);
	script(member, 3, 2, NULL);
	assert_true(engine_run(member->agent.engine));
	assert_int_equal(member->gained, 2);
	assert_true(member->last_gained.has[4] && !member->last_gained.has[3]);

	/* One that goes again meanwhile was never there. */
	script(member, 3, 3, NULL);
	script(member, 3, 2, NULL);
	assert_true(engine_run(member->agent.engine));
	assert_int_equal(member->gained, 2);
	assert_int_equal(member->lost, 0);
	member_free(member);
}

static int64_t fence(const struct member *member, int shard)
{
	struct store_call *call = store_probe_new();
	int64_t term;

	fleet_fence(&member->agent, call, shard);
	term = call->term;
	store_call_free(call);
	return term;
}

static void test_fences_and_trust(void **state)
{
	struct member *member = member_new();
	struct agent *agent = &member->agent;

	(void)state;
	script(member, 3, 1, NULL);
	assert_true(engine_run(agent->engine));
	assert_int_equal(fence(member, 3), 1);
	assert_int_equal(fence(member, 4), -1);
	assert_null(fleet_trouble(agent));
	assert_string_equal(fleet_holder(agent, 3), fleet_name(agent));
	assert_null(fleet_holder(agent, 4));

	/* Without trust nothing begins; what is under way may still be written. */
	fleet_script_trust(agent, false);
	assert_false(fleet_holds(agent, 3));
	assert_int_equal(fence(member, 3), 1);
	assert_non_null(fleet_trouble(agent));
	assert_int_equal(member->lost, 0);
	fleet_script_trust(agent, true);
	assert_true(fleet_holds(agent, 3));
	member_free(member);
}

/* What an agent makes of its lease. The clock is this program's, and so are the answers of the
 * database to its turns. */

static int64_t boot = 1000000;
static bool shared;
static struct store_turn *asked; /* the turn that waits for its answer */

int64_t __wrap_clock_boot(void);
bool __real_store_is_shared(const struct store *store);
bool __wrap_store_is_shared(const struct store *store);
bool __wrap_store_turn_now(struct store *store, struct store_turn *turn, struct error *error);
void __real_store_client_call(struct agent *agent, struct store_call *call);
void __wrap_store_client_call(struct agent *agent, struct store_call *call);

int64_t __wrap_clock_boot(void)
{
	return boot;
}

bool __wrap_store_is_shared(const struct store *store)
{
	return shared || __real_store_is_shared(store);
}

bool __wrap_store_turn_now(struct store *store, struct store_turn *turn, struct error *error)
{
	(void)store, (void)error;
	turn->now = boot;
	return true;
}

void __wrap_store_client_call(struct agent *agent, struct store_call *call)
{
	if (call->work == &store_configuration_work) {
		store_call_free(call); /* not answered: there is one configuration */
		return;
	}
	if (call->work != &store_turn_work) {
		__real_store_client_call(agent, call);
		return;
	}
	asked = (struct store_turn *)call;
	engine_stop(agent->engine);
}

/* An agent that has asked for its first turn. */
static struct member *living_new(void)
{
	struct member *member = member_new();
	struct error error;

	shared = true;
	fleet_free(&member->agent);
	assert_true(fleet_new(&member->agent, &error));
	listen(member);
	fleet_start(&member->agent, NULL, NULL);
	assert_non_null(asked);
	return member;
}

static void living_free(struct member *member)
{
	shared = false;
	if (asked)
		store_call_free(&asked->call);
	asked = NULL;
	member_free(member);
}

static void ask_again(struct member *member)
{
	asked = NULL;
	fleet_hurry(&member->agent);
	engine_hold(member->agent.engine);
	while (!asked)
		(void)engine_run(member->agent.engine);
	engine_release(member->agent.engine);
}

/* The lease is renewed; the agent holds all shards, beside another whose lease ends `until`. */
static void renew(struct member *member, int64_t until)
{
	struct store_turn *turn = asked;

	asked = NULL;
	turn->renewed = true;
	turn->now = boot;
	turn->agents = arena_array(turn->call.arena, 2, sizeof *turn->agents);
	turn->agents[0] = turn->self;
	turn->agents[0].until = boot + STORE_LEASE;
	turn->agents[1] = (struct store_agent){.instance = 1, .name = "other", .until = until};
	turn->agent_count = 2;
	for (int i = 0; i < FLEET_SHARDS; i++)
		turn->shards[i] = (struct store_shard){.holder = turn->self.instance, .term = 1};
	turn->call.reply(&turn->call);
	engine_stop(member->agent.engine);
	while (!agent_idle(&member->agent))
		(void)engine_run(member->agent.engine);
}

/* The lease begins when the database is asked, at the earliest; how long the answer takes is not
 * known to be on which side. */
static void test_trust_begins_with_the_question(void **state)
{
	struct member *member = living_new();

	(void)state;
	boot += 5000;
	renew(member, boot + STORE_LEASE);
	assert_true(fleet_holds(&member->agent, 9));
	boot += STORE_LEASE - 3000 - 5000 - 1;
	assert_true(fleet_holds(&member->agent, 9));
	boot += 1;
	assert_false(fleet_holds(&member->agent, 9));
	assert_non_null(fleet_trouble(&member->agent));
	living_free(member);
}

/* Who is gone stays gone: the agent joins as another one, and holds nothing until then. */
static void test_a_lost_lease_begins_anew(void **state)
{
	struct member *member = living_new();
	struct store_turn *turn;
	int64_t instance = asked->self.instance;

	(void)state;
	assert_true(asked->join);
	renew(member, boot + STORE_LEASE);
	ask_again(member);
	assert_false(asked->join);
	turn = asked;
	asked = NULL;
	turn->now = boot;
	turn->call.reply(&turn->call);
	assert_false(fleet_holds(&member->agent, 9));
	assert_int_equal(member->lost, 1);
	ask_again(member);
	assert_true(asked->join);
	assert_int_not_equal(asked->self.instance, instance);
	living_free(member);
}

/* While the database was away no agent could renew its lease: each has its turn before leases that
 * are over are ended. */
static void test_others_have_their_turn_after_an_outage(void **state)
{
	struct member *member = living_new();
	struct store_turn *failing;

	(void)state;
	renew(member, boot + STORE_LEASE);
	boot += 10000;
	ask_again(member);
	renew(member, boot - 1);
	ask_again(member);
	assert_true(asked->reap); /* it alone has not renewed in time */

	failing = asked;
	asked = NULL;
	failing->call.failed = true;
	failing->call.reply(&failing->call);
	boot += 20000;
	ask_again(member);
	renew(member, boot - 1);
	ask_again(member);
	assert_false(asked->reap);
	boot += 5999;
	renew(member, boot - 1);
	ask_again(member);
	assert_false(asked->reap);
	boot += 1;
	renew(member, boot - 1);
	ask_again(member);
	assert_true(asked->reap);
	living_free(member);
}

/* What is under way about a shard ends before that is handed over, if it ends at all. */
static void test_a_handover_waits_for_what_is_under_way(void **state)
{
	struct member *member = living_new();
	struct store_call *call = store_probe_new(), *endless = store_probe_new();

	(void)state;
	renew(member, boot + STORE_LEASE);
	fleet_fence(&member->agent, call, 200);
	fleet_call_begins(&member->agent, call);
	fleet_fence(&member->agent, endless, 201);
	fleet_call_begins(&member->agent, endless);
	ask_again(member);
	assert_true(asked->release[202]);
	assert_false(asked->release[200] || asked->release[201]);
	renew(member, boot + STORE_LEASE);
	fleet_call_ends(&member->agent, call);
	ask_again(member);
	assert_true(asked->release[200]);
	assert_false(asked->release[201]);
	boot += 30001;
	renew(member, boot + STORE_LEASE);
	ask_again(member);
	assert_true(asked->release[201]);
	fleet_call_ends(&member->agent, endless);
	store_call_free(call);
	store_call_free(endless);
	living_free(member);
}

static void test_alone(void **state)
{
	struct agent agent = {.now = clock_wall};
	struct store_call *call = store_probe_new();

	(void)state;
	assert_true(fleet_holds(&agent, 200));
	fleet_fence(&agent, call, 200);
	assert_int_equal(call->term, 0);
	assert_int_equal(fleet_size(&agent), 1);
	assert_string_equal(fleet_name(&agent), "");
	assert_null(fleet_trouble(&agent));
	store_call_free(call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shards_never_change),
		cmocka_unit_test(test_shards_are_even),
		cmocka_unit_test(test_shares_are_even),
		cmocka_unit_test(test_a_join_moves_little),
		cmocka_unit_test(test_one_that_wants_all),
		cmocka_unit_test(test_parts_are_told),
		cmocka_unit_test(test_a_shard_that_comes_while_another_is_read),
		cmocka_unit_test(test_fences_and_trust),
		cmocka_unit_test(test_trust_begins_with_the_question),
		cmocka_unit_test(test_a_lost_lease_begins_anew),
		cmocka_unit_test(test_others_have_their_turn_after_an_outage),
		cmocka_unit_test(test_a_handover_waits_for_what_is_under_way),
		cmocka_unit_test(test_alone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
