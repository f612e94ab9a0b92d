/*
 * Opening the state file. The schema's version is SQLite's user_version; migrations are an array of
 * scripts of which each brings the file one version on.
 */
#include "agent/news/store_file.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/news/store_lock.h"

enum { APPLICATION_ID = 0x48554e54, BUSY_MS = 5000 };

struct store_file {
	char *path;
	int lock;
	sqlite3 *database;
	sqlite3_stmt *statements[STATEMENT_COUNT];
};

static const char *const migrations[] = {
	"CREATE TABLE changes ("
	" id INTEGER PRIMARY KEY, test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"
	" sign INTEGER NOT NULL, time INTEGER NOT NULL, state INTEGER NOT NULL, news INTEGER NOT "
	"NULL,"
	" first_seen INTEGER NOT NULL, spacing INTEGER NOT NULL, updated INTEGER NOT NULL,"
	" metric TEXT NOT NULL, unit TEXT, direction INTEGER NOT NULL,"
	" pvalue REAL, mean_before REAL, mean_after REAL, stddev_before REAL, stddev_after REAL,"
	" count_before INTEGER NOT NULL, count_after INTEGER NOT NULL, magnitude REAL,"
	" commit_before TEXT, commit_after TEXT, version_before TEXT, version_after TEXT) STRICT;"
	"CREATE INDEX changes_of_series ON changes (test, series, branch);"
	"CREATE INDEX changes_of_state ON changes (state);"
	"CREATE INDEX changes_pending ON changes (id) WHERE news = 1;"
	"CREATE TABLE deliveries ("
	" id INTEGER PRIMARY KEY, key TEXT NOT NULL, receiver TEXT NOT NULL, destination TEXT NOT "
	"NULL,"
	" payload TEXT NOT NULL, state INTEGER NOT NULL, receipt TEXT, problem TEXT,"
	" attempts INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL) STRICT;"
	"CREATE INDEX deliveries_queued ON deliveries (id) WHERE state = 1;"
	"CREATE TABLE announced ("
	" change INTEGER NOT NULL REFERENCES changes, delivery INTEGER NOT NULL REFERENCES "
	"deliveries,"
	" PRIMARY KEY (change, delivery)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE series ("
	" test TEXT NOT NULL, series TEXT NOT NULL, branch TEXT NOT NULL,"
	" run INTEGER NOT NULL, last_point INTEGER NOT NULL,"
	" PRIMARY KEY (test, series, branch)) STRICT, WITHOUT ROWID;",
	"DROP TABLE series;"
	"CREATE INDEX deliveries_settled ON deliveries (updated) WHERE state != 1;"
	"CREATE INDEX announced_by ON announced (delivery);",
};

enum { VERSION = sizeof migrations / sizeof *migrations };

#define ITEM_COLUMNS                                                                               \
	"metric, unit, direction, pvalue, mean_before, mean_after, stddev_before, stddev_after,"   \
	" count_before, count_after, magnitude, commit_before, commit_after, version_before,"      \
	" version_after"

static const char *const statement_texts[STATEMENT_COUNT] = {
	[STATEMENT_RESTORE_RECORDS] =
		"SELECT id, test, series, branch, sign, time, state, news, "
		"first_seen, spacing, " ITEM_COLUMNS " FROM changes WHERE news = 1 ORDER BY id",
	[STATEMENT_RESTORE_TOLD] =
		"SELECT DISTINCT changes.id, receiver FROM changes"
		" JOIN announced ON change = changes.id JOIN deliveries ON delivery = deliveries.id"
		" WHERE news = 1 ORDER BY changes.id, receiver",
	[STATEMENT_RESTORE_PARCELS] =
		"SELECT id, key, receiver, destination, payload, state, receipt, attempts, created"
		" FROM deliveries WHERE state = 1 ORDER BY id",
	[STATEMENT_RESTORE_COUNTS] = "SELECT state, count(*) FROM changes GROUP BY state",
	[STATEMENT_KNOWN] = "SELECT id, series, branch, sign, time, state FROM changes"
			    " WHERE test = ? ORDER BY series, branch, id",
	[STATEMENT_RECORD] =
		"INSERT INTO changes (test, series, branch, sign, time, state, news, first_seen,"
		" spacing, updated, " ITEM_COLUMNS
		") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?8,"
		" ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
	[STATEMENT_UPDATE] = "UPDATE changes SET time = ?2, state = ?3, updated = ?4 WHERE id = ?1",
	[STATEMENT_QUEUE] =
		"INSERT INTO deliveries (key, receiver, destination, payload, state, receipt,"
		" problem, attempts, created, updated) VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL, 0,"
		" ?6, ?6)",
	[STATEMENT_ANNOUNCE] = "INSERT INTO announced (change, delivery) VALUES (?, ?)",
	[STATEMENT_TELL] = "UPDATE changes SET news = 2 WHERE id = ?",
	[STATEMENT_SETTLE] = "UPDATE deliveries SET state = ?2, receipt = ?3, problem = ?4,"
			     " attempts = ?5, updated = ?6 WHERE id = ?1",
	[STATEMENT_PRUNE_LINKS] = "DELETE FROM announced WHERE delivery IN"
				  " (SELECT id FROM deliveries WHERE state != 1 AND updated < ?)",
	[STATEMENT_PRUNE] = "DELETE FROM deliveries WHERE state != 1 AND updated < ?",
};

sqlite3 *store_file_database(struct store_file *file)
{
	return file->database;
}

sqlite3_stmt *store_file_statement(struct store_file *file, enum statement statement)
{
	sqlite3_reset(file->statements[statement]);
	sqlite3_clear_bindings(file->statements[statement]);
	return file->statements[statement];
}

