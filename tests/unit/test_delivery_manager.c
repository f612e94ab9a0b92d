/*
 * The courier over days, in no time: the engine's clock jumps. A real store; the receivers are
 * played by this program in place of Slack and stdout: each says what its script holds, then ok.
 */
#include "unit.h"
#include <malloc.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cli/cli.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/deliver/outbox.h"
#include "notifiers/slack/options.h"
#include "tests/unit/folder.h"
#include "tests/unit/state_count.h"

#define HOUR INT64_C(3600000)
#define WALL INT64_C(1700000000000)

enum { POSTS = 4000, LOOKED_AT = 5 };

/* One answer of a receiver. */
struct answer {
	int64_t retry_after;
	bool mend, never, more;
};

struct script {
	struct answer answers[8];
	size_t count;
	struct answer last; /* what it says from then on, if it is `dead` */
	bool dead;
	int64_t times[POSTS]; /* engine_now of each attempt */
	char payloads[POSTS][24], threads[POSTS][24];
	size_t attempts;
};

struct fixture {
	char folder[64], path[96], state[96];
	struct arena *arena;
	struct config *config;
	const struct receiver *receivers; /* of the configuration, as it was read */
	size_t receiver_count;
	struct agent agent;
	struct delivery_manager *delivery_manager;
	struct script slack, printed;
	struct store_call *answer;
};

static struct fixture *current; /* the steps below are called without a context */

static bool has_begun(const char *key);

const struct notifier *__real_notifier_find(const char *name);
const struct notifier *__wrap_notifier_find(const char *name);

static enum step speak(struct script *script, struct attempt *attempt, struct error *error)
{
	size_t at = script->attempts++;
	struct answer answer = at < script->count ? script->answers[at] : script->last;

	assert_true(at < POSTS);
	script->times[at] = engine_now(current->agent.engine);
	snprintf(script->payloads[at], sizeof script->payloads[at], "%s", attempt->payload);
	snprintf(script->threads[at], sizeof script->threads[at], "%s",
		attempt->thread ? attempt->thread : "");
	if (at < LOOKED_AT)
		assert_true(has_begun(attempt->key));
	attempt->maybe_delivered = MAYBE_DELIVERED_NO;
	attempt->retry_after = answer.retry_after;
	if (at >= script->count && !script->dead) {
		attempt->receipt = arena_printf(attempt->arena, "ts%zu", at);
		return STEP_DONE;
	}
	if (answer.more) {
		attempt->receipt = arena_printf(attempt->arena, "part%zu", at);
		attempt->more = true;
		return STEP_DONE;
	}
	attempt->retry = !answer.mend && !answer.never;
	error_set(error, answer.mend ? ERROR_USAGE : ERROR_DATA, "the script says so");
	return STEP_FAILED;
}

static enum step slack_step(struct attempt *attempt, const struct reply *last)
{
	(void)last;
	return speak(&current->slack, attempt, attempt->error);
}

static enum step printed_step(struct attempt *attempt, const struct reply *last)
{
	(void)last;
	return speak(&current->printed, attempt, attempt->error);
}

static bool slack_destinations(
	const void *options, struct arena *arena, struct strings *out, struct error *error)
{
	return notifier_destinations(&slack_notifier, options, arena, out, error);
}

static bool printed_destinations(
	const void *options, struct arena *arena, struct strings *out, struct error *error)
{
	return notifier_destinations(&stdout_notifier, options, arena, out, error);
}

static const struct notifier slack = {.plugin.name = "slack",
	.spacing = 1100,
	.destinations = slack_destinations,
	.step = slack_step};
static const struct notifier printed = {
	.plugin.name = "stdout", .destinations = printed_destinations, .step = printed_step};

const struct notifier *__wrap_notifier_find(const char *name)
{
	if (strcmp(name, "slack") == 0)
		return &slack;
	return strcmp(name, "stdout") == 0 ? &printed : __real_notifier_find(name);
}

