/* The fence of all calls that write, but those of a fleet. */
#ifndef AGENT_STORE_POSTGRESQL_FLEET_H
#define AGENT_STORE_POSTGRESQL_FLEET_H

#include "agent/store/postgresql/connection.h"
#include "agent/store/store.h"

/* Within the call's transaction, before anything else of it: false, with `fenced`, if its agent
 * does not hold the shard with that term. Until the transaction ends nobody can take it over. */
bool fleet_lock(
	struct connection *connection, struct store_call *call, struct error *error) MUST_USE;

#endif
