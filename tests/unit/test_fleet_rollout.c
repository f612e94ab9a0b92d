/*
 * Agents of one fleet whose configuration is changed agent by agent, at random: they die, sleep and
 * start; their questions are answered late. The database is a model of what the statements do
 * (unit.fleet_turns tests those). No run's result may be recorded if another agent has recorded one
 * since that run began; whoever has a test knows what was last said of its health, and nobody else
 * says something of that; and once nothing happens any more each test is run by one agent, which
 * has the version that decides. An agent that stops holds no
 * test of which no run is in progress.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "agent/base/dict.h"
#include "agent/fleet/tests.h"
#include "tests/unit/random.h"

enum {
	MEMBERS = 4,
	TESTS = 30,
	CONFIGURATIONS = 4,
	AGENTS = 64,
	STEPS = 60000,
	SEEDS = 40,
	UNKNOWN = -1
};

/* A question that is under way: first it is performed, then answered, each some steps later. */
struct pending {
	struct store_call *call;
	int64_t next; /* step */
	bool performed;
};

struct run {
	bool active, dropped;
	int64_t began;  /* step */
	int64_t health; /* of its test, as known when its result was written */
};

struct member {
	struct agent agent;
	struct config_ref config_ref;
	bool lives;
	int64_t asleep;        /* until then */
	int64_t health[TESTS]; /* of those that it runs, what it knows */
	struct alarm *alarms[8];
	int64_t due[8];
	struct pending pending[48];
	struct run runs[TESTS];
};

/* The database. */

struct lease {
	int64_t holder, term;
};

static struct {
	uint64_t seed;
	int64_t now, step, terms;
	struct store_agent agents[AGENTS];
	size_t agent_count;
	struct lease shards[STORE_SHARDS];
	struct lease singles[TESTS];
	bool apart[TESTS];
	int64_t health[TESTS];                                     /* what was said of it last */
	int64_t hashes[CONFIGURATIONS], announced[CONFIGURATIONS]; /* 0: not yet */
	size_t writes, refused, moves;
	int64_t written[TESTS];             /* step, ... */
	const struct member *writer[TESTS]; /* ... by whom */
} database;

static struct member members[MEMBERS];
static struct config configs[CONFIGURATIONS];
static struct arena *named; /* of their tests' names */
static struct dict by_name[CONFIGURATIONS];
static char names[TESTS][8];
/* Configurations have most tests, some in another version. */
static struct test tests[CONFIGURATIONS][TESTS];
static const struct test *lists[CONFIGURATIONS][TESTS];
static size_t counts[CONFIGURATIONS];
static uint64_t chance;
static bool calm; /* nothing happens to the agents any more */

int64_t __wrap_clock_boot(void);
ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags);
int64_t __wrap_clock_monotonic(void);
int64_t __wrap_engine_now(const struct engine *engine);
void __wrap_engine_alarm_aside(struct engine *engine, struct alarm *alarm, int64_t due);
bool __wrap_store_is_shared(const struct store *store);
bool __wrap_store_turn_now(struct store *store, struct store_turn *turn, struct error *error);
void __wrap_store_client_call(struct agent *agent, struct store_call *call);

int64_t __wrap_clock_boot(void)
{
	return database.now;
}

ssize_t __wrap_getrandom(void *buffer, size_t length, unsigned flags)
{
	uint64_t number = random_next(&chance);

	(void)flags;
	assert_int_equal(length, sizeof number);
	memcpy(buffer, &number, sizeof number);
	return (ssize_t)length;
}

int64_t __wrap_clock_monotonic(void)
{
	return database.now;
}

int64_t __wrap_engine_now(const struct engine *engine)
{
	(void)engine;
	return database.now;
}

/* The member is its own engine. */
void __wrap_engine_alarm_aside(struct engine *engine, struct alarm *alarm, int64_t due)
{
	struct member *member = (struct member *)engine;
	size_t at = 0;

	while (member->alarms[at] && member->alarms[at] != alarm)
		at++;
	member->alarms[at] = alarm;
	member->due[at] = due;
}

