/*
 * `analyze`: the results of tests with their change points. The engine reads and detects; this
 * file connects its results to a report, to the tests' tables (--update-postgres) and to Slack
 * (--notify-slack).
 */
#include <math.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/compare.h"
#include "agent/base/when.h"
#include "agent/commands/annotations.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gate.h"
#include "agent/commands/gather.h"
#include "agent/commands/plot.h"
#include "agent/commands/post.h"
#include "agent/decide/group.h"
#include "agent/report/report.h"
#include "sources/postgres/postgres.h"

/*
 * `analyze --update-postgres`: writes changes back to the database that the data came from.
 *
 * An invalid statement is reported before any test is read; an error of the database costs the
 * test its update, not its report.
 */

/* Whether the test can be updated. */
static bool update_applies(const struct test *test)
{
	return test->source && strcmp(test->source->name, postgres_source.plugin.name) == 0;
}

/* Before anything is read: at least one of the tests can be updated, and all that can be have a
 * valid statement. Tests of other types are named in the log. */
static bool update_check(const struct command_context *ask, struct error *error)
{
	size_t count = 0;

	for (size_t i = 0; i < ask->count; i++) {
		const struct test *test = ask->tests[i];

		if (!update_applies(test) || test->unsupported)
			continue;
		count++;
		if (!postgres_update_check(ask->cli->arena, test->options, test->metrics,
			    test->metric_count, error))
			return error_prefix(error, "--update-postgres: test \"%s\": ", test->name);
	}
	if (count == 0)
		return error_set(error, ERROR_USAGE,
			"--update-postgres: none of the tests is of type postgres");
	for (size_t i = 0; i < ask->count; i++)
		if (!update_applies(ask->tests[i]))
			log_event(LEVEL_WARN, "skipped: test is not of type postgres",
				LOG_TEXT("test", ask->tests[i]->name));
	return true;
}

/* The result of a test's work, and of its update. */
struct analyzed {
	struct analysis analysis;
	bool updated;
	struct error error; /* of the update; ERROR_NONE: it was done */
	size_t changes, rows;
};

/* Writes the changes of one test. Blocks. */
static void update_run(struct task *task)
{
	struct analyzed *analyzed = task->result;
	const struct analysis *analysis = &analyzed->analysis;
	struct postgres_change *changes = NULL;
	size_t count = 0;

	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *findings = &analysis->findings[s];

		for (size_t i = 0; i < findings->count; i++) {
			changes = arena_grow(task->query.arena, changes, count, sizeof *changes);
			changes[count++] =
				(struct postgres_change){findings->series, &findings->changes[i]};
		}
	}
	analyzed->updated = true;
	analyzed->changes = count;
	if (postgres_update(&task->query, changes, count, &analyzed->rows, &analyzed->error))
		analyzed->error.kind = ERROR_NONE;
}

/* Logs the result of the update, and returns its exit code. */
static int update_log(const struct test *test, struct analyzed *analyzed)
{
	if (analyzed->error.kind != ERROR_NONE) {
		(void)error_prefix(&analyzed->error, "test \"%s\": not updated: ", test->name);
		return cli_fail(&analyzed->error);
	}
	if (analyzed->updated)
		log_event(LEVEL_INFO, "updated", LOG_TEXT("test", test->name),
			LOG_INT("changes", analyzed->changes), LOG_INT("rows", analyzed->rows));
	return EXIT_NOTHING;
}

/*
 * `analyze --notify-slack`: posts the change points of the tests in one message to Slack channels,
 * for use from a timer instead of the agent.
 *
 * No state is kept: each run posts what it finds. With --cph-report-since a weekly report covers
 * the last week only, though more is analyzed. Each channel gets the message separately.
 */

struct notify_flags {
	struct strings notify_slack;
	const char *cph_report_since;
};

static const struct field notify_fields[] = {
	OPTION_LIST(struct notify_flags, notify_slack, "post the changes to these Slack channels",
		.flags = FIELD_MANY, .metavar = "CHANNEL..."),
	OPTION_STRING(struct notify_flags, cph_report_since, NULL,
		"post only changes since this time", .metavar = "DATE"),
	{0},
};

struct notify {
	const struct cli *cli;
	const struct receiver *receiver; /* NULL: nothing is posted */
	int64_t since;                   /* ms */
	struct change_record *records;
	size_t count, tests;
};

