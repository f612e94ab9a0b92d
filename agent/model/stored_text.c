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
 * Both are written by hand.
 */
#include "agent/model/stored_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/scan.h"

static const char *const basis_names[] = {
	[BASIS_LOAD] = "explained_by", [BASIS_RATIO] = "relative_to", [BASIS_UNUSED] = "beside"};

/* The basis has a row whose name begins with a space, which no attribute's name does. */
static void put_basis(struct buf *out, const struct announcement *item)
{
	char size[NUMBER_TEXT];

	buf_printf(out, "[\" %s\", ", basis_names[item->basis]);
	buf_json_text(out, item->other);
	if (!item->other_changed) {
		buf_text(out, ", null]");
		return;
	}
	number_format(item->other_size, size);
	buf_printf(out, ", \"%s\"]", size);
}

/* Appends the JSON; nothing without attributes. */
static void put_attributes(struct buf *out, const struct announcement *item)
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

/* A string, or null. */
static bool read_value(struct scan *scan, struct arena *arena, const char **out)
{
	*out = NULL;
	if (scan_word(scan, "null"))
		return true;
	if (!scan_text(scan))
		return false;
	*out = arena_strndup(arena, scan->text.data, scan->text.length);
	return true;
}

static bool read_attribute(struct scan *scan, struct arena *arena, struct attribute *out)
{
	const char **const values[] = {&out->name, &out->before, &out->after};
	size_t count = 0;

	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan))
		if (count == 3 || !read_value(scan, arena, values[count++]))
			return false;
	return !scan->problem && count == 3 && out->name;
}

/* True if the row describes the basis. */
static bool read_basis(const struct attribute *row, struct announcement *item)
{
	for (enum basis basis = BASIS_LOAD; *row->name == ' ' && basis <= BASIS_UNUSED; basis++)
		if (strcmp(row->name + 1, basis_names[basis]) == 0)
			item->basis = basis;
	if (item->basis == BASIS_NONE || !row->before)
		return false;
	item->other = row->before;
	item->other_changed = row->after != NULL;
	item->other_size = row->after ? strtod(row->after, NULL) : 0;
	return true;
}

static bool read_rows(struct scan *scan, struct arena *arena, struct announcement *item)
{
	struct attribute found[RECORD_ATTRIBUTES + 1], *attributes;
	size_t count = 0;
	bool first = true;

	if (!scan_open(scan, '['))
		return false;
	for (; scan_item(scan); first = false) {
		if (count > RECORD_ATTRIBUTES || !read_attribute(scan, arena, &found[count]))
			return false;
		count += !first || !read_basis(&found[count], item);
	}
	attributes = arena_array(arena, count, sizeof *attributes);
	memcpy(attributes, found, count * sizeof *attributes);
	item->attributes = attributes;
	item->attribute_count = count;
	return !scan->problem && scan_end(scan);
}

static struct scan scan_of(const char *text)
{
	return (struct scan){.at = text, .end = text + strlen(text)};
}

/* Parses the JSON, or NULL for none, into the arena. False if it is malformed. */
static bool read_attributes(struct arena *arena, const char *text, struct announcement *item)
{
	struct scan scan;
	bool good;

	item->basis = BASIS_NONE;
	item->other = NULL;
	item->other_changed = false;
	item->attributes = NULL;
	item->attribute_count = 0;
	if (!text)
		return true;
	scan = scan_of(text);
	good = read_rows(&scan, arena, item);
	buf_free(&scan.text);
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

/* Appends the suspects as JSON; nothing if unknown. */
static void put_suspects(struct buf *out, const struct attribution *suspects)
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

static bool read_whole(struct scan *scan, int64_t *out)
{
	double value;

	if (!scan_number(scan, &value) || !(fabs(value) <= (double)ROWS_MOST) ||
		value != floor(value))
		return false;
	*out = (int64_t)value;
	return true;
}

static bool read_when(struct scan *scan, int64_t *out)
{
	*out = INT64_MIN;
	return scan_word(scan, "null") || read_whole(scan, out);
}

static bool read_deployment(struct scan *scan, struct arena *arena, struct deployment *out)
{
	size_t count = 0;
	bool good = scan_open(scan, '[');

	while (good && scan_item(scan))
		switch (count++) {
		case 0: good = read_value(scan, arena, &out->commit); break;
		case 1: good = read_value(scan, arena, &out->version); break;
		case 2: good = read_when(scan, &out->after); break;
		case 3: good = read_when(scan, &out->time); break;
		default: good = false;
		}
	return good && !scan->problem && count == 4;
}

static bool read_deployments(struct scan *scan, struct arena *arena, struct attribution *suspects)
{
	struct deployment found[ATTRIBUTION_LISTED], *items;
	size_t count = 0;

	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan)) {
		if (count == ATTRIBUTION_LISTED || !read_deployment(scan, arena, &found[count]) ||
			found[count++].time == INT64_MIN)
			return false;
	}
	items = arena_array(arena, count, sizeof *items);
	memcpy(items, found, count * sizeof *items);
	suspects->list = items;
	suspects->listed = count;
	return !scan->problem;
}

