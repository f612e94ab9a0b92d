/* `changes`: lists recorded changes. Reads the state file while an agent runs, or without one. */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/transfer.h"
#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/inbox.h"
#include "agent/commands/state_file.h"
#include "agent/model/columns.h"
#include "agent/model/record_json.h"
#include "agent/notify/announce.h"
#include "agent/report/csv.h"
#include "agent/report/table.h"
#include "agent/store/store.h"
#include "notifiers/text.h"

/* What `changes` prints. The table's columns are chosen for people; JSON has everything, with the
 * history. */
enum changes_output { CHANGES_TEXT, CHANGES_JSON, CHANGES_CSV };
static const char *const changes_output_names[] = {"text", "json", "csv", NULL};

enum change_cell {
	CELL_ID,
	CELL_TIME,
	CELL_TEST,
	CELL_METRIC,
	CELL_BEFORE,
	CELL_AFTER,
	CELL_PERCENT,
	CELL_PVALUE,
	CELL_COMMITS,
	CELL_STATE,
	CELL_ANNOUNCED,
	CELL_PLACE, /* optional columns, left out if empty */
	CELL_ATTRIBUTES,
	CELLS,
};

struct row {
	const char *cells[CELLS];
};

static int compare(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;

	if (left->item.time != right->item.time)
		return left->item.time > right->item.time ? -1 : 1;
	return (right->item.id > left->item.id) - (right->item.id < left->item.id);
}

/* The text in the arena; NULL if it is empty. */
static const char *filled(struct arena *arena, struct buf *text)
{
	const char *copy = buf_keep(text, arena);

	return *copy ? copy : NULL;
}

static const char *level(struct arena *arena, double value)
{
	struct buf text = {0};

	text_level(&text, value);
	return buf_keep(&text, arena);
}

static const char *percent(struct arena *arena, const struct change *change)
{
	struct buf text = {0};

	text_size(&text, change);
	return buf_keep(&text, arena);
}

/* "trend over 2026-03-01 .. 2026-03-09, +1.0 a point", or the interval in which a step may lie. */
static const char *place(struct arena *arena, const struct announcement *item)
{
	struct buf text = {0};

	buf_text(&text, item->change.kind == CHANGE_TREND ? "trend" : "");
	text_course(&text, item, &text_plain);
	text_place(&text, item, &text_plain);
	return filled(arena, &text);
}

static const char *commits(struct arena *arena, const struct announcement *item)
{
	char scratch[2][TABLE_SCRATCH];
	const char *before, *after;

	announcement_range(item, &before, &after);
	if (item->suspects.known && item->suspects.count == 0)
		return "no deployment";
	if (!before && !after)
		return NULL;
	return arena_printf(arena, "%s..%s", before ? table_commit(before, scratch[0]) : "",
		after ? table_commit(after, scratch[1]) : "");
}

static const char *attributes(struct arena *arena, const struct announcement *item)
{
	struct buf text = {0};

	text_attributes(&text, item);
	return filled(arena, &text);
}

static const char *time_text(struct arena *arena, int64_t time)
{
	char text[WHEN_TEXT];

	return arena_strdup(arena, when_format(time, text));
}

/* The messages of a change that was announced long ago may have been pruned. */
static const char *announced(struct arena *arena, const struct change_record *record)
{
	int64_t time = record_announced(record);

	if (time != 0)
		return time_text(arena, time);
	switch (record->news) {
	case NOTIFY_PENDING: return "waits";
	case NOTIFY_QUEUED:
	case NOTIFY_RECOVERY: return "queued";
	case NOTIFY_SILENT:
	case NOTIFY_HELD:
	case NOTIFY_COUNT: break;
	}
	return NULL;
}

static struct row row_of(struct arena *arena, const struct change_record *record)
{
	const struct announcement *item = &record->item;

