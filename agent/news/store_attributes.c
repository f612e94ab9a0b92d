/*
 * See store_attributes.h.
 */
#include "agent/news/store_attributes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/news/announce.h"

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

	if (!json_is_array(rows) || count > ANNOUNCE_ATTRIBUTES_MAX + 1)
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
