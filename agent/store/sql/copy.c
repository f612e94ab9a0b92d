/*
 * Tables are read in pages, in the order of their keys, which are their first columns, so that
 * neither side ever has more than a page of them in memory.
 */
#include "agent/store/sql/copy.h"

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
	struct store_file *file;
	const struct sql_table *table;
	struct reader reader;
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
	walk->reader =
		(struct reader){.binder = bind_to(walk->file, statement_of(STATEMENT_READ, table)),
			.arena = walk->page};
	for (int i = 0; i < walk->key_count; i++)
		if (table->columns[i].type == COLUMN_TEXT) {
			walk->keys[i].text = arena_strdup(walk->page, walk->keys[i].text);
			bind_text(&walk->reader.binder, walk->keys[i].text);
		} else {
			bind_integer(&walk->reader.binder, walk->keys[i].integer);
		}
	bind_integer(&walk->reader.binder, PAGE);
	if (before)
		arena_free(before);
}

/* Before the first row: no key is less. */
static struct walk walk_over(struct store_file *file, const struct sql_table *table)
{
	struct walk walk = {.file = file, .table = table};

	for (; table->columns[walk.key_count].uses & COLUMN_KEY; walk.key_count++)
		walk.keys[walk.key_count] = (struct key){INT64_MIN, ""};
	begin_page(&walk);
	return walk;
}

static void walk_end(struct walk *walk)
{
	walk->file->driver->reset(walk->reader.binder.statement);
	arena_free(walk->page);
}

static void note_keys(struct walk *walk)
{
	const struct sql_driver *driver = walk->file->driver;
	struct sql_statement *statement = walk->reader.binder.statement;

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
static bool walk_on(struct walk *walk, struct error *error)
{
	for (;;) {
		if (reader_next(&walk->reader, error)) {
			note_keys(walk);
			return true;
		}
		if (walk->reader.failed || walk->on_page < PAGE)
			return false;
		begin_page(walk);
	}
}

/* Binds the value of the row's column. */
static void hand_over(struct walk *walk, int column, struct binder *out)
{
	const struct sql_driver *driver = walk->file->driver;
	struct sql_statement *row = walk->reader.binder.statement;
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

static bool load_begin(struct store_file *to, const struct sql_table *table, struct error *error)
{
	return !to->driver->load_begin ||
	       to->driver->load_begin(to, statement_of(STATEMENT_WRITE, table), error);
}

static bool load_end(struct store_file *to, struct error *error)
{
	return !to->driver->load_end || to->driver->load_end(to, error);
}

static bool copy_row(struct walk *walk, struct store_file *to, const struct sql_table *table,
	struct error *error)
{
	struct binder binder = bind_to(to, statement_of(STATEMENT_WRITE, table));

	for (int i = 0; table->columns[i].name; i++)
		hand_over(walk, i, &binder);
	return bind_finish(&binder, error);
}

static bool copy_table(struct store_file *from, struct store_file *to,
	const struct sql_table *table, int64_t *rows, struct error *error)
{
	struct walk walk = walk_over(from, table);
	bool done = load_begin(to, table, error);

	while (done && walk_on(&walk, error)) {
		done = copy_row(&walk, to, table, error);
		++*rows;
		if (done && *rows % LOAD == 0)
			done = load_end(to, error) && load_begin(to, table, error);
	}
	done = done && !walk.reader.failed && load_end(to, error);
	walk_end(&walk);
	return done;
}

static bool read_last_ids(
	struct store_file *file, int64_t ids[SCHEMA_SEQUENCES], struct error *error)
{
	struct reader reader = {.binder = bind_to(file, STATEMENT_LAST_IDS)};

	while (reader_next(&reader, error))
		for (int i = 0; i < SCHEMA_SEQUENCES; i++)
			ids[i] = read_count(&reader);
	return !reader.failed;
}

static bool set_last_id(struct store_file *file, const char *table, int64_t id, struct error *error)
{
	static const enum statement statements[] = {
		STATEMENT_FORGET_LAST_ID, STATEMENT_SET_LAST_ID};

	for (int i = 0; i < 2; i++) {
		struct reader reader = {.binder = bind_to(file, statements[i])};

		bind_text(&reader.binder, table);
		if (statements[i] == STATEMENT_SET_LAST_ID)
			bind_integer(&reader.binder, id);
		while (reader_next(&reader, error))
			continue;
		if (reader.failed)
			return false;
	}
	return true;
}

static bool copy_last_ids(struct store_file *from, struct store_file *to, struct error *error)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0};

	if (!read_last_ids(from, ids, error))
		return false;
	for (int i = 0; i < SCHEMA_SEQUENCES; i++)
		if (!set_last_id(to, schema_sequences[i], ids[i], error))
			return false;
	return true;
}

static bool check_empty(struct store_file *file, struct error *error)
{
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		struct walk walk = walk_over(file, &schema_tables[i]);
		bool has_rows = walk_on(&walk, error), failed = walk.reader.failed;

		walk_end(&walk);
		if (failed || has_rows)
			return !failed &&
			       error_set(error, ERROR_STATE, "%s is not empty", file->label);
	}
	return true;
}

bool sql_copy(struct store_file *to, struct store_file *from, struct store_copied *copied,
	struct error *error)
{
	*copied = (struct store_copied){0};
	if (!check_empty(to, error))
		return false;
	for (int i = 0; i < (int)STORE_TABLES; i++) {
		copied->tables[i].name = schema_tables[i].name;
		if (!copy_table(from, to, &schema_tables[i], &copied->tables[i].rows, error))
			return false;
	}
	return copy_last_ids(from, to, error);
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
	const struct sql_driver *a = left->file->driver, *b = right->file->driver;
	struct sql_statement *x = left->reader.binder.statement,
			     *y = right->reader.binder.statement;
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

static bool differs(const struct store_file *to, const char *table, struct error *error)
{
	return error_set(
		error, ERROR_STATE, "%s: table %s is not as it was copied", to->label, table);
}

static bool compare_rows(struct walk *from, struct walk *to, bool *same, struct error *error)
{
	while (*same) {
		bool one = walk_on(from, error);
		bool other = !from->reader.failed && walk_on(to, error);

		if (from->reader.failed || to->reader.failed)
			return false;
		*same = one == other;
		if (!one)
			return true;
		for (int i = 0; *same && from->table->columns[i].name; i++)
			*same = is_same(from, to, i);
	}
	return true;
}

static bool compare_table(struct store_file *from, struct store_file *to,
	const struct sql_table *table, struct error *error)
{
	struct walk left = walk_over(from, table), right = walk_over(to, table);
	bool same = true, done = compare_rows(&left, &right, &same, error);

	walk_end(&left);
	walk_end(&right);
	return done && (same || differs(to, table->name, error));
}

bool sql_compare(struct store_file *to, struct store_file *from, struct error *error)
{
	int64_t ids[SCHEMA_SEQUENCES] = {0}, others[SCHEMA_SEQUENCES] = {0};

	for (int i = 0; i < (int)STORE_TABLES; i++)
		if (!compare_table(from, to, &schema_tables[i], error))
			return false;
	if (!read_last_ids(from, ids, error) || !read_last_ids(to, others, error))
		return false;
	for (int i = 0; i < SCHEMA_SEQUENCES; i++)
		if (ids[i] != others[i])
			return error_set(error, ERROR_STATE,
				"%s: the last id of table %s is not as it was copied", to->label,
				schema_sequences[i]);
	return true;
}
