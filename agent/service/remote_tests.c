/* A condition is stored when it is reported. */
#include "agent/service/remote_tests.h"

#include <string.h>

#include "agent/fleet/tests.h"
#include "agent/monitor/condition.h"

bool remote_test_is(const struct agent *agent, const struct test *test)
{
	return agent->fleet && !fleet_runs(agent, test->name);
}

static const struct condition *find(
	const struct health_rows *health, enum condition_kind kind, const char *name)
{
	for (size_t i = 0; i < health->condition_count; i++)
		if (health->conditions[i].kind == kind &&
			strcmp(condition_name(&health->conditions[i]), name) == 0)
			return &health->conditions[i];
	return NULL;
}

struct scheduler_test remote_test_state(const struct agent *agent,
	const struct scheduler_test *state, const struct health_rows *health)
{
	struct scheduler_test known = *state;
	const struct test *test = state->test;
	const char *source = test->server ? test->server->name : test->source->name;
	const struct condition *down, *failing;

	if (!remote_test_is(agent, test))
		return known;
	down = find(health, CONDITION_SOURCE, source);
	failing = find(health, CONDITION_TEST, test->name);
	known.down_since = down ? down->since : 0;
	known.failing = failing != NULL;
	known.problem = failing ? failing->text : NULL;
	known.stale = find(health, CONDITION_STALE, test->name) != NULL;
	return known;
}