bool __wrap_store_is_shared(const struct store *store)
{
	(void)store;
	return true;
}

bool __wrap_store_turn_now(struct store *store, struct store_turn *turn, struct error *error)
{
	(void)store, (void)error;
	turn->now = database.now;
	return true;
}

/* Seldom as long as others need for several turns. */
static int64_t some_steps(void)
{
	return database.step + (int64_t)(random_next(&chance) %
					 (!calm && random_next(&chance) % 8 == 0 ? 4000 : 20));
}

void __wrap_store_client_call(struct agent *agent, struct store_call *call)
{
	struct member *member = (struct member *)agent->engine;
	size_t at = 0;

	if (call->work == &store_restore_work) {
		call->reply(call);
		return;
	}
	agent->shared_state->begins(agent, call);
	while (member->pending[at].call)
		at++;
	assert_true(at < sizeof member->pending / sizeof *member->pending);
	member->pending[at] = (struct pending){.call = call, .next = some_steps()};
}

static bool lives(int64_t instance)
{
	for (size_t i = 0; i < database.agent_count; i++)
		if (database.agents[i].instance == instance)
			return database.agents[i].gone == 0;
	return false;
}

static bool is_free(const struct lease *lease)
{
	return lease->holder == 0 || !lives(lease->holder);
}

static struct store_agent *row_of(int64_t instance)
{
	for (size_t i = 0; i < database.agent_count; i++)
		if (database.agents[i].instance == instance)
			return &database.agents[i];
	return NULL;
}

static void take(struct store_turn *turn)
{
	for (int i = 0; i < STORE_SHARDS && lives(turn->self.instance); i++) {
		int shard = (int)((turn->self.instance + i) % STORE_SHARDS);

		if (turn->take == 0 || !is_free(&database.shards[shard]))
			continue;
		database.shards[shard].holder = turn->self.instance;
		database.shards[shard].term++;
		turn->take--;
	}
}

static void reap(const struct store_turn *turn)
{
	for (size_t i = 0; i < database.agent_count; i++)
		if (database.agents[i].gone == 0 &&
			database.agents[i].instance != turn->self.instance &&
			database.agents[i].until <= database.now)
			database.agents[i].gone = database.now;
}

static void perform_turn(struct store_turn *turn)
{
	struct store_agent *row;

	if (turn->join) {
		assert_true(database.agent_count < AGENTS);
		database.agents[database.agent_count++] = turn->self;
	}
	for (int i = 0; i < STORE_SHARDS; i++)
		if (turn->release[i] && database.shards[i].holder == turn->self.instance)
			database.shards[i].holder = 0;
	if (turn->reap)
		reap(turn);
	take(turn);
	row = row_of(turn->self.instance);
	turn->renewed = row->gone == 0;
	if (turn->renewed) {
		row->until = database.now + STORE_LEASE;
		row->configuration = turn->self.configuration;
	}
	turn->now = database.now;
	turn->agents = arena_array(turn->call.arena, AGENTS, sizeof *turn->agents);
	memcpy(turn->agents, database.agents, sizeof database.agents);
	turn->agent_count = database.agent_count;
	for (int i = 0; i < STORE_SHARDS; i++)
		turn->shards[i] =
			(struct store_shard){database.shards[i].holder, database.shards[i].term};
	turn->singles = 0;
	for (int i = 0; i < TESTS; i++)
		turn->singles += database.apart[i] ? database.singles[i].term : 0;
}

static int test_of(const char *name)
{
	return atoi(name + 1);
}

static const struct test *test_in(int configuration, int test)
{
	for (size_t i = 0; i < counts[configuration]; i++)
		if (lists[configuration][i]->name == names[test])
			return lists[configuration][i];
	return NULL;
}

