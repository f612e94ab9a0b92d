/* `changes`: lists recorded changes. Reads the state file while an agent runs, or without one. */
#include "agent/commands/changes.h"

#include <fnmatch.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/core/when.h"
#include "agent/notify/announce.h"
#include "agent/report/csv.h"
#include "agent/store/store.h"

struct changes_options {
	struct strings state;
	const char *since, *until, *test;
	int64_t limit;
	int output; /* enum changes_output */
	bool csv_formulas;
	const char *state_file;
};

static const struct field changes_fields[] = {
	OPTION_LIST(struct changes_options, state,
		"only changes that are confirmed, moved, withdrawn, candidate (seen, not yet "
		"confirmed) or recovered (the previous level is back); all by default",
		.metavar = "STATE,..."),
	OPTION_STRING(struct changes_options, since, NULL,
		"only changes at or after that time, whenever they were found", .metavar = "DATE"),
	OPTION_STRING(struct changes_options, until, NULL, "only changes before that time",
		.metavar = "DATE"),
	OPTION_STRING(struct changes_options, test, NULL,
		"only changes of the test, or of tests whose names match a pattern",
		.metavar = "NAME"),
	OPTION_INT(struct changes_options, limit, "1000", 1, 1000000,
		"at most this many, those found last"),
	OPTION_CHOICE(struct changes_options, output, "text", changes_output_names,
		"how to print them; json has their history, too"),
	OPTION_BOOL(struct changes_options, csv_formulas, CSV_FORMULAS_HELP),
	OPTION_STRING(struct changes_options, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	{0},
};

static bool add_state(const char *name, unsigned *states, struct error *error)
{
	for (unsigned i = 1; i < CHANGE_STATES; i++)
		if (strcmp(change_state_names[i], name) == 0) {
			*states |= 1U << i;
			return true;
		}
	return error_set(error, ERROR_USAGE,
		"--state: \"%.100s\" is none of confirmed, moved, withdrawn, candidate, "
		"recovered",
		name);
}

static bool parse_time(const struct cli *cli, const char *flag, const char *text, int64_t *out,
	struct error *error)
{
	if (!text || when_parse(text, cli->now, out, error))
		return true;
	return error_prefix(error, "--%s: ", flag);
}

static bool make_filter(const struct cli *cli, struct change_filter *filter, struct error *error)
{
	const struct changes_options *options = cli->options;

	*filter = (struct change_filter){.test = options->test, .limit = options->limit};
	for (size_t i = 0; i < options->state.count; i++)
		if (!add_state(options->state.items[i], &filter->states, error))
			return false;
	return parse_time(cli, "since", options->since, &filter->since, error) &&
	       parse_time(cli, "until", options->until, &filter->until, error);
}

static bool matches(const struct strings *names, const char *pattern)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], pattern) == 0 ||
			fnmatch(pattern, names->items[i], 0) == 0)
			return true;
	return false;
}

/* Warns if nothing is listed because no test has that name: neither a configured one nor one
 * with recorded changes. */
static void note_unknown(const struct config *config, const char *path, const char *name)
{
	struct store_list *request = store_list_new(NULL, NULL);
	struct strings topics = {0};
	struct error error;
	const char *near;

	request->filter = (struct change_filter){.test = name, .limit = 1};
	if (config)
		topics = config_topics(config, request->call.arena);
	if (!matches(&topics, name) && store_read(path, &request->call, &error) &&
		request->records.count == 0) {
		near = field_suggest(name, topics.items, topics.count);
		if (near)
			log_event(LEVEL_WARN, "no test has that name", LOG_TEXT("test", name),
				LOG_TEXT("did_you_mean", near));
		else
			log_event(LEVEL_WARN, "no test has that name", LOG_TEXT("test", name));
	}
	store_call_free(&request->call);
}

static int run(struct cli *cli)
{
	const struct changes_options *options = cli->options;
	struct config *config = NULL;
	struct error error;
	struct store_list *request;
	struct change_filter filter;
	const char *path;
	bool done;

	if (cli->arguments.count > 0) {
		error_set(&error, ERROR_USAGE, "changes takes no arguments (--test names a test)");
		return cli_fail(&error);
	}
	if (!make_filter(cli, &filter, &error))
		return cli_fail(&error);
	if (!options->state_file && !(config = cli_config(cli)))
		return EXIT_USAGE;
	path = config ? config->agent.state : options->state_file;
	request = store_list_new(NULL, NULL);
	request->filter = filter;
	done = store_read(path, &request->call, &error);
	for (size_t i = 0; done && config && i < request->records.count; i++)
		announce_links(request->call.arena, config, &request->records.items[i]);
	if (done)
		changes_print(request, (enum changes_output)options->output, options->csv_formulas,
			cli->out);
	if (done && request->records.count == 0 && filter.test)
		note_unknown(config, path, filter.test);
	if (done && request->more)
		log_event(LEVEL_WARN, "there are more (--limit, --since, --test)",
			LOG_INT("shown", request->records.count));
	store_call_free(&request->call);
	config_free(config);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static const struct option_part parts[] = {{changes_fields, 0}, {0}};

const struct command changes_command = {
	.name = "changes",
	.summary = "List the changes that the agent knows",
	.details = "Lists what the agent has recorded, latest change first, whether it was "
		   "announced or not: "
		   "the state file is read beside a running agent, or without one, and nothing is "
		   "written. "
		   "With --output json each change comes with its history: when it was found, "
		   "confirmed, moved, withdrawn, recovered, found again, and announced to whom.",
	.parts = parts,
	.options_size = sizeof(struct changes_options),
	.run = run,
};
