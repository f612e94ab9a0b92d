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
#include <stdint.h>
#include <string.h>

#include "agent/core/number.h"
#include "agent/core/when.h"
#include "sources/delimited.h"
#include "sources/files.h"
#include "sources/rows.h"

enum { LIST_ROWS = 1000 }; /* that are looked at to list metrics without configuration */

#define NO_COLUMN SIZE_MAX

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
	{.name = "attributes",
		.type = FIELD_LIST,
		.offset = offsetof(struct csv_options, attributes),
		.metavar = "COLUMNS",
		.help = "columns that are shown with a change: commit, version, branch ..."},
	{.name = "csv_options",
		.type = FIELD_MAP,
		.offset = offsetof(struct csv_options, csv_options),
		.help = "delimiter (default: a comma) and quote_char (default: a double quote)"},
	{0}};

enum column_state { COLUMN_UNKNOWN, COLUMN_NUMBERS, COLUMN_TEXT };

struct number_column {
	size_t column;
	double scale;
	const struct metric *metric;
	enum column_state state;
};

struct text_column {
	size_t column;
	const char *name;
};

struct reader {
	struct query *query;
	const struct csv_options *options;
	struct input *input;
	struct delimited *delimited;
	struct error *error;
	size_t row_limit; /* rows to read, for a listing; SIZE_MAX otherwise */
	bool guessing;    /* no metrics are configured */

	struct strings header;
	size_t time, branch;
	struct number_column *numbers;
	struct text_column *texts;
	size_t number_count, text_count;

	struct rows rows;
	struct branches branches;
	size_t rows_seen;
	bool branch_seen; /* the one that was asked for */
};

/* The one byte that an option of csv_options gives; "" is none, "\t" a tab. */
static bool parse_byte(const char *key, const char *value, char *out, struct error *error)
{
	if (strcmp(value, "\\t") == 0)
		value = "\t";
	if (strlen(value) > 1 || *value == '\r' || *value == '\n')
		return error_set(error, ERROR_USAGE,
			"csv_options: %s must be one character, not \"%.20s\"", key, value);
	*out = *value;
	return true;
}

static bool parse_dialect(
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
			const char *near = field_suggest(pair->key, names, 2);
			return error_set(error, ERROR_USAGE,
				"csv_options: unknown key \"%.60s\"%s%s%s", pair->key,
				near ? " (did you mean \"" : "", near ? near : "",
				near ? "\"?)" : "");
		}
		if (!parse_byte(pair->key, value, is_quote ? quote : delimiter, error))
			return false;
	}
	if (!*delimiter || *delimiter == *quote)
		return error_set(error, ERROR_USAGE,
			"csv_options: the delimiter must be there and differ from the quote");
	return true;
}

static void take_header(struct reader *reader, const struct row *row)
{
	struct arena *arena = reader->query->arena;
	const char **names = arena_array(arena, row->count, sizeof *names);

	for (size_t i = 0; i < row->count; i++) {
		const char *text = row->cells[i].text;
		size_t length = row->cells[i].length;

		for (; length && (*text == ' ' || *text == '\t'); length--)
			text++;
		while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
			length--;
		names[i] = arena_strndup(arena, text, length);
	}
	reader->header = (struct strings){names, row->count};
}

/* The column of that name, NO_COLUMN if there is none. Fails if there are two. */
static bool find_column(const struct reader *reader, const char *name, size_t *column)
{
	*column = NO_COLUMN;
	for (size_t i = 0; i < reader->header.count; i++) {
		if (strcmp(reader->header.items[i], name) != 0)
			continue;
		if (*column != NO_COLUMN)
			return error_set(reader->error, ERROR_DATA,
				"%s:1: column \"%.100s\" is there twice (columns %zu and %zu)",
				reader->input->name, name, *column + 1, i + 1);
		*column = i;
	}
	return true;
}

/* The same for a column that must be there. */
static bool need_column(
	const struct reader *reader, const char *what, const char *name, size_t *column)
{
	if (!find_column(reader, name, column))
		return false;
	if (*column != NO_COLUMN)
		return true;
	const char *near = field_suggest(name, reader->header.items, reader->header.count);
	return error_set(reader->error, ERROR_DATA, "%s:1: no column \"%.100s\" for %s%s%.100s%s",
		reader->input->name, name, what, near ? " (did you mean \"" : "", near ? near : "",
		near ? "\"?)" : "");
}