bool store_file_fail(struct store_file *file, const char *doing, struct error *error)
{
	return error_set(error, ERROR_STATE, "state file %s: cannot %s: %s", file->path, doing,
		sqlite3_errmsg(file->database));
}

static bool execute(
	struct store_file *file, const char *sql, const char *doing, struct error *error)
{
	if (sqlite3_exec(file->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		return store_file_fail(file, doing, error);
	return true;
}

/* Asks for a single number or, with `text`, for a single text. */
static bool ask(struct store_file *file, const char *sql, int64_t *number, char *text, size_t size,
	struct error *error)
{
	sqlite3_stmt *statement;
	bool answered;

	if (sqlite3_prepare_v2(file->database, sql, -1, &statement, NULL) != SQLITE_OK)
		return store_file_fail(file, "read it", error);
	answered = sqlite3_step(statement) == SQLITE_ROW;
	if (answered && text) {
		const char *answer = (const char *)sqlite3_column_text(statement, 0);

		snprintf(text, size, "%s", answer ? answer : "");
	} else if (answered) {
		*number = sqlite3_column_int64(statement, 0);
	} else {
		store_file_fail(file, "read it", error);
	}
	sqlite3_finalize(statement);
	return answered;
}

static bool ask_number(
	struct store_file *file, const char *sql, int64_t *number, struct error *error)
{
	return ask(file, sql, number, NULL, 0, error);
}

static bool damaged(struct store_file *file, const char *what, struct error *error)
{
	return error_set(error, ERROR_STATE,
		"state file %s is damaged (%s) and was left as it is: restore a backup, or move the"
		" file away to begin anew",
		file->path, what);
}

static bool check_pages(struct store_file *file, struct error *error)
{
	char answer[256] = "";

	if (sqlite3_exec(file->database, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) !=
		SQLITE_OK)
		switch (sqlite3_errcode(file->database)) {
		case SQLITE_NOTADB:
		case SQLITE_CORRUPT: return damaged(file, sqlite3_errmsg(file->database), error);
		default: return store_file_fail(file, "open it", error);
		}
	if (!ask(file, "PRAGMA quick_check(1)", NULL, answer, sizeof answer, error))
		return damaged(file, sqlite3_errmsg(file->database), error);
	return strcmp(answer, "ok") == 0 || damaged(file, answer, error);
}

/* An empty file is new, and version 0. */
static bool check_version(struct store_file *file, int64_t *version, struct error *error)
{
	int64_t application, tables;

	if (!ask_number(file, "PRAGMA user_version", version, error) ||
		!ask_number(file, "PRAGMA application_id", &application, error) ||
		!ask_number(file, "SELECT count(*) FROM sqlite_schema", &tables, error))
		return false;
	if (application != APPLICATION_ID && (*version != 0 || tables != 0))
		return error_set(error, ERROR_STATE,
			"state file %s is a database of another program", file->path);
	if (*version < 0)
		return damaged(file, "its version is negative", error);
	if (*version > VERSION)
		return error_set(error, ERROR_STATE,
			"state file %s was written by a newer hunter-c (version %lld of the file,"
			" this one knows %d)",
			file->path, (long long)*version, VERSION);
	return true;
}

static bool migrate(struct store_file *file, int64_t version, struct error *error)
{
	for (; version < VERSION; version++) {
		char mark[96];

		snprintf(mark, sizeof mark,
			"PRAGMA application_id = %d; PRAGMA user_version = %lld", APPLICATION_ID,
			(long long)version + 1);
		if (!store_file_begin(file, error))
			return false;
		if (!execute(file, migrations[version], "bring it up to date", error) ||
			!execute(file, mark, "bring it up to date", error) ||
			!store_file_commit(file, error)) {
			store_file_rollback(file);
			return false;
		}
	}
	return true;
}

static bool prepare(struct store_file *file, struct error *error)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++)
		if (sqlite3_prepare_v3(file->database, statement_texts[i], -1,
			    SQLITE_PREPARE_PERSISTENT, &file->statements[i], NULL) != SQLITE_OK)
			return store_file_fail(file, "use it", error);
	return true;
}

static bool open_database(struct store_file *file, struct error *error)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
	int64_t version;

	if (sqlite3_open_v2(file->path, &file->database, flags, NULL) != SQLITE_OK)
		return store_file_fail(file, "open it", error);
	sqlite3_busy_timeout(file->database, BUSY_MS);
	if (sqlite3_db_readonly(file->database, "main"))
		return error_set(error, ERROR_STATE, "state file %s cannot be written", file->path);
	return check_pages(file, error) && check_version(file, &version, error) &&
	       execute(file, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", "write it",
		       error) &&
	       migrate(file, version, error) && prepare(file, error);
}

struct store_file *store_file_open(const char *path, struct error *error)
{
	struct store_file *file = memory_new(1, sizeof *file);

	*file = (struct store_file){.path = store_path_new(path, error), .lock = -1};
	if (file->path)
		file->lock = store_lock(file->path, error);
	if (file->lock >= 0 && open_database(file, error))
		return file;
	store_file_close(file);
	return NULL;
}

void store_file_close(struct store_file *file)
{
	for (size_t i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(file->statements[i]);
	sqlite3_close(file->database);
	if (file->lock >= 0)
		close(file->lock);
	free(file->path);
	free(file);
}

bool store_file_begin(struct store_file *file, struct error *error)
{
	return execute(file, "BEGIN", "begin a transaction", error);
}

bool store_file_commit(struct store_file *file, struct error *error)
{
	return execute(file, "COMMIT", "write to it", error);
}

void store_file_rollback(struct store_file *file)
{
	if (!sqlite3_get_autocommit(file->database))
		(void)sqlite3_exec(file->database, "ROLLBACK", NULL, NULL, NULL);
}
