/*
 * The columns of the first result become a plan: time, metrics, attributes. Values come as text,
 * which is exact: PostgreSQL writes the shortest decimal that reads back as the same number.
 *
 * If the update statement names the time column, the time's text is kept as an additional column
 * while rows are sorted, and removed from the axis at the end. It has microseconds, which the axis
 * has not, so a WHERE with the axis' time would miss the row.
 */
#include "sources/postgres/rows.h"

#include <math.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/when.h"

enum { TEXT_BYTES_MAX = 1 << 28, NO_COLUMN = -1 };

void postgres_rows_free(struct postgres_rows *rows)
{
	rows_free(&rows->rows);
}

const char *postgres_time_mark(struct arena *arena, const struct postgres_options *options)
{
	return arena_printf(arena, "{%s}", options->time_column);
}

struct pairs postgres_attributes(struct arena *arena, const struct postgres_options *options)
{
	return attribute_names(
		arena, options->commit_column, options->version_column, options->attributes);
}

/* The first column of that name, as in Otava; a second one gives a notice. */
static int find_column(struct postgres_rows *rows, const char *name)
{
	int found = NO_COLUMN, count = PQnfields(rows->result);
	for (int i = 0; i < count; i++) {
		if (strcmp(PQfname(rows->result, i), name) != 0)
			continue;
		if (found != NO_COLUMN) {
			query_notice(rows->query,
				"%s: the query returns column \"%.100s\" more than once; the first "
				"is taken",
				rows->place, name);
			break;
		}
		found = i;
	}
	return found;
}

static bool need_column(struct postgres_rows *rows, const char *what, const char *name, int *column)
{
	*column = find_column(rows, name);
	if (*column != NO_COLUMN)
		return true;
	size_t count = (size_t)PQnfields(rows->result);
	const char **names = arena_array(rows->query->arena, count, sizeof *names);
	for (size_t i = 0; i < count; i++)
		names[i] = PQfname(rows->result, (int)i);
	return error_set(rows->error, ERROR_DATA,
		"%s: the query returns no column \"%.100s\" for %s%s", rows->place, name, what,
		column_hint(rows->query->arena, name, &(struct strings){names, count}));
}

static bool add_number(struct postgres_rows *rows, const struct metric *metric, int column)
{
	size_t index;
	if (!rows_add_number(&rows->rows, &index, rows->error))
		return false;
	rows->metrics[index] = metric;
	rows->numbers[index] = column;
	return true;
}

static bool add_text(struct postgres_rows *rows, const char *name, int column)
{
	size_t index;
	if (!rows_add_text(&rows->rows, &index, rows->error))
		return false;
	rows->names[index] = name;
	rows->texts[index] = column;
	return true;
}

static bool plan_metrics(struct postgres_rows *rows)
{
	const struct query *query = rows->query;
	rows->metrics = arena_array(query->arena, query->metric_count, sizeof *rows->metrics);
	rows->numbers = arena_array(query->arena, query->metric_count, sizeof *rows->numbers);
	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		const char *what = arena_printf(query->arena, "metric \"%.100s\"", metric->name);
		const char *name = metric->column ? metric->column : metric->name;
		int column;
		if (!need_column(rows, what, name, &column) || !add_number(rows, metric, column))
			return false;
	}
	return true;
}

static bool is_numeric(unsigned type)
{
	return type == TYPE_INT2 || type == TYPE_INT4 || type == TYPE_INT8 || type == TYPE_FLOAT4 ||
	       type == TYPE_FLOAT8 || type == TYPE_NUMERIC;
}

/* Without configured metrics: all numeric columns that have no other use. */
static bool plan_inferred(struct postgres_rows *rows)
{
	struct arena *arena = rows->query->arena;
	size_t count = (size_t)PQnfields(rows->result);
	rows->metrics = arena_array(arena, count, sizeof *rows->metrics);
	rows->numbers = arena_array(arena, count, sizeof *rows->numbers);
	for (int i = 0; i < (int)count; i++) {
		bool used = i == rows->time;
		for (size_t k = 0; k < rows->rows.text_count; k++)
			used |= rows->texts[k] == i;
		for (size_t k = 0; k < rows->rows.number_count; k++)
			used |= strcmp(rows->metrics[k]->name, PQfname(rows->result, i)) == 0;
		if (used || !is_numeric(PQftype(rows->result, i)))
			continue;
		struct metric *metric = arena_alloc(arena, sizeof *metric);
		*metric = (struct metric){.name = arena_strdup(arena, PQfname(rows->result, i)),
			.direction = 1,
			.scale = 1};
		if (!add_number(rows, metric, i))
			return false;
	}
	if (rows->rows.number_count > 0)
		return true;
	return error_set(rows->error, ERROR_DATA,
		"%s: the query returns no column of numbers besides the time and the attributes",
		rows->place);
}

