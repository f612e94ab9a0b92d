/*
 * The state file: lock, schema and statements. Used by one thread at a time, see store.h.
 */
#ifndef AGENT_STORE_SQLITE_FILE_H
#define AGENT_STORE_SQLITE_FILE_H

#include "agent/store/store.h"

struct store_file;
struct sqlite3;

/* Opens or creates the file. NULL and an ERROR_STATE if it is locked, damaged, foreign, of another
 * version or not writable. */
struct store_file *store_file_open(const char *path, struct error *error);
void store_file_close(struct store_file *file);

/* Wraps a read-only connection, which it takes over; for reader.c. */
struct store_file *store_file_of(const char *path, struct sqlite3 *database, struct error *error);

/*
 * A consistent copy in an unnamed temporary file. Changes to it
 * leave the file at `path` as it is; an agent may have that open. NULL and an ERROR_STATE as for
 * store_file_open, or if the disk is full.
 */
struct store_file *store_file_copy(const char *path, struct error *error);

/* A transaction. After a failed commit nothing was written. */
bool store_file_begin(struct store_file *file, bool writes, struct error *error) MUST_USE;
bool store_file_commit(struct store_file *file, struct error *error) MUST_USE;
void store_file_rollback(struct store_file *file);

/* Whether the last failure was due to the file (locked, disk full), not to the call. */
bool store_file_stuck(const struct store_file *file);

/* Runs a query for one number or, with `text`, one text. False on an SQLite error. */
bool store_file_ask(
	struct sqlite3 *database, const char *sql, int64_t *number, char *text, size_t size);

/* The size of the file with this suffix next to the state file; -1 if there is none. */
int64_t store_file_beside(const char *path, const char *suffix);

/* Bytes on the disk, including the log. */
int64_t store_file_size(const char *path);

const char *store_file_path(const struct store_file *file);

/* Implement store_check and store_backup. */
bool store_file_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;
bool store_file_backup(
	const char *path, const char *target, bool force, struct error *error) MUST_USE;

#endif
