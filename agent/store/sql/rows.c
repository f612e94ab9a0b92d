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

#include "agent/model/stored_text.h"
#include "agent/store/sql/statements.h"

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
	enum sql_step result = tx->failed ? SQL_FAILED : tx->backend->step(query->statement);

	if (result == SQL_FAILED && !tx->failed)
		tx->failed = !tx->backend->fail(tx, doing);
	return result;
}

struct sql_query sql_query_of(struct tx *tx, const char *statement)
{
	struct sql_query query = {.tx = tx, .statement = statement_of(tx, statement)};

	if (!query.statement && !tx->failed)
		tx->failed = !tx->backend->fail(tx, "read it");
	return query;
}

void query_bind(struct sql_query *query, struct value value)
{
	query->tx->backend->bind(query->statement, ++query->parameter, &value);
}

void bind_row(struct sql_query *query, const struct stored_column *columns, unsigned uses,
	const void *row)
{
	struct buf text = {0};
	int64_t whole;

	for (const struct stored_column *column = columns; column->name; column++) {
		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE:
			whole = column_integer(column, row);
			query_bind(query, whole == 0 && column->uses & COLUMN_OPTIONAL
						  ? v_null()
						  : v_int(whole));
			break;
		case COLUMN_NUMBER: query_bind(query, v_number(column_number(column, row))); break;
		case COLUMN_TEXT: query_bind(query, v_text(column_text(column, row))); break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
		case COLUMN_SUSPECTS:
		case COLUMN_CULPRIT:
			stored_text_put(&text, column, row);
			query_bind(query,
				v_text(text.data ? buf_keep(&text, query->tx->arena) : NULL));
			break;
		}
	}
}

void rows_load_begin(struct tx *tx, const char *insert)
{
	if (tx->backend->load_begin && !tx->failed)
		tx->failed = !tx->backend->load_begin(tx, statement_of(tx, insert)) &&
			     !tx->backend->fail(tx, "write to it");
}

void rows_load_end(struct tx *tx)
{
	if (tx->backend->load_end && !tx->failed)
		tx->failed = !tx->backend->load_end(tx) && !tx->backend->fail(tx, "write to it");
}

int64_t query_insert(struct sql_query *query)
{
	int64_t id = 0;

	if (step(query, "write to it") == SQL_ROW) {
		id = query->tx->backend->column(query->statement, 0).integer;
		(void)step(query, "write to it");
	}
	query->tx->backend->reset(query->statement);
	return id;
}

void query_run(struct sql_query *query)
{
	(void)query_insert(query);
}

void row_run(struct sql_query query, const struct stored_column *columns, const void *row)
{
	bind_row(&query, columns, 0, row);
	query_run(&query);
}

struct sql_query rows_query(
	struct tx *tx, const char *statement, const struct value *values, size_t count)
{
	struct sql_query query = sql_query_of(tx, statement);

	for (size_t i = 0; i < count; i++)
		query_bind(&query, values[i]);
	return query;
}

void rows_run(struct tx *tx, const char *statement, const struct value *values, size_t count)
{
	struct sql_query query = rows_query(tx, statement, values, count);

	query_run(&query);
}

int64_t tx_changed(struct tx *tx)
{
	return tx->failed ? 0 : tx->backend->changed(tx);
}

int64_t query_ask(struct sql_query query)
{
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
	tx->backend->reset(query->statement);
	return false;
}

static struct value take(struct sql_query *query)
{
	return query->tx->backend->column(query->statement, query->column++);
}

static bool is_null(struct sql_query *query)
{
	return query->tx->backend->column(query->statement, query->column).type == SQL_NULL;
}

int64_t read_integer(struct sql_query *query)
{
	return read_choice(query, INT64_MIN, INT64_MAX);
}

int64_t read_choice(struct sql_query *query, int64_t first, int64_t last)
{
	struct value value = take(query);

	if (value.type == SQL_INTEGER && value.integer >= first && value.integer <= last)
		return value.integer;
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
	struct value value = take(query);

	if (value.type == SQL_INTEGER)
		return (double)value.integer;
	return value.type == SQL_NUMBER ? value.number : (double)NAN;
}

const char *read_text(struct sql_query *query)
{
	struct value value = take(query);

	return value.type == SQL_TEXT ? arena_strdup(query->tx->arena, value.text) : NULL;
}

const char *read_name(struct sql_query *query)
{
	const char *text = read_text(query);

	query->damaged |= !text;
	return text ? text : "";
}

