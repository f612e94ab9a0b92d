/*
 * A database need not know NaN: it is bound as NULL and read back as NaN.
 */
#include "agent/store/sql/rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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

/* Transactions */

bool tx_fail(struct tx *tx, enum error_kind kind, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!tx->failed)
		error_set(tx->error, kind, "%s", text);
	tx->failed = true;
	return false;
}

static enum sql_step step(struct sql_query *query, const char *doing)
{
	struct tx *tx = query->tx;
	enum sql_step result = tx->failed ? SQL_FAILED : tx->driver->step(query->statement);

	if (result == SQL_FAILED && !tx->failed)
		tx->failed = !tx->driver->fail(tx, doing);
	return result;
}

struct sql_query sql_query_of(struct tx *tx, enum statement statement)
{
	struct sql_query query = {.tx = tx, .statement = tx->driver->statement(tx, statement)};

	if (!query.statement && !tx->failed)
		tx->failed = !tx->driver->fail(tx, "read it");
	return query;
}

void bind_integer(struct sql_query *query, int64_t value)
{
	query->tx->driver->bind_integer(query->statement, ++query->parameter, value);
}

static void bind_range(struct sql_query *query, int64_t value, int64_t first, int64_t last)
{
	query->strange |= value < first || value > last;
	bind_integer(query, value);
}

void bind_time(struct sql_query *query, int64_t time)
{
	bind_range(query, time, -ROWS_MOST, ROWS_MOST);
}

void bind_count(struct sql_query *query, int64_t count)
{
	bind_range(query, count, 0, ROWS_MOST);
}

void bind_number(struct sql_query *query, double value)
{
	query->tx->driver->bind_number(query->statement, ++query->parameter, value);
}

void bind_null(struct sql_query *query)
{
	query->tx->driver->bind_null(query->statement, ++query->parameter);
}

void bind_text(struct sql_query *query, const char *text)
{
	query->tx->driver->bind_text(query->statement, ++query->parameter, text);
}

void bind_bytes(struct sql_query *query, const void *bytes, size_t length)
{
	query->tx->driver->bind_bytes(query->statement, ++query->parameter, bytes, length);
}

/* NULL for an optional 0. */
static void bind_whole(struct sql_query *query, const struct stored_column *column, int64_t value)
{
	int64_t first, last;

	if (value == 0 && column->uses & COLUMN_OPTIONAL)
		bind_null(query);
	else if (column_range(column, &first, &last))
		bind_range(query, value, first, last);
}

/* Takes over the text; NULL if there is none. */
static void bind_buf(struct sql_query *query, struct buf *text)
{
	bind_text(query, text->data ? buf_keep(text, query->tx->arena) : NULL);
}

void bind_row(struct sql_query *query, const struct stored_column *columns, unsigned uses,
	const void *row)
{
	const struct change_record *record = row; /* if it has columns of such types */
	struct buf text = {0};

	for (const struct stored_column *column = columns; column->name; column++) {
		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE: bind_whole(query, column, column_integer(column, row)); break;
		case COLUMN_NUMBER: bind_number(query, column_number(column, row)); break;
		case COLUMN_TEXT: bind_text(query, column_text(column, row)); break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
			store_attributes_put(&text, &record->item);
			bind_buf(query, &text);
			break;
		case COLUMN_SUSPECTS:
			store_suspects_put(&text, &record->item.suspects);
			bind_buf(query, &text);
			break;
		case COLUMN_CULPRIT:
			if (record->item.culprit)
				culprit_put(&text, record->item.culprit);
			bind_buf(query, &text);
			break;
		}
	}
}

void rows_load_begin(struct tx *tx, enum statement insert)
{
	if (tx->driver->load_begin && !tx->failed)
		tx->failed = !tx->driver->load_begin(tx, insert);
}

void rows_load_end(struct tx *tx)
{
	if (tx->driver->load_end && !tx->failed)
		tx->failed = !tx->driver->load_end(tx);
}

int64_t query_insert(struct sql_query *query)
{
	int64_t id = 0;

	if (query->strange)
		tx_fail(query->tx, ERROR_DATA, "time or count out of range");
	if (step(query, "write to it") == SQL_ROW) {
		id = query->tx->driver->integer(query->statement, 0);
		(void)step(query, "write to it");
	}
	query->tx->driver->reset(query->statement);
	return id;
}

void query_run(struct sql_query *query)
{
	(void)query_insert(query);
}

struct sql_query rows_query(
	struct tx *tx, enum statement statement, const struct value *values, size_t count)
{
	struct sql_query query = sql_query_of(tx, statement);

	for (size_t i = 0; i < count; i++) {
		query.strange |= values[i].strange;
		if (values[i].type == SQL_INTEGER)
			bind_integer(&query, values[i].integer);
		else if (values[i].type == SQL_NUMBER)
			bind_number(&query, values[i].number);
		else if (values[i].type == SQL_NULL)
			bind_null(&query);
		else
			bind_text(&query, values[i].text);
	}
	return query;
}

