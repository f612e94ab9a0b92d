/*
 * What keeps the state, behind store.c and tools.h: nothing else in the program knows SQL. The
 * requests of store.h are all that is asked of it; each is answered within a transaction, which is
 * on the disk when its commit has gone well. One thread at a time uses what was opened.
 */
#ifndef AGENT_STORE_BACKEND_H
#define AGENT_STORE_BACKEND_H

#include "agent/store/store.h"

struct store_file; /* what a backend has opened */

struct store_backend {
	/* Opens or creates it for this process alone, and brings it up to date. NULL and an
	 * ERROR_STATE if somebody else has it, or if it is damaged, foreign, too new or not
	 * writable. */
	struct store_file *(*open)(const char *path, struct error *error);
	/* The same of a copy that is lost when it is closed: what is done to it leaves the state as
	 * it is, and may be done while an agent has that. */
	struct store_file *(*copy)(const char *path, struct error *error);
	void (*close)(struct store_file *file);

	/* After a failed commit nothing was written, and there is still something to roll back. */
	bool (*begin)(struct store_file *file, bool writes, struct error *error);
	bool (*perform)(
		struct store_file *file, struct store_request *request, struct error *error);
	bool (*commit)(struct store_file *file, struct error *error);
	void (*rollback)(struct store_file *file);

	/* Whether the last failure would be that of any request: it is locked, the disk is full. */
	bool (*is_stuck)(const struct store_file *file);

	/* Performs a request that only reads, beside whoever has the state open. For any thread. */
	bool (*read)(const char *path, struct store_request *request, struct error *error);

	const char *(*path)(const struct store_file *file);
	int64_t (*size)(const char *path); /* bytes on the disk */
};

extern const struct store_backend sqlite_backend;

#endif
