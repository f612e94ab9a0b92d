#include "agent/commands/inbox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/report/table.h"

static double size_of(const json_t *change)
{
	const json_t *size = json_object_get(change, "size");

	return json_is_number(size) ? fabs(json_number_value(size)) : HUGE_VAL;
}

/* What got worse before what changed without a direction. */
static int compare(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	bool worse = json_is_true(json_object_get(left, "regression"));
	double w = size_of(left), v = size_of(right);
	json_int_t i = json_integer_value(json_object_get(left, "id"));
	json_int_t j = json_integer_value(json_object_get(right, "id"));

	if (worse != json_is_true(json_object_get(right, "regression")))
		return worse ? -1 : 1;
	return w != v ? (w < v) - (w > v) : (i < j) - (i > j);
}

void inbox_sort(json_t *changes)
{
	size_t count = json_array_size(changes);
	json_t **items = memory_new(count + 1, sizeof(json_t *));

	for (size_t i = 0; i < count; i++)
		items[i] = json_incref(json_array_get(changes, i));
	qsort(items, count, sizeof(json_t *), compare);
	json_array_clear(changes);
	for (size_t i = 0; i < count; i++)
		json_array_append_new(changes, items[i]);
	free(items);
}

static const char *age(const struct answer_cell *cell)
{
	const char *time = json_string_value(cell->value);
	char text[WHEN_TEXT];
	int64_t ms;

	if (!time || !when_parse_stamp(time, strlen(time), &ms))
		return NULL;
	return arena_strdup(
		cell->arena, when_format_rough(cell->now > ms ? cell->now - ms : 0, text));
}

static const char *metric(const struct answer_cell *cell)
{
	const char *name = json_string_value(cell->value);
	const char *branch = answer_text(cell->item, "branch");

	return branch && name ? arena_printf(cell->arena, "%s (%s)", name, branch) : name;
}

static const char *size(const struct answer_cell *cell)
{
	return json_is_number(cell->value)
		       ? arena_printf(cell->arena, "%+.1f%%", json_number_value(cell->value))
		       : "new";
}

static const char *commits(const struct answer_cell *cell)
{
	bool known = json_is_object(cell->value);
	const char *from = answer_text(cell->item, known ? "suspects.from" : "commit_before");
	const char *to = answer_text(cell->item, known ? "suspects.to" : "commit_after");
	char scratch[2][TABLE_SCRATCH];

	if (known && json_integer_value(json_object_get(cell->value, "count")) == 0)
		return "no deployment";
	if (!from && !to)
		return NULL;
	return arena_printf(cell->arena, "%s..%s", from ? table_commit(from, scratch[0]) : "",
		to ? table_commit(to, scratch[1]) : "");
}

static const char *triage(const struct answer_cell *cell)
{
	return cell->value ? json_string_value(cell->value) : "open";
}

static const char *owner(const struct answer_cell *cell)
{
	const char *given = answer_text(cell->item, "triage.owner");

	return given ? given : answer_text(cell->item, "owner");
}

/* "ann, 2h ago" */
static const char *said_by(const struct answer_cell *cell)
{
	const char *person = answer_text(cell->item, "triage.person");
	const char *before = age(cell);

	return person && before ? arena_printf(cell->arena, "%s, %s ago", person, before) : person;
}

static const char *day(const struct answer_cell *cell)
{
	const char *time = answer_time(cell);

	return time ? arena_strndup(cell->arena, time, strlen("2026-01-02 03:04")) : NULL;
}

const struct answer_column inbox_columns[] = {
	{.header = "id", .key = "id", .number = true},
	{.header = "age", .key = "time", .text = age},
	{.header = "test", .key = "test"},
	{.header = "metric", .key = "metric", .text = metric},
	{.header = "change", .key = "size", .number = true, .text = size},
	{.header = "commits", .key = "suspects", .optional = true, .text = commits},
	{.header = "state", .key = "state"},
	{.header = "triage", .key = "triage.state", .text = triage},
	{.header = "owner", .key = "owner", .optional = true, .text = owner},
	{.header = "said by", .key = "triage.time", .optional = true, .text = said_by},
	{.header = "until", .key = "triage.until", .optional = true, .text = day},
	{.header = "note", .key = "triage.note", .optional = true},
	{.header = "link", .key = "triage.link", .optional = true},
	{0},
};
