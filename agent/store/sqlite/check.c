/*
 * `store check`. Each table, index and trigger is compared with the script that makes it.
 */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/backend.h"
#include "agent/store/sql/check.h"
#include "agent/store/sqlite/file.h"

struct file_check {
	struct check all;
	const char *path, *shown; /* shown: in errors */
	sqlite3 *database;
};

/* Each row of the result is a problem, except "ok". */
static void ask(struct file_check *check, const char *sql)
{
	sqlite3_stmt *statement;
	int result = SQLITE_ERROR;

	if (sqlite3_prepare_v2(check->database, sql, -1, &statement, NULL) == SQLITE_OK)
		while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
			const char *text = (const char *)sqlite3_column_text(statement, 0);

			if (text && strcmp(text, "ok") != 0)
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

/* SQLite keeps the statement that has made a part. */
static void compare_parts(struct file_check *check, const char *script)
{
	for (const char *at = script; (at = strstr(at, "CREATE ")); at++) {
		char name[64], *sql;
		int64_t same;

		if (sscanf(at, "CREATE UNIQUE INDEX %63s", name) != 1)
			(void)sscanf(at, "CREATE %*s %63s", name);
		sql = sqlite3_mprintf("SELECT coalesce(max(sql = substr(%Q, 1, length(sql))), 2)"
				      " FROM sqlite_schema WHERE name = %Q",
			at, name);
		same = ask_number(check, sql);
		sqlite3_free(sql);
		if (same != 1)
			check_found(&check->all, "\"%s\" %s", name,
				same == 2 ? "is missing" : "differs from the schema");
	}
}

struct strings store_file_compare(sqlite3 *database, struct arena *arena)
{
	struct store_report report = {0};
	struct file_check check = {.all = {arena, &report, NULL}, .database = database};
	char *script = schema_text_new(&sqlite_words);

	compare_parts(&check, script);
	free(script);
	return report.problems;
}

static void check_schema(struct file_check *check)
{
	char *script = schema_text_new(&sqlite_words);
	char *sql = sqlite3_mprintf(
		"SELECT '\"' || name || '\" is not part of the schema' FROM sqlite_schema WHERE "
		"sql IS"
		" NOT NULL AND substr(name, 1, 7) != 'sqlite_' AND instr(%Q, upper(type) || ' ' ||"
		" name || ' ') = 0 ORDER BY name",
		script);

	compare_parts(check, script);
	ask(check, sql);
	sqlite3_free(sql);
	free(script);
}

/* Ranges of columns: SQLite does not check constraints of a file that it only reads. */
static void check_values(struct file_check *check)
{
	int64_t first, last;

	for (size_t i = 0; i < STORE_TABLES; i++) {
		const char *table = schema_tables[i].name;

		for (const struct stored_column *at = schema_tables[i].columns; at->name; at++)
			if (column_range(at, &first, &last))
				ask(check, arena_printf(check->all.arena,
						   "SELECT 'a row of %s is out of range: %s ' ||"
						   " %s FROM %s WHERE %s NOT BETWEEN %" PRId64
						   " AND %" PRId64 " LIMIT 3",
						   table, at->name, at->name, table, at->name,
						   first, last));
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
	const struct strings *problems = &check->all.report->problems;
	bool done;

	*check->all.report = (struct store_report){0};
	check->all.problems = NULL;
	check->database = store_reader_connect(check->path, settled, error);
	if (!check->database)
		return false;
	done = check_head(check, error);
	if (done && problems->count == 0) {
		ask(check, "PRAGMA integrity_check(50)");
		check_schema(check);
		ask(check,
			"SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent || '"
			" that does not exist' FROM pragma_foreign_key_check LIMIT 50");
		ask(check, "SELECT 'wrong count of changes in state ' || state || ': ' || count"
			   " FROM counts WHERE count !="
			   " (SELECT count(*) FROM changes WHERE changes.state = counts.state)");
		check_values(check);
		check_rows(check);
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
