/*
 * The columns of the first result become a plan: time, metrics, attributes. Values come as text,
 * which is exact: PostgreSQL writes the shortest decimal that reads back as the same number.
 *
 * If the update statement names the time column, the time's text is kept as an additional column
 * while rows are sorted, and removed from the axis at the end. It has microseconds, which the axis
 * has not, so a WHERE with the axis' time would miss the row.
 */
#include "sources/postgres/rows.h"

#include <stddef.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"

enum { TEXT_BYTES_MAX = 1 << 28, NO_COLUMN = -1 };

static bool may_be_metric(const struct row_table *table, size_t column)
{
	const struct postgres_rows *rows =
		(const void *)((const char *)table - offsetof(struct postgres_rows, table));
	Oid type = PQftype(rows->result, (int)column);

	return type == TYPE_INT2 || type == TYPE_INT4 || type == TYPE_INT8 || type == TYPE_FLOAT4 ||
	       type == TYPE_FLOAT8 || type == TYPE_NUMERIC;
}

/* The time's text is the last one, if an update needs it. */
static bool plan_stamps(struct postgres_rows *rows)
{
	const struct postgres_options *options = rows->query->options;
	const char *mark = arena_printf(rows->query->arena, "{%s}", options->time_column);
	struct row_table *table = &rows->table;

	rows->stamp_text = NO_COLUMN;
	if (!options->update_statement || !strstr(options->update_statement, mark))
		return true;
	rows->stamp_text = (int)table->rows.text_count;
	return rows_add_text(&table->rows, options->time_column, table->time, rows->error);
}

/* Of several columns of one name the first counts, as in Otava. */
static bool plan(struct postgres_rows *rows)
{
	const struct postgres_options *options = rows->query->options;
	size_t count = (size_t)PQnfields(rows->result);
	const char **names = arena_array(rows->query->arena, count, sizeof *names);
	struct row_table *table = &rows->table;

	if (count == 0)
		return error_set(rows->error, ERROR_DATA,
			"%s: the query returns no columns: it must be a SELECT", rows->place);
	rows->planned = true;
	*table = (struct row_table){.query = rows->query,
		.place = rows->place,
		.error = rows->error,
		.is_query = true,
		.may_be_metric = may_be_metric};
	for (size_t i = 0; i < count; i++)
		names[i] = PQfname(rows->result, (int)i);
	table_begin(table, (struct strings){names, count});
	if (!table_plan(table, options->time_column, options->commit_column,
		    options->version_column, options->attributes) ||
		!plan_stamps(rows))
		return false;
	return table->rows.number_count > 0 ||
	       error_set(rows->error, ERROR_DATA,
		       "%s: the query returns no column of numbers besides the time and the "
		       "attributes",
		       rows->place);
}

static bool fail_value(const struct postgres_rows *rows, int row, int column, const char *wanted)
{
	int length = PQgetlength(rows->result, row, column);
	return error_set(rows->error, ERROR_DATA,
		"%s: row %zu, column \"%.100s\": \"%.*s\" is not %s", rows->place, rows->seen,
		PQfname(rows->result, column), length < 60 ? length : 60,
		PQgetvalue(rows->result, row, column), wanted);
}

static bool take_numbers(struct postgres_rows *rows, int row)
{
	struct row_table *table = &rows->table;

	for (size_t i = 0; i < table->rows.number_count; i++) {
		struct number_column *to = &table->rows.numbers[i];
		int column = (int)to->from;
		const char *text = PQgetvalue(rows->result, row, column);
		size_t length = (size_t)PQgetlength(rows->result, row, column);
		double value;
		if (PQgetisnull(rows->result, row, column) || number_missing(text, length))
			continue;
		if (!number_parse(text, length, &value))
			return fail_value(rows, row, column, "a number (the query can cast it)");
		to->values[table->rows.n - 1] = value;
	}
	return true;
}

