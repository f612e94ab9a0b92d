/*
 * `hunter-c detect`, the plain filter: numbers in, change points out, no configuration.
 *
 * Files are processed one after another, each in its own format. An error costs that file, or
 * with JSON lines that line, and sets the exit code.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/line_batch.h"
#include "agent/analysis/series_lines.h"
#include "agent/base/clock.h"
#include "agent/base/cpus.h"
#include "agent/base/number.h"
#include "agent/cli/detection_flags.h"
#include "agent/commands/commands.h"
#include "agent/model/json_put.h"
#include "agent/report/table.h"
#include "detectors/detector.h"
#include "sources/files/delimited.h"

enum { MAX_JOBS = 256, MAX_VALUES = 100000000 };

enum detect_form { DETECT_AUTO, DETECT_TEXT, DETECT_CSV, DETECT_JSONL };

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

/* The input, the detection, and where the results go. */
struct detect_task {
	const struct detect_options *options;
	struct detection detection;     /* from the flags */
	enum detect_form input, output; /* resolved: never AUTO; the output never CSV */
	const char *file;               /* "-" is the standard input */
	bool show_file; /* text output is prefixed by the file's name: there are several */
	char delimiter;
	size_t jobs;                 /* threads in all, at least 1 */
	bool progress;               /* show a progress line on stderr after a second */
	struct batch_reader *reader; /* of the file, except CSV */
	FILE *out;
};

/* Whether a cycle is requested by name: without times that is an error, while `auto` finds none. */
static bool detect_wants_times(const struct detection *detection)
{
	return detection->season == SEASON_DAY || detection->season == SEASON_WEEK;
}

/* ---- output: text is for people and awk, with six digits; JSON numbers are exact ---- */

static void put_text(struct buf *out, const char *prefix, size_t prefix_length,
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
	json_put(out,
		"{index: %zu, pvalue: %g, mean_before: %g, mean_after: %g, stddev_before: %g, "
		"stddev_after: %g, forward_change_percent: %g, magnitude: %g",
		change->index, change->pvalue, change->mean_before, change->mean_after,
		change->stddev_before, change->stddev_after, change_percent(change),
		change->magnitude);
	json_put_levels(out, change);
	json_put(out, "place_from: %zu, place_to: %zu}", change->place_from, change->place_to);
}

static void put_id(struct buf *out, const char *id, size_t id_length)
{
	buf_text(out, "{\"id\": ");
	if (id)
		buf_json_value(out, id, id_length);
	else
		buf_text(out, "null");
}

static void put_json(struct buf *out, const char *id, size_t id_length,
	const struct change *changes, size_t count)
{
	put_id(out, id, id_length);
	buf_text(out, ", \"change_points\": [");
	for (size_t i = 0; i < count; i++)
		put_change(out, &changes[i]);
	buf_text(out, "]}\n");
}

/* ---- one series: a number per line, or a column of CSV ---- */

struct values {
	double *items;
	size_t count, capacity;
};

/* Adds the number in the text, or a missing point. */
static bool add_value(struct values *values, const char *text, size_t length, struct error *error)
{
	double value = (double)NAN;
	if (!number_missing(text, length) && !number_parse(text, length, &value))
		return error_set(error, ERROR_DATA, "\"%.*s\" is not a number",
			length < 80 ? (int)length : 80, text);
	if (values->count == MAX_VALUES)
		return error_set(error, ERROR_DATA, "more than %d values", MAX_VALUES);
	values->items =
		memory_grow(values->items, &values->capacity, values->count + 1, sizeof(double));
	values->items[values->count++] = value;
	return true;
}

static bool add_lines(const struct batch *batch, struct values *values, struct error *error)
{
	struct batch_line line;
	size_t offset = 0;
	for (uint64_t number = batch->line; batch_line(batch, &offset, &line); number++) {
		size_t blank = 0;
		bool good;

		while (blank < line.length && isspace((unsigned char)line.text[blank]))
			blank++;
		if (line.cut)
			good = error_set(error, ERROR_DATA,
				"line longer than %zu bytes (--max-line)", batch->max_line);
		else
			good = blank == line.length || line.text[blank] == '#' ||
			       add_value(values, line.text, line.length, error);
		if (!good)
			return error_prefix(
				error, "%s:%llu: ", batch->file, (unsigned long long)number);
	}
	return true;
}

