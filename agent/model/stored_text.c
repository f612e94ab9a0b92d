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

/* Where an item of an array, or a member of an object, goes. */
struct place {
	const char *name; /* of a member */
	enum { PLACE_TEXT, PLACE_FLAG, PLACE_WHOLE, PLACE_TIME, PLACE_NUMBER, PLACE_OTHER } type;
	void *out;
	/* Of PLACE_OTHER. */
	bool (*read)(struct scan *scan, struct arena *arena, void *out);
};

/* Texts may be null, and times, which are INT64_MIN then. */
static bool read_place(struct scan *scan, struct arena *arena, const struct place *place)
{
	bool optional = place->type == PLACE_TEXT || place->type == PLACE_TIME;
	bool none = optional && scan_word(scan, "null");
	double value;

	switch (place->type) {
	case PLACE_TEXT:
		*(const char **)place->out = NULL;
		if (none)
			return true;
		if (!scan_text(scan))
			return false;
		*(const char **)place->out =
			arena_strndup(arena, scan->text.data, scan->text.length);
		return true;
	case PLACE_FLAG:
		*(bool *)place->out = scan_word(scan, "true");
		return *(bool *)place->out || scan_word(scan, "false");
	case PLACE_WHOLE:
	case PLACE_TIME:
		*(int64_t *)place->out = INT64_MIN;
		if (none)
			return true;
		if (!scan_number(scan, &value) || !(fabs(value) <= (double)ROWS_MOST) ||
			value != floor(value))
			return false;
		*(int64_t *)place->out = (int64_t)value;
		return true;
	case PLACE_NUMBER: return scan_number(scan, place->out);
	case PLACE_OTHER: return place->read(scan, arena, place->out);
	}
	return false;
}

/* Exactly so many items. */
static bool read_array(
	struct scan *scan, struct arena *arena, const struct place *places, size_t count)
{
	size_t found = 0;

	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan))
		if (found == count || !read_place(scan, arena, &places[found++]))
			return false;
	return !scan->problem && found == count;
}

/* The first `needed` members must be there; others than these are skipped. */
static bool read_object(struct scan *scan, struct arena *arena, const struct place *places,
	size_t count, size_t needed)
{
	unsigned seen = 0, all = (1u << needed) - 1;

	if (!scan_open(scan, '{'))
		return false;
	while (scan_key(scan)) {
		size_t at = 0;

		while (at < count && strcmp(places[at].name, scan->text.data) != 0)
			at++;
		seen |= 1u << at;
		if (at < count ? !read_place(scan, arena, &places[at]) : !scan_value(scan))
			return false;
	}
	return !scan->problem && (seen & all) == all;
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

static bool read_attributes(struct scan *scan, struct arena *arena, struct announcement *item)
{
	struct attribute found[RECORD_ATTRIBUTES + 2];
	size_t count = 0;
	bool first = true;

	if (!scan_open(scan, '['))
		return false;
	for (; scan_item(scan); first = false) {
		struct attribute *row = &found[count];
		const struct place places[] = {
			{.out = &row->name}, {.out = &row->before}, {.out = &row->after}};

		if (count > RECORD_ATTRIBUTES || !read_array(scan, arena, places, 3) || !row->name)
			return false;
		count += !first || !read_basis(&found[count], item);
	}
	item->attributes = arena_copy(arena, found, count, sizeof *found);
	item->attribute_count = count;
	return !scan->problem;
}

static bool read_deployment(struct scan *scan, struct arena *arena, void *out)
{
	struct deployment *deployment = out;
	const struct place places[] = {{.out = &deployment->commit}, {.out = &deployment->version},
		{.type = PLACE_TIME, .out = &deployment->after},
		{.type = PLACE_TIME, .out = &deployment->time}};

	return read_array(scan, arena, places, 4);
}

static bool read_deployments(struct scan *scan, struct arena *arena, void *out)
{
	struct attribution *suspects = out;
	struct deployment found[ATTRIBUTION_LISTED];
	size_t count = 0;

	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan)) {
		if (count == ATTRIBUTION_LISTED || !read_deployment(scan, arena, &found[count]) ||
			found[count++].time == INT64_MIN)
			return false;
	}
	suspects->list = arena_copy(arena, found, count, sizeof *found);
	suspects->listed = count;
	return !scan->problem;
}

