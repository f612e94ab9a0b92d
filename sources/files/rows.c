/*
 * Columns grow by doubling on the heap, where a large block moves without being copied. At the end
 * they are copied to the arena one by one, so the peak is the data plus one column.
 */
#include "sources/files/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/hash.h"
#include "agent/base/order.h"
#include "sources/files/files.h"

enum { FIRST_CAPACITY = 1024 };

void rows_free(struct rows *rows)
{
	free(rows->times);
	for (size_t i = 0; i < rows->number_count; i++)
		free(rows->numbers[i].values);
	for (size_t i = 0; i < rows->text_count; i++)
		free(rows->texts[i].values);
	free(rows->numbers);
	free(rows->texts);
	*rows = (struct rows){0};
}

static size_t column_count(const struct rows *rows)
{
	return rows->number_count + rows->text_count + 1;
}

static void set_capacity(struct rows *rows, size_t capacity)
{
	rows->times = memory_resize(rows->times, capacity, sizeof *rows->times);
	for (size_t i = 0; i < rows->number_count; i++)
		rows->numbers[i].values =
			memory_resize(rows->numbers[i].values, capacity, sizeof(double));
	for (size_t i = 0; i < rows->text_count; i++)
		rows->texts[i].values =
			memory_resize(rows->texts[i].values, capacity, sizeof(char *));
	rows->capacity = capacity;
}

static bool fail_size(struct error *error)
{
	return error_set(error, ERROR_DATA,
		"too much data: more than %d values (rows times columns); read less by --since, "
		"or fewer columns",
		ROWS_CELLS_MAX);
}

/* Fails if another column would be too much; limits the capacity of the columns accordingly. */
static bool make_room(struct rows *rows, struct error *error)
{
	size_t most = ROWS_CELLS_MAX / (column_count(rows) + 1);

	if (rows->n > most)
		return fail_size(error);
	if (rows->capacity > most)
		set_capacity(rows, most);
	return true;
}

bool rows_add_number(
	struct rows *rows, const struct metric *metric, size_t from, struct error *error)
{
	if (!make_room(rows, error))
		return false;
	double *values = memory_new(rows->capacity, sizeof *values);
	for (size_t i = 0; i < rows->n; i++)
		values[i] = (double)NAN;
	rows->numbers = memory_grow(rows->numbers, &rows->number_capacity, rows->number_count + 1,
		sizeof *rows->numbers);
	rows->numbers[rows->number_count++] = (struct number_column){metric, from, values};
	return true;
}

bool rows_add_text(struct rows *rows, const char *name, size_t from, struct error *error)
{
	if (!make_room(rows, error))
		return false;
	rows->texts = memory_grow(
		rows->texts, &rows->text_capacity, rows->text_count + 1, sizeof *rows->texts);
	rows->texts[rows->text_count++] =
		(struct text_column){name, from, memory_new(rows->capacity, sizeof(char *))};
	return true;
}

static bool grow(struct rows *rows, struct error *error)
{
	size_t capacity = rows->capacity ? 2 * rows->capacity : FIRST_CAPACITY;
	size_t most = ROWS_CELLS_MAX / column_count(rows);

	if (rows->n == ROWS_MAX)
		return error_set(error, ERROR_DATA, "more than %d rows", ROWS_MAX);
	if (rows->n >= most)
		return fail_size(error);
	set_capacity(rows, capacity < most ? capacity : most);
	return true;
}

bool rows_append(struct rows *rows, int64_t time, struct error *error)
{
	if ((rows->n == rows->capacity || rows->n == ROWS_MAX) && !grow(rows, error))
		return false;
	rows->times[rows->n] = time;
	for (size_t i = 0; i < rows->number_count; i++)
		rows->numbers[i].values[rows->n] = (double)NAN;
	for (size_t i = 0; i < rows->text_count; i++)
		rows->texts[i].values[rows->n] = NULL;
	rows->n++;
	return true;
}

static bool same(const char *known, const char *text, size_t length)
{
	return known && strncmp(known, text, length) == 0 && known[length] == '\0';
}

const char *rows_text(struct rows *rows, struct arena *arena, const char *text, size_t length)
{
	const char **slot = &rows->recent[hash_slot(text, length) % ROWS_RECENT];

	if (!same(*slot, text, length)) {
		*slot = arena_strndup(arena, text, length);
		rows->text_bytes += length;
	}
	return *slot;
}

/* Moves a heap column to the arena. */
static void *settle(struct arena *arena, void *column, size_t n)
{
	void *settled = arena_array(arena, n, sizeof(double));

	if (n)
		memcpy(settled, column, n * sizeof(double));
	free(column);
	return settled;
}

_Static_assert(sizeof(double) == sizeof(char *) && sizeof(double) == sizeof(int64_t),
	"columns of eight bytes");