static int64_t wall(void)
{
	return WALL + engine_now(current->agent.engine);
}

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

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct problems problems;
	struct config_source source = {.env = no_environment};
	struct error error;
	FILE *file;

	folder_new(f->folder, sizeof f->folder);
	snprintf(f->path, sizeof f->path, "%s/hunter.yaml", f->folder);
	snprintf(f->state, sizeof f->state, "%s/state.db", f->folder);
	file = fopen(f->path, "w");
	fputs("slack: {bot_token: x, channels: [\"#a\", \"#b\"]}\n"
	      "tests: {t: {type: csv, file: a.csv, notify: [slack, stdout]}}\n",
		file);
	fclose(file);
	f->arena = arena_new();
	source.schema = &cli_schema;
	problems = (struct problems){.arena = f->arena};
	f->config = config_load(f->path, &source, &problems);
	assert_non_null(f->config);
	f->receivers = f->config->receivers;
	f->receiver_count = f->config->receiver_count;
	f->agent = (struct agent){.config = f->config, .now = wall};
	f->agent.engine = engine_new(&(struct engine_options){.jobs = 1, .jumping = true}, &error);
	f->agent.metrics = metrics_new();
	f->agent.store = store_open(f->state, post, f->agent.engine, &error);
	assert_non_null(f->agent.store);
	f->delivery_manager = delivery_manager_new(&f->agent);
	*state = current = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char command[128];

	store_close(f->agent.store);
	engine_free(f->agent.engine);
	delivery_manager_free(f->delivery_manager);
	metrics_free(f->agent.metrics);
	config_free(f->config);
	arena_free(f->arena);
	snprintf(command, sizeof command, "rm -rf %s", f->folder);
	free(f);
	return system(command);
}

static void answered(struct store_call *call)
{
	struct fixture *f = call->context;

	f->answer = call;
	engine_stop(f->agent.engine);
}

static struct delivery delivery_to(
	const char *receiver, const char *destination, const char *payload)
{
	return (struct delivery){.key = payload,
		.receiver = receiver,
		.destination = destination,
		.payload = payload,
		.now = wall()};
}

/* Queues the parcel in the store; the courier does not have it yet. */
static void queue(struct fixture *f, struct delivery *delivery)
{
	struct store_queue *request = store_queue_new(NULL, NULL);

	request->deliveries.items = delivery;
	request->deliveries.count = 1;
	request->call.reply = answered;
	request->call.context = f;
	store_client_call(&f->agent, &request->call);
	(void)engine_run(f->agent.engine);
	assert_false(f->answer->failed);
	store_call_free(f->answer);
}

static void send(
	struct fixture *f, const char *receiver, const char *destination, const char *payload)
{
	struct delivery delivery = delivery_to(receiver, destination, payload);

	queue(f, &delivery);
	delivery_manager_add(f->delivery_manager, &(struct delivery_rows){&delivery, 1});
}

/* The store knows that an attempt to send this one is under way. */
static bool has_begun(const char *key)
{
	char what[120];

	snprintf(what, sizeof what,
		"deliveries WHERE key = '%s' AND attempt_started > 0 AND state = 1", key);
	return state_count(current->state, what) == 1;
}

static void assert_metric(struct fixture *f, const char *line)
{
	struct buf text = {0};

	agent_hint(&f->agent, HINT_METRICS);
	metrics_print(f->agent.metrics, METRICS_TEXT, &text);
	assert_non_null(strstr(text.data, line));
	buf_free(&text);
}

static void stop_the_engine(void *context)
{
	struct fixture *f = context;

	engine_stop(f->agent.engine);
}

static void test_in_order_and_spaced(void **state)
{
	struct fixture *f = *state;

	send(f, "slack", "#a", "one");
	send(f, "slack", "#a", "two");
	send(f, "slack", "#b", "three");
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 3);
	assert_string_equal(f->slack.payloads[0], "one");
	assert_string_equal(f->slack.payloads[2], "two");
	assert_true(f->slack.times[1] - f->slack.times[0] < 1100);
	assert_true(f->slack.times[2] - f->slack.times[0] >= 1100);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 2"), 3);
	assert_metric(f, "hunter_deliveries_total{receiver=\"slack\",result=\"sent\"} 3");
}

/* However often it is hinted at: before, while and after it is sent. */
static void test_hinted_at_and_sent_once(void **state)
{
	struct fixture *f = *state;
	struct delivery one = delivery_to("slack", "#a", "one");
	struct delivery two = delivery_to("slack", "#a", "two");

	queue(f, &one);
	agent_hint(&f->agent, HINT_DELIVERIES);
	agent_hint(&f->agent, HINT_DELIVERIES);
	queue(f, &two); /* the engine stops once the store has it */
	agent_hint(&f->agent, HINT_DELIVERIES);
	assert_true(engine_run(f->agent.engine));
	agent_hint(&f->agent, HINT_DELIVERIES);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 2);
	assert_string_equal(f->slack.payloads[0], "one");
	assert_string_equal(f->slack.payloads[1], "two");
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 2"), 2);
}