/* Without channels nothing is posted. ERROR_USAGE: no usable Slack configuration, or an invalid
 * date. */
static bool notify_prepare(struct notify *notify, const struct notify_flags *flags,
	const struct config *config, const struct cli *cli, struct error *error)
{
	*notify = (struct notify){.cli = cli, .since = WHEN_ALWAYS};
	if (flags->cph_report_since &&
		!when_parse(flags->cph_report_since, cli->now, &notify->since, error))
		return error_prefix(error, "--cph-report-since: ");
	if (flags->notify_slack.count == 0)
		return true;
	notify->receiver =
		post_receiver(config, slack_notifier.plugin.name, "--notify-slack", error);
	return notify->receiver &&
	       (slack_notifier.accepts_destination(notify->receiver->options, error) ||
		       error_prefix(error, "--notify-slack: "));
}

/* Copies the changes of a test. */
static void notify_add(
	struct notify *notify, const struct config *config, const struct analysis *analysis)
{
	const struct test *test = analysis->test;
	struct arena *arena = notify->cli->arena;

	notify->tests++;
	for (size_t i = 0; i < analysis->data->count && notify->receiver; i++) {
		const struct findings *findings = &analysis->findings[i];
		const struct series *series = findings->series;

		for (size_t j = 0; j < findings->count; j++) {
			const struct change *change = &findings->changes[j];
			struct change_record *record;

			if (series->axis->times[change->index] < notify->since ||
				change_accepted(findings, change))
				continue;
			notify->records =
				arena_grow(arena, notify->records, notify->count, sizeof *record);
			record = &notify->records[notify->count++];
			*record = (struct change_record){.item = announce_change(arena, test->name,
								 test->environment, series, change),
				.series = arena_strdup(arena, series->identity)};
			findings_basis(arena, findings, change, &record->item);
			record->item.id = (int64_t)notify->count;
			announce_links(arena, config, record);
		}
	}
}

/* Posts the changes by time, test, worst first, to all channels, and reports failures on stderr:
 * EXIT_DATA or EXIT_USAGE then. */
static int notify_send(const struct notify *notify, const struct strings *channels)
{
	struct arena *arena = notify->cli->arena;
	size_t changes = notify->count, count = notify->receiver ? channels->count : 0;
	struct announcement *items = arena_array(arena, changes, sizeof *items);
	const struct change_record **records = arena_array(arena, changes, sizeof *records);
	struct post *posts = arena_array(arena, count, sizeof *posts);
	struct message message = {.items = items, .count = changes};
	struct notice notice = {.subject = "hunter-c did not detect any change points",
		.time = notify->cli->now,
		.recovered = true};
	int code = EXIT_NOTHING;
	char when[WHEN_TEXT] = "";

	for (size_t i = 0; i < changes; i++)
		records[i] = &notify->records[i];
	group_sort(records, changes);
	for (size_t i = 0; i < changes; i++)
		items[i] = records[i]->item;
	if (notify->since != WHEN_ALWAYS)
		when_format(notify->since, when);
	notice.text = arena_printf(arena, "%zu test%s analyzed%s%s", notify->tests,
		cli_plural(notify->tests), *when ? ", since " : "", when);
	if (changes == 0)
		message = (struct message){.kind = MESSAGE_NOTICE, .notice = &notice};
	for (size_t i = 0; i < count; i++)
		posts[i] = (struct post){.receiver = notify->receiver,
			.destination = channels->items[i],
			.message = &message};
	post_all(posts, count, arena, notify->cli->now);
	for (size_t i = 0; i < count; i++)
		if (posts[i].error.kind != ERROR_NONE)
			code = exit_stronger(code, cli_fail(&posts[i].error));
	return code;
}

struct output_flags {
	int output; /* enum report_output */
	bool verbose, fail_on_regression, update_postgres, update_grafana, plot;
};

static const struct field output_fields[] = {
	OPTION_CHOICE(struct output_flags, output, "text", report_output_names,
		"output format; log is an alias of text"),
	OPTION_BOOL(struct output_flags, verbose, "show the p-value of each change", .letter = 'v'),
	OPTION_BOOL(struct output_flags, fail_on_regression,
		"exit with 1 on a regression, with 3 if a test has no data"),
	OPTION_BOOL(struct output_flags, update_postgres,
		"write the changes back with the tests' update_statement"),
	OPTION_BOOL(struct output_flags, update_grafana,
		"update the tests' Grafana annotations to match the changes"),
	OPTION_BOOL(struct output_flags, plot,
		"draw each metric below the table, as wide as the terminal (text only)"),
	{0},
};

