/*
 * Tables are read in pages, in the order of their keys, which are their first columns, so that
 * neither side ever has more than a page of them in memory.
 */
#include "agent/store/backend.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/store/sql/rows.h"
#include "agent/store/sql/schema.h"

enum { PAGE = 2000, LOAD = 5 * PAGE, KEYS_MOST = 3 };

static enum statement statement_of(enum statement first, const struct sql_table *table)
{
	return first + (enum statement)(table - schema_tables);
}

struct key {
	int64_t integer;
	const char *text;
};

/* The rows of a table, one after the other. */
struct walk {
	struct tx *tx;
	const struct sql_table *table;
	struct sql_query query;
	struct key keys[KEYS_MOST]; /* of the last row */
	int key_count;
	size_t on_page;
	struct arena *page;
};

static void begin_page(struct walk *walk)
{
	const struct sql_table *table = walk->table;
	struct arena *before = walk->page;

	walk->page = arena_new();
	walk->on_page = 0;
	walk->query = sql_query_of(walk->tx, statement_of(STATEMENT_READ, table));
	for (int i = 0; i < walk->key_count; i++)
		if (table->columns[i].type == COLUMN_TEXT) {
			walk->keys[i].text = arena_strdup(walk->page, walk->keys[i].text);
			bind_text(&walk->query, walk->keys[i].text);
		} else {
			bind_integer(&walk->query, walk->keys[i].integer);
		}
	bind_integer(&walk->query, PAGE);
	if (before)
		arena_free(before);
}

/* Before the first row: no key is less. */
static struct walk walk_over(struct tx *tx, const struct sql_table *table)
{
	struct walk walk = {.tx = tx, .table = table};

	for (; table->columns[walk.key_count].uses & COLUMN_KEY; walk.key_count++)
		walk.keys[walk.key_count] = (struct key){INT64_MIN, ""};
	begin_page(&walk);
	return walk;
}

static void walk_end(struct walk *walk)
{
	walk->tx->driver->reset(walk->query.statement);
	arena_free(walk->page);
}

static void note_keys(struct walk *walk)
{
	const struct sql_driver *driver = walk->tx->driver;
	struct sql_statement *statement = walk->query.statement;

	walk->on_page++;
	for (int i = 0; i < walk->key_count; i++)
		if (walk->table->columns[i].type == COLUMN_TEXT) {
			const char *text = driver->text(statement, i);

			walk->keys[i].text = arena_strdup(walk->page, text ? text : "");
		} else {
			walk->keys[i].integer = driver->integer(statement, i);
		}
}

/* Whether there is another row; false, too, with an error. */
static bool walk_on(struct walk *walk)
{
	for (;;) {
		if (query_next(&walk->query)) {
			note_keys(walk);
			return true;
		}
		if (walk->tx->failed || walk->on_page < PAGE)
			return false;
		begin_page(walk);
	}
}

/* Binds the value of the row's column. */
static void hand_over(struct walk *walk, int column, struct sql_query *out)
{
	const struct sql_driver *driver = walk->tx->driver;
	struct sql_statement *row = walk->query.statement;
	bool missing = driver->type(row, column) == SQL_NULL;
	const void *bytes;
	size_t length;

	switch (walk->table->columns[column].type) {
	case COLUMN_NUMBER:
		bind_number(out, missing ? (double)NAN : driver->number(row, column));
		break;
	case COLUMN_BYTES:
		bytes = driver->bytes(row, column, &length);
		bind_bytes(out, bytes, length);
		break;
	case COLUMN_TEXT:
	case COLUMN_ATTRIBUTES:
	case COLUMN_SUSPECTS:
	case COLUMN_CULPRIT: bind_text(out, missing ? NULL : driver->text(row, column)); break;
	case COLUMN_ID:
	case COLUMN_TIME:
	case COLUMN_COUNT:
	case COLUMN_CHOICE:
		if (missing)
			bind_null(out);
		else
			bind_integer(out, driver->integer(row, column));
	}
}

static void copy_row(struct walk *walk, struct tx *to, const struct sql_table *table)
{
	struct sql_query query = sql_query_of(to, statement_of(STATEMENT_WRITE, table));

	for (int i = 0; table->columns[i].name; i++)
		hand_over(walk, i, &query);
	query_run(&query);
}

static void copy_table(struct tx *from, struct tx *to, const struct sql_table *table, int64_t *rows)
{
	struct walk walk = walk_over(from, table);
	enum statement insert = statement_of(STATEMENT_WRITE, table);

	rows_load_begin(to, insert);
	while (!to->failed && walk_on(&walk)) {
		copy_row(&walk, to, table);
		if (++*rows % LOAD == 0) {
			rows_load_end(to);
			rows_load_begin(to, insert);
		}
	}
	rows_load_end(to);
	walk_end(&walk);
}