static bool read_text(const struct detect_task *task, struct values *values, struct error *error)
{
	struct batch batch = {0};
	enum batch_step step;
	bool good = true;
	while (good && (step = batch_read(task->reader, &batch, error)) != BATCH_END)
		good = step == BATCH_LINES && add_lines(&batch, values, error);
	batch_free(&batch);
	return good;
}

/* Names the columns, cut if that is too long. */
static bool wrong_column(const struct detect_task *task, const struct input *input,
	const struct row *header, struct error *error)
{
	struct buf names = {0};

	for (size_t i = 0; i < header->count && names.length < 400; i++) {
		buf_text(&names, i > 0 ? ", " : "");
		buf_append(&names, header->cells[i].text,
			header->cells[i].length < 80 ? header->cells[i].length : 80);
	}
	buf_text(&names, names.length < 400 ? "" : ", ...");
	if (task->options->column)
		error_set(error, ERROR_USAGE, "%s: no column \"%.80s\"; available: %s", input->name,
			task->options->column, names.data);
	else
		error_set(error, ERROR_USAGE, "%s: several columns; select one with --column: %s",
			input->name, names.data);
	buf_free(&names);
	return false;
}

/*
 * Finds the column, and whether the first row is a header: it is not if the column was chosen by
 * its number (or is the only one) and the row has a number there.
 */
static bool find_column(const struct detect_task *task, const struct input *input,
	const struct row *first, size_t *index, bool *header, struct error *error)
{
	const char *column = task->options->column;
	size_t found = 0, position = 0;
	const struct cell *cell;
	double value;

	for (size_t i = 0; column && i < first->count; i++) {
		if (first->cells[i].length != strlen(column) ||
			memcmp(first->cells[i].text, column, first->cells[i].length) != 0)
			continue;
		if (found++ > 0)
			return error_set(error, ERROR_DATA, "%s:%zu: duplicate column \"%.80s\"",
				input->name, first->line, column);
		*index = i;
	}
	*header = true;
	if (found > 0)
		return true;
	if (!column && first->count == 1)
		position = 1;
	else if (column && strspn(column, "0123456789") == strlen(column))
		position = strtoul(column, NULL, 10);
	if (position < 1 || position > first->count)
		return wrong_column(task, input, first, error);
	*index = position - 1;
	cell = &first->cells[*index];
	*header = !number_parse(cell->text, cell->length, &value) &&
		  !(cell->length > 0 && number_missing(cell->text, cell->length));
	return true;
}

static bool add_row(const struct input *input, const struct row *row, size_t index,
	struct values *values, struct error *error)
{
	if (index >= row->count)
		return error_set(error, ERROR_DATA, "%s:%zu: the row ends before column %zu",
			input->name, row->line, index + 1);
	return add_value(values, row->cells[index].text, row->cells[index].length, error) ||
	       error_prefix(error, "%s:%zu: column %zu: ", input->name, row->line, index + 1);
}

static bool read_rows(const struct detect_task *task, const struct input *input,
	struct delimited *reader, struct values *values, struct error *error)
{
	struct row row;
	size_t index = 0;
	bool header = false;
	enum delimited_step step = delimited_next(reader, &row, error);
	if (step == DELIMITED_END)
		return error_set(
			error, ERROR_DATA, "%s: empty file: expected a header", input->name);
	if (step == DELIMITED_FAILED || !find_column(task, input, &row, &index, &header, error) ||
		(!header && !add_row(input, &row, index, values, error)))
		return false;
	while ((step = delimited_next(reader, &row, error)) == DELIMITED_ROW)
		if (!add_row(input, &row, index, values, error))
			return false;
	return step == DELIMITED_END;
}

