/*
 * The webhook notifier: what it writes, signs and makes of each answer. Its documents are held
 * against the schema in tests/e2e/test_tell.py.
 */
#include "unit.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "delivery_talk.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&webhook_notifier, "", "{\"x\":1}");

	set_option(fixture, "url", "https://example.com/hook/canary");
	fixture->attempt.now = START;
	*state = fixture;
	return 0;
}

static json_t *render(struct fixture *fixture, const struct message *message)
{
	json_t *document;

	buf_clear(&fixture->out);
	assert_true(notifier_render(
		&webhook_notifier, message, fixture->options, "", &fixture->out, &fixture->error));
	document = json_loadb(fixture->out.data, fixture->out.length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	return document;
}

/* Of what a silence has held: which, of whom and why. */
static void test_silence(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.test = "db.read",
		.metric = "p99",
		.direction = -1,
		.time = START,
		.change = {LEVELS(100, 120)}};
	struct message message = {.key = "k",
		.items = &item,
		.count = 1,
		.summary = "silence 7 of ann is over: \x1bmigration"};
	json_t *document = render(fixture, &message);

	assert_string_equal(json_string_value(json_object_get(document, "silence")),
		"silence 7 of ann is over:  migration");
	assert_string_equal(json_string_value(json_object_get(document, "summary")),
		"silence 7 of ann is over:  migration; 1 change point in 1 test: 1 regression");
	json_decref(document);
	buf_clear(&fixture->out);
	message.summary = NULL;
	document = render(fixture, &message);
	assert_true(json_is_null(json_object_get(document, "silence")));
	json_decref(document);
}

static void test_document(void **state)
{
	struct fixture *fixture = *state;
	const struct attribute attributes[] = {{"machine\x1b", "m1", "m2\x1b[31m"}};
	struct announcement items[] = {
		{.id = 7,
			.test = "db.read",
			.metric = "p99\x1b[31m\xff",
			.direction = -1,
			.time = START,
			.change = {LEVELS(100, 120), .pvalue = 1e-5, .magnitude = 0.2},
			.place_from = START - 3600000,
			.place_to = START,
			.place_commit_before = "a0",
			.place_commit_after = "b2",
			.commit_after = "b2",
			.attributes = attributes,
			.attribute_count = 1,
			.compare_url = "https://example.com/a1...b2"},
		{.id = 8,
			.test = "db.read",
			.metric = "new",
			.time = START,
			.change = {.mean_after = 1, .level_after = 1, .size = (double)NAN},
			.members = 12,
			.shared = "all host=a"},
	};
	struct message message = {.key = "k", .items = items, .count = 2, .thread = "k0"};
	json_t *document = render(fixture, &message);
	const json_t *first = json_array_get(json_object_get(document, "changes"), 0);
	const json_t *second = json_array_get(json_object_get(document, "changes"), 1);

	assert_int_equal(json_integer_value(json_object_get(document, "version")), 1);
	assert_string_equal(json_string_value(json_object_get(document, "continues")), "k0");
	assert_string_equal(json_string_value(json_object_get(first, "verdict")), "regression");
	assert_string_equal(
		json_string_value(json_object_get(first, "metric")), "p99 [31m\xef\xbf\xbd");
	assert_string_equal(
		json_string_value(json_object_get(first, "time")), "2021-07-02T00:00:00Z");
	assert_true(json_number_value(json_object_get(first, "percent")) > 19.99);
	assert_true(json_is_null(json_object_get(first, "commit_before")));
	assert_string_equal(json_string_value(json_object_get(first, "kind")), "step");
	assert_true(json_number_value(json_object_get(first, "level_after")) == 120);
	assert_true(json_number_value(json_object_get(first, "size")) == 20);
	assert_true(json_is_null(json_object_get(first, "size_low")));
	assert_true(json_is_null(json_object_get(first, "slope")));
	assert_string_equal(
		json_string_value(json_object_get(first, "place_from")), "2021-07-01T23:00:00Z");
	assert_string_equal(
		json_string_value(json_object_get(first, "place_to")), "2021-07-02T00:00:00Z");
	assert_string_equal(json_string_value(json_object_get(first, "place_commit_before")), "a0");
	assert_true(json_is_null(json_object_get(first, "place_version_after")));
	assert_int_equal(json_object_size(json_object_get(first, "attributes")), 2);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(first, "attributes"), "commit")),
		"b2");
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(first, "attributes"), "machine ")),
		"m2 [31m");
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(first, "attributes_before"), "machine ")),
		"m1");
	assert_int_equal(json_object_size(json_object_get(second, "attributes")), 0);
	assert_true(json_is_null(json_object_get(second, "percent")));
	assert_int_equal(json_integer_value(json_object_get(second, "members")), 12);
	json_decref(document);
}

