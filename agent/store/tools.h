/*
 * Maintenance of the state file: checks and backups, also while an agent has it open.
 */
#ifndef AGENT_STORE_TOOLS_H
#define AGENT_STORE_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/field.h"
#include "agent/store/store.h"

/* Contents and problems of the file. */
struct store_report {
	int64_t version, size; /* size: bytes */
	int64_t changes, deliveries, queued, series;
	struct strings problems; /* at most 100; none: the file is intact */
};

/* Checks the whole file. ERROR_STATE if it is missing or not a state file. */
bool store_check(const char *path, struct arena *arena, struct store_report *report,
	struct error *error) MUST_USE;

/* Performs a writing call on a file that no agent has open; with `dry_run` on a temporary copy,
 * even while one has. */
bool store_perform(
	const char *path, struct store_call *call, bool dry_run, struct error *error) MUST_USE;

/* Bytes on the disk, including the log. */
int64_t store_size_of(const char *path);

/*
 * Writes a consistent copy to `target`: complete, checked and synced, or not at all. Replaces an
 * existing file only with `force`.
 */
bool store_backup(const char *path, const char *target, bool force, struct error *error) MUST_USE;

#endif
