/*
 * Routes: who is told of a change or a notice, how changes are grouped, and what the explanation
 * says. The configurations are the program's own.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cli/cli.h"
#include "agent/decide/group.h"
#include "agent/decide/route.h"
#include "agent/model/message.h"

#define HEAD                                                                                       \
	"receivers: {perf: {stdout: }, eu: {stdout: }, oncall: {stdout: {events: [new]}}, quiet: " \
	"{stdout: {events: [notice, recovered]}}, search: {stdout: }}\n"                           \
	"tests:\n"                                                                                 \
	"  checkout.eu: {type: csv, file: x.csv, tags: [pay, web]}\n"                              \
	"  search: {type: csv, file: x.csv}\n"                                                     \
	"  own: {type: csv, file: x.csv, notify: [search, oncall]}\n"                              \
	"test_groups: {shop: [checkout.eu, own]}\n"

enum { KINDS = MESSAGES_OF_CHANGES };

struct fixture {
	struct arena *arena;
	struct config *config;
	struct router *router;
};

static const char *no_variable(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	assert_non_null(f);
	f->arena = arena_new();
	*state = f;
	return 0;
}

static void drop(struct fixture *f)
{
	router_free(f->router);
	config_free(f->config);
	f->router = NULL;
	f->config = NULL;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	drop(f);
	arena_free(f->arena);
	free(f);
	return 0;
}

static void load(struct fixture *f, const char *text)
{
	char path[] = "/tmp/test_router.XXXXXX";
	struct config_source source = {.schema = &cli_schema, .env = no_variable};
	struct problems problems = {.arena = f->arena};
	int fd = mkstemp(path);

	drop(f);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	f->config = config_load(path, &source, &problems);
	unlink(path);
	if (!f->config)
		fail_msg("%s", problems.items[0].text);
	f->router = router_new(config_routing(f->config));
}

/* A change of that size in percent; a higher value is worse. NaN: it has none. */
static struct change_record change(const char *test, const char *series, double size)
{
	return (struct change_record){.item = {.test = test,
					      .metric = series,
					      .direction = -1,
					      .commit_after = "c1",
					      .change = {.size = size,
						      .mean_before = isnan(size) ? 0 : 100,
						      .mean_after = isnan(size) ? 1 : 100 + size,
						      .level_before = isnan(size) ? 0 : 100,
						      .level_after = isnan(size) ? 1 : 100 + size}},
		.series = series,
		.branch = "",
		.sign = size < 0 ? -1 : 1};
}

static const char *tell_record(
	struct fixture *f, const struct change_record *record, unsigned kinds)
{
	struct routed_rows told = route_change(f->router, record, kinds, f->arena, NULL);
	struct buf out = {0};

	for (size_t i = 0; i < told.count; i++) {
		if (told.items[i].decision.verdict != PASS)
			continue;
		buf_printf(&out, "%s%s", out.length > 0 ? " " : "", told.items[i].receiver->name);
		for (size_t j = 0; j < told.items[i].group_by.count; j++)
			buf_printf(&out, "/%s", told.items[i].group_by.items[j]);
	}
	return buf_keep(&out, f->arena);
}

static const char *tell(struct fixture *f, const char *test, const char *series, double size)
{
	struct change_record record = change(test, series, size);
	const char *first = tell_record(f, &record, KINDS);

	/* What is remembered of the first time makes no difference. */
	assert_string_equal(tell_record(f, &record, KINDS), first);
	return first;
}

static const char *tell_notice(struct fixture *f, const char *test)
{
	struct strings names = route_notices(f->router, &test, 1, 1u << MESSAGE_NOTICE, f->arena);
	struct buf out = {0};

	for (size_t i = 0; i < names.count; i++)
		buf_printf(&out, "%s%s", i > 0 ? " " : "", names.items[i]);
	return buf_keep(&out, f->arena);
}

static void test_without_routes(void **state)
{
	struct fixture *f = *state;

	load(f, HEAD);
	assert_string_equal(tell(f, "search", "p99", 5), "perf eu oncall search");
	assert_string_equal(tell(f, "own", "p99", 5), "oncall search");
	assert_string_equal(tell(f, "gone", "p99", 5), "perf eu oncall search stdout");
	assert_string_equal(tell_notice(f, "own"), "search");
	assert_string_equal(tell_notice(f, "search"), "perf eu quiet search");
}

