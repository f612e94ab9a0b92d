/* The fence of all calls that write, but those of a fleet. */
#ifndef AGENT_STORE_POSTGRESQL_FLEET_H
#define AGENT_STORE_POSTGRESQL_FLEET_H

#include "agent/store/tx.h"

/* The time by the database's clock. */
#define MOMENT                                                                                     \
	" moment AS (SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now)"

#define AGENT_LIVES "EXISTS (SELECT 1 FROM agents WHERE instance = ?1 AND gone = 0)"

/* Condition on `shards` and `singles`: no live agent holds it. */
#define FREE " (holder = 0 OR EXISTS (SELECT 1 FROM agents WHERE instance = holder AND gone != 0))"

/* Within the call's transaction, before anything else of it: fails, with `fenced`, if its agent
 * does not hold the shard with that term. Until the transaction ends no agent can take it over. */
void fleet_lock(struct tx *tx, struct store_call *call);

#endif
