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

/* Adds the sent messages about the change that have a receipt to the retractions, up to
 * STORE_RETRACTIONS. */
bool store_messages(struct store_file *file, struct arena *arena, int64_t change,
	struct delivery_rows *retractions, struct error *error) MUST_USE;

/* Adds the sent delivery to the retractions, once for each of its changes that was withdrawn by
 * then. */
bool store_late(struct store_file *file, struct store_settle *call, struct error *error) MUST_USE;

/* Loads changes whose recovery is to be announced, and the messages that announced them. */
bool store_recovered(
	struct store_file *file, struct store_recovered *call, struct error *error) MUST_USE;

/* Counts the recoveries that are to be announced. */
bool store_recoveries(struct store_file *file, int64_t *recoveries, struct error *error) MUST_USE;

bool store_counts(
	struct store_file *file, struct store_counts *counts, struct error *error) MUST_USE;

#endif
