/*
 * The crew: the agent's parts, made in the order in which they need one another. `run` has more
 * around them, a replay has not.
 */
#ifndef AGENT_SERVICE_CREW_H
#define AGENT_SERVICE_CREW_H

#include "agent/monitor/cluster.h"
#include "agent/monitor/watch.h"

struct crew {
	struct agent agent; /* stage, generation, config, schema, now and once are the caller's */
	struct courier *courier;
	struct announcer *announcer;
	struct watch *watch;
	struct clusters *clusters;
};

/* Makes engine, metrics, store and parts. False and an error: crew_stop and crew_free what
 * there is. */
bool crew_open(struct crew *crew, const struct engine_options *options, const char *state,
	struct error *error) MUST_USE;

/* Takes up what the answer to STORE_RESTORE says was left over, and begins to watch; frees it. */
void crew_begin(struct crew *crew, struct store_request *restored);

/*
 * In two moves, for those who have guests of the engine to free in between. What was asked of the
 * store is on the disk afterwards. False: a worker does not end; then free nothing.
 */
bool crew_stop(struct crew *crew);
void crew_free(struct crew *crew);

#endif
