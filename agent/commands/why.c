/* `why`: reads a test's data and the agent's state, writes nothing. */
#include <string.h>
#include <unistd.h>

#include "agent/base/when.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/commands/state_file.h"
#include "agent/monitor/condition.h"
#include "agent/monitor/why.h"
#include "agent/report/document.h"
#include "agent/report/table.h"
#include "agent/store/store.h"

struct why_options {
	int output;
	const char *state_file;
};

static const struct field why_fields[] = {
	OPTION_CHOICE(struct why_options, output, "text", cli_outputs, "output format"),
	OPTION_STRING(struct why_options, state_file, NULL, STATE_FILE_HELP, .alias = "state",
		.metavar = "PATH"),
	{0},
};

static const struct option_part parts[] = {{why_fields, 0}, {0}};

static const char *const about[] = {"test", "series", "source", "query", "@from=since", "@until",
	"answer", "@time", "place", "points", "@windows begin=front", "@last point=last_point",
	"@last point of the test=newest_of_test", "judged by the hour=hourly", "detector",
	"cycles removed=season", "share of the variance=season_explained",
	"cycles possible=season_undecided", "judged by=judged_by", "clusters", "reported=problem",
	"@reported to have ended=ended", "read from the agent's state=state", NULL};

static const char *const proposals[] = {
	"explained", "series", "of", "add to the metric=line", NULL};

static const char *const tried[] = {"explains it=meant", "@time", "detector", "p=pvalue",
	"before=mean_before", "after=mean_after", "change %=forward_change_percent",
	"result=reason", "measure", "measured", "limit", NULL};

static const char *const found[] = {"@time", "before=level_before", "after=level_after",
	"%size %=size", "p=pvalue", "@not before=place_from", "@not after=place_to",
	"last good=suspects.from", "first bad=suspects.to", "suspects=suspected", NULL};

/* Points are counted from the first of the new level. */
static const char *const replayed[] = {"points", "@from=time", "found at point=found",
	"announced at point=told", "gone at point=lost", "@held until=held_until", NULL};

static const char *const recorded[] = {
	"change=id", "test", "@time", "state", "series=members", "bisected=culprit.verdict", NULL};

static const char *const history[] = {
	"@time=at", "event", "receiver", "destination", "person", "detail", NULL};

static const char *const environment[] = {"announced as part of=announced_in", NULL};

static const char *const verdict[] = {"verdict=reason", NULL};

static const char *const power[] = {"points", "@from=time", "up %=up.smallest",
	"down %=down.smallest", "up: a change is announced there without a step=up.anyway",
	"down: a change is announced there without a step=down.anyway",
	"up: smaller changes exceed the work limit=up.cut",
	"down: smaller changes exceed the work limit=down.cut",
	"moved back to have enough points after it=moved",
	"in percent of the mean absolute value, since the level is near 0=added",
	"after a change near there was removed=evened", NULL};

static const char *const sizes[] = {"size %=size", "found at point=found",
	"announced at point=told", "gone at point=lost", "@held until=held_until", NULL};

static const struct document_section sections[] = {
	{NULL, NULL, about},
	{"it could be judged by", "proposals", proposals},
	{"tried nearby", "tried", tried},
	{"found", "change", found},
	{"replayed", "arrival", replayed},
	{"recorded", "record", recorded},
	{"its history", "record.history", history},
	{NULL, NULL, environment},
	{"recorded of its cluster", "cluster", recorded},
	{"history of the cluster's", "cluster.history", history},
	{"this is the end of", "undone", recorded},
	{"history of that", "undone.history", history},
	{NULL, NULL, verdict},
	{"smallest change that would be announced", "power", power},
	{"sizes tried upwards", "power.up.sizes", sizes},
	{"sizes tried downwards", "power.down.sizes", sizes},
	{0},
};

struct asking {
	struct cli *cli;
	const struct test *test;
	struct why_request ask;
	bool lacks_data;
};

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct asking *asking = task->result;
	struct query *query = &task->query;
	struct why *why = arena_alloc(query->arena, sizeof *why);

	task->result = why;
	return why_explain(query->arena, task->test, query, task->companions, &asking->ask, scratch,
		why, error);
}

/* Sets the query that the agent would use. */
static void prepare(void *context, struct task *task)
{
	struct asking *asking = context;

	why_query(&asking->ask, task);
	task->result = asking;
	task->work = work;
}

/* If the data cannot be read, prints the agent's information about the problem. */
static void put_last(const struct asking *asking)
{
	const struct why_request *ask = &asking->ask;
	int64_t last = WHEN_ALWAYS;
	char time[WHEN_TEXT];

	for (size_t i = 0; i < ask->checkpoints.count; i++)
		if (ask->checkpoints.items[i].last_point > last)
			last = ask->checkpoints.items[i].last_point;
	if (last != WHEN_ALWAYS)
		fprintf(stderr, "hunter-c: the agent has read points up to at least %s\n",
			when_format(last, time));
	for (size_t i = 0; i < ask->health.condition_count; i++) {
		const struct condition *condition = &ask->health.conditions[i];
		const char *name = asking->test->name;

		if (condition->kind == CONDITION_SOURCE)
			name = asking->test->source->name;
		if ((condition->kind == CONDITION_TEST || condition->kind == CONDITION_SOURCE) &&
			strcmp(condition_name(condition), name) == 0)
			text_line(stderr, "hunter-c: the agent has announced: %s", condition->text);
	}
}

