/*
 * Slack and stdout: what messages look like, that none of any size or content passes Slack's
 * limits, and what the notifier makes of each answer.
 */
#include "unit.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delivery_talk.h"
#include "notifiers/slack/lines.h"
#include "notifiers/slack/render.h"
#include "notifiers/text.h"
#include "slack_payload.h"
#include "tests/unit/levels.h"
#include "tests/unit/random.h"
#include "tests/unit/sanitized.h"

#define TOKEN "xoxb-canary-1234"
#define DAY INT64_C(86400000)
#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

static const struct announcement examples[] = {
	{.id = 11,
		.test = "demo.lwt.1000-partitions",
		.metric = "p95",
		.direction = -1,
		.time = START,
		.change = {LEVELS(200, 170), .pvalue = 1e-5, .magnitude = 0.18},
		.commit_before = "a60027ff",
		.commit_after = "15ce8e36"},
	{.id = 12,
		.test = "demo.write.batch-10",
		.metric = "p99",
		.unit = "ns",
		.direction = -1,
		.time = START,
		.change = {LEVELS(3.17e7, 3.94e7), .pvalue = 1e-9, .magnitude = 0.24},
		.commit_before = "a60027ff",
		.commit_after = "15ce8e36"},
	{.id = 13,
		.test = "demo.write.batch-10",
		.metric = "<!channel> & co",
		.direction = 0,
		.time = START + DAY,
		.change = {.level_after = 4, .size = (double)NAN, .pvalue = 1e-4},
		.version_after = "1.2"},
};

#define DATE_AT(seconds, text) "<!date^" #seconds "^{date_short_pretty} {time}|" text " +0000>"
#define DATE DATE_AT(1625184000, "2021-07-02 00:00:00")

static const char *section_text(const json_t *blocks, size_t index)
{
	return json_string_value(
		json_object_get(json_object_get(json_array_get(blocks, index), "text"), "text"));
}

/* The text behind its first date. */
static const char *behind_date(const char *text)
{
	const char *date = strstr(text, "<!date^");

	assert_non_null(date);
	return strchr(date, '>') + 1;
}

static const struct message example = {.key = "k-1", .items = examples, .count = 3};

static int setup(void **state)
{
	*state = talk_new(
		&slack_notifier, "#perf", "{\"channel\":\"#perf\",\"text\":\"t\",\"blocks\":[]}");
	return 0;
}

static int setup_bot(void **state)
{
	struct fixture *fixture;

	setup(state);
	fixture = *state;
	set_option(fixture, "token", TOKEN);
	set_option(fixture, "channels", "#perf,#ci");
	return 0;
}

static enum step begin_anew(struct fixture *fixture)
{
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_NO;
	return begin(fixture);
}

static void test_looks_like_hunters(void **state)
{
	struct fixture *fixture = *state;
	const json_t *blocks, *fields;
	json_t *body;

	slack_render(&example, "#perf", true, &fixture->out);
	body = slack_check(fixture->out.data, "#perf");
	blocks = json_object_get(body, "blocks");
	assert_int_equal(json_array_size(blocks), 7);
	assert_string_equal(section_text(blocks, 0),
		"*1 regression, 1 improvement, 1 other change in demo.write.batch-10, "
		"demo.lwt.1000-partitions* since " DATE);
	assert_string_equal(section_text(blocks, 2), DATE);
	fields = json_object_get(json_array_get(blocks, 3), "fields");
	assert_int_equal(json_array_size(fields), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(fields, 1), "text")),
		"*demo.lwt.1000-partitions*\n:large_blue_circle: p95: -15%  200 → 170\n"
		"a60027ff .. 15ce8e36");
	assert_string_equal(json_string_value(json_object_get(json_array_get(fields, 0), "text")),
		"*demo.write.batch-10*\n:red_circle: p99: +24%  31,700,000 → 39,400,000 ns\n"
		"a60027ff .. 15ce8e36");
	fields = json_object_get(json_array_get(blocks, 6), "fields");
	assert_string_equal(json_string_value(json_object_get(json_array_get(fields, 0), "text")),
		"*demo.write.batch-10*\n:white_circle: &lt;!channel&gt; &amp; co: new  0 → 4\n? .. "
		"1.2");
	assert_ptr_equal(strstr(json_string_value(json_object_get(body, "text")),
				 "1 regression, 1 improvement, 1 other change in "
				 "demo.write.batch-10, demo.lwt.1000-partitions since <!date^"),
		json_string_value(json_object_get(body, "text")));
	json_decref(body);
}

/* A step that can lie at several places, a trend, and one whose means go the other way. */
static const struct announcement described[] = {
	{.id = 21,
		.test = "db.read",
		.metric = "p50",
		.direction = -1,
		.time = START,
		.change = {.mean_before = 130,
			.mean_after = 120,
			.magnitude = 0.083,
			.level_before = 100,
			.level_after = 106.3,
			.size = 6.3,
			.size_low = 5.12,
			.size_high = 7.4,
			.pvalue = 1e-5},
		.commit_before = "c29",
		.commit_after = "c30",
		.place_from = START - 7200000,
		.place_to = START + 3600000,
		.place_commit_before = "c27",
		.place_commit_after = "c31",
		.commit_url = "https://example.com/c30",
		.compare_url = "https://example.com/c27...c31"},
	{.id = 22,
		.test = "db.read",
		.metric = "rss",
		.unit = "MB",
		.direction = -1,
		.time = START,
		.change = {.kind = CHANGE_TREND,
			.mean_before = 100,
			.mean_after = 150,
			.magnitude = 0.5,
			.level_before = 100,
			.level_after = 200,
			.size = 100,
			.size_low = (double)NAN,
			.size_high = (double)NAN,
			.pvalue = 1e-9},
		.commit_before = "c29",
		.commit_after = "c30",
		.place_from = START - DAY,
		.place_to = START + 7 * DAY,
		.place_commit_before = "c22",
		.place_commit_after = "c99",
		.slope = 1},
	{.id = 23,
		.test = "db.write",
		.metric = "rate",
		.direction = 1,
		.time = START,
		.change = {.mean_before = 10,
			.mean_after = 30,
			.magnitude = 2,
			.level_before = 10,
			.level_after = 10.5,
			.size = 5,
			.size_low = 4,
			.size_high = 6,
			.pvalue = 1e-4},
		.place_from = START,
		.place_to = START + 3600000,
		.place_version_before = "1.1",
		.place_version_after = "1.3",
		.version_before = "1.1",
		.version_after = "1.2"},
};