/* The means say less, by an outlier, and the levels more: it is a regression. */
static void test_trend_and_outliers(void **state)
{
	struct fixture *fixture = *state;
	struct announcement item = {.id = 7,
		.test = "db.read",
		.metric = "p99",
		.direction = -1,
		.time = START,
		.slope = 0.5,
		.change = {.kind = CHANGE_TREND,
			.mean_before = 130,
			.mean_after = 120,
			.level_before = 100,
			.level_after = 125,
			.size = 25,
			.size_low = 20,
			.size_high = 30}};
	struct message message = {.key = "k", .items = &item, .count = 1};
	json_t *document = render(fixture, &message);
	const json_t *change = json_array_get(json_object_get(document, "changes"), 0);

	assert_string_equal(json_string_value(json_object_get(change, "verdict")), "regression");
	assert_true(json_number_value(json_object_get(change, "before")) == 130);
	assert_true(json_number_value(json_object_get(change, "percent")) < 0);
	assert_string_equal(json_string_value(json_object_get(change, "kind")), "trend");
	assert_true(json_number_value(json_object_get(change, "level_before")) == 100);
	assert_true(json_number_value(json_object_get(change, "size_high")) == 30);
	assert_true(json_number_value(json_object_get(change, "slope")) == 0.5);
	json_decref(document);
}

/* The worst are kept, the number of the others is said. */
static void test_many(void **state)
{
	struct fixture *fixture = *state;
	enum { COUNT = 30000 };
	struct announcement *items = calloc(COUNT, sizeof *items);
	struct message message = {.key = "k", .items = items, .count = COUNT};
	json_t *document;

	for (size_t i = 0; i < COUNT; i++)
		items[i] = (struct announcement){.id = (int64_t)i,
			.test = "t",
			.metric = "m",
			.change = {LEVELS(100, i == 29999 ? 900 : 90)}};
	document = render(fixture, &message);
	assert_int_equal(json_array_size(json_object_get(document, "changes")), 1000);
	assert_int_equal(json_integer_value(json_object_get(document, "left_out")), 29000);
	assert_non_null(strstr(fixture->out.data, "{\"id\": 29999,"));
	json_decref(document);
	free(items);
}

static void test_notice(void **state)
{
	struct fixture *fixture = *state;
	struct notice notice = {.subject = "prom", .text = "is down", .time = START};
	struct message message = {.key = "k", .kind = MESSAGE_NOTICE, .notice = &notice};
	json_t *document = render(fixture, &message);

	assert_string_equal(json_string_value(json_object_get(document, "kind")), "notice");
	assert_string_equal(json_string_value(json_object_get(document, "summary")), "is down");
	assert_true(json_is_false(json_object_get(document, "recovered")));
	json_decref(document);
}

static const char *header(const struct fixture *fixture, const char *name)
{
	for (size_t i = 0; i < fixture->transfer.headers.count; i++)
		if (strcmp(fixture->transfer.headers.items[i].key, name) == 0)
			return fixture->transfer.headers.items[i].value;
	return NULL;
}

/* The signature is that of openssl dgst -sha256 -hmac key for 1625184000.{"x":1} */
static void test_signature(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(fixture->transfer.url, "https://example.com/hook/canary");
	assert_string_equal(header(fixture, "Idempotency-Key"), "k-1");
	assert_null(header(fixture, "X-Hunter-Signature"));
	set_option(fixture, "secret", "key");
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_string_equal(header(fixture, "X-Hunter-Timestamp"), "1625184000");
	assert_string_equal(header(fixture, "X-Hunter-Signature"),
		"sha256=8120b263a6ef40e06249d39539c6e4bc3bdae322ce30ea6a56543b0358927e83");
}

static void test_a_secret_file_that_is_missing(void **state)
{
	struct fixture *fixture = *state;

	set_option(fixture, "secret_file", "/nonexistent/secret");
	assert_int_equal(begin(fixture), STEP_FAILED);
	assert_int_equal(fixture->error.kind, ERROR_USAGE);
	assert_false(fixture->attempt.retry);
	assert_non_null(strstr(fixture->error.text, "secret_file"));
}

