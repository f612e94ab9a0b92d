/*
 * `store check`. Compares the schema with that of an empty file, which
 * reveals tables, indices or triggers that were dropped or added.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/backend.h"
#include "agent/store/sql/check.h"
#include "agent/store/sqlite/file.h"

struct file_check {
	struct check all;
	const char *path, *shown; /* shown: in errors */
	sqlite3 *database;
	bool unlawful; /* a row violates a CHECK constraint */
	bool opening;  /* additions by users do no harm */
};

/* Each row of the result is a problem, except "ok". SQLite's message about a CHECK names no
 * value. */
static void ask(struct file_check *check, const char *sql)
{
	static const char unlawful[] = "CHECK constraint failed";
	sqlite3_stmt *statement;
	int result = SQLITE_ERROR;

	if (sqlite3_prepare_v2(check->database, sql, -1, &statement, NULL) == SQLITE_OK)
		while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(statement, 0);

			if (text && strncmp(text, unlawful, strlen(unlawful)) == 0)
				check->unlawful = true;
			else if (text && strcmp(text, "ok") != 0)
				check_found(&check->all, "%s", text);
		}
	if (result != SQLITE_DONE)
		check_found(&check->all, "%s", sqlite3_errmsg(check->database));
	sqlite3_finalize(statement);
}

/* The result's number; 0 and a problem if the query fails. */
static int64_t ask_number(struct file_check *check, const char *sql)
{
	int64_t number = 0;

	if (!store_file_ask(check->database, sql, &number, NULL, 0))
		check_found(&check->all, "%s", sqlite3_errmsg(check->database));
	return number;
}

/* Like strcmp, ignoring white space. */
static int compare_words(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " \n\t");
		b += strspn(b, " \n\t");
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	}
}

struct part {
	const char *name, *sql;
};

/* Tables, indices and triggers, sorted by name; those that SQLite creates itself have no SQL. */
static size_t read_parts(struct file_check *check, sqlite3 *database, struct part **parts)
{
	sqlite3_stmt *statement;
	size_t count = 0;

	*parts = NULL;
	if (sqlite3_prepare_v2(database,
		    "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name", -1,
		    &statement, NULL) == SQLITE_OK)
		while (sqlite3_step(statement) == SQLITE_ROW) {
			struct part *part;

			*parts = arena_grow(check->all.arena, *parts, count++, sizeof **parts);
			part = &(*parts)[count - 1];
			part->name = arena_strdup(
				check->all.arena, (const char *)sqlite3_column_text(statement, 0));
			part->sql = arena_strdup(
				check->all.arena, (const char *)sqlite3_column_text(statement, 1));
		}
	sqlite3_finalize(statement);
	return count;
}

static void compare_parts(struct file_check *check, const struct part *is, size_t is_count,
	const struct part *ought, size_t ought_count)
{
	while (is_count > 0 || ought_count > 0) {
		int order = is_count == 0      ? 1
			    : ought_count == 0 ? -1
					       : strcmp(is->name, ought->name);

		if (order < 0 && !check->opening)
			check_found(&check->all, "\"%s\" is not part of the schema", is->name);
		else if (order > 0)
			check_found(&check->all, "\"%s\" is missing", ought->name);
		else if (order == 0 && compare_words(is->sql, ought->sql) != 0)
			check_found(&check->all, "\"%s\" differs from the schema", is->name);
		is += order <= 0;
		is_count -= order <= 0;
		ought += order >= 0;
		ought_count -= order >= 0;
	}
}

static void check_schema(struct file_check *check)
{
	char *text = schema_text_new(&sqlite_words);
	struct part *is, *ought;
	size_t is_count, ought_count;
	sqlite3 *model;

	if (sqlite3_open(":memory:", &model) != SQLITE_OK) {
		check_found(&check->all, "%s", sqlite3_errmsg(model));
		sqlite3_close(model);
		free(text);
		return;
	}
	if (sqlite3_exec(model, text, NULL, NULL, NULL) != SQLITE_OK)
		check_found(&check->all, "%s", sqlite3_errmsg(model));
	free(text);
	ought_count = read_parts(check, model, &ought);
	sqlite3_close(model);
	is_count = read_parts(check, check->database, &is);
	compare_parts(check, is, is_count, ought, ought_count);
}

