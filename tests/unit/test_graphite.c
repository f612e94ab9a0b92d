/* The Graphite source, with recorded answers of a real server and with ours. */
#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/base/buf.h"
#include "agent/base/when.h"
#include "agent/model/attribution.h"
#include "sources/graphite/answer.h"
#include "sources/graphite/events.h"
#include "sources/graphite/find.h"
#include "sources/graphite/graphite.h"
#include "sources/graphite/list.h"
#include "sources/graphite/series.h"

enum { MOST_TRANSFERS = 64 };

static const int64_t recorded = 1795185300000; /* when most samples were */

/* One question, the answers in order, and what was asked. */
struct talk {
	struct query query;
	struct graphite_options options;
	struct endpoint endpoint;
	struct metric metrics[4];
	const char *tags[2];
	char *bodies[MOST_TRANSFERS];
	struct reply replies[MOST_TRANSFERS];
	struct transfer asked[MOST_TRANSFERS];
	int reply_count, asked_count;
	enum step end;
	struct error error;
};

static int set_up(void **state)
{
	struct talk *talk = calloc(1, sizeof *talk);
	*state = talk;
	talk->endpoint = (struct endpoint){.url = "http://graphite:80/base/", .timeout = 30000};
	field_defaults(graphite_source.plugin.fields, &talk->options);
	talk->query = (struct query){
		.arena = arena_new(),
		.test = "test",
		.options = &talk->options,
		.server = &talk->endpoint,
		.metrics = talk->metrics,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER,
		.now = recorded,
	};
	for (int i = 0; i < 4; i++)
		talk->metrics[i].scale = 1;
	return 0;
}

static int tear_down(void **state)
{
	struct talk *talk = *state;
	arena_free(talk->query.arena);
	for (int i = 0; i < talk->reply_count; i++)
		free(talk->bodies[i]);
	free(talk);
	return 0;
}

static struct reply *say(struct talk *talk, int status, const char *body)
{
	struct reply *reply = &talk->replies[talk->reply_count];
	char *copy = talk->bodies[talk->reply_count++] = strdup(body);
	*reply = (struct reply){.kind = REPLY_ANSWER,
		.status = status,
		.retry_after = -1,
		.body = copy,
		.length = strlen(copy)};
	return reply;
}

static struct reply *say_file(struct talk *talk, int status, const char *name)
{
	char path[512], *text = NULL;
	size_t size = 0;
	snprintf(path, sizeof path, "%s/samples/graphite/%s", HUNTER_TEST_DATA, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_true(getdelim(&text, &size, EOF, file) > 0);
	fclose(file);
	struct reply *reply = say(talk, status, text);
	free(text);
	return reply;
}

static void run(struct talk *talk)
{
	const struct reply *last = NULL;
	for (;;) {
		struct transfer *next = &talk->asked[talk->asked_count];
		talk->end = graphite_source.step(&talk->query, last, next, &talk->error);
		if (talk->end != STEP_TRANSFER)
			return;
		if (talk->asked_count == talk->reply_count)
			fail_msg("asked for more: %s %s", next->url, next->body ? next->body : "");
		last = &talk->replies[talk->asked_count++];
	}
}

static void done(struct talk *talk)
{
	run(talk);
	if (talk->end != STEP_DONE)
		fail_msg("%s", talk->error.text);
	assert_int_equal(talk->asked_count, talk->reply_count);
}

static void failed(struct talk *talk, const char *words)
{
	run(talk);
	assert_int_equal(talk->end, STEP_FAILED);
	if (!strstr(talk->error.text, words))
		fail_msg("\"%s\" lacks \"%s\"", talk->error.text, words);
}

static void noticed(const struct talk *talk, size_t count, const char *words)
{
	const struct strings *notices = &talk->query.notices;
	if (notices->count != count)
		fail_msg("%zu notices, the first: %s", notices->count,
			notices->count ? notices->items[0] : "-");
	for (size_t i = 0; i < count; i++)
		if (strstr(notices->items[i], words))
			return;
	if (count > 0)
		fail_msg("\"%s\" lacks \"%s\"", notices->items[count - 1], words);
}

/* A test as Hunter's users write it: prefix, suffixes, tags. */
static void ask_run(struct talk *talk)
{
	talk->options.prefix = "performance-tests.daily.my-product";
	talk->query.metric_count = 3;
	talk->metrics[0].name = "p50";
	talk->metrics[0].suffix = "client.p50";
	talk->metrics[0].scale = 10;
	talk->metrics[1].name = "throughput";
	talk->metrics[1].suffix = "client.throughput";
	talk->metrics[2].name = "cpu";
	talk->metrics[2].suffix = "server.cpu";
	talk->tags[0] = "perf-test";
	talk->tags[1] = "my-product";
	talk->query.tags = (struct strings){talk->tags, 2};
}

static const char *attribute(const struct series *series, const char *name, int64_t time)
{
	const struct column *column = axis_column(series->axis, name);
	size_t at = axis_lower_bound(series->axis, time);
	assert_non_null(column);
	assert_true(at < series->axis->n && series->axis->times[at] == time);
	return column->values[at];
}

static void test_a_run_with_events(void **state)
{
	struct talk *talk = *state;
	talk->options.events = EVENTS_PER_RUN;
	ask_run(talk);
	say_file(talk, 200, "render-run-raw.txt");
	say_file(talk, 200, "events-run.json");
	done(talk);
	assert_string_equal(talk->asked[0].method, "GET");
	assert_string_equal(talk->asked[0].url,
		"http://graphite:80/base/render?"
		"target=performance-tests.daily.my-product.client.p50&"
		"target=performance-tests.daily.my-product.client.throughput&"
		"target=performance-tests.daily.my-product.server.cpu&"
		"from=1763649300&until=1795185300&format=raw");
	assert_string_equal(talk->asked[1].url,
		"http://graphite:80/base/events/get_data?tags=perf-test%20my-product"
		"&set=intersection&from=1763649300&until=1795185300");

	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 3);
	noticed(talk, 0, "");
	const struct axis *axis = data->series[1].axis;
	for (int i = 0; i < 3; i++) {
		assert_string_equal(data->series[i].name, talk->metrics[i].name);
		assert_ptr_equal(data->series[i].metric, &talk->metrics[i]);
	}
	assert_string_equal(data->series[0].identity,
		"p50{target=\"performance-tests.daily.my-product.client.p50\"}");
	assert_int_equal(axis->times[0], 1795181760000);
	assert_true(data->series[0].values[0] == 84.4779 * 10);
	assert_true(data->series[1].values[0] == 61071.572);
	assert_true(data->series[2].values[0] == 0.2);

	assert_string_equal(attribute(&data->series[0], "commit", 1795182900000), "fe6583ab");
	assert_string_equal(attribute(&data->series[0], "run", 1795183500000), "r1");
	assert_string_equal(attribute(&data->series[0], "version", 1795183500000), "0.0.1");
	assert_string_equal(attribute(&data->series[0], "branch", 1795183500000), "main");
	assert_string_equal(attribute(&data->series[0], "commit", 1795184100000), "it's \"q\" é");
	assert_null(attribute(&data->series[0], "version", 1795184100000));
	assert_null(attribute(&data->series[1], "commit", 1795184160000));
	assert_int_equal(axis->column_count, 4);
	assert_string_equal(axis->columns[0].name, "run");
}

