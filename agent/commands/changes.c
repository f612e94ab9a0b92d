/* `changes`: lists recorded changes, of a state or of a running agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/model/record_json.h"
#include "agent/report/document.h"
#include "agent/store/store.h"
#include "agent/web/forms.h"

/* A change as JSON, which is less than the same parsed: there may be a million. */
struct change_row {
	int64_t time, id;
	const char *json;
};

/* The list. */
struct change_list {
	struct arena *arena;
	struct change_row *rows;
	size_t count;
	size_t most;
	bool more; /* there are others */
};

static int by_time(const void *a, const void *b)
{
	const struct change_row *left = a, *right = b;

	if (left->time != right->time)
		return left->time > right->time ? -1 : 1;
	return (right->id > left->id) - (right->id < left->id);
}

static void add_row(struct change_list *list, int64_t time, int64_t id, struct buf *json)
{
	list->rows = arena_grow(list->arena, list->rows, list->count, sizeof *list->rows);
	list->rows[list->count++] = (struct change_row){time, id, buf_keep(json, list->arena)};
}

static json_t *parse_row(const void *context, size_t i)
{
	return json_loads(((const struct change_row *)context)[i].json, 0, NULL);
}

struct changes_options {
	struct state_flags state_of;
	struct strings state, triage;
	bool open;
	const char *since, *until, *test, *incident;
	int64_t limit;
	int output; /* enum cli_output */
};

static const struct field changes_fields[] = {
	OPTION_LIST(struct changes_options, state,
		"only changes in this state: confirmed, moved, withdrawn, candidate (not yet "
		"confirmed) or recovered (the previous level is back); default: all",
		.metavar = "STATE,..."),
	OPTION_LIST(struct changes_options, triage,
		"only changes triaged as open, acknowledged, expected, ignored, infra, false or "
		"fixed",
		.metavar = "STATE,..."),
	OPTION_BOOL(struct changes_options, open,
		"the inbox: standing changes that are open or acknowledged, without improvements "
		"and ends of other changes, the worst first"),
	OPTION_STRING(struct changes_options, since, NULL, "only changes at or after this time",
		.metavar = "DATE"),
	OPTION_STRING(struct changes_options, until, NULL, "only changes before this time",
		.metavar = "DATE"),
	OPTION_STRING(struct changes_options, test, NULL,
		"only changes of this test, or of tests that match this pattern",
		.metavar = "NAME"),
	OPTION_STRING(struct changes_options, incident, NULL, "only changes of this incident",
		.metavar = "i12"),
	OPTION_INT(struct changes_options, limit, "1000", 1, 1000000,
		"maximum number of changes, the most recently found first (--open: the worst)"),
	OPTION_CHOICE(struct changes_options, output, "text", cli_list_outputs,
		"output format; json includes the history"),
	{0},
};

static const char *joined(struct arena *arena, const struct strings *values)
{
	struct buf text = {0};

	for (size_t i = 0; i < values->count; i++)
		buf_printf(&text, "%s%s", i ? "," : "", values->items[i]);
	return values->count > 0 ? buf_keep(&text, arena) : NULL;
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
	if (!any_matches(&topics, name) && store_tx(path, STORE_READ, &request->call, &error) &&
		request->records.count == 0) {
		near = field_suggest(name, topics.items, topics.count);
		if (near)
			log_event(LEVEL_WARN, "unknown test", LOG_TEXT("test", name),
				LOG_TEXT("did_you_mean", near));
		else
			log_event(LEVEL_WARN, "unknown test", LOG_TEXT("test", name));
	}
	store_call_free(&request->call);
}

/* The latest first, the inbox in its order; as many as --limit allows. */
static void print(struct cli *cli, const struct change_list *list)
{
	const struct changes_options *options = cli->options;
	size_t limit = (size_t)options->limit;
	size_t count = list->count < limit ? list->count : limit;
	bool more = list->more || list->count > count;
	const struct document_items items = {count, parse_row, list->rows};

	if (list->count > 0 && !options->open)
		qsort(list->rows, list->count, sizeof *list->rows, by_time);
	switch ((enum cli_output)options->output) {
	case OUTPUT_TEXT:
		document_table_of(list->arena, &items,
			options->open || options->triage.count > 0 ? records_inbox : records_list,
			cli->out);
		break;
	case OUTPUT_JSON:
		fputs("{\"changes\": [", cli->out);
		for (size_t i = 0; i < count; i++)
			fprintf(cli->out, "%s\n  %s", i > 0 ? "," : "", list->rows[i].json);
		fprintf(cli->out, "%s], \"more\": %s}\n", count > 0 ? "\n" : "",
			more ? "true" : "false");
		break;
	case OUTPUT_CSV: document_csv(&items, records_columns(list->arena), cli->out); break;
	}
	if (more)
		log_event(LEVEL_WARN, "output truncated: use --limit, --since or --test",
			LOG_INT("shown", count));
}

