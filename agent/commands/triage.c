/* `triage`: through the agent that holds the state, or directly in the state if none does. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/records.h"
#include "agent/commands/state_file.h"
#include "agent/decide/gate.h"
#include "agent/model/incident.h"
#include "agent/web/forms.h"
#include "conf/known_changes.h"

struct triage_options {
	struct state_flags state;
	const char *test, *commit, *message;
	const char *owner, *note, *link, *until, *write;
	int64_t seen;
	bool dry_run;
	int output;
};

static const struct field triage_fields[] = {
	OPTION_STRING(struct triage_options, test, NULL,
		"changes of this test, or of tests that match this pattern", .metavar = "NAME"),
	OPTION_STRING(struct triage_options, commit, NULL,
		"changes that this commit (or prefix of one) may have caused", .metavar = "COMMIT"),
	OPTION_STRING(struct triage_options, message, NULL, "changes announced in this message",
		.metavar = "KEY"),
	OPTION_STRING(struct triage_options, owner, NULL, "owner of the change", .metavar = "NAME"),
	OPTION_STRING(
		struct triage_options, note, NULL, "reason", .alias = "reason", .metavar = "TEXT"),
	OPTION_STRING(struct triage_options, link, NULL, "related page, such as an issue",
		.metavar = "URL"),
	OPTION_STRING(struct triage_options, until, NULL,
		"time of reopening: '3 days', 'friday 18:00', 2026-01-02 or never",
		.metavar = "WHEN"),
	OPTION_INT(struct triage_options, seen, "-1", -1, 1e18,
		"fail if the change was triaged after this version", .metavar = "VERSION"),
	OPTION_STRING(struct triage_options, write, NULL,
		"also add accepted changes to this file, as known_changes for review; created if "
		"missing",
		.metavar = "FILE"),
	OPTION_BOOL(struct triage_options, dry_run, "only print the selected changes"),
	OPTION_CHOICE(struct triage_options, output, "text", cli_list_outputs, "output format"),
	{0},
};

/* The arguments: ids, state and an incident. */
struct asked {
	const char *ids, *state, *incident;
};

static bool read_arguments(struct cli *cli, struct asked *asked, struct error *error)
{
	const struct triage_options *options = cli->options;
	struct buf ids = {0};
	enum triage_state state;
	int64_t incident;

	error->kind = ERROR_NONE;
	for (size_t i = 0; i < cli->arguments.count && error->kind == ERROR_NONE; i++) {
		const char *word = cli->arguments.items[i];

		if (*word == 'i' && incident_parse(word, &incident) && asked->incident)
			error_set(error, ERROR_USAGE,
				"triage takes one incident at a time, not %s and %s",
				asked->incident, word);
		else if (*word == 'i' && incident_parse(word, &incident))
			asked->incident = word;
		else if (*word && !word[strspn(word, "0123456789.,")])
			buf_printf(&ids, "%s%s", ids.length ? "," : "", word);
		else if (i + 1 == cli->arguments.count && triage_state_named(word, &state))
			asked->state = word;
		else
			error_set(error, ERROR_USAGE,
				"\"%.80s\" is neither the id of a change, nor a range of ids "
				"(815..830), nor a state at the end: open, acknowledged, expected, "
				"ignored, infra, false or fixed",
				word);
	}
	asked->ids = ids.length ? buf_keep(&ids, cli->arena) : NULL;
	if (error->kind != ERROR_NONE)
		return false;
	if (asked->incident && asked->ids)
		return error_set(error, ERROR_USAGE,
			"ids of changes and an incident (%s) are mutually exclusive",
			asked->incident);
	if (asked->ids || asked->incident || options->test || options->commit || options->message)
		return true;
	return error_set(error, ERROR_USAGE,
		"triage requires changes: ids and ranges (812 815..830), an incident (i12), "
		"--test, --commit or --message; list open changes with hunter-c changes --open");
}

/*
 * --write: accepted changes go into a known_changes file. Checked before anything is triaged.
 */
static bool check_write(
	const struct triage_options *options, const struct asked *asked, struct error *error)
{
	enum triage_state state;
	size_t added;

	if (!options->write)
		return true;
	if (asked->state && triage_state_named(asked->state, &state) && !triage_is_accepted(state))
		return error_set(error, ERROR_USAGE,
			"--write: a known change is expected, ignored, infra or false, not %s",
			asked->state);
	if (asked->state && (!options->note || strcmp(options->note, "none") == 0))
		return error_set(error, ERROR_USAGE,
			"--write: an entry of known_changes needs a reason (--note)");
	return known_changes_write(options->write, NULL, 0, &added, error) ||
	       error_prefix(error, "--write: ");
}

/* The entry of a change that was triaged. */
static bool entry_of(
	struct arena *arena, const json_t *change, struct known_change *out, struct error *error)
{
	struct change_record record;

