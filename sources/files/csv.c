/*
 * CSV files: a time column, columns of numbers (metrics) and columns of text (attributes).
 *
 * The header is turned into a plan: which column goes where. Each row is then checked, filtered by
 * branch and time, and only the columns of the plan are stored. Rows are first filtered and then
 * read, so that what is wrong in a row nobody asked for does no harm; this and the rules about
 * branches are Otava's.
 *
 * Without configured metrics every column that holds numbers is one. A column shows what it is with
 * its first value.
 */
#include <string.h>

#include "agent/core/number.h"
#include "agent/core/when.h"
#include "sources/files/csv_plan.h"
#include "sources/files/metric_columns.h"
#include "sources/files/rows.h"

enum { LIST_ROWS = 1000 }; /* that are looked at to list metrics without configuration */

static const struct field csv_fields[] = {
	{.name = "file",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_options, file),
		.flags = FIELD_REQUIRED,
		.metavar = "FILE",
		.help = "the CSV file, relative to the current folder"},
	{.name = "time_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_options, time_column),
		.initial = "time",
		.metavar = "COLUMN",
		.help = "the column of time stamps: ISO 8601 (UTC if it has no zone) or epoch "
			"seconds, milliseconds"},
	{.name = "commit_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_options, commit_column),
		.metavar = "COLUMN",
		.help = "the column that holds a point's commit, where it has another name than "
			"commit"},
	{.name = "version_column",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_options, version_column),
		.metavar = "COLUMN",
		.help = "the same for its version"},
	{.name = "attributes",
		.type = FIELD_LIST,
		.offset = offsetof(struct csv_options, attributes),
		.metavar = "COLUMNS",
		.help = "columns that are shown with a change: commit, version, machine ..."},
	{.name = "base_branch",
		.type = FIELD_STRING,
		.offset = offsetof(struct csv_options, base_branch),
		.metavar = "BRANCH",
		.help = "the branch that is read when none is asked for, in a file with a column "
			"\"branch\" (needed if it holds several)"},
	{.name = "csv_options",
		.type = FIELD_MAP,
		.offset = offsetof(struct csv_options, csv_options),
		.help = "delimiter (default: a comma) and quote_char (default: a double quote)"},
	{0}};

struct reader {
	struct query *query;
	struct input *input;
	struct delimited *delimited;
	struct error *error;
	size_t row_limit; /* rows to read, for a listing; SIZE_MAX otherwise */
	struct csv_plan plan;
	struct rows rows; /* with a column for each of the plan's */
	struct branches branches;
	size_t rows_seen;
	const char *wanted; /* branch, or NULL */
	bool branch_seen;
};

static bool check_width(const struct reader *reader, const struct row *row)
{
	size_t extra = reader->plan.header.count;

	while (extra < row->count && row->cells[extra].length == 0)
		extra++;
	if (row->count >= reader->plan.header.count && extra == row->count)
		return true;
	return error_set(reader->error, ERROR_DATA, "%s:%zu: %zu columns, but the header has %zu",
		reader->input->name, row->line, row->count, reader->plan.header.count);
}

static bool fail_cell(
	const struct reader *reader, const struct row *row, size_t column, const char *wanted)
{
	const struct cell *cell = &row->cells[column];
	int length = cell->length < 60 ? (int)cell->length : 60;

	return error_set(reader->error, ERROR_DATA, "%s:%zu: column \"%.100s\": \"%.*s\" is not %s",
		reader->input->name, row->line, reader->plan.header.items[column], length,
		cell->text, wanted);
}

static bool store_number(struct reader *reader, const struct row *row, size_t index)
{
	struct number_column *number = &reader->plan.numbers[index];
	const struct cell *cell = &row->cells[number->column];
	double value;

	if (number->state == COLUMN_TEXT)
		return true;
	if (number_parse(cell->text, cell->length, &value)) {
		number->state = COLUMN_NUMBERS;
		reader->rows.numbers[index][reader->rows.n - 1] = value * number->metric->scale;
		return true;
	}
	if (number_missing(cell->text, cell->length))
		return true;
	if (!reader->plan.guessing || number->state == COLUMN_NUMBERS)
		return fail_cell(reader, row, number->column, "a number");
	number->state = COLUMN_TEXT;
	return true;
}

/* Does the branch of the row count? Without a branch asked for, two of them are too many: see
 * check_branches. */
static bool is_wanted(struct reader *reader, const struct row *row)
{
	if (reader->plan.branch == NO_COLUMN)
		return true;
	const struct cell *cell = &row->cells[reader->plan.branch];
	const char *wanted = reader->wanted;

	branches_add(&reader->branches, reader->query->arena, cell->text, cell->length);
	if (!wanted)
		return reader->branches.count == 1;
	if (strlen(wanted) != cell->length || memcmp(wanted, cell->text, cell->length) != 0)
		return false;
	reader->branch_seen = true;
	return true;
}

static bool take_row(struct reader *reader, const struct row *row)
{
	int64_t time;

	reader->rows_seen++;
	if (!check_width(reader, row))
		return false;
	if (!is_wanted(reader, row))
		return true;
	if (!when_parse_stamp(row->cells[reader->plan.time].text,
		    row->cells[reader->plan.time].length, &time))
		return fail_cell(reader, row, reader->plan.time, "a date");
	if (time < reader->query->since || time >= reader->query->until)
		return true;
	if (!rows_append(&reader->rows, time, reader->error))
		return error_prefix(reader->error, "%s:%zu: ", reader->input->name, row->line);
	for (size_t i = 0; i < reader->plan.number_count; i++)
		if (!store_number(reader, row, i))
			return false;
	for (size_t i = 0; i < reader->plan.text_count; i++) {
		const struct cell *cell = &row->cells[reader->plan.texts[i].column];

		if (cell->length)
			reader->rows.texts[i][reader->rows.n - 1] = rows_text(
				&reader->rows, reader->query->arena, cell->text, cell->length);
	}
	return true;
}

