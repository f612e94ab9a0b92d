/*
 * A database need not know NaN: it is bound as NULL and read back as NaN.
 */
#include "agent/store/sql/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "agent/base/scan.h"

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
	struct attribute found[STORE_ATTRIBUTES_MAX + 1], *attributes;
	size_t count = 0;
	bool first = true;

	if (!scan_open(scan, '['))
		return false;
	for (; scan_item(scan); first = false) {
		if (count > STORE_ATTRIBUTES_MAX || !read_attribute(scan, arena, &found[count]))
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
static bool store_attributes_read(struct arena *arena, const char *text, struct announcement *item)
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

static bool store_suspects_read(struct arena *arena, const char *text, struct attribution *suspects)
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

struct binder bind_to(struct store_file *file, enum statement statement)
{
	return (struct binder){.file = file, .statement = file->driver->statement(file, statement)};
}

void bind_integer(struct binder *binder, int64_t value)
{
	binder->file->driver->bind_integer(binder->statement, ++binder->column, value);
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
	binder->file->driver->bind_number(binder->statement, ++binder->column, value);
}

void bind_null(struct binder *binder)
{
	binder->file->driver->bind_null(binder->statement, ++binder->column);
}

void bind_text(struct binder *binder, const char *text)
{
	binder->file->driver->bind_text(binder->statement, ++binder->column, text);
}

void bind_bytes(struct binder *binder, const void *bytes, size_t length)
{
	binder->file->driver->bind_bytes(binder->statement, ++binder->column, bytes, length);
}

/* NULL for an optional 0. */
static void bind_whole(struct binder *binder, const struct store_column *column, int64_t value)
{
	int64_t first, last;

	if (value == 0 && column->uses & COLUMN_OPTIONAL) {
		bind_null(binder);
		return;
	}
	if (column_range(column, &first, &last))
		bind_range(binder, value, first, last);
}

void bind_row(
	struct binder *binder, const struct store_column *columns, unsigned uses, const void *row)
{
	const struct change_record *record = row; /* if it has columns of such types */

	for (const struct store_column *column = columns; column->name; column++) {
		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE: bind_whole(binder, column, column_integer(column, row)); break;
		case COLUMN_NUMBER: bind_number(binder, column_number(column, row)); break;
		case COLUMN_TEXT: bind_text(binder, column_text(column, row)); break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
			store_attributes_put(&binder->attributes, &record->item);
			bind_text(binder, binder->attributes.data);
			break;
		case COLUMN_SUSPECTS:
			store_suspects_put(&binder->suspects, &record->item.suspects);
			bind_text(binder, binder->suspects.data);
			break;
		case COLUMN_CULPRIT:
			if (record->item.culprit)
				culprit_put(&binder->culprit, record->item.culprit);
			bind_text(binder, binder->culprit.data);
			break;
		}
	}
}

static void forget_texts(struct binder *binder)
{
	buf_free(&binder->attributes);
	buf_free(&binder->suspects);
	buf_free(&binder->culprit);
}

bool bind_finish(struct binder *binder, struct error *error)
{
	const struct sql_driver *driver = binder->file->driver;
	bool done = !binder->strange && driver->step(binder->statement) == SQL_DONE;

	if (binder->strange)
		error_set(error, ERROR_DATA, "time or count out of range");
	else if (!done)
		driver->fail(binder->file, "write to it", error);
	driver->reset(binder->statement);
	forget_texts(binder);
	return done;
}

static struct binder bind_values(
	struct store_file *file, enum statement statement, const struct value *values, size_t count)
{
	struct binder binder = bind_to(file, statement);

	for (size_t i = 0; i < count; i++) {
		binder.strange |= values[i].strange;
		if (values[i].type == SQL_INTEGER)
			bind_integer(&binder, values[i].integer);
		else if (values[i].type == SQL_NUMBER)
			bind_number(&binder, values[i].number);
		else if (values[i].type == SQL_NULL)
			bind_null(&binder);
		else
			bind_text(&binder, values[i].text);
	}
	return binder;
}

bool rows_run(struct store_file *file, enum statement statement, struct error *error,
	const struct value *values, size_t count)
{
	struct binder binder = bind_values(file, statement, values, count);

	return bind_finish(&binder, error);
}

bool rows_ask(struct store_file *file, enum statement statement, int64_t *number,
	struct error *error, const struct value *values, size_t count)
{
	struct reader reader = {.binder = bind_values(file, statement, values, count)};

	while (reader_next(&reader, error))
		*number = read_time(&reader);
	return !reader.failed;
}