static bool read_span(struct scan *scan, struct attribution *suspects)
{
	size_t count = 0;

	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan))
		if (count == 2 ||
			!read_when(scan, count++ == 0 ? &suspects->since : &suspects->until))
			return false;
	return !scan->problem && count == 2;
}

enum {
	SUSPECTS_TIMED = 1,
	SUSPECTS_COUNT = 2,
	SUSPECTS_LIST = 4,
	SUSPECTS_SPAN = 8,
	SUSPECTS_LAST = 16,
	SUSPECTS_ALL = 31
};

/* A member of the suspects; notes in `seen` which. */
static bool read_member(
	struct scan *scan, struct arena *arena, struct attribution *suspects, unsigned *seen)
{
	const char *key = scan->text.data;
	int64_t count = 0;

	if (strcmp(key, "timed") == 0) {
		*seen |= SUSPECTS_TIMED;
		suspects->timed = scan_word(scan, "true");
		return suspects->timed || scan_word(scan, "false");
	}
	if (strcmp(key, "count") == 0) {
		*seen |= SUSPECTS_COUNT;
		if (!read_whole(scan, &count) || count < 0)
			return false;
		suspects->count = (size_t)count;
		return true;
	}
	if (strcmp(key, "list") == 0) {
		*seen |= SUSPECTS_LIST;
		return read_deployments(scan, arena, suspects);
	}
	if (strcmp(key, "span") == 0) {
		*seen |= SUSPECTS_SPAN;
		return read_span(scan, suspects);
	}
	if (strcmp(key, "last") == 0) {
		*seen |= SUSPECTS_LAST;
		return read_deployment(scan, arena, &suspects->last);
	}
	if (strcmp(key, "corrections") == 0)
		return read_whole(scan, &suspects->corrections);
	if (strcmp(key, "share") == 0)
		return scan_number(scan, &suspects->share);
	return scan_value(scan);
}

static bool read_known_suspects(
	struct scan *scan, struct arena *arena, struct attribution *suspects)
{
	unsigned seen = 0;

	if (!scan_open(scan, '{'))
		return false;
	while (scan_key(scan))
		if (!read_member(scan, arena, suspects, &seen))
			return false;
	suspects->known = true;
	return !scan->problem && scan_end(scan) && seen == SUSPECTS_ALL &&
	       suspects->count >= suspects->listed;
}

static bool read_suspects(struct arena *arena, const char *text, struct attribution *suspects)
{
	struct scan scan;
	bool good;

	*suspects = (struct attribution){.last = {.time = INT64_MIN}};
	if (!text)
		return true;
	scan = scan_of(text);
	good = read_known_suspects(&scan, arena, suspects);
	buf_free(&scan.text);
	return good;
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

bool stored_text_read(struct arena *arena, const struct stored_column *column, const char *text,
	struct change_record *record)
{
	if (column->type == COLUMN_ATTRIBUTES)
		return read_attributes(arena, text, &record->item);
	if (column->type == COLUMN_SUSPECTS)
		return read_suspects(arena, text, &record->item.suspects);
	record->item.culprit = text ? culprit_read(arena, text) : NULL;
	return !text || record->item.culprit;
}
