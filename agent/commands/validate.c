/*
 * `validate`: reports all problems of the configuration, and a summary. Nothing is fetched,
 * except with --power: it reads the tests' data and measures the smallest change that each
 * series would show.
 */
#include <math.h>
#include <string.h>

#include "agent/analysis/explain.h"
#include "agent/analysis/hourly.h"
#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/number.h"
#include "agent/base/secret.h"
#include "agent/base/when.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/commands/post.h"
#include "agent/model/json_put.h"
#include "agent/monitor/series_cache.h"
#include "agent/monitor/why.h"
#include "agent/report/document.h"
#include "agent/report/table.h"
#include "conf/known_changes.h"
#include "detectors/scratch.h"

enum { SERIES_MOST = 200 }; /* series measured per test */

struct validate_options {
	int output;
	bool power, receivers;
};

static const struct field validate_fields[] = {
	OPTION_CHOICE(struct validate_options, output, "text", cli_outputs, "output format"),
	OPTION_BOOL(struct validate_options, power,
		"read the tests' data and print the smallest change of each series that would be "
		"reported within 24 points"),
	OPTION_BOOL(struct validate_options, receivers,
		"send a test message to each receiver and print which failed"),
	{0},
};

static const struct option_part parts[] = {{validate_fields, 0}, {0}};

/* The configuration, or why it cannot be used. */
struct verdict {
	struct cli *cli;
	const struct validate_options *options;
	const char *path;
	const struct config *config; /* NULL: there are errors */
	struct problems problems;
	size_t warnings, unsupported;
	struct buf power, explained; /* items of JSON lists; the second: what explains what */
	struct explain *explain;
	struct post *tried; /* test messages */
	size_t tried_count;
};

/* The smallest changes measured for a test. */
struct measured {
	const struct series *series; /* as it is judged */
	const double *values;        /* ... without cycles */
	bool has_rule;               /* another series explains it already */
	struct power power;
	bool has; /* it has enough points */
};

/* Prints why tests cannot be run, each reason once. */
static void print_reasons(const struct verdict *verdict, FILE *out)
{
	const struct config *config = verdict->config;
	struct dict reasons = {.arena = config->arena};
	size_t *counts = arena_array(config->arena, config->test_count, sizeof *counts);

	for (size_t i = 0; i < config->test_count; i++) {
		const void **place;

		if (!config->tests[i].unsupported)
			continue;
		place = dict_place(&reasons, config->tests[i].unsupported);
		if (!*place)
			*place = &counts[i];
		counts[(const size_t *)*place - counts]++;
	}
	for (size_t i = 0; i < config->test_count; i++)
		if (counts[i] > 0)
			fprintf(out, "%s: %zu test%s cannot run: %s\n", verdict->path, counts[i],
				cli_plural(counts[i]), config->tests[i].unsupported);
}

/* Warns of entries of known_changes that have expired or are about no test. */
static void check_known(const struct config *config, int64_t now, struct problems *problems)
{
	struct strings topics = config_topics(config, config->arena);

	for (size_t i = 0; i < config->known_change_count; i++) {
		const struct known_change *known = &config->known_changes[i];
		char until[WHEN_TEXT];

		if (known->until <= now)
			problems_add_file(problems, true, known->file, known->line, known->column,
				"known_changes: entry has no effect: it expired on %s",
				when_format(known->until, until));
		if (!any_matches(&topics, known->test))
			problems_add_file(problems, true, known->file, known->line, known->column,
				"known_changes: no such test: \"%.200s\"", known->test);
	}
}

static void put_config(const struct config *config, struct buf *json)
{
	buf_text(json, ", \"unsupported\": [");
	for (size_t i = 0; config && i < config->test_count; i++)
		if (config->tests[i].unsupported) {
			json_put(json, "\n{test: %s, reason: %s}", config->tests[i].name,
				config->tests[i].unsupported);
		}
	json_put(json, "], tests: %zu, groups: %zu, known_changes: [",
		config ? config->test_count : 0, config ? config->group_count : 0);
	for (size_t i = 0; config && i < config->known_change_count; i++) {
		const struct known_change *known = &config->known_changes[i];

		json_put(json,
			"\n{test: %s, metric: %s, commit: %s, from: %jd time, to: %jd time,"
			" direction: %d, at_most: %g, reason: %s, until: %jd time, file: %s,"
			" line: %d}",
			known->test, known->metric, known->commit,
			known->from == WHEN_ALWAYS ? WHEN_NEVER : known->from, known->to,
			known->direction, known->at_most > 0 ? known->at_most : (double)NAN,
			known->reason, known->until, known->file, known->line);
	}
	buf_char(json, ']');
}

