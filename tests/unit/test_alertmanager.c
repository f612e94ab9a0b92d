/*
 * Alerts for Alertmanager: valid labels that stay, ends that follow the state, all instances. The
 * real one answers in tests/e2e/test_alertmanager.py.
 */
#include "unit.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "delivery_talk.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */
#define MINUTE INT64_C(60000)
#define DAY (1440 * MINUTE)

static const char *const labels_of_alerts[] = {
	"alertname", "test", "metric", "verdict", "severity", "change", "environment", "owner"};

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&alertmanager_notifier, "http://am1:9093/x/", "");

	set_option(fixture, "urls", "http://am1:9093/x/,http://am2:9093");
	fixture->attempt.now = START;
	*state = fixture;
	return 0;
}

static const struct announcement change = {.id = 7,
	.test = "db.read",
	.metric =
		"p99{region=\"eu\",http-code=\"200\",test=\"x\",9lives=\"a\\\"b\",http_code=\"2\"}",
	.direction = -1,
	.unit = "ms",
	.time = START - DAY,
	.environment = "perf7",
	.change = {LEVELS(100, 120)}};

static void render_all(struct fixture *fixture, const struct announcement *items, size_t count)
{
	struct message message = {.key = "k", .items = items, .count = count};

	buf_clear(&fixture->out);
	assert_true(notifier_render(&alertmanager_notifier, &message, fixture->options, "",
		&fixture->out, &fixture->error));
	fixture->attempt.payload =
		arena_strdup(fixture->arena, fixture->out.data ? fixture->out.data : "");
}

/* The alerts of the request. */
static json_t *sent(struct fixture *fixture)
{
	json_t *alerts = json_loadb(fixture->transfer.body, fixture->transfer.body_length,
		JSON_REJECT_DUPLICATES, NULL);

	assert_true(json_is_array(alerts));
	return alerts;
}

static const char *text_of(json_t *alerts, size_t index, const char *part, const char *name)
{
	const json_t *alert = json_array_get(alerts, index);

	return json_string_value(
		json_object_get(part ? json_object_get(alert, part) : alert, name));
}

static void test_labels(void **state)
{
	struct fixture *fixture = *state;
	json_t *alerts;

	set_option(fixture, "severity", "critical");
	render_all(fixture, &change, 1);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "http://am1:9093/x/api/v2/alerts");
	alerts = sent(fixture);
	assert_int_equal(json_array_size(alerts), 1);
	assert_string_equal(text_of(alerts, 0, "labels", "alertname"), "PerformanceRegression");
	assert_string_equal(text_of(alerts, 0, "labels", "severity"), "critical");
	assert_string_equal(text_of(alerts, 0, "labels", "metric"), "p99");
	assert_string_equal(text_of(alerts, 0, "labels", "change"), "7");
	assert_string_equal(text_of(alerts, 0, "labels", "region"), "eu");
	assert_string_equal(text_of(alerts, 0, "labels", "http_code"), "200");
	assert_string_equal(text_of(alerts, 0, "labels", "test"), "db.read");
	assert_string_equal(text_of(alerts, 0, "labels", "exported_test"), "x");
	assert_string_equal(text_of(alerts, 0, "labels", "_9lives"), "a\"b");
	assert_string_equal(text_of(alerts, 0, "labels", "environment"), "perf7");
	assert_null(text_of(alerts, 0, "labels", "owner"));
	assert_string_equal(text_of(alerts, 0, "annotations", "since"), "2021-07-01T00:00:00Z");
	assert_string_equal(text_of(alerts, 0, "annotations", "before"), "100 ms");
	assert_string_equal(text_of(alerts, 0, NULL, "startsAt"), "2021-07-02T00:00:00Z");
	assert_string_equal(text_of(alerts, 0, NULL, "endsAt"), "2021-07-02T00:20:00Z");
	json_decref(alerts);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1625184000000");
}

