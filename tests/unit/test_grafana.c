/*
 * Annotations in Grafana: what is asked for, what is written, and what the tags are made of.
 */
#include "unit.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/annotation_tags.h"
#include "agent/base/when.h"
#include "delivery_talk.h"
#include "notifiers/grafana.h"
#include "sources/graphite/graphite.h"
#include "tests/unit/levels.h"

#define START INT64_C(1625184000000) /* 2021-07-02 00:00:00 */
#define HOUR INT64_C(3600000)

static int setup(void **state)
{
	struct fixture *fixture = talk_new(&grafana_notifier, "", NULL);

	set_option(fixture, "url", "https://grafana.example/sub/");
	*state = fixture;
	return 0;
}

static struct announcement item_of(int64_t id, const char *metric)
{
	return (struct announcement){.id = id,
		.test = "db.read",
		.metric = metric,
		.direction = -1,
		.time = START + HOUR,
		.place_from = START,
		.place_to = START + 2 * HOUR,
		.change = {LEVELS(100, 120)}};
}

static void render_into(struct fixture *fixture, const struct announcement *items, size_t count)
{
	const struct message message = {.key = "k-1", .items = items, .count = count};

	buf_clear(&fixture->out);
	assert_true(notifier_render(
		&grafana_notifier, &message, fixture->options, "", &fixture->out, &fixture->error));
	fixture->attempt.payload = arena_strdup(fixture->arena, fixture->out.data);
}

static void assert_asks(struct fixture *fixture, const char *method, const char *url)
{
	assert_string_equal(fixture->transfer.method, method);
	assert_string_equal(fixture->transfer.url, url);
}

#define FETCH "https://grafana.example/sub/api/annotations?limit=10000&tags=message%3Ak-1"
#define BASE "https://grafana.example/sub/api/annotations"

/* What the request writes, as Grafana would list it with that id. */
static char *stored(struct fixture *fixture, int id)
{
	json_t *body = json_loads(fixture->transfer.body, 0, NULL);
	char *text, *copy;

	assert_non_null(body);
	json_object_set_new(body, "id", json_integer(id));
	text = json_dumps(body, 0);
	copy = arena_strdup(fixture->arena, text);
	free(text);
	json_decref(body);
	return copy;
}

static void test_each_change_once(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {item_of(7, "p99"), item_of(8, "p50")};
	const char *first, *second, *both;

	render_into(fixture, items, 2);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_asks(fixture, "GET", FETCH);
	assert_int_equal(answer(fixture, 200, "[]"), STEP_TRANSFER);
	assert_asks(fixture, "POST", BASE);
	first = stored(fixture, 1);
	assert_non_null(strstr(first, "change:7"));
	assert_int_equal(
		answer(fixture, 200, "{\"message\":\"Annotation added\",\"id\":1}"), STEP_TRANSFER);
	second = stored(fixture, 2);
	assert_non_null(strstr(second, "change:8"));
	assert_int_equal(answer(fixture, 200, "{\"id\":2}"), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "0 2 0 0");

	/* After a doubt: one is there. Then both. */
	both = arena_printf(fixture->arena, "[%s,%s]", second, first);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(
		answer(fixture, 200, arena_printf(fixture->arena, "[%s]", first)), STEP_TRANSFER);
	assert_asks(fixture, "POST", BASE);
	assert_non_null(strstr(fixture->transfer.body, "change:8"));
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, both), STEP_DONE);
	assert_string_equal(fixture->attempt.receipt, "2 0 0 0");

	/* Written twice: one goes. */
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	both = arena_printf(fixture->arena, "[%s,%s,%s]", first, second, second);
	assert_int_equal(answer(fixture, 200, both), STEP_TRANSFER);
	assert_asks(fixture, "DELETE", BASE "/2");
	assert_int_equal(answer(fixture, 404, "{\"message\":\"Annotation not found\"}"), STEP_DONE);
}

static void test_content(void **state)
{
	struct fixture *fixture = *state;
	static const char *const more[] = {"daily", "x"};
	struct announcement item = item_of(7, "p99{region=\"<b>eu\"}");
	json_t *payload, *note;
	const char *text;

	item.tags = (struct strings){more, 2};
	render_into(fixture, &item, 1);
	payload = json_loads(fixture->attempt.payload, 0, NULL);
	note = json_array_get(json_object_get(payload, "annotations"), 0);
	assert_int_equal(json_integer_value(json_object_get(note, "time")), START);
	assert_int_equal(json_integer_value(json_object_get(note, "timeEnd")), START + 2 * HOUR);
	assert_int_equal(json_array_size(json_object_get(note, "tags")), 8);
	assert_string_equal(json_string_value(json_array_get(json_object_get(note, "tags"), 3)),
		"metric:p99{region=\"<b>eu\"}");
	text = json_string_value(json_object_get(note, "text"));
	assert_non_null(strstr(text, "regression"));
	assert_null(strstr(text, "<b>"));
	json_decref(payload);

	item.place_to = item.place_from = item.time; /* a point */
	render_into(fixture, &item, 1);
	assert_null(strstr(fixture->attempt.payload, "timeEnd"));
}

