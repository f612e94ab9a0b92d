/*
 * Two steps: first those of which something has been said, which are few; then, to tell them from
 * their neighbours, all of the tests that have some.
 */
#include "agent/commands/elsewhere.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/base/dict.h"
#include "agent/base/transfer.h"
#include "agent/base/when.h"

struct elsewhere {
	struct arena *arena;
	struct change_record *records; /* by test */
	size_t count, capacity;
};

static unsigned said_bits(void)
{
	unsigned bits = 0;

	for (unsigned state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		bits |= 1U << state;
	return bits;
}

static struct elsewhere *elsewhere_new(void)
{
	struct elsewhere *elsewhere = memory_new(1, sizeof *elsewhere);

	elsewhere->arena = arena_new();
	return elsewhere;
}

void elsewhere_free(struct elsewhere *elsewhere)
{
	if (!elsewhere)
		return;
	arena_free(elsewhere->arena);
	free(elsewhere->records);
	free(elsewhere);
}

static void add_record(struct elsewhere *elsewhere, const struct change_record *record)
{
	elsewhere->records = memory_grow(elsewhere->records, &elsewhere->capacity,
		elsewhere->count + 1, sizeof *elsewhere->records);
	elsewhere->records[elsewhere->count++] = *record;
}

static int compare(const void *a, const void *b)
{
	const struct change_record *left = a, *right = b;
	int order = strcmp(left->item.test, right->item.test);

	if (order != 0)
		return order;
	return (left->item.id > right->item.id) - (left->item.id < right->item.id);
}

struct record_rows elsewhere_rows(const struct elsewhere *elsewhere, const char *test)
{
	size_t low = 0, high = elsewhere ? elsewhere->count : 0, end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(elsewhere->records[middle].item.test, test) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	end = low;
	while (elsewhere && end < elsewhere->count &&
		strcmp(elsewhere->records[end].item.test, test) == 0)
		end++;
	return (struct record_rows){elsewhere ? elsewhere->records + low : NULL, end - low};
}

struct record_rows elsewhere_all(const struct elsewhere *elsewhere)
{
	return elsewhere ? (struct record_rows){elsewhere->records, elsewhere->count}
			 : (struct record_rows){0};
}

/* The names of the tests of the records, of those that are wanted. */
static struct strings tests_of(const struct elsewhere *elsewhere, const struct strings *wanted)
{
	struct dict names = {.arena = elsewhere->arena};
	const char **items = arena_array(elsewhere->arena, wanted->count, sizeof *items);
	size_t count = 0;

	for (size_t i = 0; i < elsewhere->count; i++)
		*dict_place(&names, elsewhere->records[i].item.test) = elsewhere;
	for (size_t i = 0; i < wanted->count; i++)
		if (dict_get(&names, wanted->items[i]))
			items[count++] = wanted->items[i];
	return (struct strings){items, count};
}

static void forget_all(struct elsewhere *elsewhere)
{
	elsewhere->count = 0;
}

static void sort(struct elsewhere *elsewhere)
{
	if (elsewhere->count > 0)
		qsort(elsewhere->records, elsewhere->count, sizeof *elsewhere->records, compare);
}

static bool list_state(struct elsewhere *elsewhere, const char *path, const struct strings *tests,
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
		add_record(elsewhere, &list->records.items[i]);
	arena_join(elsewhere->arena, list->call.arena);
	return true;
}

struct elsewhere *elsewhere_of_state(
	const char *path, const struct strings *tests, struct error *error)
{
	struct elsewhere *elsewhere = elsewhere_new();
	bool read = list_state(elsewhere, path, tests, said_bits(), error);

	if (read) {
		struct strings some = tests_of(elsewhere, tests);

		forget_all(elsewhere);
		read = list_state(elsewhere, path, &some, 0, error);
	}
	if (read) {
		sort(elsewhere);
		return elsewhere;
	}
	elsewhere_free(elsewhere);
	(void)error_prefix(error, "--state: ");
	return NULL;
}

/* Members of the API's documents. */
static const char *text_of(struct arena *arena, const json_t *object, const char *key)
{
	return arena_strdup(arena, json_string_value(json_object_get(object, key)));
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static int64_t time_of(const json_t *object, const char *key, int64_t missing)
{
	const char *text = json_string_value(json_object_get(object, key));
	int64_t time;

	return text && when_parse_stamp(text, strlen(text), &time) ? time : missing;
}

static enum change_state state_of(const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "state"));

	for (int state = 1; name && state < CHANGE_STATES; state++)
		if (strcmp(name, change_state_names[state]) == 0)
			return (enum change_state)state;
	return CHANGE_CONFIRMED;
}

