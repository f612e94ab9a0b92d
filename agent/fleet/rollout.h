/*
 * Tests on which the configurations in use do not agree, while the one of a fleet is changed agent
 * by agent. Where the holder of a test's shard has not got the version that decides (that of most
 * agents; of equals the one announced last), the test leaves its shard and is leased by itself, to
 * an agent that has it. When all agree again, it joins its shard.
 *
 * Only who holds a test's shard has it leave; it knows of all that have left before it runs one of
 * that shard. The others know as much as they have read: they claim what is free, and give back
 * what they have not got as it is to be, or what is to return, after their run. So nothing depends
 * on two agents seeing the same at the same moment. As long as all agents have the same, nothing is
 * asked for but what has left a shard that was gained.
 *
 * For fleet.c; the functions that others call are in fleet.h. For the loop's thread.
 */
#ifndef AGENT_FLEET_ROLLOUT_H
#define AGENT_FLEET_ROLLOUT_H

#include "agent/fleet/fleet.h"

struct rollout;

struct rollout *rollout_new(struct agent *agent); /* of an agent with a fleet; listens to it */
void rollout_free(struct rollout *rollout);       /* after the engine */

/* Of fleet.c. */
struct rollout *fleet_rollout(const struct agent *agent);
bool fleet_is_trusted(const struct agent *agent);
const char *fleet_agent(const struct agent *agent, int64_t instance); /* its name; or NULL */
void fleet_moved(const struct agent *agent);
bool fleet_is_running(const struct agent *agent, const char *test);
/* What the agent says of itself with each turn from now on: the hash of its configuration. */
void fleet_announce(struct agent *agent, int64_t configuration);

#endif
