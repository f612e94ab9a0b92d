/*
 * Resolves the path of the state file and locks it for one agent.
 *
 * The lock is a flock on a separate file next to the database, so that a second agent is refused,
 * with the first one's process id, while tools can still read the database. SQLite's own locks only
 * last for a transaction. Symbolic links are resolved first, so that two names of a file share a
 * lock.
 */
#ifndef AGENT_STORE_SQLITE_LOCK_H
#define AGENT_STORE_SQLITE_LOCK_H

#include "agent/base/error.h"

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

/* Whether somebody has the lock; true if this user may not look. */
bool store_is_locked(const char *path);

/*
 * Creates an empty file if there is none, for owner and group only. False and an ERROR_STATE if it
 * is not a regular file, has several hard links (each name would have its own lock), or is too
 * small for a database but not empty.
 */
bool store_claim(const char *path, struct error *error) MUST_USE;

/* The size check of store_claim, for reading. */
bool store_check_size(const char *path, struct error *error) MUST_USE;

/* Restricts the permissions of the file, and of SQLite's files next to it, to 0640. */
void store_tighten(const char *path);

#endif