static void test_tree(void **state)
{
	struct fixture *f = *state;

	load(f, HEAD
		"routes:\n"
		"  receivers: [perf]\n"
		"  group_by: [commit]\n"
		"  routes:\n"
		"    - match: ['test=~\"checkout.*\"', 'region=\"eu\"']\n"
		"      receivers: [eu]\n"
		"      routes:\n"
		"        - {at_least: 20%, verdict: regression, receivers: [oncall, eu], group_by: "
		"[test, region]}\n"
		"        - {match: 'region!~\"e.*\"', receivers: [search]}\n"
		"    - {match: 'test=\"search\"', receivers: [search], continue: true}\n"
		"    - {verdict: improvement, receivers: []}\n");
	assert_string_equal(tell(f, "checkout.eu", "p99{region=\"eu\"}", 5), "eu/commit");
	assert_string_equal(tell(f, "checkout.eu", "p99{region=\"eu\"}", 20),
		"oncall/test/region eu/test/region");
	assert_string_equal(tell(f, "checkout.eu", "p99{region=\"eu\"}", -50), "eu/commit");
	assert_string_equal(tell(f, "checkout.eu", "p99{region=\"eu\"}", (double)NAN),
		"oncall/test/region eu/test/region");
	assert_string_equal(tell(f, "checkout.eu", "p99{region=\"us\"}", 20), "perf/commit");
	assert_string_equal(tell(f, "checkout.eu", "p99", 20), "perf/commit");
	assert_string_equal(tell(f, "search", "p99", 5), "search/commit");
	assert_string_equal(tell(f, "search", "p99", -5), "search/commit");
	assert_string_equal(tell(f, "other", "p99", -5), "");
	assert_string_equal(tell(f, "other", "p99", 5), "perf/commit");
	assert_string_equal(tell(f, "own", "p99{region=\"eu\"}", 50), "oncall search");
}

static void test_tags_groups_and_events(void **state)
{
	struct fixture *f = *state;
	struct change_record record = change("checkout.eu", "p99", 5);

	load(f, HEAD
		"routes:\n"
		"  - {match: 'tag=\"pay\"', receivers: [eu], continue: true}\n"
		"  - {match: 'group=\"shop\"', events: [new, notice], receivers: [perf], continue: "
		"true}\n"
		"  - {match: 'commit=\"c1\"', receivers: [quiet, search]}\n"
		"  - {receivers: [stdout]}\n");
	assert_string_equal(tell(f, "checkout.eu", "p99", 5), "eu perf search");
	assert_string_equal(tell_record(f, &record, 1u << MESSAGE_RECOVERED), "eu quiet search");
	record.item.commit_after = "c2";
	assert_string_equal(tell_record(f, &record, KINDS), "eu perf stdout");
	assert_true(route_withholds(
		f->router, &record, 1u << MESSAGE_RECOVERED, &f->config->receivers[0]));
	assert_false(
		route_withholds(f->router, &record, 1u << MESSAGE_NEW, &f->config->receivers[0]));
	/* One that no route names any more is told the end of what it was told. */
	assert_string_equal(f->config->receivers[3].name, "quiet");
	assert_false(route_withholds(
		f->router, &record, 1u << MESSAGE_RECOVERED, &f->config->receivers[3]));
	assert_string_equal(tell_notice(f, "checkout.eu"), "eu perf stdout");
	assert_string_equal(tell_notice(f, "search"), "stdout");
}

/* A route for updates alone does not take what is new. */
static void test_each_kind_by_itself(void **state)
{
	struct fixture *f = *state;
	struct change_record record = change("search", "p99", 5);
	struct routed_rows told;

	load(f, HEAD "routes:\n"
		     "  - {events: [updated], receivers: [eu]}\n"
		     "  - {receivers: [perf]}\n");
	told = route_change(f->router, &record, KINDS, f->arena, NULL);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.items[0].receiver->name, "perf");
	assert_int_equal(told.items[0].kinds, 1u << MESSAGE_NEW);
	assert_string_equal(told.items[1].receiver->name, "eu");
	assert_int_equal(told.items[1].kinds, 1u << MESSAGE_UPDATED);
	assert_string_equal(tell_record(f, &record, 1u << MESSAGE_NEW), "perf");
	assert_string_equal(tell_record(f, &record, 1u << MESSAGE_RECOVERED), "perf");
}

