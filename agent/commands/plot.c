/*
 * `plot`: a series as a picture in a file, or on the terminal. Like `why` it reads the test's data
 * and the agent's state, and writes nothing but the picture.
 */
#include "agent/commands/plot.h"

#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "agent/analysis/select.h"
#include "agent/base/output_file.h"
#include "agent/commands/command_context.h"
#include "agent/commands/commands.h"
#include "agent/commands/gather.h"
#include "agent/commands/state_file.h"
#include "agent/monitor/plotting.h"
#include "agent/report/plot_draw.h"
#include "agent/report/table.h"
#include "agent/store/store.h"

static const char *const themes[] = {"light", "dark", "system", NULL};

struct picture_options {
	const char *output, *state_file;
	int scale, theme;
	int64_t width, height;
	bool cleaned;
};

static const struct field picture_fields[] = {
	OPTION_STRING(struct picture_options, output, NULL,
		"output file, FILE.svg or FILE.png; default: the terminal", .letter = 'o',
		.metavar = "FILE"),
	OPTION_CHOICE(struct picture_options, scale, "auto", plot_scale_names,
		"value axis: fitted to the points, from zero, logarithmic, or in percent of the "
		"first level"),
	OPTION_BOOL(struct picture_options, cleaned,
		"remove daily and weekly cycles and what another series explains"),
	OPTION_INT(struct picture_options, width, "960", 16, PLOT_MOST_PIXELS,
		"picture size in pixels"),
	OPTION_INT(struct picture_options, height, "400", 16, PLOT_MOST_PIXELS,
		"picture size in pixels"),
	OPTION_CHOICE(struct picture_options, theme, "light", themes,
		"colours; system: an SVG file follows the reader's settings"),
	OPTION_STRING(struct picture_options, state_file, NULL, STATE_FILE_HELP, .metavar = "PATH"),
	{0},
};

struct plot_options {
	struct picture_options picture;
	struct selection_flags range;
};

static const struct option_part parts[] = {
	{picture_fields, offsetof(struct plot_options, picture)},
	{range_fields, offsetof(struct plot_options, range)},
	{0},
};

enum format { FORMAT_TEXT, FORMAT_SVG, FORMAT_PNG };

struct plotter {
	struct cli *cli;
	const struct picture_options *options;
	enum format format;
	const struct test *test;
	struct plotting plotting;
	int code;
};