static const struct message description = {.key = "k-2", .items = described, .count = 3};

static const char *field_text(const json_t *fields, size_t index)
{
	return json_string_value(json_object_get(json_array_get(fields, index), "text"));
}

static void test_place_size_and_trend(void **state)
{
	struct fixture *fixture = *state;
	const json_t *fields;
	json_t *body;

	slack_render(&description, "#perf", true, &fixture->out);
	body = slack_check(fixture->out.data, "#perf");
	fields = json_object_get(json_array_get(json_object_get(body, "blocks"), 3), "fields");
	assert_int_equal(json_array_size(fields), 3);
	assert_string_equal(field_text(fields, 1),
		"*db.read*\n:red_circle: p50: +6.3% [5.1, 7.4]  100 → 106.3\n"
		"between " DATE_AT(1625176800, "2021-07-01 22:00:00") " and " DATE_AT(
			1625187600, "2021-07-02 01:00:00") "\n"
							   "c27 .. c31 "
							   "(<https://example.com/"
							   "c27...c31|compare>), most likely "
							   "<https://example.com/c30|c30>");
	assert_string_equal(field_text(fields, 0),
		"*db.read*\n:red_circle: rss: +100%  trend from 100 to 200 MB over "
		"<!date^1625097600^{date_short_pretty}|2021-07-01 00:00:00 +0000> .. "
		"<!date^1625788800^{date_short_pretty}|2021-07-09 00:00:00 +0000>, +1.0 a point\n"
		"c22 .. c99");
	assert_string_equal(field_text(fields, 2),
		"*db.write*\n:large_blue_circle: rate: +5.0% [4.0, 6.0]  10 → 10.5\n"
		"between " DATE
		" and " DATE_AT(1625187600, "2021-07-02 01:00:00") "\n"
								   "1.1 .. 1.3, most likely 1.2");
	/* By the means the improvement is the largest, and the one below it no regression. */
	assert_string_equal(field_text(fields, 0) + strlen("*db.read*\n:red_circle: "),
		strstr(field_text(fields, 0), "rss: +100%"));
	const struct announcement **ordered = message_by_weight(&description);
	assert_ptr_equal(ordered[0], &described[1]);
	free(ordered);
	json_decref(body);
}

static void test_metadata_holds_key_and_ids(void **state)
{
	struct fixture *fixture = *state;
	const json_t *event;
	json_t *body;

	slack_render(&example, "#perf", true, &fixture->out);
	body = slack_check(fixture->out.data, "#perf");
	event = json_object_get(json_object_get(body, "metadata"), "event_payload");
	assert_string_equal(json_string_value(json_object_get(event, "key")), "k-1");
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(event, "changes"), 2)), 13);
	json_decref(body);
	buf_clear(&fixture->out);
	slack_render(&example, NULL, true, &fixture->out);
	body = slack_check(fixture->out.data, NULL);
	assert_null(json_object_get(body, "metadata"));
	json_decref(body);
}

