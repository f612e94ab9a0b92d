/*
 * Names lead to places in arrays by an index. Nothing is taken out: when the configuration has
 * lost a name, what remains moves to new tables.
 */
#include "agent/monitor/health_table.h"

#include <stdlib.h>
#include <string.h>

struct health_table health_table_new(void)
{
	struct arena *arena = arena_new();

	return (struct health_table){.arena = arena,
		.source_index = {.dict = {.arena = arena}},
		.test_index = {.dict = {.arena = arena}}};
}

void health_table_free(struct health_table *tables)
{
	free(tables->sources);
	free(tables->tests);
	arena_free(tables->arena);
}

size_t health_table_source(struct health_table *tables, const char *name)
{
	struct name_index *index = &tables->source_index;
	size_t before = index->count, at = name_index_add(index, name, strlen(name));

	if (at < before)
		return at;
	tables->sources = memory_grow(
		tables->sources, &tables->source_capacity, at + 1, sizeof *tables->sources);
	tables->sources[at] = (struct source_health){.name = index->items[at]};
	return at;
}

void health_counts_add(struct health_counts *crowd, const struct health_state *trouble, size_t step)
{
	crowd->told += trouble->state == HEALTH_REPORTED ? step : 0;
	crowd->suppressed += trouble->state == HEALTH_SUPPRESSED ? step : 0;
	crowd->old += trouble->state == HEALTH_OLD ? step : 0;
	crowd->awaited += trouble->awaited ? step : 0;
}

/* Adds what the test adds to its source's crowds, or takes it away. */
void health_table_count(struct health_table *tables, const struct test_health *test, size_t step)
{
	for (size_t i = 0; i < ASPECTS && test->source != TROUBLES_NOWHERE; i++)
		health_counts_add(
			&tables->sources[test->source].counts[i], &test->troubles[i], step);
}

struct test_health *health_table_test(struct health_table *tables, const char *name, size_t source)
{
	struct name_index *index = &tables->test_index;
	size_t before = index->count, at = name_index_add(index, name, strlen(name));

	if (at >= before) {
		tables->tests = memory_grow(
			tables->tests, &tables->test_capacity, at + 1, sizeof *tables->tests);
		tables->tests[at] =
			(struct test_health){.name = index->items[at], .source = source};
	}
	if (tables->tests[at].source != source) {
		health_table_count(tables, &tables->tests[at], SIZE_MAX);
		tables->tests[at].source = source;
		health_table_count(tables, &tables->tests[at], 1);
	}
	return &tables->tests[at];
}
