/*
 * One test after the other, each with up to three attempts; failures are not queued, as the next
 * run of the command compares again.
 */
#include "agent/commands/annotations.h"

#include <stdio.h>
#include <string.h>

#include "agent/analysis/annotation_tags.h"
#include "agent/analysis/announce.h"
#include "agent/base/log.h"
#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/commands/post.h"
#include "notifiers/grafana.h"

struct annotations {
	struct arena *arena;
	const struct config *config;
	const struct receiver *receiver;
	int64_t now;              /* ms */
	struct grafana_job *jobs; /* of a test each */
	size_t count;
	/* While sending. */
	struct error error;
	struct grafana_result result;
};

struct annotations *annotations_new(
	const struct config *config, const char *option, const struct cli *cli, struct error *error)
{
	const struct receiver *receiver =
		post_receiver(config, grafana_notifier.plugin.name, option, error);
	struct annotations *annotations;

	if (!receiver)
		return NULL;
	error->kind = ERROR_NONE;
	if (receiver->unset)
		error_set(error, ERROR_USAGE, "%s: grafana: ${%.80s} is not set", option,
			receiver->unset);
	else if (!grafana_notifier.plugin.check(receiver->options, error))
		(void)error_prefix(error, "%s: grafana: ", option);
	if (error->kind != ERROR_NONE)
		return NULL;
	annotations = arena_alloc(cli->arena, sizeof *annotations);
	*annotations = (struct annotations){
		.arena = cli->arena, .config = config, .receiver = receiver, .now = cli->now};
	return annotations;
}

/* A change with its links and tags. */
static struct announcement item_of(struct annotations *annotations, const struct analysis *analysis,
	const struct findings *findings, const struct change *change, const char *branch)
{
	struct arena *arena = annotations->arena;
	struct change_record record = {
		.item = announce_change(arena, analysis->test->name, analysis->test->environment,
			findings->series, change)};

	findings_basis(arena, findings, change, &record.item);
	record.series = arena_strdup(arena, findings->series->identity);
	announce_links(arena, annotations->config, &record);
	record.item.tags = annotation_tags(arena, analysis->test, record.item.metric, branch);
	return record.item;
}

void annotations_add(
	struct annotations *annotations, const struct analysis *analysis, const char *branch)
{
	const struct dataset *data = analysis->data;
	struct grafana_job job = {.test = analysis->test->name, .from = INT64_MAX, .to = INT64_MIN};
	struct announcement *items;
	size_t count = 0;

	for (size_t i = 0; annotations && i < data->count; i++) {
		const struct axis *axis = data->series[i].axis;

		count += analysis->findings[i].count;
		if (axis->n > 0) {
			job.from = axis->times[0] < job.from ? axis->times[0] : job.from;
			job.to = axis->times[axis->n - 1] > job.to ? axis->times[axis->n - 1]
								   : job.to;
		}
	}
	if (job.from > job.to) /* no points */
		return;
	job.items = items = arena_array(annotations->arena, count + 1, sizeof *items);
	for (size_t i = 0; i < data->count; i++)
		for (size_t j = 0; j < analysis->findings[i].count; j++)
			items[job.count++] = item_of(annotations, analysis, &analysis->findings[i],
				&analysis->findings[i].changes[j], branch);
	annotations->jobs =
		arena_grow(annotations->arena, annotations->jobs, annotations->count, sizeof job);
	annotations->jobs[annotations->count++] = job;
}

/* Does the job; false with annotations->error. */
static bool do_job(struct annotations *annotations, const struct grafana_job *job)
{
	struct buf payload = {0};
	struct post post = {.receiver = annotations->receiver, .destination = "", .key = ""};

	grafana_put_job(&payload, annotations->receiver->options, job);
	post.payload = payload.data;
	post_all(&post, 1, annotations->arena, annotations->now);
	buf_free(&payload);
	annotations->error = post.error;
	return post.error.kind == ERROR_NONE &&
	       grafana_read_receipt(post.receipt, &annotations->result);
}

