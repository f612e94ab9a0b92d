/*
 * `list-metrics`: the metrics of a test. From the configuration if it names them, else from the
 * source's metadata; if neither knows, as for the label sets of a Prometheus query, the data is
 * read. Graphite is always asked: only the server can resolve a path with wildcards.
 */
#include <stdlib.h>

#include "agent/analysis/select.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/report/table.h"

/* The range applies to servers; files list their metrics whatever the times of their points. */
static const struct option_part list_parts[] = {{range_fields, 0}, {0}};

struct listing {
	FILE *out;
	struct selection selection;
};

static void print_name(const char *name, FILE *out)
{
	text_print(name, out);
	putc('\n', out);
}

static void print_names(const struct dataset *data, FILE *out)
{
	for (size_t i = 0; i < data->count; i++)
		print_name(data->series[i].name, out);
}

static void prepare(void *context, struct task *task)
{
	const struct listing *listing = context;
	selection_query(&listing->selection, task->test, &task->query);
	task->query.listing = true;
}

static void ready(void *context, struct task *const *tasks)
{
	const struct listing *listing = context;
	if (gather_log(tasks[0]))
		print_names(&tasks[0]->query.data, listing->out);
}

static int list_read(struct cli *cli, const struct test *test, const struct selection *selection,
	const struct config *config, struct error *error)
{
	struct listing listing = {.out = cli->out, .selection = *selection};
	struct gather gather = {.tests = &test,
		.count = 1,
		.config = config,
		.prepare = prepare,
		.ready = ready,
		.context = &listing};
	if (!gather_run(&gather, cli, error))
		return cli_fail(error);
	return gather.code;
}

static int list(struct cli *cli, const struct test *test, const struct selection *selection,
	const struct config *config)
{
	struct error error;
	const struct source *source = test->unsupported ? NULL : source_find(test->source->name);
	if (test->metric_count > 0 && !(source && source->asks)) {
		for (size_t i = 0; i < test->metric_count; i++)
			print_name(test->metrics[i].name, cli->out);
		return EXIT_NOTHING;
	}
	if (!source || source->plugin.server_size > 0)
		return list_read(cli, test, selection, config, &error);
	struct task *task = task_new(test, cli->now);
	task->query.timeout = config->agent.read_timeout;
	task->query.listing = true;
	bool listed = source->read(&task->query, &error);
	if (listed)
		print_names(&task->query.data, cli->out);
	task_free(task);
	if (listed)
		return EXIT_NOTHING;
	error_prefix(&error, "test \"%s\": ", test->name);
	return cli_fail(&error);
}

static int run(struct cli *cli)
{
	struct error error;
	if (cli->arguments.count != 1)
		return cli_refuse("list-metrics needs the name of one test");
	struct selection selection;
	if (!selection_resolve(cli->options, cli->now, &selection, &error))
		return cli_fail(&error);
	struct config *config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	const struct test *test = single_test(cli, cli->arguments.items[0], &error);
	return test ? list(cli, test, &selection, config) : cli_fail(&error);
}

const struct command list_metrics_command = {
	.name = "list-metrics",
	.arguments = "TEST",
	.summary = "List the metrics of a test",
	.parts = list_parts,
	.options_size = sizeof(struct selection_flags),
	.run = run,
};
