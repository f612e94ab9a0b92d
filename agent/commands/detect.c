/*
 * `hunter-c detect`, the plain filter: numbers in, change points out, no configuration.
 *
 * Files are processed one after another, each in its own format. An error costs that file, or
 * with JSON lines that line, and sets the exit code.
 */
#include "agent/commands/detect.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/analysis/line_batch.h"
#include "agent/base/cpus.h"
#include "agent/cli/detection_flags.h"
#include "agent/commands/commands.h"
#include "agent/model/json_put.h"

enum { MAX_JOBS = 256 };

struct detect_options {
	struct detection_flags detection;
	int input, output; /* input: enum detect_form */
	const char *column, *delimiter;
	int64_t jobs, max_line;
};

static const char *const inputs[] = {"auto", "text", "csv", "jsonl", NULL};
static const char *const outputs[] = {"auto", "text", "jsonl", NULL};
static const enum detect_form output_forms[] = {DETECT_AUTO, DETECT_TEXT, DETECT_JSONL};

static const struct field detect_fields[] = {
	OPTION_CHOICE(struct detect_options, input, "auto", inputs,
		"input format; auto uses the file extension (csv, tsv, jsonl, ndjson), else csv "
		"with --column, jsonl if the first character is {, else text"),
	OPTION_STRING(struct detect_options, column, NULL, "CSV column, by name or number (from 1)",
		.metavar = "NAME|INDEX"),
	OPTION_STRING(struct detect_options, delimiter, NULL,
		"CSV delimiter: a character or \"tab\" (default: a comma; a tab for .tsv files)",
		.metavar = "CHAR"),
	OPTION_CHOICE(struct detect_options, output, "auto", outputs,
		"output format; auto: jsonl for jsonl input, else text"),
	OPTION_INT(struct detect_options, jobs, "0", 0, MAX_JOBS,
		"number of threads for jsonl; 0: one per usable CPU", .letter = 'j'),
	OPTION_BYTES(struct detect_options, max_line, "16MiB", 1024, 1 << 30,
		"maximum line length; longer lines are errors"),
	{0},
};

static const struct option_part detect_parts[] = {
	{detect_fields, 0},
	{detection_flag_fields, offsetof(struct detect_options, detection)},
	{0},
};

/* ---- output: text is for people and awk, with six digits; JSON numbers are exact ---- */

void detect_put_text(struct buf *out, const char *prefix, size_t prefix_length,
	const struct change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct change *change = &changes[i];
		if (prefix) {
			buf_append(out, prefix, prefix_length);
			buf_char(out, ':');
		}
		buf_printf(out, "%zu\t%.6g\t%.6g\t%.6g\t%.6g\n", change->index, change->pvalue,
			change->mean_before, change->mean_after, change_percent(change));
	}
}

static void put_change(struct buf *out, const struct change *change)
{
	buf_printf(out, "{\"index\": %zu", change->index);
	json_put_number(out, "pvalue", change->pvalue);
	json_put_number(out, "mean_before", change->mean_before);
	json_put_number(out, "mean_after", change->mean_after);
	json_put_number(out, "stddev_before", change->stddev_before);
	json_put_number(out, "stddev_after", change->stddev_after);
	json_put_number(out, "forward_change_percent", change_percent(change));
	json_put_number(out, "magnitude", change->magnitude);
	json_put_levels(out, change);
	buf_printf(out, ", \"place_from\": %zu, \"place_to\": %zu}", change->place_from,
		change->place_to);
}

static void put_id(struct buf *out, const char *id, size_t id_length)
{
	buf_text(out, "{\"id\": ");
	if (id)
		buf_json_value(out, id, id_length);
	else
		buf_text(out, "null");
}

void detect_put_json(struct buf *out, const char *id, size_t id_length,
	const struct change *changes, size_t count)
{
	put_id(out, id, id_length);
	buf_text(out, ", \"change_points\": [");
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_text(out, ", ");
		put_change(out, &changes[i]);
	}
	buf_text(out, "]}\n");
}

void detect_put_problem(struct buf *out, const char *id, size_t id_length, const char *problem)
{
	put_id(out, id, id_length);
	buf_text(out, ", \"error\": ");
	buf_json_text(out, problem);
	buf_text(out, "}\n");
}

/* ---- input ---- */

static bool has_extension(const char *file, const char *extension)
{
	const char *dot = strrchr(file, '.');
	return dot && strcasecmp(dot + 1, extension) == 0;
}

static enum detect_form input_form(const struct detect_options *options, const char *file)
{
	if (options->input != DETECT_AUTO)
		return (enum detect_form)options->input;
	if (has_extension(file, "csv") || has_extension(file, "tsv"))
		return DETECT_CSV;
	if (has_extension(file, "jsonl") || has_extension(file, "ndjson"))
		return DETECT_JSONL;
	return options->column ? DETECT_CSV : DETECT_TEXT;
}

/* Flags that no form of the input takes: plain numbers have no columns, and no times, so no cycles.
 */
static bool check_inputs(const struct detect_options *options, const struct detection *detection,
	const struct strings *files, struct error *error)
{
	for (size_t i = 0; i < files->count; i++) {
		enum detect_form form = input_form(options, files->items[i]);

		if (form != DETECT_CSV && (options->column || options->delimiter))
			return error_set(error, ERROR_USAGE,
				"--%s is for CSV, and \"%.200s\" is read as %s",
				options->column ? "column" : "delimiter", files->items[i],
				inputs[form]);
		if (form != DETECT_JSONL && detect_wants_times(detection))
			return error_set(error, ERROR_USAGE,
				"--season %s: \"%.200s\" is read as %s, which has no times; use "
				"JSON lines with times",
				options->detection.season, files->items[i], inputs[form]);
	}
	return true;
}

