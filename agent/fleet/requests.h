/*
 * Requests for runs within a fleet: those that this agent sends to others, and those that it
 * receives. They go through the state; duplicates are merged.
 *
 * For the loop's thread.
 */
#ifndef AGENT_FLEET_REQUESTS_H
#define AGENT_FLEET_REQUESTS_H

#include "agent/runtime/agent.h"

struct requests;

/* `run` is called with the name of each test whose run is requested from this agent, or whose
 * request could not be sent yet; it returns whether the run has begun, else the request is
 * repeated. */
struct requests *requests_new(
	struct agent *agent, bool (*run)(void *context, const char *test), void *context);
void requests_free(struct requests *requests); /* after the engine; accepts NULL */

/* Requests a run from the agent that has the test, of that shard; all tests of the same moment go
 * together. */
void requests_ask(struct requests *requests, const char *test, int shard);

/* Receives the requests to this agent. */
void requests_take(struct requests *requests);

#endif
