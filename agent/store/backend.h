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
	/* Opens or creates the file, locks it for this process and migrates it. NULL and an
	 * ERROR_STATE if it is locked, damaged, foreign, too new or not writable. */
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

	/* Whether the last failure would hit any call: the file is locked, the disk is full. */
	bool (*is_stuck)(const struct store_file *file);

	/* Performs a read-only call, also while another process has the state open. For any
	 * thread. */
	bool (*read)(const char *path, struct store_call *call, struct error *error);

	/* store_check and store_backup; a backend without them fails with ERROR_STATE. */
	bool (*check)(const char *path, struct arena *arena, struct store_report *report,
		struct error *error);
	bool (*backup)(const char *path, const char *target, bool force, struct error *error);

	bool (*is_held)(const char *path); /* see store_is_held */
	const char *(*path)(const struct store_file *file);
	int64_t (*size)(const char *path); /* bytes on the disk */
};

extern const struct store_backend sqlite_backend;

#endif