static void put_list(struct buf *json, const char *key, const struct buf *items)
{
	buf_printf(json, ", \"%s\": [%s]", key, items->length > 0 ? items->data : "");
}

static void put_json(const struct verdict *verdict, struct buf *json)
{
	bool receivers = verdict->config && verdict->options->receivers;
	const struct problems *problems = &verdict->problems;
	const struct config *config = verdict->config;

	json_put(json, "{config: %s, valid: %d bool, problems: [", verdict->path, config != NULL);
	for (size_t i = 0; i < problems->count; i++)
		json_put(json, "\n{severity: %s, text: %s}",
			problems->items[i].warning ? "warning" : "error", problems->items[i].text);
	json_put(json, "], errors: %zu, warnings: %zu, missing: %s optional", problems->errors,
		verdict->warnings, config ? config->missing : "");
	put_config(config, json);
	if (config && verdict->options->power) {
		put_list(json, "power", &verdict->power);
		put_list(json, "proposals", &verdict->explained);
	}
	buf_text(json, receivers ? ", \"receivers\": [" : "");
	for (size_t i = 0; i < verdict->tried_count; i++) {
		const struct post *post = &verdict->tried[i];
		bool sent = post->error.kind == ERROR_NONE;

		json_put(json,
			"\n{receiver: %s, kind: %s, destination: %s, sent: %d bool, problem: %s "
			"optional}",
			post->receiver->name, post->receiver->notifier->name, post->destination,
			sent, sent ? "" : post->error.text);
	}
	buf_text(json, receivers ? "]}\n" : "}\n");
}

static const char *const known[] = {"test", "metric", "commit", "@from", "@to", "direction",
	"at most %=at_most", "@until", "reason", "file", "line", NULL};
static const char *const powers[] = {"up %=up", "down %=down",
	"@held until=power.up.sizes.0.held_until", "test", "series", "judged by the hour=hourly",
	NULL};
static const char *const proposals[] = {
	"test", "metric", "explained", "series", "of", "add to the metric=line", NULL};
static const char *const tried[] = {"receiver", "kind", "destination", "sent", "problem", NULL};

static void print_text(const struct verdict *verdict, const struct buf *json)
{
	const struct problems *problems = &verdict->problems;
	const struct config *config = verdict->config;
	json_t *document = json_loadb(json->data, json->length, 0, NULL);
	struct cli *cli = verdict->cli;
	const struct document_section sections[] = {
		{"known changes", "known_changes", known},
		{arena_printf(cli->arena,
			 "smallest change announced within %d points, %d points before the newest",
			 POWER_POINTS, POWER_POINTS),
			"power", powers},
		{"could be judged by another series", "proposals", proposals},
		{"test messages", "receivers", tried},
		{0},
	};
	FILE *out = cli->out;

	for (size_t i = 0; i < problems->count; i++)
		fprintf(out, "%s\n", problems->items[i].text);
	if (config)
		print_reasons(verdict, out);
	if (config && config->missing)
		fprintf(out, "%s: the agent will not start\n", config->missing);
	fprintf(out, "%s: ", verdict->path);
	if (config)
		fprintf(out, "%s, %zu test%s, %zu group%s",
			config->missing ? "valid, but the agent will not start" : "OK",
			config->test_count, cli_plural(config->test_count), config->group_count,
			cli_plural(config->group_count));
	else
		fprintf(out, "%zu error%s", problems->errors, cli_plural(problems->errors));
	if (verdict->unsupported > 0)
		fprintf(out, ", %zu of the tests cannot run", verdict->unsupported);
	if (verdict->warnings > 0)
		fprintf(out, ", %zu warning%s", verdict->warnings, cli_plural(verdict->warnings));
	fputc('\n', out);
	document_print(cli->arena, document, sections, out);
	json_decref(document);
}

