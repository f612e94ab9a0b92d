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
#include "agent/store/sql/read.h"

enum { PAGE = 2000, LOAD = 5 * PAGE, KEYS_MOST = 3 };

/* The rows of a table, one after the other. */
struct walk {
	struct tx *tx;
	const struct sql_table *table;
	struct sql_query query;
	struct value keys[KEYS_MOST]; /* of the last row */
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
	walk->query = sql_query_of(walk->tx, table->read);
	for (int i = 0; i < walk->key_count; i++) {
		if (walk->keys[i].type == SQL_TEXT)
			walk->keys[i].text = arena_strdup(walk->page, walk->keys[i].text);
		query_bind(&walk->query, walk->keys[i]);
	}
	query_bind(&walk->query, v_int(PAGE));
	if (before)
		arena_free(before);
}

/* Before the first row: no key is less. */
static struct walk walk_over(struct tx *tx, const struct sql_table *table)
{
	struct walk walk = {.tx = tx, .table = table};

	for (; table->columns[walk.key_count].uses & COLUMN_KEY; walk.key_count++)
		walk.keys[walk.key_count] = table->columns[walk.key_count].type == COLUMN_TEXT
						    ? v_text("")
						    : v_int(INT64_MIN);
	begin_page(&walk);
	return walk;
}

static void walk_end(struct walk *walk)
{
	walk->tx->backend->reset(walk->query.statement);
	arena_free(walk->page);
}

/* The value of the row's column. */
static struct value value_of(const struct walk *walk, int column)
{
	return walk->tx->backend->column(walk->query.statement, column);
}

/* Whether there is another row; false, too, with an error. */
static bool walk_on(struct walk *walk)
{
	for (;;) {
		if (query_next(&walk->query)) {
			walk->on_page++;
			for (int i = 0; i < walk->key_count; i++) {
				walk->keys[i] = value_of(walk, i);
				if (walk->keys[i].type == SQL_TEXT)
					walk->keys[i].text =
						arena_strdup(walk->page, walk->keys[i].text);
			}
			return true;
		}
		if (walk->tx->failed || walk->on_page < PAGE)
			return false;
		begin_page(walk);
	}
}

static void copy_table(struct tx *from, struct tx *to, const struct sql_table *table, int64_t *rows)
{
	struct walk walk = walk_over(from, table);
	struct sql_query query;

	rows_load_begin(to, table->insert);
	while (!to->failed && walk_on(&walk)) {
		query = sql_query_of(to, table->insert);
		for (int i = 0; table->columns[i].name; i++)
			query_bind(&query, value_of(&walk, i));
		query_run(&query);
		if (++*rows % LOAD == 0) {
			rows_load_end(to);
			rows_load_begin(to, table->insert);
		}
	}
	rows_load_end(to);
	walk_end(&walk);
}

void store_last_ids(struct tx *tx, int64_t ids[SCHEMA_SEQUENCES])
{
	struct sql_query query = sql_query_of(tx,
		"SELECT @last_id{changes}, @last_id{deliveries}, @last_id{silences},"
		" @last_id{events}, @last_id{bisections}");

	while (query_next(&query))
		for (int i = 0; i < SCHEMA_SEQUENCES; i++)
			ids[i] = read_count(&query);
}

/* One of the statements returns rows that are not needed. */
static void set_last_id(struct tx *tx, const char *table, int64_t id)
{
	struct sql_query forget = QUERY(tx, "@forget_last_id", v_text(table));
	struct sql_query set;

	while (query_next(&forget))
		continue;
	set = QUERY(tx, "@set_last_id", v_text(table), v_int(id));
	while (query_next(&set))
		continue;
}

void sql_copy(struct tx *to, struct tx *from, struct store_copied *copied)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0};

	*copied = (struct store_copied){0};
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		struct walk walk = walk_over(to, &schema_tables[i]);

		if (walk_on(&walk))
			tx_fail(to, ERROR_STATE, "%s is not empty", to->label);
		walk_end(&walk);
	}
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		copied->tables[i].name = schema_tables[i].name;
		copy_table(from, to, &schema_tables[i], &copied->tables[i].rows);
	}
	store_last_ids(from, ids);
	for (int i = 0; i < SCHEMA_SEQUENCES; i++)
		set_last_id(to, schema_sequences[i], ids[i]);
}

/* PostgreSQL has '?' for each byte that is not UTF-8. */
static bool is_same_text(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (*a != *b && (*a != '?' || utf8_length(b, strlen(b)) > 0) &&
			(*b != '?' || utf8_length(a, strlen(a)) > 0))
			return false;
	return *a == *b;
}

static bool is_same(struct value a, struct value b)
{
	if (a.type != b.type)
		return false;
	if (a.type == SQL_TEXT)
		return is_same_text(a.text, b.text);
	if (a.type == SQL_BYTES)
		return a.length == b.length &&
		       (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
	return a.type == SQL_NULL || a.integer == b.integer; /* or the bits of a number */
}

static void compare_table(struct tx *from, struct tx *to, const struct sql_table *table)
{
	struct walk left = walk_over(from, table), right = walk_over(to, table);
	bool same = true, more = true;

	while (same && more) {
		more = walk_on(&left);
		same = more == walk_on(&right);
		for (int i = 0; same && more && table->columns[i].name; i++)
			same = is_same(value_of(&left, i), value_of(&right, i));
	}
	if (!same && !from->failed && !to->failed)
		tx_fail(to, ERROR_STATE, "%s: table %s differs from the copy", to->label,
			table->name);
	walk_end(&left);
	walk_end(&right);
}

void sql_compare(struct tx *to, struct tx *from)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0}, others[SCHEMA_SEQUENCES] = {0};

	for (int i = 0; i < (int)STORE_TABLES; i++)
		compare_table(from, to, &schema_tables[i]);
	store_last_ids(from, ids);
	store_last_ids(to, others);
	for (int i = 0; i < SCHEMA_SEQUENCES && !from->failed; i++)
		if (ids[i] != others[i])
			tx_fail(to, ERROR_STATE,
				"%s: the last id of table %s differs from the copy", to->label,
				schema_sequences[i]);
}
