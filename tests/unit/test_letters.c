/*
 * letters: one that cannot be rendered holds no other up.
 */
#include "unit.h"

#include "agent/service/letters.h"
#include "tests/unit/agent_parts.h"

static struct engine *engine;
static size_t failed, sent;

bool __wrap_notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request);
bool __wrap_notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request)
{
	bool fails = strcmp(receiver->name, "broken") == 0;

	(void)notices;
	assert_int_equal(message->kind, MESSAGE_HEARTBEAT);
	store_call_free(&request->call);
	failed += fails;
	sent += !fails;
	if (sent > 0)
		engine_stop(engine);
	return !fails;
}

static void stop(void *context)
{
	engine_stop(context);
}

static void test_one_that_fails(void **state)
{
	struct parts *parts =
		parts_new("agent: {state: \"%s/state.db\", interval: 1h}\n"
			  "tests: {a: {type: csv, file: \"%s/none.csv\", time_column: time}}\n"
			  "receivers:\n"
			  "  broken: {stdout: {heartbeat: weekly}}\n"
			  "  whole: {stdout: {heartbeat: weekly}}\n");
	struct letters *letters = letters_new(&parts->agent, parts->dispatcher, parts->scheduler);
	struct store_restore *restored = store_restore_new(NULL, NULL);

	(void)state;
	engine = parts->agent.engine;
	scheduler_start(parts->scheduler, restored);
	store_call_free(&restored->call);
	letters_look(letters);
	engine_after(engine, 60000, stop, engine);
	assert_true(engine_run(engine));
	assert_int_equal(failed, 1);
	assert_int_equal(sent, 1);
	parts_free(parts);
	letters_free(letters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