void rows_run(struct tx *tx, enum statement statement, const struct value *values, size_t count)
{
	struct sql_query query = rows_query(tx, statement, values, count);

	query_run(&query);
}

int64_t tx_changed(struct tx *tx)
{
	return tx->failed ? 0 : tx->driver->changed(tx);
}

int64_t rows_ask(struct tx *tx, enum statement statement, const struct value *values, size_t count)
{
	struct sql_query query = rows_query(tx, statement, values, count);
	int64_t number = 0;

	while (query_next(&query))
		number = read_time(&query);
	return number;
}

bool query_next(struct sql_query *query)
{
	struct tx *tx = query->tx;

	query->column = 0;
	if (query->damaged)
		tx_fail(tx, ERROR_STATE, "%s is damaged: a value is out of range or missing",
			tx->label);
	if (step(query, "read it") == SQL_ROW)
		return true;
	tx->driver->reset(query->statement);
	return false;
}

static bool is_null(struct sql_query *query)
{
	return query->tx->driver->type(query->statement, query->column) == SQL_NULL;
}

int64_t read_integer(struct sql_query *query)
{
	return read_choice(query, INT64_MIN, INT64_MAX);
}

int64_t read_choice(struct sql_query *query, int64_t first, int64_t last)
{
	const struct sql_driver *driver = query->tx->driver;
	int column = query->column++;
	int64_t value = driver->integer(query->statement, column);

	if (driver->type(query->statement, column) == SQL_INTEGER && value >= first &&
		value <= last)
		return value;
	query->damaged = true;
	return first;
}

bool read_flag(struct sql_query *query)
{
	return read_choice(query, 0, 1) == 1;
}

int64_t read_id(struct sql_query *query)
{
	return read_choice(query, 1, ROWS_MOST);
}

int64_t read_time(struct sql_query *query)
{
	return read_choice(query, -ROWS_MOST, ROWS_MOST);
}

int64_t read_time_or(struct sql_query *query, int64_t otherwise)
{
	if (!is_null(query))
		return read_time(query);
	query->column++;
	return otherwise;
}

int64_t read_count(struct sql_query *query)
{
	return read_choice(query, 0, ROWS_MOST);
}

double read_number(struct sql_query *query)
{
	bool missing = is_null(query);
	int column = query->column++;

	return missing ? (double)NAN : query->tx->driver->number(query->statement, column);
}

static const char *cell_text(struct sql_query *query)
{
	return query->tx->driver->text(query->statement, query->column++);
}

const char *read_text(struct sql_query *query)
{
	return arena_strdup(query->tx->arena, cell_text(query));
}

/* Returns `before` if the text is the same. */
static const char *read_name_again(struct sql_query *query, const char *before)
{
	const char *text = cell_text(query);

	query->damaged |= !text;
	if (!text)
		return "";
	return before && strcmp(before, text) == 0 ? before : arena_strdup(query->tx->arena, text);
}

const char *read_name(struct sql_query *query)
{
	return read_name_again(query, NULL);
}

const void *read_bytes(struct sql_query *query, size_t *length)
{
	return query->tx->driver->bytes(query->statement, query->column++, length);
}

enum { TRIAGE_COLUMNS = 12 };

const struct culprit *read_culprit(struct sql_query *query)
{
	const char *text = read_text(query);
	const struct culprit *culprit = text ? culprit_read(query->tx->arena, text) : NULL;

	query->damaged |= text && !culprit;
	return culprit;
}

/* NULLs become a change that nobody has said anything about. */
static void read_triage(struct sql_query *query, struct triage *triage)
{
	*triage = (struct triage){.state = TRIAGE_OPEN,
		.size = (double)NAN,
		.size_low = (double)NAN,
		.size_high = (double)NAN};
	if (is_null(query)) {
		query->column += TRIAGE_COLUMNS;
		return;
	}
	triage->state = (enum triage_state)read_choice(query, TRIAGE_OPEN, TRIAGE_STATES - 1);
	triage->version = read_id(query);
	triage->owner = read_text(query);
	triage->note = read_text(query);
	triage->link = read_text(query);
	triage->person = read_text(query);
	triage->time = read_time(query);
	triage->until = read_time_or(query, 0);
	triage->size = read_number(query);
	triage->size_low = read_number(query);
	triage->size_high = read_number(query);
	triage->renewals = read_count(query);
}

static int64_t read_whole_column(struct sql_query *query, const struct stored_column *column)
{
	int64_t first, last;

	if (column->uses & COLUMN_OPTIONAL && is_null(query)) {
		query->column++;
		return 0;
	}
	return column_range(column, &first, &last) ? read_choice(query, first, last) : 0;
}

/* Series and branch repeat from row to row: `last`, or NULL, may have the text already. */
static const char *read_text_column(
	struct sql_query *query, const struct stored_column *column, const void *last)
{
	if (column->uses & COLUMN_OPTIONAL)
		return read_text(query);
	return read_name_again(query, last ? column_text(column, last) : NULL);
}

