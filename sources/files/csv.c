/*
 * CSV files: a time column, columns of numbers (metrics) and columns of text (attributes).
 *
 * The header is turned into a plan: which column is used for what. Each row is checked, filtered by
 * branch and time, and only then are the columns of the plan parsed and stored, so an error in a
 * row that is not selected does no harm. This and the rules about branches follow Otava.
 *
 * Without configured metrics every column of numbers is one. The first value of a column decides.
 */
#include <stdint.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/number.h"
#include "agent/base/when.h"
#include "sources/files/delimited.h"
#include "sources/files/files.h"
#include "sources/files/rows.h"

/*
 * The plan for a CSV file: its dialect, and the use of its columns, taken from the header.
 *
 * Only columns that are used are looked up, so there may be others, even unnamed ones or several of
 * the same name.
 */

#define NO_COLUMN SIZE_MAX

enum column_state { COLUMN_UNKNOWN, COLUMN_NUMBERS, COLUMN_TEXT }; /* decided by its first value */

struct number_column {
	size_t column;
	const struct metric *metric;
	enum column_state state;
};

struct text_column {
	size_t column;
	const char *name;
};

struct csv_plan {
	struct strings header;
	size_t time, branch; /* branch may be NO_COLUMN */
	struct number_column *numbers;
	struct text_column *texts;
	size_t number_count, text_count;
	bool inferred; /* no metrics are configured: `numbers` holds all columns that may be numeric
			*/
};

struct reader {
	struct query *query;
	struct input *input;
	struct delimited *delimited;
	struct error *error;
	size_t header_line;
	struct name_index names; /* of the header */
	size_t *first,
		*second; /* by index of the name: its first column and a second one, 0 if none */
	struct csv_plan plan;
	struct rows rows; /* with one column for each column of the plan */
	struct branches branches;
	size_t rows_seen;
};

/* Parses a one-character option of csv_options; "" is none, "\t" a tab. */
static bool parse_byte(const char *key, const char *value, char *out, struct error *error)
{
	if (strcmp(value, "\\t") == 0)
		value = "\t";
	if (strlen(value) > 1 || *value == '\r' || *value == '\n')
		return error_set(error, ERROR_USAGE, "csv_options: %s must be one character", key);
	*out = *value;
	return true;
}

/* Reads csv_options; quote 0: no quoting. Fails (ERROR_USAGE) on unknown keys and invalid
 * characters. */
static bool csv_dialect(
	const struct csv_options *options, char *delimiter, char *quote, struct error *error)
{
	static const char *const names[] = {"delimiter", "quote_char"};

	*delimiter = ',';
	*quote = '"';
	for (size_t i = 0; i < options->csv_options.count; i++) {
		const struct pair *pair = &options->csv_options.items[i];
		const char *value = pair->value ? pair->value : "";
		bool is_quote =
			strcmp(pair->key, "quote_char") == 0 || strcmp(pair->key, "quotechar") == 0;

		if (!is_quote && strcmp(pair->key, "delimiter") != 0) {
			error_set(error, ERROR_USAGE, "csv_options: unknown key \"%.60s\"",
				pair->key);
			return field_hint(error, pair->key, names, 2);
		}
		if (!parse_byte(pair->key, value, is_quote ? quote : delimiter, error))
			return false;
	}
	if (!*delimiter || *delimiter == *quote)
		return error_set(error, ERROR_USAGE,
			"csv_options: the delimiter must not be empty or equal to quote_char");
	return true;
}

static void take_header(struct reader *reader, const struct row *row)
{
	struct arena *arena = reader->query->arena;
	const char **header = arena_array(arena, row->count, sizeof *header);

	reader->header_line = row->line;
	reader->names.dict.arena = arena;
	reader->first = arena_array(arena, row->count, sizeof *reader->first);
	reader->second = arena_array(arena, row->count, sizeof *reader->second);
	for (size_t i = 0; i < row->count; i++) {
		const char *text = row->cells[i].text;
		size_t length = row->cells[i].length, known = reader->names.count;

		for (; length && (*text == ' ' || *text == '\t'); length--)
			text++;
		while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
			length--;
		size_t number = name_index_add(&reader->names, text, length);
		if (reader->names.count > known)
			reader->first[number] = i;
		else
			reader->second[number] = i;
		header[i] = reader->names.items[number];
	}
	reader->plan.header = (struct strings){header, row->count};
}

