/*
 * The agent that runs a test in a fleet: the holder of its shard, or an agent that leases the
 * single test.
 *
 * The configurations of agents may differ, while they are changed one by one. The version of a test
 * decides that most live agents have; of equals the one announced last. An agent is *able* to run a
 * test if it has that version. Where the holder of the shard is not able, the test leaves the
 * shard: it has a row in the state, with a term and a fence as a shard has. An agent that is able
 * claims it, and it joins its shard again when that is enough. What an agent does about a test, by
 * its last answer from the state:
 *
 *   there is a row    holder      this agent does
 *   no                its shard's runs it if it is able, else has it leave
 *   yes               nobody      claims it, if it is the one of those able that hash to the test;
 *                                 else, if all agree and it holds the shard: joins it
 *   yes               itself      runs it if it is able; releases it if not, or if it stops;
 *                                 joins it if all agree and the shard's holder is able
 *
 * It holds its shard: it has gained that, and has read since then what had left it (`known`). So at
 * each moment one lease is the right to record results of a test, and nothing depends on two agents
 * seeing the same. A test leaves, and is released, once no run of it is in progress here; a write
 * about it that comes after that is refused. As long as all agents have the same, nothing is asked
 * for but what has left a shard that was gained.
 *
 * For the loop's thread. Without a fleet each test is this agent's.
 */
#ifndef AGENT_FLEET_TESTS_H
#define AGENT_FLEET_TESTS_H

#include "agent/fleet/fleet.h"

/* Callbacks of the scheduler; each may be NULL. */
struct fleet_runner {
	/* The answers of fleet_has and fleet_runs may have changed. `rows`: the stored health of
	 * tests, read after their leases; NULL: no test came from another agent. */
	void (*moved)(void *context, const struct health_rows *rows);
	/* Whether a run of the test is in progress. */
	bool (*is_running)(void *context, const char *test);
	void *context;
};

void fleet_tests_listen(struct agent *agent, const struct fleet_runner *runner);

/* Whether this agent has the lease of the test; whether it should run it, too (or, if the test is
 * no longer configured, report that: see fleet_agrees); and whether it may do so now. */
bool fleet_has(const struct agent *agent, const char *test);
bool fleet_runs(const struct agent *agent, const char *test);
bool fleet_may_run(const struct agent *agent, const char *test);

/* Whether the state knows this agent's configuration: before, a test that is not in it any more may
 * be another's. */
bool fleet_agrees(const struct agent *agent);

/* The name of the agent that runs a test which this one does not; NULL: it is not known. */
const char *fleet_runner(const struct agent *agent, const char *test);

/* Fences a call that writes about the test. */
void fleet_fence_test(const struct agent *agent, struct store_call *call, const char *test);

/* The agent's configuration is another one. */
void fleet_adopt(struct agent *agent);

/* A run has ended, or the agent stops: tests that had to wait for that are moved. */
void fleet_move(struct agent *agent);

/* Of fleet.c: agent->fleet_tests, of an agent with a fleet. */
void fleet_tests_new(struct agent *agent);
void fleet_tests_free(struct agent *agent); /* after the engine */

#endif
