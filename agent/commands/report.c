/*
 * `report`: the changes of tests since a date, with their plots, as a page or as Markdown. Like
 * `plot` it reads the tests' data and the agent's state, and writes nothing but its files.
 */
#include "agent/commands/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/analysis/announce.h"
#include "agent/analysis/select.h"
#include "agent/base/output_file.h"
#include "agent/base/when.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/commands/state_file.h"
#include "agent/monitor/plotting.h"
#include "agent/report/plot_draw.h"
#include "agent/report/plot_view.h"
#include "agent/report/table.h"
#include "agent/store/store.h"
#include "notifiers/text.h"

struct report_flags {
	const char *html, *markdown, *title, *state_file;
};

static const struct field report_fields[] = {
	OPTION_STRING(struct report_flags, html, NULL,
		"write a self-contained HTML page; - is standard output", .metavar = "FILE.html"),
	OPTION_STRING(struct report_flags, markdown, NULL,
		"write Markdown, with the plots beside it as FILE-1.svg etc.; - is standard "
		"output, without plots",
		.metavar = "FILE.md"),
	OPTION_STRING(struct report_flags, title, "Performance changes", "title of the report",
		.metavar = "TEXT"),
	OPTION_STRING(struct report_flags, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	{0},
};

/* Of changes, where other commands choose points. */
static const struct field when_fields[] = {
	OPTION_STRING(
		struct selection_flags, since, NULL, "changes since this time", .metavar = "DATE"),
	OPTION_STRING(
		struct selection_flags, until, NULL, "changes before this time", .metavar = "DATE"),
	OPTION_STRING(struct selection_flags, branch, NULL,
		"changes on this branch; default: $BRANCH", .variable = "BRANCH",
		.metavar = "NAME"),
	{0},
};

struct report_options {
	struct report_flags report;
	struct selection_flags range;
};

static const struct option_part parts[] = {
	{report_fields, offsetof(struct report_options, report)},
	{when_fields, offsetof(struct report_options, range)},
	{0},
};

enum {
	BEFORE = 30,         /* points before --since that a plot shows at least */
	SERIES_MOST = 10000, /* of a test */
	NEW = 100000,        /* the weight of a change without a size */
	WORSE = 1000000,
};

struct maker {
	struct cli *cli;
	const struct report_flags *flags;
	const struct config *config;
	const char *state; /* the file; NULL: there is none */
	struct plotting plotting;
	struct report_document document;
	size_t ordinals;
	int code; /* for errors that concern no test */
};

/* Of rows, and of series, which begin with their rank. */
static int compare_ranks(const void *a, const void *b)
{
	const struct report_rank *left = a, *right = b;

	return left->weight != right->weight
		       ? (left->weight < right->weight) - (left->weight > right->weight)
		       : (left->ordinal > right->ordinal) - (left->ordinal < right->ordinal);
}

static int compare_plots(const void *a, const void *b)
{
	return compare_ranks(
		*(const struct report_plot *const *)a, *(const struct report_plot *const *)b);
}

/* ---- a test, on a worker ---- */

/* A series with its changes; the most important ones are drawn. */
struct listed {
	struct report_plot plot;
	const struct plot_line *line;
	struct report_row *rows;
	size_t count;
};

struct job {
	const struct maker *maker;
	struct plotting plotting;
	struct store_list *list; /* from the state, or NULL */
	struct listed *series;
	size_t count;
};

static double weight_of(const struct announcement *item)
{
	static const double weights[] = {0, 0, WORSE};
	double size = fabs(item->change.size);

	return (isnan(size) || size > NEW ? NEW : size) +
	       (item->direction ? weights[1 + announcement_verdict(item)] : WORSE / 2);
}

static void add_row(const struct job *job, const struct task *task, struct listed *listed,
	const struct plot_change *change)
{
	struct change_record record = *change->record;
	bool known = change->id > 0;
	struct arena *arena = task->query.arena;
	const char *word = plot_state_text(change);

	announce_links_by(arena, task->test, &record);
	if (known)
		announce_page(arena, job->maker->config, &record.item);
	if (!*word)
		word = record.ends != 0 ? "the end of another" : triage_state_names[change->triage];
	listed->rows = arena_grow(arena, listed->rows, listed->count, sizeof *listed->rows);
	listed->rows[listed->count++] = (struct report_row){.rank.weight = weight_of(&record.item),
		.item = record.item,
		.word = job->plotting.has_state ? word : NULL,
		.person = known && triage_at(&record.triage, job->plotting.now) != TRIAGE_OPEN
				  ? record.triage.person
				  : NULL};
	listed->plot.rank.weight = fmax(listed->plot.rank.weight, weight_of(&record.item));
}

/* The points and changes of the view: with some before the date, so that the old level is seen. */
static void cut(const struct report_document *document, struct arena *arena, struct plot_line *line)
{
	int64_t since = document->since, until = document->until;
	size_t first = 0, end = line->n, least;
	int64_t last = line->n > 0 ? line->times[line->n - 1] : 0;
	struct column *columns = arena_array(arena, line->column_count, sizeof *columns);
	struct plot_change *changes = arena_array(arena, line->change_count, sizeof *changes);
	size_t count = 0;

	if (until != WHEN_NEVER && last > until)
		last = until;
	while (end > 0 && line->times[end - 1] > last)
		end--;
	if (since != WHEN_ALWAYS) {
		while (first < end && line->times[first] < since)
			first++;
		least = first > BEFORE ? first - BEFORE : 0;
		while (first > 0 && line->times[first - 1] >= since - (last - since) / 2)
			first--;
		first = first < least ? first : least;
	}
	line->n = line->total = end - first;
	line->times += first;
	line->values += first;
	for (size_t c = 0; c < line->column_count; c++)
		columns[c] =
			(struct column){line->columns[c].name, line->columns[c].values + first};
	for (size_t i = 0; i < line->change_count && line->n > 0; i++)
		if (line->changes[i].time >= line->times[0] &&
			line->changes[i].time <= line->times[line->n - 1])
			changes[count++] = line->changes[i];
	line->columns = columns;
	line->changes = changes;
	line->change_count = count;
}

static void draw(
	const struct job *job, struct arena *arena, const struct plot *all, struct listed *listed)
{
	const struct plot_style style = {.theme = PLOT_SYSTEM};
	struct report_plot *out = &listed->plot;
	struct plot_line line = *listed->line;
	struct buf text = {0};
	struct plot plot;

	cut(&job->maker->document, arena, &line);
	plot = (struct plot){.title = arena_printf(arena, "%s %s", out->test, out->series),
		.unit = line.unit,
		.direction = line.direction,
		.lines = &line,
		.line_count = 1,
		.spans = all->spans,
		.span_count = all->span_count};
	if (line.n > 1) {
		plot.from = line.times[0];
		plot.to = line.times[line.n - 1];
	}
	plot_reduce(arena, &plot, REPORT_COLUMNS);
	plot_put_json(&text, &plot);
	out->json = buf_steal(&text);
	plot_svg(&plot, &style, &text);
	out->svg = buf_steal(&text);
}

static void list_series(struct job *job, const struct task *task, const struct plot *plot)
{
	const struct report_document *document = &job->maker->document;

	job->series = arena_array(task->query.arena, plot->line_count, sizeof *job->series);
	for (size_t l = 0; l < plot->line_count; l++) {
		const struct plot_line *line = &plot->lines[l];
		struct listed *listed = &job->series[job->count];

		*listed = (struct listed){
			.plot = {.rank.ordinal = l, .test = task->test->name, .series = line->name},
			.line = line};
		for (size_t i = 0; i < line->change_count; i++) {
			const struct plot_change *change = &line->changes[i];

			if (change->time >= document->since && change->time < document->until &&
				!change->withdrawn)
				add_row(job, task, listed, change);
		}
		job->count += listed->count > 0;
	}
	qsort(job->series, job->count, sizeof *job->series, compare_ranks);
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct job *job = task->result;
	struct query *query = &task->query;
	struct plot *plot = arena_alloc(query->arena, sizeof *plot);

	job->plotting.since = WHEN_ALWAYS;
	job->plotting.until = WHEN_NEVER;
	if (!plotting_make(query->arena, task->test, &query->data, task->companions, &job->plotting,
		    scratch, plot, error))
		return false;
	list_series(job, task, plot);
	for (size_t i = 0; i < job->count && i < REPORT_PLOTS; i++)
		draw(job, query->arena, plot, &job->series[i]);
	return true;
}

/* ---- all tests ---- */

static void read_state(struct maker *maker, const struct test *test, struct job *job)
{
	struct error error;

	job->list = store_list_new(NULL, NULL);
	plotting_ask(job->list, test, maker->cli->now);
	if (store_tx(maker->state, STORE_READ, &job->list->call, &error)) {
		plotting_state(&job->plotting, job->list);
		return;
	}
	if (maker->code == EXIT_NOTHING)
		maker->code = cli_fail(&error);
}

static void prepare(void *context, struct task *task)
{
	struct maker *maker = context;
	struct job *job = arena_alloc(task->query.arena, sizeof *job);
	int64_t since = maker->document.since, until = maker->document.until;
	int64_t end = until < maker->cli->now ? until : maker->cli->now;

	*job = (struct job){.maker = maker, .plotting = maker->plotting};
	if (maker->state)
		read_state(maker, task->test, job);
	if (since != WHEN_ALWAYS)
		job->plotting.since = since - (end - since) / 2;
	(void)plotting_query(&job->plotting, task);
	task->result = job;
	task->work = work;
}

static void free_plot(struct report_plot *plot)
{
	free(plot->json);
	free(plot->svg);
	plot->json = plot->svg = NULL;
}

/* Copies a series, and keeps the most important plots. */
static void take_series(struct maker *maker, const struct listed *listed)
{
	struct report_document *document = &maker->document;
	struct arena *arena = maker->cli->arena;
	struct report_plot *plot = arena_alloc(arena, sizeof *plot);

	*plot = listed->plot;
	plot->series = arena_strdup(arena, plot->series);
	plot->rank.ordinal = maker->ordinals++;
	for (size_t i = 0; i < listed->count; i++) {
		struct report_row *row;

		document->rows =
			arena_grow(arena, document->rows, document->count, sizeof *document->rows);
		row = &document->rows[document->count];
		*row = listed->rows[i];
		row->rank.ordinal = document->count++;
		row->item = announce_copy(arena, &row->item);
		row->person = arena_strdup(arena, row->person);
		row->plot = plot;
	}
	if (!plot->svg)
		return;
	document->plots[document->plot_count++] = plot;
	qsort(document->plots, document->plot_count, sizeof *document->plots, compare_plots);
	if (document->plot_count > REPORT_PLOTS)
		free_plot(document->plots[--document->plot_count]);
}

static void ready(void *context, struct task *const *tasks)
{
	struct job *job = tasks[0]->result;

	if (gather_log(tasks[0]))
		for (size_t i = 0; i < job->count; i++)
			take_series(context, &job->series[i]);
	if (job && job->list)
		store_call_free(&job->list->call);
}

/* ---- files ---- */

static bool is_stdout(const char *path)
{
	return strcmp(path, "-") == 0;
}

static bool write_document(
	const struct maker *maker, const char *path, struct buf *text, struct error *error)
{
	bool written = true;

	if (is_stdout(path))
		text_flush(text, maker->cli->out);
	else
		written = output_write(path, text->data, text->length, error);
	buf_free(text);
	return written;
}

/* Of Markdown the pictures first: a document that is there has them. Their names are the file's
 * without its ".md"; on standard output it has none. */
static bool write_report(struct maker *maker, struct error *error)
{
	struct report_document *document = &maker->document;
	struct arena *arena = maker->cli->arena;
	const char *path = maker->flags->markdown, *html = maker->flags->html;
	const char *slash = path ? strrchr(path, '/') : NULL,
		   *dot = path ? strrchr(path, '.') : NULL;
	struct buf text = {0};

	if (html) {
		report_html(&text, document);
		if (!write_document(maker, html, &text, error))
			return false;
	}
	if (!path)
		return true;
	if (!is_stdout(path))
		document->base = dot && dot > (slash ? slash + 1 : path)
					 ? arena_strndup(arena, path, (size_t)(dot - path))
					 : path;
	for (size_t i = 0; i < document->plot_count && document->base; i++) {
		const struct report_plot *plot = document->plots[i];

		if (!output_write(arena_printf(arena, "%s-%s.svg", document->base, plot->number),
			    plot->svg, strlen(plot->svg), error))
			return false;
	}
	report_markdown(&text, document);
	return write_document(maker, path, &text, error);
}

static int make(struct maker *maker, const struct test *const *tests, size_t count)
{
	struct report_document *document = &maker->document;
	struct gather gather = {.tests = tests,
		.count = count,
		.config = maker->config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = maker};
	struct error error;

	if (!gather_run(&gather, maker->cli))
		return gather.code;
	if (maker->code != EXIT_NOTHING)
		return maker->code;
	if (document->count > 0)
		qsort(document->rows, document->count, sizeof *document->rows, compare_ranks);
	for (size_t i = 0; i < document->plot_count; i++)
		document->plots[i]->number = arena_printf(maker->cli->arena, "%zu", i + 1);
	document->tests = count;
	document->failed = gather.failed;
	return write_report(maker, &error) ? gather.code
					   : exit_stronger(gather.code, cli_fail(&error));
}

static bool check_file(const char *flag, const char *path, struct error *error)
{
	if (!path || is_stdout(path) || output_check(path, error))
		return true;
	return error_prefix(error, "--%s: ", flag);
}

/* All that can be wrong before the configuration is read. */
static bool check(struct maker *maker, struct error *error)
{
	const struct report_flags *flags = maker->flags;

	if (!flags->html && !flags->markdown)
		return error_set(
			error, ERROR_USAGE, "report needs --html FILE, --markdown FILE, or both");
	if (flags->html && flags->markdown && strcmp(flags->html, flags->markdown) == 0)
		return error_set(error, ERROR_USAGE,
			"--html and --markdown: both would be written to %.200s", flags->html);
	return check_file("html", flags->html, error) &&
	       check_file("markdown", flags->markdown, error);
}

static int run(struct cli *cli)
{
	const struct report_options *options = cli->options;
	struct maker *maker = arena_alloc(cli->arena, sizeof *maker);
	const struct test *const *tests;
	struct selection range;
	struct config *config;
	struct error error;
	size_t count;
	int code;

	*maker = (struct maker){.cli = cli, .flags = &options->report};
	if (!check(maker, &error) || !selection_resolve(&options->range, cli->now, &range, &error))
		return cli_fail(&error);
	config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	maker->config = config;
	maker->plotting = (struct plotting){.branch = range.branch,
		.since = WHEN_ALWAYS,
		.until = WHEN_NEVER,
		.columns = PLOTTING_WHOLE, /* they are reduced once the view is known */
		.most = SERIES_MOST,
		.now = cli->now,
		.config = config};
	maker->state = options->report.state_file;
	if (!maker->state && store_is_there(config->agent.state))
		maker->state = config->agent.state;
	maker->document = (struct report_document){.title = maker->flags->title,
		.now = cli->now,
		.since = range.since,
		.until = range.until,
		.branch = range.branch,
		.asked = cli->arguments,
		.has_state = maker->state != NULL};
	if (!config_select(config, &cli->arguments, cli->arena, &tests, &count, &error) ||
		(maker->state && !store_expect(maker->state, &error)))
		code = cli_fail(&error);
	else
		code = make(maker, tests, count);
	for (size_t i = 0; i < maker->document.plot_count; i++)
		free_plot(maker->document.plots[i]);
	return code;
}

const struct command report_command = {
	.name = "report",
	.arguments = "[TEST|GROUP...]",
	.summary = "Write a report of changes with plots, as HTML or Markdown",
	.details = "For CI artifacts, tickets and releases. --html FILE writes one self-contained "
		   "page: a table of the changes, the worst first, and a zoomable plot of each "
		   "series, with static images for print and where scripts are disabled. "
		   "--markdown FILE writes the same for a wiki or a merge request, with SVG files "
		   "beside it. Without arguments, reports all tests.\n"
		   "\n"
		   "Reports the changes recorded by the agent with their triage; without a state, "
		   "the detected changes. Withdrawn changes are omitted. Lists the 1000 most "
		   "important changes and plots the 50 most important series; the report states "
		   "what was omitted.\n"
		   "\n"
		   "The exit code is 0 whatever has changed, 2, 3 if some data is unavailable (the "
		   "report names these tests) or a file cannot be written, or 4.",
	.parts = parts,
	.options_size = sizeof(struct report_options),
	.run = run,
};
