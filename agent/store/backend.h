/*
 * The interface of a storage backend, used by store.c; SQL stays behind it. A handle begins with a
 * struct tx, has at most one transaction at a time, and is used by one thread at a time.
 */
#ifndef AGENT_STORE_BACKEND_H
#define AGENT_STORE_BACKEND_H

#include "agent/store/tx.h"

struct store_backend {
	/* NULL and an ERROR_STATE if it is locked, damaged, foreign, of another version or not
	 * writable. */
	struct tx *(*open)(const char *path, enum store_use use, struct error *error);
	void (*close)(struct tx *tx);

	/* A failure is tx->failed. After commit without one, what was written is durable; after one
	 * nothing was written, and the caller has to roll back. */
	void (*begin)(struct tx *tx, bool writes);
	void (*commit)(struct tx *tx);
	void (*rollback)(struct tx *tx);
	/* Before a call is run, in the transaction: false if it is not to be run, as that was
	 * committed already, or with a failure. NULL: always true. */
	bool (*enter)(struct tx *tx, struct store_call *call);

	/* Whether the last failure would hit any call: the file is locked, the disk is full. */
	bool (*is_stuck)(const struct tx *tx);
	/* After rollback: whether what has failed so many times is to be done again. May wait a
	 * little. */
	bool (*again)(struct tx *tx, int tries);

	/* Several agents can work on the state, for which each thread has a handle of its own. The
	 * calls of a fleet are in no transaction: each of their statements is one. */
	bool is_shared;

	/* store_check and store_backup; a backend without them fails with ERROR_STATE. */
	bool (*check)(const char *path, struct arena *arena, struct store_report *report,
		struct error *error);
	bool (*backup)(const char *path, const char *target, bool force, struct error *error);

	/* store_copy: keeps agents off the state until the descriptor is closed (-1: there is no
	 * such file). False and an ERROR_STATE if one has it. NULL: `reserve` does it. */
	bool (*hold)(const char *path, int *lock, struct error *error);
	/* The same until the end of the transaction; NULL: nothing is to be done. */
	void (*reserve)(struct tx *tx);

	bool (*is_held)(const char *path);  /* see store_is_held */
	bool (*is_there)(const char *path); /* see store_is_there */
	int64_t (*size)(const char *path);  /* bytes on the disk */
	/* For any thread; NULL: the state is a file. */
	void (*traffic)(const struct tx *tx, struct store_traffic *traffic);
	/* The same of what is open, for any thread: does not wait. NULL: by `size`. */
	int64_t (*size_now)(const struct tx *tx);
};

extern const struct store_backend sqlite_backend, postgresql_backend;

/* For store_copy, whatever the two backends are. Writes all rows of `from`, and the last id of each
 * table whose ids are never used again, into the state `to`, which fails if that is not empty. */
void sql_copy(struct tx *to, struct tx *from, struct store_copied *copied);

/* `to` fails, and names what is not equal, if they have not the same rows and last ids. */
void sql_compare(struct tx *to, struct tx *from);

#endif
