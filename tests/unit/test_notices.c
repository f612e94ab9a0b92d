/*
 * Notices over hours, in no time: the engine's clock jumps. A real store, which refuses for a
 * while, and a receiver, played by this program, for which nothing can be rendered for a while.
 */
#include "unit.h"
#include <sqlite3.h>

#include "agent/fleet/fleet.h"
#include "agent_parts.h"

enum { MINUTE = 60000, TOLD_MOST = 200 };

static const char yaml[] = "stdout: {print: plain}\n"
			   "agent: {state: \"%s/state.db\"}\n"
			   "tests:\n"
			   "  t: {type: csv, file: a.csv, notify: [stdout]}\n";

/* What the receiver does and was told. */
static struct {
	bool mute;
	char told[TOLD_MOST][32];
	size_t count;
} receiver;

const struct notifier *__wrap_notifier_find(const char *name);

static bool destinations(
	const void *options, struct arena *arena, struct strings *out, struct error *error)
{
	const char **items = arena_array(arena, 1, sizeof *items);

	(void)options;
	if (receiver.mute)
		return error_set(error, ERROR_USAGE, "nobody knows where to");
	items[0] = "";
	*out = (struct strings){items, 1};
	return true;
}

static bool render(const struct draft *draft)
{
	buf_text(draft->payload, draft->message->notice->text);
	return true;
}

static enum step step(struct attempt *attempt, const struct reply *last)
{
	(void)last;
	assert_true(receiver.count < TOLD_MOST);
	snprintf(receiver.told[receiver.count++], 32, "%s", attempt->payload);
	return STEP_DONE;
}

static const struct notifier player = {
	.plugin.name = "stdout", .destinations = destinations, .render = render, .step = step};

const struct notifier *__wrap_notifier_find(const char *name)
{
	(void)name;
	return &player;
}

static int setup(void **state)
{
	memset(&receiver, 0, sizeof receiver);
	*state = parts_new_with(yaml, true);
	return 0;
}

static int teardown(void **state)
{
	parts_free(*state);
	return 0;
}

static void tell(struct parts *parts, const char *text, bool over)
{
	static const char *const names[] = {"stdout"};
	struct notice notice = {.subject = "s", .text = text, .time = 5, .recovered = over};
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct condition condition = {.subject = "source s",
		.kind = CONDITION_SOURCE,
		.since = 5,
		.text = text,
		.over = over};

	request->health.conditions =
		arena_copy(request->call.arena, &condition, 1, sizeof condition);
	request->health.condition_count = 1;
	fleet_fence(&parts->agent, &request->call, FLEET_LEADER);
	notices_queue(dispatcher_notices(parts->dispatcher), &notice, &(struct strings){names, 1},
		request);
}

static void stop_engine(void *engine)
{
	engine_stop(engine);
}

static void pass_time(struct parts *parts, int64_t length)
{
	engine_after(parts->agent.engine, length, stop_engine, parts->agent.engine);
	assert_true(engine_run(parts->agent.engine));
}