/* Within Grafana's limit, Hunter's tags first, whatever the names are. */
static void test_long_tags(void **state)
{
	struct fixture *fixture = *state;
	const char *long_tags[40];
	struct announcement item = item_of(INT64_MAX, NULL);
	char *name = arena_alloc(fixture->arena, 4001);
	json_t *payload, *tags;
	char *text;

	for (int i = 0; i < 4000; i += 4)
		memcpy(name + i, i % 8 ? "\xf0\x9f\x90\x8c" : "\"\"\\\\", 5);
	item.test = item.metric = name;
	item.tags = (struct strings){long_tags, 40};
	for (int i = 0; i < 40; i++)
		long_tags[i] = arena_printf(fixture->arena, "tag-%d-%s", i, "0123456789");
	render_into(fixture, &item, 1);
	payload = json_loads(fixture->attempt.payload, 0, NULL);
	assert_non_null(payload);
	tags = json_object_get(json_array_get(json_object_get(payload, "annotations"), 0), "tags");
	text = json_dumps(tags, JSON_COMPACT);
	assert_in_range(strlen(text), 200, 500);
	assert_non_null(strstr(text, "change:9223372036854775807"));
	assert_non_null(strstr(text, "message:k-1"));
	free(text);
	json_decref(payload);
}

/* Those withdrawn go, those triaged say so, the others stay as they are. */
static void test_amended(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {item_of(7, "p99"), item_of(8, "p50"), item_of(9, "p10")};
	struct announced_change told[] = {{.item = items[0]},
		{.item = items[1], .state = ANNOUNCED_WITHDRAWN},
		{.item = items[2],
			.triage = {.state = TRIAGE_EXPECTED, .version = 1, .person = "ann"}}};
	struct follow_up follow_up = {.kind = FOLLOW_UP_AMEND, .changes = told, .count = 3};
	const char *there[3], *list;

	render_into(fixture, items, 3);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "[]"), STEP_TRANSFER);
	for (int i = 0; i < 3; i++) {
		there[i] = stored(fixture, i + 1);
		assert_int_equal(
			answer(fixture, 200, "{\"id\":5}"), i < 2 ? STEP_TRANSFER : STEP_DONE);
	}
	list = arena_printf(fixture->arena, "[%s,%s,%s]", there[0], there[1], there[2]);

	fixture->attempt.follow_up = &follow_up;
	fixture->attempt.payload = NULL;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_asks(fixture, "GET", FETCH);
	assert_int_equal(answer(fixture, 200, list), STEP_TRANSFER);
	assert_asks(fixture, "PATCH", BASE "/3");
	assert_non_null(strstr(fixture->transfer.body, "expected by ann"));
	there[2] = stored(fixture, 3);
	/* Somebody has deleted it meanwhile. */
	assert_int_equal(
		answer(fixture, 404, "{\"message\":\"Annotation not found\"}"), STEP_TRANSFER);
	assert_asks(fixture, "POST", BASE);
	assert_int_equal(answer(fixture, 200, "{\"id\":6}"), STEP_TRANSFER);
	assert_asks(fixture, "DELETE", BASE "/2");
	assert_int_equal(answer(fixture, 200, "{\"message\":\"Annotation deleted\"}"), STEP_DONE);

	list = arena_printf(fixture->arena, "[%s,%s]", there[2], there[0]);
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, list), STEP_DONE);
}

/* Created and deleted again. */
static void test_test_message(void **state)
{
	struct fixture *fixture = *state;
	const struct notice notice = {.subject = "a test", .text = "it works", .time = START};
	const struct message message = {.key = "k-1", .kind = MESSAGE_TEST, .notice = &notice};

	assert_true(notifier_render(
		&grafana_notifier, &message, fixture->options, "", &fixture->out, &fixture->error));
	fixture->attempt.payload = fixture->out.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_int_equal(answer(fixture, 200, "[]"), STEP_TRANSFER);
	assert_asks(fixture, "POST", BASE);
	assert_int_equal(answer(fixture, 200, "{\"id\":12}"), STEP_TRANSFER);
	assert_asks(fixture, "DELETE", BASE "/12");
	assert_int_equal(answer(fixture, 200, "{}"), STEP_DONE);
}

