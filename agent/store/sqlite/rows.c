/*
 * SQLite has no NaN: it is bound as NULL and read back as NaN.
 */
#include "agent/store/sqlite/rows.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/number.h"

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
 * Both are written by hand and read with jansson.
 */

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
static void store_attributes_put(struct buf *out, const struct announcement *item)
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

/* True if the row describes the basis. */
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

/* Parses the JSON, or NULL for none, into the arena. False if it is malformed. */
static bool store_attributes_read(struct arena *arena, const char *text, struct announcement *item)
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

/* Appends the suspects as JSON; nothing if unknown. */
static void store_suspects_put(struct buf *out, const struct attribution *suspects)
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

static bool store_suspects_read(struct arena *arena, const char *text, struct attribution *suspects)
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

struct binder bind_to(struct store_file *file, enum statement statement)
{
	return (struct binder){.file = file, .statement = store_file_statement(file, statement)};
}

void bind_integer(struct binder *binder, int64_t value)
{
	sqlite3_bind_int64(binder->statement, ++binder->column, value);
}

static void bind_range(struct binder *binder, int64_t value, int64_t first, int64_t last)
{
	binder->strange |= value < first || value > last;
	bind_integer(binder, value);
}

void bind_time(struct binder *binder, int64_t time)
{
	bind_range(binder, time, -ROWS_MOST, ROWS_MOST);
}

void bind_count(struct binder *binder, int64_t count)
{
	bind_range(binder, count, 0, ROWS_MOST);
}

void bind_number(struct binder *binder, double value)
{
	sqlite3_bind_double(binder->statement, ++binder->column, value);
}

void bind_null(struct binder *binder)
{
	sqlite3_bind_null(binder->statement, ++binder->column);
}

void bind_text(struct binder *binder, const char *text)
{
	sqlite3_bind_text(binder->statement, ++binder->column, text, -1, SQLITE_STATIC);
}

static void bind_attributes(struct binder *binder, const struct announcement *item)
{
	struct buf text = {0};

	store_attributes_put(&text, item);
	sqlite3_bind_text(
		binder->statement, ++binder->column, text.data, (int)text.length, SQLITE_TRANSIENT);
	buf_free(&text);
}

static void bind_suspects(struct binder *binder, const struct attribution *suspects)
{
	struct buf text = {0};

	store_suspects_put(&text, suspects);
	sqlite3_bind_text(
		binder->statement, ++binder->column, text.data, (int)text.length, SQLITE_TRANSIENT);
	buf_free(&text);
}

void bind_item(struct binder *binder, const struct announcement *item)
{
	bind_text(binder, item->metric);
	bind_text(binder, item->unit);
	bind_integer(binder, item->direction);
	bind_number(binder, item->change.pvalue);
	bind_number(binder, item->change.mean_before);
	bind_number(binder, item->change.mean_after);
	bind_number(binder, item->change.stddev_before);
	bind_number(binder, item->change.stddev_after);
	bind_count(binder, (int64_t)item->change.count_before);
	bind_count(binder, (int64_t)item->change.count_after);
	bind_number(binder, item->change.magnitude);
	bind_text(binder, item->commit_before);
	bind_text(binder, item->commit_after);
	bind_text(binder, item->version_before);
	bind_text(binder, item->version_after);
	bind_count(binder, (int64_t)item->members);
	bind_text(binder, item->shared);
	bind_attributes(binder, item);
	bind_suspects(binder, &item->suspects);
	bind_integer(binder, item->change.kind);
	bind_number(binder, item->change.level_before);
	bind_number(binder, item->change.level_after);
	bind_number(binder, item->change.size);
	bind_number(binder, item->change.size_low);
	bind_number(binder, item->change.size_high);
	bind_number(binder, item->slope);
	bind_time(binder, item->place_from);
	bind_time(binder, item->place_to);
	bind_text(binder, item->place_commit_before);
	bind_text(binder, item->place_commit_after);
	bind_text(binder, item->place_version_before);
	bind_text(binder, item->place_version_after);
	bind_text(binder, item->environment);
}

bool bind_finish(struct binder *binder, struct error *error)
{
	bool done = !binder->strange && sqlite3_step(binder->statement) == SQLITE_DONE;

	if (binder->strange)
		error_set(error, ERROR_DATA, "time or count out of range");
	else if (!done)
		store_file_fail(binder->file, "write to it", error);
	sqlite3_reset(binder->statement);
	return done;
}

bool reader_next(struct reader *reader, struct error *error)
{
	int result = reader->strange ? SQLITE_CORRUPT : sqlite3_step(reader->binder.statement);

	reader->column = 0;
	if (result == SQLITE_ROW)
		return true;
	if (reader->strange)
		reader->failed = !error_set(error, ERROR_STATE,
			"state file %s is damaged: a value is out of range or missing",
			store_file_path(reader->binder.file));
	else if (result != SQLITE_DONE)
		reader->failed = !store_file_fail(reader->binder.file, "read it", error);
	sqlite3_reset(reader->binder.statement);
	return false;
}

