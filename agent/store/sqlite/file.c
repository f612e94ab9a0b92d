/*
 * Opens the state file. Nothing is written before the file is known to be ours, intact, and of a
 * supported version.
 */
#include "agent/store/sqlite/file.h"

#include <fnmatch.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/store/backend.h"
#include "agent/store/sql/statements.h"

enum {
	BUSY_MS = 5000,
	OVERTAKEN_MOST = 2, /* tries */
	CHECKED_WHOLE = 64 << 20,
};

/* Settings of the connection. After a large transaction the log is truncated to 8 MB. */
static const char settings[] = "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 8388608;"
			       "PRAGMA temp_store = MEMORY";

/* Identifies an open file after its name was removed or reused. */
struct file_id {
	dev_t device;
	ino_t inode;
};

/* The log is SQLite's WAL, with everything since the last checkpoint. */
enum { FILE_MAIN, FILE_LOCK, FILE_LOG, FILES };
static const char *const suffixes[FILES] = {"", ".lock", "-wal"};

struct sqlite_file {
	struct tx tx;
	char *path, *label;
	int lock;
	sqlite3 *database;
	bool stuck;                /* since the last begin: any call would fail */
	bool untouched;            /* only read so far */
	bool settled;              /* it is read while no process has it open */
	bool copied;               /* a temporary copy is used */
	struct file_id ids[FILES]; /* of those that this process holds */
};

static bool look_at(const char *path, const char *suffix, struct stat *status)
{
	char *name = memory_printf("%s%s", path, suffix);
	bool there = stat(name, status) == 0;

	free(name);
	return there;
}

int64_t store_file_beside(const char *path, const char *suffix)
{
	struct stat status;

	return look_at(path, suffix, &status) ? status.st_size : -1;
}

static struct file_id id_of(const char *path, const char *suffix)
{
	struct stat status;

	return look_at(path, suffix, &status) ? (struct file_id){status.st_dev, status.st_ino}
					      : (struct file_id){0};
}

int64_t store_file_size(const char *path)
{
	int64_t size = store_file_beside(path, ""), log = store_file_beside(path, "-wal");

	return (size > 0 ? size : 0) + (log > 0 ? log : 0);
}

static struct sqlite_file *of(struct tx *tx)
{
	return (struct sqlite_file *)tx;
}

/* "disk I/O error" alone does not tell that the disk is full. */
static bool fail(struct sqlite_file *file, const char *doing, struct error *error)
{
	int code = sqlite3_errcode(file->database) & 0xff;
	int reason = code == SQLITE_IOERR ? sqlite3_system_errno(file->database) : 0;

	file->stuck = code != SQLITE_CONSTRAINT && code != SQLITE_MISMATCH &&
		      code != SQLITE_TOOBIG && code != SQLITE_ERROR;
	return error_set(error, ERROR_STATE, "%s: cannot %s: %s%s%s", file->tx.label, doing,
		sqlite3_errmsg(file->database), reason ? ": " : "", reason ? strerror(reason) : "");
}

static sqlite3_stmt *native(struct sql_statement *statement)
{
	return (sqlite3_stmt *)statement;
}

static struct sql_statement *prepare(struct tx *tx, const char *text)
{
	sqlite3_stmt *statement = NULL;

	(void)sqlite3_prepare_v3(
		of(tx)->database, text, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL);
	return (struct sql_statement *)statement;
}

static void finish(struct sql_statement *statement)
{
	sqlite3_finalize(native(statement));
}

static void reset(struct sql_statement *statement)
{
	if (!statement)
		return;
	sqlite3_reset(native(statement));
	sqlite3_clear_bindings(native(statement));
}

static void bind_value(struct sql_statement *statement, int parameter, const struct value *value)
{
	sqlite3_stmt *into = native(statement);

	switch (value->type) {
	case SQL_NULL: sqlite3_bind_null(into, parameter); break;
	case SQL_INTEGER: sqlite3_bind_int64(into, parameter, value->integer); break;
	case SQL_NUMBER: sqlite3_bind_double(into, parameter, value->number); break;
	case SQL_TEXT: sqlite3_bind_text(into, parameter, value->text, -1, SQLITE_STATIC); break;
	case SQL_BYTES:
		sqlite3_bind_blob(into, parameter, value->bytes, (int)value->length, SQLITE_STATIC);
	}
}

static enum sql_step step(struct sql_statement *statement)
{
	switch (sqlite3_step(native(statement))) {
	case SQLITE_ROW: return SQL_ROW;
	case SQLITE_DONE: return SQL_DONE;
	default: return SQL_FAILED;
	}
}