/* What would be markup where it stands is written with characters that look alike. */
static void test_markup_of_names(void **state)
{
	static const char *const cases[][2] = {
		{"*bold* _slanted_ ~gone~ `code`",
			"\u2217bold\u2217 \u02cdslanted\u02cd \u223cgone\u223c \u02cbcode\u02cb"},
		{"http_requests__total", "http_requests__total"},
		{"_x", "\u02cdx"},
		{"x_", "x\u02cd"},
		{"a._b_c", "a.\u02cdb_c"},
		{":fire:", "\u2236fire:"},
		{"job:rate5m", "job\u2236rate5m"},
		{"a:b:c d", "a\u2236b:c d"},
		{":\u706b:", "\u2236\u706b:"},
		{"p:100:", "p\u2236100:"},
		{"x{host=\"a:9090\"}", "x{host=\"a:9090\"}"},
		{"at 12:30:45", "at 12:30:45"},
		{"see https://evil.example/a:b c", "see https\u2236//evil.example/a:b c"},
		{"> no quotation", "\u203a no quotation"},
		{"a > b", "a &gt; b"},
		{"", ""},
		{"<!here>", "&lt;!here&gt;"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		buf_clear(&fixture->out);
		buf_reserve(&fixture->out, 0);
		slack_escaped(&fixture->out, cases[i][0], 200);
		assert_string_equal(fixture->out.data, cases[i][1]);
	}
}

/* In the blocks and in the text of notifications; links of the configuration stay links. */
static void test_no_markup_of_names_in_a_message(void **state)
{
	static const struct announcement items[] = {
		{.id = 1,
			.test = "*_t_*",
			.metric = "p99{url=\"http://evil.example/\",x=\":fire:\"}",
			.unit = "`ns`",
			.direction = -1,
			.time = START,
			.change = {LEVELS(1, 2)},
			.commit_before = "_a_",
			.commit_after = ":b",
			.commit_url = "https://pages.example/a_b_"},
		{.id = 2,
			.test = "*_t_*",
			.metric = "p50",
			.shared = "~x~",
			.members = 3,
			.direction = -1,
			.time = START,
			.change = {LEVELS(1, 2)},
			.commit_before = "_a_",
			.commit_after = ":b",
			.commit_url = "https://pages.example/a_b_"}};
	const struct message message = {.key = "k", .items = items, .count = 2};
	struct fixture *fixture = *state;
	json_t *body;

	slack_render(&message, "#perf", true, &fixture->out);
	body = slack_check(fixture->out.data, "#perf");
	assert_string_equal(json_string_value(json_object_get(body, "parse")), "none");
	assert_non_null(strstr(fixture->out.data, "<https://pages.example/a_b_|\u2236b>"));
	assert_null(strstr(fixture->out.data, ":fire:"));
	assert_null(strstr(fixture->out.data, "http://"));
	assert_null(strpbrk(behind_date(json_string_value(json_object_get(body, "text"))), "*_~`"));
	json_decref(body);
}

/* Text of what hurts: markup, mentions, control characters, four-byte and broken UTF-8. */
static const char *nasty(struct arena *arena, uint64_t *random, size_t most)
{
	static const char *const pieces[] = {"&", "<", ">", "<!channel>", "<@U1>", "a", "*", "`",
		"_", "~", ":fire:", ":", "https://x/", "\n", "\x1b[31m", "\xf0\x9f\x94\xa5", "\xff",
		"\xc3", "é", "\xe2\x80\xae", "\"", "\\", " ", "&amp;", "\x01"};
	size_t count = random_next(random) % (most + 1);
	struct buf text = {0};
	const char *copy;

	for (size_t i = 0; i < count; i++)
		buf_text(&text, pieces[random_next(random) % (sizeof pieces / sizeof *pieces)]);
	copy = arena_strndup(arena, text.data ? text.data : "", text.length);
	buf_free(&text);
	return copy;
}

static double number(uint64_t *random)
{
	static const double numbers[] = {0, -0.0, 1e-300, 1e300, -5, 61000.25, 3.9e7, HUGE_VAL, 1};

	return numbers[random_next(random) % (sizeof numbers / sizeof *numbers)];
}

enum { NAMES = 64 };

static void random_names(struct arena *arena, uint64_t *random, size_t length, const char **names)
{
	for (size_t i = 0; i < NAMES; i++)
		names[i] = nasty(arena, random, length);
}

static struct announcement random_item(struct arena *arena, uint64_t *random, size_t length,
	const char *const *names, size_t tests)
{
	struct announcement item = {.id = (int64_t)random_next(random) / 2,
		.direction = (int)(random_next(random) % 3) - 1,
		.time = START + (int64_t)(random_next(random) % 30) * DAY,
		.metric = nasty(arena, random, length),
		.place_to = START + (int64_t)(random_next(random) % 60) * DAY,
		.slope = number(random),
		.change = {.kind = random_next(random) % 2 ? CHANGE_TREND : CHANGE_STEP,
			.level_before = number(random),
			.level_after = number(random),
			.size = number(random),
			.size_low = number(random),
			.size_high = number(random),
			.pvalue = 1e-300,
			.magnitude = number(random)}};

	item.test = names[random_next(random) % tests];
	if (random_next(random) % 2)
		item.unit = nasty(arena, random, length);
	if (random_next(random) % 2)
		item.commit_before = nasty(arena, random, length);
	if (random_next(random) % 2) {
		item.members = random_next(random);
		item.shared = nasty(arena, random, length);
	}
	if (random_next(random) % 2)
		item.compare_url = "https://example.com/?a=1&b=2";
	if (random_next(random) % 2)
		item.dashboard = "https://example.com/d/1?a=1&b=2";
	if (random_next(random) % 2)
		item.owner = nasty(arena, random, length);
	if (random_next(random) % 2)
		item.version_after = nasty(arena, random, length);
	if (random_next(random) % 2)
		item.place_commit_after = nasty(arena, random, length);
	if (random_next(random) % 2)
		item.commit_after = nasty(arena, random, length);
	if (random_next(random) % 2) {
		struct attribute *attributes = arena_array(arena, 20, sizeof *attributes);

		for (size_t i = 0; i < 20; i++)
			attributes[i] = (struct attribute){.name = nasty(arena, random, length),
				.after = nasty(arena, random, length)};
		item.attributes = attributes;
		item.attribute_count = 20;
	}
	return item;
}

static int compare_times(const void *a, const void *b)
{
	const struct announcement *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return strcmp(left->test, right->test);
}

static void test_property_limits_hold(void **state)
{
	struct fixture *fixture = *state;
	static const size_t sizes[] = {1, 2, 9, 11, 60, 150, 151, 1000};
	uint64_t random = 5;

	for (int round = 0; round < CASES(150); round++) {
		struct arena *arena = arena_new();
		size_t count = sizes[random_next(&random) % (sizeof sizes / sizeof *sizes)];
		size_t length = (size_t)1 << (random_next(&random) % 11);
		size_t tests = (size_t)1 << (random_next(&random) % 7);
		struct announcement *items = arena_array(arena, count, sizeof *items);
		struct message message = {.key = "key", .items = items, .count = count};
		const char *names[NAMES];

		random_names(arena, &random, length, names);
		for (size_t i = 0; i < count; i++)
			items[i] = random_item(arena, &random, length, names, tests);
		qsort(items, count, sizeof *items, compare_times);
		buf_clear(&fixture->out);
		slack_render(&message, "C0123", true, &fixture->out);
		slack_check_all(fixture->out.data, "C0123");
		arena_free(arena);
	}
}

/* 500 tests of 60 metrics in one go: the worst are there, the number left out is said, nothing
 * passes a limit. */
static void test_thirty_thousand_changes(void **state)
{
	struct fixture *fixture = *state;
	enum { COUNT = 30000 };
	struct announcement *items = calloc(COUNT, sizeof *items);
	struct message message = {.key = "key", .items = items, .count = COUNT};

	for (size_t i = 0; i < COUNT; i++)
		items[i] = (struct announcement){.id = (int64_t)i,
			.test = arena_printf(fixture->arena, "suite.test-%03zu", i / 60),
			.metric = arena_printf(fixture->arena, "metric-%02zu", i % 60),
			.direction = -1,
			.time = START,
			.change = {LEVELS(100, i == 17777 ? 900 : 90),
				.magnitude = i == 17777 ? 8 : 0.11, .pvalue = 1e-6}};
	slack_render(&message, "#perf", true, &fixture->out);
	assert_non_null(strstr(fixture->out.data,
		"*1 regression, 29999 improvements in suite.test-296, suite.test-000, "
		"suite.test-001 and 497 more tests* since "));
	assert_int_equal(slack_check_all(fixture->out.data, "#perf"), SLACK_POSTS);
	assert_non_null(strstr(fixture->out.data, "The 20 worst are shown; "));
	assert_non_null(strstr(fixture->out.data, " are left out, `hunter-c changes` lists them"));
	assert_non_null(strstr(fixture->out.data, "metric-17: +800%  100 → 900"));
	free(items);
}

static void test_bot_posts_to_each_channel(void **state)
{
	struct fixture *fixture = *state;
	struct strings channels;

	assert_true(notifier_destinations(
		&slack_notifier, fixture->options, fixture->arena, &channels, &fixture->error));
	assert_int_equal(channels.count, 2);
	assert_string_equal(channels.items[1], "#ci");
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "https://slack.com/api/chat.postMessage");
	assert_string_equal(fixture->transfer.method, "POST");
	assert_string_equal(fixture->transfer.bearer, TOKEN);
	assert_string_equal(fixture->transfer.body, fixture->attempt.payload);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":true,\"channel\":\"C1\",\"ts\":\"1503.02\"}"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "1503.02 1 1503.02 C1");
}