static bool list_file(const struct change_filter *filter, const char *path,
	const struct config *config, struct change_list *list, struct error *error)
{
	struct store_list *request = store_list_new(NULL, NULL);
	bool done;

	request->filter = *filter;
	done = store_tx(path, STORE_READ, &request->call, error);
	for (size_t i = 0; done && i < request->records.count; i++) {
		struct change_record *record = &request->records.items[i];
		struct buf json = {0};

		if (config)
			announce_links(request->call.arena, config, record);
		record_put_json(&json, record);
		add_row(list, record->item.time, record->item.id, &json);
	}
	list->more = request->more;
	if (done && list->count == 0 && filter->test)
		note_unknown(config, path, filter->test);
	store_call_free(&request->call);
	return done;
}

/* Pages are in the order of finding: of a whole one, the latest are listed. */
static bool take_page(void *context, json_t *page, bool *wanted)
{
	struct change_list *list = context;
	struct arena *arena = arena_new();
	bool good = true;

	for (size_t i = 0; i < json_array_size(page); i++) {
		json_t *change = json_array_get(page, i);
		struct change_record record;
		struct buf json = {0};

		good = record_read(arena, change, &record);
		if (!good)
			break;
		document_put(&json, change, false);
		add_row(list, record.item.time, record.item.id, &json);
	}
	arena_free(arena);
	*wanted = list->count < list->most;
	return good;
}

static int run(struct cli *cli)
{
	const struct changes_options *options = cli->options;
	const struct pair pairs[] = {{"state", joined(cli->arena, &options->state)},
		{"triage", joined(cli->arena, &options->triage)}, {"test", options->test},
		{"incident", options->incident}, {"since", options->since},
		{"until", options->until}, {"open", options->open ? "true" : NULL}};
	struct pairs form = {pairs, sizeof pairs / sizeof *pairs};
	const struct config *config = NULL;
	struct change_filter filter = {.limit = options->limit};
	struct change_list list = {.arena = cli->arena, .most = (size_t)options->limit};
	struct form read = {
		.get = state_form, .context = &form, .arena = cli->arena, .now = cli->now};
	struct error error;
	struct agent_api *api = NULL;
	const char *path;
	bool agent, done;

	if (!change_form_read(&read, &filter)) {
		(void)error_prefix(&read.error, "--");
		return cli_fail(&read.error);
	}
	if (!state_of_agent(&options->state_of, &agent, &error))
		return cli_fail(&error);
	if (!agent && !options->state_of.state_file && !(config = cli_config(cli)))
		return EXIT_USAGE;
	path = config ? config->agent.state : options->state_of.state_file;
	if (agent || (config && state_is_hidden(path))) {
		api = agent_api_new(&options->state_of.agent, config, &error);
		done = api && agent_api_changes(api, &form, take_page, &list, &list.more, &error);
		agent_api_free(api);
	} else {
		done = list_file(&filter, path, config, &list, &error);
	}
	if (done)
		print(cli, &list);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static const struct option_part parts[] = {
	{changes_fields, 0}, {state_fields, offsetof(struct changes_options, state_of)}, {0}};

const struct command changes_command = {
	.name = "changes",
	.summary = "List the changes recorded by the agent",
	.details =
		"Lists all recorded changes, announced or not, the latest first. Reads the state "
		"file, read-only and also beside a running agent; with --agent or $HUNTER_AGENT, "
		"or if the file is not readable, queries the agent instead. --open lists the "
		"changes that need triage, the worst first, with their current triage (see "
		"triage). --output json adds the history of each change: found, confirmed, moved, "
		"withdrawn, recovered, found again, the announcements and the triage.",
	.misuse = "changes takes no arguments (select a test with --test)",
	.parts = parts,
	.options_size = sizeof(struct changes_options),
	.run = run,
};