/* Of what was sent and lost the last are remembered. */
static void test_few_of_those_lost_are_remembered(void **state)
{
	struct fixture *f = *state;
	struct outbox outbox = {.agent = &f->agent};
	struct delivery delivery = delivery_to("slack", "#a", "one");
	size_t count = 0;

	for (delivery.id = 1; delivery.id <= 2 * OUTBOX_SENT; delivery.id++)
		outgoing_lose(outgoing_new(&outbox, &delivery), true);
	for (const struct outgoing *at = outbox.sent; at; at = at->next)
		assert_int_equal(at->delivery.id, 2 * OUTBOX_SENT - (int64_t)count++);
	assert_int_equal(count, OUTBOX_SENT);
	outbox_close(&outbox);
}

/* Ten minutes in one channel; the others go on. */
static void test_a_long_wait_is_obeyed_to_the_second(void **state)
{
	struct fixture *f = *state;

	f->slack.answers[0] = (struct answer){.retry_after = 600000};
	f->slack.count = 1;
	send(f, "slack", "#a", "one");
	send(f, "slack", "#b", "two");
	send(f, "stdout", "", "three");
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 3);
	assert_string_equal(f->slack.payloads[1], "two");
	assert_true(f->slack.times[1] < 600000);
	assert_int_equal(f->slack.times[2] - f->slack.times[0], 600000);
	assert_int_equal(f->printed.attempts, 1);
}

/* As an earlier process has left them. */
static void restore(struct fixture *f, const char *destination, const char *payload, bool begun,
	int64_t not_before)
{
	struct delivery delivery = delivery_to("slack", destination, payload);

	queue(f, &delivery);
	delivery.begun = begun;
	delivery.not_before = not_before;
	delivery_manager_add(f->delivery_manager, &(struct delivery_rows){&delivery, 1});
}

/* What may have arrived may not show yet; what nobody has begun to send waits for nothing. */
static void test_what_had_begun_is_left_alone_for_a_while(void **state)
{
	struct fixture *f = *state;

	restore(f, "#a", "begun", true, 0);
	restore(f, "#b", "fresh", false, 0);
	assert_true(engine_run(f->agent.engine));
	assert_string_equal(f->slack.payloads[0], "fresh");
	assert_string_equal(f->slack.payloads[1], "begun");
	assert_true(f->slack.times[0] < 1000);
	assert_in_range(f->slack.times[1], 3000, 3100);
}

static void test_a_long_wait_outlives_the_process(void **state)
{
	struct fixture *f = *state;

	restore(f, "#a", "one", false, wall() + 600000);
	restore(f, "#b", "two", false, wall() + 240 * HOUR);
	assert_true(engine_run(f->agent.engine));
	assert_in_range(f->slack.times[0], 600000, 600100);
	assert_in_range(f->slack.times[1], HOUR, HOUR + 100);
}

static void test_a_long_wait_is_written_down(void **state)
{
	struct fixture *f = *state;

	f->slack.answers[0] = (struct answer){.retry_after = 240 * HOUR};
	f->slack.count = 1;
	send(f, "slack", "#a", "one");
	engine_after(f->agent.engine, 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state,
				 "deliveries WHERE not_before > 0 AND attempt_started IS NULL"),
		1);
	assert_true(engine_run(f->agent.engine));
	assert_in_range(f->slack.times[1] - f->slack.times[0], HOUR, HOUR + 100);
}

/* A single pass does not wait for that, and does not try either. */
static void test_a_single_pass_respects_a_long_wait(void **state)
{
	struct fixture *f = *state;

	f->agent.once = true;
	restore(f, "#a", "one", false, wall() + 600000);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 0);
	assert_true(f->agent.incomplete);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 1"), 1);
}

/* A message that waits behind another that is tried for an hour is tried for one, too. */
static void test_what_waits_untried_is_not_given_up(void **state)
{
	struct fixture *f = *state;
	size_t tried = 0;

	f->config->agent.give_up_after = HOUR;
	f->slack.dead = true;
	f->slack.last = (struct answer){.retry_after = -1};
	send(f, "slack", "#a", "one");
	send(f, "slack", "#a", "two");
	assert_true(engine_run(f->agent.engine));
	for (size_t i = 0; i < f->slack.attempts; i++)
		tried += strcmp(f->slack.payloads[i], "two") == 0;
	assert_in_range(tried, 12, 30);
	assert_in_range(f->slack.times[f->slack.attempts - 1], 2 * HOUR, 2 * HOUR + 600000);
}