static bool take_texts(struct postgres_rows *rows, int row)
{
	struct row_table *table = &rows->table;

	for (size_t i = 0; i < table->rows.text_count; i++) {
		int column = (int)table->rows.texts[i].from;
		size_t length = (size_t)PQgetlength(rows->result, row, column);
		if (PQgetisnull(rows->result, row, column) || length == 0)
			continue;
		rows->text_bytes += length;
		if (rows->text_bytes > TEXT_BYTES_MAX)
			return error_set(rows->error, ERROR_DATA,
				"%s: the attributes exceed 256 MB in total", rows->place);
		table->rows.texts[i].values[table->rows.n - 1] = rows_text(&table->rows,
			rows->query->arena, PQgetvalue(rows->result, row, column), length);
	}
	return true;
}

/* max_rows counts only rows in the selected range, so the bytes of all rows need a limit, too. */
static bool count_bytes(struct postgres_rows *rows, int row)
{
	for (int column = 0; column < PQnfields(rows->result); column++)
		rows->bytes += PQgetlength(rows->result, row, column);
	if (rows->bytes <= rows->max_body)
		return true;
	return error_set(rows->error, ERROR_DATA,
		"%s: the rows are larger than %lld bytes: narrow the query down, or raise max_body",
		rows->place, (long long)rows->max_body);
}

static bool take_row(struct postgres_rows *rows, int row)
{
	const struct query *query = rows->query;
	int time_column = (int)rows->table.time;
	const char *text = PQgetvalue(rows->result, row, time_column);
	int64_t time;
	rows->seen++;
	if (!count_bytes(rows, row))
		return false;
	/* NULL or an infinite time has no place on the axis. */
	if (PQgetisnull(rows->result, row, time_column) || strcmp(text, "infinity") == 0 ||
		strcmp(text, "-infinity") == 0) {
		rows->timeless++;
		return true;
	}
	if (!when_parse_stamp(text, (size_t)PQgetlength(rows->result, row, time_column), &time))
		return fail_value(rows, row, time_column, "a date");
	if (time < query->since || time >= query->until)
		return true;
	if (rows->table.rows.n >= (size_t)rows->max_rows)
		return error_set(rows->error, ERROR_DATA,
			"%s: more than %lld rows: narrow the query down, or raise max_rows",
			rows->place, (long long)rows->max_rows);
	return rows_append(&rows->table.rows, time, rows->error) && take_numbers(rows, row) &&
	       take_texts(rows, row);
}

bool postgres_rows_take(struct postgres_rows *rows, const PGresult *result, struct error *error)
{
	rows->result = result;
	rows->error = error;
	if (!rows->planned && !plan(rows))
		return false;
	for (int row = 0; row < PQntuples(result); row++)
		if (!take_row(rows, row))
			return false;
	return true;
}

/* Removes the column of the time's text from the axis and keeps it in query->state. */
static void keep_stamps(struct query *query, int stamp_text)
{
	if (stamp_text == NO_COLUMN || query->data.count == 0)
		return;
	struct axis *axis = query->data.series[0].axis;
	struct postgres_stamps *stamps = arena_alloc(query->arena, sizeof *stamps);
	*stamps = (struct postgres_stamps){axis->times, axis->columns[stamp_text].values};
	query->state = stamps;
	axis->column_count = (size_t)stamp_text; /* it is the last one */
}

void postgres_rows_finish(struct postgres_rows *rows)
{
	struct query *query = rows->query;
	if (rows->timeless > 0)
		query_notice(query, "%s: %zu rows without a time were left out", rows->place,
			rows->timeless);
	if (rows->seen == 0)
		query_notice(query, "%s: the query returns no rows", rows->place);
	else if (rows->table.rows.n == 0)
		query_notice(query, "%s: none of the %zu rows lies in the selected range",
			rows->place, rows->seen);
	if (rows->planned)
		rows_finish(&rows->table.rows, query, rows->place);
	keep_stamps(query, rows->planned ? rows->stamp_text : NO_COLUMN);
}
