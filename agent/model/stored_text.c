/*
 * Column `attributes` of a change: point attributes except commit and version, as JSON: [["build",
 * "17", "18"], ["machine", "perf7", null]]: name, value before, value after. The series that it is
 * judged by comes first: [" explained_by", "shop/traffic", "40.1"]: by how many percent that
 * changed, or null.
 *
 * Column `suspects`: {"timed": true, "count": 2, "list": [["c41", null, 1000, 1000], ...], "span":
 * [0, 2000], "last": ["c40", null, null, 0], "corrections": 0}: of each deployment the commit, the
 * version, and after and by which time (ms) it happened; null: unknown.
 *
 * They are written by hand, and read by jansson.
 */
#include "agent/model/stored_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/model/json_put.h"

/* The basis has a row whose name begins with a space, which no attribute's name does. */
static const char *const basis_names[] = {
	[BASIS_LOAD] = " explained_by", [BASIS_RATIO] = " relative_to", [BASIS_UNUSED] = " beside"};

static void put_row(struct buf *out, const char *name, const char *before, const char *after)
{
	const char *const texts[] = {name, before, after};

	json_next(out);
	buf_char(out, '[');
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		json_next(out);
		buf_json_text(out, texts[i]);
	}
	buf_char(out, ']');
}

/* Appends the JSON; nothing without attributes. */
static void put_attributes(struct buf *out, const struct announcement *item)
{
	char size[NUMBER_TEXT];

	if (item->attribute_count == 0 && !item->other)
		return;
	buf_char(out, '[');
	if (item->other) {
		number_format(item->other_size, size);
		put_row(out, basis_names[item->basis], item->other,
			item->other_changed ? size : NULL);
	}
	for (size_t i = 0; i < item->attribute_count; i++)
		put_row(out, item->attributes[i].name, item->attributes[i].before,
			item->attributes[i].after);
	buf_char(out, ']');
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

/* Appends the suspects as JSON; nothing if unknown. */
static void put_suspects(struct buf *out, const struct attribution *suspects)
{
	if (!suspects->known)
		return;
	buf_printf(out, "{\"timed\": %s, \"count\": %zu, \"list\": [",
		suspects->timed ? "true" : "false", suspects->count);
	for (size_t i = 0; i < suspects->listed; i++) {
		json_next(out);
		put_deployment(out, &suspects->list[i]);
	}
	buf_printf(out, "], \"span\": [%" PRId64 ", %" PRId64 "], \"last\": ", suspects->since,
		suspects->until);
	put_deployment(out, &suspects->last);
	buf_printf(out, ", \"corrections\": %" PRId64, suspects->corrections);
	if (suspects->share > 0)
		json_put_number(out, "share", suspects->share);
	buf_char(out, '}');
}

void stored_text_put(
	struct buf *out, const struct stored_column *column, const struct change_record *record)
{
	if (column->type == COLUMN_ATTRIBUTES)
		put_attributes(out, &record->item);
	else if (column->type == COLUMN_SUSPECTS)
		put_suspects(out, &record->item.suspects);
	else if (record->item.culprit)
		culprit_put(out, record->item.culprit);
}

/* A text, which may be null; copied. */
static bool read_text(struct arena *arena, const json_t *value, const char **out)
{
	*out = arena_strdup(arena, json_string_value(value));
	return json_is_string(value) || json_is_null(value);
}

/* A time; INT64_MIN: null. */
static bool read_time(const json_t *value, int64_t *out)
{
	*out = json_is_integer(value) ? (int64_t)json_integer_value(value) : INT64_MIN;
	return json_is_null(value) || (*out >= -ROWS_MOST && *out <= ROWS_MOST);
}

static bool is_count(json_int_t value, size_t least)
{
	return value >= (json_int_t)least && value <= ROWS_MOST;
}

/* True if the row describes the basis. */
static bool read_basis(const struct attribute *row, struct announcement *item)
{
	for (enum basis basis = BASIS_LOAD; basis <= BASIS_UNUSED; basis++)
		if (strcmp(row->name, basis_names[basis]) == 0)
			item->basis = basis;
	if (item->basis == BASIS_NONE || !row->before)
		return false;
	item->other = row->before;
	item->other_changed = row->after != NULL;
	item->other_size = row->after ? strtod(row->after, NULL) : 0;
	return true;
}

static bool read_attributes(const json_t *rows, struct arena *arena, struct announcement *item)
{
	size_t count = json_array_size(rows);
	struct attribute *found;

	if (!json_is_array(rows) || count > RECORD_ATTRIBUTES + 1)
		return false;
	item->attributes = found = arena_array(arena, count, sizeof *found);
	for (size_t i = 0; i < count; i++) {
		const json_t *row = json_array_get(rows, i);
		struct attribute *one = &found[item->attribute_count];

		if (json_array_size(row) != 3 ||
			!read_text(arena, json_array_get(row, 0), &one->name) || !one->name ||
			!read_text(arena, json_array_get(row, 1), &one->before) ||
			!read_text(arena, json_array_get(row, 2), &one->after))
			return false;
		item->attribute_count += i > 0 || !read_basis(one, item);
	}
	return true;
}

static bool read_deployment(const json_t *row, struct arena *arena, struct deployment *out)
{
	return json_array_size(row) == 4 &&
	       read_text(arena, json_array_get(row, 0), &out->commit) &&
	       read_text(arena, json_array_get(row, 1), &out->version) &&
	       read_time(json_array_get(row, 2), &out->after) &&
	       read_time(json_array_get(row, 3), &out->time);
}

static bool read_suspects(json_t *root, struct arena *arena, struct attribution *out)
{
	json_int_t count, corrections = 0;
	const json_t *list, *since, *until, *last;
	struct deployment *found;
	int timed;

	if (json_unpack(root, "{s:b, s:I, s:o, s:[o, o], s:o, s?I, s?F}", "timed", &timed, "count",
		    &count, "list", &list, "span", &since, &until, "last", &last, "corrections",
		    &corrections, "share", &out->share) != 0 ||
		!json_is_array(list) || json_array_size(list) > ATTRIBUTION_LISTED ||
		!is_count(count, json_array_size(list)) || !is_count(corrections, 0) ||
		!read_time(since, &out->since) || !read_time(until, &out->until) ||
		!read_deployment(last, arena, &out->last))
		return false;
	out->known = true;
	out->timed = timed != 0;
	out->count = (size_t)count;
	out->corrections = (int64_t)corrections;
	out->listed = json_array_size(list);
	out->list = found = arena_array(arena, out->listed, sizeof *found);
	for (size_t i = 0; i < out->listed; i++)
		if (!read_deployment(json_array_get(list, i), arena, &found[i]) ||
			found[i].time == INT64_MIN)
			return false;
	return true;
}

static bool read_culprit(json_t *root, struct arena *arena, struct culprit *out)
{
	json_int_t id, total = 0;
	const json_t *commit = json_null(), *set = NULL;
	struct culprit_commit *items;

	if (json_unpack(root, "{s:I, s:s, s:s, s?o, s?F, s?o, s?I}", "bisection", &id, "end",
		    &out->end, "verdict", &out->verdict, "commit", &commit, "probability",
		    &out->probability, "set", &set, "set_total", &total) != 0 ||
		!is_count(id, 1) || !is_count(total, 0) ||
		!read_text(arena, commit, &out->commit) || (set && !json_is_array(set)) ||
		json_array_size(set) > CULPRIT_SET_MOST)
		return false;
	out->bisection = (int64_t)id;
	out->end = arena_strdup(arena, out->end);
	out->verdict = arena_strdup(arena, out->verdict);
	out->set_total = (size_t)total;
	out->set_count = json_array_size(set);
	out->set = items = arena_array(arena, out->set_count, sizeof *items);
	for (size_t i = 0; i < out->set_count; i++) {
		int broken = 0;

		if (json_unpack(json_array_get(set, i), "{s:s, s?F, s?b}", "commit",
			    &items[i].commit, "probability", &items[i].probability, "broken",
			    &broken) != 0)
			return false;
		items[i].commit = arena_strdup(arena, items[i].commit);
		items[i].broken = broken != 0;
	}
	return true;
}

const struct culprit *culprit_read(struct arena *arena, const char *text)
{
	struct culprit *out = arena_alloc(arena, sizeof *out);
	json_t *root = json_loads(text, 0, NULL);
	bool good = root && read_culprit(root, arena, out);

	json_decref(root);
	return good ? out : NULL;
}

bool stored_text_read(struct arena *arena, const struct stored_column *column, const char *text,
	struct change_record *record)
{
	struct announcement *item = &record->item;
	json_t *root;
	bool good;

	if (column->type == COLUMN_CULPRIT) {
		item->culprit = text ? culprit_read(arena, text) : NULL;
		return !text || item->culprit;
	}
	if (column->type == COLUMN_ATTRIBUTES) {
		item->basis = BASIS_NONE;
		item->other = NULL;
		item->other_changed = false;
		item->attributes = NULL;
		item->attribute_count = 0;
	} else {
		item->suspects = (struct attribution){.last = {.time = INT64_MIN}};
	}
	if (!text)
		return true;
	root = json_loads(text, 0, NULL);
	good = root &&
	       (column->type == COLUMN_ATTRIBUTES ? read_attributes(root, arena, item)
						  : read_suspects(root, arena, &item->suspects));
	json_decref(root);
	return good;
}
