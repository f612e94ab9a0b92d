/*
 * Writes the two columns by hand and reads them with jansson, row by row.
 */
#include "agent/store/sqlite/attributes.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/sqlite/rows.h"

static const char *const basis_names[] = {
	[BASIS_LOAD] = "explained_by", [BASIS_RATIO] = "relative_to", [BASIS_UNUSED] = "beside"};

/* The row of the basis: its name stands after a space, which no column's name begins with. */
static void put_basis(struct buf *out, const struct announcement *item)
{
	buf_printf(out, "[\" %s\", ", basis_names[item->basis]);
	buf_json_text(out, item->other);
	if (item->other_changed)
		buf_printf(out, ", \"%.17g\"]", item->other_size);
	else
		buf_text(out, ", null]");
}

void store_attributes_put(struct buf *out, const struct announcement *item)
{
	if (item->attribute_count == 0 && !item->other)
		return;
	buf_char(out, '[');
	if (item->other)
		put_basis(out, item);
	buf_text(out, item->other && item->attribute_count > 0 ? ", " : "");
	for (size_t i = 0; i < item->attribute_count; i++) {
		const struct attribute *attribute = &item->attributes[i];

		buf_text(out, i > 0 ? ", [" : "[");
		buf_json_text(out, attribute->name);
		buf_text(out, ", ");
		buf_json_text(out, attribute->before);
		buf_text(out, ", ");
		buf_json_text(out, attribute->after);
		buf_char(out, ']');
	}
	buf_char(out, ']');
}

static bool is_value(const json_t *value)
{
	return json_is_string(value) || json_is_null(value);
}

static bool read_attribute(struct arena *arena, const json_t *row, struct attribute *out)
{
	const json_t *name = json_array_get(row, 0);
	const json_t *before = json_array_get(row, 1), *after = json_array_get(row, 2);

	if (json_array_size(row) != 3 || !json_is_string(name) || !is_value(before) ||
		!is_value(after))
		return false;
	out->name = arena_strdup(arena, json_string_value(name));
	out->before = arena_strdup(arena, json_string_value(before));
	out->after = arena_strdup(arena, json_string_value(after));
	return true;
}

/* True if the row is the basis. */
static bool read_basis(struct arena *arena, const json_t *row, struct announcement *item)
{
	const char *name = json_string_value(json_array_get(row, 0));
	const char *size = json_string_value(json_array_get(row, 2));

	for (enum basis basis = BASIS_LOAD; name && *name == ' ' && basis <= BASIS_UNUSED; basis++)
		if (strcmp(name + 1, basis_names[basis]) == 0)
			item->basis = basis;
	if (item->basis == BASIS_NONE || !json_is_string(json_array_get(row, 1)))
		return false;
	item->other = arena_strdup(arena, json_string_value(json_array_get(row, 1)));
	item->other_changed = size != NULL;
	item->other_size = size ? strtod(size, NULL) : 0;
	return true;
}

static bool read_rows(struct arena *arena, const json_t *rows, struct announcement *item)
{
	size_t count = json_array_size(rows), first;
	struct attribute *attributes;

	if (!json_is_array(rows) || count > STORE_ATTRIBUTES_MAX + 1)
		return false;
	first = count > 0 && read_basis(arena, json_array_get(rows, 0), item);
	attributes = arena_array(arena, count, sizeof *attributes);
	for (size_t i = first; i < count; i++)
		if (!read_attribute(arena, json_array_get(rows, i), &attributes[i - first]))
			return false;
	item->attributes = attributes;
	item->attribute_count = count - first;
	return true;
}

bool store_attributes_read(struct arena *arena, const char *text, struct announcement *item)
{
	json_t *rows;
	bool good;

	item->basis = BASIS_NONE;
	item->other = NULL;
	item->other_changed = false;
	item->attributes = NULL;
	item->attribute_count = 0;
	if (!text)
		return true;
	rows = json_loads(text, 0, NULL);
	good = read_rows(arena, rows, item);
	json_decref(rows);
	return good;
}