/* The columns of this use, or all: 0. */
static void read_columns(struct sql_query *query, const struct stored_column *columns,
	unsigned uses, const void *last, void *row)
{
	struct change_record *record = row; /* if it has columns of such types */
	struct arena *arena = query->tx->arena;

	for (const struct stored_column *column = columns; column->name; column++) {
		void *member = column_member(column, row);

		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE:
			column_set(column, row, read_whole_column(query, column));
			break;
		case COLUMN_NUMBER: *(double *)member = read_number(query); break;
		case COLUMN_TEXT:
			*(const char **)member = read_text_column(query, column, last);
			break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
			query->damaged |=
				!store_attributes_read(arena, read_text(query), &record->item);
			break;
		case COLUMN_SUSPECTS:
			query->damaged |= !store_suspects_read(
				arena, read_text(query), &record->item.suspects);
			break;
		case COLUMN_CULPRIT: record->item.culprit = read_culprit(query); break;
		}
	}
}

void read_struct(struct sql_query *query, const struct stored_column *columns, void *row)
{
	read_columns(query, columns, 0, NULL, row);
}

void *read_structs(
	struct sql_query *query, const struct stored_column *columns, size_t size, size_t *count)
{
	char *rows = NULL;

	*count = 0;
	while (query_next(query)) {
		rows = rows_grow(query->tx, rows, count, size);
		read_struct(query, columns, rows + (*count - 1) * size);
	}
	return rows;
}

void read_record(struct sql_query *query, struct change_record *record)
{
	read_struct(query, change_columns, record);
	record->environment_stored = record->environment_event;
	read_triage(query, &record->triage);
	record->ends = read_time_or(query, 0);
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

void growing_keep(struct growing *growing, struct tx *tx, struct record_rows *out)
{
	if (!growing->rows)
		return;
	growing->rows = memory_resize(growing->rows, out->count + 1, sizeof *growing->rows);
	arena_take(tx->arena, growing->rows, (out->count + 1) * sizeof *growing->rows);
	out->items = growing->rows + 1;
}

void read_records(struct sql_query *query, struct record_rows *out)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	while (query_next(query))
		read_record(query, growing_next(&growing, out->count++));
	growing_keep(&growing, query->tx, out);
}

void read_all_known(struct sql_query *query, struct record_rows *out)
{
	struct growing growing = {0};

	*out = (struct record_rows){0};
	for (; query_next(query); out->count++) {
		struct change_record *record = growing_next(&growing, out->count);

		read_columns(query, change_columns, COLUMN_COMPARED,
			out->count > 0 ? record - 1 : NULL, record);
		read_triage(query, &record->triage);
	}
	growing_keep(&growing, query->tx, out);
}

void owners_add(struct owners *owners, struct tx *tx, int64_t id, size_t place)
{
	*ADD_ROW(tx, owners->items, owners->count) = (struct owner){id, place};
}

void owners_read(struct owners *owners, struct sql_query *query)
{
	while (query_next(query))
		owners_add(owners, query->tx, read_id(query), owners->count);
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

const char *owners_json(struct tx *tx, const struct owners *owners, size_t first, size_t count)
{
	struct buf text = {0};

	buf_char(&text, '[');
	for (size_t i = 0; i < count; i++)
		buf_printf(&text, i > 0 ? ",%" PRId64 : "%" PRId64, owners->items[first + i].id);
	buf_char(&text, ']');
	return buf_keep(&text, tx->arena);
}

const char *rows_id(struct tx *tx, int64_t id)
{
	return owners_json(tx, &(struct owners){&(struct owner){.id = id}, 1}, 0, 1);
}

void bind_owners(struct sql_query *query, const struct owners *owners)
{
	bind_text(query, owners_json(query->tx, owners, 0, owners->count));
}

const char *rows_names(struct tx *tx, const struct strings *names)
{
	struct buf out = {0};

	buf_char(&out, '[');
	for (size_t i = 0; i < names->count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		buf_json_text(&out, names->items[i]);
	}
	buf_char(&out, ']');
	return buf_keep(&out, tx->arena);
}

static void owned_fetch(struct owned_query *rows)
{
	rows->waiting = query_next(&rows->query);
	rows->ended = !rows->waiting;
	if (rows->waiting)
		rows->owner = read_id(&rows->query);
}

bool owned_next(struct owned_query *rows, int64_t owner)
{
	if (!rows->waiting && !rows->ended)
		owned_fetch(rows);
	while (rows->waiting && rows->owner < owner)
		owned_fetch(rows);
	if (!rows->waiting || rows->owner != owner)
		return false;
	rows->waiting = false;
	return true;
}

void *rows_grow(struct tx *tx, void *items, size_t *count, size_t size)
{
	char *grown = arena_grow(tx->arena, items, (*count)++, size);

	memset(grown + (*count - 1) * size, 0, size);
	return grown;
}
