/*
 * Requests to the store that are retried until it accepts them: one at a time and in order, so
 * that none overtakes one that has failed.
 */
#ifndef AGENT_RUNTIME_STORE_BACKLOG_H
#define AGENT_RUNTIME_STORE_BACKLOG_H

#include "agent/runtime/agent.h"

struct store_backlog;

struct store_backlog *store_backlog_new(struct agent *agent);
void store_backlog_free(struct store_backlog *backlog);

/*
 * Queues the call. Its `reply` is called once it is stored; or with `failed` if there are no
 * retries: with --once, when the agent is stopping, and when it is another agent's work by now.
 */
void store_backlog_add(struct store_backlog *backlog, struct store_call *call);

#endif
