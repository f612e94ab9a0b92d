/*
 * `list-tests`, `list-groups`, `list-metrics`: names, one per line, as Hunter prints them.
 *
 * The metrics of a test are from the configuration if it names them, else from the source's
 * metadata; if neither knows, as for the label sets of a Prometheus query, the data is read.
 * Graphite is always queried: only the server can resolve a path with wildcards.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/select.h"
#include "agent/base/order.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/report/table.h"

static const struct option_part no_parts[] = {{0}};

/* The range applies to servers; files list their metrics whatever the times of their points. */
static const struct option_part metrics_parts[] = {{range_fields, 0}, {0}};

static void print_sorted(const struct cli *cli, const char **names, size_t count)
{
	qsort(names, count, sizeof *names, order_texts);
	for (size_t i = 0; i < count; i++)
		text_line(cli->out, "%s", names[i]);
}

static int list_tests(struct cli *cli)
{
	struct error error;
	const struct test *const *tests;
	size_t count;
	if (!config_select(cli->config, &cli->arguments, cli->arena, &tests, &count, &error))
		return cli_fail(&error);
	const char **names = arena_array(cli->arena, count, sizeof *names);
	for (size_t i = 0; i < count; i++)
		names[i] = tests[i]->name;
	print_sorted(cli, names, count);
	return EXIT_NOTHING;
}

static int list_groups(struct cli *cli)
{
	const struct config *config = cli->config;
	const char **names = arena_array(cli->arena, config->group_count, sizeof *names);
	for (size_t i = 0; i < config->group_count; i++)
		names[i] = config->groups[i].name;
	print_sorted(cli, names, config->group_count);
	return EXIT_NOTHING;
}

struct listing {
	FILE *out;
	struct selection selection;
};

static void prepare(void *context, struct task *task)
{
	const struct listing *listing = context;
	const struct source *source = source_find(task->test->source->name);
	if (source && source->plugin.server_size > 0)
		selection_query(&listing->selection, task->test, &task->query);
	task->query.listing = true;
}

static void ready(void *context, struct task *const *tasks)
{
	const struct listing *listing = context;
	const struct dataset *data = &tasks[0]->query.data;
	if (!gather_log(tasks[0]))
		return;
	for (size_t i = 0; i < data->count; i++)
		text_line(listing->out, "%s", data->series[i].name);
}

static int list_metrics(struct cli *cli)
{
	struct listing listing = {.out = cli->out};
	struct error error;
	if (!selection_resolve(cli->options, cli->now, &listing.selection, &error))
		return cli_fail(&error);
	struct config *config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	const struct test *test = single_test(cli, cli->arguments.items[0], &error);
	if (!test)
		return cli_fail(&error);
	const struct source *source = test->unsupported ? NULL : source_find(test->source->name);
	struct gather gather = {.tests = &test,
		.count = 1,
		.config = config,
		.prepare = prepare,
		.ready = ready,
		.context = &listing};
	if (test->metric_count == 0 || (source && source->asks))
		gather_run(&gather, cli);
	else
		for (size_t i = 0; i < test->metric_count; i++)
			text_line(cli->out, "%s", test->metrics[i].name);
	return gather.code;
}

const struct command list_tests_command = {
	.name = "list-tests",
	.arguments = "[GROUP...]",
	.summary = "List the tests",
	.details = "Prints the names of all tests, or of those in the groups, in alphabetical "
		   "order. Also accepts names of tests and patterns such as 'demo.*'.",
	.parts = no_parts,
	.configured = true,
	.run = list_tests,
};

const struct command list_groups_command = {
	.name = "list-groups",
	.summary = "List the groups of tests",
	.parts = no_parts,
	.misuse = "list-groups takes no arguments",
	.configured = true,
	.run = list_groups,
};

const struct command list_metrics_command = {
	.name = "list-metrics",
	.arguments = "TEST",
	.summary = "List the metrics of a test",
	.misuse = "list-metrics takes the name of one test",
	.least = 1,
	.most = 1,
	.parts = metrics_parts,
	.options_size = sizeof(struct selection_flags),
	.run = list_metrics,
};
