/* `silence`: adds, lists and ends silences; through the agent that has the state, or straight in
 * the state where none does. Lists are read beside a running agent. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/runtime/silence.h"
#include "agent/web/forms.h"

enum { MOST_OPEN = 10000 };

struct silence_options {
	struct state_flags state;
	const char *from, *until, *length, *owner, *reason;
	bool all;
	int output;
};

static const struct field silence_fields[] = {
	OPTION_STRING_AS("for", struct silence_options, length, NULL,
		"add: duration, such as 2h or '3 days'", .metavar = "DURATION"),
	OPTION_STRING(struct silence_options, until, NULL,
		"add: end, such as 'friday 18:00' or 2026-01-02", .metavar = "WHEN"),
	OPTION_STRING(
		struct silence_options, from, NULL, "add: start; default: now", .metavar = "WHEN"),
	OPTION_STRING(struct silence_options, owner, NULL,
		"add: person reminded before it ends; default: you", .metavar = "NAME"),
	OPTION_STRING(struct silence_options, reason, NULL, "add: reason", .metavar = "TEXT"),
	OPTION_BOOL(struct silence_options, all, "list: include expired ones"),
	OPTION_CHOICE(struct silence_options, output, "text", cli_list_outputs, "output format"),
	{0},
};

/* Without an agent. */
struct direct {
	struct cli *cli;
	struct pairs form;
	int64_t id; /* to be ended; 0: a new one */
};

/* The tests and changes that a new silence matches in this state. */
static void put_reach(const char *state, const struct config *config,
	const struct store_silence *call, struct buf *answer)
{
	struct store_list *list = store_list_new(NULL, NULL);
	struct record_rows none = {0};
	struct silence_reach reach;
	struct error error;
	bool read;

	list->filter.open = true;
	list->filter.now = call->now;
	list->filter.limit = MOST_OPEN;
	read = store_tx(state, STORE_READ, &list->call, &error);
	silence_reach(config, call->written.matchers, read ? &list->records : &none,
		list->call.arena, NULL, &reach);
	silence_put_added(answer, &call->written, call->now, &reach);
	store_call_free(&list->call);
}

static bool perform(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	struct direct *direct = context;
	struct store_silence *call = store_silence_new(NULL, NULL);
	struct agent_settings defaults;
	struct form form = {.get = state_form, .context = &direct->form, .arena = call->call.arena};
	bool done;

	field_defaults(agent_fields, &defaults);
	call->now = direct->cli->now;
	call->actor = (struct actor){state_form(&direct->form, "person"), "command line"};
	form.now = call->now;
	if (direct->id == 0) {
		(void)silence_form_read(
			&form, config ? config->agent.max_silence : defaults.max_silence, call);
		*error = form.error;
	} else {
		call->silence.id = direct->id;
		call->silence.ended = call->now;
		call->silence.ended_by = call->actor.person;
	}
	done = !form.failed && store_tx(state, STORE_OWN, &call->call, error);
	if (done && !call->found)
		done = error_set(error, ERROR_USAGE, "there is no silence %" PRId64, direct->id);
	else if (done && direct->id == 0 && config)
		put_reach(state, config, call, answer);
	else if (done)
		silence_put_json(answer, &call->written, call->now);
	store_call_free(&call->call);
	return done;
}

static const char *const columns[] = {
	"id", "state", "matchers", "@from", "@until", "@ended", "owner", "person", "reason", NULL};

/* The tests and changes that a new silence matches; nothing for one that was ended. */
static void print_reach(struct cli *cli, const json_t *silence, bool text)
{
	const json_t *tests = json_object_get(silence, "tests");
	const char *warning = json_string_value(json_object_get(silence, "warning"));
	json_int_t count = json_integer_value(tests);
	json_int_t changes = json_integer_value(json_object_get(silence, "open_changes"));

	if (tests && text)
		fprintf(cli->out,
			"\nIt can select %" JSON_INTEGER_FORMAT
			" test%s, and selects %" JSON_INTEGER_FORMAT " open change%s now.\n",
			count, cli_plural((size_t)count), changes, cli_plural((size_t)changes));
	if (warning)
		log_message(LEVEL_WARN, warning);
}

/* A list, or a single silence. */
static int print_answer(struct cli *cli, json_t *answer)
{
	const struct silence_options *options = cli->options;
	json_t *silences = json_object_get(answer, "silences");
	json_t *items = silences ? json_incref(silences) : json_pack("[O]", answer);

	state_emit(cli, answer, items, columns, options->output);
	if (!silences && options->output != OUTPUT_JSON)
		print_reach(cli, answer, options->output == OUTPUT_TEXT);
	json_decref(items);
	json_decref(answer);
	return EXIT_NOTHING;
}

