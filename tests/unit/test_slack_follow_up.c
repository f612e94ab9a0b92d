/*
 * What happens to a Slack message after it was sent: what triagers' reactions say from one look to
 * the next, what the edited message looks like, and what is made of each answer.
 */
#include "unit.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "delivery_talk.h"
#include "notifiers/slack/api.h"
#include "notifiers/slack/options.h"
#include "notifiers/slack/render.h"
#include "slack_payload.h"
#include "tests/unit/levels.h"
#include "tests/unit/random.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

static const char post[] =
	"{\"channel\":\"#perf\",\"text\":\"1 regression\",\"parse\":\"none\","
	"\"unfurl_links\":false,\"unfurl_media\":false,\"blocks\":[{\"type\":"
	"\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":\"*db*\",\"verbatim\":"
	"true}}],\"metadata\":{\"event_type\":\"hunter_c_changes\","
	"\"event_payload\":{\"key\":\"k-1\"}}}";

static struct follow_up follow_up;
static struct announced_change changes[200];

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&slack_notifier, "#perf", post);

	set_option(fixture, "token", "xoxb-canary-1234");
	set_option(fixture, "channels", "#perf");
	set_option(fixture, "triagers", "U1,U2");
	follow_up = (struct follow_up){.kind = FOLLOW_UP_READ, .changes = changes, .count = 1};
	changes[0] = (struct announced_change){.triage = {.state = TRIAGE_OPEN}};
	fixture->attempt.receipt = "1503.02 1 1504.03 C77";
	fixture->attempt.follow_up = &follow_up;
	fixture->attempt.now = START;
	*state = fixture;
	return 0;
}

static enum step follow(struct fixture *fixture, const struct reply *last)
{
	return notifier_step(
		&slack_notifier, &fixture->attempt, last, &fixture->transfer, &fixture->error);
}

static enum step reply_with(struct fixture *fixture, int status, const char *body)
{
	const struct reply reply = {.kind = REPLY_ANSWER,
		.status = status,
		.retry_after = -1,
		.body = body,
		.length = strlen(body)};

	return follow(fixture, &reply);
}

/* Reads the message once, with these reactions. */
static void look(struct fixture *fixture, const char *reactions)
{
	char body[2000];

	follow_up.state = 0;
	follow_up.undone = 0;
	follow_up.person = follow_up.overrides = NULL;
	snprintf(body, sizeof body,
		"{\"ok\":true,\"type\":\"message\",\"channel\":\"C77\",\"message\":{\"type\":"
		"\"message\",\"ts\":\"1504.03\",\"reactions\":[%s]}}",
		reactions);
	assert_int_equal(follow(fixture, NULL), STEP_TRANSFER);
	assert_int_equal(reply_with(fixture, 200, body), STEP_DONE);
}

#define EYES "{\"name\":\"eyes\",\"users\":[\"U1\"],\"count\":1}"
#define X_BY_2 "{\"name\":\"x\",\"users\":[\"U2\"],\"count\":1}"

static void assert_nothing_said(void)
{
	assert_int_equal(follow_up.state, 0);
	assert_int_equal(follow_up.undone, 0);
}

/* What was said is what the change is, from now on. */
static void obey(struct fixture *fixture, const char *person)
{
	changes[0].triage.state = follow_up.state;
	changes[0].triage.time = fixture->attempt.now;
	changes[0].triage.version++;
	assert_string_equal(follow_up.person, person);
	fixture->attempt.now += 1000;
}

static void test_reads_by_channel_and_time(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(follow(fixture, NULL), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.method, "GET");
	assert_string_equal(fixture->transfer.url,
		"https://slack.com/api/reactions.get?full=true&channel=C77&timestamp=1504.03");
	assert_string_equal(fixture->transfer.bearer, "xoxb-canary-1234");
}

