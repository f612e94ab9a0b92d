/*
 * Which state file is meant, that it is a file of its own, and the lock that keeps it for one
 * agent.
 *
 * The lock is a flock on a file beside the database, so that a second agent is refused and named
 * while tools may still read the database. SQLite's own locks would not do: they come and go with
 * transactions. Links are followed first, so that two names of one file are one lock.
 */
#ifndef AGENT_STORE_SQLITE_LOCK_H
#define AGENT_STORE_SQLITE_LOCK_H

#include "agent/core/error.h"

/*
 * The file's path without links; the caller frees it. The file itself need not exist; the folder it
 * lies in is created, if its parent is there. NULL and an ERROR_STATE for a path that leads
 * nowhere.
 */
char *store_path_new(const char *path, struct error *error);

/*
 * Takes the lock: a descriptor that holds it until it is closed. -1 and an ERROR_STATE if another
 * process has it (which is named), if it is a link, or if it cannot be created.
 */
int store_lock(const char *path, struct error *error);

/*
 * Makes an empty file if there is none, for its owner and group only. False and an ERROR_STATE for
 * what is no regular file, has several names (each of which would have a lock of its own), or is
 * too small for a database and yet not empty.
 */
bool store_claim(const char *path, struct error *error) MUST_USE;

/* As store_claim for a file that only has to be looked at: just its size. */
bool store_check_size(const char *path, struct error *error) MUST_USE;

/* Takes from the file, and from SQLite's files beside it, all rights that go beyond 0640. */
void store_tighten(const char *path);

#endif
