/*
 * `cluster`: which series of many tests changed together.
 */

#include "agent/analysis/shapes.h"
#include "agent/base/buf.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/io/parallel.h"
#include "agent/model/json_put.h"
#include "agent/model/record_json.h"
#include "agent/report/document.h"
#include "agent/report/table.h"

enum { MEMBERS_SHOWN = 5 };

struct cluster_flags {
	int output;
};

static const struct field cluster_fields[] = {
	OPTION_CHOICE(struct cluster_flags, output, "text", cli_outputs,
		"output format; json lists all members"),
	{0},
};

struct cluster_options {
	struct cluster_flags flags;
	struct shape_options shapes;
	struct selection_flags selection;
};

static const struct option_part cluster_parts[] = {
	{cluster_fields, offsetof(struct cluster_options, flags)},
	{shape_fields, offsetof(struct cluster_options, shapes)},
	{range_fields, offsetof(struct cluster_options, selection)},
	{selection_fields, offsetof(struct cluster_options, selection)},
	{0},
};

struct cluster {
	struct command_context ask;
	struct shapes *shapes;
};

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct command_context *ask = task->result;

	(void)scratch;
	return selection_apply(
		&ask->selection, task->test->name, task->query.arena, &task->query.data, error);
}

static void prepare(void *context, struct task *task)
{
	struct cluster *cluster = context;

	selection_query(&cluster->ask.selection, task->test, &task->query);
	task->result = &cluster->ask;
	task->work = work;
}

static void ready(void *context, struct task *const *tasks)
{
	struct cluster *cluster = context;

	if (gather_log(tasks[0]))
		shapes_add(cluster->shapes, tasks[0]->test->name, &tasks[0]->query.data);
}

static void put_shape(struct buf *out, const struct shape *shape)
{
	json_put(out,
		"\n{time: %jd time, direction: %s, regression: %g, change_percent: %g,"
		" commit_before: %s, commit_after: %s",
		shape->time, shape->sign > 0 ? "up" : "down", shape->regression,
		100 * (shape->ratio - 1), shape->commit_before, shape->commit_after);
	announcement_put_suspects(out, &shape->suspects, shape->time);
	json_put(out, "series: %zu, shared: [", shape->count);
	for (size_t i = 0; i < shape->label_count; i++)
		json_put(out, "\n{label: %s, share: %g, overall: %g}", shape->labels[i].text,
			shape->labels[i].share, shape->labels[i].overall);
	buf_text(out, "], \"members\": [");
	for (size_t i = 0; i < shape->count; i++)
		json_put(out, "\n{test: %s, metric: %s}", shape->members[i].test,
			shape->members[i].series);
	buf_text(out, "]}");
}

static void put_json(struct buf *out, const struct shape_report *report)
{
	buf_text(out, "{\"clusters\": [");
	for (size_t i = 0; i < report->count; i++)
		put_shape(out, &report->shapes[i]);
	json_put(out,
		"], series: %zu, left_out: %zu, points: %zu, k: %zu, iterations: %zu, error: %g}",
		report->series, report->left_out, report->points, report->k, report->iterations,
		report->error);
	buf_char(out, '\n');
}

static const char *const moved[] = {"@time", "series moved=series", "direction",
	"change %=change_percent", "last good=suspects.from", "first bad=suspects.to",
	"commit before=commit_before", "commit after=commit_after", "regression", NULL};
static const char *const shared[] = {"label", "share", "overall", NULL};
static const char *const members[] = {"test", "metric", NULL};

static const struct document_section sections[] = {
	{NULL, NULL, moved},
	{"they share", "shared", shared},
	{"series", "members", members},
	{0},
};

static void print_text(const json_t *document, const struct shape_report *report, struct cli *cli)
{
	const json_t *clusters = json_object_get(document, "clusters");

	for (size_t i = 0; i < json_array_size(clusters); i++) {
		json_t *cluster = json_array_get(clusters, i);
		json_t *list = json_object_get(cluster, "members");
		size_t count = json_array_size(list);

		for (size_t n = count; n > MEMBERS_SHOWN; n--)
			json_array_remove(list, n - 1);
		document_print(cli->arena, cluster, sections, cli->out);
		if (count > MEMBERS_SHOWN)
			fprintf(cli->out, "and %zu more\n", count - MEMBERS_SHOWN);
		putc('\n', cli->out);
	}
	fprintf(cli->out, "%zu series of %zu points, %zu clusters, %zu of them moved",
		report->series, report->points, report->k, report->count);
	if (report->left_out > 0)
		fprintf(cli->out, "; %zu series left out, they have too few points",
			report->left_out);
	putc('\n', cli->out);
}

static void find(struct cluster *cluster, struct cli *cli)
{
	const struct cluster_options *options = cli->options;
	struct team team = {.threads = (size_t)cluster->ask.config->agent.jobs};
	struct parallel parallel = team_parallel(&team);
	struct shape_report report;
	struct buf text = {0};
	json_t *document;

	shapes_find(cluster->shapes, &options->shapes, &parallel, cli->arena, &report);
	put_json(&text, &report);
	if (options->flags.output == OUTPUT_TEXT) {
		document = json_loadb(text.data, text.length, 0, NULL);
		print_text(document, &report, cli);
		json_decref(document);
		buf_clear(&text);
	}
	text_flush(&text, cli->out);
}

static int run(struct cli *cli)
{
	const struct cluster_options *options = cli->options;
	const struct detection_flags none = {0};
	struct cluster cluster = {0};
	int code;

	if (!command_context_prepare(
		    &cluster.ask, cli, &options->selection, &none, &(struct strings){0}, &code))
		return code;
	cluster.shapes = shapes_new();
	struct gather gather = {.tests = cluster.ask.tests,
		.count = cluster.ask.count,
		.config = cluster.ask.config,
		.prepare = prepare,
		.ready = ready,
		.context = &cluster};

	if (gather_run(&gather, cli))
		find(&cluster, cli);
	shapes_free(cluster.shapes);
	return gather.code;
}

const struct command cluster_command = {
	.name = "cluster",
	.arguments = "[TEST|GROUP...]",
	.summary = "Find series that changed together",
	.details = "Aligns all series of the tests on one time axis, normalises them (mean 0, "
		   "deviation 1) and clusters them by k-means. Reports each cluster whose centroid "
		   "is a step: its time, the number of its series and what they have in common.\n"
		   "\n"
		   "Exits with 3 if a test could not be read.",
	.parts = cluster_parts,
	.options_size = sizeof(struct cluster_options),
	.run = run,
};
