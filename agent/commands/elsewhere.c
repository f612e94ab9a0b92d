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
#include "agent/model/columns.h"

struct elsewhere {
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

		elsewhere->count = 0;
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

/* What the object has of a column; nothing if that is missing, null, of another kind or out of
 * range. */
static void read_column(
	struct arena *arena, const struct stored_column *column, const json_t *value, void *row)
{
	const char *text = json_string_value(value);
	int64_t time, number = json_integer_value(value), first, last;

	if (column->type == COLUMN_NUMBER) {
		*(double *)column_member(column, row) =
			json_is_number(value) ? json_number_value(value) : (double)NAN;
	} else if (column->type == COLUMN_TEXT) {
		*(const char **)column_member(column, row) = arena_strdup(arena, text);
	} else if (json_is_integer(value)) {
		if (column_range(column, &first, &last) && number >= first && number <= last)
			column_set(column, row, number);
	} else if (text && column->names) {
		for (int i = column->first; i <= column->last; i++)
			if (column->names[i] && strcmp(column->names[i], text) == 0)
				column_set(column, row, i);
	} else if (text && when_parse_stamp(text, strlen(text), &time)) {
		column_set(column, row, time);
	}
}

static struct triage triage_of(struct arena *arena, const json_t *object)
{
	const char *state = json_string_value(json_object_get(object, "state"));
	const char *until = json_string_value(json_object_get(object, "until"));
	double sizes[3];
	static const char *const names[] = {"size", "size_low", "size_high"};
	struct triage triage = {
		.note = arena_strdup(arena, json_string_value(json_object_get(object, "note"))),
		.person =
			arena_strdup(arena, json_string_value(json_object_get(object, "person")))};

	for (size_t i = 0; i < 3; i++) {
		const json_t *value = json_object_get(object, names[i]);

		sizes[i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
	}
	triage.size = sizes[0];
	triage.size_low = sizes[1];
	triage.size_high = sizes[2];
	if (!until || !when_parse_stamp(until, strlen(until), &triage.until))
		triage.until = 0;
	if (!state || !triage_state_named(state, &triage.state))
		triage.state = TRIAGE_OPEN;
	return triage;
}

bool elsewhere_record(struct arena *arena, const json_t *object, struct change_record *out)
{
	*out = (struct change_record){.state = CHANGE_CONFIRMED, .item.time = WHEN_NEVER};
	for (const struct stored_column *column = change_columns; column->name; column++)
		if (column_is_shown(column))
			read_column(arena, column, json_object_get(object, column->name), out);
	out->branch = out->branch ? out->branch : "";
	out->triage = triage_of(arena, json_object_get(object, "triage"));
	out->sign = change_sign(&out->item.change);
	return out->item.id > 0 && out->series && out->item.test && out->item.metric &&
	       out->item.time != WHEN_NEVER;
}

/* A page of changes of the agent. */
static bool take_page(void *context, json_t *page)
{
	struct elsewhere *elsewhere = context;
	const json_t *object;
	size_t index;

	json_array_foreach(page, index, object)
	{
		struct change_record record;

		if (elsewhere_record(elsewhere->arena, object, &record))
			add_record(elsewhere, &record);
		else
			elsewhere->broken = true;
	}
	return !elsewhere->broken;
}

static bool list_tests(struct elsewhere *elsewhere, struct agent_api *api,
	const struct strings *tests, struct error *error)
{
	for (size_t i = 0; i < tests->count; i++) {
		struct buf parameters = {0};
		bool done, more;

		buf_text(&parameters, "&test=");
		transfer_encode(&parameters, tests->items[i]);
		done = agent_api_changes(api, parameters.data, take_page, elsewhere, &more, error);
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
	bool read, more;

	buf_text(&parameters, "&triage=");
	for (int state = TRIAGE_OPEN + 1; state < TRIAGE_STATES; state++)
		buf_printf(&parameters, "%s%s", state > TRIAGE_OPEN + 1 ? "," : "",
			triage_state_names[state]);
	read = agent_api_changes(api, parameters.data, take_page, elsewhere, &more, error);
	buf_free(&parameters);
	if (read) {
		struct strings some = tests_of(elsewhere, tests);

		elsewhere->count = 0;
		read = list_tests(elsewhere, api, &some, error);
	}
	if (read && elsewhere->broken)
		read = error_set(error, ERROR_STATE,
			"%s: its answer is not a list of changes: is it a hunter-c of this "
			"version?",
			agent_api_name(api));
	if (read) {
		sort(elsewhere);
		return elsewhere;
	}
	elsewhere_free(elsewhere);
	(void)error_prefix(error, "--agent: ");
	return NULL;
}