static bool read_delimiter(
	const struct detect_options *options, const char *file, char *out, struct error *error)
{
	const char *text = options->delimiter;
	*out = has_extension(file, "tsv") ? '\t' : ',';
	if (!text)
		return true;
	*out = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0 ? '\t' : text[0];
	if (*out == '\0' || (*out != '\t' && text[1]) || strchr("\"\r\n", *out))
		return error_set(error, ERROR_USAGE,
			"--delimiter: \"%.80s\" is neither one character nor \"tab\"", text);
	return true;
}

/* Builds the detection from the flags, over the default of the first detector. */
static bool read_detection(struct cli *cli, const struct schema *schema,
	const struct detect_options *options, struct detection *out, struct error *error)
{
	struct setting settings[1 + DETECTION_FLAG_SETTINGS] = {
		{"detector", schema->detectors[0]->name}};
	const struct detection none = {0};
	struct detection base;
	size_t count = detection_flag_settings(&options->detection, settings + 1);
	return detection_overlay(schema, &none, settings, 1, cli->arena, &base, error) &&
	       detection_overlay(schema, &base, settings + 1, count, cli->arena, out, error);
}

static int detect_file(struct detect_task *task, const struct detect_options *options)
{
	struct error error;
	const struct strings files = {&task->file, 1};
	task->input = input_form(options, task->file);
	task->reader = task->input == DETECT_CSV ? NULL : batch_reader_new(&files, task->max_line);
	if (task->input == DETECT_TEXT && options->input == 0 && batch_peek(task->reader) == '{')
		task->input = DETECT_JSONL;
	task->output = output_forms[options->output];
	if (task->output == DETECT_AUTO)
		task->output = task->input == DETECT_JSONL ? DETECT_JSONL : DETECT_TEXT;
	int code = !read_delimiter(options, task->file, &task->delimiter, &error) ? cli_fail(&error)
		   : task->input == DETECT_JSONL ? detect_lines(task)
						 : detect_values(task);
	int problem = errno; /* errno of a failed write, for the caller that checks the stream */
	batch_reader_free(task->reader);
	errno = problem;
	return code;
}

static int run_detect(struct cli *cli)
{
	static const char *const standard_input[] = {"-"};
	const struct detect_options *options = cli->options;
	struct strings files = cli->arguments;
	struct error error;
	if (files.count == 0)
		files = (struct strings){standard_input, 1};
	struct detect_task task = {.schema = &cli_schema,
		.show_file = files.count > 1,
		.column = options->column,
		.max_line = (size_t)options->max_line,
		.jobs = options->jobs > 0 ? (size_t)options->jobs : cpus_count(),
		.progress = cli->progress && !isatty(fileno(cli->out)),
		.out = cli->out};
	task.jobs = task.jobs < MAX_JOBS ? task.jobs : MAX_JOBS;
	if (!detection_flags_check(&options->detection, &error))
		return cli_fail(&error);
	if (!read_detection(cli, task.schema, options, &task.detection, &error)) {
		detection_flag_error(&error);
		return cli_fail(&error);
	}
	if (!check_inputs(options, &task.detection, &files, &error))
		return cli_fail(&error);
	int code = EXIT_NOTHING;
	for (size_t i = 0; i < files.count && !ferror(cli->out); i++) {
		task.file = files.items[i];
		int now = detect_file(&task, options);
		if (now == EXIT_USAGE)
			return now;
		code = now > code ? now : code;
	}
	return code;
}

const struct command detect_command = {
	.name = "detect",
	.arguments = "[FILE...]",
	.summary = "Find change points in plain numbers, CSV or JSON lines",
	.details =
		"Reads the files, or standard input (also \"-\"); needs no configuration. Text is "
		"one number a line; blank lines and lines that begin with # are skipped; nan and "
		"null are missing points. Each file is one series. Prints one line per change "
		"point, separated by tabs: index (from 0, of the first value of the new level), p, "
		"mean before, mean after, change in percent.\n"
		"\n"
		"JSON lines hold one series each; the results are in the same order:\n"
		"  {\"id\": \"a\", \"series\": [1, 2, null], \"options\": {\"window\": 30, "
		"\"p_value\": 0.01}}\n"
		"  {\"id\": \"a\", \"change_points\": [{\"index\": ..., \"pvalue\": ..., ...}]}\n"
		"\"options\" may contain any detector option and overrides the flags. \"runs\" and "
		"\"hashes\", as long as the series, name the run and the binary of each point. "
		"\"times\", or \"start\" and \"step\" in seconds, give the times of the points and "
		"enable the removal of daily and weekly cycles (--season). An invalid line yields "
		"{\"id\": ..., \"error\": \"...\"} and exit code 3.\n"
		"\n"
		"  seq 1 100 | hunter-c detect\n"
		"  hunter-c detect --input csv --column p99 results.csv\n"
		"  hunter-c detect --input jsonl --jobs 4 < series.jsonl\n",
	.parts = detect_parts,
	.options_size = sizeof(struct detect_options),
	.run = run_detect,
};
