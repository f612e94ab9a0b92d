/*
 * `route`: which receivers a change would notify, and why. Reads the configuration only: fetches
 * nothing, sends nothing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/label.h"
#include "agent/base/log.h"
#include "agent/commands/commands.h"
#include "agent/decide/route.h"
#include "agent/model/json_put.h"
#include "agent/model/message.h"
#include "agent/report/table.h"

struct route_flags {
	const char *size;
	int event, output;
};

/* Those that are about changes, in the order of enum message_kind. */
static const char *const events[] = {
	"new", "updated", "recovered", "withdrawn", "triaged", "reminder", NULL};

static const struct field flags[] = {
	OPTION_STRING(struct route_flags, size, NULL,
		"size of the change: 12%, -12%; default: a regression of any size",
		.metavar = "PERCENT"),
	OPTION_CHOICE(struct route_flags, event, "new", events, "kind of event"),
	OPTION_CHOICE(struct route_flags, output, "text", cli_outputs, "output format"),
	{0},
};

static const struct option_part parts[] = {{flags, 0}, {0}};

/* The request and the answer. */
struct asked {
	struct cli *cli;
	const struct config *config;
	const struct test *test; /* NULL: a cluster */
	struct change_record record;
	double size; /* percent, as given; NaN: any */
	unsigned kinds;
	struct routed_rows rows;
	struct buf steps;
	struct router *router; /* has the texts of the rows */
};

/* "12%", "+12" or "-12%" */
static bool read_size(const char *text, double *size, struct error *error)
{
	char *end = NULL;

	*size = (double)NAN;
	if (!text)
		return true;
	*size = strtod(text, &end);
	return (end != text && (!*end || strcmp(end, "%") == 0) && isfinite(*size) && *size != 0 &&
		       *size > -1e9 && *size < 1e9) ||
	       error_set(error, ERROR_USAGE, "--size: expected a size such as 12%% or -12%%");
}

/* Whether the text after the brace, if any, is a set of labels as in names of series. */
static bool check_labels(const char *metric, struct error *error)
{
	const char *at = label_set(metric);
	struct label_text label;
	size_t count = 0;

	while (at && label_next(&at, &label))
		count++;
	return !strchr(metric, '{') || count > 0 ||
	       error_set(error, ERROR_USAGE,
		       "\"%.80s\": labels are written like p99{region=\"eu\"}", metric);
}

static const struct metric *find_metric(const struct test *test, const char *metric)
{
	size_t length = strcspn(metric, "{");

	for (size_t i = 0; test && i < test->metric_count; i++)
		if (strlen(test->metrics[i].name) == length &&
			strncmp(test->metrics[i].name, metric, length) == 0)
			return &test->metrics[i];
	return NULL;
}

/* Levels that have that size, or one up from 0, which has none. */
static void set_change(struct asked *asked)
{
	struct announcement *item = &asked->record.item;
	double size = asked->size, before = isnan(size) ? 0 : 100;
	double after = isnan(size) ? (item->direction > 0 ? -1 : 1) : 100 + size;

	item->change = (struct change){.size = size,
		.mean_before = before,
		.level_before = before,
		.mean_after = after,
		.level_after = after};
	asked->record.sign = after < before ? -1 : 1;
}

static bool ask(struct asked *asked, struct error *error)
{
	struct cli *cli = asked->cli;
	const struct route_flags *options = cli->options;
	const char *test = cli->arguments.items[0], *series = cli->arguments.items[1];
	const struct config *config = asked->config;
	const char *environment = NULL;
	const struct metric *metric;
	struct announcement *item = &asked->record.item;
	struct buf value = {0};

	asked->test = config_test(config, test);
	if (!config_notify(config, test)) {
		struct strings topics = config_topics(config, cli->arena);

		error_set(error, ERROR_USAGE, "there is no test \"%.200s\"", test);
		return field_hint(error, test, topics.items, topics.count);
	}
	if (!read_size(options->size, &asked->size, error) || !check_labels(series, error))
		return false;
	metric = find_metric(asked->test, series);
	if (asked->test && asked->test->metric_count > 0 && !metric)
		log_event(LEVEL_WARN, "unknown metric of the test", LOG_TEXT("test", test),
			LOG_TEXT("metric", series));
	asked->record.branch = "";
	asked->record.series = item->metric = series;
	item->test = test;
	item->direction = metric ? metric->direction : 0;
	set_change(asked);
	if (asked->test)
		environment = asked->test->environment;
	if (environment && label_value(series, environment, strlen(environment), &value))
		item->environment = buf_keep(&value, cli->arena);
	buf_free(&value);
	asked->kinds = 1u << options->event;
	asked->router = router_new(config_routing(config));
	if (asked->test && !config_routed(config, test))
		buf_printf(&asked->steps, "%s:%d: ", asked->test->file, asked->test->line);
	asked->rows = route_change(
		asked->router, &asked->record, asked->kinds, cli->arena, &asked->steps);
	return true;
}

