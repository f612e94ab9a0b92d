/* One series from one file: one number per line, or a column of a CSV file. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/analysis/line_batch.h"
#include "agent/base/number.h"
#include "agent/commands/detect.h"
#include "agent/report/table.h"
#include "detectors/detector.h"
#include "sources/files/delimited.h"

enum { MAX_VALUES = 100000000 };

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

static bool add_lines(const struct detect_task *task, const struct batch *batch,
	struct values *values, struct error *error)
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
				"line longer than %zu bytes (--max-line)", task->max_line);
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
		good = step == BATCH_LINES && add_lines(task, &batch, values, error);
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
	if (task->column)
		error_set(error, ERROR_USAGE, "%s: no column \"%.80s\"; available: %s", input->name,
			task->column, names.data);
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
	size_t found = 0, position = 0;
	const struct cell *cell;
	double value;

	for (size_t i = 0; task->column && i < first->count; i++) {
		if (first->cells[i].length != strlen(task->column) ||
			memcmp(first->cells[i].text, task->column, first->cells[i].length) != 0)
			continue;
		if (found++ > 0)
			return error_set(error, ERROR_DATA, "%s:%zu: duplicate column \"%.80s\"",
				input->name, first->line, task->column);
		*index = i;
	}
	*header = true;
	if (found > 0)
		return true;
	if (!task->column && first->count == 1)
		position = 1;
	else if (task->column && strspn(task->column, "0123456789") == strlen(task->column))
		position = strtoul(task->column, NULL, 10);
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
		detect_put_json(&text, id.data, id.length, changes, count);
	else
		detect_put_text(&text, task->show_file ? task->file : NULL, strlen(task->file),
			changes, count);
	text_flush(&text, task->out);
	fflush(task->out);
	buf_free(&id);
}

int detect_values(const struct detect_task *task)
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