static void test_misconfigured_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct strings channels;

	assert_false(notifier_destinations(
		&slack_notifier, fixture->options, fixture->arena, &channels, &fixture->error));
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	set_option(fixture, "bot_token", TOKEN);
	assert_false(notifier_destinations(
		&slack_notifier, fixture->options, fixture->arena, &channels, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "channels"));
	set_option(fixture, "webhook_url", "https://hooks.slack.com/services/T/B/X");
	assert_false(notifier_destinations(
		&slack_notifier, fixture->options, fixture->arena, &channels, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "not both"));
}

/* Each answer, and which of the three heaps it falls into. */
static void test_answers_are_classified(void **state)
{
	static const struct {
		int status;
		const char *body;
		bool retry;
		enum error_kind kind;
		enum maybe_delivered maybe_delivered;
	} cases[] = {
		{200, "{\"ok\":false,\"error\":\"ratelimited\"}", true, ERROR_DATA,
			MAYBE_DELIVERED_NO},
		{200, "{\"ok\":false,\"error\":\"internal_error\"}", true, ERROR_DATA,
			MAYBE_DELIVERED_CHECK},
		{200, "{\"ok\":false,\"error\":\"never_heard_of\"}", true, ERROR_DATA,
			MAYBE_DELIVERED_CHECK},
		{200, "{\"ok\":false,\"error\":\"invalid_auth\"}", false, ERROR_USAGE,
			MAYBE_DELIVERED_NO},
		{200, "{\"ok\":false,\"error\":\"channel_not_found\"}", false, ERROR_USAGE,
			MAYBE_DELIVERED_NO},
		{200, "{\"ok\":false,\"error\":\"not_in_channel\"}", false, ERROR_USAGE,
			MAYBE_DELIVERED_NO},
		{200, "{\"ok\":false,\"error\":\"msg_too_long\"}", false, ERROR_DATA,
			MAYBE_DELIVERED_NO},
		{200, "{\"ok\":false}", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{200, "{\"ok\":1,\"error\":3}", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{200, "[1]", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{200, "<html>Log in to the proxy</html>", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{200, "", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{302, "", false, ERROR_USAGE, MAYBE_DELIVERED_NO},
		{400, "invalid_payload", false, ERROR_DATA, MAYBE_DELIVERED_NO},
		{403, "invalid_token", false, ERROR_USAGE, MAYBE_DELIVERED_NO},
		{404, "no_service", false, ERROR_USAGE, MAYBE_DELIVERED_NO},
		{408, "", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{429, "", true, ERROR_DATA, MAYBE_DELIVERED_NO},
		{500, "", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
		{503, "upstream", true, ERROR_DATA, MAYBE_DELIVERED_CHECK},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
		if (answer(fixture, cases[i].status, cases[i].body) != STEP_FAILED ||
			fixture->attempt.retry != cases[i].retry ||
			fixture->error.kind != cases[i].kind ||
			fixture->attempt.maybe_delivered != cases[i].maybe_delivered)
			fail_msg("%d %s: retry %d, doubt %d, %s", cases[i].status, cases[i].body,
				fixture->attempt.retry, (int)fixture->attempt.maybe_delivered,
				fixture->error.text);
		assert_non_null(strstr(fixture->error.text, "slack #perf: "));
	}
}

static void test_retry_after_is_handed_on(void **state)
{
	struct fixture *fixture = *state;
	struct reply reply = {.kind = REPLY_ANSWER, .status = 429, .retry_after = 7000, .body = ""};

	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_int_equal(take(fixture, &reply), STEP_FAILED);
	assert_true(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.retry_after, 7000);
	reply.status = 503;
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	take(fixture, &reply);
	assert_int_equal(fixture->attempt.retry_after, 7000);
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	reply.retry_after = -1;
	take(fixture, &reply);
	assert_int_equal(fixture->attempt.retry_after, -1);
}

static void test_no_answer_is_tried_again(void **state)
{
	static const enum reply_kind kinds[] = {REPLY_UNREACHABLE, REPLY_AMBIGUOUS, REPLY_TOO_BIG};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < 3; i++) {
		struct reply reply = {.kind = kinds[i], .retry_after = -1, .problem = "reset"};

		assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
		assert_int_equal(take(fixture, &reply), STEP_FAILED);
		assert_true(fixture->attempt.retry);
		assert_int_equal(fixture->attempt.maybe_delivered,
			kinds[i] == REPLY_UNREACHABLE ? MAYBE_DELIVERED_NO : MAYBE_DELIVERED_CHECK);
	}
}

static enum step begin_in_doubt(struct fixture *fixture, const char *channel)
{
	fixture->attempt.maybe_delivered = MAYBE_DELIVERED_CHECK;
	fixture->attempt.made = START;
	fixture->attempt.destination = channel;
	fixture->attempt.notice = NULL;
	return begin(fixture);
}

static const char channels_page[] =
	"{\"ok\":true,\"channels\":[{\"id\":\"C1\",\"name\":\"other\"},{\"id\":\"C77\",\"name\":"
	"\"perf\"}]}";

static void assert_posts(struct fixture *fixture)
{
	assert_string_equal(fixture->transfer.method, "POST");
	assert_string_equal(fixture->transfer.url, "https://slack.com/api/chat.postMessage");
}

/* The id of the channel, the pages of its history since an hour before, and the message is there.
 */
static void test_doubt_looks_first(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin_in_doubt(fixture, "#perf"), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.method, "GET");
	assert_string_equal(fixture->transfer.bearer, TOKEN);
	assert_non_null(
		strstr(fixture->transfer.url, "https://slack.com/api/users.conversations?"));
	assert_int_equal(answer(fixture, 200, channels_page), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url,
		"https://slack.com/api/conversations.history?channel=C77&include_all_metadata=true"
		"&limit=200&oldest=1625180400");
	assert_int_equal(answer(fixture, 200,
				 "{\"ok\":true,\"messages\":[{\"ts\":\"1.0\"},7],\"has_more\":true,"
				 "\"response_metadata\":{\"next_cursor\":\"a=\"}}"),
		STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "&cursor=a%3D"));
	assert_int_equal(answer(fixture, 200,
				 "{\"ok\":true,\"messages\":[{\"ts\":\"2.5\",\"metadata\":{\"event_"
				 "payload\":"
				 "{\"key\":\"k-1\"}}}]}"),
		STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "2.5 1 2.5 C77");
	assert_null(fixture->attempt.notice);
}

static void test_what_is_not_there_is_posted(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin_in_doubt(fixture, "C77"), STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "history?channel=C77&"));
	assert_int_equal(answer(fixture, 200, "{\"ok\":true,\"messages\":[]}"), STEP_TRANSFER);
	assert_posts(fixture);
	assert_null(fixture->attempt.notice);
	assert_int_equal(answer(fixture, 429, ""), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
}

/* Whoever may not look posts again, and says that it may be there twice. */
static void test_search_that_is_denied(void **state)
{
	static const char missing[] =
		"{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"channels:read\"}";
	struct fixture *fixture = *state;

	assert_int_equal(begin_in_doubt(fixture, "#perf"), STEP_TRANSFER);
	assert_non_null(strstr(fixture->transfer.url, "private_channel"));
	assert_int_equal(answer(fixture, 200, missing), STEP_TRANSFER);
	assert_null(strstr(fixture->transfer.url, "private_channel"));
	assert_int_equal(answer(fixture, 200, missing), STEP_TRANSFER);
	assert_posts(fixture);
	assert_non_null(strstr(fixture->attempt.notice, "missing_scope: channels:read"));
	assert_int_equal(begin_in_doubt(fixture, "#perf"), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, missing), STEP_TRANSFER);
	static const char *const secret = "channels";
	const struct reply quotes = {.kind = REPLY_ANSWER,
		.status = 200,
		.retry_after = -1,
		.body = missing,
		.length = strlen(missing),
		.secrets = {&secret, 1}};
	assert_int_equal(take(fixture, &quotes), STEP_TRANSFER);
	assert_non_null(strstr(fixture->attempt.notice, "missing_scope: ********:read"));
	assert_int_equal(begin_in_doubt(fixture, "#nowhere"), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, channels_page), STEP_TRANSFER);
	assert_posts(fixture);
	assert_non_null(strstr(fixture->attempt.notice, "the bot is not in the channel"));
	assert_int_equal(begin_in_doubt(fixture, "C77"), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 404, ""), STEP_TRANSFER);
	assert_posts(fixture);
}

