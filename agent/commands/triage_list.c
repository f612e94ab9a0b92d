/*
 * Two steps: first those of which something has been said, which are few; then, to tell them from
 * their neighbours, all of the tests that have some.
 */
#include "agent/commands/triage_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/transfer.h"
#include "agent/base/when.h"
#include "agent/commands/records.h"

struct triage_list {
	struct arena *arena;
	struct change_record *records; /* by test */
	size_t count, capacity;
	bool broken; /* the agent's answer has something else than changes */
};

static unsigned said_bits(void)
{
	unsigned bits = 0;

	for (unsigned state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		bits |= 1U << state;
	return bits;
}

static struct triage_list *triage_list_new(void)
{
	struct triage_list *triaged = memory_new(1, sizeof *triaged);

	triaged->arena = arena_new();
	return triaged;
}

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

/* The names of the tests of the records, of those that are wanted. */
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

static void sort(struct triage_list *triaged)
{
	if (triaged->count > 0)
		qsort(triaged->records, triaged->count, sizeof *triaged->records, compare);
}

static bool list_state(struct triage_list *triaged, const char *path, const struct strings *tests,
	unsigned triage, struct error *error)
{
	struct store_list *list = store_list_new(NULL, NULL);

	if (tests->count == 0) {
		store_call_free(&list->call);
		return true;
	}
	list->filter = (struct change_filter){.names = *tests, .triage = triage};
	if (!store_tx(path, STORE_READ, &list->call, error)) {
		store_call_free(&list->call);
		return false;
	}
	for (size_t i = 0; i < list->records.count; i++)
		add_record(triaged, &list->records.items[i]);
	arena_join(triaged->arena, list->call.arena);
	return true;
}

struct triage_list *triage_list_of_state(
	const char *path, const struct strings *tests, struct error *error)
{
	struct triage_list *triaged = triage_list_new();
	bool read = list_state(triaged, path, tests, said_bits(), error);

	if (read) {
		struct strings some = tests_of(triaged, tests);

		triaged->count = 0;
		read = list_state(triaged, path, &some, 0, error);
	}
	if (read) {
		sort(triaged);
		return triaged;
	}
	triage_list_free(triaged);
	(void)error_prefix(error, "--state: ");
	return NULL;
}

/* A page of changes of the agent. */
static bool take_page(void *context, json_t *page)
{
	struct triage_list *triaged = context;
	const json_t *object;
	size_t index;

	json_array_foreach(page, index, object)
	{
		struct change_record record;

		if (record_read(triaged->arena, object, &record))
			add_record(triaged, &record);
		else
			triaged->broken = true;
	}
	return !triaged->broken;
}

static bool list_tests(struct triage_list *triaged, struct agent_api *api,
	const struct strings *tests, struct error *error)
{
	for (size_t i = 0; i < tests->count; i++) {
		struct buf parameters = {0};
		bool done, more;

		buf_text(&parameters, "&test=");
		transfer_encode(&parameters, tests->items[i]);
		done = agent_api_changes(api, parameters.data, take_page, triaged, &more, error);
		buf_free(&parameters);
		if (!done)
			return false;
	}
	return true;
}

struct triage_list *triage_list_of_agent(
	struct agent_api *api, const struct strings *tests, struct error *error)
{
	struct triage_list *triaged = triage_list_new();
	struct buf parameters = {0};
	bool read, more;

	buf_text(&parameters, "&triage=");
	for (int state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		buf_printf(&parameters, "%s%s", state > TRIAGE_OPEN + 1 ? "," : "",
			triage_state_names[state]);
	read = agent_api_changes(api, parameters.data, take_page, triaged, &more, error);
	buf_free(&parameters);
	if (read) {
		struct strings some = tests_of(triaged, tests);

		triaged->count = 0;
		read = list_tests(triaged, api, &some, error);
	}
	if (read && triaged->broken)
		read = error_set(error, ERROR_STATE,
			"%s: the response is not a list of changes: is it a hunter-c of this "
			"version?",
			agent_api_name(api));
	if (read) {
		sort(triaged);
		return triaged;
	}
	triage_list_free(triaged);
	(void)error_prefix(error, "--agent: ");
	return NULL;
}
