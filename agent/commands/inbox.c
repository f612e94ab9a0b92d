/* Columns without any text are left out. */
#include "agent/commands/inbox.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/report/table.h"

enum inbox_column {
	COLUMN_ID,
	COLUMN_AGE,
	COLUMN_TEST,
	COLUMN_METRIC,
	COLUMN_CHANGE,
	COLUMN_COMMITS,
	COLUMN_STATE,
	COLUMN_TRIAGE,
	COLUMN_OWNER,
	COLUMN_PERSON,
	COLUMN_UNTIL,
	COLUMN_NOTE,
	COLUMN_LINK,
	COLUMNS,
};

struct row {
	const char *cells[COLUMNS];
};

struct rows {
	const struct row *rows;
	size_t count, *at;
	const size_t *cells; /* of the columns shown */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && *text ? text : NULL;
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static double weight(const json_t *change)
{
	double size = number_of(change, "size");

	return isnan(size) ? HUGE_VAL : fabs(size);
}

static bool is_worse(const json_t *change)
{
	return json_is_true(json_object_get(change, "regression"));
}

/* What got worse before what changed without a direction. */
static int compare(const void *a, const void *b)
{
	const json_t *left = *(json_t *const *)a, *right = *(json_t *const *)b;
	double w = weight(left), v = weight(right);
	json_int_t i = json_integer_value(json_object_get(left, "id"));
	json_int_t j = json_integer_value(json_object_get(right, "id"));

	if (is_worse(left) != is_worse(right))
		return is_worse(left) ? -1 : 1;
	return w != v ? (w < v ? 1 : -1) : (i < j) - (i > j);
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

static const char *since(struct arena *arena, const char *time, int64_t now)
{
	char text[WHEN_TEXT];
	int64_t ms;

	if (!time || !when_parse_stamp(time, strlen(time), &ms))
		return NULL;
	return arena_strdup(arena, when_format_rough(now > ms ? now - ms : 0, text));
}

static const char *day(struct arena *arena, const char *time)
{
	char text[WHEN_TEXT];
	int64_t ms;

	if (!time || !when_parse_stamp(time, strlen(time), &ms))
		return NULL;
	return arena_strndup(arena, when_format(ms, text), strlen("2026-01-02 03:04"));
}

static const char *size_of(struct arena *arena, const json_t *change)
{
	double size = number_of(change, "size");

	return isnan(size) ? "new" : arena_printf(arena, "%+.1f%%", size);
}

static const char *commits_of(struct arena *arena, const json_t *change)
{
	const json_t *suspects = json_object_get(change, "suspects");
	const char *from, *to;
	char scratch[2][TABLE_SCRATCH];

	if (json_is_object(suspects) && json_integer_value(json_object_get(suspects, "count")) == 0)
		return "no deployment";
	from = json_is_object(suspects) ? text_of(suspects, "from")
					: text_of(change, "commit_before");
	to = json_is_object(suspects) ? text_of(suspects, "to") : text_of(change, "commit_after");
	if (!from && !to)
		return NULL;
	return arena_printf(arena, "%s..%s", from ? table_commit(from, scratch[0]) : "",
		to ? table_commit(to, scratch[1]) : "");
}

/* "ann, 2h ago" */
static const char *said_by(struct arena *arena, const json_t *triage, int64_t now)
{
	const char *person = text_of(triage, "person");
	const char *age = since(arena, text_of(triage, "time"), now);

	if (!person)
		return NULL;
	return age ? arena_printf(arena, "%s, %s ago", person, age) : person;
}

static struct row row_of(struct arena *arena, const json_t *change, int64_t now)
{
	const json_t *triage = json_object_get(change, "triage");
	const char *branch = text_of(change, "branch"), *metric = text_of(change, "metric");
	const char *state = text_of(triage, "state"), *owner = text_of(triage, "owner");

	return (struct row){{
		[COLUMN_ID] = arena_printf(arena, "%" PRId64,
			(int64_t)json_integer_value(json_object_get(change, "id"))),
		[COLUMN_AGE] = since(arena, text_of(change, "time"), now),
		[COLUMN_TEST] = text_of(change, "test"),
		[COLUMN_METRIC] =
			branch && metric ? arena_printf(arena, "%s (%s)", metric, branch) : metric,
		[COLUMN_CHANGE] = size_of(arena, change),
		[COLUMN_COMMITS] = commits_of(arena, change),
		[COLUMN_STATE] = text_of(change, "state"),
		[COLUMN_TRIAGE] = state ? state : "open",
		[COLUMN_OWNER] = owner ? owner : text_of(change, "owner"),
		[COLUMN_PERSON] = said_by(arena, triage, now),
		[COLUMN_UNTIL] = day(arena, text_of(triage, "until")),
		[COLUMN_NOTE] = text_of(triage, "note"),
		[COLUMN_LINK] = text_of(triage, "link"),
	}};
}

static bool next_row(const void *context, bool first)
{
	const struct rows *rows = context;

	*rows->at = first ? 0 : *rows->at + 1;
	return *rows->at < rows->count;
}

static const char *cell(const void *context, size_t column, char scratch[TABLE_SCRATCH])
{
	const struct rows *rows = context;

	(void)scratch;
	return rows->rows[*rows->at].cells[rows->cells[column]];
}

static bool is_shown(const struct row *rows, size_t count, size_t column)
{
	bool shown = column <= COLUMN_TRIAGE && column != COLUMN_COMMITS;

	for (size_t i = 0; i < count && !shown; i++)
		shown = rows[i].cells[column] != NULL;
	return shown;
}

void inbox_print(const json_t *changes, int64_t now, struct arena *arena, FILE *out)
{
	static const char *const headers[COLUMNS] = {"id", "age", "test", "metric", "change",
		"commits", "state", "triage", "owner", "said by", "until", "note", "link"};
	size_t count = json_array_size(changes), at = 0, shown[COLUMNS];
	struct row *cells = arena_array(arena, count, sizeof *cells);
	struct rows rows = {cells, count, &at, shown};
	struct table_column columns[COLUMNS] = {0};
	struct table table = {.columns = columns, .next = next_row, .cell = cell, .context = &rows};

	for (size_t i = 0; i < count; i++)
		cells[i] = row_of(arena, json_array_get(changes, i), now);
	for (size_t i = 0; i < COLUMNS; i++) {
		if (!is_shown(cells, count, i))
			continue;
		columns[table.column_count] = (struct table_column){
			.header = headers[i], .number = i == COLUMN_ID || i == COLUMN_CHANGE};
		shown[table.column_count++] = i;
	}
	table_measure(&table);
	table_print_header(&table, out);
	for (bool row = next_row(&rows, true); row; row = next_row(&rows, false))
		table_print_row(&table, out);
}
