/*
 * Tests that another agent of the fleet runs: what the state says of them, for messages that are
 * about all tests.
 */
#ifndef AGENT_SERVICE_REMOTE_TESTS_H
#define AGENT_SERVICE_REMOTE_TESTS_H

#include "agent/monitor/scheduler.h"

/* Whether another agent runs the test. */
bool remote_test_is(const struct agent *agent, const struct test *test);

/* The state with what the stored conditions say of a test that another agent runs; of others as it
 * is. What only its runs know (series, points) is missing. */
struct scheduler_test remote_test_state(const struct agent *agent,
	const struct scheduler_test *state, const struct health_rows *health);

#endif
