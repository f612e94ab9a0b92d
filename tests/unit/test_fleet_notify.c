/*
 * Two agents over one store, with a scripted fleet: who tells what, and what becomes of it when
 * that changes hands. Receivers are played by this program, and the clock jumps.
 */
#include "unit.h"
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/cli/cli.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/deliver/follow_ups.h"
#include "agent/fleet/fleet.h"
#include "agent/fleet/tests.h"
#include "agent/notify/dispatcher.h"
#include "agent/service/letters.h"
#include "tests/unit/folder.h"
#include "tests/unit/levels.h"
#include "tests/unit/scripted_fleet.h"
#include "tests/unit/state_count.h"

#define MINUTE INT64_C(60000)

enum { POSTS = 20, GROUP_WAIT = 30000 };

struct side {
	struct agent agent;
	struct delivery_manager *delivery_manager;
	struct dispatcher *dispatcher;
	struct follow_ups *follow_ups; /* or NULL */
};

struct fixture {
	char folder[64], path[96], state[96];
	struct arena *arena;
	struct config_ref *config_ref;
	struct engine *engine;
	struct store *store;
	struct side one, other;
	struct store_call *answer;
	int64_t began; /* ms: the fleet goes by the real date, which it asks the database for */
	/* What the receiver saw. */
	int64_t times[POSTS]; /* engine_now of each attempt */
	enum maybe_delivered doubts[POSTS];
	char keys[POSTS][96], threads[POSTS][24];
	size_t attempts;
	void (*during)(struct fixture *f); /* called on the loop while the first is under way */
	bool fails;                        /* the first, with a pause of ten minutes */
	size_t edits;
	sem_t over;
};

static struct fixture *current;

static void call_during(void *context)
{
	struct fixture *f = context;

	f->during(f);
	sem_post(&f->over);
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	struct fixture *f = current;
	size_t at = f->attempts++;

	(void)last;
	assert_true(at < POSTS);
	f->times[at] = engine_now(f->engine);
	f->doubts[at] = attempt->maybe_delivered;
	snprintf(f->keys[at], sizeof f->keys[at], "%s", attempt->key);
	snprintf(f->threads[at], sizeof f->threads[at], "%s",
		attempt->thread ? attempt->thread : "");
	if (at == 0 && f->during) {
		engine_post(f->engine, call_during, NULL, f);
		sem_wait(&f->over);
	}
	if (at == 0 && f->fails) {
		attempt->retry = true;
		attempt->retry_after = 10 * MINUTE;
		attempt->maybe_delivered = MAYBE_DELIVERED_NO;
		error_set(attempt->error, ERROR_DATA, "not now");
		return STEP_FAILED;
	}
	attempt->receipt = arena_printf(attempt->arena, "ts%zu", at);
	return STEP_DONE;
}

static enum step follow_up(struct attempt *attempt, const struct reply *last)
{
	(void)last;
	assert_int_equal(attempt->follow_up->kind, FOLLOW_UP_AMEND);
	assert_string_equal(attempt->receipt, "ts0");
	current->edits++;
	return STEP_DONE;
}

static bool always(const void *options)
{
	(void)options;
	return true;
}

const struct notifier *__real_notifier_find(const char *name);
const struct notifier *__wrap_notifier_find(const char *name);

const struct notifier *__wrap_notifier_find(const char *name)
{
	static struct notifier played;

	played = slack_notifier;
	played.step = step;
	played.follow_up = follow_up;
	played.amends = always;
	played.listens = NULL;
	return strcmp(name, "slack") == 0 ? &played : __real_notifier_find(name);
}

static int64_t wall(void)
{
	return current->began + engine_now(current->engine);
}

static int64_t simulated(const struct agent *agent)
{
	(void)agent;
	return wall();
}

static const struct simulation simulation = {.now = simulated};

static void post(
	void *engine, void (*call)(void *argument), void (*drop)(void *argument), void *argument)
{
	engine_post(engine, call, drop, argument);
}