	return (struct row){{
		[CELL_ID] = arena_printf(arena, "%" PRId64, item->id),
		[CELL_TIME] = time_text(arena, item->time),
		[CELL_TEST] = item->test,
		[CELL_METRIC] = *record->branch ? arena_printf(arena, "%s (%s)", item->metric,
							  record->branch)
						: item->metric,
		[CELL_BEFORE] = level(arena, item->change.level_before),
		[CELL_AFTER] = level(arena, item->change.level_after),
		[CELL_PERCENT] = percent(arena, &item->change),
		[CELL_PVALUE] = arena_printf(arena, "%.2g", item->change.pvalue),
		[CELL_COMMITS] = commits(arena, item),
		[CELL_STATE] = change_state_names[record->state],
		[CELL_ANNOUNCED] = announced(arena, record),
		[CELL_PLACE] = place(arena, item),
		[CELL_ATTRIBUTES] = attributes(arena, item),
	}};
}

static void print_table(
	struct arena *arena, const struct change_record *records, size_t count, FILE *out)
{
	static const struct table_column columns[CELLS] = {
		[CELL_ID] = {.header = "id", .number = true},
		[CELL_TIME] = {.header = "time"},
		[CELL_TEST] = {.header = "test"},
		[CELL_METRIC] = {.header = "metric"},
		[CELL_BEFORE] = {.header = "before", .number = true},
		[CELL_AFTER] = {.header = "after", .number = true},
		[CELL_PERCENT] = {.header = "change", .number = true},
		[CELL_PVALUE] = {.header = "p", .number = true},
		[CELL_COMMITS] = {.header = "commits"},
		[CELL_STATE] = {.header = "state"},
		[CELL_ANNOUNCED] = {.header = "announced"},
		[CELL_PLACE] = {.header = "place", .optional = true},
		[CELL_ATTRIBUTES] = {.header = "attributes", .optional = true},
	};
	struct row *rows = arena_array(arena, count + 1, sizeof *rows);

	for (size_t i = 0; i < count; i++)
		rows[i] = row_of(arena, &records[i]);
	table_print(columns, CELLS, rows->cells, count, out);
}

static void print_json(const struct change_record *records, size_t count, bool more, FILE *out)
{
	fputs("{\"changes\": [", out);
	for (size_t i = 0; i < count; i++) {
		struct buf text = {0};

		buf_text(&text, i > 0 ? ",\n  " : "\n  ");
		record_put_json(&text, &records[i]);
		text_flush(&text, out);
	}
	fprintf(out, "%s], \"more\": %s}\n", count > 0 ? "\n" : "", more ? "true" : "false");
}

/* Empty cells where nobody has said anything. */
static void print_csv_triage(const struct triage *triage, bool formulas, FILE *out)
{
	const char *const texts[] = {
		triage_state_names[triage->state ? triage->state : TRIAGE_OPEN], triage->owner,
		triage->note, triage->person};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		csv_put_next(texts[i], formulas, out);
	csv_put_time(triage->time, out);
	csv_put_time(triage->until, out);
}

static void print_csv_column(const struct stored_column *column, const struct change_record *record,
	bool formulas, FILE *out)
{
	char scratch[WHEN_TEXT];

	if (column->type == COLUMN_NUMBER) {
		csv_put_number(column_number(column, record), out);
		return;
	}
	if (column != change_columns)
		putc(',', out);
	if (column->type == COLUMN_TEXT)
		csv_put_text(column_text(column, record), formulas, out);
	else
		csv_put_text(column_format(column, record, scratch), true, out);
}

static void print_csv_row(const struct change_record *record, bool formulas, FILE *out)
{
	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column_is_shown(column))
			print_csv_column(column, record, formulas, out);
	fputs(announcement_verdict(&record->item) > 0 ? ",yes" : ",no", out);
	csv_put_number(change_percent(&record->item.change), out);
	csv_put_time(record_announced(record), out);
	csv_put_suspects(&record->item.suspects, formulas, out);
	print_csv_triage(&record->triage, formulas, out);
	putc('\n', out);
}

static void print_csv(const struct change_record *records, size_t count, bool formulas, FILE *out)
{
	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column_is_shown(column))
			fprintf(out, column == change_columns ? "%s" : ",%s", column->name);
	fputs(",regression,forward_change_percent,announced," CSV_SUSPECTS
	      ",triage,triage_owner,triage_note,triage_person,triage_time,triage_until\n",
		out);
	for (size_t i = 0; i < count; i++)
		print_csv_row(&records[i], formulas, out);
}