static void test_search_waits_until_slack_is_well(void **state)
{
	static const struct {
		int status;
		const char *body;
	} cases[] = {{503, ""}, {429, ""}, {200, "<html>"},
		{200, "{\"ok\":false,\"error\":\"internal_error\"}"}, {200, ""},
		{200, "{\"ok\":false,\"error\":\"ratelimited\"}"},
		{200, "{\"ok\":false,\"error\":\"an_error_of_next_year\"}"}};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(begin_in_doubt(fixture, "C77"), STEP_TRANSFER);
		assert_int_equal(answer(fixture, cases[i].status, cases[i].body), STEP_FAILED);
		assert_true(fixture->attempt.retry);
		assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
	}
}

/* A token that is revoked while a message is in doubt: the search and the post fail alike, and once
 * there is a new one, the channel is searched before anything is posted. */
static void test_doubt_outlives_a_denied_search(void **state)
{
	static const char revoked[] = "{\"ok\":false,\"error\":\"token_revoked\"}";
	struct fixture *fixture = *state;

	assert_int_equal(begin_in_doubt(fixture, "C77"), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, revoked), STEP_TRANSFER);
	assert_posts(fixture);
	assert_int_equal(answer(fixture, 200, revoked), STEP_FAILED);
	assert_false(fixture->attempt.retry);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_CHECK);
}