static const char *verdict_of(const struct asked *asked)
{
	return change_verdict_name(announcement_verdict(&asked->record.item));
}

static void print_receiver(const struct routed *to, FILE *out)
{
	const struct receiver *receiver = to->receiver;

	fprintf(out, "-> %s (%s)", receiver->name, receiver->notifier->name);
	if (to->decision.verdict != PASS)
		fprintf(out, " is not notified: %s", to->decision.reason);
	else
		for (size_t i = 0; i < to->group_by.count; i++)
			fprintf(out, "%s%s", i > 0 ? ", " : ", grouped by ", to->group_by.items[i]);
	fputs("\n", out);
}

static void print_text(const struct asked *asked, FILE *out)
{
	const struct announcement *item = &asked->record.item;

	fprintf(out, "%s %s", item->test, item->metric);
	if (isnan(asked->size))
		fprintf(out, ": a %s of any size\n", verdict_of(asked));
	else
		fprintf(out, " %+g%%: %s %s\n", asked->size, *verdict_of(asked) == 'i' ? "an" : "a",
			verdict_of(asked));
	fwrite(asked->steps.data, 1, asked->steps.length, out);
	if (asked->rows.decision.verdict != PASS)
		fprintf(out, "no receiver is notified: %s\n", asked->rows.decision.reason);
	for (size_t i = 0; i < asked->rows.count; i++)
		print_receiver(&asked->rows.items[i], out);
}

static void put_receivers(const struct asked *asked, enum verdict verdict, struct buf *json)
{
	for (size_t i = 0; i < asked->rows.count; i++) {
		const struct routed *to = &asked->rows.items[i];

		if (to->decision.verdict != verdict)
			continue;
		json_put(json, "\n{receiver: %s, kind: %s, reason: %s, group_by: %p}",
			to->receiver->name, to->receiver->notifier->name, to->decision.reason,
			&to->group_by);
	}
}

static void print_json(const struct asked *asked, FILE *out)
{
	const struct route_flags *options = asked->cli->options;
	struct buf json = {0};

	json_put(&json, "{test: %s, series: %s, size: %g, verdict: %s, event: %s",
		asked->record.item.test, asked->record.series, asked->size, verdict_of(asked),
		events[options->event]);
	buf_text(&json, ",\n  \"told\": [");
	put_receivers(asked, PASS, &json);
	buf_text(&json, "],\n  \"not_told\": [");
	put_receivers(asked, DROP, &json);
	buf_text(&json, "],\n  \"steps\": [");
	for (const char *at = asked->steps.data; at && *at; at += strcspn(at, "\n") + 1) {
		char *line = arena_strndup(asked->cli->arena, at, strcspn(at, "\n"));

		json_line(&json);
		buf_json_text(&json, line);
	}
	buf_text(&json, "]\n}\n");
	text_flush(&json, out);
}

static int run(struct cli *cli)
{
	const struct route_flags *options = cli->options;
	struct asked asked = {.cli = cli, .config = cli->config};
	struct error error;
	int code = EXIT_NOTHING;

	if (!ask(&asked, &error))
		code = cli_fail(&error);
	else if (options->output == OUTPUT_JSON)
		print_json(&asked, cli->out);
	else
		print_text(&asked, cli->out);
	buf_free(&asked.steps);
	router_free(asked.router);
	return code;
}

const struct command route_command = {
	.name = "route",
	.arguments = "TEST METRIC",
	.summary = "Show which receivers a change would notify, and why",
	.details = "Routes a change of the metric through `routes` and prints each route tried, "
		   "with file and line: whether it matches and, if not, the failed condition; then "
		   "the receivers notified, and those not subscribed to the event. A test with "
		   "`notify` bypasses the routes.\n"
		   "\n"
		   "    hunter-c route checkout 'p99{region=\"eu\"}' --size 12%\n"
		   "    hunter-c route checkout p99 --event recovered\n"
		   "\n"
		   "Reads the configuration only. Silences, mute times, clusters and environments "
		   "may still hold a change back: see `hunter-c why` for recorded changes.",
	.misuse = "route needs a test and a metric",
	.least = 2,
	.most = 2,
	.configured = true,
	.parts = parts,
	.options_size = sizeof(struct route_flags),
	.run = run,
};