static void put_time(struct buf *out, int64_t time)
{
	if (time == INT64_MIN)
		buf_text(out, ", null");
	else
		buf_printf(out, ", %" PRId64, time);
}

static void put_deployment(struct buf *out, const struct deployment *deployment)
{
	buf_char(out, '[');
	buf_json_text(out, deployment->commit);
	buf_text(out, ", ");
	buf_json_text(out, deployment->version);
	put_time(out, deployment->after);
	put_time(out, deployment->time);
	buf_char(out, ']');
}

void store_suspects_put(struct buf *out, const struct attribution *suspects)
{
	if (!suspects->known)
		return;
	buf_printf(out, "{\"timed\": %s, \"count\": %zu, \"list\": [",
		suspects->timed ? "true" : "false", suspects->count);
	for (size_t i = 0; i < suspects->listed; i++) {
		buf_text(out, i > 0 ? ", " : "");
		put_deployment(out, &suspects->list[i]);
	}
	buf_printf(out, "], \"span\": [%" PRId64 ", %" PRId64 "], \"last\": ", suspects->since,
		suspects->until);
	put_deployment(out, &suspects->last);
	buf_printf(out, ", \"corrections\": %" PRId64, suspects->corrections);
	if (suspects->share > 0) {
		buf_text(out, ", \"share\": ");
		buf_json_number(out, suspects->share);
	}
	buf_char(out, '}');
}

static bool read_when(const json_t *value, int64_t *out)
{
	int64_t time = json_integer_value(value);

	*out = json_is_null(value) ? INT64_MIN : time;
	return json_is_null(value) ||
	       (json_is_integer(value) && time >= -ROWS_MOST && time <= ROWS_MOST);
}

static bool read_deployment(struct arena *arena, const json_t *row, struct deployment *out)
{
	const json_t *commit = json_array_get(row, 0), *version = json_array_get(row, 1);

	if (json_array_size(row) != 4 || !is_value(commit) || !is_value(version))
		return false;
	out->commit = arena_strdup(arena, json_string_value(commit));
	out->version = arena_strdup(arena, json_string_value(version));
	return read_when(json_array_get(row, 2), &out->after) &&
	       read_when(json_array_get(row, 3), &out->time);
}

static bool read_known_suspects(
	struct arena *arena, const json_t *text, struct attribution *suspects)
{
	const json_t *list = json_object_get(text, "list"), *count = json_object_get(text, "count");
	struct deployment *items;

	suspects->listed = json_array_size(list);
	if (!json_is_array(list) || suspects->listed > ATTRIBUTION_LISTED ||
		!json_is_integer(count) || json_integer_value(count) > ROWS_MOST ||
		json_integer_value(count) < (json_int_t)suspects->listed ||
		!json_is_boolean(json_object_get(text, "timed")))
		return false;
	if (!read_when(json_array_get(json_object_get(text, "span"), 0), &suspects->since) ||
		!read_when(json_array_get(json_object_get(text, "span"), 1), &suspects->until))
		return false;
	suspects->corrections = json_integer_value(json_object_get(text, "corrections"));
	suspects->share = json_number_value(json_object_get(text, "share"));
	suspects->known = true;
	suspects->timed = json_is_true(json_object_get(text, "timed"));
	suspects->count = (size_t)json_integer_value(count);
	suspects->list = items = arena_array(arena, suspects->listed, sizeof *items);
	for (size_t i = 0; i < suspects->listed; i++)
		if (!read_deployment(arena, json_array_get(list, i), &items[i]) ||
			items[i].time == INT64_MIN)
			return false;
	return read_deployment(arena, json_object_get(text, "last"), &suspects->last);
}

bool store_suspects_read(struct arena *arena, const char *text, struct attribution *suspects)
{
	json_t *value;
	bool good;

	*suspects = (struct attribution){.last = {.time = INT64_MIN}};
	if (!text)
		return true;
	value = json_loads(text, 0, NULL);
	good = read_known_suspects(arena, value, suspects);
	json_decref(value);
	return good;
}