	if (!record_read(arena, change, &record))
		return error_set(error, ERROR_STATE,
			"--write: unexpected response from the agent: is it a hunter-c of this "
			"version?");
	if (!triage_is_accepted(record.triage.state))
		return error_set(error, ERROR_USAGE,
			"--write: change %" PRId64 " is %s: only expected, ignored, infra and "
			"false ones are written",
			record.item.id, triage_state_names[record.triage.state]);
	if (!record.triage.note)
		return error_set(error, ERROR_USAGE,
			"--write: change %" PRId64 " has no reason: give --note", record.item.id);
	*out = gate_entry(&record, record.triage.note,
		record.triage.until == 0 ? WHEN_NEVER : record.triage.until);
	return true;
}

/* Whether the configuration, if there is a good one, reads entries of the file. */
static bool is_read(const struct cli *cli, const char *path, const char **configuration)
{
	struct config_source source = cli_config_source();
	struct problems problems = {.arena = cli->arena};
	char *real = realpath(path, NULL);
	struct config *config = NULL;
	struct error ignored;
	bool read;

	if (real && config_find(cli->common.config, &source, cli->arena, configuration, &ignored))
		config = config_load(*configuration, &source, &problems);
	read = !config;
	for (size_t i = 0; config && !read && i < config->known_change_count; i++) {
		char *other = realpath(config->known_changes[i].file, NULL);

		read = other && strcmp(other, real) == 0;
		free(other);
	}
	config_free(config);
	free(real);
	return read;
}

static bool write_entries(struct cli *cli, const json_t *answer, struct error *error)
{
	const struct triage_options *options = cli->options;
	const json_t *changes = json_object_get(answer, "changes");
	size_t count = json_array_size(changes), added;
	struct known_change *entries = arena_array(cli->arena, count, sizeof *entries);
	const char *configuration = NULL;

	if ((json_int_t)count < json_integer_value(json_object_get(answer, "count")))
		return error_set(error, ERROR_USAGE,
			"--write: more than %zu changes: select fewer at a time", count);
	for (size_t i = 0; i < count; i++)
		if (!entry_of(cli->arena, json_array_get(changes, i), &entries[i], error))
			return false;
	if (!known_changes_write(options->write, entries, count, &added, error))
		return error_prefix(error, "--write: ");
	if (count > 0 && !is_read(cli, options->write, &configuration))
		fprintf(stderr,
			"hunter-c: warning: %s is not read: no known_changes_files of %s covers "
			"it\n",
			options->write, configuration);
	if (options->output == OUTPUT_TEXT)
		fprintf(cli->out, "%zu entr%s added to %s\n", added, added == 1 ? "y" : "ies",
			options->write);
	return true;
}

/* A text to be set; "none" removes it. */
static const char *said(const char *text)
{
	return text && strcmp(text, "none") == 0 ? "" : text;
}

/* Without an agent. */
struct direct {
	struct cli *cli;
	struct pairs form;
};

static bool perform(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	struct direct *direct = context;
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct form form = {.get = state_form,
		.context = &direct->form,
		.arena = call->call.arena,
		.now = direct->cli->now};
	bool done;

	call->now = form.now;
	call->actor = (struct actor){form_get(&form, "person"), "command line"};
	done = triage_form_read(&form, call);
	*error = form.error;
	done = done && store_tx(state, call->dry_run ? STORE_TRY : STORE_OWN, &call->call, error);
	if (done && (call->records.count == 0 || call->missing))
		done = triage_form_nothing(call, error);
	else if (done)
		triage_form_answer(answer, config, call);
	store_call_free(&call->call);
	return done;
}

/* How many changes were triaged. */
static void print_summary(struct cli *cli, const json_t *answer, bool says)
{
	const struct triage_options *options = cli->options;
	json_int_t changed = json_integer_value(json_object_get(answer, "changed"));
	json_int_t count = json_integer_value(json_object_get(answer, "count"));
	size_t listed = json_array_size(json_object_get(answer, "changes"));

	if ((size_t)count > listed)
		fprintf(cli->out, "... and %" JSON_INTEGER_FORMAT " more\n",
			count - (json_int_t)listed);
	if (!says)
		return;
	fprintf(cli->out, "\n%" JSON_INTEGER_FORMAT " change%s%s", changed,
		cli_plural((size_t)changed), options->dry_run ? " would be changed" : " changed");
	if (count > changed)
		fprintf(cli->out, ", %" JSON_INTEGER_FORMAT " %s so already", count - changed,
			count - changed == 1 ? "was" : "were");
	putc('\n', cli->out);
}