static void test_a_reaction_is_taken_once(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, "");
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "");
	look(fixture, EYES);
	assert_int_equal(follow_up.state, TRIAGE_ACKNOWLEDGED);
	assert_string_equal(follow_up.taken, "eyes:U1@1625184000000");
	obey(fixture, "U1");
	look(fixture, EYES);
	assert_nothing_said();
	/* Somebody opens it again: the same reaction is not taken again. */
	changes[0].triage =
		(struct triage){.state = TRIAGE_OPEN, .time = START + 500, .version = 2};
	look(fixture, EYES);
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "eyes:U1@1625184000000");
}

static void test_the_removal_takes_back(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, EYES);
	obey(fixture, "U1");
	look(fixture, "");
	assert_int_equal(follow_up.undone, START);
	assert_string_equal(follow_up.person, "U1");
	assert_string_equal(follow_up.taken, "");
	look(fixture, "");
	assert_nothing_said();
	look(fixture, EYES); /* and it may be said anew */
	assert_int_equal(follow_up.state, TRIAGE_ACKNOWLEDGED);
}

static void test_the_latest_wins_and_what_it_overrides_is_told_once(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, EYES);
	assert_null(follow_up.overrides);
	obey(fixture, "U1");
	look(fixture, EYES "," X_BY_2);
	assert_int_equal(follow_up.state, TRIAGE_FALSE);
	assert_string_equal(follow_up.overrides, "acknowledged");
	assert_string_equal(follow_up.taken, "eyes:U1 x:U2@1625184001000");
	obey(fixture, "U2");
	look(fixture, EYES "," X_BY_2);
	assert_nothing_said();
	assert_null(follow_up.overrides);
	look(fixture, X_BY_2); /* the one that does not count any more */
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "x:U2@1625184001000");
	look(fixture, "");
	assert_int_equal(follow_up.undone, START + 1000);
}

static void test_a_second_one_that_says_the_same_holds_it(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, EYES);
	obey(fixture, "U1");
	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U1\",\"U2\"],\"count\":2}");
	assert_nothing_said();
	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U2\"],\"count\":1}");
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "eyes:U2@1625184000000");
	look(fixture, "");
	assert_int_equal(follow_up.undone, START);
}

/* It is open again meanwhile, so the second one says something. */
static void test_a_second_one_after_it_was_opened(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, EYES);
	obey(fixture, "U1");
	changes[0].triage = (struct triage){.state = TRIAGE_OPEN, .time = START + 7, .version = 2};
	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U1\",\"U2\"],\"count\":2}");
	assert_int_equal(follow_up.state, TRIAGE_ACKNOWLEDGED);
	assert_string_equal(follow_up.person, "U2");
	assert_null(follow_up.overrides);
}

static void test_who_and_what_does_not_count(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U3\",\"U11\",7],\"count\":3},"
		      "{\"name\":\"tada\",\"users\":[\"U1\"],\"count\":1},"
		      "{\"name\":7,\"users\":[\"U1\"]},{\"users\":7},8");
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "");
	look(fixture, "{\"name\":\"construction::skin-tone-2\",\"users\":[\"U2\"],\"count\":1}");
	assert_int_equal(follow_up.state, TRIAGE_INFRA);
}

/* Slack may list fewer users than there are: who is not listed may be there still. */
static void test_a_list_that_is_cut_takes_nothing_back(void **state)
{
	struct fixture *fixture = *state;

	look(fixture, EYES);
	obey(fixture, "U1");
	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U7\",\"U8\"],\"count\":40}");
	assert_nothing_said();
	assert_string_equal(follow_up.taken, "eyes:U1@1625184000000");
	look(fixture, "{\"name\":\"eyes\",\"users\":[\"U7\",\"U8\"],\"count\":2}");
	assert_int_equal(follow_up.undone, START);
}