static struct value column_of(struct sql_statement *statement, int column)
{
	sqlite3_stmt *row = native(statement);
	struct value value = {.type = SQL_NULL};

	switch (sqlite3_column_type(row, column)) {
	case SQLITE_INTEGER:
		value.type = SQL_INTEGER;
		value.integer = sqlite3_column_int64(row, column);
		break;
	case SQLITE_FLOAT:
		value.type = SQL_NUMBER;
		value.number = sqlite3_column_double(row, column);
		break;
	case SQLITE_TEXT:
		value.type = SQL_TEXT;
		value.text = (const char *)sqlite3_column_text(row, column);
		break;
	case SQLITE_BLOB:
		value.type = SQL_BYTES;
		value.bytes = sqlite3_column_blob(row, column);
		value.length = (size_t)sqlite3_column_bytes(row, column);
	}
	return value;
}

static int64_t changed(struct tx *tx)
{
	return sqlite3_changes64(of(tx)->database);
}

static bool fail_in(struct tx *tx, const char *doing)
{
	return fail(of(tx), doing, tx->error);
}

static bool execute(
	struct sqlite_file *file, const char *sql, const char *doing, struct error *error)
{
	if (sqlite3_exec(file->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		return fail(file, doing, error);
	return true;
}

bool store_file_ask(sqlite3 *database, const char *sql, int64_t *number, char *text, size_t size)
{
	sqlite3_stmt *statement;
	bool answered;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
		return false;
	answered = sqlite3_step(statement) == SQLITE_ROW;
	if (answered && text) {
		const char *answer = (const char *)sqlite3_column_text(statement, 0);

		snprintf(text, size, "%s", answer ? answer : "");
	} else if (answered) {
		*number = sqlite3_column_int64(statement, 0);
	}
	sqlite3_finalize(statement);
	return answered;
}

static bool ask_number(
	struct sqlite_file *file, const char *sql, int64_t *number, struct error *error)
{
	return store_file_ask(file->database, sql, number, NULL, 0) || fail(file, "read it", error);
}

static bool damaged(struct sqlite_file *file, const char *what, struct error *error)
{
	return error_set(error, ERROR_STATE,
		"state file %s is damaged (%s) and was not changed: restore a backup, or move the"
		" file away to start afresh",
		file->path, what);
}

static bool check_schema(struct sqlite_file *file, struct error *error)
{
	int64_t tables;
	int code;

	if (store_file_ask(file->database, "SELECT count(*) FROM sqlite_schema", &tables, NULL, 0))
		return true;
	code = sqlite3_errcode(file->database);
	return code == SQLITE_NOTADB || code == SQLITE_CORRUPT
		       ? damaged(file, sqlite3_errmsg(file->database), error)
		       : fail(file, "open it", error);
}

/* The quick check skips comparing indices with their tables, which takes seconds for a large
 * file. */
static bool check_pages(struct sqlite_file *file, struct error *error)
{
	bool small = store_file_size(file->path) <= CHECKED_WHOLE;
	const char *question = small ? "PRAGMA integrity_check(1)" : "PRAGMA quick_check(1)";
	char answer[256] = "";

	if (!check_schema(file, error))
		return false;
	if (!store_file_ask(file->database, question, NULL, answer, sizeof answer))
		return damaged(file, sqlite3_errmsg(file->database), error);
	return strcmp(answer, "ok") == 0 || damaged(file, answer, error);
}

/* A table, an index or a trigger may have been dropped by hand. */
static bool check_parts(struct sqlite_file *file, struct error *error)
{
	struct arena *arena = arena_new();
	const struct strings problems = store_file_compare(file->database, arena);
	bool good = problems.count == 0 || damaged(file, problems.items[0], error);

	arena_free(arena);
	return good;
}

/* An empty file is new: version 0. Another version is refused. */
static bool check_version(struct sqlite_file *file, int64_t *version, struct error *error)
{
	int64_t application, tables;

	if (!ask_number(file, "PRAGMA user_version", version, error) ||
		!ask_number(file, "PRAGMA application_id", &application, error) ||
		!ask_number(file, "SELECT count(*) FROM sqlite_schema", &tables, error))
		return false;
	if (application != STORE_APPLICATION && (*version != 0 || tables != 0))
		return error_set(error, ERROR_STATE,
			"state file %s is the database of another program", file->path);
	return (*version == 0 && tables == 0) ||
	       schema_check(file->tx.label, *version, &sqlite_words, error);
}

/* Writes to an unlinked file are lost, those to an unlinked log unless the agent shuts down
 * cleanly. An unlinked lock excludes no process. */
static bool is_in_place(struct sqlite_file *file, struct error *error)
{
	for (size_t i = 0; i < FILES; i++) {
		struct file_id now = id_of(file->path, suffixes[i]), was = file->ids[i];

		if (was.inode == 0 || (now.device == was.device && now.inode == was.inode))
			continue;
		file->stuck = true;
		return error_set(error, ERROR_STATE,
			"state file %s%s was removed or replaced while in use: put it back, or"
			" restart the agent%s",
			file->path, suffixes[i],
			i == FILE_LOCK ? "; meanwhile another may use the state" : "");
	}
	return true;
}

/* IMMEDIATE: a transaction that starts as a reader and writes later may fail at once instead of
 * waiting for another writer. */
static void begin(struct tx *tx, bool writes)
{
	struct sqlite_file *file = of(tx);

	file->stuck = false;
	tx->failed = (writes && !is_in_place(file, tx->error)) ||
		     !execute(file, writes ? "BEGIN IMMEDIATE" : "BEGIN", "begin a transaction",
			     tx->error);
}

/* Data read while another process took the file over may be wrong. */
static void commit(struct tx *tx)
{
	struct sqlite_file *file = of(tx);

	if (store_reader_overtaken(file->path, file->settled))
		tx_fail(tx, ERROR_STATE, "%s: in use by an agent that started meanwhile",
			tx->label);
	else
		tx->failed = !execute(file, "COMMIT", "write to it", tx->error);
}

static void roll_back(struct tx *tx)
{
	sqlite3 *database = of(tx)->database;

	if (database && !sqlite3_get_autocommit(database))
		(void)sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
}

static bool make_tables(struct sqlite_file *file, struct error *error)
{
	char *text = schema_text_new(&sqlite_words);
	char *script = memory_printf("%sPRAGMA application_id = %d; PRAGMA user_version = %d", text,
		STORE_APPLICATION, (int)schema_version(&sqlite_words));
	struct tx *tx = &file->tx;

	tx->error = error;
	begin(tx, true);
	tx->failed = tx->failed || !execute(file, script, "make its tables", error);
	if (!tx->failed)
		commit(tx);
	if (tx->failed)
		roll_back(tx);
	free(script);
	free(text);
	return !tx->failed;
}

/* matches(pattern, text): a shell pattern, or the same text, as a test may be called a[1]. */
static void matches(sqlite3_context *context, int count, sqlite3_value **values)
{
	const char *pattern = (const char *)sqlite3_value_text(values[0]);
	const char *text = (const char *)sqlite3_value_text(values[1]);

	(void)count;
	sqlite3_result_int(context,
		pattern && text && (strcmp(pattern, text) == 0 || fnmatch(pattern, text, 0) == 0));
}

static bool set_up(struct sqlite_file *file, struct error *error)
{
	if (sqlite3_create_function(file->database, "matches", 2,
		    SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, matches, NULL, NULL) != SQLITE_OK)
		return fail(file, "use it", error);
	return execute(file, "PRAGMA foreign_keys = ON", "use it", error);
}

static bool open_database(struct sqlite_file *file, struct error *error)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int64_t version;

	if (!store_claim(file->path, error))
		return false;
	file->untouched = store_file_beside(file->path, "-wal") > 0;
	if (sqlite3_open_v2(file->path, &file->database, flags, NULL) != SQLITE_OK)
		return fail(file, "open it", error);
	file->ids[FILE_MAIN] = id_of(file->path, suffixes[FILE_MAIN]);
	sqlite3_busy_timeout(file->database, BUSY_MS);
	if (sqlite3_db_readonly(file->database, "main"))
		return error_set(error, ERROR_STATE, "state file %s is not writable", file->path);
	/* Decides before any write whether to refuse the file: it must have the tables of this
	 * build. */
	if (!check_pages(file, error) || !check_version(file, &version, error) ||
		!execute(file, settings, "use it", error) ||
		(version == 0 && !make_tables(file, error)) || !check_parts(file, error) ||
		!set_up(file, error))
		return false;
	file->untouched = false;
	if (!execute(file, "PRAGMA journal_mode = WAL; SELECT count(*) FROM counts", "write it",
		    error))
		return false;
	store_tighten(file->path);
	file->ids[FILE_LOG] = id_of(file->path, suffixes[FILE_LOG]);
	return true;
}

/* Takes over the path; NULL: there is none. */
static struct sqlite_file *file_new(char *path)
{
	struct sqlite_file *file = memory_new(1, sizeof *file);

