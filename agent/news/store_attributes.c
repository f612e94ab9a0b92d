/*
 * See store_attributes.h.
 */
#include "agent/news/store_attributes.h"

#include <jansson.h>

#include "agent/news/announce.h"

void store_attributes_put(struct buf *out, const struct announcement *item)
{
	if (item->attribute_count == 0)
		return;
	buf_char(out, '[');
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

static bool read_rows(struct arena *arena, const json_t *rows, struct announcement *item)
{
	size_t count = json_array_size(rows);
	struct attribute *attributes;

	if (!json_is_array(rows) || count > ANNOUNCE_ATTRIBUTES_MAX)
		return false;
	attributes = arena_array(arena, count, sizeof *attributes);
	for (size_t i = 0; i < count; i++)
		if (!read_attribute(arena, json_array_get(rows, i), &attributes[i]))
			return false;
	item->attributes = attributes;
	item->attribute_count = count;
	return true;
}

bool store_attributes_read(struct arena *arena, const char *text, struct announcement *item)
{
	json_t *rows;
	bool good;

	item->attributes = NULL;
	item->attribute_count = 0;
	if (!text)
		return true;
	rows = json_loads(text, 0, NULL);
	good = read_rows(arena, rows, item);
	json_decref(rows);
	return good;
}