static void test_own_emoji(void **state)
{
	static const struct pair own[] = {{":shipit:", "fixed"}, {"eyes", "expected"}};
	struct fixture *fixture = *state;

	((struct slack_options *)fixture->options)->reactions = (struct pairs){own, 2};
	look(fixture, "{\"name\":\"shipit\",\"users\":[\"U1\"],\"count\":1}");
	assert_int_equal(follow_up.state, TRIAGE_FIXED);
	look(fixture, X_BY_2);
	assert_int_equal(follow_up.undone, START);
	look(fixture, EYES);
	assert_int_equal(follow_up.state, TRIAGE_EXPECTED);
}

/* Another configuration is no word of the person who reacted. */
static void test_a_configuration_takes_nothing_back(void **state)
{
	static const struct pair own[] = {{"tada", "expected"}};
	struct fixture *fixture = *state;
	struct slack_options *options = fixture->options;
	const struct slack_options before = *options;

	look(fixture, X_BY_2);
	obey(fixture, "U2");
	options->triagers.count = 1;
	look(fixture, X_BY_2);
	assert_nothing_said();
	*options = before;
	options->reactions = (struct pairs){own, 1};
	look(fixture, X_BY_2);
	assert_nothing_said();
	*options = before;
	look(fixture, X_BY_2);
	assert_nothing_said();
	look(fixture, "");
	assert_int_equal(follow_up.undone, START);
}

/* Notes that nobody wrote: no step fails, and what they say is bounded. */
static void test_odd_notes(void **state)
{
	static const char *const notes[] = {" ", "::::", "eyes", ":U1", "eyes:U1@",
		"eyes:U1@x y:z@9", "eyes:U1@5 eyes:U1@6", "eyes:U1@-4"};
	struct fixture *fixture = *state;
	struct buf many = {0};

	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		follow_up.taken = notes[i];
		look(fixture, EYES);
	}
	for (int i = 0; i < 1000; i++)
		buf_printf(&many, "eyes:U%d ", i);
	follow_up.taken = many.data;
	look(fixture, EYES);
	buf_free(&many);
}

static json_t *amended(struct fixture *fixture)
{
	follow_up.kind = FOLLOW_UP_AMEND;
	assert_int_equal(follow(fixture, NULL), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.method, "POST");
	assert_string_equal(fixture->transfer.url, "https://slack.com/api/chat.update");
	assert_int_equal(fixture->transfer.body_length, strlen(fixture->transfer.body));
	return json_loads(fixture->transfer.body, JSON_REJECT_DUPLICATES, NULL);
}

static const char *context_of(const json_t *body)
{
	const json_t *blocks = json_object_get(body, "blocks");
	const json_t *last = json_array_get(blocks, json_array_size(blocks) - 1);
	const json_t *element = json_array_get(json_object_get(last, "elements"), 0);

	assert_string_equal(json_string_value(json_object_get(last, "type")), "context");
	return json_string_value(json_object_get(element, "text"));
}

static void test_the_message_shows_the_triage(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	changes[0].triage = (struct triage){.state = TRIAGE_EXPECTED,
		.version = 1,
		.person = "U012AB3CD",
		.owner = "ann <!channel>",
		.note = "bigger cache, *PR* 4411",
		.link = "https://git.example/pr/4411",
		.until = START};
	body = amended(fixture);
	json_decref(slack_check(fixture->transfer.body, "C77"));
	assert_string_equal(json_string_value(json_object_get(body, "ts")), "1504.03");
	assert_string_equal(json_string_value(json_object_get(body, "text")), "1 regression");
	assert_string_equal(json_string_value(json_object_get(body, "parse")), "none");
	assert_null(json_object_get(body, "unfurl_links"));
	assert_non_null(json_object_get(body, "metadata"));
	assert_int_equal(json_array_size(json_object_get(body, "blocks")), 2);
	assert_string_equal(context_of(body),
		":white_check_mark: *expected* by <@U012AB3CD>, owner ann &lt;!channel&gt;, until "
		"<!date^1625184000^{date_short_pretty} {time}|2021-07-02 00:00:00 +0000>: bigger "
		"cache, ∗PR∗ 4411 <https://git.example/pr/4411|link>");
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":true,\"ts\":\"1504.03\"}"), STEP_DONE);
}