/* The column of that name, or NO_COLUMN. Fails if there are several. */
static bool find_column(const struct reader *reader, const char *name, size_t *column)
{
	size_t number = name_index_find(&reader->names, name, strlen(name));

	*column = number == NAME_INDEX_NONE ? NO_COLUMN : reader->first[number];
	if (number == NAME_INDEX_NONE || !reader->second[number])
		return true;
	return error_set(reader->error, ERROR_DATA,
		"%s:%zu: column \"%.100s\" occurs more than once (columns %zu and %zu)",
		reader->input->name, reader->header_line, name, *column + 1,
		reader->second[number] + 1);
}

/* The same for a required column; `what`: its purpose. */
static bool need_column(
	const struct reader *reader, const char *what, const char *name, size_t *column)
{
	const struct strings *header = &reader->plan.header;

	if (!find_column(reader, name, column))
		return false;
	if (*column != NO_COLUMN)
		return true;
	error_set(reader->error, ERROR_DATA, "%s:%zu: no column \"%.100s\" for %s%s",
		reader->input->name, reader->header_line, name, what,
		column_hint(reader->query->arena, name, header));
	if (header->count > 1)
		return false;
	return error_set(reader->error, ERROR_DATA,
		"%s:%zu: no column \"%.100s\" for %s; the header has only one column: does the "
		"file "
		"use another delimiter (csv_options)?",
		reader->input->name, reader->header_line, name, what);
}

static bool plan_attributes(struct reader *reader)
{
	const struct csv_options *options = reader->query->options;
	struct pairs names = attribute_names(reader->query->arena, options->commit_column,
		options->version_column, options->attributes);
	struct csv_plan *plan = &reader->plan;

	plan->texts = arena_array(reader->query->arena, names.count, sizeof *plan->texts);
	for (size_t i = 0; i < names.count; i++) {
		const struct pair *at = &names.items[i];
		size_t column;

		if (!need_column(reader, attribute_option(at), at->key, &column))
			return false;
		if (column != plan->time)
			plan->texts[plan->text_count++] = (struct text_column){column, at->value};
	}
	return true;
}

static bool plan_metrics(struct reader *reader)
{
	const struct query *query = reader->query;
	struct csv_plan *plan = &reader->plan;

	plan->numbers = arena_array(query->arena, query->metric_count, sizeof *plan->numbers);
	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		const char *what = arena_printf(query->arena, "metric \"%.100s\"", metric->name);
		size_t column;

		if (!need_column(
			    reader, what, metric->column ? metric->column : metric->name, &column))
			return false;
		plan->numbers[plan->number_count++] =
			(struct number_column){.column = column, .metric = metric};
	}
	return true;
}

/* Without configured metrics: all columns that have a name and no other use; values decide
 * later. */
static bool plan_inferred(struct reader *reader)
{
	struct arena *arena = reader->query->arena;
	struct csv_plan *plan = &reader->plan;

	plan->inferred = true;
	plan->numbers = arena_array(arena, plan->header.count, sizeof *plan->numbers);
	for (size_t i = 0; i < plan->header.count; i++) {
		bool used = i == plan->time || i == plan->branch || !*plan->header.items[i];
		size_t column;

		for (size_t j = 0; j < plan->text_count; j++)
			used |= plan->texts[j].column == i;
		if (used)
			continue;
		if (!find_column(reader, plan->header.items[i], &column))
			return false;
		struct metric *metric = arena_alloc(arena, sizeof *metric);
		*metric =
			(struct metric){.name = plan->header.items[i], .direction = 1, .scale = 1};
		plan->numbers[plan->number_count++] =
			(struct number_column){.column = column, .metric = metric};
	}
	return true;
}

/* Fails (ERROR_DATA) if a required column is missing or ambiguous, naming file and column. */
static bool plan_columns(struct reader *reader)
{
	struct csv_plan *plan = &reader->plan;
	const struct query *query = reader->query;
	const struct csv_options *options = query->options;

	if (!need_column(reader, "the time (see time_column)", options->time_column, &plan->time) ||
		!find_column(reader, "branch", &plan->branch))
		return false;
	if (query->branch && plan->branch == NO_COLUMN)
		return error_set(reader->error, ERROR_DATA,
			"%s:%zu: a branch is selected (--branch or $BRANCH), but there is no "
			"column "
			"\"branch\"",
			reader->input->name, reader->header_line);
	return plan_attributes(reader) &&
	       (query->metric_count ? plan_metrics(reader) : plan_inferred(reader));
}