/* Answers come in any order, a metric asked for twice comes twice, and strangers are none of ours.
 */
static void test_answers_are_matched_by_target(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "a.";
	talk->query.metric_count = 3;
	talk->metrics[0] = (struct metric){.name = "x", .suffix = ".x", .scale = 1};
	talk->metrics[1] = (struct metric){.name = "y", .suffix = "y", .scale = 1};
	talk->metrics[2] = (struct metric){.name = "same", .suffix = "y", .scale = -1};
	talk->options.prefix = "a";
	talk->metrics[0].suffix = "x";
	say(talk, 200,
		"a.y,1795185000,1795185120,60|1.0,2.0\n"
		"b,1795185000,1795185120,60|7.0,7.0\n"
		"a.x,1795185000,1795185120,60|3.0,4.0\n"
		"a.y,1795185000,1795185120,60|1.0,2.0\n");
	done(talk);
	const struct dataset *data = &talk->query.data;
	assert_int_equal(data->count, 3);
	assert_string_equal(data->series[0].name, "x");
	assert_true(data->series[0].values[1] == 4);
	assert_string_equal(data->series[1].name, "y");
	assert_true(data->series[1].values[1] == 2);
	assert_string_equal(data->series[2].name, "same");
	assert_true(data->series[2].values[1] == -2);
	assert_ptr_equal(data->series[0].axis, data->series[2].axis);
}

static void test_since_is_inclusive_and_until_exclusive(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	talk->query.since = 1795185060000;
	talk->query.until = 1795185180000;
	say(talk, 200, "a,1795185000,1795185240,60|1.0,2.0,3.0,4.0\n");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&from=1795185059&until=1795185179&"));
	assert_int_equal(talk->query.data.series[0].axis->n, 2);
	assert_true(talk->query.data.series[0].values[0] == 2);
	assert_true(talk->query.data.series[0].values[1] == 3);
}

static void test_range_of_a_moment(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	talk->query.since = 0;
	talk->query.until = 1;
	done(talk);
	assert_int_equal(talk->asked_count, 0);
	talk->query.since = 1795185060000;
	talk->query.until = 1795185060001;
	say(talk, 200, "a,1795185060,1795185120,60|1.0\n");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&from=1795185059&until=1795185060&"));
	assert_int_equal(talk->query.data.count, 1);
}

static void test_infinities_and_broken_values_cost_their_points(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	say(talk, 200, "a,1795184400,1795184940,60|1.0,inf,-inf,nan,abc,0x10,,1e+300,None\n");
	done(talk);
	const struct series *series = talk->query.data.series;
	static const int64_t times[] = {1795184400000, 1795184460000, 1795184520000, 1795184820000};
	assert_int_equal(series->axis->n, 4);
	assert_memory_equal(series->axis->times, times, sizeof times);
	assert_true(series->values[1] == (double)INFINITY);
	assert_true(series->values[2] == -(double)INFINITY);
	assert_true(series->values[3] == 1e300);
	noticed(talk, 1, "dropped 3 values that are not numbers, the first of \"a\"");
}

static void test_all_of_the_lab(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "lab.*";
	talk->query.now = 1795185700000;
	say_file(talk, 200, "render-lab-raw.txt");
	done(talk);
	const struct dataset *data = &talk->query.data;
	static const char *const names[] = {"café", "canary", "huge", "inf", "int", "neg", "zero"};
	assert_int_equal(data->count, 7);
	for (size_t i = 0; i < 7; i++) {
		bool found = false;
		for (size_t k = 0; k < 7; k++)
			found = found || strcmp(data->series[i].name, names[k]) == 0;
		if (!found)
			fail_msg("%s", data->series[i].name);
	}
	assert_true(data->series[4].values[0] == 9007199254740992.0);
	assert_string_equal(data->series[4].identity, "lab.int");
}

static void test_resolutions_have_their_own_axes(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a.*";
	say(talk, 200,
		"a.day,1794960000,1795132800,86400|1.0,2.0\n"
		"a.hour,1795132800,1795140000,3600|3.0,4.0\n"
		"a.hours,1795132800,1795140000,3600|5.0,6.0\n"
		"a.minutes,1795132800,1795132920,60|7.0,8.0\n");
	done(talk);
	const struct series *series = talk->query.data.series;
	assert_int_equal(talk->query.data.count, 4);
	assert_int_equal(series[0].axis->n, 2);
	assert_ptr_not_equal(series[0].axis, series[1].axis);
	assert_ptr_equal(series[1].axis, series[2].axis);
	assert_ptr_not_equal(series[3].axis, series[1].axis);
	assert_true(series[1].values[1] == 4 && series[2].values[0] == 5);
}

/* Nightly runs in an archive of minutes: Hunter's resolution, a day, finds their events. */
static void test_events_of_nightly_points(void **state)
{
	struct talk *talk = *state;
	talk->options.events = EVENTS_PER_RUN;
	talk->options.target = "a";
	talk->tags[0] = "t";
	talk->query.tags = (struct strings){talk->tags, 1};
	talk->query.now = 1795219200000;
	struct buf body = {0};
	buf_text(&body, "a,1794960000,1795219200,60|");
	for (int i = 0; i < 3 * 1440; i++)
		buf_printf(&body, "%s%s", i ? "," : "", i % 1440 == 0 ? "1.0" : "None");
	buf_char(&body, '\n');
	say(talk, 200, body.data);
	buf_free(&body);
	say(talk, 200,
		"[{\"when\": 1794960000, \"data\": \"{'commit': 'first'}\"},"
		"{\"when\": 1794999999, \"data\": \"{'commit': 'last', 'run_id': 7}\"},"
		"{\"when\": 1795046399, \"data\": \"free text\"},"
		"{\"when\": 1795046400, \"data\": \"{\\\"version\\\": \\\"null\\\", "
		"\\\"branch\\\": "
		"\\\"\\\", \\\"commit\\\": \\\"second\\\"}\"},"
		"{\"when\": 1795132800, \"what\": null, \"data\": \"\", \"tags\": null, \"id\": 5},"
		"{\"when\": 1795132801.5},"
		"{\"when\": 1795300000, \"data\": {\"commit\": \"outside\"}},"
		"{\"when\": 1794959999, \"data\": {\"commit\": \"outside\"}}]");
	done(talk);
	const struct series *series = talk->query.data.series;
	assert_int_equal(series->axis->n, 3);
	assert_int_equal(series->axis->column_count, 2);
	assert_string_equal(attribute(series, "commit", 1794960000000), "last");
	assert_string_equal(attribute(series, "run", 1794960000000), "7");
	assert_string_equal(attribute(series, "commit", 1795046400000), "second");
	assert_null(attribute(series, "commit", 1795132800000));
}