static uint64_t version_of(int configuration, int test)
{
	const struct test *found = test_in(configuration, test);

	return found ? found->fingerprint : 0;
}

/* How many live agents have each configuration, for the one that asks. */
static void count_votes(
	const struct store_configuration *call, int votes[CONFIGURATIONS], int *configurations)
{
	*configurations = 0;
	for (int k = 0; k < CONFIGURATIONS; k++) {
		votes[k] = call->configuration == database.hashes[k];
		for (size_t i = 0; i < database.agent_count; i++)
			votes[k] += database.agents[i].gone == 0 &&
				    database.agents[i].instance != call->call.holder &&
				    database.agents[i].configuration == database.hashes[k];
		votes[k] = database.announced[k] ? votes[k] : 0;
		*configurations += votes[k] > 0;
	}
}

/* The version of a test that decides; 0: nobody has it. *same: all have that. */
static uint64_t decided(const int votes[CONFIGURATIONS], int test, bool *same)
{
	uint64_t best = 0;
	int most = 0;
	int64_t latest = 0;

	*same = true;
	for (int k = 0; k < CONFIGURATIONS; k++) {
		uint64_t version = version_of(k, test);
		int64_t last = 0;
		int sum = 0;

		for (int other = 0; other < CONFIGURATIONS; other++)
			if (votes[other] > 0 && version_of(other, test) == version) {
				sum += votes[other];
				last = database.announced[other] > last ? database.announced[other]
									: last;
			} else if (votes[other] > 0 && votes[k] > 0) {
				*same = false;
			}
		if (votes[k] == 0 || version == 0 || sum < most || (sum == most && last < latest))
			continue;
		best = version;
		most = sum;
		latest = last;
	}
	return best;
}

static void announce(const struct store_configuration *call)
{
	for (int k = 0; k < CONFIGURATIONS; k++)
		if (call->tests[0].fingerprint == (int64_t)lists[k][0]->fingerprint) {
			database.hashes[k] = call->configuration;
			database.announced[k] = ++database.terms;
		}
}

static void move(const struct store_configuration *call)
{
	int64_t self = call->call.holder;

	database.moves +=
		call->leave.count + call->claim.count + call->release.count + call->join.count;
	for (size_t i = 0; i < call->leave.count; i++) {
		int test = test_of(call->leave.items[i]);

		assert_int_equal(call->leave_shards[i], fleet_shard_of_test(names[test]));
		if (database.shards[call->leave_shards[i]].holder != self || database.apart[test])
			continue;
		database.apart[test] = true;
		database.singles[test] = (struct lease){0, ++database.terms};
	}
	for (size_t i = 0; i < call->claim.count; i++) {
		struct lease *single = &database.singles[test_of(call->claim.items[i])];

		if (database.apart[test_of(call->claim.items[i])] && is_free(single) && lives(self))
			*single = (struct lease){self, ++database.terms};
	}
	for (size_t i = 0; i < call->release.count; i++) {
		struct lease *single = &database.singles[test_of(call->release.items[i])];

		if (database.apart[test_of(call->release.items[i])] && single->holder == self)
			*single = (struct lease){0, ++database.terms};
	}
	for (size_t i = 0; i < call->join.count; i++) {
		int test = test_of(call->join.items[i]);

		if (lives(self) &&
			(database.singles[test].holder == self || is_free(&database.singles[test])))
			database.apart[test] = false;
	}
}

