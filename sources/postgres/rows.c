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

enum { NO_COLUMN = -1 };

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
		.file = rows->place,
		.place = rows->place,
		.error = rows->error,
		.is_query = true,
		.may_be_metric = may_be_metric};
	for (size_t i = 0; i < count; i++)
		names[i] = PQfname(rows->result, (int)i);
	table_begin(table, (struct strings){names, count});
	rows->cells = arena_array(rows->query->arena, count, sizeof *rows->cells);
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

/* max_rows counts only rows in the selected range, so the bytes of all rows need a limit, too. */
static bool take_row(struct postgres_rows *rows, int row)
{
	struct cell *cells = rows->cells;
	const struct cell *time = &cells[rows->table.time];
	bool timed;
	rows->seen++;
	for (size_t i = 0; i < rows->table.header.count; i++) {
		cells[i] = (struct cell){PQgetvalue(rows->result, row, (int)i),
			(size_t)PQgetlength(rows->result, row, (int)i)};
		rows->bytes += (int64_t)cells[i].length;
	}
	if (rows->bytes > rows->max_body)
		return error_set(rows->error, ERROR_DATA,
			"%s: the rows are larger than %lld bytes: narrow the query down, or raise "
			"max_body",
			rows->place, (long long)rows->max_body);
	/* NULL or an infinite time has no place on the axis. */
	timed = !PQgetisnull(rows->result, row, (int)rows->table.time) &&
		strcmp(time->text, "infinity") != 0 && strcmp(time->text, "-infinity") != 0;
	rows->timeless += !timed;
	if (timed && !table_take(&rows->table, cells, rows->seen))
		return false;
	return rows->table.rows.n <= (size_t)rows->max_rows ||
	       error_set(rows->error, ERROR_DATA,
		       "%s: more than %lld rows: narrow the query down, or raise max_rows",
		       rows->place, (long long)rows->max_rows);
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