void plot_print(const struct cli *cli, const struct plot *plot)
{
	struct plot_terminal terminal = {.color = cli->color};
	struct winsize size;
	struct buf out = {0};

	if (ioctl(fileno(cli->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		terminal.columns = size.ws_col;
	plot_text(plot, &terminal, &out);
	text_flush(&out, cli->out);
}

/* Each line by itself: there is not much room on a terminal. */
static void print_lines(const struct plotter *plotter, const struct plot *plot, struct arena *arena)
{
	for (size_t i = 0; i < plot->line_count; i++) {
		const struct plot_line *line = &plot->lines[i];
		struct plot one = *plot;

		one.lines = line;
		one.line_count = 1;
		if (plot->line_count > 1) {
			one.title = arena_printf(arena, "%s %s", plotter->test->name, line->name);
			one.unit = line->unit;
			one.direction = line->direction;
			fputs(i ? "\n" : "", plotter->cli->out);
		}
		plot_print(plotter->cli, &one);
	}
}

static bool draw_file(const struct plotter *plotter, const struct plot *plot, struct error *error)
{
	const struct picture_options *options = plotter->options;
	const struct plot_style style = {.width = (unsigned)options->width,
		.height = (unsigned)options->height,
		.theme = (enum plot_theme)options->theme};
	struct buf out = {0};
	bool drawn = true;

	if (plotter->format == FORMAT_PNG)
		drawn = plot_png(plot, &style, &out, error);
	else
		plot_svg(plot, &style, &out);
	drawn = drawn && output_write(options->output, out.data, out.length, error);
	buf_free(&out);
	return drawn;
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	const struct plotter *plotter = task->result;
	struct query *query = &task->query;
	struct plot *plot = arena_alloc(query->arena, sizeof *plot);

	task->result = plot;
	if (!plotting_make(query->arena, task->test, &query->data, task->companions,
		    &plotter->plotting, scratch, plot, error))
		return false;
	plot->scale = (enum plot_scale)plotter->options->scale;
	return true;
}

static void prepare(void *context, struct task *task)
{
	struct plotter *plotter = context;

	(void)plotting_query(&plotter->plotting, task);
	task->result = plotter;
	task->work = work;
}

static void ready(void *context, struct task *const *tasks)
{
	struct plotter *plotter = context;
	const struct task *task = tasks[0];
	struct error error;

	if (!gather_log(task))
		return;
	if (plotter->format == FORMAT_TEXT)
		print_lines(plotter, task->result, task->query.arena);
	else if (!draw_file(plotter, task->result, &error))
		plotter->code = cli_fail(&error);
}

static int draw(struct plotter *plotter, const struct config *config, struct error *error)
{
	struct store_list *list = store_list_new(NULL, NULL);
	bool there, read;
	struct gather gather = {.tests = &plotter->test,
		.count = 1,
		.config = config,
		.judges = true,
		.prepare = prepare,
		.ready = ready,
		.context = plotter};

	plotting_ask(list, plotter->test, plotter->cli->now);
	read = state_list(plotter->cli, plotter->options->state_file, list, &there, error);
	if (read && there)
		plotting_state(&plotter->plotting, list);
	if (!read)
		return cli_fail(error);
	gather_run(&gather, plotter->cli);
	return exit_stronger(gather.code, plotter->code);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), least = strlen(end);

	return length > least && strcasecmp(text + length - least, end) == 0;
}

/* All that can be wrong before the configuration is read. */
static bool parse(struct plotter *plotter, struct selection *range, struct error *error)
{
	const struct plot_options *options = plotter->cli->options;
	const char *output = options->picture.output;

	plotter->options = &options->picture;
	plotter->format = !output                     ? FORMAT_TEXT
			  : ends_with(output, ".svg") ? FORMAT_SVG
						      : FORMAT_PNG;
	if (plotter->format == FORMAT_PNG && !ends_with(output, ".png"))
		return error_set(error, ERROR_USAGE,
			"--output: %.200s: expected a name ending in .svg or .png", output);
	return (!output || output_check(output, error) || error_prefix(error, "--output: ")) &&
	       selection_resolve(&options->range, plotter->cli->now, range, error);
}

static int run(struct cli *cli)
{
	struct plotter plotter = {.cli = cli};
	struct selection range;
	struct config *config;
	struct error error;

	if (!parse(&plotter, &range, &error))
		return cli_fail(&error);
	config = cli_config(cli);
	if (!config)
		return EXIT_USAGE;
	plotter.test = single_test(cli, *cli->arguments.items, &error);
	plotter.plotting = (struct plotting){
		.metric = cli->arguments.count > 1 ? cli->arguments.items[1] : NULL,
		.branch = range.branch,
		.since = range.since,
		.until = range.until,
		.cleaned = plotter.options->cleaned,
		.now = cli->now,
		.config = config};
	return plotter.test ? draw(&plotter, config, &error) : cli_fail(&error);
}

const struct command plot_command = {
	.name = "plot",
	.arguments = "TEST [METRIC]",
	.summary = "Plot a metric on the terminal or into an SVG or PNG file",
	.details = "Plots the test's points and levels with the changes recorded by the agent and "
		   "their triage; changes found only by a detection on these points are marked as "
		   "such. Without a state, plots the detected changes. Silences and gaps in the "
		   "data are shown as well. METRIC may be the name of a series, such as "
		   "'p99{region=\"eu\"}'; without METRIC, all series of the test are plotted.\n"
		   "\n"
		   "On a terminal, the plot uses its full width and braille characters. PNG "
		   "requires Cairo and a font (Debian: libcairo2, fonts-dejavu-core).\n"
		   "\n"
		   "The exit code is 0, 2, 3 if the data is unavailable or the plot cannot be "
		   "drawn, or 4.",
	.misuse = "plot takes a test and a metric; list the metrics of a test with hunter-c "
		  "list-metrics TEST",
	.least = 1,
	.most = 2,
	.parts = parts,
	.options_size = sizeof(struct plot_options),
	.run = run,
};