/* A notice has neither labels nor a size. If its routes lead to nobody, those of its changes do. */
static void test_notices(void **state)
{
	struct fixture *f = *state;

	load(f, HEAD
		"routes:\n"
		"  - {match: ['test=~\"checkout.*\"', 'region=\"eu\"'], receivers: [eu]}\n"
		"  - {match: ['test=~\"checkout.*\"', 'region=\"us\"'], receivers: [perf, quiet]}\n"
		"  - {match: 'test=\"search\"', routes: [{at_least: 10, receivers: [search]}]}\n"
		"  - {match: 'test=\"nothing\"', receivers: []}\n");
	assert_string_equal(tell_notice(f, "checkout.eu"), "eu perf quiet");
	assert_string_equal(tell_notice(f, "search"), "search");
	assert_string_equal(tell_notice(f, "nothing"), "");
	assert_string_equal(tell(f, "nothing", "p99", 5), "");
	assert_string_equal(tell(f, "search", "p99", 5), "");
}

/* More values than are remembered, and the first ones again. */
static void test_many_values(void **state)
{
	struct fixture *f = *state;
	char series[64], host[16];

	load(f, HEAD "routes:\n"
		     "  - {match: 'host=~\".*7\"', receivers: [eu]}\n"
		     "  - {receivers: [perf]}\n");
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 21000; i++) {
			struct change_record record = change("search", series, 5);

			snprintf(host, sizeof host, "h%d", i);
			snprintf(series, sizeof series, "p99{host=\"%s\"}", host);
			assert_string_equal(
				tell_record(f, &record, KINDS), i % 10 == 7 ? "eu" : "perf");
			arena_free(f->arena);
			f->arena = arena_new();
		}
}

/* A group may list a test twice, and a cluster is its own. */
static void test_groups_of_topics(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *topic, *groups;
	} rows[] = {{"a", "two all load "}, {"b", "all load "}, {"c", ""}, {"load", "load "},
		{"two", ""}, {"gone", ""}};

	load(f, "tests:\n"
		"  a: {type: csv, file: x.csv, metrics: {p: {}}}\n"
		"  b: {type: csv, file: x.csv, metrics: {p: {}}}\n"
		"  c: {type: csv, file: x.csv}\n"
		"test_groups:\n"
		"  two: [a, a]\n"
		"  all: [two, b]\n"
		"  load: {type: cluster, tests: [all]}\n");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct strings groups = config_groups(f->config, rows[i].topic);
		struct buf out = {0};

		buf_text(&out, "");
		for (size_t j = 0; j < groups.count; j++)
			buf_printf(&out, "%s ", groups.items[j]);
		assert_string_equal(buf_keep(&out, f->arena), rows[i].groups);
	}
}

static void test_explanation(void **state)
{
	struct fixture *f = *state;
	struct change_record record = change("search", "p99{region=\"eu\"}", 5);
	struct buf out = {0}, bare = {0};

	load(f, HEAD
		"routes:\n"
		"  receivers: [perf]\n"
		"  routes:\n"
		"    - {match: 'region=\"us\"', receivers: [eu]}\n"
		"    - {at_least: 10, receivers: [eu]}\n"
		"    - {verdict: improvement, receivers: [eu]}\n"
		"    - {events: [recovered], receivers: [eu]}\n"
		"    - {match: 'region=\"eu\"', receivers: [eu], continue: true, routes: [{match: "
		"'test=\"x\"'}]}\n"
		"    - {receivers: []}\n");
	(void)route_change(f->router, &record, 1u << MESSAGE_NEW, f->arena, &out);
	for (const char *at = out.data; at && *at; at++) { /* without the name of the file */
		if (at == out.data || at[-1] == '\n')
			at = strchr(at, ':') + 1;
		buf_char(&bare, *at);
	}
	assert_string_equal(bare.data, "8: the root\n"
				       "10:   not taken: region=\"us\" does not hold\n"
				       "11:   not taken: smaller than at_least: 10%\n"
				       "12:   not taken: not an improvement\n"
				       "13:   not taken: not among its events\n"
				       "14:   taken: region=\"eu\", and continues\n"
				       "14:     not taken: test=\"x\" does not hold\n"
				       "14:     tells eu\n"
				       "15:   taken\n"
				       "15:     tells nobody\n");
	buf_free(&out);
	buf_free(&bare);
}