struct analyze_options {
	struct output_flags output;
	struct gate_flags gate;
	struct notify_flags notify;
	struct selection_flags selection;
	struct detection_flags detection;
};

static const struct option_part analyze_parts[] = {
	{output_fields, offsetof(struct analyze_options, output)},
	{gate_fields, offsetof(struct analyze_options, gate)},
	{notify_fields, offsetof(struct analyze_options, notify)},
	{range_fields, offsetof(struct analyze_options, selection)},
	{selection_fields, offsetof(struct analyze_options, selection)},
	{detection_flag_fields, offsetof(struct analyze_options, detection)},
	{0},
};

struct analyze {
	struct command_context ask;
	struct report report;
	struct gate *gate;
	struct notify notify;
	struct annotations *annotations; /* or NULL */
	const struct output_flags *flags;
	bool regressed, plot;
	int code; /* of the updates, and of tests without data */
};

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct command_context *ask = task->result;
	struct query *query = &task->query;
	struct analyzed *analyzed = arena_alloc(query->arena, sizeof *analyzed);
	if (!selection_apply(
		    &ask->selection, task->test->name, query->arena, &query->data, error) ||
		!analysis_run(query->arena, ask->schema, task->test, &query->data, task->companions,
			ask->settings, ask->setting_count, scratch, &analyzed->analysis, error))
		return false;
	task->result = analyzed;
	return true;
}

static void prepare(void *context, struct task *task)
{
	struct analyze *analyze = context;
	selection_query(&analyze->ask.selection, task->test, &task->query);
	task->result = &analyze->ask; /* input of `work`, which replaces it by its own result */
	task->work = work;
	if (analyze->flags->update_postgres && update_applies(task->test))
		task->settle = update_run;
}

/* An attribute of --attrs that no point can have is probably a typo. */
static void warn_unknown_attributes(const struct report *report, const struct analysis *analysis)
{
	for (size_t i = 0; i < report->attributes.count; i++) {
		bool known = analysis->data->count == 0;
		for (size_t s = 0; s < analysis->data->count && !known; s++)
			known = axis_column(
				analysis->data->series[s].axis, report->attributes.items[i]);
		if (!known)
			log_event(LEVEL_WARN, "points have no such attribute",
				LOG_TEXT("test", analysis->test->name),
				LOG_TEXT("attribute", report->attributes.items[i]));
	}
}

/* Missing data must not be taken for a good result. Fails if nothing was measured, and, for a gate,
 * if that is too little. */
static void judge(struct analyze *analyze, const struct task *task, const struct analysis *analysis)
{
	const struct dataset *data = analysis->data;
	struct gate_lacks lacks = {.arena = task->query.arena};
	struct error error;
	size_t total = 0;

	for (size_t s = 0; s < data->count; s++) {
		const struct series *series = &data->series[s];
		size_t count = 0;

		for (size_t i = 0; i < series->axis->n; i++)
			count += isfinite(series->values[i]) ? 1 : 0;
		total += count;
		gate_lack(&lacks, series,
			count >= COMPARE_LEAST + 2 ? NULL
						   : arena_printf(lacks.arena, "%zu point%s", count,
							     cli_plural(count)));
	}
	analyze->regressed = analyze->regressed || analysis_has_regression(analysis);
	bool gates = analyze->flags->fail_on_regression, otava = analyze->ask.otava;

	if (!gates && otava)
		return;
	if (total == 0)
		(void)command_lacks_data(task, &error);
	else if (otava || !gates || gate_has_enough(&lacks, task->test, &error))
		return;
	analyze->code = exit_stronger(analyze->code, cli_fail(&error));
}

