/*
 * Slack's threads: a message of many posts, one that continues another, what is looked for after a
 * crash in the middle, and that nothing is left out unsaid.
 */
#include "unit.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "delivery_talk.h"
#include "notifiers/slack/render.h"
#include "slack_payload.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

static int setup(void **state)
{
	struct fixture *fixture = talk_new(
		&slack_notifier, "C0001", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}");

	set_option(fixture, "token", "xoxb-canary");
	set_option(fixture, "channels", "#perf");
	*state = fixture;
	return 0;
}

static void assert_posts(struct fixture *fixture, const char *body)
{
	assert_string_equal(fixture->transfer.url, "https://slack.com/api/chat.postMessage");
	assert_string_equal(fixture->transfer.body, body);
}

static void test_each_body_is_a_round(void **state)
{
	struct fixture *fixture = *state;
	struct attempt *attempt = &fixture->attempt;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_posts(fixture, "{\"text\":\"1\"}");
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"1503.02\"}"), STEP_DONE);
	assert_string_equal(attempt->receipt, "1503.02 1");
	assert_true(attempt->more);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_posts(fixture, "{\"thread_ts\":\"1503.02\",\"text\":\"2\"}");
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"1504.00\"}"), STEP_DONE);
	assert_string_equal(attempt->receipt, "1503.02 2");
	assert_true(attempt->more);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"1505.00\"}"), STEP_DONE);
	assert_string_equal(attempt->receipt, "1503.02 3");
	assert_false(attempt->more);
	assert_int_equal(begin(fixture), STEP_DONE);
}

static void test_more_goes_into_the_thread(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "1503.02 3";
	fixture->attempt.payload = "{\"text\":\"more\"}";
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_posts(fixture, "{\"thread_ts\":\"1503.02\",\"text\":\"more\"}");
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"1600.00\"}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1503.02 1");
	assert_false(fixture->attempt.more);
}

/* A reply that is shown in the channel, too: where its thread is gone, it is there once. */
static void test_a_loud_reply(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "1503.02 3";
	fixture->attempt.payload =
		"{\"channel\":\"#perf\",\"reply_broadcast\":true,\"text\":\"worse\"}";
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_posts(fixture, "{\"thread_ts\":\"1503.02\",\"channel\":\"#perf\","
			      "\"reply_broadcast\":true,\"text\":\"worse\"}");
	assert_int_equal(answer(fixture, 200, "{\"ok\":false,\"error\":\"thread_not_found\"}"),
		STEP_TRANSFER);
	assert_posts(fixture, "{\"channel\":\"#perf\",\"text\":\"worse\"}");
}

/* The message may have been deleted, or its thread closed. */
static void test_a_thread_that_is_gone(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "1503.02 3";
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"ok\":false,\"error\":\"thread_not_found\"}"),
		STEP_TRANSFER);
	assert_posts(fixture, "{\"text\":\"1\"}");
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"1700.00\"}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1700.00 1");
	assert_true(fixture->attempt.more);
}

/* After a crash: the first body is known to be there, the second is, the third is not. */
static void test_looks_for_each_in_turn(void **state)
{
	struct fixture *fixture = *state;
	static const char thread[] =
		"{\"ok\":true,\"messages\":["
		"{\"ts\":\"1.0\",\"metadata\":{\"event_payload\":{\"key\":\"k-1\",\"part\":1}}},"
		"{\"ts\":\"2.0\",\"metadata\":{\"event_payload\":{\"key\":\"k-0\",\"part\":3}}},"
		"{\"ts\":\"3.0\",\"metadata\":{\"event_payload\":{\"key\":\"k-1\",\"part\":2}}}]}";

	fixture->attempt.receipt = "1.0 1";
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	fixture->attempt.made = START;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url,
		"https://slack.com/api/conversations.replies?channel=C0001&ts=1.0"
		"&include_all_metadata=true&limit=200&oldest=1625180400");
	assert_int_equal(answer(fixture, 200, thread), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1.0 2");
	assert_true(fixture->attempt.more);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, thread), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"messages\":[]}"), STEP_TRANSFER);
	assert_posts(fixture, "{\"thread_ts\":\"1.0\",\"text\":\"3\"}");
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"ts\":\"4.0\"}"), STEP_DONE);
	assert_false(fixture->attempt.more);
}