static bool read_csv(const struct detect_task *task, struct values *values, struct error *error)
{
	struct input input = input_descriptor("standard input", STDIN_FILENO);
	bool standard = strcmp(task->file, "-") == 0;
	if (!standard && !input_open(&input, task->file, 0, error))
		return false;
	struct delimited *reader = delimited_new(&input, task->delimiter, '"');
	bool good = read_rows(task, &input, reader, values, error);
	delimited_free(reader);
	if (!standard)
		input_close(&input);
	return good;
}

static void write_changes(
	const struct detect_task *task, const struct change *changes, size_t count)
{
	struct buf text = {0}, id = {0};
	buf_json_text(&id, task->file);
	if (task->output == DETECT_JSONL)
		put_json(&text, id.data, id.length, changes, count);
	else
		put_text(&text, task->show_file ? task->file : NULL, strlen(task->file), changes,
			count);
	text_flush(&text, task->out);
	fflush(task->out);
	buf_free(&id);
}

static int detect_values(const struct detect_task *task)
{
	struct values values = {0};
	struct error error;
	bool good = task->input == DETECT_CSV ? read_csv(task, &values, &error)
					      : read_text(task, &values, &error);
	if (good) {
		const struct samples samples = {.values = values.items, .n = values.count};
		struct scratch *scratch = scratch_new();
		struct change *changes = memory_new(values.count, sizeof *changes);
		size_t count;
		good = detector_run(detector_find(task->detection.detector->name), &samples,
			task->detection.options, scratch, changes, &count, &error);
		if (good)
			write_changes(task, changes, count);
		else
			error_prefix(&error, "%.200s: ",
				strcmp(task->file, "-") == 0 ? "standard input" : task->file);
		free(changes);
		scratch_free(scratch);
	}
	free(values.items);
	return good ? EXIT_NOTHING : cli_fail(&error);
}

/*
 * JSON lines, by several equal threads: each takes the next batch of whole lines, finds the change
 * points of each line, and writes the answer when its turn has come. So the output is in the
 * input's order whatever the number of threads.
 */

enum { PROGRESS_AFTER = 1000, PROGRESS_EVERY = 250 }; /* ms */

struct queue {
	const struct detect_task *task;
	/* Held while a batch is read, so that batches are numbered in the order of reading. */
	pthread_mutex_t reading;
	size_t taken;
	/* Guards the following. */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	size_t due; /* number of the batch whose answer is written next */
	int failed; /* errno of a failed write: nothing more is read or written */
	bool bad_data;
	/* The progress line on stderr. */
	int64_t progress_due; /* ms */
	size_t lines;
	bool shown;
};

/* The working memory of one thread. */
struct worker {
	const struct detect_task *task;
	struct line_reader *reader;
	struct scratch *scratch;
	struct change *changes;
	double *adjusted; /* values without their cycles */
	size_t capacity;  /* of both */
	/* The detection for the latest options, and their text. */
	struct arena *arena;
	struct detection detection;
	struct buf options;
	bool bad_data;
};

/* The line's detection, rebuilt only if its options differ from those of the line before. */
static bool choose_detection(struct worker *worker, const struct line *line,
	const struct detection **out, struct error *error)
{
	struct setting settings[LINE_OPTIONS_MAX];

	*out = line->option_count == 0 ? &worker->task->detection : &worker->detection;
	if (line->option_count == 0 || (line->options_length == worker->options.length &&
					       memcmp(line->options_text, worker->options.data,
						       line->options_length) == 0))
		return true;
	for (size_t i = 0; i < line->option_count; i++)
		settings[i] = (struct setting){line->options[i].name, line->options[i].value};
	arena_free(worker->arena);
	worker->arena = arena_new();
	buf_clear(&worker->options);
	if (!detection_overlay(&cli_schema, &worker->task->detection, settings, line->option_count,
		    worker->arena, &worker->detection, error))
		return false;
	buf_append(&worker->options, line->options_text, line->options_length);
	return true;
}