static void test_changes_of_different_triage(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	for (size_t i = 0; i < 5; i++)
		changes[i].triage = (struct triage){.state = TRIAGE_OPEN};
	changes[1].triage = changes[3].triage = (struct triage){
		.state = TRIAGE_ACKNOWLEDGED, .version = 2, .person = "bob", .link = "a|b"};
	changes[4].triage =
		(struct triage){.state = TRIAGE_OPEN, .version = 3, .person = "hunter-c"};
	follow_up.count = 5;
	body = amended(fixture);
	assert_string_equal(context_of(body), "*open* (2 of 5)\n:eyes: *acknowledged* (2 of 5) by "
					      "bob\n*open again* (1 of 5) by hunter-c");
	json_decref(body);
	follow_up.count = 200;
	for (size_t i = 0; i < 200; i++)
		changes[i].triage = (struct triage){.state = TRIAGE_FALSE,
			.version = 1,
			.person = arena_printf(fixture->arena, "%zu", i)};
	body = amended(fixture);
	assert_non_null(strstr(context_of(body), "\nand 196 more"));
	json_decref(slack_check(fixture->transfer.body, "C77"));
	json_decref(body);
}

/* As many changes as a post takes, and the longest that people can say. */
static void test_property_room_is_left(void **state)
{
	static const char *const names[] = {"p50", "p99", "mean", "req_per_s{host=\"a\"}"};
	struct fixture *fixture = *state;
	struct announcement items[400];
	char note[5001], test[40];
	uint64_t random = 3;

	memset(note, '<', sizeof note - 1);
	note[sizeof note - 1] = '\0';
	changes[0].triage = (struct triage){
		.state = TRIAGE_IGNORED, .version = 1, .person = note, .owner = note, .note = note};
	for (size_t round = 0; round < 60; round++) {
		size_t count = 1 + round * 6;
		struct message message = {.key = "k-1", .items = items, .count = count};

		for (size_t i = 0; i < count; i++) {
			snprintf(test, sizeof test, "test-%03zu", i);
			items[i] = (struct announcement){.id = (int64_t)i,
				.test = arena_strdup(fixture->arena, test),
				.metric = names[i % 4],
				.direction = -1,
				.time = START + (int64_t)(round % 2 ? i * 1000000 : 0),
				.change = {
					LEVELS(200, 100 + (double)(random_next(&random) % 300))}};
		}
		buf_clear(&fixture->out);
		slack_render(&message, "#perf", true, &fixture->out);
		fixture->attempt.payload = fixture->out.data;
		json_decref(amended(fixture));
		json_decref(slack_check(fixture->transfer.body, "C77"));
	}
}

/* What became of the changes, and what people say of them; nothing is sent where the message says
 * all, and it is edited back when it was edited before. */
