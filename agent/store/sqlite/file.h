/*
 * The store's file: lock, schema and statements. Used by one thread at a time; see store.h for who
 * that is.
 */
#ifndef AGENT_STORE_SQLITE_FILE_H
#define AGENT_STORE_SQLITE_FILE_H

#include "agent/store/sqlite/schema.h"
#include "agent/store/store.h"

struct store_file;
struct sqlite3;

/* Opens or creates the file. NULL and an ERROR_STATE if it is locked, damaged, foreign, too new or
 * not writable. */
struct store_file *store_file_open(const char *path, struct error *error);
void store_file_close(struct store_file *file);

/* The file seen through a connection that only reads, which it takes over; for reader.c. */
struct store_file *store_file_of(const char *path, struct sqlite3 *database, struct error *error);

/*
 * A copy as of one moment, in a temporary file without a name, brought up to date: what is done to
 * it leaves the file at `path` as it is, and may be done while an agent has that one. NULL and an
 * ERROR_STATE as for store_file_open, or if there is no room.
 */
struct store_file *store_file_copy(const char *path, struct error *error);

/* One transaction. After a failed commit nothing was written. */
bool store_file_begin(struct store_file *file, bool writes, struct error *error) MUST_USE;
bool store_file_commit(struct store_file *file, struct error *error) MUST_USE;
void store_file_rollback(struct store_file *file);

/* Whether the last failure was the file's (it is locked, the disk is full), not the request's. */
bool store_file_stuck(const struct store_file *file);

/* Asks for a single number or, with `text`, for a single text. False: SQLite has an error. */
bool store_file_ask(
	struct sqlite3 *database, const char *sql, int64_t *number, char *text, size_t size);

/* The size of the file beside the state file; -1 if there is none. */
int64_t store_file_beside(const char *path, const char *suffix);

/* Bytes on the disk, the log's included. */
int64_t store_file_size(const char *path);

const char *store_file_path(const struct store_file *file);

/* Does what the request asks, inside a transaction. */
bool store_file_perform(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

struct sqlite3_stmt;

/* The id of the row that was inserted last. */
int64_t store_file_inserted(struct store_file *file);

/* How many rows the last statement has changed. */
int64_t store_file_changed(struct store_file *file);

/* A prepared statement, reset and without bindings. */
struct sqlite3_stmt *store_file_statement(struct store_file *file, enum statement statement);

/* Fills the error with the path and SQLite's words. Always false. */
bool store_file_fail(struct store_file *file, const char *doing, struct error *error);

#endif