/* The commands': by metric and time, of a test and a range; the agent's are left alone. */
static void test_job(void **state)
{
	struct fixture *fixture = *state;
	struct announcement items[] = {item_of(1, "p99"), item_of(2, "p50")};
	struct grafana_job job = {.test = "db.read",
		.from = START,
		.to = START + 9 * HOUR,
		.items = items,
		.count = 2};
	struct grafana_result result;
	struct buf payload = {0};

	grafana_put_job(&payload, fixture->options, &job);
	fixture->attempt.payload = payload.data;
	assert_int_equal(begin(fixture), STEP_TRANSFER);
	assert_asks(fixture, "GET",
		BASE "?limit=10000&tags=hunter&tags=change-point&tags=test%3Adb.read"
		     "&from=1625184000000&to=1625216400000");
	assert_int_equal(answer(fixture, 200,
				 "[{\"id\":3,\"time\":1625184000000,\"tags\":[\"metric:p50\","
				 "\"change:4\"],\"text\":\"the agent's\"},"
				 "{\"id\":4,\"time\":1625187600000,\"tags\":[\"metric:p99\"],"
				 "\"text\":\"at another time\"},"
				 "{\"id\":5,\"time\":1625184000000,\"tags\":[\"metric:p99\"],"
				 "\"text\":\"old words\"},"
				 "{\"id\":6,\"time\":1625184000000,\"tags\":[\"metric:p10\","
				 "\"change:5\"],\"text\":\"the agent's\"}]"),
		STEP_TRANSFER);
	assert_asks(fixture, "PATCH", BASE "/5");
	assert_int_equal(answer(fixture, 200, "{}"), STEP_TRANSFER);
	assert_asks(fixture, "DELETE", BASE "/4");
	assert_int_equal(answer(fixture, 200, "{}"), STEP_DONE);
	assert_true(grafana_read_receipt(fixture->attempt.receipt, &result));
	assert_int_equal(result.found, 4);
	assert_int_equal(result.changed, 1);
	assert_int_equal(result.removed, 1);
	buf_free(&payload);
}

static const struct metric metrics[] = {
	{.name = "p99", .suffix = "result.p99", .annotate = {(const char *const[]){"latency"}, 1}}};

static void assert_tags(const char *const *annotate, size_t count, const char *metric,
	const char *branch, const char *expected)
{
	struct arena *arena = arena_new();
	const struct graphite_options options = {
		.prefix = "perf.%{BRANCH}.db", .branch_prefix = "b.%{BRANCH}"};
	const struct test test = {.name = "db.read",
		.source = &graphite_source.plugin,
		.options = &options,
		.metrics = metrics,
		.metric_count = 1,
		.annotate = {annotate, count}};
	struct strings tags = annotation_tags(arena, &test, metric, branch);
	struct buf text = {0};

	for (size_t i = 0; i < tags.count; i++)
		buf_printf(&text, "%s%s", i > 0 ? " " : "", tags.items[i]);
	assert_string_equal(text.data ? text.data : "", expected);
	buf_free(&text);
	arena_free(arena);
}

static void test_variables(void **state)
{
	(void)state;
	static const char *const all[] = {
		"%{TEST_NAME}", "m:%{METRIC_NAME}", "%{GRAPHITE_PATH}", "%{GRAPHITE_PREFIX}"};
	static const char *const parts[] = {
		"at:%{GRAPHITE_PREFIX_COMPONENTS}!", "%{GRAPHITE_PATH_COMPONENTS}"};
	static const char *const odd[] = {"%{NONE}", "a%{b", "100%", "%{TEST_NAME}-%{METRIC_NAME}"};

	assert_tags(
		all, 4, "p99", NULL, "db.read m:p99 perf.main.db.result.p99 perf.main.db latency");
	assert_tags(all, 4, "p99{region=\"eu\"}", "dev",
		"db.read m:p99{region=\"eu\"} b.dev.result.p99 b.dev latency");
	assert_tags(all, 4, "other", NULL, "db.read m:other perf.main.db");
	assert_tags(
		parts, 2, "p99", NULL, "at:perf! at:main! at:db! perf main db result p99 latency");
	assert_tags(odd, 4, "p99", NULL, "a%{b 100% db.read-p99 latency");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_change_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_content, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_tags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_amended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_test_message, setup, teardown),
		cmocka_unit_test_setup_teardown(test_job, setup, teardown),
		cmocka_unit_test(test_variables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