static int change(struct cli *cli, struct direct *direct, const char *path)
{
	const struct silence_options *options = cli->options;
	const struct state_request request = {.flags = &options->state,
		.path = path,
		.key = "id",
		.creates = direct->id == 0,
		.form = &direct->form,
		.perform = perform,
		.context = direct};
	struct error error;
	json_t *answer = state_request(cli, &request, &error);

	return answer ? print_answer(cli, answer) : state_fail(&error);
}

static int add(struct cli *cli)
{
	const struct silence_options *options = cli->options;
	const struct pair form[] = {
		{"matchers", cli->arguments.items[1]},
		{"from", options->from},
		{"until", options->until},
		{"for", options->length},
		{"owner", options->owner},
		{"reason", options->reason},
		{"person", state_person(cli->arena)},
	};
	struct direct direct = {cli, {form, sizeof form / sizeof *form}, 0};

	return change(cli, &direct, "/api/v1/silences");
}

static int end(struct cli *cli)
{
	const char *id = cli->arguments.items[1];
	const struct pair form[] = {{"person", state_person(cli->arena)}};
	struct direct direct = {cli, {form, 1}, 0};

	if (strspn(id, "0123456789") == strlen(id) && strlen(id) <= 18)
		direct.id = strtoll(id, NULL, 10);
	if (direct.id <= 0)
		return cli_refuse("silence end takes the id of a silence");
	return change(cli, &direct,
		arena_printf(cli->arena, "/api/v1/silences/%" PRId64 "/end", direct.id));
}

static bool read_list(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	const struct cli *cli = context;
	const struct silence_options *options = cli->options;
	struct store_silences *list = store_silences_new(NULL, NULL);
	bool read;

	(void)config;
	list->all = options->all;
	list->now = cli->now;
	read = store_tx(state, STORE_READ, &list->call, error);
	if (read)
		silences_put_json(answer, &list->silences, cli->now);
	store_call_free(&list->call);
	return read;
}

static int list(struct cli *cli)
{
	const struct silence_options *options = cli->options;
	const struct state_request request = {.flags = &options->state,
		.path = options->all ? "/api/v1/silences?all=true" : "/api/v1/silences",
		.key = "silences",
		.reads = true,
		.perform = read_list,
		.context = cli};
	struct error error;
	json_t *answer = state_request(cli, &request, &error);

	return answer ? print_answer(cli, answer) : state_fail(&error);
}

static const struct verb verbs[] = {{"add", 1, add}, {"list", 0, list}, {"end", 1, end}, {0}};

static int run(struct cli *cli)
{
	const struct silence_options *options = cli->options;
	const struct verb *verb = cli_verb(cli, verbs);
	const struct pair flags[] = {{"for", options->length}, {"until", options->until},
		{"from", options->from}, {"owner", options->owner}, {"reason", options->reason}};
	const char *idle; /* a flag that was given and has no effect */

	if (!verb)
		return cli_refuse("silence: expected add MATCHERS, list or end ID");
	idle = options->all && verb->run != list ? "all" : NULL;
	for (size_t i = 0; !idle && verb->run != add && i < sizeof flags / sizeof *flags; i++)
		idle = flags[i].value ? flags[i].key : NULL;
	return idle ? cli_refuse("--%s has no effect with silence %s", idle, verb->name)
		    : verb->run(cli);
}

static const struct option_part parts[] = {
	{silence_fields, 0}, {state_fields, offsetof(struct silence_options, state)}, {0}};

const struct command silence_command = {
	.name = "silence",
	.arguments = "add MATCHERS|list|end ID",
	.summary = "Mute the announcements of selected changes for a while",
	.details =
		"add creates a silence from matchers, such as 'test=~\"db.*\", region=\"eu\"': a "
		"name (test, metric, group, branch, direction, attributes and labels of series), "
		"one of = != =~ !~, and a value; regular expressions match the whole value. "
		"Silenced changes are recorded and announced in one summary when the silence ends. "
		"agent.max_silence limits the duration. list shows silences, ended ones "
		"too; end expires one at once.\n"
		"\n"
		"Sends requests to the running agent, through agent.listen or --agent; writes the "
		"state directly if no agent uses it. list reads the state beside a running agent.",
	.parts = parts,
	.options_size = sizeof(struct silence_options),
	.run = run,
};