struct strings store_file_compare(sqlite3 *database, struct arena *arena)
{
	struct store_report report = {0};
	struct file_check check = {
		.all = {arena, &report, NULL}, .database = database, .opening = true};

	check_schema(&check);
	return report.problems;
}

/* Ranges that reading enforces, although the constraints say the same. */
static void check_column(
	struct file_check *check, const char *table, const struct stored_column *column)
{
	int64_t first, last;

	if (column_range(column, &first, &last))
		ask(check, arena_printf(check->all.arena,
				   "SELECT 'a row of %s is out of range: %s ' || %s FROM %s"
				   " WHERE %s NOT BETWEEN %" PRId64 " AND %" PRId64 " LIMIT 3",
				   table, column->name, column->name, table, column->name, first,
				   last));
}

static void check_values(struct file_check *check)
{
	for (size_t i = 0; i < STORE_TABLES; i++) {
		const struct stored_column *column = schema_tables[i].columns;

		for (; column->name; column++)
			check_column(check, schema_tables[i].name, column);
	}
}

/* By a handle of its own, as calls read it. */
static void check_rows(struct file_check *check)
{
	struct error error;
	struct tx *tx = sqlite_backend.open(check->path, STORE_READ, &error);

	if (tx) {
		tx->label = arena_printf(check->all.arena, "state file %s", check->shown);
		tx->error = &error;
		sqlite_backend.begin(tx, false);
		check_content(&check->all, tx);
	}
	if (!tx || tx->failed)
		check_found(&check->all, "%s", error.text);
	if (tx)
		sqlite_backend.close(tx);
}

static void check_all(struct file_check *check)
{
	ask(check,
		"SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent || ' that does"
		" not exist' FROM pragma_foreign_key_check");
	check_values(check);
	ask(check, "SELECT 'wrong count of changes in state ' || state || ': ' || count"
		   " FROM counts WHERE count !="
		   " (SELECT count(*) FROM changes WHERE changes.state = counts.state)");
	check_rows(check);
	if (check->unlawful && check->all.report->problems.count == 0)
		check_found(&check->all, "a row violates a CHECK constraint of its table");
}

/* False if it is not our file; further checks would be pointless. */
static bool check_head(struct file_check *check, struct error *error)
{
	int64_t application = ask_number(check, "PRAGMA application_id");
	int64_t version = ask_number(check, "PRAGMA user_version");

	if (check->all.report->problems.count > 0)
		return true;
	if (application == 0 && version == 0 &&
		ask_number(check, "SELECT count(*) FROM sqlite_schema") == 0)
		return error_set(error, ERROR_STATE,
			"state file %s is empty: an agent would initialise it", check->shown);
	if (application != STORE_APPLICATION)
		return error_set(error, ERROR_STATE,
			"state file %s is the database of another program", check->shown);
	return schema_check(arena_printf(check->all.arena, "state file %s", check->shown), version,
		&sqlite_words, error);
}

static bool check_once(struct file_check *check, bool *settled, struct error *error)
{
	bool done;

	*check->all.report = (struct store_report){0};
	check->all.problems = NULL;
	check->unlawful = false;
	check->database = store_reader_connect(check->path, settled, error);
	if (!check->database)
		return false;
	done = check_head(check, error);
	if (done && check->all.report->problems.count == 0)
		ask(check, "PRAGMA integrity_check(100)");
	if (done && check->all.report->problems.count == 0) {
		check_schema(check);
		check_all(check);
	}
	check->all.report->size = store_file_size(check->path);
	sqlite3_close(check->database);
	return done;
}

bool store_file_check_copy(const char *path, const char *shown, struct arena *arena,
	struct store_report *report, struct error *error)
{
	struct file_check check = {.all = {arena, report, NULL}, .path = path, .shown = shown};
	bool settled = false, done = check_once(&check, &settled, error);

	return store_reader_overtaken(path, settled) ? check_once(&check, &settled, error) : done;
}

bool store_file_check(
	const char *path, struct arena *arena, struct store_report *report, struct error *error)
{
	return store_file_check_copy(path, path, arena, report, error);
}
