/* list-tests and list-groups: names in alphabetical order, one per line, as Hunter prints them. */
#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/commands/commands.h"
#include "agent/report/table.h"

static const struct option_part no_parts[] = {{0}};

static void print_sorted(const struct cli *cli, const char **names, size_t count)
{
	qsort(names, count, sizeof *names, order_texts);
	for (size_t i = 0; i < count; i++) {
		text_print(names[i], cli->out);
		putc('\n', cli->out);
	}
}

static int list_tests(struct cli *cli)
{
	struct error error;
	const struct test *const *tests;
	size_t count;
	struct config *config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	if (!config_select(config, &cli->arguments, cli->arena, &tests, &count, &error))
		return cli_fail(&error);
	const char **names = arena_array(cli->arena, count, sizeof *names);
	for (size_t i = 0; i < count; i++)
		names[i] = tests[i]->name;
	print_sorted(cli, names, count);
	return EXIT_NOTHING;
}

static int list_groups(struct cli *cli)
{
	struct config *config = NULL;
	if (cli->arguments.count > 0)
		return cli_refuse("list-groups takes no arguments");
	config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	const char **names = arena_array(cli->arena, config->group_count, sizeof *names);
	for (size_t i = 0; i < config->group_count; i++)
		names[i] = config->groups[i].name;
	print_sorted(cli, names, config->group_count);
	return EXIT_NOTHING;
}

const struct command list_tests_command = {
	.name = "list-tests",
	.arguments = "[GROUP...]",
	.summary = "List the tests",
	.details =
		"Prints the names of all tests, or of those in the groups, in alphabetical order. "
		"Names "
		"of tests and patterns like 'demo.*' are taken, too.",
	.parts = no_parts,
	.run = list_tests,
};

const struct command list_groups_command = {
	.name = "list-groups",
	.summary = "List the groups of tests",
	.parts = no_parts,
	.run = list_groups,
};