	*file = (struct sqlite_file){.path = path, .lock = -1};
	file->label = path ? memory_printf("state file %s", path) : NULL;
	file->tx = (struct tx){.backend = &sqlite_backend, .path = path, .label = file->label};
	return file;
}

static void close_database(struct sqlite_file *file)
{
	statements_free(&file->tx);
	if (file->untouched) /* closing must not checkpoint the log into the file */
		(void)sqlite3_db_config(
			file->database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)NULL);
	sqlite3_close(file->database);
	file->database = NULL;
}

static void close_file(struct tx *tx)
{
	struct sqlite_file *file = of(tx);

	close_database(file);
	if (file->lock >= 0)
		close(file->lock);
	free(file->label);
	free(file->path);
	free(file);
}

static struct tx *open_own(const char *path, struct error *error)
{
	struct sqlite_file *file = file_new(store_path_new(path, error));
	bool is_new = file->path && store_file_beside(file->path, "") < 0;

	if (file->path) {
		/* The agent never leaves an empty file behind, so this one has lost its content. */
		if (store_file_beside(file->path, "") == 0 &&
			(store_file_beside(file->path, ".lock") >= 0 ||
				store_file_beside(file->path, "-wal") >= 0))
			log_event(LEVEL_WARN, "state file was emptied: starting with no state",
				LOG_TEXT("file", file->path));
		file->lock = store_lock(file->path, error);
		file->ids[FILE_LOCK] = id_of(file->path, suffixes[FILE_LOCK]);
	}
	if (file->lock >= 0 && open_database(file, error))
		return &file->tx;
	if (is_new && file->lock >= 0 && store_file_beside(file->path, "") == 0)
		(void)unlink(file->path); /* the disk is full */
	close_file(&file->tx);
	return NULL;
}