/* In the values without the cycles that the detection removes. */
static bool find_changes(struct worker *worker, const struct line *line,
	const struct detection *detection, size_t *count, struct error *error)
{
	struct samples samples = {
		.n = line->n, .values = line->values, .runs = line->runs, .hashes = line->hashes};

	if (line->n > worker->capacity) {
		free(worker->changes);
		free(worker->adjusted);
		worker->changes = memory_new(line->n, sizeof *worker->changes);
		worker->adjusted = memory_new(line->n, sizeof *worker->adjusted);
		worker->capacity = line->n;
	}
	if (!line->times && detect_wants_times(detection))
		return error_set(error, ERROR_DATA,
			"season: removing cycles requires \"times\", or \"start\" and \"step\"");
	if (line->times) {
		struct season season =
			season_fit(analysis_season(detection), analysis_clock(detection), 0,
				line->values, line->times, line->n, worker->scratch);

		samples.excursion = season.excursion;
		if (season.cycles) {
			season_remove(
				&season, line->times, line->values, line->n, worker->adjusted);
			samples.values = worker->adjusted;
		}
		season_free(&season);
	}
	return detector_run(detector_find(detection->detector->name), &samples, detection->options,
		worker->scratch, worker->changes, count, error);
}

static void put_answer(struct worker *worker, const struct line *line, uint64_t number,
	size_t count, struct buf *out)
{
	if (worker->task->output == DETECT_JSONL) {
		put_json(out, line->id, line->id_length, worker->changes, count);
		return;
	}
	char place[32];
	const char *prefix = line->id;
	size_t length = line->id_length;
	if (!prefix) {
		length = (size_t)snprintf(place, sizeof place, "%llu", (unsigned long long)number);
		prefix = place;
	} else if (*prefix == '"') {
		prefix++;
		length -= 2;
	}
	put_text(out, prefix, length, worker->changes, count);
}

/* Returns the number of lines. A bad line is answered with an error; in text output, which has no
 * room for it, on stderr. */
static size_t answer_batch(struct worker *worker, const struct batch *batch, struct buf *out)
{
	struct batch_line text;
	size_t offset = 0, count = 0;

	for (uint64_t number = batch->line; batch_line(batch, &offset, &text); number++, count++) {
		struct line line;
		struct error error;
		const struct detection *detection;
		size_t found;

		if (!text.cut && batch_line_is_blank(&text))
			continue;
		bool good = line_read(worker->reader, text.text, text.length, &line, &error);
		if (text.cut)
			good = error_set(&error, ERROR_DATA,
				"line longer than %zu bytes (--max-line)", batch->max_line);
		if (good && choose_detection(worker, &line, &detection, &error) &&
			find_changes(worker, &line, detection, &found, &error)) {
			put_answer(worker, &line, number, found, out);
			continue;
		}
		worker->bad_data = true;
		error_prefix(&error, "%s:%llu: ", batch->file, (unsigned long long)number);
		if (worker->task->output == DETECT_JSONL) {
			put_id(out, line.id, line.id_length);
			json_put_text(out, "error", error.text);
			buf_text(out, "}\n");
		} else {
			cli_fail(&error);
		}
	}
	return count;
}

/* The next batch and its number; false at the end, and after a failed write. */
static bool take_batch(struct queue *queue, struct batch *batch, size_t *number)
{
	enum batch_step step = BATCH_FAILED;
	struct error error;

	pthread_mutex_lock(&queue->reading);
	while (step == BATCH_FAILED) {
		pthread_mutex_lock(&queue->lock);
		bool failed = queue->failed != 0;
		pthread_mutex_unlock(&queue->lock);
		step = failed ? BATCH_END : batch_read(queue->task->reader, batch, &error);
		if (step != BATCH_FAILED)
			break;
		cli_fail(&error);
		pthread_mutex_lock(&queue->lock);
		queue->bad_data = true;
		pthread_mutex_unlock(&queue->lock);
	}
	*number = queue->taken;
	queue->taken += step == BATCH_LINES;
	pthread_mutex_unlock(&queue->reading);
	return step == BATCH_LINES;
}

