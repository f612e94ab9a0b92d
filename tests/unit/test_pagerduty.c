/*
 * Events for PagerDuty: within its limits, one incident for a message, and its routing key in no
 * state file and no error. The answers are those that its documentation lists.
 */
#include "unit.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "delivery_talk.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */
#define KEY "0123456789abcdef0123456789abcdef"

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&pagerduty_notifier, "", "");

	set_option(fixture, "routing_key", KEY);
	fixture->attempt.now = START;
	*state = fixture;
	return 0;
}

static const struct announcement change = {.id = 7,
	.test = "db.read",
	.metric = "p99",
	.direction = -1,
	.unit = "ms",
	.time = START,
	.runbook = "https://x.test/r",
	.change = {LEVELS(100, 120)}};

static void render_all(struct fixture *fixture, const struct announcement *items, size_t count)
{
	struct message message = {.key = "k", .items = items, .count = count};

	buf_clear(&fixture->out);
	assert_true(notifier_render(&pagerduty_notifier, &message, fixture->options, "",
		&fixture->out, &fixture->error));
	assert_null(strstr(fixture->out.data, KEY));
	fixture->attempt.payload = arena_strdup(fixture->arena, fixture->out.data);
}

static json_t *sent(struct fixture *fixture)
{
	json_t *event = json_loadb(fixture->transfer.body, fixture->transfer.body_length,
		JSON_REJECT_DUPLICATES, NULL);

	assert_non_null(event);
	assert_string_equal(json_string_value(json_object_get(event, "routing_key")), KEY);
	return event;
}

static const char *text_of(json_t *event, const char *part, const char *name)
{
	return json_string_value(
		json_object_get(part ? json_object_get(event, part) : event, name));
}

static void assert_action(struct fixture *fixture, const char *action, const char *key)
{
	json_t *event = sent(fixture);

	assert_string_equal(text_of(event, NULL, "event_action"), action);
	assert_string_equal(text_of(event, NULL, "dedup_key"), key);
	json_decref(event);
}

static void test_event(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {change, change};
	json_t *event;

	items[0].id = 9;
	items[0].metric = "mean";
	items[1].change = (struct change){LEVELS(100, 150)};
	render_all(fixture, items, 2);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "https://events.pagerduty.com/v2/enqueue");
	event = sent(fixture);
	assert_string_equal(text_of(event, NULL, "event_action"), "trigger");
	assert_memory_equal(text_of(event, NULL, "dedup_key"), "hunter-c 7 ", 11);
	assert_string_equal(text_of(event, "payload", "severity"), "error");
	assert_string_equal(text_of(event, "payload", "source"), "db.read");
	assert_string_equal(text_of(event, "payload", "component"), "db.read");
	assert_string_equal(text_of(event, "payload", "class"), "performance regression");
	assert_string_equal(text_of(event, "payload", "timestamp"), "2021-07-02T00:00:00Z");
	assert_string_equal(text_of(event, "payload", "summary"), "2 regressions in db.read");
	assert_string_equal(
		text_of(json_object_get(event, "payload"), "custom_details", "size"), "+50%");
	assert_non_null(strstr(
		text_of(json_object_get(event, "payload"), "custom_details", "changes"), "mean"));
	assert_int_equal(json_array_size(json_object_get(event, "links")), 1);
	json_decref(event);
	assert_int_equal(answer(fixture, 202, "{\"status\":\"success\"}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "open *");
}

/* 1,024 characters of summary, 512 KB in all, whatever names hold. */
static void test_limits(void **state)
{
	enum { COUNT = 3000, LONG = 5000 }; /* three times the lines that a body has at most */
	struct fixture *fixture = *state;
	struct announcement *items = calloc(COUNT, sizeof *items);
	char *name = calloc(1, LONG + 1);
	json_t *event;

	memset(name, 1, LONG);
	for (size_t i = 0; i < COUNT; i++) {
		items[i] = change;
		items[i].id = (int64_t)i + 1;
		items[i].test = name;
		items[i].metric = i % 2 ? name : "\"\\\"\\\"\\";
	}
	render_all(fixture, items, COUNT);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_true(fixture->transfer.body_length < 512 * 1024);
	event = sent(fixture);
	assert_true(strlen(text_of(event, "payload", "summary")) <= 1024);
	assert_true(strlen(text_of(event, NULL, "dedup_key")) <= 255);
	json_decref(event);
	free(name);
	free(items);
}

static enum step follow(
	struct fixture *fixture, const struct announced_change *changes, size_t count)
{
	struct follow_up *follow_up = arena_alloc(fixture->arena, sizeof *follow_up);

	*follow_up =
		(struct follow_up){.kind = FOLLOW_UP_AMEND, .changes = changes, .count = count};
	fixture->attempt.follow_up = follow_up;
	return notifier_step(
		&pagerduty_notifier, &fixture->attempt, NULL, &fixture->transfer, &fixture->error);
}

/* The incident is resolved when all is over, acknowledged when somebody looks after all that is
 * not, and triggered again when something is open again. */
static void test_follow_ups(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {change, change};
	struct announced_change told[2] = {
		{.item = change, .state = ANNOUNCED_RECOVERED}, {.item = change}};
	const char *key;
	json_t *event;

	items[1].id = 8;
	render_all(fixture, items, 2);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	event = sent(fixture);
	key = arena_strdup(fixture->arena, text_of(event, NULL, "dedup_key"));
	json_decref(event);
	told[1].item.id = 8;
	told[1].item.test = "renamed";
	/* What is open already is not triggered for what has only moved. */
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	assert_int_equal(follow(fixture, told, 2), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "open 8");
	assert_int_equal(follow(fixture, told, 2), STEP_DONE);

	told[1].triage.state = TRIAGE_ACKNOWLEDGED;
	assert_int_equal(follow(fixture, told, 2), STEP_TRANSFER);
	assert_action(fixture, "acknowledge", key);
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "acknowledged 8");
	assert_int_equal(follow(fixture, told, 2), STEP_DONE);

	/* The other one is back, and acknowledged, too: somebody has to hear of it. */
	told[0].state = ANNOUNCED_STANDS;
	told[0].triage.state = TRIAGE_ACKNOWLEDGED;
	assert_int_equal(follow(fixture, told, 2), STEP_TRANSFER);
	assert_action(fixture, "trigger", key);
	assert_int_equal(answer(fixture, 202, ""), STEP_TRANSFER);
	assert_action(fixture, "acknowledge", key);
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	told[0].state = ANNOUNCED_RECOVERED;

	told[1].triage.state = TRIAGE_EXPECTED;
	assert_int_equal(follow(fixture, told, 2), STEP_TRANSFER);
	assert_action(fixture, "resolve", key);
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "over");
	assert_int_equal(follow(fixture, told, 2), STEP_DONE);
	told[1].triage.state = TRIAGE_OPEN;
	assert_int_equal(follow(fixture, told, 2), STEP_TRANSFER);
	assert_action(fixture, "trigger", key);
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
	assert_int_equal(follow(fixture, NULL, 0), STEP_TRANSFER);
	assert_action(fixture, "resolve", key);
}