/* A metric of every midnight beside an hourly one: its buckets are hours, too. */
static void test_events_of_sparse_points(void **state)
{
	enum { MIDNIGHT = 1795046400, HOURS = 48 };
	struct talk *talk = *state;
	struct buf body = {0}, events = {0};

	talk->options.target = "{x,y}";
	talk->tags[0] = "t";
	talk->query.tags = (struct strings){talk->tags, 1};
	talk->query.now = 1795219200000;
	for (int every = 6; every <= 144; every += 138) {
		buf_printf(&body, "%s,%d,%d,600|", every == 6 ? "x" : "y", MIDNIGHT,
			MIDNIGHT + HOURS * 3600);
		for (int i = 0; i < 6 * HOURS; i++)
			buf_printf(&body, "%s%s", i ? "," : "", i % every == 0 ? "1.0" : "None");
		buf_char(&body, '\n');
	}
	for (int i = 0; i < HOURS; i++)
		buf_printf(&events, "%s{\"when\": %d, \"data\": {\"commit\": \"h%d\"}}",
			i ? "," : "[", MIDNIGHT + 3600 * i + 300, i);
	buf_char(&events, ']');
	say(talk, 200, body.data);
	say(talk, 200, events.data);
	buf_free(&body);
	buf_free(&events);
	done(talk);
	for (int i = 0; i < 2; i++) {
		const struct series *series = &talk->query.data.series[i];

		assert_int_equal(series->axis->n, i ? 2 : HOURS);
		assert_string_equal(
			attribute(series, "commit", (MIDNIGHT + 86400) * INT64_C(1000)), "h24");
		assert_int_equal(series->window.on, 3600000);
	}
}

/* A summary's buckets need not begin at round times; its step is known. */
static void test_events_of_unaligned_buckets(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "summarize(a,'1h',alignToFrom=true)";
	talk->tags[0] = "t";
	talk->query.tags = (struct strings){talk->tags, 1};
	say(talk, 200, "x,1795136461,1795143661,3600|5.0,6.0\n");
	say(talk, 200,
		"[{\"when\": 1795140060, \"data\": {\"commit\": \"a\"}},"
		"{\"when\": 1795140061, \"data\": {\"commit\": \"b\"}},"
		"{\"when\": 1795143661, \"data\": {\"commit\": \"late\"}}]");
	done(talk);
	const struct series *series = talk->query.data.series;
	assert_string_equal(attribute(series, "commit", 1795136461000), "a");
	assert_string_equal(attribute(series, "commit", 1795140061000), "b");
}

/* Events come in any order; of one moment's the last that came counts. */
static void test_events_in_any_order(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	talk->tags[0] = "t";
	talk->query.tags = (struct strings){talk->tags, 1};
	say(talk, 200, "a,1795140000,1795147200,3600|5,6\n");
	say(talk, 200,
		"[{\"when\": 1795143610, \"data\": {\"commit\": \"x\"}},"
		"{\"when\": 1795143610, \"data\": {\"commit\": \"second\"}},"
		"{\"when\": 1795143609, \"data\": {\"commit\": \"y\"}},"
		"{\"when\": 1795140001, \"data\": {\"commit\": \"first\"}},"
		"{\"when\": 1795140000, \"data\": {\"commit\": \"z\", \"run\": \"r\"}}]");
	done(talk);
	const struct series *series = talk->query.data.series;
	assert_int_equal(series->axis->column_count, 1);
	assert_string_equal(attribute(series, "commit", 1795140000000), "first");
	assert_string_equal(attribute(series, "commit", 1795143600000), "second");
}

/* Deployed at 17 minutes past the first hour: what is measured from then on is of it, and so is the
 * rest of that hour. What an event per run says is of its point alone. */
static void test_events_are_deployments(void **state)
{
	static const char raw[] = "movingAverage(a.b,'3h'),1795132800,1795147200,3600|1,2,3,4\n";
	static const char events[] =
		"[{\"when\": 1795137420, \"data\": {\"commit\": \"new\", \"run\": \"7\"}},"
		"{\"when\": 1795050000, \"data\": {\"commit\": \"old\"}},"
		"{\"when\": 1795051000, \"data\": {\"commit\": \"old\", \"run\": \"6\"}}]";
	struct talk *talk = *state;
	static const char *const tags[] = {"shop"};
	(void)state;
	for (int mode = EVENTS_DEPLOYMENTS; mode <= EVENTS_PER_RUN; mode++) {
		if (mode == EVENTS_PER_RUN)
			set_up((void **)&talk);
		talk->options.prefix = NULL;
		talk->options.target = "movingAverage(a.b,'3h')";
		talk->options.events = mode;
		talk->query.metric_count = 0;
		talk->query.tags = (struct strings){tags, 1};
		talk->query.since = INT64_C(1795132800000);
		talk->query.until = INT64_C(1795147200000);
		say(talk, 200, raw);
		say(talk, 200, events);
		done(talk);
		const struct series *series = talk->query.data.series;
		if (mode == EVENTS_PER_RUN) {
			assert_null(attribute(series, "commit", 1795132800000));
			assert_null(attribute(series, "commit", 1795140000000));
			assert_null(series->axis->deployments);
			assert_int_equal(series->window.back + series->window.on, 0);
			tear_down((void **)&talk);
			continue;
		}
		assert_string_equal(attribute(series, "commit", 1795132800000), "old");
		assert_string_equal(attribute(series, "commit", 1795136400000), "new");
		assert_string_equal(attribute(series, "commit", 1795143600000), "new");
		assert_string_equal(attribute(series, "run", 1795136400000), "7");
		assert_null(attribute(series, "run", 1795140000000));
		assert_int_equal(series->axis->deployments->count, 2);
		assert_true(series->axis->deployments->items[1].time == INT64_C(1795137420000));
		assert_int_equal(series->window.back, 3 * 3600000);
		assert_int_equal(series->window.on, 3600000);
	}
}

/* Each axis looks for the events of its points and not at all events: 100,000 of them for 20,000
 * axes are tens of milliseconds, where one by one they took many seconds. */
static void test_many_events_of_many_axes(void **state)
{
	enum { EVENTS = 100000, AXES = 20000 };
	struct arena *arena = arena_new();
	struct graphite_events events = {
		.items = arena_array(arena, EVENTS, sizeof *events.items), .count = EVENTS};
	struct rusage before, after;
	(void)state;
	for (int i = 0; i < EVENTS; i++) {
		events.items[i].when = INT64_C(1795140000000) + i * 1000;
		events.items[i].values[0] = "r";
	}
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < AXES; i++) {
		int64_t times[] = {INT64_C(1795140000000) + i * 5000};
		struct axis axis = {.n = 1, .times = times};
		graphite_events_match(&events, &axis, 1000, arena);
		assert_int_equal(axis.column_count, 1);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_utime.tv_sec - before.ru_utime.tv_sec, 0, 1);
	arena_free(arena);
}

static void test_servers_without_events(void **state)
{
	struct talk *talk = *state;
	ask_run(talk);
	say_file(talk, 200, "render-run-raw.txt");
	say(talk, 404, "not found");
	done(talk);
	assert_int_equal(talk->query.data.count, 3);
	noticed(talk, 1, "the server has no events");
}