static bool read_span(struct scan *scan, struct arena *arena, void *out)
{
	struct attribution *suspects = out;
	const struct place places[] = {{.type = PLACE_TIME, .out = &suspects->since},
		{.type = PLACE_TIME, .out = &suspects->until}};

	return read_array(scan, arena, places, 2);
}

static bool read_suspects(struct scan *scan, struct arena *arena, struct attribution *suspects)
{
	int64_t count = 0;
	const struct place places[] = {{"timed", PLACE_FLAG, &suspects->timed, NULL},
		{"count", PLACE_WHOLE, &count, NULL},
		{"list", PLACE_OTHER, suspects, read_deployments},
		{"span", PLACE_OTHER, suspects, read_span},
		{"last", PLACE_OTHER, &suspects->last, read_deployment},
		{"corrections", PLACE_WHOLE, &suspects->corrections, NULL},
		{"share", PLACE_NUMBER, &suspects->share, NULL}};
	enum { NEEDED = 5 };

	if (!read_object(scan, arena, places, 7, NEEDED) || count < (int64_t)suspects->listed)
		return false;
	suspects->known = true;
	suspects->count = (size_t)count;
	return true;
}

static bool read_commits(struct scan *scan, struct arena *arena, void *out)
{
	struct culprit *culprit = out;
	struct culprit_commit *items = arena_array(arena, CULPRIT_SET_MOST, sizeof *items);

	culprit->set = items;
	if (!scan_open(scan, '['))
		return false;
	while (scan_item(scan)) {
		struct culprit_commit *item = &items[culprit->set_count];
		const struct place places[] = {{"commit", PLACE_TEXT, &item->commit, NULL},
			{"probability", PLACE_NUMBER, &item->probability, NULL},
			{"broken", PLACE_FLAG, &item->broken, NULL}};

		if (culprit->set_count++ == CULPRIT_SET_MOST ||
			!read_object(scan, arena, places, 3, 1) || !item->commit)
			return false;
	}
	return !scan->problem;
}

static bool read_culprit(struct scan *scan, struct arena *arena, struct culprit *out)
{
	int64_t total = 0;
	const struct place places[] = {{"bisection", PLACE_WHOLE, &out->bisection, NULL},
		{"end", PLACE_TEXT, &out->end, NULL}, {"verdict", PLACE_TEXT, &out->verdict, NULL},
		{"commit", PLACE_TEXT, &out->commit, NULL},
		{"probability", PLACE_NUMBER, &out->probability, NULL},
		{"set", PLACE_OTHER, out, read_commits}, {"set_total", PLACE_WHOLE, &total, NULL}};

	if (!read_object(scan, arena, places, 7, 1) || total < 0)
		return false;
	out->set_total = (size_t)total;
	return out->bisection > 0 && out->end && out->verdict;
}

static struct scan scan_of(const char *text)
{
	return (struct scan){.at = text, .end = text + strlen(text)};
}

const struct culprit *culprit_read(struct arena *arena, const char *text)
{
	struct culprit *out = arena_alloc(arena, sizeof *out);
	struct scan scan = scan_of(text);
	bool good = read_culprit(&scan, arena, out) && scan_end(&scan);

	buf_free(&scan.text);
	return good ? out : NULL;
}

bool stored_text_read(struct arena *arena, const struct stored_column *column, const char *text,
	struct change_record *record)
{
	struct announcement *item = &record->item;
	struct scan scan;
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
	scan = scan_of(text);
	good = column->type == COLUMN_ATTRIBUTES ? read_attributes(&scan, arena, item)
						 : read_suspects(&scan, arena, &item->suspects);
	good = good && scan_end(&scan);
	buf_free(&scan.text);
	return good;
}
