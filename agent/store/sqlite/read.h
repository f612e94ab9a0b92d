/*
 * What the store answers with rows. For work.c.
 */
#ifndef AGENT_STORE_SQLITE_READ_H
#define AGENT_STORE_SQLITE_READ_H

#include "agent/store/sqlite/file.h"

bool store_restore(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;
bool store_known(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;
bool store_health(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;
bool store_checkpoints(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;
bool store_list(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

/* Loads the changes that are in the parcel into its `records`. */
bool store_members(struct store_file *file, struct store_request *request,
	struct delivery *delivery, struct error *error) MUST_USE;

/* Adds to the retractions the messages about the change that were sent and have a receipt; nothing
 * once there are STORE_RETRACTIONS. */
bool store_messages(struct store_file *file, struct store_request *request, int64_t change,
	struct error *error) MUST_USE;

/* Adds to the retractions the parcel, which was sent, for each of its changes that was withdrawn by
 * then. */
bool store_late(struct store_file *file, struct store_request *request,
	const struct delivery *delivery, struct error *error) MUST_USE;

/* The records of changes whose recovery is to be told, and by which messages they were told. */
bool store_recovered(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

/* How many recoveries are to be told. */
bool store_recoveries(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

/* How many changes there are of each state by now. */
bool store_counts(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

#endif
