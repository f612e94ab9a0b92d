/*
 * What the agents of a fleet are configured to do, while that is changed agent by agent: see
 * agent/monitor/rollout.h.
 */
#ifndef AGENT_STORE_POSTGRESQL_CONFIGURATIONS_H
#define AGENT_STORE_POSTGRESQL_CONFIGURATIONS_H

#include "agent/store/postgresql/connection.h"
#include "agent/store/store.h"

bool configurations_perform(struct connection *connection, struct store_configuration *call,
	struct error *error) MUST_USE;

#endif
