/*
 * The interface of a storage backend, used by store.c; SQL stays behind it. A backend
 * performs the calls of store.h within transactions, which are durable once their commit
 * succeeds. An open file is used by one thread at a time.
 */
#ifndef AGENT_STORE_BACKEND_H
#define AGENT_STORE_BACKEND_H

#include "agent/store/store.h"

struct store_file; /* the backend's handle */

struct store_backend {
	/* Opens or creates the file, and locks it for this process. NULL and an
	 * ERROR_STATE if it is locked, damaged, foreign, of another version or not writable. */
	struct store_file *(*open)(const char *path, struct error *error);
	/* Opens a temporary copy, deleted on close: changes to it leave the state as it is. Works
	 * while an agent has the state open. */
	struct store_file *(*copy)(const char *path, struct error *error);
	void (*close)(struct store_file *file);

	/* After a failed commit nothing was written; the caller has to roll back. */
	bool (*begin)(struct store_file *file, bool writes, struct error *error);
	bool (*perform)(struct store_file *file, struct store_call *call, struct error *error);
	bool (*commit)(struct store_file *file, struct error *error);
	void (*rollback)(struct store_file *file);

	/* Performs a call of a fleet (STORE_TURN and those after it), in a transaction of its own:
	 * STORE_TURN on a thread and a connection of its own, the others on another. NULL: the
	 * state is for one agent. */
	bool (*turn)(struct store_file *file, struct store_call *call, struct error *error);

	/* Whether the last failure would hit any call: the file is locked, the disk is full. */
	bool (*is_stuck)(const struct store_file *file);
	/* After rollback: whether what has failed so many times is to be done again. May wait a
	 * little. NULL: never. */
	bool (*again)(struct store_file *file, int tries);

	/* Performs a read-only call, also while another process has the state open. For any
	 * thread. */
	bool (*read)(const char *path, struct store_call *call, struct error *error);

	/* The same beside the thread that has the file open, for one thread. NULL: by `read`. */
	bool (*list)(struct store_file *file, struct store_call *call, struct error *error);

	/* store_check and store_backup; a backend without them fails with ERROR_STATE. */
	bool (*check)(const char *path, struct arena *arena, struct store_report *report,
		struct error *error);
	bool (*backup)(const char *path, const char *target, bool force, struct error *error);

	/* store_copy: keeps agents off the state until the descriptor is closed (-1: there is no
	 * such file). False and an ERROR_STATE if one has it. NULL: `reserve` does it. */
	bool (*hold)(const char *path, int *lock, struct error *error);
	/* The same until the end of the transaction; NULL: nothing is to be done. */
	bool (*reserve)(struct store_file *file, struct error *error);
	/* store_copy, within transactions: fills the empty `file`, and says whether both are the
	 * same. `from` may have another backend. */
	bool (*take_over)(struct store_file *file, struct store_file *from,
		struct store_copied *copied, struct error *error);
	bool (*compare)(struct store_file *file, struct store_file *from, struct error *error);

	bool (*is_held)(const char *path);  /* see store_is_held */
	bool (*is_there)(const char *path); /* see store_is_there */
	const char *(*path)(const struct store_file *file);
	int64_t (*size)(const char *path); /* bytes on the disk */
	/* For any thread; NULL: the state is a file. */
	void (*traffic)(const struct store_file *file, struct store_traffic *traffic);
	/* The same of what is open, for any thread: does not wait. NULL: by `size`. */
	int64_t (*size_now)(const struct store_file *file);
};

extern const struct store_backend sqlite_backend, postgresql_backend;

#endif
