/*
 * The crew: the agent's parts, made in the order in which they need one another. `run` has more
 * around them, a replay has not.
 */
#ifndef AGENT_SERVICE_PARTS_H
#define AGENT_SERVICE_PARTS_H

#include "agent/monitor/cluster.h"
#include "agent/monitor/scheduler.h"

struct agent_parts {
	struct agent agent; /* stage, generation, config, schema, now and once are the caller's */
	struct delivery_manager *delivery_manager;
	struct dispatcher *dispatcher;
	struct scheduler *watch;
	struct clusters *clusters;
};

/* Makes engine, metrics, store and parts. False and an error: agent_stop and agent_close what
 * there is. */
bool agent_open(struct agent_parts *parts, const struct engine_options *options, const char *state,
	struct error *error) MUST_USE;

/* Takes up what the answer to STORE_RESTORE says was left over, and begins to watch; frees it. */
void agent_start(struct agent_parts *parts, struct store_request *restored);

/*
 * In two moves, for those who have guests of the engine to free in between. What was asked of the
 * store is on the disk afterwards. False: a worker does not end; then free nothing.
 */
bool agent_stop(struct agent_parts *parts);
void agent_close(struct agent_parts *parts);

#endif
