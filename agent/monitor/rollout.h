/*
 * The configuration of a fleet while it is changed agent by agent. Agents announce what they have;
 * where they differ, each decides about the shards that it holds (agent/monitor/ballot.h): what it
 * does not run itself, it hands to a deputy, as a list that is written with the shard. A test is
 * taken off the holder before it is on the list, and run by the holder only after it is off the
 * list; the list has a number, the shard's epoch, with which its deputy's writes are fenced. So
 * nothing depends on two agents seeing the same at the same moment.
 *
 * As long as all agents have the same, nothing is asked or written.
 *
 * For the loop's thread.
 */
#ifndef AGENT_MONITOR_ROLLOUT_H
#define AGENT_MONITOR_ROLLOUT_H

#include "agent/runtime/agent.h"

struct rollout;

struct rollout_client {
	void (*changed)(void *context); /* what rollout_runs answers may be another */
	bool (*is_running)(void *context, const char *test);
	void *context;
};

/* Before the client listens to the fleet itself. */
struct rollout *rollout_new(struct agent *agent, const struct rollout_client *client);
void rollout_free(struct rollout *rollout); /* after the engine; accepts NULL */

/* The agent's configuration is another one. */
void rollout_adopt(struct rollout *rollout);

/* Whether this agent is to run the test, which its configuration has, of that shard; and whether it
 * may do so now. */
bool rollout_runs(const struct rollout *rollout, const char *test, int shard);
bool rollout_may_run(const struct rollout *rollout, const char *test, int shard);

/* The name of the agent that runs a test which this one does not; NULL: it is not known. */
const char *rollout_runner(const struct rollout *rollout, const char *test, int shard);

/* Fences a call that writes about a test. */
void rollout_fence(
	const struct rollout *rollout, struct store_call *call, const char *test, int shard);

#endif
