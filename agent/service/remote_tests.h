/*
 * Tests that another agent of the fleet runs: their state as far as the store has it, for messages
 * about all tests.
 */
#ifndef AGENT_SERVICE_REMOTE_TESTS_H
#define AGENT_SERVICE_REMOTE_TESTS_H

#include "agent/monitor/scheduler.h"

/* Whether another agent runs the test. */
bool remote_test_is(const struct agent *agent, const struct test *test);

/* The state, updated from the stored conditions if another agent runs the test. Series and points
 * of such a test are unknown. */
struct scheduler_test remote_test_state(const struct agent *agent,
	const struct scheduler_test *state, const struct health_rows *health);

#endif
