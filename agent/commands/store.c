/*
 * `store`: maintenance of the state file. Reading works while an agent runs; pruning needs
 * exclusive access.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/core/when.h"
#include "agent/report/table.h"
#include "agent/store/store.h"

struct store_options {
	const char *state_file;
	int64_t older_than;
	bool force, dry_run;
};

#define UNSET "never"

static const struct field store_fields[] = {
	OPTION_DURATION(struct store_options, older_than, UNSET, 0, 0,
		"prune: delete what was settled longer ago than this"),
	OPTION_BOOL(struct store_options, dry_run, "prune: only report what would be deleted"),
	OPTION_BOOL(struct store_options, force, "backup: overwrite an existing file"),
	OPTION_STRING(struct store_options, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	{0},
};

static int check(struct cli *cli)
{
	const struct store_options *options = cli->options;
	const char *path = state_file(cli, options->state_file);
	struct store_report report;
	struct error error;

	if (!path)
		return EXIT_USAGE;
	if (!store_check(path, cli->arena, &report, &error))
		return cli_fail(&error);
	fprintf(cli->out, "%s: version %" PRId64 ", %" PRId64 " bytes\n", path, report.version,
		report.size);
	for (size_t i = 0; i < report.problems.count; i++) {
		fputs("damaged: ", cli->out);
		text_print(report.problems.items[i], cli->out);
		putc('\n', cli->out);
	}
	if (report.problems.count > 0)
		return EXIT_STATE;
	fprintf(cli->out,
		"%" PRId64 " changes, %" PRId64 " messages (%" PRId64 " to be sent), %" PRId64
		" series\nOK\n",
		report.changes, report.deliveries, report.queued, report.series);
	return EXIT_NOTHING;
}

static int backup(struct cli *cli)
{
	const struct store_options *options = cli->options;
	const char *target = cli->arguments.items[1];
	const char *path = state_file(cli, options->state_file);
	struct error error;

	if (!path)
		return EXIT_USAGE;
	if (!store_backup(path, target, options->force, &error))
		return cli_fail(&error);
	fprintf(cli->out, "%s: %" PRId64 " bytes, checked\n", target, store_size_of(target));
	return EXIT_NOTHING;
}

static void print_pruned(const struct cli *cli, const struct pruned *pruned)
{
	const struct store_options *options = cli->options;

	fprintf(cli->out,
		"%s: %" PRId64 " changes, %" PRId64 " entries of history, %" PRId64
		" messages, places of %" PRId64 " series\n",
		options->dry_run ? "would be forgotten" : "forgotten", pruned->changes,
		pruned->events, pruned->deliveries, pruned->checkpoints);
}

static int prune_file(struct cli *cli, const char *path, const struct strings *tests)
{
	const struct store_options *options = cli->options;
	struct error error;
	struct store_prune *request;
	bool done;

	if (access(path, F_OK) != 0) {
		error_set(&error, ERROR_STATE, "state file %s: %s", path, strerror(errno));
		return cli_fail(&error);
	}
	request = store_prune_new(NULL, NULL);
	request->before = cli->now - options->older_than;
	request->tests = *tests;
	request->thorough = true;
	done = store_perform(path, &request->call, options->dry_run, &error);
	if (done)
		print_pruned(cli, &request->pruned);
	store_call_free(&request->call);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static int prune(struct cli *cli)
{
	const struct store_options *options = cli->options;
	struct strings tests = {0};
	struct config *config;
	const char *path = options->state_file;

	if (options->older_than == WHEN_NEVER) {
		struct error error;

		error_set(&error, ERROR_USAGE, "store prune needs --older-than (as 90d)");
		return cli_fail(&error);
	}
	if (!path) {
		config = cli_config(cli);
		if (!config)
			return EXIT_USAGE;
		tests = config_topics(config, cli->arena);
		path = arena_strdup(cli->arena, config->agent.state);
		config_free(config);
	}
	return prune_file(cli, path, &tests);
}

static const struct verb {
	const char *name;
	size_t arguments;
	int (*run)(struct cli *cli);
} verbs[] = {{"check", 0, check}, {"backup", 1, backup}, {"prune", 0, prune}};

static int run(struct cli *cli)
{
	struct error error;

	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (cli->arguments.count == 1 + verbs[i].arguments &&
			strcmp(cli->arguments.items[0], verbs[i].name) == 0)
			return verbs[i].run(cli);
	error_set(&error, ERROR_USAGE, "store: one of check, backup FILE, prune is needed");
	return cli_fail(&error);
}

static const struct option_part parts[] = {{store_fields, 0}, {0}};

const struct command store_command = {
	.name = "store",
	.arguments = "check|backup FILE|prune",
	.summary = "Check, back up or prune the state file",
	.details =
		"check looks at everything in the state file and says what is wrong with it; "
		"the exit code "
		"is 4 if it is damaged. backup writes a copy of it, as of one moment, checked "
		"and safe on "
		"the disk. Both may be used while the agent runs.\n\n"
		"prune forgets messages that were settled before --older-than, and the changes, "
		"not touched since, that lie before the range of their series or belong to tests "
		"the configuration no longer has. What is to be told stays, and so does what "
		"would be found "
		"again. With --state-file no configuration is read, and no test is taken for one "
		"that is "
		"gone. The agent must not run meanwhile; it forgets messages and withdrawn "
		"changes by itself, after 90 days. --dry-run tries it on a temporary copy, so the "
		"file stays as it is, and the agent may run.",
	.parts = parts,
	.options_size = sizeof(struct store_options),
	.run = run,
};
