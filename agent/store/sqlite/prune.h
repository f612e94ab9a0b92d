/*
 * Forgetting what nobody will ask for again. For work.c.
 */
#ifndef AGENT_STORE_SQLITE_PRUNE_H
#define AGENT_STORE_SQLITE_PRUNE_H

#include "agent/store/sqlite/file.h"

/* STORE_PRUNE. */
bool store_prune(
	struct store_file *file, struct store_request *request, struct error *error) MUST_USE;

#endif
