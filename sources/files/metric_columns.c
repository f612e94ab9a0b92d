/*
 * All columns of numbers are added here, so the index of a name is also that of its column.
 */
#include "sources/files/metric_columns.h"

#include <string.h>

static bool add(struct metric_columns *found, const struct metric *metric, struct error *error)
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
		if (found->names.count > known && !add(found, metric, error))
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
			if (!add(found, metric, error))
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
