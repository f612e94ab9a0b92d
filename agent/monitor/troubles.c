/*
 * Names lead to places in arrays by an index. Nothing is taken out: when the configuration has
 * lost a name, what remains moves to new tables.
 */
#include "agent/monitor/troubles.h"

#include <stdlib.h>
#include <string.h>

struct troubles troubles_new(void)
{
	struct arena *arena = arena_new();

	return (struct troubles){.arena = arena,
		.source_index = {.dict = {.arena = arena}},
		.test_index = {.dict = {.arena = arena}}};
}

void troubles_free(struct troubles *tables)
{
	free(tables->sources);
	free(tables->tests);
	arena_free(tables->arena);
}

size_t troubles_source(struct troubles *tables, const char *name)
{
	struct name_index *index = &tables->source_index;
	size_t before = index->count, at = name_index_add(index, name, strlen(name));

	if (at < before)
		return at;
	tables->sources = memory_grow(
		tables->sources, &tables->source_capacity, at + 1, sizeof *tables->sources);
	tables->sources[at] = (struct supplier){.name = index->items[at]};
	return at;
}

void crowd_count(struct crowd *crowd, const struct trouble *trouble, size_t step)
{
	crowd->told += trouble->state == TROUBLE_TOLD ? step : 0;
	crowd->hushed += trouble->state == TROUBLE_HUSHED ? step : 0;
	crowd->old += trouble->state == TROUBLE_OLD ? step : 0;
	crowd->awaited += trouble->awaited ? step : 0;
}

/* Adds what the test adds to its source's crowds, or takes it away. */
void troubles_count(struct troubles *tables, const struct subject *test, size_t step)
{
	for (size_t i = 0; i < ASPECTS && test->source != TROUBLES_NOWHERE; i++)
		crowd_count(&tables->sources[test->source].crowds[i], &test->troubles[i], step);
}

struct subject *troubles_test(struct troubles *tables, const char *name, size_t source)
{
	struct name_index *index = &tables->test_index;
	size_t before = index->count, at = name_index_add(index, name, strlen(name));

	if (at >= before) {
		tables->tests = memory_grow(
			tables->tests, &tables->test_capacity, at + 1, sizeof *tables->tests);
		tables->tests[at] = (struct subject){.name = index->items[at], .source = source};
	}
	if (tables->tests[at].source != source) {
		troubles_count(tables, &tables->tests[at], SIZE_MAX);
		tables->tests[at].source = source;
		troubles_count(tables, &tables->tests[at], 1);
	}
	return &tables->tests[at];
}
