/*
 * Requests to the store that are asked again until it has taken them: one at a time and in order,
 * so that none overtakes one before it that has failed.
 */
#ifndef AGENT_RUNTIME_STORE_BACKLOG_H
#define AGENT_RUNTIME_STORE_BACKLOG_H

#include "agent/runtime/agent.h"

struct store_backlog;

struct store_backlog *store_backlog_new(struct agent *agent);
void store_backlog_free(struct store_backlog *backlog);

/*
 * Hands the request over. Its `reply` is called once it is stored; or with `failed`, where there is
 * no later: in a single pass, and when the agent is stopping.
 */
void store_backlog_add(struct store_backlog *backlog, struct store_request *request);

#endif
