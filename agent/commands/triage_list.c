/*
 * Two steps: first the triaged changes, which are few; then, to match them reliably, all changes of
 * their tests.
 */
#include "agent/commands/triage_list.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/commands/records.h"

struct triage_list {
	struct arena *arena;
	struct change_record *records; /* by test */
	size_t count, capacity;
};

void triage_list_free(struct triage_list *triaged)
{
	if (!triaged)
		return;
	arena_free(triaged->arena);
	free(triaged->records);
	free(triaged);
}

static void add_record(struct triage_list *triaged, const struct change_record *record)
{
	triaged->records = memory_grow(
		triaged->records, &triaged->capacity, triaged->count + 1, sizeof *triaged->records);
	triaged->records[triaged->count++] = *record;
}

static int compare(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;
	int order = strcmp(left->item.test, right->item.test);

	if (order != 0)
		return order;
	return (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

struct record_rows triage_list_rows(const struct triage_list *triaged, const char *test)
{
	size_t low = 0, high = triaged ? triaged->count : 0, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(triaged->records[middle].item.test, test) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	end = low;
	while (triaged && end < triaged->count &&
		strcmp(triaged->records[end].item.test, test) == 0)
		end++;
	return end > low ? (struct record_rows){triaged->records + low, end - low}
			 : (struct record_rows){0};
}

struct record_rows triage_list_all(const struct triage_list *triaged)
{
	return triaged ? (struct record_rows){triaged->records, triaged->count}
		       : (struct record_rows){0};
}

/* The wanted tests that have records. */
static struct strings tests_of(const struct triage_list *triaged, const struct strings *wanted)
{
	struct dict names = {.arena = triaged->arena};
	const char **items = arena_array(triaged->arena, wanted->count, sizeof *items);
	size_t count = 0;

	for (size_t i = 0; i < triaged->count; i++)
		*dict_place(&names, triaged->records[i].item.test) = triaged;
	for (size_t i = 0; i < wanted->count; i++)
		if (dict_get(&names, wanted->items[i]))
			items[count++] = wanted->items[i];
	return (struct strings){items, count};
}

enum { SAID = (1 << TRIAGE_STATES) - (1 << (TRIAGE_OPEN + 1)) };

/* "acknowledged,expected,...": the API's names of these. */
static const char *said_names(struct arena *arena)
{
	struct buf text = {0};

	for (int state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		buf_printf(&text, "%s%s", text.length > 0 ? "," : "", triage_state_names[state]);
	return buf_keep(&text, arena);
}

/* `said`: only triaged changes. */
static bool list_state(struct triage_list *triaged, const char *path, const struct strings *tests,
	bool said, struct error *error)
{
	struct store_list *list = store_list_new(NULL, NULL);
	bool read;

	list->filter = (struct change_filter){.names = *tests, .triage = said ? SAID : 0};
	read = tests->count == 0 || store_tx(path, STORE_READ, &list->call, error);
	for (size_t i = 0; read && i < list->records.count; i++)
		add_record(triaged, &list->records.items[i]);
	arena_join(triaged->arena, list->call.arena);
	return read;
}

static bool take_page(void *context, json_t *page, bool *wanted)
{
	struct triage_list *triaged = context;
	struct change_record record;

	*wanted = true;
	for (size_t i = 0; i < json_array_size(page); i++) {
		if (!record_read(triaged->arena, json_array_get(page, i), &record))
			return false;
		add_record(triaged, &record);
	}
	return true;
}

static bool list_agent(struct triage_list *triaged, struct agent_api *api,
	const struct strings *tests, bool said, struct error *error)
{
	bool read = true, more;

	for (size_t i = 0; read && i < (said ? 1 : tests->count); i++) {
		const struct pair pair = {said ? "triage" : "test",
			said ? said_names(triaged->arena) : tests->items[i]};
		const struct pairs form = {&pair, 1};

		read = agent_api_changes(api, &form, take_page, triaged, &more, error);
	}
	return read;
}

struct triage_list *triage_list_read(
	const char *path, struct agent_api *api, const struct strings *tests, struct error *error)
{
	struct triage_list *triaged = memory_new(1, sizeof *triaged);
	struct strings some;
	bool read;

	triaged->arena = arena_new();
	read = api ? list_agent(triaged, api, tests, true, error)
		   : list_state(triaged, path, tests, true, error);
	if (read) {
		some = tests_of(triaged, tests);
		triaged->count = 0;
		read = api ? list_agent(triaged, api, &some, false, error)
			   : list_state(triaged, path, &some, false, error);
	}
	if (read && triaged->count > 0)
		qsort(triaged->records, triaged->count, sizeof *triaged->records, compare);
	if (read)
		return triaged;
	triage_list_free(triaged);
	(void)error_prefix(error, api ? "--agent: " : "--state: ");
	return NULL;
}