static const char *no_environment(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static void open_side(struct fixture *f, struct side *side)
{
	side->agent = (struct agent){.config_ref = config_ref_hold(f->config_ref),
		.config = f->config_ref->config,
		.schema = &cli_schema,
		.now = wall,
		.simulation = &simulation,
		.engine = f->engine,
		.store = f->store,
		.metrics = metrics_new()};
	fleet_scripted(&side->agent);
	side->delivery_manager = delivery_manager_new(&side->agent);
	side->dispatcher = dispatcher_new(&side->agent);
}

static void close_side(struct side *side)
{
	dispatcher_free(side->dispatcher);
	delivery_manager_free(side->delivery_manager);
	follow_ups_free(side->follow_ups);
	fleet_free(&side->agent);
	metrics_free(side->agent.metrics);
	config_ref_release(side->agent.config_ref);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct config_source source = {.schema = &cli_schema, .env = no_environment};
	struct problems problems;
	struct config *config;
	struct error error;
	FILE *file;

	current = f;
	f->began = clock_wall();
	sem_init(&f->over, 0, 0);
	folder_new(f->folder, sizeof f->folder);
	snprintf(f->path, sizeof f->path, "%s/hunter.yaml", f->folder);
	snprintf(f->state, sizeof f->state, "%s/state.db", f->folder);
	file = fopen(f->path, "w");
	fputs("agent: {group_wait: 30s}\n"
	      "slack: {bot_token: x, channels: [\"#perf\"]}\n"
	      "tests: {db.read: {type: csv, file: a.csv, notify: [slack]}}\n",
		file);
	fclose(file);
	f->arena = arena_new();
	problems = (struct problems){.arena = f->arena};
	config = config_load(f->path, &source, &problems);
	if (!config)
		fail_msg("%s", problems.items[0].text);
	f->config_ref = config_ref_of(config, &(struct strings){0}, &error);
	assert_non_null(f->config_ref);
	f->engine = engine_new(&(struct engine_options){.jobs = 1, .jumping = true}, &error);
	f->store = store_open(f->state, post, f->engine, &error);
	assert_non_null(f->store);
	open_side(f, &f->one);
	open_side(f, &f->other);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	f->one.agent.stopping = f->other.agent.stopping = true;
	store_close(f->store);
	assert_true(engine_free(f->engine));
	close_side(&f->one);
	close_side(&f->other);
	config_ref_release(f->config_ref);
	arena_free(f->arena);
	sem_destroy(&f->over);
	snprintf(command, sizeof command, "rm -rf %s", f->folder);
	free(f);
	return system(command);
}

static void stop(void *context)
{
	struct fixture *f = context;

	engine_stop(f->engine);
}

static void run_for(struct fixture *f, int64_t wait)
{
	engine_after(f->engine, wait, stop, f);
	(void)engine_run(f->engine);
}

static void answered(struct store_call *call)
{
	struct fixture *f = call->context;

	f->answer = call;
	engine_stop(f->engine);
}

/* Asks the store, as an agent that is none of the two. */
static void ask(struct fixture *f, struct store_call *call)
{
	struct agent third = {.engine = f->engine, .store = f->store, .metrics = metrics_new()};

	f->answer = NULL;
	call->reply = answered;
	call->context = f;
	store_client_call(&third, call);
	while (!f->answer)
		(void)engine_run(f->engine);
	assert_false(call->failed);
	store_call_free(call);
	metrics_free(third.metrics);
}

static struct store_record *found(struct fixture *f, const char *metric)
{
	struct store_record *request = store_record_new(NULL, NULL);

	request->records.items = arena_alloc(request->call.arena, sizeof *request->records.items);
	request->records.items[0] = (struct change_record){.item = {.test = "db.read",
								   .metric = metric,
								   .time = f->began - 10 * MINUTE,
								   .spacing = MINUTE,
								   .change = {LEVELS(1, 2)}},
		.series = metric,
		.branch = "",
		.sign = 1,
		.state = CHANGE_CONFIRMED,
		.news = NOTIFY_PENDING,
		.first_seen = wall()};
	request->records.count = 1;
	return request;
}

/* A third agent has found a change. */
static void record(struct fixture *f, const char *metric)
{
	ask(f, &found(f, metric)->call);
}

static struct fleet_shards shards(bool leader, bool receiver)
{
	struct fleet_shards held = {0};

	held.has[FLEET_LEADER] = leader;
	held.has[fleet_shard_of_receiver("slack")] = receiver;
	return held;
}

static void turn(struct side *side, bool leader, bool receiver, int64_t changes, int64_t number)
{
	struct fleet_shards held = shards(leader, receiver);
	struct fleet_news news = {.due = {.changes = changes},
		.due_set = number,
		.last_delivery = number,
		.last_audit = number};

	fleet_script(&side->agent, &held, &news);
}

static int count(const struct fixture *f, const char *what)
{
	return state_count(f->state, what);
}

/* The leader learns of it by its turn, and counts from then; the message is sent by the agent that
 * has the receiver. */
static void test_leader_renders_and_another_sends(void **state)
{
	struct fixture *f = *state;

	turn(&f->one, true, false, 0, 1);
	turn(&f->other, false, true, 0, 1);
	run_for(f, 1000);
	record(f, "p99");
	turn(&f->one, true, false, 1, 2);
	turn(&f->other, false, true, 1, 2);
	run_for(f, GROUP_WAIT - 1000);
	assert_int_equal(count(f, "deliveries"), 0);
	run_for(f, 1500);
	assert_int_equal(count(f, "deliveries WHERE state = 1"), 1);
	assert_int_equal(f->attempts, 0); /* `other` does not know of it yet */
	turn(&f->other, false, true, 0, 3);
	run_for(f, 1000);
	assert_int_equal(f->attempts, 1);
	assert_int_equal(count(f, "deliveries WHERE state = 2"), 1);
	turn(&f->other, false, true, 0, 4);
	turn(&f->one, true, false, 0, 4);
	run_for(f, 5 * MINUTE);
	assert_int_equal(f->attempts, 1);
}

/* The same number of changes as at the last turn, but not the same ones. */
static void test_another_change_with_the_same_numbers(void **state)
{
	struct fixture *f = *state;

	turn(&f->one, true, true, 0, 1);
	run_for(f, 1000);
	record(f, "p99");
	turn(&f->one, true, true, 1, 2);
	run_for(f, GROUP_WAIT + 1000);
	assert_int_equal(f->attempts, 1);
	record(f, "p50");
	turn(&f->one, true, true, 1, 3);
	run_for(f, GROUP_WAIT + 1000);
	assert_int_equal(f->attempts, 2);
	assert_string_equal(f->threads[1], "ts0");
}

static void note(struct store_call *recorded)
{
	agent_recorded(recorded->context, (const struct store_record *)recorded);
	store_call_free(recorded);
}

/* What the leader has found itself is told once, by the round that it waits for. */
static void test_leader_has_found_it(void **state)
{
	struct fixture *f = *state;
	struct store_record *request = found(f, "p99");

	turn(&f->one, true, true, 0, 1);
	run_for(f, 1000);
	request->call.reply = note;
	request->call.context = &f->one.agent;
	store_client_call(&f->one.agent, &request->call);
	run_for(f, 4000);
	turn(&f->one, true, true, 1, 2);
	run_for(f, GROUP_WAIT - 5000);
	assert_int_equal(count(f, "deliveries"), 0);
	run_for(f, 2000);
	assert_int_equal(f->attempts, 1);
	/* The other does nothing about what it has found: the leader does. */
	request = found(f, "p50");
	request->call.reply = note;
	request->call.context = &f->other.agent;
	store_client_call(&f->other.agent, &request->call);
	run_for(f, 5000);
	turn(&f->one, true, true, 1, 3);
	run_for(f, GROUP_WAIT - 1000);
	assert_int_equal(f->attempts, 1);
	run_for(f, 2000);
	assert_int_equal(f->attempts, 2);
}

/* Without a leader nothing is announced; the next leader announces it. */
static void test_leader_changes(void **state)
{
	struct fixture *f = *state;

	turn(&f->one, true, true, 0, 1);
	run_for(f, 1000);
	turn(&f->one, false, true, 0, 1);
	record(f, "p99");
	turn(&f->one, false, true, 1, 2);
	run_for(f, 5 * MINUTE);
	assert_int_equal(count(f, "deliveries"), 0);
	turn(&f->other, true, false, 1, 2);
	run_for(f, GROUP_WAIT + 1000);
	turn(&f->one, false, true, 0, 3);
	run_for(f, 1000);
	assert_int_equal(f->attempts, 1);
	/* The next one continues the thread, though this agent did not begin it. */
	turn(&f->other, false, false, 0, 3);
	turn(&f->one, true, true, 0, 3);
	record(f, "p50");
	turn(&f->one, true, true, 1, 4);
	run_for(f, GROUP_WAIT + 1000);
	assert_int_equal(f->attempts, 2);
	assert_string_equal(f->threads[1], "ts0");
}

/* Has `one` queue a message that it is to send. */
static void queue_one(struct fixture *f, const char *metric)
{
	turn(&f->one, true, true, 0, 1);
	run_for(f, 1000);
	record(f, metric);
	turn(&f->one, true, true, 1, 2);
	run_for(f, GROUP_WAIT + 1000);
}

static void lose(struct fixture *f)
{
	turn(&f->one, true, false, 0, 3);
}

/* Nothing is recorded of what was in hand; the next agent looks whether it was delivered. */
static void test_lost_while_it_was_sent(void **state)
{
	struct fixture *f = *state;

	f->during = lose;
	queue_one(f, "p99");
	assert_int_equal(f->attempts, 1);
	assert_int_equal(count(f, "deliveries WHERE state = 1 AND attempt_started > 0"), 1);
	turn(&f->other, false, true, 0, 3);
	run_for(f, MINUTE);
	assert_int_equal(f->attempts, 2);
	assert_string_equal(f->keys[1], f->keys[0]);
	assert_int_equal(f->doubts[1], MAYBE_DELIVERED_CHECK);
	assert_in_range(f->times[1] - f->times[0], 3000, 5000);
	assert_int_equal(count(f, "deliveries WHERE state = 2 AND receipt = 'ts1'"), 1);
	/* It does not send what the other has sent. */
	turn(&f->other, false, false, 0, 4);
	turn(&f->one, true, true, 0, 4);
	run_for(f, MINUTE);
	assert_int_equal(f->attempts, 2);
}

/* An agent that was only cut off from the database knows what it has sent. */
static void test_lost_and_gained_by_the_same_agent(void **state)
{
	struct fixture *f = *state;

	f->during = lose;
	queue_one(f, "p99");
	assert_int_equal(count(f, "deliveries WHERE state = 1"), 1);
	turn(&f->one, true, true, 0, 4);
	run_for(f, MINUTE);
	assert_int_equal(f->attempts, 1);
	assert_int_equal(count(f, "deliveries WHERE state = 2 AND receipt = 'ts0'"), 1);
}

static void lose_and_gain(struct fixture *f)
{
	turn(&f->one, true, false, 0, 3);
	turn(&f->one, true, true, 0, 4);
}

static void test_lost_and_gained_while_it_was_sent(void **state)
{
	struct fixture *f = *state;

	f->during = lose_and_gain;
	queue_one(f, "p99");
	run_for(f, MINUTE);
	assert_int_equal(f->attempts, 1);
	assert_int_equal(count(f, "deliveries WHERE state = 2 AND receipt = 'ts0'"), 1);
}

static void triage(struct fixture *f, enum triage_state state)
{
	struct store_triage *request = store_triage_new(NULL, NULL);
	static const struct id_range range = {1, 1};

	request->ranges = &range;
	request->range_count = 1;
	request->triage = (struct triage){.state = state, .until = -1};
	request->version = -1;
	request->actor = (struct actor){"ann", "page"};
	request->now = wall();
	ask(f, &request->call);
}

/* A message is edited by the agent that has the receiver, whoever has sent it and wherever somebody
 * said something. */
static void test_edited_by_who_has_the_receiver(void **state)
{
	struct fixture *f = *state;

	f->one.follow_ups = follow_ups_new(&f->one.agent);
	f->other.follow_ups = follow_ups_new(&f->other.agent);
	queue_one(f, "p99");
	assert_int_equal(f->attempts, 1);
	triage(f, TRIAGE_ACKNOWLEDGED);
	turn(&f->other, false, false, 0, 3);
	run_for(f, MINUTE);
	assert_int_equal(f->edits, 1);
	turn(&f->one, true, false, 0, 3);
	triage(f, TRIAGE_EXPECTED);
	turn(&f->one, true, false, 0, 4);
	run_for(f, MINUTE);
	assert_int_equal(f->edits, 1); /* nobody has it */
	turn(&f->other, false, true, 0, 4);
	run_for(f, MINUTE);
	assert_int_equal(f->edits, 2);
	assert_int_equal(count(f, "deliveries WHERE amend IS NOT NULL"), 0);
}

/* A pause that the receiver asked for is kept by the next agent. */
static void test_a_pause_survives(void **state)
{
	struct fixture *f = *state;

	f->fails = true;
	queue_one(f, "p99");
	assert_int_equal(f->attempts, 1);
	turn(&f->one, true, false, 0, 3);
	turn(&f->other, false, true, 0, 3);
	run_for(f, 11 * MINUTE);
	assert_int_equal(f->attempts, 2);
	assert_in_range(f->times[1] - f->times[0], 10 * MINUTE - 100, 10 * MINUTE + 100);
	assert_int_equal(f->doubts[1], MAYBE_DELIVERED_NO);
}

/* Nothing is begun while the agent cannot trust in what it holds. */
static void test_no_sending_without_trust(void **state)
{
	struct fixture *f = *state;

	turn(&f->one, true, true, 0, 1);
	run_for(f, 1000);
	record(f, "p99");
	fleet_script_trust(&f->one.agent, false);
	turn(&f->one, true, true, 1, 2);
	run_for(f, 5 * MINUTE);
	assert_int_equal(count(f, "deliveries"), 0);
	fleet_script_trust(&f->one.agent, true);
	run_for(f, MINUTE);
	assert_int_equal(f->attempts, 1);
}

/* A silence that was said to another agent holds everywhere after the next turn, notices, too. */
static void test_a_silence_said_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct store_silence *request = store_silence_new(NULL, NULL);
	struct silence_target subject = {.test = "db.read"};
	int64_t until;

	turn(&f->one, true, true, 0, 1);
	turn(&f->other, false, false, 0, 1);
	run_for(f, 1000);
	request->silence = (struct silence){
		.matchers = "test=db.read", .from = wall(), .until = wall() + 10 * MINUTE};
	request->actor = (struct actor){"ann", "page"};
	request->now = wall();
	ask(f, &request->call);
	turn(&f->one, true, true, 0, 2);
	turn(&f->other, false, false, 0, 2);
	run_for(f, 1000);
	assert_true(silences_hold(dispatcher_silences(f->one.dispatcher), &subject, &until));
	assert_true(silences_hold(dispatcher_silences(f->other.dispatcher), &subject, &until));
	record(f, "p99");
	turn(&f->one, true, true, 1, 3);
	run_for(f, 5 * MINUTE);
	assert_int_equal(count(f, "deliveries"), 0);
	/* Its end, which another agent sees to. */
	turn(&f->one, false, true, 1, 3);
	turn(&f->other, true, false, 1, 3);
	run_for(f, 6 * MINUTE);
	assert_int_equal(count(f, "silences WHERE summed = 1"), 1);
	turn(&f->one, false, true, 0, 4);
	run_for(f, 1000);
	assert_int_equal(f->attempts, 1);
	assert_int_equal(count(f, "changes WHERE news = 2"), 1);
}