/* What names hold never breaks the document, and no label is empty. */
static void test_names_from_outside(void **state)
{
	struct fixture *fixture = *state;
	static const char *const names[] = {"", "{", "{}", "p{web1.eu}", "p{a=\"}", "p{=\"x\"}",
		"p{a=\"\"}", "\x1b\xff\"\\\n", "p{\xc3\xa4=\"\xc3\xa4\"}"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct announcement item = change;
		json_t *alerts;
		const char *name;
		json_t *value;

		item.metric = names[i];
		render_all(fixture, &item, 1);
		assert_int_equal(begin(fixture), STEP_TRANSFER);
		alerts = sent(fixture);
		json_object_foreach(
			json_object_get(json_array_get(alerts, 0), "labels"), name, value)
		{
			assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"
						      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
				strlen(name));
			assert_true(json_string_length(value) > 0);
		}
		json_decref(alerts);
	}
}

/* The worst thousand; the others are counted. */
static void test_many(void **state)
{
	enum { COUNT = 1500 };
	struct fixture *fixture = *state;
	struct announcement *items = calloc(COUNT, sizeof *items);
	json_t *alerts;

	for (size_t i = 0; i < COUNT; i++) {
		items[i] = change;
		items[i].id = (int64_t)i + 1;
	}
	render_all(fixture, items, COUNT);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_int_equal(json_array_size(alerts), 1000);
	assert_memory_equal(text_of(alerts, 0, "annotations", "left_out"), "500 more", 8);
	json_decref(alerts);
	free(items);
}

static enum step follow(struct fixture *fixture, enum follow_up_kind kind,
	const struct announced_change *changes, size_t count)
{
	struct follow_up *follow_up = arena_alloc(fixture->arena, sizeof *follow_up);

	*follow_up = (struct follow_up){.kind = kind, .changes = changes, .count = count};
	fixture->attempt.follow_up = follow_up;
	return notifier_step(&alertmanager_notifier, &fixture->attempt, NULL, &fixture->transfer,
		&fixture->error);
}

/* Labels stay, whatever the change's have become; what is over ends, and what returns fires. */
static void test_follow_ups(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {change, change, change};
	struct announced_change told[2];
	json_t *alerts, *first;

	items[1].id = 8;
	items[2].id = 9;
	render_all(fixture, items, 3);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	first = sent(fixture);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	told[0] = (struct announced_change){.item = items[0]};
	told[1] = (struct announced_change){.item = items[1], .state = ANNOUNCED_RECOVERED};
	told[0].item.test = "renamed";
	told[0].item.change.level_after = 130;
	fixture->attempt.now = START + 5 * MINUTE;
	assert_int_equal(follow(fixture, FOLLOW_UP_AMEND, told, 2), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_int_equal(json_array_size(alerts), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(json_equal(json_object_get(json_array_get(alerts, i), "labels"),
			json_object_get(json_array_get(first, i), "labels")));
		assert_string_equal(text_of(alerts, i, NULL, "startsAt"), "2021-07-02T00:00:00Z");
	}
	assert_string_equal(text_of(alerts, 0, "annotations", "after"), "130 ms");
	assert_string_equal(text_of(alerts, 0, NULL, "endsAt"), "2021-07-02T00:25:00Z");
	assert_string_equal(text_of(alerts, 1, NULL, "endsAt"), "2021-07-02T00:05:00Z");
	/* 9 is not in the state any more. */
	assert_string_equal(text_of(alerts, 2, NULL, "endsAt"), "2021-07-02T00:05:00Z");
	json_decref(alerts);

	static const struct {
		enum triage_state state;
		bool over;
	} triages[] = {{TRIAGE_ACKNOWLEDGED, false}, {TRIAGE_EXPECTED, true},
		{TRIAGE_IGNORED, true}, {TRIAGE_INFRA, true}, {TRIAGE_FALSE, true},
		{TRIAGE_FIXED, true}, {TRIAGE_OPEN, false}};
	for (size_t i = 0; i < sizeof triages / sizeof *triages; i++) {
		told[0].triage =
			(struct triage){.state = triages[i].state, .version = 1, .person = "ann"};
		assert_int_equal(follow(fixture, FOLLOW_UP_AMEND, told, 1), STEP_TRANSFER);
		alerts = sent(fixture);
		assert_string_equal(text_of(alerts, 0, NULL, "endsAt"),
			triages[i].over ? "2021-07-02T00:05:00Z" : "2021-07-02T00:25:00Z");
		assert_non_null(strstr(text_of(alerts, 0, "annotations", "status"), "by ann"));
		json_decref(alerts);
	}
	json_decref(first);
}

/* It fires for as long as `firing_for` says, even if it is sent again. */
static void test_firing_for(void **state)
{
	struct fixture *fixture = *state;
	const struct announced_change told = {.item = change};
	json_t *alerts;

	render_all(fixture, &change, 1);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	fixture->attempt.now = START + 7 * DAY - MINUTE;
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_string_equal(text_of(alerts, 0, NULL, "endsAt"), "2021-07-09T00:00:00Z");
	assert_memory_equal(
		text_of(alerts, 0, "annotations", "firing_until"), "2021-07-09T00:00:00Z:", 21);
	json_decref(alerts);
	fixture->attempt.now = START + 7 * DAY;
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_FAILED);
	assert_false(fixture->attempt.retry);
	assert_true(fixture->attempt.follow_up->gone);
	assert_non_null(strstr(fixture->error.text, "firing for 7d"));
	set_option(fixture, "firing_for", "never");
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_string_equal(text_of(alerts, 0, NULL, "endsAt"), "2021-07-09T00:20:00Z");
	assert_null(text_of(alerts, 0, "annotations", "firing_until"));
	json_decref(alerts);
}