/* Writes and empties the answer to a batch, in its turn. */
static void write_answer(struct queue *queue, size_t number, struct buf *answer, size_t lines)
{
	FILE *out = queue->task->out;
	int64_t now = clock_monotonic();

	pthread_mutex_lock(&queue->lock);
	while (queue->due != number && !queue->failed)
		pthread_cond_wait(&queue->turn, &queue->lock);
	if (!queue->failed && answer->length > 0 &&
		(fwrite(answer->data, 1, answer->length, out) != answer->length ||
			fflush(out) != 0))
		queue->failed = errno ? errno : EIO;
	queue->due++;
	queue->lines += lines;
	if (queue->task->progress && now >= queue->progress_due) {
		queue->progress_due = now + PROGRESS_EVERY;
		queue->shown = true;
		fprintf(stderr, "\r\033[K%zu lines done", queue->lines);
		fflush(stderr);
	}
	pthread_cond_broadcast(&queue->turn);
	pthread_mutex_unlock(&queue->lock);
	buf_clear(answer);
}

static void *work(void *context)
{
	struct queue *queue = context;
	struct worker worker = {
		.task = queue->task, .reader = line_reader_new(), .scratch = scratch_new()};
	struct batch batch = {0};
	struct buf answer = {0};
	size_t number;

	while (take_batch(queue, &batch, &number)) {
		size_t lines = answer_batch(&worker, &batch, &answer);

		write_answer(queue, number, &answer, lines);
	}
	pthread_mutex_lock(&queue->lock);
	queue->bad_data |= worker.bad_data;
	pthread_mutex_unlock(&queue->lock);
	batch_free(&batch);
	buf_free(&answer);
	line_reader_free(worker.reader);
	scratch_free(worker.scratch);
	arena_free(worker.arena);
	buf_free(&worker.options);
	free(worker.changes);
	free(worker.adjusted);
	return NULL;
}

static int detect_lines(const struct detect_task *task)
{
	struct queue queue = {.task = task,
		.reading = PTHREAD_MUTEX_INITIALIZER,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.turn = PTHREAD_COND_INITIALIZER,
		.progress_due = clock_monotonic() + PROGRESS_AFTER};
	size_t started = 0;
	pthread_t *threads = memory_new(task->jobs, sizeof *threads);

	/* This thread is one of the `jobs`; if threads cannot be started it is slower, not wrong.
	 */
	while (started + 1 < task->jobs &&
		pthread_create(&threads[started], NULL, work, &queue) == 0)
		started++;
	work(&queue);
	while (started > 0)
		pthread_join(threads[--started], NULL);
	free(threads);
	if (queue.shown)
		fputs("\r\033[K", stderr);
	errno = queue.failed; /* for the caller that checks the stream */
	return queue.bad_data ? EXIT_DATA : EXIT_NOTHING;
}

/* ---- the command ---- */

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

static int detect_file(struct detect_task *task)
{
	const struct detect_options *options = task->options;
	struct error error;
	const struct strings files = {&task->file, 1};
	task->input = input_form(options, task->file);
	task->reader = task->input == DETECT_CSV
			       ? NULL
			       : batch_reader_new(&files, (size_t)options->max_line);
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
	const struct detection none = {0};
	const struct setting usual = {"detector", detectors[0]->name};
	struct setting settings[DETECTION_FLAG_SETTINGS];
	size_t count = detection_flag_settings(&options->detection, settings);
	struct detection base;
	struct strings files = cli->arguments;
	struct error error;
	if (files.count == 0)
		files = (struct strings){standard_input, 1};
	struct detect_task task = {.options = options,
		.show_file = files.count > 1,
		.jobs = options->jobs > 0 ? (size_t)options->jobs : cpus_count(),
		.progress = cli->progress && !isatty(fileno(cli->out)),
		.out = cli->out};
	task.jobs = task.jobs < MAX_JOBS ? task.jobs : MAX_JOBS;
	if (!detection_flags_check(&options->detection, &error))
		return cli_fail(&error);
	if (!detection_overlay(&cli_schema, &none, &usual, 1, cli->arena, &base, &error) ||
		!detection_overlay(
			&cli_schema, &base, settings, count, cli->arena, &task.detection, &error)) {
		detection_flag_error(&error);
		return cli_fail(&error);
	}
	if (!check_inputs(options, &task.detection, &files, &error))
		return cli_fail(&error);
	int code = EXIT_NOTHING;
	for (size_t i = 0; i < files.count && !ferror(cli->out); i++) {
		task.file = files.items[i];
		int now = detect_file(&task);
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