static void perform_configuration(struct store_configuration *call)
{
	struct arena *arena = call->call.arena;
	int votes[CONFIGURATIONS], configurations;

	if (call->announce)
		announce(call);
	move(call);
	count_votes(call, votes, &configurations);
	call->singles = arena_array(arena, TESTS, sizeof *call->singles);
	call->versions =
		arena_array(arena, (size_t)TESTS * (size_t)CONFIGURATIONS, sizeof *call->versions);
	for (int i = 0; i < TESTS; i++) {
		const struct lease *single = &database.singles[i];
		bool same;
		uint64_t best = decided(votes, i, &same);

		if (database.apart[i])
			call->singles[call->single_count++] = (struct single){
				names[i], lives(single->holder) ? single->holder : 0, single->term};
		for (int k = 0; k < CONFIGURATIONS && !same; k++)
			if (votes[k] > 0 && version_of(k, i) != 0)
				call->versions[call->version_count++] =
					(struct announced_test){.name = names[i],
						.configuration = database.hashes[k],
						.decides = version_of(k, i) == best};
	}
	if (!call->gains)
		return;
	call->health.moments = arena_array(arena, TESTS, sizeof *call->health.moments);
	call->health.moment_count = TESTS;
	for (int i = 0; i < TESTS; i++)
		call->health.moments[i] = (struct stored_moment){names[i], database.health[i]};
}

/* The end of a run. The call's context is the number of its test. */
static void perform_write(struct member *member, struct store_call *call)
{
	size_t test = (size_t)(uintptr_t)call->context;
	const struct run *run = &member->runs[test];
	const struct lease *lease =
		call->single ? &database.singles[test] : &database.shards[call->shard];

	call->fenced = lease->holder != call->holder || lease->term != call->term ||
		       call->single != database.apart[test];
	database.refused += call->fenced;
	database.writes += !call->fenced;
	if (call->fenced)
		return;
	if (database.writer[test] != member && run->began < database.written[test])
		fail_msg("seed %llu, step %lld: a result of %s that another has recorded meanwhile",
			(unsigned long long)database.seed, (long long)database.step, names[test]);
	if (run->health != database.health[test])
		fail_msg("seed %llu, step %lld: what was said of %s is not known",
			(unsigned long long)database.seed, (long long)database.step, names[test]);
	database.health[test]++;
	if (member->health[test] != UNKNOWN)
		member->health[test] = database.health[test];
	database.written[test] = database.step;
	database.writer[test] = member;
}

static void perform(struct member *member, struct pending *pending)
{
	struct store_call *call = pending->call;

	pending->performed = true;
	pending->next = some_steps();
	if (call->work == &store_turn_work)
		perform_turn((struct store_turn *)call);
	else if (call->work == &store_configuration_work)
		perform_configuration((struct store_configuration *)call);
	else
		perform_write(member, call);
}

/* Agents. */

static void answer(struct member *member, struct pending *pending)
{
	struct store_call *call = pending->call;

	pending->call = NULL;
	member->agent.shared_state->ends(&member->agent, call);
	if (call->work == &store_turn_work || call->work == &store_configuration_work) {
		call->reply(call);
		return;
	}
	member->runs[(size_t)(uintptr_t)call->context] = (struct run){0};
	store_call_free(call);
	fleet_move(&member->agent);
}

static bool runs(const struct member *member, int test)
{
	for (size_t i = 0; i < member->config_ref.test_count; i++)
		if (member->config_ref.tests[i]->name == names[test])
			return fleet_runs(&member->agent, names[test]);
	return false;
}

static void look_again(void *context, const struct health_rows *rows)
{
	struct member *member = context;

	for (int i = 0; i < TESTS; i++) {
		member->runs[i].dropped |= !runs(member, i);
		if (!fleet_has(&member->agent, names[i]))
			member->health[i] = UNKNOWN;
		else if (member->health[i] == UNKNOWN && rows)
			member->health[i] = rows->moments[i].time;
	}
}

static bool is_running(void *context, const char *test)
{
	const struct member *member = context;

	return member->runs[test_of(test)].active;
}

static bool is_busy(void *context, int shard)
{
	const struct member *member = context;

	for (int i = 0; i < TESTS; i++)
		if (member->runs[i].active && fleet_shard_of_test(names[i]) == shard)
			return true;
	return false;
}