/* Prints the records of a store_list, sorted by time, latest first; takes memory from its arena.
 * `formulas`: see csv_put_text. */
static void print(
	const struct store_list *list, enum changes_output output, bool formulas, FILE *out)
{
	size_t count = list->records.count;

	if (count > 0)
		qsort(list->records.items, count, sizeof *list->records.items, compare);
	switch (output) {
	case CHANGES_TEXT: print_table(list->call.arena, list->records.items, count, out); break;
	case CHANGES_JSON: print_json(list->records.items, count, list->more, out); break;
	case CHANGES_CSV: print_csv(list->records.items, count, formulas, out); break;
	}
}

struct changes_options {
	struct state_flags state_of;
	struct strings state, triage;
	bool open;
	const char *since, *until, *test;
	int64_t limit;
	int output; /* enum changes_output */
	bool csv_formulas;
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
	OPTION_INT(struct changes_options, limit, "1000", 1, 1000000,
		"maximum number of changes, the most recently found first"),
	OPTION_CHOICE(struct changes_options, output, "text", changes_output_names,
		"output format; json includes the history"),
	OPTION_BOOL(struct changes_options, csv_formulas, CSV_FORMULAS_HELP),
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

static bool add_triage(const char *name, unsigned *states, struct error *error)
{
	enum triage_state state;

	if (triage_state_named(name, &state)) {
		*states |= 1U << state;
		return true;
	}
	return error_set(error, ERROR_USAGE,
		"--triage: \"%.100s\" is none of open, acknowledged, expected, ignored, infra, "
		"false, fixed",
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

	*filter = (struct change_filter){.test = options->test,
		.limit = options->limit,
		.open = options->open,
		.now = cli->now};
	for (size_t i = 0; i < options->triage.count; i++)
		if (!add_triage(options->triage.items[i], &filter->triage, error))
			return false;
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
	if (!matches(&topics, name) && store_tx(path, STORE_READ, &request->call, &error) &&
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

enum { MOST_CHANGES = 1000000 };

/* Those of an array that --limit allows; the inbox is cut after it was sorted. */
static int print_array(struct cli *cli, json_t *changes, bool more)
{
	const struct changes_options *options = cli->options;

	if (options->open)
		inbox_sort(changes);
	while ((int64_t)json_array_size(changes) > options->limit) {
		json_array_remove(changes, json_array_size(changes) - 1);
		more = true;
	}
	if (options->output == CHANGES_JSON) {
		json_t *document = json_pack("{s: O, s: b}", "changes", changes, "more", more);

		answer_print(cli, document);
		json_decref(document);
	} else {
		answer_table_print(cli, changes, inbox_columns);
	}
	if (more)
		log_event(LEVEL_WARN, "output truncated: use --limit, --since or --test",
			LOG_INT("shown", json_array_size(changes)));
	return EXIT_NOTHING;
}

static json_t *array_of(const struct store_list *list)
{
	json_t *changes = json_array();

	for (size_t i = 0; i < list->records.count; i++) {
		struct buf text = {0};

		record_put_json(&text, &list->records.items[i]);
		json_array_append_new(changes, json_loadb(text.data, text.length, 0, NULL));
		buf_free(&text);
	}
	return changes;
}

static int print_list(struct cli *cli, const struct store_list *list)
{
	const struct changes_options *options = cli->options;
	bool inbox = options->open || (list->filter.triage && options->output == CHANGES_TEXT);
	json_t *changes;

	if (inbox && options->output != CHANGES_CSV) {
		changes = array_of(list);
		(void)print_array(cli, changes, list->more);
		json_decref(changes);
		return EXIT_NOTHING;
	}
	print(list, (enum changes_output)options->output, options->csv_formulas, cli->out);
	if (list->more)
		log_event(LEVEL_WARN, "output truncated: use --limit, --since or --test",
			LOG_INT("shown", list->records.count));
	return EXIT_NOTHING;
}

static int list_file(struct cli *cli, const struct change_filter *filter, const char *path,
	const struct config *config)
{
	struct store_list *request;
	struct error error;
	bool done;

	request = store_list_new(NULL, NULL);
	request->filter = *filter;
	done = store_tx(path, STORE_READ, &request->call, &error);
	for (size_t i = 0; done && config && i < request->records.count; i++)
		announce_links(request->call.arena, config, &request->records.items[i]);
	if (done)
		(void)print_list(cli, request);
	if (done && request->records.count == 0 && filter->test)
		note_unknown(config, path, filter->test);
	store_call_free(&request->call);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static void put_parameter(struct buf *out, const char *key, const char *value)
{
	if (!value)
		return;
	buf_printf(out, "&%s=", key);
	transfer_encode(out, value);
}

static void put_list(struct buf *out, const char *key, const struct strings *values)
{
	struct buf text = {0};

	for (size_t i = 0; i < values->count; i++)
		buf_printf(&text, "%s%s", i ? "," : "", values->items[i]);
	if (values->count > 0)
		put_parameter(out, key, text.data);
	buf_free(&text);
}

static const char *parameters_of(const struct cli *cli)
{
	const struct changes_options *options = cli->options;
	struct buf text = {0};

	if (options->open)
		buf_text(&text, "&open=true");
	put_list(&text, "state", &options->state);
	put_list(&text, "triage", &options->triage);
	put_parameter(&text, "test", options->test);
	put_parameter(&text, "since", options->since);
	put_parameter(&text, "until", options->until);
	return buf_keep(&text, cli->arena);
}

/* What has been listed, up to --limit; the inbox is cut after it was sorted. */
struct listed {
	json_t *changes;
	size_t most;
};

static bool take_page(void *context, json_t *page)
{
	struct listed *listed = context;

	json_array_extend(listed->changes, page);
	return json_array_size(listed->changes) < listed->most;
}

/* The agent of the options, otherwise that of the configuration. */
static int list_agent(struct cli *cli, const struct config *config)
{
	const struct changes_options *options = cli->options;
	struct agent_api *api = NULL;
	struct error error;
	struct listed listed = {.most = options->open ? MOST_CHANGES : (size_t)options->limit};
	bool done, more;

	if (options->output == CHANGES_CSV)
		error_set(&error, ERROR_USAGE,
			"--output csv: of an agent there are text and json (--state-file reads a "
			"state)");
	else
		api = agent_api_new(&options->state_of.agent, config, &error);
	if (!api)
		return cli_fail(&error);
	listed.changes = json_array();
	done = agent_api_changes(api, parameters_of(cli), take_page, &listed, &more, &error);
	if (done)
		(void)print_array(cli, listed.changes, more);
	json_decref(listed.changes);
	agent_api_free(api);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static int run(struct cli *cli)
{
	const struct changes_options *options = cli->options;
	const struct config *config = NULL;
	struct change_filter filter;
	struct error error;
	const char *path;
	bool agent;

	if (cli->arguments.count > 0)
		return cli_refuse("changes takes no arguments (--test names a test)");
	if (!make_filter(cli, &filter, &error) ||
		!state_of_agent(&options->state_of, &agent, &error))
		return cli_fail(&error);
	if (filter.open && options->output != CHANGES_CSV)
		filter.limit = MOST_CHANGES;
	if (!agent && !options->state_of.state_file && !(config = cli_config(cli)))
		return EXIT_USAGE;
	path = config ? config->agent.state : options->state_of.state_file;
	return agent || (config && state_is_hidden(path)) ? list_agent(cli, config)
							  : list_file(cli, &filter, path, config);
}

static const struct option_part parts[] = {
	{changes_fields, 0}, {state_fields, offsetof(struct changes_options, state_of)}, {0}};

const struct command changes_command = {
	.name = "changes",
	.summary = "List the changes that the agent knows",
	.details = "Lists what the agent has recorded, latest change first, whether it was "
		   "announced or not: "
		   "the state file is read beside a running agent, or without one, and nothing is "
		   "written; with --agent, or $HUNTER_AGENT, or where the file may not be read, "
		   "the agent is asked. "
		   "--open lists what waits for somebody, the worst first, with what people said "
		   "about it (see triage). "
		   "With --output json each change comes with its history: when it was found, "
		   "confirmed, moved, withdrawn, recovered, found again, announced to whom, and "
		   "who said what about it.",
	.parts = parts,
	.options_size = sizeof(struct changes_options),
	.run = run,
};