int64_t read_choice(struct reader *reader, int64_t first, int64_t last)
{
	int column = reader->column++;
	int64_t value = sqlite3_column_int64(reader->binder.statement, column);
	bool number = sqlite3_column_type(reader->binder.statement, column) == SQLITE_INTEGER;

	if (number && value >= first && value <= last)
		return value;
	reader->strange = true;
	return first;
}

int64_t read_id(struct reader *reader)
{
	return read_choice(reader, 1, ROWS_MOST);
}

int64_t read_time(struct reader *reader)
{
	return read_choice(reader, -ROWS_MOST, ROWS_MOST);
}

static bool is_null(struct reader *reader)
{
	return sqlite3_column_type(reader->binder.statement, reader->column) == SQLITE_NULL;
}

int64_t read_time_or(struct reader *reader, int64_t otherwise)
{
	if (is_null(reader)) {
		reader->column++;
		return otherwise;
	}
	return read_time(reader);
}

int64_t read_count(struct reader *reader)
{
	return read_choice(reader, 0, ROWS_MOST);
}

double read_number(struct reader *reader)
{
	int column = reader->column++;

	if (sqlite3_column_type(reader->binder.statement, column) == SQLITE_NULL)
		return (double)NAN;
	return sqlite3_column_double(reader->binder.statement, column);
}

static const char *column_text(struct reader *reader)
{
	return (const char *)sqlite3_column_text(reader->binder.statement, reader->column++);
}

const char *read_text(struct reader *reader)
{
	return arena_strdup(reader->arena, column_text(reader));
}

const char *read_name(struct reader *reader)
{
	return read_name_again(reader, NULL);
}

const char *read_name_again(struct reader *reader, const char *before)
{
	const char *text = column_text(reader);

	if (!text) {
		reader->strange = true;
		return "";
	}
	return before && strcmp(before, text) == 0 ? before : arena_strdup(reader->arena, text);
}

/* For a change written by a version that stored only means. */
static void describe_by_means(struct announcement *item)
{
	struct change *change = &item->change;

	change->kind = CHANGE_STEP;
	change->level_before = change->mean_before;
	change->level_after = change->mean_after;
	change->size = change->size_low = change->size_high = (double)NAN;
	if (change->mean_before != 0)
		change->size = 100 * (change->mean_after - change->mean_before) /
			       fabs(change->mean_before);
	item->slope = (double)NAN;
	item->place_from = item->place_to = item->time;
	item->place_commit_before = item->commit_before;
	item->place_commit_after = item->commit_after;
	item->place_version_before = item->version_before;
	item->place_version_after = item->version_after;
}

enum { DESCRIPTION_COLUMNS = 13 };

/* Expects item->time to be set. */
static void read_description(struct reader *reader, struct announcement *item)
{
	if (is_null(reader)) {
		describe_by_means(item);
		reader->column += DESCRIPTION_COLUMNS;
		return;
	}
	item->change.kind = (enum change_kind)read_choice(reader, CHANGE_STEP, CHANGE_TREND);
	item->change.level_before = read_number(reader);
	item->change.level_after = read_number(reader);
	item->change.size = read_number(reader);
	item->change.size_low = read_number(reader);
	item->change.size_high = read_number(reader);
	item->slope = read_number(reader);
	item->place_from = read_time(reader);
	item->place_to = read_time(reader);
	item->place_commit_before = read_text(reader);
	item->place_commit_after = read_text(reader);
	item->place_version_before = read_text(reader);
	item->place_version_after = read_text(reader);
}

void read_suspects(struct reader *reader, struct attribution *suspects)
{
	reader->strange |= !store_suspects_read(reader->arena, read_text(reader), suspects);
}

static void read_item(struct reader *reader, struct announcement *item)
{
	item->metric = read_name(reader);
	item->unit = read_text(reader);
	item->direction = (int)read_choice(reader, -1, 1);
	item->change.pvalue = read_number(reader);
	item->change.mean_before = read_number(reader);
	item->change.mean_after = read_number(reader);
	item->change.stddev_before = read_number(reader);
	item->change.stddev_after = read_number(reader);
	item->change.count_before = (size_t)read_count(reader);
	item->change.count_after = (size_t)read_count(reader);
	item->change.magnitude = read_number(reader);
	item->commit_before = read_text(reader);
	item->commit_after = read_text(reader);
	item->version_before = read_text(reader);
	item->version_after = read_text(reader);
	item->members = (size_t)read_count(reader);
	item->shared = read_text(reader);
	reader->strange |= !store_attributes_read(reader->arena, read_text(reader), item);
	read_suspects(reader, &item->suspects);
	read_description(reader, item);
	item->environment = read_text(reader);
}

enum change_kind read_kind(struct reader *reader)
{
	if (is_null(reader)) {
		reader->column++;
		return CHANGE_STEP;
	}
	return (enum change_kind)read_choice(reader, CHANGE_STEP, CHANGE_TREND);
}

