/*
 * Care of the state file: checks and backups, both beside a running agent if there is one.
 */
#ifndef AGENT_STORE_TOOLS_H
#define AGENT_STORE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/field.h"
#include "agent/store/store.h"

/* What is in the file, and what is wrong with it. */
struct store_report {
	int64_t version, size; /* size: bytes */
	int64_t changes, deliveries, queued, series;
	struct strings problems; /* at most 100; none: the file is whole */
};

/* Looks at everything in the file. ERROR_STATE if it is not there or not ours. */
bool store_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;

/* Performs a request that writes, on a file that no agent has; `dry_run`: on a copy that is lost,
 * whoever has the file. */
bool store_perform(const char *path, struct store_request *request, bool dry_run,
	struct error *error) MUST_USE;

/* Bytes on the disk, the log's included. */
int64_t store_size_of(const char *path);

/*
 * Writes a copy, as of one moment, to `target`: whole, checked and on the disk, or not at all. A
 * file that is there is replaced with `force` only.
 */
bool store_backup(const char *path, const char *target, bool force, struct error *error) MUST_USE;

#endif
