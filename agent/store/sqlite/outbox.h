/*
 * Calls about queued deliveries: attempts, outcomes, and deliveries that have lost their receiver.
 */
#ifndef AGENT_STORE_SQLITE_OUTBOX_H
#define AGENT_STORE_SQLITE_OUTBOX_H

#include "agent/store/sqlite/file.h"

bool store_attempt(
	struct store_file *file, struct store_attempt *call, struct error *error) MUST_USE;
bool store_settle(struct store_file *file, struct store_settle *call, struct error *error) MUST_USE;
bool store_reopen(struct store_file *file, struct store_reopen *call, struct error *error) MUST_USE;

#endif