static int print_answer(struct cli *cli, json_t *answer, bool says)
{
	const struct triage_options *options = cli->options;
	const char *conflict = json_string_value(json_object_get(answer, "error"));
	struct error error;

	state_emit(cli, answer, json_object_get(answer, "changes"),
		options->output == OUTPUT_CSV ? records_columns(cli->arena) : records_inbox,
		options->output);
	if (!conflict && options->output == OUTPUT_TEXT)
		print_summary(cli, answer, says);
	if (!conflict && options->write && !options->dry_run && !write_entries(cli, answer, &error))
		return cli_fail(&error);
	return conflict ? cli_refuse("%s", conflict) : EXIT_NOTHING;
}

/* The answer, or NULL after an error. `look`: read only. */
static json_t *ask(
	struct cli *cli, const struct asked *asked, bool look, int64_t seen, struct error *error)
{
	const struct triage_options *options = cli->options;
	const struct pair form[] = {
		{"ids", asked->ids},
		{"incident", asked->incident},
		{"test", options->test},
		{"commit", options->commit},
		{"message", options->message},
		{"state", asked->state},
		{"owner", said(options->owner)},
		{"note", said(options->note)},
		{"link", said(options->link)},
		{"until", options->until},
		{"version", seen < 0 ? NULL : arena_printf(cli->arena, "%" PRId64, seen)},
		{"dry_run", look ? "true" : NULL},
		{"person", state_person(cli->arena)},
	};
	struct direct direct = {cli, {form, sizeof form / sizeof *form}};
	const struct state_request request = {.flags = &options->state,
		.path = "/api/v1/triage",
		.key = "changes",
		.form = &direct.form,
		.perform = perform,
		.context = &direct};

	return state_request(cli, &request, error);
}

static const json_t *triage_of(const json_t *answer)
{
	return json_object_get(json_array_get(json_object_get(answer, "changes"), 0), "triage");
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* If somebody else has triaged the change before. */
static void print_before(const json_t *before, const json_t *answer)
{
	const char *was = text_of(before, "person"), *time = text_of(before, "time");
	const char *person = text_of(triage_of(answer), "person");

	if (json_integer_value(json_object_get(before, "version")) > 0 && was && time && person &&
		strcmp(person, was) != 0 &&
		json_integer_value(json_object_get(answer, "changed")) > 0)
		fprintf(stderr, "hunter-c: it was %s before, triaged by %s at %s\n",
			text_of(before, "state"), was, time);
}

static int run(struct cli *cli)
{
	const struct triage_options *options = cli->options;
	struct asked asked = {0};
	int64_t seen = options->seen;
	struct error error;
	json_t *before = NULL, *answer;
	bool says;
	int code;

	if (!read_arguments(cli, &asked, &error) || !check_write(options, &asked, &error))
		return cli_fail(&error);
	says = asked.state || options->owner || options->note || options->link || options->until;
	/* The triage of a single change is read first, so that no concurrent one is overwritten. */
	if (says && seen < 0 && !options->dry_run && asked.ids && !asked.incident &&
		!asked.ids[strspn(asked.ids, "0123456789")] && !options->test && !options->commit &&
		!options->message) {
		before = ask(cli, &asked, true, -1, &error);
		if (!before)
			return state_fail(&error);
		seen = json_integer_value(json_object_get(triage_of(before), "version"));
	}
	answer = ask(cli, &asked, !says || options->dry_run, seen, &error);
	code = answer ? print_answer(cli, answer, says) : state_fail(&error);
	if (before && answer)
		print_before(triage_of(before), answer);
	json_decref(answer);
	json_decref(before);
	return code;
}

static const struct option_part parts[] = {
	{triage_fields, 0}, {state_fields, offsetof(struct triage_options, state)}, {0}};

const struct command triage_command = {
	.name = "triage",
	.arguments = "[ID|RANGE|INCIDENT...] [STATE]",
	.summary = "Triage changes: acknowledged, expected, ignored, infra, false or fixed",
	.details =
		"Sets the triage of changes: open, acknowledged (under investigation), expected, "
		"ignored, infra (the environment), false (a false alarm) or fixed. Select changes "
		"by id (812 815..830, see `changes --open`), by incident (i12: those that stand), "
		"or by --test, --commit and --message. "
		"Expected, ignored, infra and false changes are not announced unless they exceed "
		"the accepted size, and only open changes fail a gate. --until reopens them at "
		"that time. Without a state and without a flag that sets something, prints the "
		"current triage; --owner none, --note none and --link none remove a value.\n"
		"\n"
		"Sends requests to the running agent, through agent.listen or --agent; writes the "
		"state directly if no agent uses it. If a single change is triaged concurrently, "
		"or was triaged after --seen VERSION, nothing is changed (exit code 2), and the "
		"other triage is printed.",
	.parts = parts,
	.options_size = sizeof(struct triage_options),
	.run = run,
};
