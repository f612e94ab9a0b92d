/*
 * CSV files: a time column, columns of numbers (metrics) and columns of text (attributes).
 *
 * The header is turned into a plan: the use of each column. Each row is checked, filtered by branch
 * and time, and only then are the columns of the plan parsed and stored, so an error in a row that
 * is not selected does no harm. This and the rules about branches follow Otava.
 *
 * Without configured metrics every column of numbers is one. The first value of a column decides.
 */
#include <stddef.h>
#include <string.h>

#include "sources/files/delimited.h"
#include "sources/files/files.h"
#include "sources/files/table.h"

struct reader {
	struct query *query;
	struct input *input;
	struct delimited *delimited;
	struct error *error;
	struct row_table table;
	size_t branch; /* its column, or TABLE_NO_COLUMN */
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

static struct strings read_header(struct arena *arena, const struct row *row)
{
	const char **header = arena_array(arena, row->count, sizeof *header);

	for (size_t i = 0; i < row->count; i++) {
		const char *text = row->cells[i].text;
		size_t length = row->cells[i].length;

		for (; length && (*text == ' ' || *text == '\t'); length--)
			text++;
		while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
			length--;
		header[i] = arena_strndup(arena, text, length);
	}
	return (struct strings){header, row->count};
}

/* All columns that have a name; their values decide later. */
static bool may_be_metric(const struct row_table *table, size_t column)
{
	const struct reader *reader =
		(const void *)((const char *)table - offsetof(struct reader, table));

	return column != reader->branch && *table->header.items[column];
}

/* Fails (ERROR_DATA) if a required column is missing or ambiguous, naming file and column. */
static bool plan(struct reader *reader, const struct row *row)
{
	const struct query *query = reader->query;
	const struct csv_options *options = query->options;
	struct row_table *table = &reader->table;

	*table = (struct row_table){.query = reader->query,
		.file = reader->input->name,
		.place = arena_printf(query->arena, "%s:%zu", reader->input->name, row->line),
		.error = reader->error,
		.lone = "; the header has only one column: does the file use another delimiter "
			"(csv_options)?",
		.may_be_metric = may_be_metric};
	table_begin(table, read_header(query->arena, row));
	if (!table_find(table, "branch", &reader->branch))
		return false;
	if (!table_plan(table, options->time_column, options->commit_column,
		    options->version_column, options->attributes))
		return false;
	if (query->branch && reader->branch == TABLE_NO_COLUMN)
		return error_set(reader->error, ERROR_DATA,
			"%s: a branch is selected (--branch or $BRANCH), but there is no column "
			"\"branch\"",
			table->place);
	if (!query->metric_count)
		table->states =
			arena_array(query->arena, table->rows.number_count, sizeof *table->states);
	return true;
}

enum { LIST_ROWS = 1000 }; /* read to list metrics when none are configured */

static const struct field csv_fields[] = {
	OPTION_STRING(struct csv_options, file, NULL,
		"the CSV file, relative to the current folder", .flags = FIELD_REQUIRED),
	OPTION_STRING(struct csv_options, time_column, "time",
		"timestamp column: ISO 8601 (UTC without a zone) or epoch seconds or milliseconds"),
	OPTION_STRING(struct csv_options, commit_column, NULL,
		"column of a point's commit; default: commit"),
	OPTION_STRING(struct csv_options, version_column, NULL, "the same for its version"),
	OPTION_LIST(struct csv_options, attributes,
		"columns shown with a change: commit, version, machine ..."),
	OPTION_STRING(struct csv_options, base_branch, NULL,
		"default branch of a file with a column \"branch\" (required if it has several)"),
	OPTION_MAP(struct csv_options, csv_options,
		"delimiter (default: a comma) and quote_char (default: a double quote)"),
	{0},
};

static bool check_width(const struct reader *reader, const struct row *row)
{
	size_t extra = reader->table.header.count;

	while (extra < row->count && row->cells[extra].length == 0)
		extra++;
	if (row->count >= reader->table.header.count && extra == row->count)
		return true;
	return error_set(reader->error, ERROR_DATA, "%s:%zu: %zu columns, but the header has %zu",
		reader->input->name, row->line, row->count, reader->table.header.count);
}

/* Whether the row's branch is selected. Without a selected branch, several of them are an error:
 * see check_branches. */
static bool is_selected(struct reader *reader, const struct row *row)
{
	struct branches *branches = &reader->branches;

	if (reader->branch == TABLE_NO_COLUMN)
		return true;
	const struct cell *cell = &row->cells[reader->branch];
	return branches_take(branches, reader->query->arena, cell->text, cell->length) &&
	       (branches->selected || branches->count == 1);
}

static bool take_row(struct reader *reader, const struct row *row)
{
	reader->rows_seen++;
	return check_width(reader, row) &&
	       (!is_selected(reader, row) || table_take(&reader->table, row->cells, row->line));
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
	if (!plan(reader, &row))
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
	struct query *query = reader->query;
	struct row_table *table = &reader->table;

	if (reader->rows_seen == 0)
		query_notice(query, "%s: no rows after the header", reader->input->name);
	for (size_t i = 0; i < table->rows.number_count; i++)
		if (table->states && table->states[i] != TABLE_NUMBERS)
			table->rows.numbers[i].metric = NULL;
	rows_finish(&table->rows, query, reader->input->name);
	if (!query->metric_count && reader->rows_seen && !query->data.count)
		query_notice(query, "%s: no column holds numbers", reader->input->name);
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
	rows_free(&reader.table.rows);
	return good;
}

static bool csv_read(struct query *query, struct error *error)
{
	return rows_read_file(query, csv_parse, error);
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