static void test_answers(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		int status;
		enum step step;
		bool retry;
		enum error_kind kind;
	} answers[] = {
		{200, STEP_DONE, false, ERROR_NONE},
		{204, STEP_DONE, false, ERROR_NONE},
		{302, STEP_FAILED, false, ERROR_USAGE},
		{400, STEP_FAILED, false, ERROR_DATA},
		{401, STEP_FAILED, false, ERROR_USAGE},
		{404, STEP_FAILED, false, ERROR_USAGE},
		{408, STEP_FAILED, true, ERROR_DATA},
		{413, STEP_FAILED, false, ERROR_DATA},
		{429, STEP_FAILED, true, ERROR_DATA},
		{500, STEP_FAILED, true, ERROR_DATA},
		{503, STEP_FAILED, true, ERROR_DATA},
	};

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct reply reply = {.kind = REPLY_ANSWER,
			.status = answers[i].status,
			.retry_after = 3000,
			.body = ""};

		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_int_equal(take(fixture, &reply), answers[i].step);
		if (answers[i].step == STEP_DONE)
			continue;
		assert_int_equal(fixture->attempt.retry, answers[i].retry);
		assert_int_equal(fixture->error.kind, answers[i].kind);
		assert_int_equal(fixture->attempt.retry_after, 3000);
		assert_null(strstr(fixture->error.text, "canary"));
	}
}

static void test_no_answer_is_tried_again(void **state)
{
	struct fixture *fixture = *state;
	static const enum reply_kind kinds[] = {REPLY_UNREACHABLE, REPLY_AMBIGUOUS, REPLY_TOO_BIG};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct reply reply = {.kind = kinds[i], .retry_after = -1, .problem = "so it is"};

		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_int_equal(take(fixture, &reply), STEP_FAILED);
		assert_true(fixture->attempt.retry);
		assert_int_equal(fixture->attempt.maybe_delivered, MAYBE_DELIVERED_NO);
		assert_string_equal(fixture->error.text, "webhook: so it is");
	}
}

/* A receiver that took it, or refuses it, has done so, whatever it goes on to say. */
static void test_the_status_alone_counts(void **state)
{
	struct fixture *fixture = *state;
	static const enum reply_kind kinds[] = {REPLY_AMBIGUOUS, REPLY_TOO_BIG};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct reply reply = {
			.kind = kinds[i], .cut_status = 200, .retry_after = -1, .problem = "cut"};

		assert_int_equal(begin(fixture), STEP_TRANSFER);
		assert_int_equal(take(fixture, &reply), STEP_DONE);
		reply.cut_status = 422;
		assert_int_equal(take(fixture, &reply), STEP_FAILED);
		assert_false(fixture->attempt.retry);
		reply.cut_status = 100;
		assert_int_equal(take(fixture, &reply), STEP_FAILED);
		assert_true(fixture->attempt.retry);
	}
}

static void test_options(void **state)
{
	struct fixture *fixture = *state;

	assert_true(webhook_notifier.plugin.check(fixture->options, &fixture->error));
	set_option(fixture, "url", "example.com");
	assert_false(webhook_notifier.plugin.check(fixture->options, &fixture->error));
	set_option(fixture, "url", "http://example.com/a b");
	assert_false(webhook_notifier.plugin.check(fixture->options, &fixture->error));
	set_option(fixture, "url", "http://example.com:99999/");
	assert_false(webhook_notifier.plugin.check(fixture->options, &fixture->error));
	assert_string_equal(fixture->error.text, "url: its port is above 65535");
	set_option(fixture, "url", "http://ann:secret@example.com/");
	assert_false(webhook_notifier.plugin.check(fixture->options, &fixture->error));
	assert_null(strstr(fixture->error.text, "secret@"));
	set_option(fixture, "url", "HTTPS://example.com");
	assert_true(webhook_notifier.plugin.check(fixture->options, &fixture->error));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_document),
		CASE(test_silence),
		CASE(test_trend_and_outliers),
		CASE(test_many),
		CASE(test_notice),
		CASE(test_signature),
		CASE(test_a_secret_file_that_is_missing),
		CASE(test_answers),
		CASE(test_no_answer_is_tried_again),
		CASE(test_the_status_alone_counts),
		CASE(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