static bool check_reader(struct sqlite_file *file, struct error *error)
{
	sqlite3 *from = file->database;
	int64_t version;
	bool done = true;

	if (!check_schema(file, error) || !check_version(file, &version, error))
		return false;
	if (version == 0)
		return error_set(error, ERROR_STATE, "state file %s has no tables yet", file->path);
	if (file->copied) {
		done = sqlite3_open_v2("", &file->database,
			       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			       NULL) == SQLITE_OK &&
		       store_file_copy(from, file->database);
		sqlite3_close(from);
		done = (done || fail(file, "copy it", error)) && check_pages(file, error) &&
		       check_parts(file, error);
	}
	return done && execute(file, "PRAGMA temp_store = MEMORY", "read it", error) &&
	       set_up(file, error);
}

/* Begins the handle's read transaction; `settled` is as of store_reader_connect. */
static bool connect_reader(struct sqlite_file *file, struct error *error)
{
	bool done;

	do {
		close_database(file);
		file->database = store_reader_connect(file->path, &file->settled, error);
		done = file->database && check_reader(file, error);
	} while (!done && store_reader_overtaken(file->path, file->settled));
	return done;
}

static struct tx *open_file(const char *path, enum store_use use, struct error *error)
{
	struct sqlite_file *file;

	if (use == STORE_OWN)
		return open_own(path, error);
	file = file_new(memory_strdup(path));
	file->copied = use == STORE_TRY;
	if (connect_reader(file, error))
		return &file->tx;
	close_file(&file->tx);
	return NULL;
}

static bool is_stuck(const struct tx *tx)
{
	return ((const struct sqlite_file *)tx)->stuck;
}

static bool again(struct tx *tx, int tries)
{
	struct sqlite_file *file = of(tx);

	return tries < OVERTAKEN_MOST && store_reader_overtaken(file->path, file->settled) &&
	       connect_reader(file, tx->error);
}

static bool enter(struct tx *tx, struct store_call *call)
{
	return call->work->lane < STORE_TURNS ||
	       tx_fail(tx, ERROR_STATE, "a state file serves a single agent");
}

static int64_t size(const struct tx *tx)
{
	return store_file_size(tx->path);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static bool hold(const char *path, int *lock, struct error *error)
{
	char *real;

	*lock = -1;
	if (!is_there(path))
		return true;
	real = store_path_new(path, error);
	*lock = real ? store_lock(real, error) : -1;
	free(real);
	return *lock >= 0;
}

const struct store_backend sqlite_backend = {
	.open = open_file,
	.close = close_file,
	.begin = begin,
	.commit = commit,
	.rollback = roll_back,
	.count = sql_count,
	.enter = enter,
	.words = &sqlite_words,
	.prepare = prepare,
	.finish = finish,
	.reset = reset,
	.bind = bind_value,
	.step = step,
	.column = column_of,
	.changed = changed,
	.fail = fail_in,
	.is_stuck = is_stuck,
	.again = again,
	.check = store_file_check,
	.backup = store_file_backup,
	.hold = hold,
	.is_there = is_there,
	.size = size,
};