static void configure(struct member *member, size_t which)
{
	member->config_ref = (struct config_ref){
		.config = &configs[which], .tests = lists[which], .test_count = counts[which]};
	member->agent.config = &configs[which];
}

static void start(struct member *member, size_t which)
{
	struct error error;

	*member = (struct member){.lives = true};
	member->agent = (struct agent){.config_ref = &member->config_ref,
		.metrics = metrics_new(),
		.engine = (struct engine *)member};
	configure(member, which);
	for (int i = 0; i < TESTS; i++)
		member->health[i] = UNKNOWN;
	assert_true(fleet_new(&member->agent, &error));
	fleet_listen(
		&member->agent, &(struct fleet_listener){.is_busy = is_busy, .context = member});
	fleet_tests_listen(&member->agent, &(struct fleet_runner){look_again, is_running, member});
	fleet_start(&member->agent, NULL, NULL);
	fleet_adopt(&member->agent);
}

/* A write that was under way may have been performed, or not. */
static void kill_it(struct member *member)
{
	for (size_t i = 0; i < sizeof member->pending / sizeof *member->pending; i++)
		if (member->pending[i].call)
			store_call_free(member->pending[i].call);
	fleet_free(&member->agent);
	metrics_free(member->agent.metrics);
	for (int i = 0; i < TESTS; i++)
		if (database.writer[i] == member)
			database.writer[i] = NULL;
	*member = (struct member){0};
}

static void begin_run(struct member *member, int test)
{
	struct run *run = &member->runs[test];

	if (!run->active && runs(member, test) && fleet_may_run(&member->agent, names[test]))
		*run = (struct run){.active = true, .began = database.step};
}

static void end_run(struct member *member, int test)
{
	struct run *run = &member->runs[test];
	struct store_call *call;

	for (size_t i = 0; i < sizeof member->pending / sizeof *member->pending; i++) {
		call = member->pending[i].call;
		if (call && call->work != &store_turn_work &&
			call->work != &store_configuration_work &&
			(int)(intptr_t)call->context == test)
			return;
	}
	if (!run->active)
		return;
	if (run->dropped) {
		*run = (struct run){0};
		fleet_move(&member->agent);
		return;
	}
	run->health = member->health[test];
	call = store_probe_new();
	call->context = (void *)(uintptr_t)test;
	fleet_fence_test(&member->agent, call, names[test]);
	__wrap_store_client_call(&member->agent, call);
}

/* One alarm that is due, or one question that is under way. */
static void go_on(struct member *member)
{
	const size_t most = sizeof member->pending / sizeof *member->pending;
	size_t at = random_next(&chance) % most, i = 0;

	while (i < most && (!member->pending[(at + i) % most].call ||
				   member->pending[(at + i) % most].next > database.step))
		i++;
	if (i < most) {
		struct pending *pending = &member->pending[(at + i) % most];

		if (!pending->performed)
			perform(member, pending);
		else
			answer(member, pending);
		return;
	}
	at = random_next(&chance) % 8;
	if (member->alarms[at] && member->due[at] <= database.now) {
		struct alarm *alarm = member->alarms[at];

		member->due[at] = INT64_MAX;
		alarm->call(alarm->context);
	}
}

static void disturb(struct member *member)
{
	size_t which = random_next(&chance) % CONFIGURATIONS;

	switch (random_next(&chance) % 2500) {
	case 0:
		if (database.agent_count < AGENTS - 2 * MEMBERS) {
			kill_it(member);
			start(member, which);
		}
		break;
	case 1: member->asleep = database.now + (int64_t)(random_next(&chance) % 40000); break;
	case 2:
	case 3:
	case 4:
	case 5:
		configure(member, which);
		fleet_adopt(&member->agent);
		look_again(member, NULL);
		break;
	default: break;
	}
}