static void read_last_ids(struct tx *tx, int64_t ids[SCHEMA_SEQUENCES])
{
	struct sql_query query = sql_query_of(tx, STATEMENT_LAST_IDS);

	while (query_next(&query))
		for (int i = 0; i < SCHEMA_SEQUENCES; i++)
			ids[i] = read_count(&query);
}

/* One of the statements answers with what is not needed. */
static void set_last_id(struct tx *tx, const char *table, int64_t id)
{
	struct sql_query forget = sql_query_of(tx, STATEMENT_FORGET_LAST_ID);
	struct sql_query set = sql_query_of(tx, STATEMENT_SET_LAST_ID);

	bind_text(&forget, table);
	while (query_next(&forget))
		continue;
	bind_text(&set, table);
	bind_integer(&set, id);
	while (query_next(&set))
		continue;
}

static void check_empty(struct tx *tx)
{
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		struct walk walk = walk_over(tx, &schema_tables[i]);

		if (walk_on(&walk))
			tx_fail(tx, ERROR_STATE, "%s is not empty", tx->label);
		walk_end(&walk);
	}
}

void sql_copy(struct tx *to, struct tx *from, struct store_copied *copied)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0};

	*copied = (struct store_copied){0};
	check_empty(to);
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		copied->tables[i].name = schema_tables[i].name;
		copy_table(from, to, &schema_tables[i], &copied->tables[i].rows);
	}
	read_last_ids(from, ids);
	for (int i = 0; i < SCHEMA_SEQUENCES; i++)
		set_last_id(to, schema_sequences[i], ids[i]);
}

/* PostgreSQL has '?' for each byte that is not UTF-8. */
static bool is_same_text(const char *a, const char *b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b; a++, b++)
		if (*a != *b && (*a != '?' || utf8_length(b, strlen(b)) > 0) &&
			(*b != '?' || utf8_length(a, strlen(a)) > 0))
			return false;
	return *a == *b;
}

static bool is_same(const struct walk *left, const struct walk *right, int column)
{
	const struct sql_driver *a = left->tx->driver, *b = right->tx->driver;
	struct sql_statement *x = left->query.statement, *y = right->query.statement;
	size_t m, n;
	const void *bytes, *others;
	double number, other;

	if (a->type(x, column) == SQL_NULL || b->type(y, column) == SQL_NULL)
		return a->type(x, column) == b->type(y, column);
	switch (left->table->columns[column].type) {
	case COLUMN_TEXT:
	case COLUMN_ATTRIBUTES:
	case COLUMN_SUSPECTS:
	case COLUMN_CULPRIT: return is_same_text(a->text(x, column), b->text(y, column));
	case COLUMN_NUMBER:
		number = a->number(x, column);
		other = b->number(y, column);
		return memcmp(&number, &other, sizeof number) == 0;
	case COLUMN_BYTES:
		bytes = a->bytes(x, column, &m);
		others = b->bytes(y, column, &n);
		return m == n && (m == 0 || memcmp(bytes, others, m) == 0);
	case COLUMN_ID:
	case COLUMN_TIME:
	case COLUMN_COUNT:
	case COLUMN_CHOICE: return a->integer(x, column) == b->integer(y, column);
	}
	return false;
}

static void compare_table(struct tx *from, struct tx *to, const struct sql_table *table)
{
	struct walk left = walk_over(from, table), right = walk_over(to, table);
	bool same = true, more = true;

	while (same && more) {
		more = walk_on(&left);
		same = more == walk_on(&right);
		for (int i = 0; same && more && table->columns[i].name; i++)
			same = is_same(&left, &right, i);
	}
	if (!same && !from->failed && !to->failed)
		tx_fail(to, ERROR_STATE, "%s: table %s is not as it was copied", to->label,
			table->name);
	walk_end(&left);
	walk_end(&right);
}

void sql_compare(struct tx *to, struct tx *from)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0}, others[SCHEMA_SEQUENCES] = {0};

	for (int i = 0; i < (int)STORE_TABLES; i++)
		compare_table(from, to, &schema_tables[i]);
	read_last_ids(from, ids);
	read_last_ids(to, others);
	for (int i = 0; i < SCHEMA_SEQUENCES && !from->failed; i++)
		if (ids[i] != others[i])
			tx_fail(to, ERROR_STATE,
				"%s: the last id of table %s is not as it was copied", to->label,
				schema_sequences[i]);
}
