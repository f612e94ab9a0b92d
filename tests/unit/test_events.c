/* The events that are kept for those who watch. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/events.h"

struct world {
	struct agent agent;
	struct config_ref config_ref;
	int told;
};

static void note(void *context)
{
	((struct world *)context)->told++;
}

static int64_t some_day(void)
{
	return INT64_C(1700000000000);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;

	world->agent.engine =
		engine_new(&(struct engine_options){.jobs = 1, .jumping = true}, &error);
	world->agent.now = some_day;
	world->config_ref.test_count = 7;
	world->agent.config_ref = &world->config_ref;
	world->agent.events = events_new(&world->agent, note, world);
	*state = world;
	return world->agent.engine ? 0 : -1;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	engine_free(world->agent.engine);
	events_free(world->agent.events);
	free(world);
	return 0;
}

static void nothing(void *context)
{
	(void)context;
}

/* Lets that time pass. */
static void pass(struct world *world, int64_t ms)
{
	engine_after(world->agent.engine, ms, nothing, NULL);
	engine_run(world->agent.engine);
}

static struct event_news after(const struct world *world, uint64_t number)
{
	struct event_news event;

	assert_true(events_next(world->agent.events, number, &event));
	return event;
}

static void test_in_order(void **state)
{
	struct world *world = *state;
	struct event_news event;

	assert_int_equal(events_last(world->agent.events), 0);
	assert_false(events_next(world->agent.events, 0, &event));
	events_test(&world->agent, "a\"b\n", true, "no such file");
	events_test(&world->agent, "b", false, NULL);
	events_reload(&world->agent);
	assert_int_equal(world->told, 3);
	event = after(world, 0);
	assert_int_equal(event.number, 1);
	assert_string_equal(event.kind, "test");
	assert_string_equal(event.data,
		"{\"name\": \"a\\\"b\\n\", \"failing\": true, \"problem\": \"no such file\"}");
	assert_string_equal(
		after(world, 1).data, "{\"name\": \"b\", \"failing\": false, \"problem\": null}");
	assert_string_equal(after(world, 2).kind, "configuration");
	assert_string_equal(after(world, 2).data, "{\"tests\": 7}");
	assert_false(events_next(world->agent.events, 3, &event));
}

static void test_ids(void **state)
{
	struct world *world = *state;
	static const char *const wrong[] = {"", "-", "18bcfe56800", "18bcfe56800-", "18bcfe56800-2",
		"18bcfe56800--1", "18bcfe56800-01", "18bcfe56801-1", "18bcfe56800-1 ",
		"18bcfe56800-18446744073709551617", "18BCFE56800-1"};
	char id[EVENTS_ID];
	uint64_t number;

	events_reload(&world->agent);
	assert_string_equal(events_id(world->agent.events, 1, id), "18bcfe56800-1");
	assert_true(events_number(world->agent.events, id, &number));
	assert_int_equal(number, 1);
	assert_true(events_number(world->agent.events, "18bcfe56800-0", &number));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (events_number(world->agent.events, wrong[i], &number))
			fail_msg("\"%s\" is taken", wrong[i]);
}

/* More than can be told one by one are counted, and told as one at the end of the second. */
static void test_storm(void **state)
{
	struct world *world = *state;
	struct event_news event;

	for (int i = 0; i < 5000; i++)
		events_test(&world->agent, "a", true, "x");
	assert_int_equal(events_last(world->agent.events), EVENTS_A_SECOND);
	pass(world, 1000);
	assert_int_equal(events_last(world->agent.events), EVENTS_A_SECOND + 1);
	event = after(world, EVENTS_A_SECOND);
	assert_string_equal(event.kind, "changes");
	assert_string_equal(event.data, "{\"count\": 4900}");
	events_test(&world->agent, "a", true, "x");
	assert_int_equal(events_last(world->agent.events), EVENTS_A_SECOND + 2);
	pass(world, 5000);
	assert_int_equal(events_last(world->agent.events), EVENTS_A_SECOND + 2);
}

