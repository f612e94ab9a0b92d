/*
 * `store`: maintenance of the state file. Reading works while an agent runs; pruning needs
 * exclusive access.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/database.h"
#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/state_file.h"
#include "agent/report/table.h"
#include "agent/store/store.h"
#include "agent/web/forms.h"

struct store_options {
	struct state_flags state;
	const char *since;
	int64_t older_than, limit, change;
	bool force, dry_run;
	int output;
};

enum { AUDIT_PAGE = 1000 }; /* entries that the API answers with at most */

#define UNSET "never"
#define ROWS 9007199254740992. /* the largest possible id */

static const struct field store_fields[] = {
	OPTION_DURATION(struct store_options, older_than, UNSET, 0, 0,
		"prune: delete entries settled longer ago than this"),
	OPTION_BOOL(struct store_options, dry_run, "prune: only report what would be deleted"),
	OPTION_BOOL(struct store_options, force, "backup: overwrite an existing file"),
	OPTION_STRING(struct store_options, since, NULL,
		"audit: only entries since this time, such as '2 weeks' or 2026-01-02",
		.metavar = "WHEN"),
	OPTION_INT(struct store_options, limit, "100", 1, 1e6, "audit: maximum number of entries"),
	OPTION_INT(struct store_options, change, NULL, 0, ROWS,
		"audit: only entries about this change", .metavar = "ID"),
	OPTION_CHOICE(
		struct store_options, output, "text", cli_list_outputs, "audit: output format"),
	{0},
};

static int check(struct cli *cli)
{
	const struct store_options *options = cli->options;
	const char *path = state_file(cli, options->state.state_file);
	struct store_report report;
	struct error error;

	if (!path)
		return EXIT_USAGE;
	if (!store_check(path, cli->arena, &report, &error))
		return cli_fail(&error);
	fprintf(cli->out, "%s: %" PRId64 " bytes\n", database_shown(cli->arena, path), report.size);
	for (size_t i = 0; i < report.problems.count; i++)
		text_line(cli->out, "damaged: %s", report.problems.items[i]);
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
	const char *path = state_file(cli, options->state.state_file);
	int64_t size;
	struct error error;

	if (!path)
		return EXIT_USAGE;
	if (!store_backup(path, target, options->force, &size, &error))
		return cli_fail(&error);
	fprintf(cli->out, "%s: %" PRId64 " bytes, checked\n", target, size);
	return EXIT_NOTHING;
}

static int copy(struct cli *cli)
{
	const char *from = cli->arguments.items[1], *to = cli->arguments.items[2];
	struct store_copied copied;
	struct error error;

	if (!store_copy(from, to, &copied, &error))
		return cli_fail(&error);
	for (size_t i = 0; i < STORE_TABLES; i++)
		fprintf(cli->out, "%s: %" PRId64 "\n", copied.tables[i].name,
			copied.tables[i].rows);
	fprintf(cli->out, "%s: copied to %s, and compared\n", database_shown(cli->arena, from),
		database_shown(cli->arena, to));
	return EXIT_NOTHING;
}

static int prune_file(struct cli *cli, const char *path, const struct strings *tests)
{
	const struct store_options *options = cli->options;
	struct error error;
	struct store_prune *request;
	const struct pruned *pruned;
	bool done;

	if (!store_expect(path, &error))
		return cli_fail(&error);
	request = store_prune_new(NULL, NULL);
	pruned = &request->pruned;
	request->before = cli->now - options->older_than;
	request->tests = *tests;
	request->thorough = true;
	done = store_tx(path, options->dry_run ? STORE_TRY : STORE_OWN, &request->call, &error);
	if (done)
		fprintf(cli->out,
			"%s: %" PRId64 " changes, %" PRId64 " events, %" PRId64
			" messages, places of %" PRId64 " series, %" PRId64 " silences\n",
			options->dry_run ? "would be deleted" : "forgotten", pruned->changes,
			pruned->events, pruned->deliveries, pruned->checkpoints, pruned->silences);
	store_call_free(&request->call);
	return done ? EXIT_NOTHING : cli_fail(&error);
}

static int prune(struct cli *cli)
{
	const struct store_options *options = cli->options;
	struct strings tests = {0};
	const struct config *config;
	const char *path = options->state.state_file;

	if (options->older_than == WHEN_NEVER)
		return cli_refuse("store prune requires --older-than, such as 90d");
	if (!path) {
		config = cli_config(cli);
		if (!config)
			return EXIT_USAGE;
		tests = config_topics(config, cli->arena);
		path = config->agent.state;
	}
	return prune_file(cli, path, &tests);
}

static const char *const audit_columns[] = {
	"@time", "person", "origin", "action", "change", "subject", "detail", NULL};

/* A part of the log, the latest first. */
struct audit_page {
	const struct store_options *options;
	int64_t since, limit;
	int64_t before; /* only entries before this one; 0: all */
};

