/* The calls of a fleet, and the fence of all others that write. */
#ifndef AGENT_STORE_POSTGRESQL_FLEET_H
#define AGENT_STORE_POSTGRESQL_FLEET_H

#include "agent/store/postgresql/connection.h"
#include "agent/store/store.h"

/* Performs STORE_TURN or one of the calls after it, outside of a transaction. */
bool fleet_perform(
	struct connection *connection, struct store_call *call, struct error *error) MUST_USE;

/* Within the call's transaction, before anything else of it: false, with `fenced`, if its agent
 * does not hold the shard with that term. Until the transaction ends nobody can take it over. */
bool fleet_lock(
	struct connection *connection, struct store_call *call, struct error *error) MUST_USE;

#endif
