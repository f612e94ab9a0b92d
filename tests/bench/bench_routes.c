/*
 * What routing costs, router and groups by names included, the best CPU time of five rounds: 10,000
 * changes of as many series, in one round, through 200 routes with 20 receivers. Three trees: by
 * test and label, in two levels; by label, in one list; and by regular expressions that no prefix
 * decides, one of them about a label that each series has its own value of.
 *
 *     bench_routes [CHANGES [ROUTES]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/cli/cli.h"
#include "agent/decide/group.h"
#include "agent/decide/route.h"
#include "agent/model/message.h"

enum { RECEIVERS = 20, TESTS = 100, TEAMS = 40 };

enum tree { TREE_LEVELS, TREE_LIST, TREE_PATTERNS, TREES };

static const char *const tree_names[TREES] = {"two levels", "a list", "patterns"};

static const char *no_variable(void *context, const char *name)
{
	(void)context, (void)name;
	return NULL;
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void put_routes(struct buf *out, enum tree tree, int routes)
{
	buf_text(out, "routes:\n  receivers: [r0]\n  group_by: [commit, team]\n  routes:\n");
	for (int i = 0; i < routes; i++) {
		if (tree == TREE_LEVELS && i % 10 == 0)
			buf_printf(out, "    - match: ['test=~\"team%d\\\\..*\"']\n      routes:\n",
				i / 10);
		if (tree == TREE_LEVELS)
			buf_printf(out,
				"        - {match: ['region=\"region%d\"', 'team!=\"none\"'], "
				"receivers: [r%d], continue: %s, at_least: %d}\n",
				i % 10, i % RECEIVERS, i % 3 ? "false" : "true", 1 + i % 5);
		else if (tree == TREE_LIST)
			buf_printf(out,
				"    - {match: ['team=\"team%d\"', 'region=\"region%d\"'], "
				"receivers: [r%d]}\n",
				i % TEAMS, i % 7, i % RECEIVERS);
		else
			buf_printf(out,
				"    - {match: ['host=~\".*[0-9]+.example\"', 'team=~\".*m%d\"'], "
				"receivers: [r%d]}\n",
				i, i % RECEIVERS);
	}
}

static struct config *load(enum tree tree, int routes)
{
	char path[] = "/tmp/bench_routes.XXXXXX";
	struct config_source source = {.schema = &cli_schema, .env = no_variable};
	struct problems problems = {.arena = arena_new()};
	struct buf text = {0};
	struct config *config;
	int fd = mkstemp(path);

	buf_text(&text, "receivers:\n");
	for (int i = 0; i < RECEIVERS; i++)
		buf_printf(&text, "  r%d: {stdout: }\n", i);
	buf_text(&text, "tests:\n");
	for (int i = 0; i < TESTS; i++)
		buf_printf(&text, "  team%d.test%d: {type: csv, file: x.csv}\n", i % TEAMS, i);
	put_routes(&text, tree, routes);
	if (write(fd, text.data, text.length) != (ssize_t)text.length)
		abort();
	close(fd);
	config = config_load(path, &source, &problems);
	unlink(path);
	if (!config) {
		fprintf(stderr, "%s\n", problems.items[0].text);
		exit(2);
	}
	buf_free(&text);
	arena_free(problems.arena);
	return config;
}

static struct change_record record_of(struct arena *arena, const struct config *config, int i)
{
	struct change change = {.size = i % 30,
		.mean_before = 100,
		.mean_after = 100 + i % 30,
		.level_before = 100,
		.level_after = 100 + i % 30};

	return (struct change_record){.item = {.id = i,
					      .test = config->tests[i % TESTS].name,
					      .metric = "latency_p99",
					      .direction = -1,
					      .commit_after = arena_printf(arena, "c%d", i % 50),
					      .change = change},
		.series = arena_printf(arena,
			"latency_p99{host=\"web-%d.example\",region=\"region%d\",team=\"team%d\"}",
			i, i % 10, i % TEAMS),
		.branch = "",
		.sign = 1};
}

static void measure(enum tree tree, int changes, int routes)
{
	struct arena *arena = arena_new();
	struct config *config = load(tree, routes);
	struct change_record *records = arena_array(arena, (size_t)changes, sizeof *records);
	double best = 1e9;
	size_t told = 0;

	for (int i = 0; i < changes; i++)
		records[i] = record_of(arena, config, i);
	for (int round = 0; round < 5; round++) {
		struct arena *scratch = arena_new();
		double start = now(), took;
		struct router *router = router_new(config_routing(config));

		told = 0;
		for (int i = 0; i < changes; i++) {
			struct routed_rows to = route_change(
				router, &records[i], MESSAGES_OF_CHANGES, scratch, NULL);

			told += to.count;
			for (size_t j = 0; j < to.count; j++)
				(void)route_group(
					router, &records[i], &to.items[j].group_by, scratch);
		}
		router_free(router);
		took = (now() - start) / changes;
		best = took < best ? took : best;
		arena_free(scratch);
	}
	printf("routes\t%d changes, %d routes, %d receivers, %s\t%.2f us\t%.0f changes/s\t\n",
		changes, routes, RECEIVERS, tree_names[tree], 1e6 * best, 1 / best);
	if (told == 0)
		exit(1);
	config_free(config);
	arena_free(arena);
}

int main(int count, char **arguments)
{
	int changes = count > 1 ? atoi(arguments[1]) : 10000;
	int routes = count > 2 ? atoi(arguments[2]) : 200;

	for (enum tree tree = 0; tree < TREES; tree++)
		measure(tree, changes, routes);
	return 0;
}