static void test_broken_events_fail(void **state)
{
	static const char *const bodies[] = {"", "{}", "[1]", "[{}]", "[{\"when\": \"1\"}]",
		"[{\"when\": 1e300}]", "[", "x", "[{\"when\": 1}", "[{\"when\": 1},]",
		"[,{\"when\": 1}]", "[{\"when\": 1}]]", "[{\"when\": 1} {\"when\": 2}]",
		"[{\"when\": 1]}", "[{\"when\": 1, \"data\": \"", "[{\"when\": 1, \"data\": \"\\",
		"[{\"when\": 1, \"data\": [}]}]"};
	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		ask_run(talk);
		say_file(talk, 200, "render-run-raw.txt");
		say(talk, 200, bodies[i]);
		failed(talk, "not an answer of Graphite's events API");
		tear_down((void **)&talk);
	}
}

static void test_branches(void **state)
{
	struct talk *talk = *state;
	ask_run(talk);
	talk->options.prefix = "daily.%{BRANCH}";
	talk->options.branch_prefix = "feature.%{BRANCH}.x";
	talk->query.branch = "fast";
	talk->query.metric_count = 1;
	say(talk, 200, "feature.fast.x.client.p50,1795185000,1795185060,60|1.0\n");
	say(talk, 200, "[]");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "target=feature.fast.x.client.p50&"));
	assert_non_null(strstr(talk->asked[1].url, "tags=perf-test%20my-product%20fast&"));
	assert_int_equal(talk->query.data.series[0].axis->column_count, 0);
}

static void test_branches_in_the_prefix(void **state)
{
	struct talk *talk = *state;
	ask_run(talk);
	talk->query.tags.count = 0;
	talk->query.metric_count = 1;
	talk->options.prefix = "daily.%{BRANCH}";
	talk->options.branch_prefix = "feature.%{BRANCH}";
	say(talk, 200, "daily.main.client.p50,1795185000,1795185060,60|1.0\n");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "target=daily.main.client.p50&"));
	assert_int_equal(talk->asked_count, 1); /* without tags there are no events */

	talk->asked_count = talk->reply_count = 0;
	free(talk->bodies[0]);
	talk->query.branch = "b";
	talk->options.branch_prefix = NULL;
	say(talk, 200, "daily.b.client.p50,1795185000,1795185060,60|1.0\n");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "target=daily.b.client.p50&"));
}

static void test_configurations_that_cannot_work(void **state)
{
	struct talk *talk = *state;
	failed(talk, "neither prefix nor target");
	talk->query.branch = "b";
	talk->options.prefix = "a";
	failed(talk, "does not support branches");
	talk->options.prefix = "%{BRANCH}";
	talk->query.branch = "b,c";
	failed(talk, "cannot be part of a Graphite target");
	talk->options.prefix = NULL;
	talk->options.target = "a";
	talk->query.branch = "b";
	failed(talk, "use %{BRANCH} in its target");
	talk->query.branch = NULL;
	talk->query.metric_count = 2;
	talk->metrics[0].name = talk->metrics[1].name = "x";
	failed(talk, "2 metrics have no target of their own");
	talk->query.metric_count = 1;
	talk->metrics[0].suffix = "s";
	failed(talk, "metric \"x\" has no prefix");
	talk->options.target = NULL;
	talk->options.prefix = "p";
	talk->metrics[0].suffix = NULL;
	failed(talk, "metric \"x\" has no suffix and no target");
	talk->endpoint.url = NULL;
	failed(talk, "no server");
	assert_int_equal(talk->error.kind, ERROR_USAGE);
}

static void test_options_are_checked(void **state)
{
	struct graphite_options options = {0};
	struct error error;
	(void)state;
	assert_false(graphite_source.plugin.check(&options, &error));
	options.prefix = "a";
	assert_true(graphite_source.plugin.check(&options, &error));
	options.target = "b";
	assert_false(graphite_source.plugin.check(&options, &error));
	options.prefix = NULL;
	assert_true(graphite_source.plugin.check(&options, &error));
}

/* Expressions are asked for alone, paths together. */
static void test_expressions_of_metrics(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "p";
	talk->query.metric_count = 4;
	talk->metrics[0] = (struct metric){.name = "a", .suffix = "a", .scale = 1};
	talk->metrics[1] = (struct metric){.name = "b", .suffix = "b", .scale = 1};
	talk->metrics[2] = (struct metric){.name = "c", .query = "scale(x.*,2)", .scale = 1};
	talk->metrics[3] = (struct metric){.name = "d", .suffix = "*.d", .scale = 1};
	say(talk, 200,
		"p.b,1795185000,1795185060,60|2.0\n"
		"p.a,1795185000,1795185060,60|1.0\n");
	say(talk, 200,
		"scale(x.n,2),1795185000,1795185060,60|3.0\n"
		"scale(x.m,2),1795185000,1795185060,60|4.0\n");
	say(talk, 200, "p.q.d,1795185000,1795185060,60|5.0\n");
	done(talk);
	static const char *const names[] = {"a", "b", "c{m}", "c{n}", "d"};
	static const double values[] = {1, 2, 4, 3, 5};
	assert_non_null(strstr(talk->asked[1].url, "target=scale%28x.%2A%2C2%29&from="));
	assert_int_equal(talk->query.data.count, 5);
	for (int i = 0; i < 5; i++) {
		assert_string_equal(talk->query.data.series[i].name, names[i]);
		assert_true(talk->query.data.series[i].values[0] == values[i]);
	}
}

static void test_long_requests_go_by_post(void **state)
{
	struct talk *talk = *state;
	char target[3000];
	memset(target, 'a', sizeof target - 1);
	target[sizeof target - 1] = '\0';
	talk->options.target = target;
	struct buf body = {0};
	buf_printf(&body, "%s,1795185000,1795185060,60|5.0\n", target);
	say(talk, 200, body.data);
	buf_free(&body);
	done(talk);
	const struct transfer *asked = &talk->asked[0];
	assert_string_equal(asked->method, "POST");
	assert_string_equal(asked->url, "http://graphite:80/base/render");
	assert_int_equal(asked->body_length, strlen(asked->body));
	assert_non_null(strstr(asked->body, "&from="));
	assert_string_equal(asked->headers.items[0].value, "application/x-www-form-urlencoded");
}

/* A test with this many metrics, p.m0 and so on. */
static void ask_many(struct talk *talk, struct metric *metrics, char (*names)[16], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "m%zu", i);
		metrics[i] = (struct metric){.name = names[i], .suffix = names[i], .scale = 1};
	}
	talk->options.prefix = "p";
	talk->query.metrics = metrics;
	talk->query.metric_count = count;
}

/* Ten are asked for first, then as many as the answer lets expect; one that is too large halves
 * them for good. */
static void test_many_metrics(void **state)
{
	struct talk *talk = *state;
	static struct metric metrics[250];
	static char names[250][16];
	static const size_t batches[] = {10, 0, 50, 50, 50, 50, 40};
	size_t at = 0;
	ask_many(talk, metrics, names, 250);
	for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
		struct buf body = {0};
		buf_reserve(&body, 1);
		for (size_t i = 0; i < batches[b]; i++, at++)
			buf_printf(&body, "p.m%zu,1795185000,1795185060,60|%zu.0\n", at, at);
		struct reply *reply = say(talk, 200, body.data);
		if (batches[b] == 0)
			reply->kind = REPLY_TOO_BIG;
		buf_free(&body);
	}
	done(talk);
	assert_int_equal(talk->query.data.count, 250);
	for (size_t i = 0; i < 250; i++) {
		assert_string_equal(talk->query.data.series[i].name, names[i]);
		assert_true(talk->query.data.series[i].values[0] == (double)i);
		assert_ptr_equal(talk->query.data.series[i].axis, talk->query.data.series[0].axis);
	}
}

