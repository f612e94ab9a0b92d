/* The fence of all calls that write, but those of a fleet. */
#ifndef AGENT_STORE_POSTGRESQL_FLEET_H
#define AGENT_STORE_POSTGRESQL_FLEET_H

#include "agent/store/sql/driver.h"

/* Within the call's transaction, before anything else of it: fails, with `fenced`, if its agent
 * does not hold the shard with that term. Until the transaction ends nobody can take it over. */
void fleet_lock(struct tx *tx, struct store_call *call);

#endif