bool bind_insert(struct binder *binder, int64_t *id, struct error *error)
{
	const struct sql_driver *driver = binder->file->driver;
	enum sql_step step = SQL_DONE;

	*id = 0;
	if (!binder->strange)
		step = driver->step(binder->statement);
	if (step == SQL_ROW) {
		*id = driver->integer(binder->statement, 0);
		step = driver->step(binder->statement);
	}
	if (step == SQL_FAILED)
		driver->fail(binder->file, "write to it", error);
	else if (binder->strange)
		error_set(error, ERROR_DATA, "time or count out of range");
	driver->reset(binder->statement);
	forget_texts(binder);
	return step == SQL_DONE && !binder->strange;
}

struct reader open_reader(struct store_file *file, struct arena *arena, enum statement statement)
{
	return (struct reader){.binder = bind_to(file, statement), .arena = arena};
}

bool reader_next(struct reader *reader, struct error *error)
{
	struct binder *binder = &reader->binder;
	const struct sql_driver *driver = binder->file->driver;
	enum sql_step step = reader->strange ? SQL_FAILED : driver->step(binder->statement);

	reader->column = 0;
	if (step == SQL_ROW)
		return true;
	if (reader->strange)
		reader->failed = !error_set(error, ERROR_STATE,
			"%s is damaged: a value is out of range or missing", binder->file->label);
	else if (step == SQL_FAILED)
		reader->failed = !driver->fail(binder->file, "read it", error);
	driver->reset(binder->statement);
	return false;
}

static enum sql_type type_of(struct reader *reader, int column)
{
	return reader->binder.file->driver->type(reader->binder.statement, column);
}

int64_t read_choice(struct reader *reader, int64_t first, int64_t last)
{
	const struct sql_driver *driver = reader->binder.file->driver;
	int column = reader->column++;
	int64_t value = driver->integer(reader->binder.statement, column);

	if (type_of(reader, column) == SQL_INTEGER && value >= first && value <= last)
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
	return type_of(reader, reader->column) == SQL_NULL;
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

	if (type_of(reader, column) == SQL_NULL)
		return (double)NAN;
	return reader->binder.file->driver->number(reader->binder.statement, column);
}

static const char *cell_text(struct reader *reader)
{
	return reader->binder.file->driver->text(reader->binder.statement, reader->column++);
}

const char *read_text(struct reader *reader)
{
	return arena_strdup(reader->arena, cell_text(reader));
}

const char *read_name(struct reader *reader)
{
	return read_name_again(reader, NULL);
}

const char *read_name_again(struct reader *reader, const char *before)
{
	const char *text = cell_text(reader);

	if (!text) {
		reader->strange = true;
		return "";
	}
	return before && strcmp(before, text) == 0 ? before : arena_strdup(reader->arena, text);
}

const void *read_bytes(struct reader *reader, size_t *length)
{
	return reader->binder.file->driver->bytes(
		reader->binder.statement, reader->column++, length);
}

enum { TRIAGE_COLUMNS = 12 };

const struct culprit *read_culprit(struct reader *reader)
{
	const char *text = read_text(reader);
	const struct culprit *culprit = text ? culprit_read(reader->arena, text) : NULL;

	reader->strange |= text && !culprit;
	return culprit;
}

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

static int64_t read_whole_column(struct reader *reader, const struct store_column *column)
{
	int64_t first, last;

	if (column->uses & COLUMN_OPTIONAL && is_null(reader)) {
		reader->column++;
		return 0;
	}
	return column_range(column, &first, &last) ? read_choice(reader, first, last) : 0;
}

/* Series and branch repeat from row to row: `last`, or NULL, may have the text already. */
static const char *read_text_column(
	struct reader *reader, const struct store_column *column, const void *last)
{
	if (column->uses & COLUMN_OPTIONAL)
		return read_text(reader);
	return read_name_again(reader, last ? column_text(column, last) : NULL);
}

/* The columns of this use, or all: 0. */
static void read_columns(struct reader *reader, const struct store_column *columns, unsigned uses,
	const void *last, void *row)
{
	struct change_record *record = row; /* if it has columns of such types */

	for (const struct store_column *column = columns; column->name; column++) {
		void *member = column_member(column, row);

		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE:
			column_set(column, row, read_whole_column(reader, column));
			break;
		case COLUMN_NUMBER: *(double *)member = read_number(reader); break;
		case COLUMN_TEXT:
			*(const char **)member = read_text_column(reader, column, last);
			break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
			reader->strange |= !store_attributes_read(
				reader->arena, read_text(reader), &record->item);
			break;
		case COLUMN_SUSPECTS:
			reader->strange |= !store_suspects_read(
				reader->arena, read_text(reader), &record->item.suspects);
			break;
		case COLUMN_CULPRIT: record->item.culprit = read_culprit(reader); break;
		}
	}
}