static void test_given_up_after_a_day_and_said(void **state)
{
	struct fixture *f = *state;

	f->slack.dead = true;
	f->slack.last = (struct answer){.retry_after = -1};
	send(f, "slack", "#a", "one");
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 3 AND problem != ''"), 1);
	assert_in_range(f->slack.times[f->slack.attempts - 1], 24 * HOUR, 24 * HOUR + 300000);
	assert_in_range(f->slack.attempts, 250, 350);
	assert_metric(f, "hunter_deliveries_total{receiver=\"slack\",result=\"abandoned\"} 1");
}

static void test_give_up_after_is_a_setting(void **state)
{
	struct fixture *f = *state;

	f->config->agent.give_up_after = HOUR;
	f->slack.dead = true;
	f->slack.last = (struct answer){.retry_after = -1};
	send(f, "slack", "#a", "one");
	assert_true(engine_run(f->agent.engine));
	assert_in_range(f->slack.times[f->slack.attempts - 1], HOUR, HOUR + 300000);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 3"), 1);
}

/* A receiver that is dead takes no memory for what waits, bounded in number, and holds up nobody:
 * what is dropped is the oldest that has not begun. */
static void test_a_dead_receiver_costs_little(void **state)
{
	enum { MANY = DELIVERY_MANAGER_QUEUE + 20 };
	struct fixture *f = *state;
	char payload[24];

	f->slack.dead = true;
	f->slack.last = (struct answer){.retry_after = HOUR};
	for (int i = 0; i < MANY; i++) {
		snprintf(payload, sizeof payload, "p%04d", i);
		send(f, "slack", "#a", payload);
	}
	send(f, "stdout", "", "other");
	engine_after(f->agent.engine, HOUR / 2, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->printed.attempts, 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE receiver = 'slack' AND state = 3"), 20);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload = 'p0000' AND state = 1"), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload = 'p0001' AND state = 3"), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload = 'p0020' AND state = 3"), 1);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE payload = 'p0021' AND state = 1"), 1);
	assert_metric(f, "hunter_deliveries_total{receiver=\"slack\",result=\"dropped\"} 20");
	assert_metric(f, "hunter_delivery_queue_length{receiver=\"slack\"} 1000");
	f->slack.dead = false;
	f->slack.count = 0;
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(
		state_count(f->state, "deliveries WHERE state = 2"), 1 + DELIVERY_MANAGER_QUEUE);
	assert_string_equal(f->slack.payloads[f->slack.attempts - 1], "p1019");
	assert_string_equal(
		f->slack.payloads[f->slack.attempts - DELIVERY_MANAGER_QUEUE + 1], "p0021");
}

/* What this program holds, without SQLite's cache, which has a limit of its own. */
static int64_t memory_used(void)
{
	struct mallinfo2 info = mallinfo2();

	return (int64_t)(info.uordblks + info.hblkhd) - sqlite3_memory_used();
}

static void queue_large(
	struct fixture *f, const char *receiver, const char *destination, int number)
{
	static char payload[8192];
	char key[24];

	snprintf(key, sizeof key, "%s-%d", receiver, number);
	memset(payload, 'x', sizeof payload - 1);
	struct delivery delivery = delivery_to(receiver, destination, payload);
	delivery.key = key;
	queue(f, &delivery);
	delivery_manager_add(f->delivery_manager, &(struct delivery_rows){&delivery, 1});
}

/* Messages of 800 kB wait and the receiver is tried all day: they are in the store and not in
 * memory, which stays as it is, and the others are served. */