static void test_one_that_is_too_long(void **state)
{
	struct world *world = *state;
	char name[10001];

	memset(name, '\x01', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	events_test(&world->agent, name, true, "x");
	assert_int_equal(events_last(world->agent.events), 0);
	pass(world, 1000);
	assert_string_equal(after(world, 0).data, "{\"count\": 1}");
}

/* Who is behind those that are kept can tell. */
static void test_only_the_last_are_kept(void **state)
{
	struct world *world = *state;
	uint64_t last;

	for (int i = 0; i < EVENTS_KEPT + 10; i++) {
		events_test(&world->agent, "a", true, "x");
		pass(world, 100);
	}
	last = events_last(world->agent.events);
	assert_int_equal(last, EVENTS_KEPT + 10);
	assert_true(events_reaches(world->agent.events, 10));
	assert_false(events_reaches(world->agent.events, 9));
	assert_int_equal(after(world, 0).number, 11);
	assert_int_equal(after(world, last - 1).number, last);
}

static void test_kept_within_their_bytes(void **state)
{
	struct world *world = *state;
	char name[4001];
	uint64_t last, first;

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	for (int i = 0; i < 200; i++) {
		events_test(&world->agent, name, true, "x");
		pass(world, 100);
	}
	last = events_last(world->agent.events);
	first = after(world, 0).number;
	assert_int_equal(last, 200);
	assert_in_range((last - first + 1) * strlen(after(world, last - 1).data),
		EVENTS_BYTES - 5000, EVENTS_BYTES);
}

static void test_what_the_store_has_written(void **state)
{
	struct world *world = *state;
	struct change_record record = {.item = {.id = 3, .test = "t", .metric = "m"},
		.state = CHANGE_CANDIDATE,
		.confirmed = false};
	struct change_record_update updates[] = {
		{.id = 4, .state = CHANGE_WITHDRAWN}, {.id = 5, .state = CHANGE_CANDIDATE}};
	struct store_record call = {.call = {.work = &store_record_work},
		.test = "t",
		.records = {&record, 1},
		.updates = updates,
		.update_count = 2};
	struct store_triage triage = {
		.call = {.work = &store_triage_work}, .records = {&record, 1}};
	struct store_silence silence = {.call = {.work = &store_silence_work},
		.written = {.id = 9, .matchers = "a=\"b\"", .until = 1000}};

	events_store(&world->agent, &call.call);
	assert_string_equal(after(world, 0).data,
		"{\"id\": 3, \"test\": \"t\", \"metric\": \"m\", \"state\": \"candidate\", "
		"\"triage\": "
		"\"open\", \"regression\": false, \"known\": false}");
	assert_string_equal(after(world, 1).data, "{\"id\": 4, \"test\": \"t\", \"metric\": null, "
						  "\"state\": \"withdrawn\", \"triage\": "
						  "null, \"regression\": null, \"known\": true}");
	assert_int_equal(events_last(world->agent.events), 2); /* a candidate that still is one */
	events_store(&world->agent, &triage.call);             /* nothing was changed */
	triage.changed = 1;
	triage.dry_run = true;
	events_store(&world->agent, &triage.call);
	triage.dry_run = false;
	triage.call.failed = true;
	events_store(&world->agent, &triage.call);
	events_store(&world->agent, &silence.call); /* there is none of that id */
	assert_int_equal(events_last(world->agent.events), 2);
	triage.call.failed = false;
	record.triage = (struct triage){
		.state = TRIAGE_EXPECTED, .version = 2, .owner = "ann", .person = "bea"};
	events_store(&world->agent, &triage.call);
	assert_string_equal(after(world, 2).data,
		"{\"id\": 3, \"test\": \"t\", \"metric\": \"m\", \"state\": \"candidate\", "
		"\"triage\": "
		"\"expected\", \"owner\": \"ann\", \"person\": \"bea\", \"version\": 2}");
	silence.found = true;
	events_store(&world->agent, &silence.call);
	assert_string_equal(after(world, 3).data,
		"{\"id\": 9, \"matchers\": \"a=\\\"b\\\"\", \"from\": \"1970-01-01T00:00:00Z\", "
		"\"until\": \"1970-01-01T00:00:01Z\", \"ended\": false, \"owner\": null}");
}

static void test_nobody_watches(void **state)
{
	struct world *world = *state;
	struct agent agent = {.engine = world->agent.engine};

	events_test(&agent, "a", true, "x");
	events_reload(&agent);
	events_store(&agent, &(struct store_call){.work = &store_record_work});
	events_free(NULL);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_in_order),
		WORLD_TEST(test_ids),
		WORLD_TEST(test_storm),
		WORLD_TEST(test_one_that_is_too_long),
		WORLD_TEST(test_only_the_last_are_kept),
		WORLD_TEST(test_kept_within_their_bytes),
		WORLD_TEST(test_what_the_store_has_written),
		WORLD_TEST(test_nobody_watches),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
