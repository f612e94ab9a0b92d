/*
 * Calls that return rows; used by work.c.
 */
#ifndef AGENT_STORE_SQLITE_READ_H
#define AGENT_STORE_SQLITE_READ_H

#include "agent/store/sqlite/file.h"

bool store_restore(
	struct store_file *file, struct store_restore *call, struct error *error) MUST_USE;
bool store_known(struct store_file *file, struct store_known *call, struct error *error) MUST_USE;
bool store_checkpoints(
	struct store_file *file, struct store_checkpoints *call, struct error *error) MUST_USE;
bool store_list(struct store_file *file, struct store_list *call, struct error *error) MUST_USE;

/* Loads the delivery's changes into its `records`. */
bool store_members(struct store_file *file, struct arena *arena, struct delivery *delivery,
	struct error *error) MUST_USE;

bool store_reminders(
	struct store_file *file, struct store_reminders *call, struct error *error) MUST_USE;
bool store_pending(
	struct store_file *file, struct store_pending *call, struct error *error) MUST_USE;

/* Counts what is to be announced. */
bool store_due(struct store_file *file, struct store_due *due, struct error *error) MUST_USE;

bool store_counts(
	struct store_file *file, struct store_counts *counts, struct error *error) MUST_USE;

#endif