void read_stage(struct reader *reader, struct change_record *record)
{
	record->sign = (int)read_choice(reader, -1, 1);
	record->item.time = read_time(reader);
	record->state = (enum change_state)read_choice(reader, 1, CHANGE_STATES - 1);
	record->news = (enum notify_state)read_choice(reader, 0, NOTIFY_COUNT - 1);
	record->first_seen = read_time(reader);
	record->spacing = read_count(reader);
	record->runs = read_count(reader);
}

enum { TRIAGE_COLUMNS = 12 };

void read_triage(struct reader *reader, struct triage *triage)
{
	*triage = (struct triage){.state = TRIAGE_OPEN,
		.size = (double)NAN,
		.size_low = (double)NAN,
		.size_high = (double)NAN};
	if (is_null(reader)) {
		reader->column += TRIAGE_COLUMNS;
		return;
	}
	triage->state = (enum triage_state)read_choice(reader, TRIAGE_OPEN, TRIAGE_STATES - 1);
	triage->version = read_id(reader);
	triage->owner = read_text(reader);
	triage->note = read_text(reader);
	triage->link = read_text(reader);
	triage->person = read_text(reader);
	triage->time = read_time(reader);
	triage->until = read_time_or(reader, 0);
	triage->size = read_number(reader);
	triage->size_low = read_number(reader);
	triage->size_high = read_number(reader);
	triage->renewals = read_count(reader);
}

void read_record(struct reader *reader, struct change_record *record)
{
	record->item.id = read_id(reader);
	record->item.test = read_name(reader);
	record->series = read_name(reader);
	record->branch = read_name(reader);
	read_stage(reader, record);
	record->updated = read_time(reader);
	record->item.over.time = read_time_or(reader, 0);
	record->item.over.level = read_number(reader);
	record->environment_event = read_time_or(reader, 0);
	record->environment_stored = record->environment_event;
	read_item(reader, &record->item);
	read_triage(reader, &record->triage);
}

bool read_records(struct reader *reader, struct record_rows *out, struct error *error)
{
	return read_chosen(reader, NULL, SIZE_MAX, out, error);
}

/* An array that grows, with room for the arena's head before it. It is handed over to the arena, so
 * that a long list is never there twice. */
struct growing {
	struct change_record *rows;
	size_t room;
};

_Static_assert(sizeof(struct change_record) >= ARENA_HEAD, "a record has room for the head");

static struct change_record *grow(struct growing *growing, size_t count)
{
	growing->rows =
		memory_grow(growing->rows, &growing->room, count + 2, sizeof *growing->rows);
	growing->rows[count + 1] = (struct change_record){0};
	return &growing->rows[count + 1];
}

static void keep(struct growing *growing, struct arena *arena, struct record_rows *out)
{
	if (!growing->rows)
		return;
	growing->rows = memory_resize(growing->rows, out->count + 1, sizeof *growing->rows);
	arena_take(arena, growing->rows, (out->count + 1) * sizeof *growing->rows);
	out->items = growing->rows + 1;
}

bool read_chosen(struct reader *reader, bool (*is_chosen)(const struct change_record *record),
	size_t most, struct record_rows *out, struct error *error)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	while (out->count < most && reader_next(reader, error)) {
		struct change_record *record = grow(&growing, out->count);

		read_record(reader, record);
		out->count += !is_chosen || is_chosen(record);
	}
	keep(&growing, reader->arena, out);
	return !reader->failed;
}

/* Series repeat from row to row; each name is copied once. */
static void read_known(
	struct reader *reader, const struct change_record *last, struct change_record *record)
{
	record->item.id = read_id(reader);
	record->series = read_name_again(reader, last ? last->series : NULL);
	record->branch = read_name_again(reader, last ? last->branch : NULL);
	read_stage(reader, record);
	record->item.change.count_after = (size_t)read_count(reader);
	record->item.change.kind = read_kind(reader);
	record->item.change.level_before = read_number(reader);
	record->item.change.level_after = read_number(reader);
	record->item.place_from = read_time_or(reader, record->item.time);
	record->item.place_to = read_time_or(reader, record->item.time);
	read_suspects(reader, &record->item.suspects);
	record->item.over.time = read_time_or(reader, 0);
	record->item.over.level = read_number(reader);
	read_triage(reader, &record->triage);
}

bool read_all_known(struct reader *reader, struct record_rows *out, struct error *error)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	for (; reader_next(reader, error); out->count++) {
		struct change_record *record = grow(&growing, out->count);

		read_known(reader, out->count > 0 ? record - 1 : NULL, record);
	}
	keep(&growing, reader->arena, out);
	return !reader->failed;
}

void *rows_grow(struct arena *arena, void *items, size_t *count, size_t size)
{
	return arena_grow(arena, items, (*count)++, size);
}

void *rows_keep(struct arena *arena, void *items, size_t count, size_t size)
{
	void *kept = count > 0 ? arena_array(arena, count, size) : NULL;

	if (count > 0)
		memcpy(kept, items, count * size);
	free(items);
	return kept;
}