void read_struct(struct reader *reader, const struct store_column *columns, void *row)
{
	read_columns(reader, columns, 0, NULL, row);
}

void *read_structs(struct reader *reader, const struct store_column *columns, size_t size,
	size_t *count, struct error *error)
{
	char *rows = NULL;

	*count = 0;
	while (reader_next(reader, error)) {
		rows = rows_grow(reader->arena, rows, count, size);
		memset(rows + (*count - 1) * size, 0, size);
		read_struct(reader, columns, rows + (*count - 1) * size);
	}
	return rows;
}

void read_record(struct reader *reader, struct change_record *record)
{
	read_struct(reader, change_columns, record);
	record->environment_stored = record->environment_event;
	read_triage(reader, &record->triage);
	record->ends = read_time_or(reader, 0);
}

_Static_assert(sizeof(struct change_record) >= ARENA_HEAD, "a record has room for the head");

/* With room for the arena's head before it. */
struct change_record *growing_next(struct growing *growing, size_t count)
{
	growing->rows =
		memory_grow(growing->rows, &growing->room, count + 2, sizeof *growing->rows);
	growing->rows[count + 1] = (struct change_record){0};
	return &growing->rows[count + 1];
}

void growing_keep(struct growing *growing, struct arena *arena, struct record_rows *out)
{
	if (!growing->rows)
		return;
	growing->rows = memory_resize(growing->rows, out->count + 1, sizeof *growing->rows);
	arena_take(arena, growing->rows, (out->count + 1) * sizeof *growing->rows);
	out->items = growing->rows + 1;
}

bool read_records(struct reader *reader, struct record_rows *out, struct error *error)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	while (reader_next(reader, error))
		read_record(reader, growing_next(&growing, out->count++));
	growing_keep(&growing, reader->arena, out);
	return !reader->failed;
}

bool read_all_known(struct reader *reader, struct record_rows *out, struct error *error)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	for (; reader_next(reader, error); out->count++) {
		struct change_record *record = growing_next(&growing, out->count);

		read_columns(reader, change_columns, COLUMN_COMPARED,
			out->count > 0 ? record - 1 : NULL, record);
		read_triage(reader, &record->triage);
	}
	growing_keep(&growing, reader->arena, out);
	return !reader->failed;
}

void owners_add(struct owners *owners, struct arena *arena, int64_t id, size_t place)
{
	owners->items = rows_grow(arena, owners->items, &owners->count, sizeof *owners->items);
	owners->items[owners->count - 1] = (struct owner){id, place};
}

bool owners_read(struct owners *owners, struct reader *reader, struct error *error)
{
	while (reader_next(reader, error))
		owners_add(owners, reader->arena, read_id(reader), owners->count);
	return !reader->failed;
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner *left = a, *right = b;

	if (left->id != right->id)
		return left->id > right->id ? 1 : -1;
	return (left->place > right->place) - (left->place < right->place);
}

void owners_sort(struct owners *owners, bool once)
{
	size_t count = 0;

	if (owners->count > 0)
		qsort(owners->items, owners->count, sizeof *owners->items, compare_owners);
	for (size_t i = 0; i < owners->count; i++)
		if (!once || i == 0 || owners->items[i].id != owners->items[count - 1].id)
			owners->items[count++] = owners->items[i];
	owners->count = count;
}

const char *owners_json(
	struct arena *arena, const struct owners *owners, size_t first, size_t count)
{
	struct buf text = {0};

	buf_char(&text, '[');
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, i > 0 ? ",%" PRId64 : "%" PRId64, owners->items[first + i].id);
	buf_char(&text, ']');
	return buf_keep(&text, arena);
}

void bind_owners(struct binder *binder, struct arena *arena, const struct owners *owners)
{
	bind_text(binder, owners_json(arena, owners, 0, owners->count));
}

const char *rows_names(struct arena *arena, const struct strings *names)
{
	struct buf out = {0};

	buf_char(&out, '[');
	for (size_t i = 0; i < names->count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		buf_json_text(&out, names->items[i]);
	}
	buf_char(&out, ']');
	return buf_keep(&out, arena);
}

static void owned_fetch(struct owned_reader *rows, struct error *error)
{
	rows->waiting = reader_next(&rows->reader, error);
	rows->ended = !rows->waiting;
	if (rows->waiting)
		rows->owner = read_id(&rows->reader);
}

bool owned_next(struct owned_reader *rows, int64_t owner, struct error *error)
{
	if (!rows->waiting && !rows->ended)
		owned_fetch(rows, error);
	while (rows->waiting && rows->owner < owner)
		owned_fetch(rows, error);
	if (!rows->waiting || rows->owner != owner)
		return false;
	rows->waiting = false;
	return true;
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