/* What is open again fires for as long as a new one, and as a new one it is left alone by an older
 * message about it. */
static void test_fires_again(void **state)
{
	struct fixture *fixture = *state;
	struct announced_change told = {.item = change, .state = ANNOUNCED_RECOVERED};
	json_t *alerts;

	render_all(fixture, &change, 1);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	fixture->attempt.now = START + DAY;
	assert_int_equal(follow(fixture, FOLLOW_UP_AMEND, &told, 1), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1625184000000 7=0");
	told.state = ANNOUNCED_STANDS;
	fixture->attempt.now = START + 10 * DAY;
	assert_int_equal(follow(fixture, FOLLOW_UP_AMEND, &told, 1), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_string_equal(text_of(alerts, 0, NULL, "startsAt"), "2021-07-12T00:00:00Z");
	assert_string_equal(text_of(alerts, 0, NULL, "endsAt"), "2021-07-12T00:20:00Z");
	json_decref(alerts);
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1625184000000 7=1626048000000");
	fixture->attempt.now = START + 16 * DAY;
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_TRANSFER);
	fixture->attempt.now = START + 17 * DAY;
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_FAILED);
	assert_int_equal(follow(fixture, FOLLOW_UP_AMEND, &told, 1), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_int_equal(json_array_size(alerts), 0);
	json_decref(alerts);
}

/* What was told to an instance that is gone from the configuration is told to those that are there.
 */
static void test_an_instance_that_is_gone(void **state)
{
	struct fixture *fixture = *state;
	const struct announced_change told = {.item = change};

	render_all(fixture, &change, 1);
	fixture->attempt.destination = "http://old:9093";
	fixture->attempt.receipt = "1625184000000";
	assert_int_equal(follow(fixture, FOLLOW_UP_REFRESH, &told, 1), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "http://am1:9093/x/api/v2/alerts");
	assert_int_equal(answer(fixture, 200, ""), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "http://am2:9093/api/v2/alerts");
	assert_int_equal(answer(fixture, 200, ""), STEP_DONE);
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
		{400, "\"invalid label set: x\"",
			"alertmanager: HTTP status 400: invalid label set: x", false, ERROR_DATA},
		{422, "{\"code\":601,\"message\":\"must be a uri\"}",
			"alertmanager: HTTP status 422: must be a uri", false, ERROR_DATA},
		{401, "", "alertmanager: HTTP status 401: the credentials are not accepted", false,
			ERROR_USAGE},
		{503, "\"down\"", "alertmanager: HTTP status 503", true, ERROR_DATA},
		{400, "[[[", "alertmanager: HTTP status 400", false, ERROR_DATA},
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

static bool is_valid(struct fixture *fixture)
{
	return alertmanager_notifier.plugin.check(fixture->options, &fixture->error);
}

static void test_options(void **state)
{
	struct fixture *fixture = talk_new(&alertmanager_notifier, "", "");
	struct strings found;
	void *other = fixture;

	(void)state;
	assert_false(is_valid(fixture));
	set_option(fixture, "url", "http://ann:pass@am:9093");
	assert_true(is_valid(fixture));
	assert_true(notifier_destinations(
		&alertmanager_notifier, fixture->options, fixture->arena, &found, &fixture->error));
	assert_int_equal(found.count, 1);
	assert_string_equal(found.items[0], "");
	set_option(fixture, "urls", "http://am1:9093");
	assert_false(is_valid(fixture));
	teardown(&other);
	static const char *const wrong[] = {"am1:9093", "http://ann:pass@am1:9093", "ftp://x"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		fixture = talk_new(&alertmanager_notifier, "", "");
		set_option(fixture, "urls", wrong[i]);
		assert_false(is_valid(fixture));
		assert_null(strstr(fixture->error.text, "pass@"));
		other = fixture;
		teardown(&other);
	}
}

static void test_labels_of_the_configuration(void **state)
{
	struct fixture *fixture = *state;
	size_t offset = field_find(alertmanager_notifier.plugin.fields, "labels")->offset;
	struct pair pairs[] = {{"cluster", "prod"}};
	json_t *alerts;

	memcpy((char *)fixture->options + offset, &(struct pairs){pairs, 1}, sizeof(struct pairs));
	assert_true(is_valid(fixture));
	render_all(fixture, &change, 1);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_string_equal(text_of(alerts, 0, "labels", "cluster"), "prod");
	json_decref(alerts);
	static const char *const wrong[] = {"", "a-b", "9a", "x y", "\xc3\xa4"};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		pairs[0].key = wrong[i];
		assert_false(is_valid(fixture));
	}
	for (size_t i = 0; i < sizeof labels_of_alerts / sizeof *labels_of_alerts; i++) {
		pairs[0].key = labels_of_alerts[i];
		assert_false(is_valid(fixture));
	}
}

static void test_message_of_a_test(void **state)
{
	struct fixture *fixture = *state;
	const struct notice notice = {.subject = "hunter-c", .text = "a test", .time = START};
	struct message message = {.key = "k", .kind = MESSAGE_TEST, .notice = &notice};
	json_t *alerts;

	assert_true(notifier_render(&alertmanager_notifier, &message, fixture->options, "",
		&fixture->out, &fixture->error));
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	alerts = sent(fixture);
	assert_int_equal(json_array_size(alerts), 1);
	assert_string_equal(text_of(alerts, 0, "labels", "alertname"), "HunterTest");
	assert_string_equal(text_of(alerts, 0, "annotations", "summary"), "hunter-c: a test");
	json_decref(alerts);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_labels),
		CASE(test_names_from_outside),
		CASE(test_many),
		CASE(test_follow_ups),
		CASE(test_firing_for),
		CASE(test_fires_again),
		CASE(test_an_instance_that_is_gone),
		CASE(test_refusals),
		cmocka_unit_test(test_options),
		CASE(test_labels_of_the_configuration),
		CASE(test_message_of_a_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