static void test_the_message_shows_what_became_of_its_changes(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	for (size_t i = 0; i < 3; i++)
		changes[i] = (struct announced_change){.item = {.test = "db",
							       .metric = i == 1 ? "p<9" : "p99",
							       .change = {.size = 10,
								       .level_before = 10,
								       .level_after = 11,
								       .mean_before = 10,
								       .mean_after = 11}},
			.triage = {.state = TRIAGE_OPEN}};
	follow_up.count = 3;
	follow_up.kind = FOLLOW_UP_AMEND;
	assert_int_equal(follow(fixture, NULL), STEP_DONE);
	changes[0].state = ANNOUNCED_RECOVERED;
	changes[1].state = ANNOUNCED_WITHDRAWN;
	changes[2].item.time = START;
	body = amended(fixture);
	json_decref(slack_check(fixture->transfer.body, "C77"));
	assert_string_equal(context_of(body),
		":large_green_circle: *recovered* (1 of 3): db p99 +10%\n"
		"*no longer found* (1 of 3): db p&lt;9 +10%\n*moved* (1 of 3): db p99 +10% to "
		"<!date^1625184000^{date_short_pretty} {time}|2021-07-02 00:00:00 +0000>");
	json_decref(body);
	for (size_t i = 0; i < 3; i++)
		changes[i].state = ANNOUNCED_RECOVERED;
	changes[2].triage = (struct triage){.state = TRIAGE_FIXED, .version = 1, .person = "ann"};
	body = amended(fixture);
	assert_string_equal(context_of(body), ":large_green_circle: *recovered*\n*open* (2 of 3)\n"
					      "*fixed* (1 of 3) by ann");
	json_decref(body);
	for (size_t i = 0; i < 3; i++) {
		changes[i].state = ANNOUNCED_STANDS;
		changes[i].triage = (struct triage){.state = TRIAGE_OPEN};
		changes[i].item.time = 0;
	}
	follow_up.amended = true;
	body = amended(fixture);
	assert_int_equal(json_array_size(json_object_get(body, "blocks")), 1);
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":false,\"error\":\"message_not_found\"}"),
		STEP_FAILED);
	assert_true(follow_up.gone && follow_up.deleted);
}

/* What joined since counts in the headline, what was withdrawn does not. */
static void test_the_headline_leaves_out_what_was_withdrawn(void **state)
{
	static const struct announced_change joined = {
		.item = {.test = "db", .metric = "p50", .change = {LEVELS(10, 11)}}};
	struct fixture *fixture = *state;
	json_t *body;

	for (size_t i = 0; i < 2; i++)
		changes[i] = (struct announced_change){
			.item = {.test = "db",
				.metric = "p99",
				.change = {LEVELS(10, i == 0 ? 90.0 : 12.0)}},
			.triage = {.state = TRIAGE_OPEN}};
	changes[0].state = ANNOUNCED_WITHDRAWN;
	follow_up.count = 2;
	follow_up.joined = &joined;
	follow_up.joined_count = 1;
	body = amended(fixture);
	json_decref(slack_check(fixture->transfer.body, "C77"));
	assert_string_equal(context_of(body), "*2 changes by now*, the worst: db p99 +20%\n"
					      "*no longer found* (1 of 2): db p99 +800%");
	json_decref(body);
}

/* A full post of an earlier version. */
static void test_a_post_without_room_stays(void **state)
{
	struct fixture *fixture = *state;
	struct buf full = {0};

	buf_text(&full, "{\"text\":\"t\",\"blocks\":[{\"type\":\"divider\"}");
	for (int i = 1; i < 50; i++)
		buf_text(&full, ",{\"type\":\"divider\"}");
	buf_text(&full, "]}");
	fixture->attempt.payload = full.data;
	changes[0].triage.version = 1;
	follow_up.kind = FOLLOW_UP_AMEND;
	assert_int_equal(follow(fixture, NULL), STEP_FAILED);
	assert_true(follow_up.gone);
	buf_free(&full);
}

/* Slack does not want the blocks, as it did not when the message was posted. */
static void test_refused_blocks_become_text(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	changes[0].triage.version = 1;
	body = amended(fixture);
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"),
		STEP_TRANSFER);
	body = json_loads(fixture->transfer.body, 0, NULL);
	assert_null(json_object_get(body, "blocks"));
	assert_string_equal(
		json_string_value(json_object_get(body, "text")), "1 regression\n*open again*");
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"),
		STEP_FAILED);
	assert_true(follow_up.gone);
}