/* The thread was gone when it was posted, so it is in the channel on its own: what follows goes
 * there, too. */
static void test_looks_outside_a_thread_that_is_gone(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "9.0 1";
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	fixture->attempt.made = START;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_non_null(
		strstr(fixture->transfer.url, "conversations.replies?channel=C0001&ts=9.0"));
	assert_int_equal(answer(fixture, 200, "{\"ok\":false,\"error\":\"thread_not_found\"}"),
		STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "conversations.history?channel=C0001&inc"));
	assert_int_equal(answer(fixture, 200,
				 "{\"ok\":true,\"messages\":[{\"ts\":\"12.0\",\"metadata\":"
				 "{\"event_payload\":{\"key\":\"k-1\",\"part\":1}}}]}"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "12.0 1 12.0 C0001");
}

/* The channel shows a loud reply, too, perhaps only once the thread was read: it is in the thread,
 * and what follows goes there. */
static void test_finds_a_loud_reply_in_the_channel(void **state)
{
	struct fixture *fixture = *state;

	fixture->attempt.thread = "9.0 1";
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	fixture->attempt.made = START;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"messages\":[]}"), STEP_TRANSFER);
	assert_int_equal(
		answer(fixture, 200,
			"{\"ok\":true,\"messages\":[{\"ts\":\"12.0\",\"thread_ts\":\"9.0\","
			"\"metadata\":{\"event_payload\":{\"key\":\"k-1\",\"part\":1}}}]}"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "9.0 1 12.0 C0001");
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_NO;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_posts(fixture, "{\"thread_ts\":\"9.0\",\"text\":\"2\"}");
}

static void test_an_answer_without_ts_is_in_doubt(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "{\"ok\":true}"), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
}

/* Each of `count` changes is in the posts once, or in the number of those left out. */
static void assert_complete(struct fixture *fixture, size_t count, bool bot, bool first_look)
{
	struct announcement *items = calloc(count, sizeof *items);
	struct message message = {
		.key = "key", .items = items, .count = count, .first_look = first_look};
	size_t shown = 0, left = 0;
	const char *at;

	for (size_t i = 0; i < count; i++)
		items[i] = (struct announcement){.id = (int64_t)i,
			.test = arena_printf(fixture->arena, "suite.test-%03zu", i / 60),
			.metric = arena_printf(fixture->arena, "metric-%02zu", i % 60),
			.direction = -1,
			.time = START + (int64_t)(i / 600) * 86400000,
			.change = {LEVELS(100, 120 + (double)(i % 7)),
				.magnitude = 0.2 + 0.01 * (double)(i % 7), .pvalue = 1e-6}};
	buf_clear(&fixture->out);
	slack_render(&message, bot ? "#perf" : NULL, true, &fixture->out);
	assert_in_range(
		slack_check_all(fixture->out.data, bot ? "#perf" : NULL), 1, bot ? SLACK_POSTS : 1);
	for (at = fixture->out.data; (at = strstr(at, ":red_circle:")); at++)
		shown++;
	at = strstr(fixture->out.data, " left out, `hunter-c changes` lists them");
	if (at) {
		while (at[-1] != ';')
			at--;
		left = strtoul(at, NULL, 10);
		assert_true(left > 0);
	}
	assert_int_equal(shown + left, count);
	free(items);
}

static void test_nothing_is_left_out_unsaid(void **state)
{
	static const size_t counts[] = {1, 2, 20, 21, 100, 149, 150, 151, 400, 900, 1400, 30000};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		assert_complete(*state, counts[i], true, false);
		assert_complete(*state, counts[i], false, false);
		assert_complete(*state, counts[i], true, true);
	}
}

static void test_links(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.test = "db.read",
		.metric = "p99",
		.time = START,
		.change = {LEVELS(1, 2), .pvalue = 0.001},
		.commit_before = "a|1",
		.commit_after = "b2",
		.commit_url = "https://example.com/b2",
		.compare_url = "https://example.com/?x=1&y=2",
		.members = 1336,
		.shared = "96% renderer=gpu"};
	struct message message = {.key = "key", .items = &item, .count = 1};

	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_non_null(strstr(fixture->out.data, "1336 series +100%, 96% renderer=gpu\\n"
						  "a|1 .. <https://example.com/b2|b2> "
						  "(<https://example.com/?x=1&amp;y=2|compare>)"));
}