const void *read_bytes(struct sql_query *query, size_t *length)
{
	struct value value = take(query);

	*length = value.length;
	return value.type == SQL_BYTES ? value.bytes : NULL;
}

enum { TRIAGE_COUNT = 13 }; /* of TRIAGE_COLUMNS */

const struct culprit *read_culprit(struct sql_query *query)
{
	const char *text = read_text(query);
	const struct culprit *culprit = text ? culprit_read(query->tx->arena, text) : NULL;

	query->damaged |= text && !culprit;
	return culprit;
}

/* NULLs become a change without triage. */
static void read_triage(struct sql_query *query, struct triage *triage)
{
	*triage = (struct triage){.state = TRIAGE_OPEN,
		.size = (double)NAN,
		.size_low = (double)NAN,
		.size_high = (double)NAN};
	if (is_null(query)) {
		query->column += TRIAGE_COUNT;
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
	triage->inherited = read_count(query);
	triage->renewals = read_count(query);
}

/* The columns of this use, or all: 0. */
static void read_columns(
	struct sql_query *query, const struct stored_column *columns, unsigned uses, void *row)
{
	int64_t first, last;

	for (const struct stored_column *column = columns; column->name; column++) {
		void *member = column_member(column, row);

		if (uses != 0 && !(column->uses & uses))
			continue;
		switch (column->type) {
		case COLUMN_ID:
		case COLUMN_TIME:
		case COLUMN_COUNT:
		case COLUMN_CHOICE:
			if (column->uses & COLUMN_OPTIONAL && is_null(query))
				query->column++;
			else if (column_range(column, &first, &last))
				column_set(column, row, read_choice(query, first, last));
			break;
		case COLUMN_NUMBER: *(double *)member = read_number(query); break;
		case COLUMN_TEXT:
			*(const char **)member = column->uses & COLUMN_OPTIONAL ? read_text(query)
										: read_name(query);
			break;
		case COLUMN_BYTES: break;
		case COLUMN_ATTRIBUTES:
		case COLUMN_SUSPECTS:
		case COLUMN_CULPRIT:
			query->damaged |=
				!stored_text_read(query->tx->arena, column, read_text(query), row);
			break;
		}
	}
}

void read_struct(struct sql_query *query, const struct stored_column *columns, void *row)
{
	read_columns(query, columns, 0, row);
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
	record->incident_stored = record->item.incident;
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
	while (query_next(query)) {
		struct change_record *record = growing_next(&growing, out->count++);

		read_columns(query, change_columns, COLUMN_COMPARED, record);
		read_triage(query, &record->triage);
	}
	growing_keep(&growing, query->tx, out);
}

void owners_add(struct owners *owners, struct tx *tx, int64_t id, size_t place)
{
	*ADD_ROW(tx, owners->items, owners->count) = (struct owner){id, place};
}

void owners_read(struct owners *owners, struct sql_query query)
{
	while (query_next(&query))
		owners_add(owners, query.tx, read_id(&query), owners->count);
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

struct value v_owners(struct tx *tx, const struct owners *owners)
{
	struct buf text = {0};

	buf_char(&text, '[');
	for (size_t i = 0; i < owners->count; i++)
		buf_printf(&text, i > 0 ? ",%" PRId64 : "%" PRId64, owners->items[i].id);
	buf_char(&text, ']');
	return v_text(buf_keep(&text, tx->arena));
}

struct value v_one(struct tx *tx, int64_t id)
{
	return v_text(arena_printf(tx->arena, "[%" PRId64 "]", id));
}

struct value v_names(struct tx *tx, const struct strings *names)
{
	struct buf out = {0};

	buf_char(&out, '[');
	for (size_t i = 0; i < names->count; i++) {
		buf_text(&out, i > 0 ? "," : "");
		buf_json_text(&out, names->items[i]);
	}
	buf_char(&out, ']');
	return v_text(buf_keep(&out, tx->arena));
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

const char *rows_pattern(struct tx *tx, const char *pattern)
{
	static const char special[] = "*?[\\";
	struct buf quoted = {0};

	if (!pattern || !strpbrk(pattern, special) ||
		query_ask(QUERY(tx,
			"SELECT CASE WHEN EXISTS (SELECT 1 FROM changes"
			" @indexed{changes_of_series} WHERE test = ?1) THEN 1 ELSE 0 END",
			v_text(pattern))) == 0)
		return pattern;
	for (const char *c = pattern; *c; c++)
		buf_printf(&quoted, "%s%c", strchr(special, *c) ? "\\" : "", *c);
	return buf_keep(&quoted, tx->arena);
}