/* A Slack that did not know the charts when the message was posted gets it without them again. */
static void test_refused_charts_go_first(void **state)
{
	struct fixture *fixture = *state;
	json_t *body;

	fixture->attempt.payload = "{\"channel\":\"#perf\",\"text\":\"t\",\"blocks\":"
				   "[{\"type\":\"divider\"},{\"type\":\"data_visualization\"}]}";
	changes[0].triage.version = 1;
	follow_up.kind = FOLLOW_UP_AMEND;
	assert_int_equal(follow(fixture, NULL), STEP_TRANSFER);
	body = json_loads(fixture->transfer.body, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(body, "blocks")), 3);
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"),
		STEP_TRANSFER);
	body = json_loads(fixture->transfer.body, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(body, "blocks")), 2);
	json_decref(body);
	assert_int_equal(reply_with(fixture, 200, "{\"ok\":false,\"error\":\"invalid_blocks\"}"),
		STEP_TRANSFER);
	body = json_loads(fixture->transfer.body, 0, NULL);
	assert_null(json_object_get(body, "blocks"));
	json_decref(body);
}

static void test_answers_are_classified(void **state)
{
	static const struct {
		int status;
		const char *body;
		bool retry, gone;
		enum error_kind kind;
		const char *words;
	} cases[] = {
		{429, "", true, false, ERROR_DATA, "HTTP status 429"},
		{503, "", true, false, ERROR_DATA, "HTTP status 503"},
		{404, "", false, false, ERROR_USAGE, "HTTP status 404"},
		{200, "<html>", true, false, ERROR_DATA, "not Slack's"},
		{200, "{\"ok\":true}", true, false, ERROR_DATA, "not Slack's"},
		{200, "{\"ok\":false,\"error\":\"ratelimited\"}", true, false, ERROR_DATA,
			"ratelimited"},
		{200, "{\"ok\":false,\"error\":\"internal_error\"}", true, false, ERROR_DATA,
			"internal_error"},
		{200, "{\"ok\":false,\"error\":\"missing_scope\",\"needed\":\"reactions:read\"}",
			false, false, ERROR_USAGE, "missing_scope: reactions:read"},
		{200, "{\"ok\":false,\"error\":\"invalid_auth\"}", false, false, ERROR_USAGE,
			"invalid_auth"},
		{200, "{\"ok\":false,\"error\":\"not_in_channel\"}", false, false, ERROR_USAGE,
			"not_in_channel"},
		{200, "{\"ok\":false,\"error\":\"message_not_found\"}", false, true, ERROR_DATA,
			"message_not_found"},
		{200, "{\"ok\":false,\"error\":\"edit_window_closed\"}", false, true, ERROR_DATA,
			"edit_window_closed"},
		{200, "{\"ok\":false,\"error\":\"cant_update_message\"}", false, true, ERROR_DATA,
			"cant_update_message"},
		{200, "{\"ok\":false,\"error\":\"msg_too_long\"}", false, true, ERROR_DATA,
			"msg_too_long"},
	};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		follow_up =
			(struct follow_up){.kind = FOLLOW_UP_READ, .changes = changes, .count = 1};
		assert_int_equal(follow(fixture, NULL), STEP_TRANSFER);
		if (reply_with(fixture, cases[i].status, cases[i].body) != STEP_FAILED ||
			fixture->attempt.retry != cases[i].retry ||
			follow_up.gone != cases[i].gone || fixture->error.kind != cases[i].kind ||
			!strstr(fixture->error.text, cases[i].words))
			fail_msg("%s: retry %d, gone %d, %s", cases[i].body, fixture->attempt.retry,
				follow_up.gone, fixture->error.text);
		assert_non_null(strstr(fixture->error.text, "slack #perf: "));
	}
}

static void test_receipts(void **state)
{
	static const char *const texts[] = {"1.2 1", "1.2 3 1.4 C1"};
	struct fixture *fixture = *state;
	struct slack_receipt receipt;

	for (size_t i = 0; i < 2; i++) {
		receipt = slack_receipt_read(fixture->arena, texts[i]);
		assert_string_equal(slack_receipt(fixture->arena, &receipt), texts[i]);
	}
	assert_int_equal(slack_receipt_read(fixture->arena, "1.2").posts, 1);
	assert_null(slack_receipt_read(fixture->arena, "").thread);
	assert_null(slack_receipt_read(fixture->arena, NULL).thread);
	receipt = (struct slack_receipt){"1.2", 1, "1.2", "C 1"}; /* Slack has no such id */
	assert_string_equal(slack_receipt(fixture->arena, &receipt), "1.2 1");
	fixture->attempt.receipt = "1.2 1";
	assert_int_equal(follow(fixture, NULL), STEP_FAILED);
	assert_true(follow_up.gone);
}