/* Where next to nothing is in the archives, JSON without the missing points is asked for. */
static void test_sparse_archives(void **state)
{
	struct talk *talk = *state;
	static struct metric metrics[30];
	static char names[30][16];
	struct buf raw = {0}, json = {0};
	ask_many(talk, metrics, names, 30);
	talk->endpoint.max_body = 64000000;
	for (int s = 0; s < 10; s++) {
		buf_printf(&raw, "p.m%d,1789185000,1790985000,60|", s);
		for (int i = 0; i < 30000; i++)
			buf_text(&raw, i ? i % 1440 ? ",None" : ",1.0" : "1.0");
		buf_char(&raw, '\n');
	}
	for (int s = 10; s < 30; s++)
		buf_printf(&json,
			"%s{\"target\": \"p.m%d\", \"datapoints\": [[2.0, 1789185000], [3.0, "
			"1789271400]]}",
			s > 10 ? "," : "[", s);
	buf_char(&json, ']');
	say(talk, 200, raw.data);
	say(talk, 200, json.data);
	done(talk);
	buf_free(&raw);
	buf_free(&json);
	assert_non_null(strstr(talk->asked[0].url, "format=raw"));
	assert_non_null(strstr(talk->asked[1].url, "format=json&noNullPoints=true"));
	assert_int_equal(talk->query.data.count, 30);
	const struct series *series = talk->query.data.series;
	for (int s = 0; s < 30; s++)
		assert_int_equal(series[s].axis->n, s < 10 ? 21 : 2);
	assert_true(series[29].values[1] == 3);
}

/* A target or tag that is no Unicode text costs its series, and nothing else. */
static void test_targets_that_are_no_text(void **state)
{
	static const struct {
		const char *before, *series, *after, *notice;
		size_t length; /* of the series, if it has a NUL */
	} cases[] = {
		{"[", "{\"target\": \"x\\u0000\", \"datapoints\": [[5, 1795185000]]}",
			",{\"target\": \"a\", \"datapoints\": [[1, 1795185000]]}]",
			"series left out: a string is not Unicode text: {\"target\": \"x\\u0000\"",
			0},
		{"[", "{\"datapoints\": [[5, 1795185000]], \"target\": \"\xFF\"}",
			",{\"target\": \"a\", \"datapoints\": [[1, 1795185000]]}]",
			"series left out: a string is not Unicode text: {\"datapoints\"", 0},
		{"[", "{\"target\": \"x\", \"tags\": {\"k\": \"\\ud800\"}, \"datapoints\": []}",
			",{\"target\": \"a\", \"datapoints\": [[1, 1795185000]]}]",
			"series left out: a string is not Unicode text: {\"target\": \"x\"", 0},
		{"", "x\0y,1795185000,1795185060,60|5\n", "a,1795185000,1795185060,60|1\n",
			"series left out: its name contains a NUL byte: x", 31},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		struct buf body = {0};
		set_up((void **)&talk);
		talk->options.target = "*";
		buf_text(&body, cases[i].before);
		buf_append(&body, cases[i].series,
			cases[i].length ? cases[i].length : strlen(cases[i].series));
		buf_text(&body, cases[i].after);
		struct reply *reply = say(talk, 200, body.data);
		reply->body = body.data;
		reply->length = body.length;
		done(talk);
		assert_int_equal(talk->query.data.count, 1);
		assert_true(talk->query.data.series->values[0] == 1);
		assert_true(talk->query.incomplete);
		noticed(talk, 1, cases[i].notice);
		buf_free(&body);
		tear_down((void **)&talk);
	}
}

/* Nor does an event or a metric's name cost the others. */
static void test_items_that_are_no_text(void **state)
{
	static const char text[] =
		"[{\"id\":\"a\",\"leaf\":1,\"when\":1,\"data\":\"{'commit': 'c'}\"},"
		"{\"id\":\"\\ud800\",\"leaf\":1,\"when\":2},"
		"{\"id\":\"b\xFF\",\"leaf\":1,\"when\":2}]";
	static const char nul[] = "[{\"id\":\"a\\u0000\",\"leaf\":1}]",
			  bad[] = "[{\"id\":\"\\ud8\"}]";
	struct arena *arena = arena_new();
	struct graphite_nodes nodes;
	struct graphite_events events;
	struct error error;
	(void)state;
	assert_true(graphite_find_read(arena, text, strlen(text), &nodes, &error));
	assert_int_equal(nodes.count, 1);
	assert_int_equal(nodes.unusable, 2);
	assert_true(graphite_events_read(arena, text, strlen(text), &events, &error));
	assert_int_equal(events.count, 1);
	assert_int_equal(events.unusable, 2);
	assert_true(graphite_find_read(arena, nul, strlen(nul), &nodes, &error));
	assert_int_equal(nodes.unusable, 1);
	assert_false(graphite_find_read(arena, bad, strlen(bad), &nodes, &error));
	arena_free(arena);
}

static void test_json_where_raw_cannot_be(void **state)
{
	static const char json[] =
		"[{\"target\": \"a\", \"tags\": {\"name\": \"a\"}, \"datapoints\": "
		"[[1.5, 1795185000], [1e9999, 1795185060], [null, 1795185120], [\"x\", "
		"1795185180]]}]";
	(void)state;
	for (int way = 0; way < 5; way++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.target = "a";
		if (way == 0)
			say(talk, 400, "unsupported format=\"raw\"; supported values: \"json\"");
		if (way == 1)
			say(talk, 200, "\x89PNG")->content_type = "image/png";
		if (way == 2)
			say(talk, 0, "")->kind = REPLY_TOO_BIG;
		if (way == 3)
			say(talk, 200, "a,1795185000,1795185060,60|7\n")->open_ended = true;
		say(talk, 200, json)->open_ended = way == 3;
		done(talk);
		if (way < 4)
			assert_non_null(
				strstr(talk->asked[1].url, "&format=json&noNullPoints=true"));
		const struct series *series = talk->query.data.series;
		assert_int_equal(series->axis->n, 2);
		assert_true(series->values[0] == 1.5);
		assert_true(series->values[1] == (double)INFINITY);
		assert_int_equal(series->axis->times[1], 1795185060000);
		noticed(talk, 1, "1 values that are not numbers");
		tear_down((void **)&talk);
	}
}

static void test_too_big_even_so(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	struct reply *raw = say(talk, 0, ""), *json = say(talk, 0, "");
	raw->kind = json->kind = REPLY_TOO_BIG;
	raw->problem = json->problem = "http://graphite:80: the answer is exceeds max_body";
	failed(talk, "exceeds max_body");
	assert_int_equal(talk->asked_count, 2);
}