static int fail(struct annotations *annotations, const char *test)
{
	if (test)
		(void)error_prefix(&annotations->error, "test \"%s\": ", test);
	return cli_fail(&annotations->error);
}

int annotations_send(struct annotations *annotations)
{
	int code = EXIT_NOTHING;

	for (size_t i = 0; i < annotations->count; i++) {
		const struct grafana_job *job = &annotations->jobs[i];
		const struct grafana_result *result = &annotations->result;

		if (do_job(annotations, job))
			log_event(LEVEL_INFO, "annotated", LOG_TEXT("test", job->test),
				LOG_INT("changes", job->count), LOG_INT("created", result->created),
				LOG_INT("changed", result->changed),
				LOG_INT("removed", result->removed));
		else
			code = exit_stronger(code, fail(annotations, job->test));
	}
	return code;
}

struct remove_options {
	bool force;
};

static const struct field remove_fields[] = {
	OPTION_BOOL(struct remove_options, force, "do not ask for confirmation"),
	{0},
};

static const struct option_part remove_parts[] = {{remove_fields, 0}, {0}};

static bool confirmed(const struct annotations *annotations, size_t count, const struct cli *cli)
{
	const struct endpoint *endpoint = annotations->receiver->options;
	char answer[16] = "";

	fprintf(cli->out, "Remove %zu%s annotation%s from %s? [y/N] ", count,
		count == GRAFANA_MOST ? " or more" : "", cli_plural(count),
		transfer_shown_url(annotations->arena, endpoint, endpoint->url));
	fflush(cli->out);
	if (!fgets(answer, sizeof answer, stdin))
		fputc('\n', cli->out);
	answer[strcspn(answer, "\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

/* Those of a test, or all. */
static int remove_of(
	struct annotations *annotations, const char *test, bool force, const struct cli *cli)
{
	struct grafana_job job = {.test = test,
		.from = WHEN_ALWAYS,
		.to = WHEN_NEVER,
		.counts = true,
		.removes = true};
	size_t removed = 0;

	if (!do_job(annotations, &job))
		return fail(annotations, test);
	if (annotations->result.found > 0 && !force &&
		!confirmed(annotations, annotations->result.found, cli))
		return EXIT_NOTHING;
	job.counts = false;
	do {
		if (annotations->result.found == 0)
			break;
		if (!do_job(annotations, &job))
			return fail(annotations, test);
		removed += annotations->result.removed;
	} while (annotations->result.found == GRAFANA_MOST && annotations->result.removed > 0);
	log_event(LEVEL_INFO, removed > 0 ? "annotations removed" : "no annotations found",
		LOG_TEXT("test", test ? test : ""), LOG_INT("removed", removed));
	return EXIT_NOTHING;
}

static int run(struct cli *cli)
{
	const struct remove_options *options = cli->options;
	const struct config *config = cli->config;
	struct annotations *annotations = NULL;
	const struct test *const *tests = NULL;
	int code = EXIT_NOTHING;
	struct error error = {0};
	size_t count = 0;

	if (cli->arguments.count == 0 ||
		config_select(config, &cli->arguments, cli->arena, &tests, &count, &error))
		annotations = annotations_new(config, "remove-annotations", cli, &error);
	if (!annotations)
		code = cli_fail(&error);
	else if (cli->arguments.count == 0)
		code = remove_of(annotations, NULL, options->force, cli);
	for (size_t i = 0; annotations && i < count; i++)
		code = exit_stronger(
			code, remove_of(annotations, tests[i]->name, options->force, cli));
	return code;
}

const struct command remove_annotations_command = {
	.name = "remove-annotations",
	.arguments = "[TEST|GROUP...]",
	.summary = "Remove hunter-c's annotations from Grafana",
	.details =
		"Removes the annotations written by analyze --update-grafana and the agent, after "
		"confirmation. Without arguments, removes those of all tests, including tests no "
		"longer configured. Annotations are matched by the tags of the section grafana.",
	.configured = true,
	.parts = remove_parts,
	.options_size = sizeof(struct remove_options),
	.run = run,
};
