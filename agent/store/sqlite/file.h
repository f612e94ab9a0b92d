/*
 * The state file: lock, readers, schema and statements. Used by one thread at a time, see store.h.
 */
#ifndef AGENT_STORE_SQLITE_FILE_H
#define AGENT_STORE_SQLITE_FILE_H

#include "agent/store/sql/schema.h"

struct sqlite3;

/* Runs a query for one number or, with `text`, one text. False on an SQLite error. */
bool store_file_ask(
	struct sqlite3 *database, const char *sql, int64_t *number, char *text, size_t size);

/* Missing or differing tables, indices and triggers, as text for users. */
struct strings store_file_compare(struct sqlite3 *database, struct arena *arena);

/* The size of the file with this suffix next to the state file; -1 if there is none. */
int64_t store_file_beside(const char *path, const char *suffix);

/* Bytes on the disk, including the log. */
int64_t store_file_size(const char *path);

/* Implement store_check and store_backup. */
bool store_file_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;
/* The same for a copy; errors name its original. */
bool store_file_check_copy(const char *path, const char *shown, struct arena *arena,
	struct store_report *report, struct error *error) MUST_USE;
bool store_file_backup(const char *path, const char *target, bool force, int64_t *size,
	struct error *error) MUST_USE;

/* Copies all pages in one step, so that they are from one moment; concurrent writers continue in
 * their log. */
bool store_file_copy(struct sqlite3 *from, struct sqlite3 *to) MUST_USE;

/*
 * Returns a read-only connection, to be closed with sqlite3_close. Sets `settled` if no agent has
 * the file open: no agent may open it while the connection is in use, see store_reader_overtaken.
 */
struct sqlite3 *store_reader_connect(const char *path, bool *settled, struct error *error);

/* True if an agent has opened the file since: results may be wrong and have to be read again. */
bool store_reader_overtaken(const char *path, bool settled);

/* The folder part of a path, "." without a slash; the caller frees it. */
char *store_folder_new(const char *path);

/*
 * The file's path without links; the caller frees it. The file need not exist; its folder is
 * created if the parent exists. NULL and an ERROR_STATE for a dangling link or a missing folder.
 */
char *store_path_new(const char *path, struct error *error);

/*
 * Takes the lock and returns the descriptor that holds it until closed. -1 and an ERROR_STATE if
 * another process (named in the error) has it, if it is a symbolic link, or if it cannot be
 * created.
 */
int store_lock(const char *path, struct error *error);

/*
 * Creates an empty file if there is none, for owner and group only. False and an ERROR_STATE if it
 * is not a regular file, has several hard links (each name would have its own lock), or is too
 * small for a database but not empty.
 */
bool store_claim(const char *path, struct error *error) MUST_USE;

/* The check of the size of store_claim. */
bool store_check_size(const char *path, int64_t size, struct error *error) MUST_USE;

/* Restricts the permissions of the file, and of SQLite's files next to it, to 0640. */
void store_tighten(const char *path);

enum { STORE_APPLICATION = 0x48554e54 };

/* SQLite's words for statements and tables. The version of the tables is its user_version. */
extern const struct sql_words sqlite_words;

#endif