/* Messages about all tests say of those that other agents run what the state has of them. */
static void test_tests_that_run_elsewhere(void **state)
{
	struct fixture *f = *state;
	const struct agent *agent = &f->one.agent;
	const struct test *test = config_test(agent->config, "db.read");
	struct scheduler_test seen = {.test = test, .elsewhere = "", .stale = true};
	struct condition failing = {
		.subject = "test db.read", .kind = CONDITION_TEST, .text = "it fails"};
	struct health_rows health = {.conditions = &failing, .condition_count = 1};
	struct fleet_shards held = shards(true, false);
	struct scheduler_test known;

	fleet_script(&f->one.agent, &held, NULL);
	run_for(f, 1000);
	assert_false(fleet_runs(agent, test->name));
	known = letter_test(&seen, &health);
	assert_true(known.failing && known.down_since == 0 && !known.stale);
	assert_string_equal(known.problem, "it fails");
	failing.kind = CONDITION_STALE;
	failing.subject = "data db.read";
	known = letter_test(&seen, &health);
	assert_true(known.stale && known.down_since == 0 && !known.failing);
	failing.kind = CONDITION_SOURCE;
	failing.subject = "source csv";
	failing.since = 7;
	known = letter_test(&seen, &health);
	assert_true(!known.failing && known.down_since == 7);
	held.has[fleet_shard_of_test(test->name)] = true;
	fleet_script(&f->one.agent, &held, NULL);
	run_for(f, 1000);
	assert_true(fleet_runs(agent, test->name));
	seen.elsewhere = NULL;
	known = letter_test(&seen, &health);
	assert_true(known.stale && known.down_since == 0 && !known.failing);
}

static void test_many_turns_that_say_nothing(void **state)
{
	struct fixture *f = *state;

	turn(&f->one, true, true, 0, 1);
	for (int i = 0; i < 20; i++) {
		turn(&f->one, true, true, 0, 1);
		run_for(f, 5000);
	}
	assert_int_equal(f->attempts, 0);
	assert_true(agent_idle(&f->one.agent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_leader_renders_and_another_sends, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_another_change_with_the_same_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_has_found_it, setup, teardown),
		cmocka_unit_test_setup_teardown(test_leader_changes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_while_it_was_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_lost_and_gained_by_the_same_agent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_lost_and_gained_while_it_was_sent, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_edited_by_who_has_the_receiver, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_pause_survives, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_sending_without_trust, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_silence_said_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tests_that_run_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_turns_that_say_nothing, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