static bool read_audit(void *context, const char *state, const struct config *config,
	struct buf *answer, struct error *error)
{
	const struct audit_page *page = context;
	struct store_audit *list = store_audit_new(NULL, NULL);
	bool read;

	(void)config;
	list->limit = page->limit;
	list->change = page->options->change;
	list->since = page->since;
	list->before_id = page->before;
	read = store_tx(state, STORE_READ, &list->call, error);
	if (read)
		audit_list_put_json(answer, list);
	store_call_free(&list->call);
	return read;
}

static json_t *request_audit(struct cli *cli, struct audit_page *page, struct error *error)
{
	struct state_request request = {.flags = &page->options->state,
		.key = "audit",
		.reads = true,
		.perform = read_audit,
		.context = page};
	struct buf path = {0};
	char since[WHEN_TEXT];

	buf_printf(&path, "/api/v1/audit?since=%s&limit=%" PRId64,
		when_format_iso(page->since, since), page->limit);
	if (page->before > 0)
		buf_printf(&path, "&before=%" PRId64, page->before);
	if (page->options->change > 0)
		buf_printf(&path, "&change=%" PRId64, page->options->change);
	request.path = buf_keep(&path, cli->arena);
	return state_request(cli, &request, error);
}

static int audit(struct cli *cli)
{
	const struct store_options *options = cli->options;
	struct audit_page page = {.options = options};
	json_t *entries, *answer = NULL;
	struct error error;
	size_t count;
	bool done;

	if (options->since && !when_parse(options->since, cli->now, &page.since, &error)) {
		(void)error_prefix(&error, "--since: ");
		return cli_fail(&error);
	}
	entries = json_array();
	do {
		page.limit = options->limit - (int64_t)json_array_size(entries);
		page.limit = page.limit < AUDIT_PAGE ? page.limit : AUDIT_PAGE;
		json_decref(answer);
		answer = request_audit(cli, &page, &error);
		json_array_extend(entries, json_object_get(answer, "audit"));
		page.before = json_integer_value(json_object_get(answer, "next"));
		count = json_array_size(entries);
	} while (page.before > 0 && (int64_t)count < options->limit);
	done = answer != NULL;
	if (done) {
		json_object_set(answer, "audit", entries);
		state_emit(cli, answer, entries, audit_columns, options->output);
		if (page.before > 0)
			log_event(LEVEL_WARN, "output truncated: use --limit or --since",
				LOG_INT("shown", count));
	}
	json_decref(entries);
	json_decref(answer);
	return done ? EXIT_NOTHING : state_fail(&error);
}

static const struct verb verbs[] = {{"check", 0, check}, {"backup", 1, backup}, {"copy", 2, copy},
	{"prune", 0, prune}, {"audit", 0, audit}, {0}};

static int run(struct cli *cli)
{
	const struct store_options *options = cli->options;
	const struct verb *verb = cli_verb(cli, verbs);

	if (!verb)
		return cli_refuse(
			"store: expected check, backup FILE, copy FROM TO, prune or audit");
	if (options->state.agent.agent && verb->run != audit && !getenv("HUNTER_AGENT"))
		return cli_refuse("--agent has no effect with store %s", verb->name);
	return verb->run(cli);
}

static const struct option_part parts[] = {
	{store_fields, 0}, {state_fields, offsetof(struct store_options, state)}, {0}};

const struct command store_command = {
	.name = "store",
	.arguments = "check|backup FILE|copy FROM TO|prune|audit",
	.summary = "Check, back up, copy, prune or audit the state",
	.details = "check verifies the state file and prints each problem; the exit code is 4 if "
		   "the file is damaged. backup writes a consistent copy, verified and flushed to "
		   "disk. Both may be used while the agent runs.\n"
		   "\n"
		   "copy copies a state, with all ids, into an empty or new file or database "
		   "(postgresql://...), and compares both. No agent may use either of them "
		   "meanwhile. Then set agent.state to the new address: nothing is announced "
		   "again.\n"
		   "\n"
		   "prune deletes messages settled longer ago than --older-than, and changes not "
		   "updated since then that lie before the range of their series or belong to "
		   "tests no longer configured. Pending announcements are kept, and so are changes "
		   "that would be found again. With --state-file, no configuration is read and all "
		   "tests count as configured. The agent must not run meanwhile; it deletes "
		   "messages and withdrawn changes by itself after 90 days. --dry-run works on a "
		   "temporary copy; the agent may run.\n"
		   "\n"
		   "audit lists who changed what, from where and when, the latest first: triage "
		   "and its expiry, silences, requested runs and reloads. prune deletes old "
		   "entries, except those of standing changes. Reads the state beside a running "
		   "agent, or asks the agent of --agent.",
	.parts = parts,
	.options_size = sizeof(struct store_options),
	.run = run,
};