static void step(void)
{
	struct member *member = &members[random_next(&chance) % MEMBERS];
	int test = (int)(random_next(&chance) % TESTS);

	database.step++;
	database.now += (int64_t)(random_next(&chance) % 10);
	if (member->asleep > database.now && !calm)
		return;
	if (!calm)
		disturb(member);
	if (random_next(&chance) % 2)
		begin_run(member, test);
	else
		end_run(member, test);
	for (int i = 0; i < 3; i++)
		go_on(member);
}

static void assert_settled(void)
{
	for (int i = 0; i < TESTS; i++) {
		int count = 0, configurations, votes[CONFIGURATIONS] = {0};
		uint64_t version = 0, best;
		bool same;

		for (int k = 0; k < CONFIGURATIONS; k++)
			for (int m = 0; m < MEMBERS; m++)
				votes[k] += members[m].config_ref.tests == lists[k];
		configurations = 0;
		for (int k = 0; k < CONFIGURATIONS; k++)
			configurations += votes[k] > 0;
		best = decided(votes, i, &same);
		for (int m = 0; m < MEMBERS; m++)
			if (runs(&members[m], i)) {
				count++;
				for (int k = 0; k < CONFIGURATIONS; k++)
					if (members[m].config_ref.tests == lists[k])
						version = version_of(k, i);
			}
		assert_int_equal(count, best != 0);
		assert_true(version == best);
		if (configurations == 1)
			assert_false(database.apart[i]);
	}
}

static void test_any_rollout(void **state)
{
	size_t writes = 0, refused = 0, moves = 0;

	(void)state;
	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	named = arena_new();
	for (int i = 0; i < TESTS; i++)
		snprintf(names[i], sizeof names[i], "t%02d", i);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		chance = seed * UINT64_C(0x9e3779b97f4a7c15);
		memset(&database, 0, sizeof database);
		database.seed = seed;
		database.now = 1000000;
		for (int k = 0; k < CONFIGURATIONS; k++) {
			counts[k] = 0;
			by_name[k] = (struct dict){.arena = named};
			configs[k].test_names = &by_name[k];
			for (int i = 0; i < TESTS; i++) {
				uint64_t version = 1 + random_next(&chance) % 2;

				if (i > 0 && random_next(&chance) % 5 == 0)
					continue;
				tests[k][i] = (struct test){.name = names[i],
					.fingerprint = i == 0 ? (uint64_t)k + 1 : version};
				lists[k][counts[k]++] = &tests[k][i];
				*dict_place(&by_name[k], names[i]) = &tests[k][i];
			}
		}
		calm = false;
		for (int m = 0; m < MEMBERS; m++)
			start(&members[m], (size_t)m % CONFIGURATIONS);
		for (int i = 0; i < STEPS; i++)
			step();
		calm = true;
		writes += database.writes;
		refused += database.refused;
		moves += database.moves;
		for (int round = 0; round < 2; round++) {
			for (int i = 0; i < STEPS; i++)
				step();
			assert_settled();
			for (int m = 0; m < MEMBERS; m++) { /* all have the same in the end */
				configure(&members[m], seed % CONFIGURATIONS);
				fleet_adopt(&members[m].agent);
				look_again(&members[m], NULL);
			}
		}
		members[0].agent.stopping = true;
		fleet_move(&members[0].agent);
		for (int i = 0; i < STEPS / 10; i++)
			step();
		for (int i = 0; i < TESTS; i++)
			assert_false(
				database.apart[i] && !members[0].runs[i].active &&
				database.singles[i].holder == fleet_instance(&members[0].agent));
		for (int m = 0; m < MEMBERS; m++)
			kill_it(&members[m]);
	}
	arena_free(named);
	assert_true(writes > (size_t)SEEDS * 400 && moves > (size_t)SEEDS * 150 && refused > SEEDS);
}

int main(void)
{
	const struct CMUnitTest all[] = {cmocka_unit_test(test_any_rollout)};

	return cmocka_run_group_tests(all, NULL, NULL);
}