static bool plan_number(struct reader *reader, const struct metric *metric, size_t column)
{
	size_t index;

	reader->numbers[reader->number_count++] =
		(struct number_column){.column = column, .scale = metric->scale, .metric = metric};
	return rows_add_number(&reader->rows, &index, reader->error);
}

static bool plan_attributes(struct reader *reader)
{
	const struct strings *names = &reader->options->attributes;

	reader->texts = arena_array(reader->query->arena, names->count, sizeof *reader->texts);
	for (size_t i = 0; i < names->count; i++) {
		size_t column, index;
		bool known = false;

		if (!need_column(reader, "an attribute", names->items[i], &column))
			return false;
		for (size_t j = 0; j < reader->text_count; j++)
			known |= reader->texts[j].column == column;
		if (known || column == reader->time)
			continue;
		reader->texts[reader->text_count++] = (struct text_column){column, names->items[i]};
		if (!rows_add_text(&reader->rows, &index, reader->error))
			return false;
	}
	return true;
}

static bool plan_metrics(struct reader *reader)
{
	const struct query *query = reader->query;

	reader->numbers = arena_array(query->arena, query->metric_count, sizeof *reader->numbers);
	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		size_t column;
		const char *what = arena_printf(query->arena, "metric \"%.100s\"", metric->name);

		if (!need_column(reader, what, metric->column ? metric->column : metric->name,
			    &column) ||
			!plan_number(reader, metric, column))
			return false;
	}
	return true;
}

/* Without configured metrics: all columns that have a name and no other use, until their values say
 * otherwise. */
static bool plan_guess(struct reader *reader)
{
	struct arena *arena = reader->query->arena;

	reader->guessing = true;
	reader->numbers = arena_array(arena, reader->header.count, sizeof *reader->numbers);
	for (size_t i = 0; i < reader->header.count; i++) {
		bool used = i == reader->time || i == reader->branch || !*reader->header.items[i];
		size_t only;

		for (size_t j = 0; j < reader->text_count; j++)
			used |= reader->texts[j].column == i;
		if (used)
			continue;
		struct metric *metric = arena_alloc(arena, sizeof *metric);
		*metric = (struct metric){
			.name = reader->header.items[i], .direction = 1, .scale = 1};
		if (!find_column(reader, metric->name, &only) || !plan_number(reader, metric, i))
			return false;
	}
	return true;
}

static bool plan(struct reader *reader)
{
	if (!need_column(reader, "the time (see time_column)", reader->options->time_column,
		    &reader->time) ||
		!find_column(reader, "branch", &reader->branch))
		return false;
	if (reader->query->branch && reader->branch == NO_COLUMN)
		return error_set(reader->error, ERROR_DATA,
			"%s:1: a branch was asked for, but there is no column \"branch\"",
			reader->input->name);
	return plan_attributes(reader) &&
	       (reader->query->metric_count ? plan_metrics(reader) : plan_guess(reader));
}

static bool check_width(const struct reader *reader, const struct row *row)
{
	size_t extra = reader->header.count;

	while (extra < row->count && row->cells[extra].length == 0)
		extra++;
	if (row->count >= reader->header.count && extra == row->count)
		return true;
	return error_set(reader->error, ERROR_DATA, "%s:%zu: %zu columns, but the header has %zu",
		reader->input->name, row->line, row->count, reader->header.count);
}

static bool fail_cell(
	const struct reader *reader, const struct row *row, size_t column, const char *wanted)
{
	const struct cell *cell = &row->cells[column];
	int length = cell->length < 60 ? (int)cell->length : 60;

	return error_set(reader->error, ERROR_DATA, "%s:%zu: column \"%.100s\": \"%.*s\" is not %s",
		reader->input->name, row->line, reader->header.items[column], length, cell->text,
		wanted);
}

static bool store_number(struct reader *reader, const struct row *row, size_t index)
{
	struct number_column *number = &reader->numbers[index];
	const struct cell *cell = &row->cells[number->column];
	double value;

	if (number->state == COLUMN_TEXT)
		return true;
	if (number_parse(cell->text, cell->length, &value)) {
		number->state = COLUMN_NUMBERS;
		reader->rows.numbers[index][reader->rows.n - 1] = value * number->scale;
		return true;
	}
	if (number_missing(cell->text, cell->length))
		return true;
	if (!reader->guessing || number->state == COLUMN_NUMBERS)
		return fail_cell(reader, row, number->column, "a number");
	number->state = COLUMN_TEXT;
	return true;
}