static void test_recorded_json(void **state)
{
	static const struct {
		const char *file;
		int64_t now;
		size_t series, points;
	} cases[] = {
		{"render-step.json", 1795175000, 1, 116},
		{"render-multi2.json", 1795175000, 3, 9},
		{"render-nonull.json", 1795175000, 1, 116},
		{"render-inf.json", 1795175000, 1, 4},
		{"render-neginf.json", 1795175000, 1, 4},
		{"render-infraw.json", 1795175000, 1, 1},
		{"render-hugeint.json", 1795175000, 2, 4},
		{"render-utf8.json", 1795175000, 7, 1},
		{"render-post.json", 1795175000, 1, 3},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.target = "lab.*";
		talk->query.now = cases[i].now * 1000;
		say_file(talk, 200, cases[i].file);
		done(talk);
		if (talk->query.data.count != cases[i].series ||
			talk->query.data.series[0].axis->n != cases[i].points)
			fail_msg("%s: %zu series, %zu points", cases[i].file,
				talk->query.data.count, talk->query.data.series[0].axis->n);
		tear_down((void **)&talk);
	}
}

static void test_all_below_a_prefix(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "performance-tests.daily.my-product";
	say_file(talk, 200, "find-folders.json");
	say_file(talk, 200, "find-leaves.json");
	say(talk, 200,
		"[{\"path\": \"performance-tests.daily.my-product.server.cpu\", \"is_leaf\": "
		"true}]");
	say_file(talk, 200, "render-run-raw.txt");
	done(talk);
	assert_string_equal(talk->asked[0].url,
		"http://graphite:80/base/metrics/"
		"find?query=performance-tests.daily.my-product.%2A");
	assert_string_equal(talk->asked[1].url, "http://graphite:80/base/metrics/find?query="
						"performance-tests.daily.my-product.client.%2A");
	assert_int_equal(talk->query.data.count, 3);
	assert_string_equal(talk->query.data.series[0].name, "client.p50");
	assert_string_equal(talk->query.data.series[1].name, "client.throughput");
	assert_string_equal(talk->query.data.series[2].name, "server.cpu");
}

static void test_nothing_below_a_prefix(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "x";
	say(talk, 200, "[]");
	done(talk);
	noticed(talk, 1, "no metrics below the prefix");
}

static void test_too_much_below_a_prefix(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.prefix = "x";
	for (int i = 0; i <= 1000; i++)
		buf_printf(&body, "%s{\"id\": \"x.%d\", \"leaf\": 1}", i ? "," : "[", i);
	buf_char(&body, ']');
	say(talk, 200, body.data);
	buf_free(&body);
	failed(talk, "more than 1000 metrics");
}

/* Brackets, commas and quotes within texts end no item. */
static void test_nodes_of_odd_names(void **state)
{
	static const char text[] =
		" [ {\"id\": \"a.]},[{\\\"b\", \"leaf\": 1, \"context\": {\"x\": [1, {}]}} ,"
		"{\"id\":\"a.\\\\\",\"leaf\":false}\n] ";
	struct arena *arena = arena_new();
	struct graphite_nodes nodes;
	struct error error;
	(void)state;
	assert_true(graphite_find_read(arena, text, strlen(text), &nodes, &error));
	assert_int_equal(nodes.count, 2);
	assert_string_equal(nodes.items[0].path, "a.]},[{\"b");
	assert_true(nodes.items[0].leaf && !nodes.items[1].leaf);
	assert_string_equal(nodes.items[1].path, "a.\\");
	arena_free(arena);
}

/* However large the answer, what is a tree of it at a time is small. */
static void test_items_that_are_too_large(void **state)
{
	struct arena *arena = arena_new();
	(void)state;
	for (int more = 0; more < 2; more++) {
		static const char before[] = "{\"id\":\"a\",\"leaf\":1,\"x\":\"", after[] = "\"}";
		struct graphite_nodes nodes;
		struct error error;
		struct buf body = {0};
		buf_printf(&body, "[%s", before);
		for (size_t i = strlen(before) + strlen(after);
			i < GRAPHITE_ITEM_MAX + (size_t)more; i++)
			buf_char(&body, 'x');
		buf_printf(&body, "%s]", after);
		bool good = graphite_find_read(arena, body.data, body.length, &nodes, &error);
		assert_int_equal(good, !more);
		if (!good)
			assert_non_null(strstr(error.text, "item 1 is larger than 1048576 bytes"));
		buf_free(&body);
	}
	arena_free(arena);
}

static size_t live_blocks, most_blocks; /* of jansson */

static void *count_malloc(size_t size)
{
	if (++live_blocks > most_blocks)
		most_blocks = live_blocks;
	return malloc(size);
}

static void count_free(void *block)
{
	live_blocks -= block != NULL;
	free(block);
}

/* A tree of many small values is 75 times its text: never of more than an item at a time. */
static void test_lists_are_no_trees(void **state)
{
	struct buf body = {0};
	struct graphite_nodes nodes;
	struct graphite_events events;
	struct arena *arena = arena_new();
	struct error error;
	(void)state;
	buf_text(&body, "[{\"id\":\"a\",\"leaf\":1,\"when\":1}");
	for (int i = 0; i < 2 * FOUND_MAX; i++)
		buf_text(&body, ",{\"id\":\"a\",\"leaf\":1,\"when\":1,\"x\":[[],[],[],[]]}");
	buf_char(&body, ']');
	json_set_alloc_funcs(count_malloc, count_free);
	assert_true(graphite_find_read(arena, body.data, body.length, &nodes, &error));
	assert_true(graphite_events_read(arena, body.data, body.length, &events, &error));
	json_set_alloc_funcs(malloc, free);
	assert_int_equal(nodes.count, FOUND_MAX);
	assert_int_equal(events.ignored, 2 * FOUND_MAX + 1);
	assert_int_equal(live_blocks, 0);
	assert_in_range(most_blocks, 1, 100);
	buf_free(&body);
	arena_free(arena);
}

static void test_names_only(void **state)
{
	struct talk *talk = *state;
	ask_run(talk);
	talk->query.listing = true;
	say(talk, 200,
		"performance-tests.daily.my-product.client.p50,1795185000,1795185060,60|None\n"
		"performance-tests.daily.my-product.client.throughput,1795185000,1795185060,60|1."
		"0\n");
	say(talk, 200, "[]");
	done(talk);
	assert_non_null(strstr(talk->asked[0].url, "&from=1795098900&until=1795185300&"));
	assert_int_equal(talk->query.data.count, 2);
	assert_string_equal(talk->query.data.series[0].name, "p50");
	assert_int_equal(talk->query.data.series[0].axis->n, 0);
	noticed(talk, 1, "no metric \"performance-tests.daily.my-product.server.cpu\"");
}