static void ready(void *context, struct task *const *tasks)
{
	struct asking *asking = context;
	const struct task *task = tasks[0];
	const struct why_options *options = asking->cli->options;
	struct buf out = {0};
	json_t *answer;

	if (!gather_log(task)) {
		if (task->error.kind != ERROR_USAGE)
			put_last(asking);
		return;
	}
	asking->lacks_data = ((const struct why *)task->result)->end == WHY_NO_DATA;
	why_put_json(&out, task->result);
	buf_char(&out, '\n');
	if (options->output == OUTPUT_TEXT) {
		answer = json_loadb(out.data, out.length, 0, NULL);
		document_print(asking->cli->arena, answer, sections, asking->cli->out);
		json_decref(answer);
		buf_clear(&out);
	}
	text_flush(&out, asking->cli->out);
}

static int explain(struct asking *asking, const struct config *config, struct error *error)
{
	const struct why_options *options = asking->cli->options;
	struct store_list *list = store_list_new(NULL, NULL);
	bool there, read;
	struct gather gather = {.tests = &asking->test,
		.count = 1,
		.config = config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = asking};

	why_ask(list, asking->ask.config, asking->test);
	read = state_list(asking->cli, options->state_file, list, &there, error);
	if (read && there)
		why_state(&asking->ask, list);
	if (!read)
		return cli_fail(error);
	gather_run(&gather, asking->cli);
	return exit_stronger(gather.code, asking->lacks_data ? EXIT_DATA : EXIT_NOTHING);
}

/* The name's present counterpart after renames. */
static const char *renamed(
	const struct config *config, const char *test, const char *metric, const char *name)
{
	for (size_t i = 0; i < config->rename_count; i++) {
		const struct rename *rename = &config->renames[i];

		if (strcmp(rename->was, name) != 0 || (rename->metric != NULL) != (metric != NULL))
			continue;
		if (!metric || strcmp(rename->test, test) == 0)
			return metric ? rename->metric : rename->test;
	}
	return name;
}

/* The single test of that name; NULL and an error for none or several. */
static const struct test *find_test(
	struct asking *asking, const struct config *config, const char *asked, struct error *error)
{
	const char *name = config_test(config, asked) ? asked : renamed(config, NULL, NULL, asked);
	const struct group *group;

	if (name != asked)
		fprintf(stderr, "hunter-c: the test was renamed to \"%s\"\n", name);
	group = config_test(config, name) ? NULL : config_group(config, name);
	if (group && group->cluster) {
		error_set(error, ERROR_USAGE,
			"\"%.200s\" is a cluster; why takes one of its tests, and prints the "
			"announcements of the cluster",
			name);
		return NULL;
	}
	return single_test(asking->cli, name, error);
}

static int run(struct cli *cli)
{
	struct strings arguments = cli->arguments;
	struct asking asking = {.cli = cli};
	const struct config *config = cli->config;
	struct error error;

	asking.test = find_test(&asking, config, arguments.items[0], &error);
	if (!asking.test)
		return cli_fail(&error);
	asking.ask = (struct why_request){
		.metric = renamed(config, asking.test->name, "", arguments.items[1]),
		.at = arguments.count > 2 ? arguments.items[2] : NULL,
		.now = cli->now,
		.max_age = config->agent.max_age,
		.config = config};
	return explain(&asking, config, &error);
}

const struct command why_command = {
	.name = "why",
	.arguments = "TEST METRIC [TIME|COMMIT]",
	.summary = "Explain why a change was announced or not",
	.details = "Reads the test's data and the agent's state, also beside a running agent, and "
		   "prints each step from the points to the message: the removed cycles, the "
		   "places near the time or commit that the detector tried and why each was "
		   "rejected, the point that confirmed the change, the recorded changes and their "
		   "announcements. Finally prints the smallest change at that place that would be "
		   "announced within 24 points, measured by inserting steps into the data. A time "
		   "may have the format of Slack, such as 'Nov 19 9:00 AM', and is UTC unless a "
		   "zone follows. Without a time, explains the last recorded change, else the "
		   "newest point. METRIC may be the name of a series, such as "
		   "'p99{region=\"eu\"}'. Writes nothing and notifies nobody.\n"
		   "\n"
		   "The exit code is 0, 2, 3 if the data is unavailable, or 4.",
	.misuse = "why takes a test, a metric and optionally a time or a commit; list the metrics "
		  "of a test with hunter-c list-metrics TEST",
	.least = 2,
	.most = 3,
	.configured = true,
	.parts = parts,
	.options_size = sizeof(struct why_options),
	.run = run,
};