static void test_memory_while_a_receiver_is_dead(void **state)
{
	enum { HOURS = 20, WAITING = 100, EACH = 4500, GROWTH = 2000 };
	struct fixture *f = *state;
	int64_t empty, before = 0;

	f->slack.dead = true;
	f->slack.last = (struct answer){.retry_after = -1};
	queue_large(f, "slack", "#a", WAITING); /* with it the store's statements are there */
	empty = memory_used();
	for (int i = 1; i < WAITING; i++)
		queue_large(f, "slack", "#a", i);
	for (int hour = 0; hour < HOURS; hour++) {
		queue_large(f, "stdout", "", hour);
		engine_after(f->agent.engine, HOUR, stop_the_engine, f);
		assert_true(engine_run(f->agent.engine));
		assert_int_equal(f->printed.attempts, hour + 1);
		if (hour == 0)
			before = memory_used();
	}
	print_message("%lld bytes with %d messages, then %lld more\n", (long long)(before - empty),
		WAITING, (long long)(memory_used() - before));
	assert_true(before - empty < WAITING * EACH);
	assert_true(memory_used() - before < GROWTH);
	assert_true(f->slack.attempts > 12 * (HOURS - 1));
	assert_int_equal(state_count(f->state, "deliveries WHERE receiver = 'slack' AND state = 1"),
		WAITING);
}