/* A history that never ends is left in the end. */
static void test_search_ends(void **state)
{
	struct fixture *fixture = *state;
	int pages = 0;

	assert_int_equal(begin_in_doubt(fixture, "C77"), STEP_TRANSFER);
	while (strcmp(fixture->transfer.method, "GET") == 0) {
		assert_true(++pages <= 50);
		assert_int_equal(
			answer(fixture, 200,
				"{\"ok\":true,\"response_metadata\":{\"next_cursor\":\"x\"}}"),
			STEP_TRANSFER);
	}
	assert_non_null(strstr(fixture->attempt.notice, "too long"));
}

static void test_webhook_cannot_look(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "webhook_url", "https://hooks.slack.com/services/T/B/canary");
	assert_int_equal(begin_in_doubt(fixture, ""), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.method, "POST");
	assert_int_equal(answer(fixture, 503, ""), STEP_FAILED);
	assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_BLIND);
}

/* Blocks that Slack refuses are sent once more as text, and only once. */
static void test_refused_blocks_become_text(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"), STEP_TRANSFER);
	body = json_loadb(fixture->transfer.body, fixture->transfer.body_length, 0, NULL);
	assert_non_null(body);
	assert_null(json_object_get(body, "blocks"));
	assert_string_equal(json_string_value(json_object_get(body, "text")), "t");
	json_decref(body);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"), STEP_FAILED);
	assert_false(fixture->attempt.retry);
	assert_int_equal(fixture->error.kind, ERROR_DATA);
}

/* One that does not know charts gets the other blocks; one that knows neither, the text. */
static void test_refused_charts_go_first(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	fixture->attempt.payload =
		"{\"channel\":\"#perf\",\"text\":\"t\",\"blocks\":[{\"type\":\"divider\"},"
		"{\"type\":\"data_visualization\"},{\"type\":\"data_visualization\"}]}";
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"), STEP_TRANSFER);
	body = json_loadb(fixture->transfer.body, fixture->transfer.body_length, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(body, "blocks")), 1);
	json_decref(body);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"), STEP_TRANSFER);
	body = json_loadb(fixture->transfer.body, fixture->transfer.body_length, 0, NULL);
	assert_null(json_object_get(body, "blocks"));
	json_decref(body);
	assert_int_equal(
		answer(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"), STEP_FAILED);
}

/* Charts of the two worst whose points are known, whatever the names and times. */
static void test_charts(void **state)
{
	struct fixture *fixture = *state;
	struct arena *arena = arena_new();
	char *longest = arena_alloc(arena, 10001);
	int64_t times[100];
	double values[100];
	struct announcement items[4];
	struct message message = {.key = "k", .items = items, .count = 4};
	const json_t *blocks, *chart, *series;
	json_t *body;

	memset(longest, 'x', 10000);
	for (int i = 0; i < 100; i++) {
		times[i] = START + i * INT64_C(86400000) + i / 50;
		values[i] = i < 50 ? 1 : 2;
	}
	for (int i = 0; i < 4; i++) {
		items[i] = (struct announcement){.test = i == 1 ? "<!here>\n\xe2\x80\xae" : "db",
			.metric = i == 2 ? longest : "p99",
			.unit = i == 2 ? longest : "ms",
			.direction = -1,
			.time = times[50],
			.change = {LEVELS(1, 5 - i)},
			.excerpt = excerpt_pack(arena, times, values, 100, 50, 50)};
	}
	items[0].excerpt = (struct packed_excerpt){0};
	slack_render(&message, "#perf", true, &fixture->out);
	body = slack_check(fixture->out.data, "#perf");
	blocks = json_object_get(body, "blocks");
	chart = json_object_get(json_array_get(blocks, 1), "chart");
	series = json_object_get(json_array_get(json_object_get(chart, "series"), 0), "data");
	assert_int_equal(json_array_size(series), 20);
	assert_true(json_number_value(json_object_get(json_array_get(series, 9), "value")) == 1);
	assert_true(json_number_value(json_object_get(json_array_get(series, 10), "value")) == 2);
	series = json_object_get(json_array_get(json_object_get(chart, "series"), 1), "data");
	assert_true(json_number_value(json_object_get(json_array_get(series, 9), "value")) == 1);
	assert_true(json_number_value(json_object_get(json_array_get(series, 10), "value")) == 4);
	assert_string_equal(json_string_value(json_object_get(json_array_get(blocks, 2), "type")),
		"data_visualization");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(blocks, 3), "type")), "divider");
	json_decref(body);

	/* All at one time, and with too few points: named by number, and none. */
	for (int i = 0; i < 100; i++)
		times[i] = i < 50 ? START : START + 1;
	items[1].time = START + 1;
	items[1].excerpt = excerpt_pack(arena, times, values, 100, 50, 50);
	items[2].excerpt = excerpt_pack(arena, times, values, 3, 1, 1);
	items[3].excerpt = (struct packed_excerpt){(const unsigned char *)"\377", 1};
	buf_clear(&fixture->out);
	slack_render(&message, NULL, true, &fixture->out);
	body = slack_check(fixture->out.data, NULL);
	blocks = json_object_get(body, "blocks");
	chart = json_object_get(json_array_get(blocks, 1), "chart");
	assert_string_equal(
		json_string_value(json_array_get(
			json_object_get(json_object_get(chart, "axis_config"), "categories"), 19)),
		"20");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(blocks, 2), "type")), "divider");
	json_decref(body);
	arena_free(arena);
}