static bool plan_texts(struct postgres_rows *rows)
{
	const struct postgres_options *options = rows->query->options;
	struct arena *arena = rows->query->arena;
	struct pairs names = postgres_attributes(arena, options);
	const char *mark = postgres_time_mark(arena, options);
	rows->texts = arena_array(arena, names.count + 1, sizeof *rows->texts);
	rows->names = arena_array(arena, names.count + 1, sizeof *rows->names);
	for (size_t i = 0; i < names.count; i++) {
		const struct pair *at = &names.items[i];
		int column;
		if (!need_column(rows, attribute_option(at), at->key, &column) ||
			!add_text(rows, at->value, column))
			return false;
	}
	rows->stamp_text = NO_COLUMN;
	if (!options->update_statement || !strstr(options->update_statement, mark))
		return true;
	rows->stamp_text = (int)rows->rows.text_count;
	return add_text(rows, options->time_column, rows->time);
}

static bool plan(struct postgres_rows *rows)
{
	const struct postgres_options *options = rows->query->options;
	if (PQnfields(rows->result) == 0)
		return error_set(rows->error, ERROR_DATA,
			"%s: the query returns no columns: it must be a SELECT", rows->place);
	rows->planned = true;
	return need_column(rows, "the time (see time_column)", options->time_column, &rows->time) &&
	       plan_texts(rows) &&
	       (rows->query->metric_count ? plan_metrics(rows) : plan_inferred(rows));
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
	size_t at = rows->rows.n - 1;
	for (size_t i = 0; i < rows->rows.number_count; i++) {
		int column = rows->numbers[i];
		const char *text = PQgetvalue(rows->result, row, column);
		size_t length = (size_t)PQgetlength(rows->result, row, column);
		double value;
		if (PQgetisnull(rows->result, row, column) || number_missing(text, length))
			continue;
		if (!number_parse(text, length, &value))
			return fail_value(rows, row, column, "a number (the query can cast it)");
		rows->rows.numbers[i][at] = value * rows->metrics[i]->scale;
	}
	return true;
}

static bool take_texts(struct postgres_rows *rows, int row)
{
	size_t at = rows->rows.n - 1;
	for (size_t i = 0; i < rows->rows.text_count; i++) {
		int column = rows->texts[i];
		size_t length = (size_t)PQgetlength(rows->result, row, column);
		if (PQgetisnull(rows->result, row, column) || length == 0)
			continue;
		rows->text_bytes += length;
		if (rows->text_bytes > TEXT_BYTES_MAX)
			return error_set(rows->error, ERROR_DATA,
				"%s: the attributes exceed 256 MB in total", rows->place);
		rows->rows.texts[i][at] = rows_text(&rows->rows, rows->query->arena,
			PQgetvalue(rows->result, row, column), length);
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

/* NULL or an infinite time has no place on the axis. */
static bool has_no_time(const PGresult *result, int row, int column)
{
	const char *text = PQgetvalue(result, row, column);
	return PQgetisnull(result, row, column) || strcmp(text, "infinity") == 0 ||
	       strcmp(text, "-infinity") == 0;
}

static bool take_row(struct postgres_rows *rows, int row)
{
	const struct query *query = rows->query;
	int64_t time;
	rows->seen++;
	if (!count_bytes(rows, row))
		return false;
	if (has_no_time(rows->result, row, rows->time)) {
		rows->timeless++;
		return true;
	}
	if (!when_parse_stamp(PQgetvalue(rows->result, row, rows->time),
		    (size_t)PQgetlength(rows->result, row, rows->time), &time))
		return fail_value(rows, row, rows->time, "a date");
	if (time < query->since || time >= query->until)
		return true;
	if (rows->rows.n >= (size_t)rows->max_rows)
		return error_set(rows->error, ERROR_DATA,
			"%s: more than %lld rows: narrow the query down, or raise max_rows",
			rows->place, (long long)rows->max_rows);
	return rows_append(&rows->rows, time, rows->error) && take_numbers(rows, row) &&
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
	else if (rows->rows.n == 0)
		query_notice(query, "%s: none of the %zu rows lies in the selected range",
			rows->place, rows->seen);
	if (rows->planned)
		rows_finish(&rows->rows, query, rows->place, rows->metrics, rows->names);
	keep_stamps(query, rows->planned ? rows->stamp_text : NO_COLUMN);
}