/* What somebody must mend is kept for as long as it takes. */
static void test_misconfigured_for_a_week(void **state)
{
	struct fixture *f = *state;

	f->slack.dead = true;
	f->slack.last = (struct answer){.mend = true, .retry_after = -1};
	send(f, "slack", "#a", "one");
	engine_after(f->agent.engine, 7 * 24 * HOUR + 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 1"), 1);
	f->slack.dead = false;
	f->slack.count = 0;
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 2"), 1);
}

/* Rounds keep the spacing, and the receipt of each is in the store before the next could matter. */
static void test_several_posts(void **state)
{
	struct fixture *f = *state;

	f->slack.answers[0] = f->slack.answers[1] = (struct answer){.more = true};
	f->slack.answers[2] = (struct answer){.retry_after = 5000};
	f->slack.count = 3;
	send(f, "slack", "#a", "one");
	engine_after(f->agent.engine, 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(
		state_count(f->state, "deliveries WHERE state = 1 AND receipt = 'part0'"), 1);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 4);
	assert_int_equal(f->slack.times[1] - f->slack.times[0], 1100);
	assert_int_equal(f->slack.times[3] - f->slack.times[2], 5000);
	assert_int_equal(
		state_count(f->state, "deliveries WHERE state = 2 AND receipt = 'ts3'"), 1);
}

static void test_continues_what_was_told(void **state)
{
	struct fixture *f = *state;
	struct delivery delivery = delivery_to("slack", "#a", "more");

	send(f, "slack", "#a", "first");
	delivery.thread = "first";
	queue(f, &delivery);
	delivery_manager_add(f->delivery_manager, &(struct delivery_rows){&delivery, 1});
	assert_true(engine_run(f->agent.engine));
	assert_string_equal(f->slack.threads[0], "");
	assert_string_equal(f->slack.threads[1], "ts0");
}

/* Two come back. */
static void lose_receiver(struct fixture *f)
{
	f->config->receivers = agent_receiver(&f->agent, "stdout");
	f->config->receiver_count = 1;
	agent_hint(&f->agent, HINT_CONFIGURATION);
}

static void find_receiver(void *context)
{
	struct fixture *f = context;

	f->config->receivers = f->receivers;
	f->config->receiver_count = f->receiver_count;
	agent_hint(&f->agent, HINT_CONFIGURATION);
}

/* A receiver that one reload has lost and the next one has again gets what waits for it. */
static void test_a_receiver_that_is_back_soon(void **state)
{
	struct fixture *f = *state;

	lose_receiver(f);
	send(f, "slack", "#a", "one");
	send(f, "slack", "#a", "two");
	engine_after(f->agent.engine, 2000, find_receiver, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 2);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 2"), 2);
}

/* While one post is under way the configuration loses the receiver: that post is carried to its
 * end, what waits behind it is given back after a while. */
static void test_a_receiver_that_goes_away(void **state)
{
	struct fixture *f = *state;

	f->slack.answers[0] = (struct answer){.retry_after = 60000};
	f->slack.count = 1;
	send(f, "slack", "#a", "one");
	send(f, "slack", "#a", "two");
	engine_after(f->agent.engine, 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	lose_receiver(f);
	(void)engine_run(f->agent.engine);
	assert_int_equal(f->slack.attempts, 1);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 3"), 2);
	assert_metric(f, "hunter_deliveries_total{receiver=\"slack\",result=\"rerouted\"} 2");
}

/* As if the file said so now. */
static void reload(struct fixture *f, const struct receiver *receivers)
{
	f->config->receivers = receivers;
	agent_hint(&f->agent, HINT_CONFIGURATION);
}

/* A channel that is gone is as a receiver that is gone: what waits for it is given back. */
static void test_a_channel_that_goes_away(void **state)
{
	static const char *const left[] = {"#b"};
	struct fixture *f = *state;
	struct slack_options options = *(const struct slack_options *)f->receivers[0].options;
	struct receiver receivers[] = {f->receivers[0], f->receivers[1]};

	assert_string_equal(receivers[0].name, "slack");
	options.channels = (struct strings){left, 1};
	receivers[0].options = &options;
	f->slack.dead = true;
	f->slack.last = (struct answer){.mend = true, .retry_after = -1};
	send(f, "slack", "#a", "one");
	send(f, "slack", "#a", "two");
	engine_after(f->agent.engine, 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 1);
	reload(f, receivers);
	engine_after(f->agent.engine, HOUR, stop_the_engine, f);
	(void)engine_run(f->agent.engine);
	assert_int_equal(f->slack.attempts, 1);
	assert_int_equal(state_count(f->state, "deliveries WHERE state = 3"), 2);
	f->slack.dead = false;
	f->slack.count = 0;
	send(f, "slack", "#b", "three");
	(void)engine_run(f->agent.engine);
	assert_int_equal(f->slack.attempts, 2);
	reload(f, f->receivers);
}

/* One attempt that fails at 0; at 1 s, the configuration is another. Returns when the next was. */
static int64_t next_after_reload(struct fixture *f, struct answer answer, bool changed)
{
	struct receiver receivers[] = {f->receivers[0], f->receivers[1]};
	int64_t reloaded;

	f->slack.answers[0] = answer;
	f->slack.count = 1;
	receivers[0].fingerprint += changed;
	send(f, "slack", "#a", "one");
	engine_after(f->agent.engine, 1000, stop_the_engine, f);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 1);
	reloaded = engine_now(f->agent.engine);
	reload(f, receivers);
	assert_true(engine_run(f->agent.engine));
	assert_int_equal(f->slack.attempts, 2);
	reload(f, f->receivers);
	return f->slack.times[1] - reloaded;
}

static void test_mended_by_a_reload(void **state)
{
	assert_in_range(
		next_after_reload(*state, (struct answer){.mend = true, .retry_after = -1}, true),
		0, 1100);
}

/* What is read from files (tokens) may be another though the configuration is the same. */
static void test_mended_beside_the_configuration(void **state)
{
	assert_in_range(
		next_after_reload(*state, (struct answer){.mend = true, .retry_after = -1}, false),
		0, 1100);
}

static void test_a_reload_is_no_excuse(void **state)
{
	assert_in_range(next_after_reload(*state, (struct answer){.retry_after = 60000}, true),
		58900, 59100);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* The allocator keeps freed pieces for each thread and counts them as used: as many as there were
 * threads and as they happened to run. Without them the numbers are this program's. */
static void without_caches(char **arguments)
{
	static const char name[] = "GLIBC_TUNABLES", value[] = "glibc.malloc.tcache_count=0";
	const char *set = getenv(name);

	if (set && strcmp(set, value) == 0)
		return;
	setenv(name, value, 1);
	execv("/proc/self/exe", arguments);
	abort();
}

int main(int arguments_given, char **arguments)
{
	(void)arguments_given;
	without_caches(arguments);
	const struct CMUnitTest tests[] = {
		CASE(test_in_order_and_spaced),
		CASE(test_a_long_wait_is_obeyed_to_the_second),
		CASE(test_what_had_begun_is_left_alone_for_a_while),
		CASE(test_a_long_wait_outlives_the_process),
		CASE(test_a_long_wait_is_written_down),
		CASE(test_a_single_pass_respects_a_long_wait),
		CASE(test_what_waits_untried_is_not_given_up),
		CASE(test_given_up_after_a_day_and_said),
		CASE(test_give_up_after_is_a_setting),
		CASE(test_a_dead_receiver_costs_little),
		CASE(test_memory_while_a_receiver_is_dead),
		CASE(test_misconfigured_for_a_week),
		CASE(test_several_posts),
		CASE(test_continues_what_was_told),
		CASE(test_a_receiver_that_is_back_soon),
		CASE(test_a_receiver_that_goes_away),
		CASE(test_a_channel_that_goes_away),
		CASE(test_mended_by_a_reload),
		CASE(test_mended_beside_the_configuration),
		CASE(test_a_reload_is_no_excuse),
		CASE(test_hinted_at_and_sent_once),
		CASE(test_few_of_those_lost_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