static void test_webhook(void **state)
{
	struct fixture *fixture = *state;
	struct strings destinations;

	set_option(fixture, "webhook_url", "https://hooks.slack.com/services/T/B/canary");
	fixture->attempt.destination = "";
	assert_true(notifier_destinations(
		&slack_notifier, fixture->options, fixture->arena, &destinations, &fixture->error));
	assert_int_equal(destinations.count, 1);
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "https://hooks.slack.com/services/T/B/canary");
	assert_null(fixture->transfer.bearer);
	assert_int_equal(answer(fixture, 200, "ok"), STEP_DONE);
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_int_equal(
		answer(fixture, 404, "<p>/services/T/B/canary was not found</p>"), STEP_FAILED);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_null(strstr(fixture->error.text, "canary"));
	set_option(fixture, "webhook_url", "hooks.slack.com/canary");
	assert_int_equal(begin_anew(fixture), STEP_FAILED);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_null(strstr(fixture->error.text, "canary"));
}

static void test_secret_files(void **state)
{
	struct fixture *fixture = *state;
	char path[] = "/tmp/test_slack.XXXXXX";
	int file = mkstemp(path);

	set_option(fixture, "bot_token_file", path);
	assert_int_equal(begin_anew(fixture), STEP_FAILED);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_non_null(strstr(fixture->error.text, "is empty"));
	assert_int_equal(write(file, TOKEN "\n", strlen(TOKEN) + 1), strlen(TOKEN) + 1);
	assert_int_equal(begin_anew(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.bearer, TOKEN);
	assert_int_equal(pwrite(file, "two\nlines\n", 10, 0), 10);
	assert_int_equal(begin_anew(fixture), STEP_FAILED);
	assert_int_equal(ftruncate(file, 100000), 0);
	assert_int_equal(begin_anew(fixture), STEP_FAILED);
	close(file);
	unlink(path);
	assert_int_equal(begin_anew(fixture), STEP_FAILED);
	assert_false(fixture->attempt.retry);
	assert_non_null(strstr(fixture->error.text, path));
}

/* The options of stdout without colours. */
static const void *plain(struct fixture *fixture)
{
	char *options = arena_alloc(fixture->arena, stdout_notifier.plugin.options_size);
	const struct field *color = field_find(stdout_notifier.plugin.fields, "color");

	field_defaults(stdout_notifier.plugin.fields, options);
	assert_true(field_parse(color, options, "never", fixture->arena, &fixture->error));
	return options;
}

static void test_stdout_text(void **state)
{
	struct fixture *fixture = *state;
	const void *never = plain(fixture);

	assert_true(notifier_render(
		&stdout_notifier, &example, never, "", &fixture->out, &fixture->error));
	fixture->attempt.options = never;
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(notifier_step(&stdout_notifier, &fixture->attempt, NULL,
				 &fixture->transfer, &fixture->error),
		STEP_TRANSFER);
	assert_int_equal(fixture->transfer.kind, TRANSFER_STDOUT);
	assert_string_equal(fixture->transfer.body,
		"1 regression, 1 improvement, 1 other change in demo.write.batch-10, "
		"demo.lwt.1000-partitions since 2021-07-02 00:00:00 +0000\n"
		"\n"
		"2021-07-02 00:00:00 +0000\n"
		"  demo.write.batch-10\n"
		"    p99: +24%  31,700,000 --> 39,400,000 ns  regression\n"
		"      a60027ff .. 15ce8e36\n"
		"  demo.lwt.1000-partitions\n"
		"    p95: -15%  200 --> 170  improvement\n"
		"      a60027ff .. 15ce8e36\n"
		"\n"
		"2021-07-03 00:00:00 +0000\n"
		"  demo.write.batch-10\n"
		"    <!channel> & co: new  0 --> 4\n"
		"      ? .. 1.2\n"
		"\n");
	assert_int_equal(fixture->transfer.body_length, strlen(fixture->transfer.body));
}

static void test_stdout_place_size_and_trend(void **state)
{
	struct fixture *fixture = *state;
	const void *never = plain(fixture);

	assert_true(notifier_render(
		&stdout_notifier, &description, never, "", &fixture->out, &fixture->error));
	fixture->attempt.options = never;
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(notifier_step(&stdout_notifier, &fixture->attempt, NULL,
				 &fixture->transfer, &fixture->error),
		STEP_TRANSFER);
	assert_string_equal(fixture->transfer.body,
		"2 regressions, 1 improvement in db.read, db.write since 2021-07-02 00:00:00 "
		"+0000\n"
		"\n"
		"2021-07-02 00:00:00 +0000\n"
		"  db.read\n"
		"    rss: +100%  trend from 100 to 200 MB over 2021-07-01 .. 2021-07-09, +1.0 a "
		"point  regression\n"
		"      c22 .. c99\n"
		"    p50: +6.3% [5.1, 7.4]  100 --> 106.3  regression\n"
		"      between 2021-07-01 22:00 and 2021-07-02 01:00\n"
		"      c27 .. c31, most likely c30\n"
		"      https://example.com/c27...c31\n"
		"  db.write\n"
		"    rate: +5.0% [4.0, 6.0]  10 --> 10.5  improvement\n"
		"      between 2021-07-02 00:00 and 2021-07-02 01:00\n"
		"      1.1 .. 1.3, most likely 1.2\n"
		"\n");
}

static void test_text_of_sizes(void **state)
{
	static const struct {
		double size, low, high;
		const char *text;
	} cases[] = {
		{6.3, 5.12, 7.4, "+6.3% [5.1, 7.4]"},
		{-6.3, -7.4, -5.12, "-6.3% [-7.4, -5.1]"},
		{24.2, 20.6, 28.1, "+24% [21, 28]"},
		{20.04, 19.5, 20.6, "+20% [19.5, 20.6]"},
		{20.3, 20.02, 20.6, "+20% [20.0, 20.6]"},
		{10.4, 10.1, 10.7, "+10.4% [10.1, 10.7]"},
		{20, 20, 20, "+20%"},
		{2e6, 1e6, 4e6, "+2e+06% [1e+06, 4e+06]"},
		{20, (double)NAN, (double)NAN, "+20%"},
		{20, -HUGE_VAL, HUGE_VAL, "+20%"},
		{(double)NAN, (double)NAN, (double)NAN, "new"},
		{HUGE_VAL, 1, 2, "new"},
		{0.00143, 0.00143, 0.00143, "+0.0014%"},
		{0.07, -0.01, 0.16, "+0.1% [-0.01, 0.2]"},
	};
	struct buf text = {0};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct change change = {.size = cases[i].size,
			.size_low = cases[i].low,
			.size_high = cases[i].high};

		buf_clear(&text);
		text_size(&text, &change);
		assert_string_equal(text.data, cases[i].text);
	}
	buf_free(&text);
}

