/*
 * Names lead to places in arrays by a dictionary. Nothing is taken out: when the configuration has
 * lost a name, what remains moves to new tables.
 */
#include "agent/news/troubles.h"

#include <stdlib.h>

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

/* The name's place. One that is new gets the next place, and the name a copy. */
static size_t index_place(struct name_index *index, const char **name)
{
	const size_t *known = dict_get(&index->dict, *name);
	size_t *fresh;

	if (known)
		return *known;
	fresh = arena_alloc(index->dict.arena, sizeof *fresh);
	*fresh = index->count++;
	*name = arena_strdup(index->dict.arena, *name);
	*dict_place(&index->dict, *name) = fresh;
	return *fresh;
}

static size_t index_room(struct name_index *index, size_t needed)
{
	while (index->capacity < needed)
		index->capacity = index->capacity ? 2 * index->capacity : 16;
	return index->capacity;
}

size_t troubles_source(struct troubles *tables, const char *name)
{
	size_t before = tables->source_index.count, at = index_place(&tables->source_index, &name);

	if (at < before)
		return at;
	tables->sources = memory_resize(tables->sources, index_room(&tables->source_index, at + 1),
		sizeof *tables->sources);
	tables->sources[at] = (struct supplier){.name = name};
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
	size_t before = tables->test_index.count, at = index_place(&tables->test_index, &name);

	if (at >= before) {
		tables->tests = memory_resize(tables->tests,
			index_room(&tables->test_index, at + 1), sizeof *tables->tests);
		tables->tests[at] = (struct subject){.name = name, .source = source};
	}
	if (tables->tests[at].source != source) {
		troubles_count(tables, &tables->tests[at], SIZE_MAX);
		tables->tests[at].source = source;
		troubles_count(tables, &tables->tests[at], 1);
	}
	return &tables->tests[at];
}
