/*
 * The agent's parts, created in the order of their dependencies. `run` adds more around them,
 * replay does not.
 */
#ifndef AGENT_SERVICE_PARTS_H
#define AGENT_SERVICE_PARTS_H

#include "agent/deliver/delivery_manager.h"
#include "agent/monitor/reopening.h"
#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct agent_parts {
	/* The caller sets simulation, config_ref, config, schema, now and once. */
	struct agent agent;
	struct delivery_manager *delivery_manager;
	struct dispatcher *dispatcher;
	struct reopening *reopening;
	struct scheduler *scheduler;
	struct expected *expected;
};

/* Creates engine, metrics, store and parts. False and an error: agent_stop and agent_close still
 * apply. */
bool agent_open(struct agent_parts *parts, const struct engine_options *options, const char *state,
	struct error *error) MUST_USE;

/* Resumes from the answer to store_restore, and starts the scheduler; frees the answer. */
void agent_start(struct agent_parts *parts, struct store_restore *restored);

/*
 * Two steps, so that guests of the engine can be freed in between. All store requests are on
 * disk afterwards. False: a worker is stuck, or the state's database does not answer; then free
 * nothing.
 */
bool agent_stop(struct agent_parts *parts);
void agent_close(struct agent_parts *parts);

#endif