/* No escape of the data reaches a terminal; what is left are our own colours. */
static void test_stdout_links_clusters_and_more(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.test = "db.read",
		.metric = "p99",
		.time = START,
		.change = {LEVELS(1, 2), .pvalue = 0.001},
		.commit_before = "a1",
		.commit_after = "b2",
		.commit_url = "https://example.com/b2",
		.compare_url = "https://example.com/a1...b2",
		.members = 1336,
		.shared = "96% renderer=gpu"};
	struct message message = {.key = "key",
		.kind = MESSAGE_UPDATED,
		.items = &item,
		.count = 1,
		.thread = "k0",
		.more_of = &item};

	assert_true(notifier_render(
		&stdout_notifier, &message, NULL, "", &fixture->out, &fixture->error));
	assert_non_null(
		strstr(fixture->out.data, "more change points of 2021-07-02 00:00:00 +0000"));
	assert_non_null(strstr(fixture->out.data, "    1336 series "));
	assert_non_null(strstr(fixture->out.data, "+100%\033[0m, 96% renderer=gpu\n"));
	assert_non_null(strstr(fixture->out.data, "a1 .. b2\n      https://example.com/a1...b2\n"));
}

static void test_stdout_property_no_escapes(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 9;
	const void *never = plain(fixture);

	fixture->attempt.options = never;
	for (int round = 0; round < 300; round++) {
		struct announcement items[5];
		struct message message = {.key = "key", .items = items, .count = 5};
		const char *names[NAMES];

		random_names(fixture->arena, &random, 40, names);
		for (size_t i = 0; i < 5; i++)
			items[i] = random_item(fixture->arena, &random, 40, names, 4);
		qsort(items, 5, sizeof *items, compare_times);
		buf_clear(&fixture->out);
		assert_true(notifier_render(
			&stdout_notifier, &message, never, "", &fixture->out, &fixture->error));
		fixture->attempt.payload = fixture->out.data;
		notifier_step(&stdout_notifier, &fixture->attempt, NULL, &fixture->transfer,
			&fixture->error);
		for (const char *at = fixture->transfer.body; *at; at++)
			assert_true((unsigned char)*at >= 0x20 || *at == '\n');
	}
}

#define CASE(name, before) cmocka_unit_test_setup_teardown(name, before, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_markup_of_names, setup),
		CASE(test_no_markup_of_names_in_a_message, setup),
		CASE(test_looks_like_hunters, setup),
		CASE(test_place_size_and_trend, setup),
		CASE(test_text_of_sizes, setup),
		CASE(test_stdout_place_size_and_trend, setup),
		CASE(test_metadata_holds_key_and_ids, setup),
		CASE(test_property_limits_hold, setup),
		CASE(test_thirty_thousand_changes, setup),
		CASE(test_bot_posts_to_each_channel, setup_bot),
		CASE(test_misconfigured_is_told, setup),
		CASE(test_answers_are_classified, setup_bot),
		CASE(test_retry_after_is_handed_on, setup_bot),
		CASE(test_no_answer_is_tried_again, setup_bot),
		CASE(test_doubt_looks_first, setup_bot),
		CASE(test_what_is_not_there_is_posted, setup_bot),
		CASE(test_search_that_is_denied, setup_bot),
		CASE(test_search_waits_until_slack_is_well, setup_bot),
		CASE(test_doubt_outlives_a_denied_search, setup_bot),
		CASE(test_search_ends, setup_bot),
		CASE(test_webhook_cannot_look, setup),
		CASE(test_refused_blocks_become_text, setup_bot),
		CASE(test_refused_charts_go_first, setup_bot),
		CASE(test_charts, setup_bot),
		CASE(test_webhook, setup),
		CASE(test_secret_files, setup),
		CASE(test_stdout_text, setup),
		CASE(test_stdout_links_clusters_and_more, setup),
		CASE(test_stdout_property_no_escapes, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