/* Does the branch of the row count? Without a branch asked for, two of them are too many: see
 * check_branches. */
static bool is_wanted(struct reader *reader, const struct row *row)
{
	if (reader->branch == NO_COLUMN)
		return true;
	const struct cell *cell = &row->cells[reader->branch];
	const char *wanted = reader->query->branch;

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
	if (!when_parse_stamp(
		    row->cells[reader->time].text, row->cells[reader->time].length, &time))
		return fail_cell(reader, row, reader->time, "a date");
	if (time < reader->query->since || time >= reader->query->until)
		return true;
	if (!rows_append(&reader->rows, time, reader->error))
		return error_prefix(reader->error, "%s:%zu: ", reader->input->name, row->line);
	for (size_t i = 0; i < reader->number_count; i++)
		if (!store_number(reader, row, i))
			return false;
	for (size_t i = 0; i < reader->text_count; i++) {
		const struct cell *cell = &row->cells[reader->texts[i].column];

		if (cell->length)
			reader->rows.texts[i][reader->rows.n - 1] = rows_text(
				&reader->rows, reader->query->arena, cell->text, cell->length);
	}
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
	if (!plan(reader))
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

	if (!query->branch) {
		if (branches->count < 2)
			return true;
		return error_set(reader->error, ERROR_DATA,
			"%s: the file holds several branches, which must not be compared as one "
			"series: choose one with --branch "
			"(%s)",
			name, branches_list(branches, query->arena));
	}
	if (reader->branch_seen || branches->count == 0)
		return true;
	return error_set(reader->error, ERROR_DATA,
		"%s: no row is of branch \"%.100s\" (there are: %s)", name, query->branch,
		branches_list(branches, query->arena));
}

static void finish(struct reader *reader)
{
	struct arena *arena = reader->query->arena;
	const struct metric **metrics = arena_array(arena, reader->number_count, sizeof *metrics);
	const char **names = arena_array(arena, reader->text_count, sizeof *names);

	if (reader->rows_seen == 0)
		query_notice(reader->query, "%s: no rows after the header", reader->input->name);
	for (size_t i = 0; i < reader->number_count; i++)
		if (!reader->guessing || reader->numbers[i].state == COLUMN_NUMBERS)
			metrics[i] = reader->numbers[i].metric;
	for (size_t i = 0; i < reader->text_count; i++)
		names[i] = reader->texts[i].name;
	rows_finish(&reader->rows, reader->query, reader->input->name, metrics, names);
	if (reader->guessing && reader->rows_seen && !reader->query->data.count)
		query_notice(reader->query, "%s: no column holds numbers", reader->input->name);
}

static bool parse(struct query *query, struct input *input, size_t row_limit, struct error *error)
{
	struct reader reader = {.query = query,
		.options = query->options,
		.input = input,
		.error = error,
		.row_limit = row_limit};
	char delimiter, quote;

	if (!parse_dialect(reader.options, &delimiter, &quote, error))
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

static bool csv_read(struct query *query, struct error *error)
{
	const struct csv_options *options = query->options;
	struct input input;

	if (!input_open(&input, options->file, error))
		return false;
	bool good = parse(query, &input, SIZE_MAX, error);
	input_close(&input);
	return good;
}

/* Configured metrics are known by their names; to find others takes a look at the first rows. */
static bool csv_list(struct query *query, struct strings *names, struct error *error)
{
	const struct csv_options *options = query->options;
	size_t count = query->metric_count;
	struct input input;

	if (!count) {
		if (!input_open(&input, options->file, error))
			return false;
		bool good = parse(query, &input, LIST_ROWS, error);
		input_close(&input);
		if (!good)
			return false;
		count = query->data.count;
	}
	const char **items = arena_array(query->arena, count, sizeof *items);
	for (size_t i = 0; i < count; i++)
		items[i] =
			query->metric_count ? query->metrics[i].name : query->data.series[i].name;
	*names = (struct strings){items, count};
	return true;
}

const struct source csv_source = {
	.name = "csv",
	.summary = "a CSV file with a row for each run",
	.fields = csv_fields,
	.options_size = sizeof(struct csv_options),
	.read = csv_read,
	.list = csv_list,
};
