/*
 * Requests for runs within a fleet: tests that other agents are asked to run, and those that this
 * one is asked to. They go through the state; to ask twice is to ask once.
 *
 * For the loop's thread.
 */
#ifndef AGENT_FLEET_REQUESTS_H
#define AGENT_FLEET_REQUESTS_H

#include "agent/runtime/agent.h"

struct requests;

/* `run` is called with the name of each test that this agent is asked to run, or that it was to ask
 * another agent about and could not yet; it returns whether the run is in hand now, else it is
 * asked for again. */
struct requests *requests_new(
	struct agent *agent, bool (*run)(void *context, const char *test), void *context);
void requests_free(struct requests *requests); /* after the engine; accepts NULL */

/* Asks whoever runs the test, of that shard; all tests of the same moment go together. */
void requests_ask(struct requests *requests, const char *test, int shard);

/* Takes what this agent is asked. */
void requests_take(struct requests *requests);

#endif