static bool add_columns(struct reader *reader)
{
	size_t index;

	for (size_t i = 0; i < reader->plan.number_count; i++)
		if (!rows_add_number(&reader->rows, &index, reader->error))
			return false;
	for (size_t i = 0; i < reader->plan.text_count; i++)
		if (!rows_add_text(&reader->rows, &index, reader->error))
			return false;
	return true;
}

static bool read_rows(struct reader *reader)
{
	enum delimited_step step;
	struct row row;

	step = delimited_next(reader->delimited, &row, reader->error);
	if (step == DELIMITED_END)
		return error_set(
			reader->error, ERROR_DATA, "%s: the file is empty", reader->input->name);
	if (step == DELIMITED_FAILED)
		return false;
	if (!csv_plan_make(
		    &reader->plan, reader->query, reader->input->name, &row, reader->error) ||
		!add_columns(reader))
		return false;
	while (reader->rows_seen < reader->row_limit) {
		step = delimited_next(reader->delimited, &row, reader->error);
		if (step == DELIMITED_END)
			break;
		if (step == DELIMITED_FAILED || !take_row(reader, &row))
			return false;
	}
	return true;
}

static bool check_branches(struct reader *reader)
{
	const struct query *query = reader->query;
	struct branches *branches = &reader->branches;
	const char *name = reader->input->name;

	if (!reader->wanted) {
		if (branches->count < 2 || query->listing)
			return true;
		return error_set(reader->error, ERROR_DATA,
			"%s: the file holds several branches, which must not be compared as one "
			"series: choose one with --branch, or set base_branch in the test (%s)",
			name, branches_list(branches, query->arena));
	}
	if (reader->branch_seen || branches->count == 0)
		return true;
	return error_set(reader->error, ERROR_DATA,
		"%s: no row is of branch \"%.100s\" (there are: %s)", name, reader->wanted,
		branches_list(branches, query->arena));
}

static void finish(struct reader *reader)
{
	struct arena *arena = reader->query->arena;
	const struct metric **metrics =
		arena_array(arena, reader->plan.number_count, sizeof *metrics);
	const char **names = arena_array(arena, reader->plan.text_count, sizeof *names);

	if (reader->rows_seen == 0)
		query_notice(reader->query, "%s: no rows after the header", reader->input->name);
	for (size_t i = 0; i < reader->plan.number_count; i++)
		if (!reader->plan.guessing || reader->plan.numbers[i].state == COLUMN_NUMBERS)
			metrics[i] = reader->plan.numbers[i].metric;
	for (size_t i = 0; i < reader->plan.text_count; i++)
		names[i] = reader->plan.texts[i].name;
	rows_finish(&reader->rows, reader->query, reader->input->name, metrics, names);
	if (reader->plan.guessing && reader->rows_seen && !reader->query->data.count)
		query_notice(reader->query, "%s: no column holds numbers", reader->input->name);
}

static bool parse(struct query *query, struct input *input, size_t row_limit, struct error *error)
{
	const struct csv_options *options = query->options;
	struct reader reader = {.query = query,
		.input = input,
		.error = error,
		.row_limit = row_limit,
		.wanted = query->branch ? query->branch : options->base_branch};
	char delimiter, quote;

	if (!csv_dialect(query->options, &delimiter, &quote, error))
		return false;
	reader.delimited = delimited_new(input, delimiter, quote);
	bool good = read_rows(&reader) && check_branches(&reader);
	delimited_free(reader.delimited);
	if (good)
		finish(&reader);
	rows_free(&reader.rows);
	return good;
}

bool csv_parse(struct query *query, struct input *input, struct error *error)
{
	return parse(query, input, SIZE_MAX, error);
}

static bool read_file(struct query *query, size_t row_limit, struct error *error)
{
	const struct csv_options *options = query->options;
	struct input input;

	if (!input_open(&input, options->file, query->timeout, error))
		return false;
	bool good = parse(query, &input, row_limit, error);
	input_close(&input);
	return good;
}

static bool csv_read(struct query *query, struct error *error)
{
	return read_file(query, SIZE_MAX, error);
}

/* Configured metrics are known by their names; to find others takes a look at the first rows. */
static bool csv_list(struct query *query, struct strings *names, struct error *error)
{
	query->listing = true;
	if (!query->metric_count && !read_file(query, LIST_ROWS, error))
		return false;
	*names = metric_columns_names(query);
	return true;
}

static bool csv_check(const void *options, struct error *error)
{
	char delimiter, quote;
	return csv_dialect(options, &delimiter, &quote, error);
}

static bool csv_check_metrics(
	const void *options, const struct metric *metrics, size_t count, struct error *error)
{
	const struct csv_options *csv = options;
	for (size_t i = 0; i < count; i++)
		if (strcmp(metrics[i].column, csv->time_column) == 0)
			return error_set(error, ERROR_DATA,
				"time_column: it is the column of metric \"%.200s\", too",
				metrics[i].name);
	return true;
}

const struct source csv_source = {
	.name = "csv",
	.summary = "a CSV file with a row for each run",
	.fields = csv_fields,
	.options_size = sizeof(struct csv_options),
	.read = csv_read,
	.list = csv_list,
	.check = csv_check,
	.check_metrics = csv_check_metrics,
};