static void test_silent_targets(void **state)
{
	static const struct {
		const char *target, *find[2], *words;
	} cases[] = {
		{"a.b", {"[]"}, "the server has no metric \"a.b\""},
		{"a.b", {"[{\"id\":\"a.b\",\"leaf\":0}]"}, "is a folder, not a metric"},
		{"a.b", {"[{\"id\":\"a.b\",\"leaf\":1}]"}, "exists, but has no data"},
		{"a.*", {"[]"}, "the server has no metric \"a.*\""},
		{"a.é", {"[{\"id\":\"a.é\",\"leaf\":1}]"}, "UTF8_METRICS"},
		{"sum(a.b,c.d)", {"[{\"id\":\"a.b\",\"leaf\":1}]", "[]"}, "no metric \"c.d\""},
		{"sum(a.b,c.d)", {"[{\"id\":\"a.b\",\"leaf\":1}]", "[{\"id\":\"c.d\",\"leaf\":1}]"},
			"though its metrics exist"},
		{"seriesByTag('a=b')", {NULL}, "none has these tags"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.target = cases[i].target;
		say(talk, 200, "");
		for (int k = 0; k < 2 && cases[i].find[k]; k++)
			say(talk, 200, cases[i].find[k]);
		done(talk);
		assert_int_equal(talk->query.data.count, 0);
		noticed(talk, 1, cases[i].words);
		tear_down((void **)&talk);
	}
}

static void test_broken_expressions(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "scale(a.b";
	say_file(talk, 200, "render-unclosed.json");
	failed(talk,
		"target \"scale(a.b\" is malformed, so the server returns nothing: ( is not closed "
		"(character 6)");
	assert_int_equal(talk->error.kind, ERROR_DATA);
}

static void test_many_silent_targets(void **state)
{
	struct talk *talk = *state;
	static struct metric metrics[50];
	static char names[50][16];
	ask_many(talk, metrics, names, 50);
	say(talk, 200, "");
	say(talk, 200, "");
	for (int i = 0; i < 20; i++)
		say(talk, 200, "[]");
	done(talk);
	noticed(talk, 21, "30 more targets returned no series");
}

/* A server that renders only: what gives nothing is said, and what gives something is used. */
static void test_servers_without_find(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "p";
	talk->query.metric_count = 3;
	talk->metrics[0] = (struct metric){.name = "a", .suffix = "a", .scale = 1};
	talk->metrics[1] = (struct metric){.name = "b", .suffix = "b", .scale = 1};
	talk->metrics[2] = (struct metric){.name = "c", .suffix = "c", .scale = 1};
	say(talk, 200, "p.b,1795185000,1795185060,60|2.0\n");
	say(talk, 404, "not found");
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	noticed(talk, 2, "\"p.a\" returns no series, and the server has no /metrics/find");
	noticed(talk, 2, "\"p.c\" returns no series");
}

/* All below a prefix cannot be known without it. */
static void test_a_prefix_without_find(void **state)
{
	struct talk *talk = *state;
	talk->options.prefix = "p";
	say(talk, 404, "not found");
	failed(talk, "metrics/find: status 404");
}

static void test_metrics_without_values(void **state)
{
	struct talk *talk = *state;
	ask_run(talk);
	talk->query.tags.count = 0;
	say(talk, 200,
		"performance-tests.daily.my-product.client.p50,1795185000,1795185060,60|None\n"
		"performance-tests.daily.my-product.client.throughput,1795185000,1795185060,60|1."
		"0\n"
		"performance-tests.daily.my-product.server.cpu,1795185000,1795185000,60|\n");
	done(talk);
	assert_int_equal(talk->query.data.count, 1);
	noticed(talk, 2, "no values of \"performance-tests.daily.my-product.client.p50\"");
}

static void test_refusals(void **state)
{
	static const struct {
		int status;
		const char *file, *type, *words[3];
	} cases[] = {
		{400, "render-badfunc.txt", "text/html",
			{"http://graphite:80/base/render: status 400: Invalid parameters",
				"noSuchFunc"}},
		{400, "render-partialbad.txt", "text/html", {"status 400: Invalid parameters"}},
		{400, "render-badtime.txt", NULL, {"Unknown day reference: yesterdayish"}},
		{500, "events-baddate.txt", "text/html",
			{"status 500 with an HTML page", "see its log"}},
		{200, "events-baddate.txt", "text/html", {"a login page"}},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.target = "a";
		say_file(talk, cases[i].status, cases[i].file)->content_type = cases[i].type;
		run(talk);
		assert_int_equal(talk->end, STEP_FAILED);
		for (int k = 0; k < 3 && cases[i].words[k]; k++)
			if (!strstr(talk->error.text, cases[i].words[k]))
				fail_msg(
					"\"%s\" lacks \"%s\"", talk->error.text, cases[i].words[k]);
		tear_down((void **)&talk);
	}
}

static void test_no_answer(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "a";
	struct reply *reply = say(talk, 0, "");
	reply->kind = REPLY_UNREACHABLE;
	reply->problem = "cannot reach http://graphite:80: Connection refused";
	failed(talk, "Connection refused");
}

static void test_broken_answers(void **state)
{
	static const char *const bodies[] = {
		"a",
		"a\n",
		"a|1.0\n",
		"a,1,2|1.0\n",
		"a,1795185000,1795185060,60|1.0",
		"a,1795185000,1795185060,0|1.0\n",
		"a,1795185000,1795185060,-60|1.0\n",
		"a,1795185000,1795185120,60|1.0\n",
		"a,99999999999,99999999999,999999999999|1.0,2.0,3.0\n",
		"a,1795185060,1795185000,60|\n",
		"a,1795185000,99999999999999999999,60|1.0\n",
		"a,1795185000,1795185060,60|1.0\nb",
		"a,b,c,d|1\n",
		",,,|\n",
		"[",
		"[]x",
		"[{}]",
		"[{\"target\":\"a\"}]",
		"[{\"datapoints\":[]}]",
		"[{\"target\":1,\"datapoints\":[]}]",
		"[{\"target\":\"a\",\"datapoints\":[[1]]}]",
		"[{\"target\":\"a\",\"datapoints\":{}}]",
		"[{\"target\":\"a\",\"datapoints\":[[1,\"2\"]]}]",
		"[{\"target\":\"a\",\"datapoints\":[[1,2],[1,1]]}]",
		"[{\"target\":\"a\",\"target\":\"b\",\"datapoints\":[]}]",
		"[1]",
		"[null]",
	};
	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct talk *talk;
		set_up((void **)&talk);
		talk->options.target = "a";
		say(talk, 200, bodies[i]);
		run(talk);
		if (talk->end != STEP_FAILED)
			fail_msg("accepted: %s", bodies[i]);
		assert_non_null(strstr(talk->error.text, "not an answer of Graphite's"));
		tear_down((void **)&talk);
	}
}

/* Cut within a line, or within JSON, an answer fails and never counts as a shorter one. */
static void test_truncated_answers(void **state)
{
	static const char *const files[] = {"render-run-raw.txt", "render-multi2.json"};
	(void)state;
	for (int f = 0; f < 2; f++) {
		struct talk *whole;
		set_up((void **)&whole);
		say_file(whole, 200, files[f]);
		const char *text = whole->bodies[0];
		for (size_t i = 1; i < whole->replies[0].length; i++) {
			struct talk *talk;
			if (f == 0 && text[i - 1] == '\n')
				continue;
			set_up((void **)&talk);
			talk->options.target = "a.*";
			say(talk, 200, text)->length = i;
			talk->bodies[0][i] = '\0';
			run(talk);
			assert_int_equal(talk->end, STEP_FAILED);
			tear_down((void **)&talk);
		}
		tear_down((void **)&whole);
	}
}