/* What all of a field share once, what differs of the worst, with its name, and none that would be
 * cut. */
static void test_pages_and_owner(void **state)
{
	struct fixture *fixture = *state;
	char *longest = calloc(1, 901);
	struct announcement items[2] = {{.test = "db.read",
						.metric = "p99",
						.direction = -1,
						.time = START,
						.change = {LEVELS(1, 2)},
						.dashboard = "https://example.com/d/99?a=1&b=2",
						.runbook = "https://example.com/r",
						.owner = "team *x* <!here>"},
		{.test = "db.read",
			.metric = "p50",
			.direction = -1,
			.time = START,
			.change = {LEVELS(1, 1.5)},
			.dashboard = "https://example.com/d/50",
			.runbook = "https://example.com/r",
			.owner = "team *x* <!here>"}};
	struct message message = {.key = "key", .items = items, .count = 2};

	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_non_null(strstr(fixture->out.data,
		"p50: +50%  1 → 1.5\\n<https://example.com/r|runbook>, owner: team \u2217x\u2217 "
		"&lt;!here&gt;\\nof p99: <https://example.com/d/99?a=1&amp;b=2|dashboard>\""));
	assert_null(strstr(fixture->out.data, "d/50"));
	items[0].page = "https://hunter.example/change/7";
	items[1].page = "https://hunter.example/change/8";
	buf_clear(&fixture->out);
	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_non_null(strstr(fixture->out.data,
		"\\nof p99: <https://hunter.example/change/7|details>, <https://example.com/d/99"));
	assert_null(strstr(fixture->out.data, "change/8"));
	memset(longest, 'a', 900);
	memcpy(longest, "https://", 8);
	items[0].page = items[1].page = NULL;
	items[0].dashboard = longest;
	items[1].owner = NULL;
	buf_clear(&fixture->out);
	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_null(strstr(fixture->out.data, "aaa"));
	assert_non_null(strstr(
		fixture->out.data, "1.5\\n<https://example.com/r|runbook>\\nof p99: owner: team"));
	free(longest);
}

/* A crowd of more than one post holds is one line, its changes are in the metadata. */
static void test_a_crowd_is_one_line(void **state)
{
	enum { COUNT = 250 };
	struct fixture *fixture = *state;
	struct announcement *items = calloc(COUNT + 1, sizeof *items);
	struct message message = {.key = "key", .items = items, .count = COUNT + 1};
	const json_t *event;
	json_t *body;

	for (size_t i = 0; i < COUNT; i++)
		items[i] = (struct announcement){.id = (int64_t)i + 1,
			.test = "render.farm",
			.metric = arena_printf(
				fixture->arena, "frame{host=\"h%03zu\",role=\"render\"}", i),
			.unit = "ms",
			.direction = -1,
			.time = START,
			.place_from = START,
			.place_to = START,
			.change = {LEVELS(100, 107 + 0.01 * (double)i)}};
	items[COUNT] = items[0];
	items[COUNT].id = 999;
	items[COUNT].change = (struct change){LEVELS(100, 90)};
	slack_render(&message, "#perf", true, &fixture->out);
	assert_int_equal(slack_body_count(fixture->out.data), 1);
	body = slack_check(fixture->out.data, "#perf");
	assert_non_null(strstr(fixture->out.data,
		"*render.farm* role=render\\n:red_circle: 250 series of frame: +8.2%, from +7.1% "
		"to +9.4%\\n"
		"\u2022 {host=\\\"h249\\\"}: +9.5%  100 \u2192 109.5 ms\\n"));
	assert_non_null(strstr(fixture->out.data,
		"\\n\u2022 247 more: `hunter-c changes --test render.farm` lists all\\n"
		":large_blue_circle: frame{host=\\\"h000\\\"}: -10%"));
	assert_null(strstr(fixture->out.data, "are shown"));
	assert_non_null(strstr(json_string_value(json_object_get(body, "text")),
		"\nrender.farm role=render 250 series of frame: +8.2%, from +7.1% to "
		"+9.4%\nrender.farm "
		"role=render frame{host=\"h000\"} -10%"));
	event = json_object_get(json_object_get(body, "metadata"), "event_payload");
	assert_int_equal(json_array_size(json_object_get(event, "changes")), 50);
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(event, "changes"), 0)), COUNT);
	json_decref(body);
	free(items);
}