enum { LIST_ROWS = 1000 }; /* read to list metrics when none are configured */

static const struct field csv_fields[] = {
	OPTION_STRING(struct csv_options, file, NULL,
		"the CSV file, relative to the current folder", .flags = FIELD_REQUIRED,
		.metavar = "FILE"),
	OPTION_STRING(struct csv_options, time_column, "time",
		"timestamp column: ISO 8601 (UTC without a zone) or epoch seconds or milliseconds",
		.metavar = "COLUMN"),
	OPTION_STRING(struct csv_options, commit_column, NULL,
		"column of a point's commit; default: commit", .metavar = "COLUMN"),
	OPTION_STRING(struct csv_options, version_column, NULL, "the same for its version",
		.metavar = "COLUMN"),
	OPTION_LIST(struct csv_options, attributes,
		"columns shown with a change: commit, version, machine ...", .metavar = "COLUMNS"),
	OPTION_STRING(struct csv_options, base_branch, NULL,
		"default branch of a file with a column \"branch\" (required if it has several)",
		.metavar = "BRANCH"),
	OPTION_MAP(struct csv_options, csv_options,
		"delimiter (default: a comma) and quote_char (default: a double quote)"),
	{0},
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
	if (!reader->plan.inferred || number->state == COLUMN_NUMBERS)
		return fail_cell(reader, row, number->column, "a number");
	number->state = COLUMN_TEXT;
	return true;
}

/* Whether the row's branch is selected. Without a selected branch, several of them are an error:
 * see check_branches. */
static bool is_selected(struct reader *reader, const struct row *row)
{
	struct branches *branches = &reader->branches;

	if (reader->plan.branch == NO_COLUMN)
		return true;
	const struct cell *cell = &row->cells[reader->plan.branch];
	return branches_take(branches, reader->query->arena, cell->text, cell->length) &&
	       (branches->selected || branches->count == 1);
}

static bool take_row(struct reader *reader, const struct row *row)
{
	int64_t time;

	reader->rows_seen++;
	if (!check_width(reader, row))
		return false;
	if (!is_selected(reader, row))
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
	take_header(reader, &row);
	if (!plan_columns(reader) || !add_columns(reader))
		return false;
	while (!reader->query->listing || reader->rows_seen < LIST_ROWS) {
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

	if (branches->selected || branches->count < 2 || query->listing)
		return branches_check(branches, query->arena, name, "row", reader->error);
	return error_set(reader->error, ERROR_DATA,
		"%s: the file has several branches: select one with --branch, or set base_branch "
		"in the test (%s)",
		name, branches_list(branches, query->arena));
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
		if (!reader->plan.inferred || reader->plan.numbers[i].state == COLUMN_NUMBERS)
			metrics[i] = reader->plan.numbers[i].metric;
	for (size_t i = 0; i < reader->plan.text_count; i++)
		names[i] = reader->plan.texts[i].name;
	rows_finish(&reader->rows, reader->query, reader->input->name, metrics, names);
	if (reader->plan.inferred && reader->rows_seen && !reader->query->data.count)
		query_notice(reader->query, "%s: no column holds numbers", reader->input->name);
}

bool csv_parse(struct query *query, struct input *input, struct error *error)
{
	const struct csv_options *options = query->options;
	struct reader reader = {.query = query,
		.input = input,
		.error = error,
		.branches.selected = query->branch ? query->branch : options->base_branch};
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

static bool csv_read(struct query *query, struct error *error)
{
	const struct csv_options *options = query->options;
	return rows_read_file(query, options->file, csv_parse, error);
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
				"time_column: same column as metric \"%.200s\"", metrics[i].name);
	return true;
}

const struct source csv_source = {
	.plugin = {.name = "csv",
		.summary = "a CSV file with a row for each run",
		.fields = csv_fields,
		.options_size = sizeof(struct csv_options),
		.check = csv_check,
		.check_metrics = csv_check_metrics},
	.read = csv_read,
	.reads = file_reads,
};