static const char *group(struct fixture *f, const struct change_record *records,
	const struct strings *group_by, size_t count)
{
	const struct change_record **items = arena_array(f->arena, count, sizeof *items);
	const char **keys = arena_array(f->arena, count, sizeof *keys);
	struct group_of *groups;
	struct buf out = {0};

	for (size_t i = 0; i < count; i++) {
		items[i] = &records[i];
		keys[i] = route_group(f->router, &records[i], &group_by[i], f->arena);
	}
	size_t group_count = group_changes(f->arena, items, group_by, keys, count, &groups);
	for (size_t i = 0; i < group_count; i++) {
		buf_text(&out, i > 0 ? " |" : "");
		for (size_t j = 0; j < groups[i].count; j++)
			buf_printf(&out, " %d", (int)(groups[i].items[j] - records));
	}
	return buf_keep(&out, f->arena);
}

static void test_groups(void **state)
{
	struct fixture *f = *state;
	static const char *const test_names[] = {"test"}, *const region_names[] = {"region"},
				 *const both_names[] = {"commit", "test"};
	const struct strings by_test = {test_names, 1}, by_region = {region_names, 1},
			     by_both = {both_names, 2};
	struct change_record records[] = {change("a", "p99{region=\"eu\"}", 5),
		change("b", "p99{region=\"eu\"}", 5), change("a", "p50{region=\"us\"}", 5),
		change("b", "p50", 5), change("c", "p50", 5)};

	load(f, HEAD "routes: {receivers: [perf]}\n");
	records[2].item.time = 1000000000; /* far from the others */
	records[2].item.commit_after = "c2";
	records[2].item.incident = 2;
	assert_string_equal(
		group(f, records, (struct strings[]){by_test, by_test, by_test, by_test, by_test},
			5),
		" 0 2 | 3 1 | 4");
	assert_string_equal(
		group(f, records,
			(struct strings[]){by_region, by_region, by_region, by_region, by_region},
			5),
		" 0 1 | 3 4 | 2");
	assert_string_equal(
		group(f, records, (struct strings[]){by_both, by_both, by_both, by_both, by_both},
			5),
		" 0 | 3 1 | 4 | 2");
	/* Those without names are grouped by incident, apart from the others. */
	assert_string_equal(
		group(f, records, (struct strings[]){by_test, {0}, {0}, {0}, by_test}, 5),
		" 0 | 3 1 | 4 | 2");
}

/* What belongs to an event or a summary stays together, and a storm is one message. */
static void test_many_groups(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = {"test"};
	struct change_record records[GROUPS_BY_NAMES_MOST + 3];
	struct strings group_by[GROUPS_BY_NAMES_MOST + 3];
	const char *all;

	load(f, HEAD "routes: {receivers: [perf]}\n");
	for (size_t i = 0; i < GROUPS_BY_NAMES_MOST + 3; i++) {
		records[i] = change(arena_printf(f->arena, "t%02zu", i), "p99", 5);
		group_by[i] = (struct strings){names, 1};
	}
	records[0].environment_event = records[1].environment_event = 7;
	all = group(f, records, group_by, GROUPS_BY_NAMES_MOST + 2);
	assert_non_null(strstr(all, " 0 1 | 2 | 3 | 4"));
	all = group(f, records, group_by, GROUPS_BY_NAMES_MOST + 3);
	assert_non_null(strstr(all, " 0 1 | 2 3 4 5 6 7"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_without_routes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tags_groups_and_events, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_kind_by_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(test_notices, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups_of_topics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_explanation, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_groups, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