void rows_finish(struct rows *rows, struct query *query, const char *file)
{
	struct arena *arena = query->arena, *scratch = arena_new();
	struct axis *axis = arena_alloc(arena, sizeof *axis);

	axis->n = rows->n;
	axis->times = settle(arena, rows->times, rows->n);
	axis->columns = arena_array(arena, rows->text_count, sizeof *axis->columns);
	axis->column_count = rows->text_count;
	for (size_t i = 0; i < rows->text_count; i++)
		axis->columns[i] = (struct column){
			rows->texts[i].name, settle(arena, rows->texts[i].values, rows->n)};
	query->data.series = arena_array(arena, rows->number_count, sizeof *query->data.series);
	for (size_t i = 0; i < rows->number_count; i++) {
		const struct metric *metric = rows->numbers[i].metric;
		double *values = rows->numbers[i].values;

		if (!metric) {
			free(values);
			continue;
		}
		for (size_t k = 0; k < rows->n; k++)
			values[k] *= metric->scale;
		query->data.series[query->data.count++] = (struct series){.metric = metric,
			.name = metric->name,
			.identity = metric->name,
			.axis = axis,
			.values = settle(arena, values, rows->n)};
	}
	if (dataset_sort(&query->data, scratch))
		query_notice(
			query, "%s: the rows were not in order of time and have been sorted", file);
	arena_free(scratch);
	free(rows->numbers);
	free(rows->texts);
	*rows = (struct rows){0};
}

static bool add_metric(
	struct metric_columns *found, const struct metric *metric, struct error *error)
{
	size_t column = found->rows->number_count;

	found->seen = arena_grow(found->query->arena, found->seen, column, sizeof *found->seen);
	found->seen[column] = false;
	return rows_add_number(found->rows, metric, column, error);
}

bool metric_columns_start(
	struct metric_columns *found, struct query *query, struct rows *rows, struct error *error)
{
	*found = (struct metric_columns){
		.query = query, .rows = rows, .names = {.dict = {.arena = query->arena}}};
	for (size_t i = 0; i < query->metric_count; i++) {
		const struct metric *metric = &query->metrics[i];
		const char *name = metric->column ? metric->column : metric->name;
		size_t known = found->names.count;

		name_index_add(&found->names, name, strlen(name));
		if (found->names.count > known && !add_metric(found, metric, error))
			return false;
	}
	return true;
}

bool metric_columns_column(struct metric_columns *found, const char *name, size_t length,
	int direction, size_t *column, struct error *error)
{
	struct arena *arena = found->query->arena;
	size_t known = found->names.count;

	if (found->query->metric_count) {
		*column = name_index_find(&found->names, name, length);
		if (*column == NAME_INDEX_NONE)
			return true;
	} else {
		*column = name_index_add(&found->names, name, length);
		if (found->names.count > known) {
			struct metric *metric = arena_alloc(arena, sizeof *metric);

			*metric = (struct metric){.name = found->names.items[known],
				.direction = direction,
				.scale = 1};
			if (!add_metric(found, metric, error))
				return false;
		}
	}
	found->seen[*column] = true;
	return true;
}

void metric_columns_finish(struct metric_columns *found, const char *file)
{
	for (size_t i = 0; i < found->names.count && found->rows->n; i++) {
		struct number_column *column = &found->rows->numbers[i];

		if (found->seen[i])
			continue;
		query_notice(found->query, "%s: no values of metric \"%.100s\"", file,
			column->metric->name);
		column->metric = NULL;
	}
	rows_finish(found->rows, found->query, file);
}

static void add_branch(
	struct branches *branches, struct arena *arena, const char *text, size_t length)
{
	if (branches->count && same(branches->names[branches->last], text, length))
		return;
	for (size_t i = 0; i < branches->count; i++)
		if (same(branches->names[i], text, length)) {
			branches->last = i;
			return;
		}
	if (branches->count == BRANCHES_NAMED) {
		branches->more = true;
		return;
	}
	branches->last = branches->count;
	branches->names[branches->count++] = arena_strndup(arena, text, length);
}

bool branches_take(struct branches *branches, struct arena *arena, const char *text, size_t length)
{
	if (text)
		add_branch(branches, arena, text, length);
	if (!branches->selected)
		return true;
	if (!text || !same(branches->selected, text, length))
		return false;
	branches->selected_seen = true;
	return true;
}

const char *branches_list(struct branches *branches, struct arena *arena)
{
	struct buf text = {0};

	qsort(branches->names, branches->count, sizeof branches->names[0], order_texts);
	for (size_t i = 0; i < branches->count; i++)
		buf_printf(&text, "%s%s", i ? ", " : "",
			*branches->names[i] ? branches->names[i] : "(none)");
	if (branches->more)
		buf_text(&text, " and others");
	return buf_keep(&text, arena);
}

bool branches_check(struct branches *branches, struct arena *arena, const char *file,
	const char *noun, struct error *error)
{
	if (!branches->selected || branches->selected_seen || branches->count == 0)
		return true;
	return error_set(error, ERROR_DATA, "%s: no %s of branch \"%.100s\" (there are: %s)", file,
		noun, branches->selected, branches_list(branches, arena));
}

bool rows_read_file(struct query *query, rows_parse *parse, struct error *error)
{
	const char *const *file = query->options;
	struct input input;

	if (!input_open(&input, *file, query->timeout, error))
		return false;
	bool good = parse(query, &input, error);
	input_close(&input);
	return good;
}

bool file_reads(struct query *query, struct source_readings *out, struct error *error)
{
	const char *const *file = query->options;

	(void)error;
	query_reads(query, out, (struct source_reading){READING_FILE, *file, NULL});
	return true;
}