static void database(const struct parts *parts, const char *sql)
{
	sqlite3 *database;

	assert_int_equal(sqlite3_open(parts->state, &database), SQLITE_OK);
	assert_int_equal(sqlite3_exec(database, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(database);
}

static int64_t count(const struct parts *parts, const char *sql)
{
	sqlite3 *database;
	sqlite3_stmt *statement;
	int64_t number;

	assert_int_equal(sqlite3_open(parts->state, &database), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return number;
}

/* What could not be written is told once it can be, before what came after. */
static void test_a_receiver_that_is_misconfigured(void **state)
{
	struct parts *parts = *state;

	receiver.mute = true;
	tell(parts, "down", false);
	pass_time(parts, MINUTE);
	assert_int_equal(receiver.count, 0);
	assert_int_equal(count(parts, "SELECT count(*) FROM conditions"), 1);
	pass_time(parts, 20 * MINUTE);
	assert_int_equal(receiver.count, 0);
	receiver.mute = false;
	tell(parts, "up", true);
	pass_time(parts, 20 * MINUTE);
	assert_int_equal(receiver.count, 2);
	assert_string_equal(receiver.told[0], "down");
	assert_string_equal(receiver.told[1], "up");
	assert_int_equal(count(parts, "SELECT count(*) FROM conditions"), 0);
}

/* Nobody has to say anything more for that. */
static void test_told_later(void **state)
{
	struct parts *parts = *state;

	receiver.mute = true;
	tell(parts, "down", false);
	pass_time(parts, MINUTE);
	receiver.mute = false;
	pass_time(parts, 5 * MINUTE);
	assert_int_equal(receiver.count, 1);
}

/* The oldest are dropped. */
static void test_what_waits_is_bounded(void **state)
{
	enum { MANY = 150, KEPT = 100 };
	struct parts *parts = *state;
	char text[16];

	receiver.mute = true;
	for (int i = 0; i < MANY; i++) {
		snprintf(text, sizeof text, "%d", i);
		tell(parts, text, false);
	}
	receiver.mute = false;
	pass_time(parts, 6 * MINUTE);
	assert_int_equal(receiver.count, KEPT);
	assert_string_equal(receiver.told[0], "50");
	assert_string_equal(receiver.told[KEPT - 1], "149");
}

/* Notice and condition are stored together or not at all, in order, and once the store can. */
static void test_a_store_that_refuses(void **state)
{
	struct parts *parts = *state;

	database(parts, "CREATE TRIGGER refuse BEFORE DELETE ON conditions BEGIN"
			" SELECT raise(ABORT, 'no'); END");
	tell(parts, "down", false);
	pass_time(parts, 1000);
	tell(parts, "up", true);
	tell(parts, "down again", false);
	pass_time(parts, MINUTE);
	assert_int_equal(receiver.count, 1);
	assert_int_equal(count(parts, "SELECT count(*) FROM deliveries"), 1);
	database(parts, "DROP TRIGGER refuse");
	pass_time(parts, MINUTE);
	assert_int_equal(receiver.count, 3);
	assert_string_equal(receiver.told[1], "up");
	assert_string_equal(receiver.told[2], "down again");
	assert_int_equal(
		count(parts, "SELECT count(*) FROM conditions WHERE text = 'down again'"), 1);
}

/* What the program ends with was neither told nor stored, so the next one tells it. */
static void test_what_is_lost_is_lost_whole(void **state)
{
	struct parts *parts = *state;

	database(parts, "CREATE TRIGGER refuse BEFORE INSERT ON deliveries BEGIN"
			" SELECT raise(ABORT, 'no'); END");
	tell(parts, "down", false);
	pass_time(parts, MINUTE);
	assert_int_equal(count(parts, "SELECT count(*) FROM conditions"), 0);
	assert_int_equal(receiver.count, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void refused(struct store_triage *call)
{
	bool *failed = call->call.context;

	*failed = call->call.failed && call->call.error->kind == ERROR_USAGE;
	store_call_free(&call->call);
}

/* What a client should not have asked says nothing about the store; nor is a failure over by it. */
static void test_a_mistake_is_no_failure(void **state)
{
	struct parts *parts = *state;
	struct agent *agent = &parts->agent;

	for (int kind = ERROR_NONE; kind <= ERROR_STATE; kind += ERROR_STATE) {
		bool failed = false;

		agent->store_error.kind = (enum error_kind)kind;
		store_client_call(agent, &store_triage_new(refused, &failed)->call);
		pass_time(parts, 1);
		assert_true(failed);
		assert_int_equal(agent->store_error.kind, kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_receiver_that_is_misconfigured),
		CASE(test_told_later),
		CASE(test_what_waits_is_bounded),
		CASE(test_a_store_that_refuses),
		CASE(test_what_is_lost_is_lost_whole),
		cmocka_unit_test_setup_teardown(test_a_mistake_is_no_failure, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