static bool measure(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct verdict *verdict = task->result;
	const struct dataset *data = &task->query.data;
	struct arena *arena = task->query.arena;
	struct measured *measured = arena_array(arena, data->count, sizeof *measured);

	task->result = measured;
	for (size_t i = 0; i < data->count && i < SERIES_MOST; i++) {
		const struct metric *metric = data->series[i].metric;
		const struct detection *detection = analysis_configured(task->test, metric);
		const struct series *series =
			hourly_series(arena, detection, &data->series[i], WHEN_ALWAYS, scratch);
		struct findings findings =
			analysis_adjust(arena, series, detection, NULL, NULL, scratch);
		const struct power_request ask = {.test = task->test,
			.data = data,
			.companions = task->companions,
			.series = series,
			.max_age = verdict->config->agent.max_age,
			.scratch = scratch,
			.limit = scratch_done(scratch) + POWER_STEPS};

		measured[i].series = series;
		measured[i].values = findings_values(arena, &findings);
		measured[i].has_rule = control_of(task->test, detection,
					       metric ? metric->name : series->name) != NULL;
		measured[i].has = power_typical(&ask, arena, &measured[i].power, error);
		if (!measured[i].has && error->kind != ERROR_NONE)
			return false;
	}
	return true;
}

static void prepare(void *context, struct task *task)
{
	(void)series_cache_query(&(struct checkpoint_rows){0}, task);
	task->result = context;
	task->work = measure;
}

/* "2", ">50": not even that is announced, "held": as each size is, "-": there are too few points,
 * or a change is announced there without a step. */
static void put_smallest(
	struct buf *json, const char *key, const struct power_side *side, bool measured)
{
	char text[1 + NUMBER_TEXT] = ">";
	bool none = isnan(side->smallest);

	number_display(none ? power_sizes[POWER_SIZES - 1] : side->smallest, text + 1);
	json_put_text(json, key,
		!measured || side->anyway        ? "-"
		: !none                          ? text + 1
		: side->tries[0].held_until != 0 ? "held"
						 : text);
}

static void put_measured(struct buf *json, const struct test *test, const struct measured *measured)
{
	const struct series *series = measured->series;

	json_put(json, "\n{test: %s, series: %s, hourly: %d bool", test->name, series->name,
		series->pooled > 0);
	put_smallest(json, "up", &measured->power.up, measured->has);
	put_smallest(json, "down", &measured->power.down, measured->has);
	buf_text(json, ", \"power\": ");
	if (measured->has)
		why_put_power(json, series->axis, &measured->power);
	else
		buf_text(json, "null");
	buf_char(json, '}');
}

static void ready(void *context, struct task *const *tasks)
{
	struct verdict *verdict = context;
	const struct task *task = tasks[0];
	const struct dataset *data = &task->query.data;
	const struct measured *measured = task->result;

	if (!gather_log(task))
		return;
	for (size_t i = 0; i < data->count && i < SERIES_MOST; i++) {
		put_measured(&verdict->power, task->test, &measured[i]);
		explain_keep(verdict->explain, task->test, measured[i].series, measured[i].values,
			measured[i].has_rule);
	}
	if (data->count > SERIES_MOST)
		log_event(LEVEL_WARN, "measuring only the first series",
			LOG_TEXT("test", task->test->name), LOG_INT("measured", SERIES_MOST),
			LOG_INT("series", data->count));
}

/* Reads the data of all tests that can be run. */
static int measure_all(struct verdict *verdict)
{
	const struct config *config = verdict->config;
	struct scratch *scratch = scratch_new();
	const struct test **tests =
		arena_array(verdict->cli->arena, config->test_count, sizeof(const struct test *));
	struct gather gather = {.tests = tests,
		.config = config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = verdict};

	for (size_t i = 0; i < config->test_count; i++)
		if (!config->tests[i].unsupported)
			tests[gather.count++] = &config->tests[i];
	verdict->explain = explain_new();
	gather_run(&gather, verdict->cli);
	explain_put(verdict->explain, scratch, &verdict->explained);
	explain_free(verdict->explain);
	scratch_free(scratch);
	return gather.code;
}

/* Adds a test message; `problem`: it cannot be sent. */
static void add_post(struct verdict *verdict, const struct receiver *receiver,
	const char *destination, const struct error *problem)
{
	struct cli *cli = verdict->cli;
	struct post *posts =
		arena_grow(cli->arena, verdict->tried, verdict->tried_count, sizeof *posts);
	struct notice *notice = arena_alloc(cli->arena, sizeof *notice);
	struct message *message = arena_alloc(cli->arena, sizeof *message);

	*notice =
		(struct notice){.subject = "Test of hunter-c", .time = cli->now, .recovered = true};
	notice->text = arena_printf(cli->arena,
		"test message for the receiver %s: nothing has changed", receiver->name);
	*message = (struct message){.kind = MESSAGE_TEST, .notice = notice};
	posts[verdict->tried_count] =
		(struct post){.receiver = receiver, .destination = destination, .message = message};
	if (problem)
		posts[verdict->tried_count].error = *problem;
	verdict->tried = posts;
	verdict->tried_count++;
}