/* Below the table. */
static void draw(
	const struct analyze *analyze, const struct analysis *analysis, struct arena *arena)
{
	const struct test *test = analysis->test;

	for (size_t s = 0; s < analysis->data->count; s++) {
		const struct findings *found = &analysis->findings[s];
		const struct series *series = found->series;
		struct plot_change *changes = arena_array(arena, found->count, sizeof *changes);
		const struct plot_line line = {.n = series->axis->n,
			.times = series->axis->times,
			.values = series->values,
			.changes = changes,
			.change_count = found->count};

		for (size_t i = 0; i < found->count; i++)
			changes[i] = record_plot_change(
				&(struct change_record){.state = CHANGE_CONFIRMED,
					.triage.state = change_accepted(found, &found->changes[i])
								? TRIAGE_EXPECTED
								: TRIAGE_OPEN,
					.item = announce_change(arena, test->name,
						test->environment, series, &found->changes[i])});
		putc('\n', analyze->ask.cli->out);
		plot_print(analyze->ask.cli,
			&(struct plot){
				.title = arena_printf(arena, "%s %s", test->name, series->name),
				.unit = series->metric ? series->metric->unit : NULL,
				.direction = series_direction(series),
				.lines = &line,
				.line_count = 1});
	}
}

static void ready(void *context, struct task *const *tasks)
{
	struct analyze *analyze = context;
	const struct task *task = tasks[0];
	if (!gather_log(task)) {
		report_failure(&analyze->report, task->test->name, task->error.text);
		return;
	}
	struct analyzed *analyzed = task->result;
	const struct analysis *analysis = &analyzed->analysis;
	warn_unknown_attributes(&analyze->report, analysis);
	gate_judge(analyze->gate, task->query.arena, task->query.branch, analysis);
	report_test(&analyze->report, analysis, task->query.arena);
	if (analyze->plot)
		draw(analyze, analysis, task->query.arena);
	notify_add(&analyze->notify, analyze->ask.config, analysis);
	annotations_add(analyze->annotations, analysis, task->query.branch);
	judge(analyze, task, analysis);
	analyze->code = exit_stronger(analyze->code, update_log(task->test, analyzed));
}

static int run(struct cli *cli)
{
	const struct analyze_options *options = cli->options;
	const struct output_flags *flags = &options->output;
	struct analyze analyze = {.flags = flags};
	struct error error;
	int code;
	if (!command_context_prepare(&analyze.ask, cli, &options->selection, &options->detection,
		    &options->gate.known_changes, &code))
		return code;
	analyze.plot = flags->plot && !analyze.ask.otava && flags->output == REPORT_TEXT;
	if (flags->update_postgres && !update_check(&analyze.ask, &error))
		return cli_fail(&error);
	if (!notify_prepare(&analyze.notify, &options->notify, analyze.ask.config, cli, &error) ||
		(flags->update_grafana &&
			!(analyze.annotations = annotations_new(
				  analyze.ask.config, "--update-grafana", cli, &error))) ||
		!(analyze.gate = gate_new(&options->gate, &analyze.ask, &error)))
		return cli_fail(&error);
	analyze.report = (struct report){.out = cli->out,
		.output = flags->output,
		.otava = analyze.ask.otava,
		.verbose = flags->verbose,
		.color = cli->color,
		.attributes = options->selection.attrs};
	struct gather gather = {.tests = analyze.ask.tests,
		.count = analyze.ask.count,
		.config = analyze.ask.config,
		.prepare = prepare,
		.judges = true,
		.ready = ready,
		.context = &analyze};
	report_begin(&analyze.report);
	bool ran = gather_run(&gather, cli);
	report_end(&analyze.report);
	if (flags->output != REPORT_JSON && flags->output != REPORT_CSV)
		gate_print(analyze.report.accepted, cli->out);
	if (ran)
		analyze.code = exit_stronger(
			analyze.code, notify_send(&analyze.notify, &options->notify.notify_slack));
	if (ran && analyze.annotations)
		analyze.code = exit_stronger(analyze.code, annotations_send(analyze.annotations));
	gather.code = exit_stronger(gather.code, analyze.code);
	if (flags->fail_on_regression && analyze.regressed)
		gather.code = exit_stronger(gather.code, EXIT_REGRESSIONS);
	return gather.code;
}

const struct command analyze_command = {
	.name = "analyze",
	.arguments = "[TEST|GROUP...]",
	.summary = "Show test results and change points",
	.details = "Prints each test's results, with a line of dots and the change in percent "
		   "before each change point. Tests are printed in the order given; without "
		   "arguments, all tests. Accepted changes are marked and do not count for "
		   "--fail-on-regression; see regressions --help.\n"
		   "\n"
		   "--profile otava selects Apache Otava's detection and its output formats.",
	.parts = analyze_parts,
	.options_size = sizeof(struct analyze_options),
	.run = run,
};