/* Targets may have commas, bars, quotes and line ends. */
static void test_odd_targets(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "group(a,b)";
	say(talk, 200,
		"f(a,1,2,3),1795185000,1795185060,60|1.0\n"
		"x|y,1795185000,1795185060,60|2.0\n"
		"two\nlines,1795185000,1795185060,60|3.0\n");
	done(talk);
	assert_int_equal(talk->query.data.count, 3);
	assert_string_equal(talk->query.data.series[0].name, "f(a,1,2,3)");
	assert_string_equal(talk->query.data.series[1].name, "two\nlines");
	assert_string_equal(talk->query.data.series[2].name, "x|y");
}

/* As graphite-web 1.1.10 answers constantLine(5), and sums of two resolutions in some windows. */
static void test_more_values_than_the_header_says(void **state)
{
	struct talk *talk = *state;
	talk->options.target = "f(a)";
	say(talk, 200,
		"5,1795185000,1795185120,60|5,5,5\n"
		"sumSeries(a,b),1795185000,1795185000,60|1.0\n");
	done(talk);
	const struct series *series = talk->query.data.series;
	assert_int_equal(talk->query.data.count, 2);
	assert_int_equal(series[0].axis->n, 3);
	assert_int_equal(series[0].axis->times[2], 1795185120000);
	assert_true(series[0].values[2] == 5);
	assert_true(series[1].values[0] == 1 && series[1].axis->n == 1);
}

static void count_series(void *context, const struct graphite_series *series)
{
	(void)series;
	++*(size_t *)context;
}

static void test_too_many_points(void **state)
{
	(void)state;
	for (int more = 0; more < 2; more++) {
		struct buf body = {0};
		struct error error;
		size_t series = 0;
		int points = 1000 + more;
		buf_printf(&body, "a,1700000000,%d,1|", 1700000000 + points + 1);
		for (int i = 0; i < points; i++)
			buf_text(&body, "1,");
		buf_text(&body, "None\n");
		assert_int_equal(graphite_read_raw(body.data, body.length, 1000, count_series,
					 &series, &error),
			!more);
		assert_int_equal(series, !more);
		if (more)
			assert_non_null(
				strstr(error.text, "\"a\" has more points than max_points, 1000"));
		buf_free(&body);
	}
}

static void test_too_many_series(void **state)
{
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.target = "*";
	for (int i = 0; i <= 10000; i++)
		buf_printf(&body, "m%d,1795185000,1795185060,60|1\n", i);
	say(talk, 200, body.data);
	buf_free(&body);
	failed(talk, "more than 10,000 series");
}

static void test_too_many_points_of_all(void **state)
{
	enum { N = 5000000 };
	struct talk *talk = *state;
	struct target target = {.text = "*"};
	int64_t *times = memory_new(N, sizeof *times);
	double *values = memory_new(N, sizeof *values);
	for (int i = 0; i < N; i++)
		times[i] = i;
	struct graphite_set gathering = {
		.query = &talk->query, .to = N, .targets = &target, .target_count = 1};
	struct graphite_series series = {.target = "a", .times = times, .values = values, .n = N};
	for (int i = 0; i < 4; i++)
		graphite_set_take(&gathering, &series);
	assert_false(gathering.overflow);
	series.n = 1;
	graphite_set_take(&gathering, &series);
	assert_true(gathering.overflow);
	assert_int_equal(gathering.points, 4 * N);
	free(times);
	free(values);
}

/* Series that have no times in common are not spread over the times of all. */
static void test_disjoint_series_stay_small(void **state)
{
	enum { SERIES = 1500, POINTS = 100 };
	struct talk *talk = *state;
	struct buf body = {0};
	talk->options.target = "*";
	for (int s = 0; s < SERIES; s++) {
		int begin = 1780000020 + s * POINTS * 60;
		buf_printf(&body, "m%04d,%d,%d,60|", s, begin, begin + POINTS * 60);
		for (int i = 0; i < POINTS; i++)
			buf_text(&body, i + 1 < POINTS ? "1," : "2\n");
	}
	say(talk, 200, body.data);
	buf_free(&body);
	done(talk);
	assert_int_equal(talk->query.data.count, SERIES);
	assert_in_range(arena_size(talk->query.arena), 1, 32000000);
	for (int s = 0; s < SERIES; s++) {
		const struct series *series = &talk->query.data.series[s];
		int64_t begin = 1780000020 + s * POINTS * 60;
		size_t first = axis_lower_bound(series->axis, begin * 1000);
		assert_true(first + POINTS <= series->axis->n);
		assert_int_equal(series->axis->times[first], begin * 1000);
		assert_true(series->values[first] == 1 && series->values[first + POINTS - 1] == 2);
		assert_true(first == 0 || isnan(series->values[first - 1]));
	}
}

#define TALK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TALK_TEST(test_a_run_with_events),
		TALK_TEST(test_answers_are_matched_by_target),
		TALK_TEST(test_since_is_inclusive_and_until_exclusive),
		TALK_TEST(test_range_of_a_moment),
		TALK_TEST(test_infinities_and_broken_values_cost_their_points),
		TALK_TEST(test_all_of_the_lab),
		TALK_TEST(test_resolutions_have_their_own_axes),
		TALK_TEST(test_events_of_nightly_points),
		TALK_TEST(test_events_of_sparse_points),
		TALK_TEST(test_events_of_unaligned_buckets),
		TALK_TEST(test_events_in_any_order),
		TALK_TEST(test_events_are_deployments),
		cmocka_unit_test(test_many_events_of_many_axes),
		TALK_TEST(test_servers_without_events),
		cmocka_unit_test(test_broken_events_fail),
		TALK_TEST(test_branches),
		TALK_TEST(test_branches_in_the_prefix),
		TALK_TEST(test_configurations_that_cannot_work),
		cmocka_unit_test(test_options_are_checked),
		TALK_TEST(test_expressions_of_metrics),
		TALK_TEST(test_long_requests_go_by_post),
		TALK_TEST(test_many_metrics),
		TALK_TEST(test_sparse_archives),
		cmocka_unit_test(test_json_where_raw_cannot_be),
		cmocka_unit_test(test_targets_that_are_no_text),
		cmocka_unit_test(test_items_that_are_no_text),
		TALK_TEST(test_too_big_even_so),
		cmocka_unit_test(test_recorded_json),
		TALK_TEST(test_all_below_a_prefix),
		TALK_TEST(test_nothing_below_a_prefix),
		TALK_TEST(test_too_much_below_a_prefix),
		cmocka_unit_test(test_nodes_of_odd_names),
		cmocka_unit_test(test_items_that_are_too_large),
		cmocka_unit_test(test_lists_are_no_trees),
		TALK_TEST(test_names_only),
		cmocka_unit_test(test_silent_targets),
		TALK_TEST(test_broken_expressions),
		TALK_TEST(test_many_silent_targets),
		TALK_TEST(test_servers_without_find),
		TALK_TEST(test_a_prefix_without_find),
		TALK_TEST(test_metrics_without_values),
		cmocka_unit_test(test_refusals),
		TALK_TEST(test_no_answer),
		cmocka_unit_test(test_broken_answers),
		cmocka_unit_test(test_truncated_answers),
		TALK_TEST(test_odd_targets),
		TALK_TEST(test_more_values_than_the_header_says),
		cmocka_unit_test(test_too_many_points),
		TALK_TEST(test_too_many_series),
		TALK_TEST(test_too_many_points_of_all),
		TALK_TEST(test_disjoint_series_stay_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
