/*
 * The state file: lock, schema and statements. Used by one thread at a time, see store.h.
 */
#ifndef AGENT_STORE_SQLITE_FILE_H
#define AGENT_STORE_SQLITE_FILE_H

#include "agent/store/store.h"

struct sqlite3;

/* Runs a query for one number or, with `text`, one text. False on an SQLite error. */
bool store_file_ask(
	struct sqlite3 *database, const char *sql, int64_t *number, char *text, size_t size);

/* What tables, indices and triggers it lacks, or has not as this build makes them, for people. */
struct strings store_file_compare(struct sqlite3 *database, struct arena *arena);

/* The size of the file with this suffix next to the state file; -1 if there is none. */
int64_t store_file_beside(const char *path, const char *suffix);

/* Bytes on the disk, including the log. */
int64_t store_file_size(const char *path);

/* Implement store_check and store_backup. */
bool store_file_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;
/* The same of a copy; errors name what it is a copy of. */
bool store_file_check_copy(const char *path, const char *shown, struct arena *arena,
	struct store_report *report, struct error *error) MUST_USE;
bool store_file_backup(
	const char *path, const char *target, bool force, struct error *error) MUST_USE;

#endif