static struct triage triage_of(struct arena *arena, const json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "state"));
	struct triage triage = {.note = text_of(arena, object, "note"),
		.person = text_of(arena, object, "person"),
		.until = time_of(object, "until", 0),
		.size = number_of(object, "size"),
		.size_low = number_of(object, "size_low"),
		.size_high = number_of(object, "size_high")};

	if (!name || !triage_state_named(name, &triage.state))
		triage.state = TRIAGE_OPEN;
	return triage;
}

static void set_change(const json_t *object, struct change *change)
{
	double followed = number_of(object, "count_after");

	change->level_before = number_of(object, "level_before");
	change->level_after = number_of(object, "level_after");
	change->size = number_of(object, "size");
	change->size_low = number_of(object, "size_low");
	change->size_high = number_of(object, "size_high");
	change->count_after = followed > 0 && followed < 1e9 ? (size_t)followed : 0;
}

bool elsewhere_record(struct arena *arena, const json_t *object, struct change_record *out)
{
	const json_t *id = json_object_get(object, "id");
	const char *branch = text_of(arena, object, "branch");

	*out = (struct change_record){
		.item = {.id = json_integer_value(id),
			.test = text_of(arena, object, "test"),
			.metric = text_of(arena, object, "metric"),
			.time = time_of(object, "time", WHEN_NEVER),
			.commit_after = text_of(arena, object, "commit_after"),
			.place_commit_after = text_of(arena, object, "place_commit_after")},
		.series = text_of(arena, object, "series"),
		.branch = branch ? branch : "",
		.state = state_of(object),
		.triage = triage_of(arena, json_object_get(object, "triage"))};
	set_change(object, &out->item.change);
	out->sign = change_sign(&out->item.change);
	return json_is_integer(id) && out->series && out->item.test && out->item.metric &&
	       out->item.time != WHEN_NEVER;
}

/* A page of changes; *next: the id before which the next one begins, 0: there is none. */
static bool take_page(struct elsewhere *elsewhere, struct agent_api *api, const char *path,
	int64_t *next, struct error *error)
{
	struct agent_api_answer answer;
	const json_t *changes, *object;
	size_t index;
	bool good;

	if (!agent_api_call(api, path, NULL, &answer, error))
		return false;
	changes = json_object_get(answer.document, "changes");
	good = json_is_array(changes);
	json_array_foreach(changes, index, object)
	{
		struct change_record record;

		good = good && elsewhere_record(elsewhere->arena, object, &record);
		if (good)
			add_record(elsewhere, &record);
	}
	*next = json_integer_value(json_object_get(answer.document, "next"));
	json_decref(answer.document);
	return good || error_set(error, ERROR_STATE,
			       "%s: its answer is not a list of changes: is it a hunter-c of "
			       "this version?",
			       agent_api_name(api));
}

/* All changes that `parameters` select. */
static bool list_agent(struct elsewhere *elsewhere, struct agent_api *api, const char *parameters,
	struct error *error)
{
	int64_t next = 0, before;

	do {
		struct buf path = {0};
		bool taken;

		buf_printf(&path, "/api/v1/changes?limit=1000&%s", parameters);
		if (next > 0)
			buf_printf(&path, "&before=%lld", (long long)next);
		before = next;
		taken = take_page(elsewhere, api, path.data, &next, error);
		buf_free(&path);
		if (!taken)
			return false;
	} while (next > 0 && (before == 0 || next < before));
	return true;
}

static bool list_tests(struct elsewhere *elsewhere, struct agent_api *api,
	const struct strings *tests, struct error *error)
{
	for (size_t i = 0; i < tests->count; i++) {
		struct buf parameters = {0};
		bool done;

		buf_text(&parameters, "test=");
		transfer_encode(&parameters, tests->items[i]);
		done = list_agent(elsewhere, api, parameters.data, error);
		buf_free(&parameters);
		if (!done)
			return false;
	}
	return true;
}

struct elsewhere *elsewhere_of_agent(
	struct agent_api *api, const struct strings *tests, struct error *error)
{
	struct elsewhere *elsewhere = elsewhere_new();
	struct buf parameters = {0};
	bool read;

	buf_text(&parameters, "triage=");
	for (int state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		buf_printf(&parameters, "%s%s", state > TRIAGE_OPEN + 1 ? "," : "",
			triage_state_names[state]);
	read = list_agent(elsewhere, api, parameters.data, error);
	buf_free(&parameters);
	if (read) {
		struct strings some = tests_of(elsewhere, tests);

		forget_all(elsewhere);
		read = list_tests(elsewhere, api, &some, error);
	}
	if (read) {
		sort(elsewhere);
		return elsewhere;
	}
	elsewhere_free(elsewhere);
	(void)error_prefix(error, "--agent: ");
	return NULL;
}