static void test_more_of(void **state)
{
	struct fixture *fixture = *state;
	struct announcement first = {.time = START, .commit_before = "<a>", .commit_after = "b"};
	struct announcement item = {
		.test = "db.read", .metric = "p99", .time = START, .change = {.level_after = 1}};
	struct message message = {.key = "key",
		.kind = MESSAGE_UPDATED,
		.items = &item,
		.count = 1,
		.thread = "other",
		.more_of = &first};

	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_non_null(strstr(fixture->out.data,
		"More change points of <!date^1625184000^{date_short_pretty} "
		"{time}|2021-07-02 00:00:00 +0000> (&lt;a&gt; .. b): *1 change in db.read* "
		"since "));
	assert_null(strstr(fixture->out.data, "\"header\""));
}

static void test_notice(void **state)
{
	struct fixture *fixture = *state;
	struct notice notice = {
		.subject = "prom<!here>", .text = "it is down & out", .time = START};
	struct message message = {.key = "key", .kind = MESSAGE_NOTICE, .notice = &notice};

	slack_render(&message, "#perf", true, &fixture->out);
	json_decref(slack_check(fixture->out.data, "#perf"));
	assert_non_null(strstr(fixture->out.data,
		":warning: *prom&lt;!here&gt;*  <!date^1625184000^{date_short_pretty} "
		"{time}|2021-07-02 00:00:00 +0000>\\nit is down &amp; out"));
	assert_non_null(strstr(fixture->out.data, "hunter_c_notice"));
	notice.recovered = true;
	buf_clear(&fixture->out);
	slack_render(&message, NULL, true, &fixture->out);
	json_decref(slack_check(fixture->out.data, NULL));
	assert_non_null(strstr(fixture->out.data, ":large_green_circle:"));
}

/* The subject is named once where the sentence has it, the time is the end's, and times in the
 * sentence are in the reader's zone. */
static void test_a_notice_with_times(void **state)
{
	struct fixture *fixture = *state;
	struct notice notice = {.subject = "db",
		.text = "test \"db\" came back at 2021-07-02 00:01:00 +0000, not 2021-07-02 00:02 "
			"UTC"
			" nor x2021-07-02 00:01:00 +0000",
		.time = START,
		.ended = START + 180000,
		.recovered = true};
	struct message message = {.kind = MESSAGE_NOTICE, .key = "key", .notice = &notice};

	slack_render(&message, NULL, true, &fixture->out);
	json_decref(slack_check(fixture->out.data, NULL));
	assert_non_null(strstr(fixture->out.data,
		"\"text\":\"test \\\"db\\\" came back at <!date^1625184060^{date_short_pretty} "
		"{time}|2021-07-02 00:01:00 +0000>, not <!date^1625184120^{date_short_pretty} "
		"{time}|2021-07-02 00:02:00 +0000> nor x2021-07-02 00:01:00 +0000\""));
	assert_non_null(strstr(fixture->out.data, "*db*  <!date^1625184180^"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_each_body_is_a_round),
		CASE(test_more_goes_into_the_thread),
		CASE(test_a_loud_reply),
		CASE(test_a_thread_that_is_gone),
		CASE(test_looks_for_each_in_turn),
		CASE(test_looks_outside_a_thread_that_is_gone),
		CASE(test_finds_a_loud_reply_in_the_channel),
		CASE(test_an_answer_without_ts_is_in_doubt),
		CASE(test_nothing_is_left_out_unsaid),
		CASE(test_links),
		CASE(test_pages_and_owner),
		CASE(test_a_crowd_is_one_line),
		CASE(test_more_of),
		CASE(test_notice),
		CASE(test_a_notice_with_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