static void test_who_amends_and_listens(void **state)
{
	struct fixture *fixture = *state;
	struct slack_options webhook = {.webhook_url = "https://hooks.example/x"},
			     bot = {.bot_token = "xoxb"};

	assert_true(slack_notifier.amends(fixture->options));
	assert_true(slack_notifier.listens(fixture->options));
	assert_true(slack_notifier.amends(&bot));
	assert_false(slack_notifier.listens(&bot));
	assert_false(slack_notifier.amends(&webhook));
	assert_false(slack_notifier.listens(&webhook));
}

/* The validation names the line of the option that the text begins with. */
static void test_options_are_checked(void **state)
{
	static const char *const ann[] = {"U012AB3CD", "@ann"}, *const right[] = {"W012AB3CD"};
	static const struct pair near[] = {{":eyes:", "acknowledged"}, {"x", "fals"}},
				 twice[] = {{":eyes:", "acknowledged"}, {"eyes", "infra"}},
				 blank[] = {{"two words", "infra"}}, none[] = {{"::", "infra"}},
				 fine[] = {{":+1:", "expected"}, {"no_bell", "open"}};
	static const struct {
		struct strings triagers;
		struct pairs reactions;
		const char *words;
	} cases[] = {
		{{ann, 2}, {0}, "triagers: \"@ann\" is not the id of a Slack user"},
		{{0}, {near, 2},
			"reactions: x: \"fals\" is not a triage state (did you mean \"false\"?)"},
		{{0}, {twice, 2}, "reactions: \"eyes\" is listed twice"},
		{{0}, {blank, 1}, "reactions: \"two words\" is not the name of an emoji"},
		{{0}, {none, 1}, "reactions: \"::\" is not the name of an emoji"},
		{{right, 1}, {fine, 2}, NULL},
	};
	struct fixture *fixture = *state;
	struct slack_options *options = fixture->options;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		options->triagers = cases[i].triagers;
		options->reactions = cases[i].reactions;
		assert_int_equal(slack_notifier.plugin.check(options, &fixture->error),
			cases[i].words == NULL);
		if (cases[i].words && !strstr(fixture->error.text, cases[i].words))
			fail_msg("%s", fixture->error.text);
	}
	options->bot_token = NULL;
	options->webhook_url = "https://hooks.example/x";
	assert_false(slack_notifier.plugin.check(options, &fixture->error));
	assert_non_null(strstr(fixture->error.text, "triagers: a bot_token is needed"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_reads_by_channel_and_time),
		CASE(test_a_reaction_is_taken_once),
		CASE(test_the_removal_takes_back),
		CASE(test_the_latest_wins_and_what_it_overrides_is_told_once),
		CASE(test_a_second_one_that_says_the_same_holds_it),
		CASE(test_a_second_one_after_it_was_opened),
		CASE(test_who_and_what_does_not_count),
		CASE(test_a_list_that_is_cut_takes_nothing_back),
		CASE(test_own_emoji),
		CASE(test_a_configuration_takes_nothing_back),
		CASE(test_odd_notes),
		CASE(test_the_message_shows_the_triage),
		CASE(test_changes_of_different_triage),
		CASE(test_property_room_is_left),
		CASE(test_the_message_shows_what_became_of_its_changes),
		CASE(test_the_headline_leaves_out_what_was_withdrawn),
		CASE(test_a_post_without_room_stays),
		CASE(test_refused_blocks_become_text),
		CASE(test_refused_charts_go_first),
		CASE(test_answers_are_classified),
		CASE(test_receipts),
		CASE(test_who_amends_and_listens),
		CASE(test_options_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