/* A test message leaves no incident behind. */
static void test_message_of_a_test(void **state)
{
	struct fixture *fixture = *state;
	const struct notice notice = {.subject = "hunter-c", .text = "a test", .time = START};
	struct message message = {.key = "k", .kind = MESSAGE_TEST, .notice = &notice};

	assert_true(notifier_render(&pagerduty_notifier, &message, fixture->options, "",
		&fixture->out, &fixture->error));
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_action(fixture, "trigger", "hunter-c test");
	assert_int_equal(answer(fixture, 202, ""), STEP_TRANSFER);
	assert_action(fixture, "resolve", "hunter-c test");
	assert_int_equal(answer(fixture, 202, ""), STEP_DONE);
}

static void test_refusals(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		int status;
		const char *body, *text;
		bool retry;
		enum error_kind kind;
	} cases[] = {
		{400,
			"{\"status\":\"invalid event\",\"message\":\"Event object is invalid\","
			"\"errors\":[\"'payload.summary' is missing or blank\"]}",
			"pagerduty: HTTP status 400: 'payload.summary' is missing or blank", false,
			ERROR_DATA},
		{400,
			"{\"status\":\"invalid event\",\"message\":\"Event object is invalid\","
			"\"errors\":[\"'routing_key' " KEY " is invalid\"]}",
			"pagerduty: HTTP status 400: 'routing_key' "
			"******************************** "
			"is invalid",
			false, ERROR_USAGE},
		{400, "<html>", "pagerduty: HTTP status 400", false, ERROR_DATA},
		{403, "", "pagerduty: HTTP status 403: the credentials are not accepted", false,
			ERROR_USAGE},
		{429, "{\"status\":\"throttle exceeded\"}", "pagerduty: HTTP status 429", true,
			ERROR_DATA},
		{500, "", "pagerduty: HTTP status 500", true, ERROR_DATA},
		{200, "<html>", "pagerduty: the answer is not PagerDuty's", true, ERROR_DATA},
	};

	render_all(fixture, &change, 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_int_equal(answer(fixture, cases[i].status, cases[i].body), STEP_FAILED);
		assert_string_equal(fixture->error.text, cases[i].text);
		assert_int_equal(fixture->attempt.retry, cases[i].retry);
		assert_int_equal(fixture->error.kind, cases[i].kind);
	}
}

static void test_options(void **state)
{
	struct fixture *fixture = *state;
	const struct plugin *plugin = &pagerduty_notifier.plugin;
	struct fixture *other = talk_new(&pagerduty_notifier, "", "{}");
	void *end = other;

	assert_true(plugin->check(fixture->options, &fixture->error));
	set_option(fixture, "url", "http://127.0.0.1:1/v2/enqueue");
	render_all(fixture, &change, 1);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "http://127.0.0.1:1/v2/enqueue");
	set_option(fixture, "url", "events");
	assert_false(plugin->check(fixture->options, &fixture->error));
	assert_false(plugin->check(other->options, &other->error));
	set_option(other, "routing_key_file", "/nonexistent/key");
	assert_true(plugin->check(other->options, &other->error));
	assert_int_equal(begin(other), STEP_FAILED);
	assert_int_equal(other->error.kind, ERROR_USAGE);
	assert_false(other->attempt.retry);
	teardown(&end);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_event),
		CASE(test_limits),
		CASE(test_follow_ups),
		CASE(test_message_of_a_test),
		CASE(test_refusals),
		CASE(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