/*
 * `validate --receivers`: sends each destination of each receiver one message that is marked as a
 * test, but for the terminal, unless that is configured or the only one; and for JSON without those
 * that print. Receivers that cannot be used at all are reported as problems of the configuration.
 */
static int try_receivers(struct verdict *verdict)
{
	struct cli *cli = verdict->cli;
	const struct config *config = verdict->config;
	int code = config->missing ? EXIT_USAGE : EXIT_NOTHING;
	struct error error;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];
		const struct notifier *notifier = notifier_find(receiver->notifier->name);
		struct strings destinations;

		if ((receiver->implicit && (config->receiver_count > 1 || config->missing)) ||
			(verdict->options->output == OUTPUT_JSON && notifier == &stdout_notifier))
			continue;
		if (!notifier_destinations(
			    notifier, receiver->options, cli->arena, &destinations, &error)) {
			add_post(verdict, receiver, "", &error);
			continue;
		}
		for (size_t k = 0; k < destinations.count; k++)
			add_post(verdict, receiver, destinations.items[k], NULL);
	}
	post_all(verdict->tried, verdict->tried_count, cli->arena, cli->now);
	for (size_t i = 0; i < verdict->tried_count; i++)
		code = exit_stronger(code, exit_code(verdict->tried[i].error.kind));
	return code;
}

static int validate(struct cli *cli)
{
	struct config_source source = cli_config_source();
	struct verdict verdict = {
		.cli = cli, .options = cli->options, .problems = {.arena = cli->arena}};
	struct problems *problems = &verdict.problems;
	const struct config *config;
	struct buf json = {0};
	struct error error;
	int code;

	source.cautious = true;
	if (!config_find(cli->common.config, &source, cli->arena, &verdict.path, &error))
		return cli_fail(&error);
	secret_forbid_dumps();
	if (!cli->common.config && strcmp(verdict.path, "hunter.yaml") == 0)
		caution_found(verdict.path, problems);
	config = verdict.config = cli->config = config_load(verdict.path, &source, problems);
	if (config)
		check_known(config, cli->now, problems);
	for (size_t i = 0; i < problems->count; i++)
		verdict.warnings += problems->items[i].warning;
	for (size_t i = 0; config && i < config->test_count; i++)
		verdict.unsupported += config->tests[i].unsupported != NULL;
	code = config ? EXIT_NOTHING : EXIT_USAGE;
	if (config && verdict.options->power)
		code = measure_all(&verdict);
	if (config && verdict.options->receivers)
		code = exit_stronger(code, try_receivers(&verdict));
	put_json(&verdict, &json);
	if (verdict.options->output == OUTPUT_TEXT)
		print_text(&verdict, &json);
	else
		text_flush(&json, cli->out);
	buf_free(&verdict.power);
	buf_free(&verdict.explained);
	buf_free(&json);
	return code;
}

const struct command validate_command = {
	.name = "validate",
	.summary = "Check the configuration",
	.details = "Reads the configuration and prints every problem with file, line and column, "
		   "and a summary. Without flags, contacts no server. Also warns about insecure "
		   "settings: short secrets, secrets readable by others or sent without TLS, and "
		   "servers whose certificate is not verified. The exit code is 2 on errors; "
		   "warnings and unset variables, without which the agent does not start, give 0.\n"
		   "\n"
		   "--power reads the tests' data and prints for each series the smallest change, "
		   "up and down, that would be announced within 24 points. Where another series "
		   "with the same labels explains a metric, it also prints the `explained_by` or "
		   "`relative_to` to set. The exit code is 3 if some data is unavailable.\n"
		   "\n"
		   "--receivers sends a test message to each destination of each receiver, "
		   "whatever its events, and prints whether it was sent or why not. The exit code "
		   "is 3 if a destination is unreachable, and 2 if a receiver is misconfigured.",
	.misuse = "validate takes no arguments; give the file with --config",
	.parts = parts,
	.options_size = sizeof(struct validate_options),
	.run = validate,
};
