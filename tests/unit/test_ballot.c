/*
 * A fleet whose configuration is changed agent by agent: which version of a test decides, and that
 * each test is run by one agent that can.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/monitor/ballot.h"
#include "tests/unit/random.h"

enum { AGENTS = 9, CONFIGURATIONS = 4, VERSIONS = 400 };

struct fleet_of {
	struct arena *arena;
	struct ballot_agent agents[AGENTS];
	struct announced_configuration configurations[CONFIGURATIONS];
	struct announced_test versions[VERSIONS];
	struct ballot ballot;
};

static int setup(void **state)
{
	struct fleet_of *fleet = calloc(1, sizeof *fleet);

	*state = fleet;
	fleet->arena = arena_new();
	fleet->ballot = (struct ballot){.agents = fleet->agents,
		.configurations = fleet->configurations,
		.versions = fleet->versions};
	return 0;
}

static int teardown(void **state)
{
	struct fleet_of *fleet = *state;

	arena_free(fleet->arena);
	free(fleet);
	return 0;
}

static void agent(struct fleet_of *fleet, int64_t instance, int64_t configuration)
{
	fleet->agents[fleet->ballot.agent_count++] = (struct ballot_agent){instance, configuration};
}

static void configuration(struct fleet_of *fleet, int64_t configuration, int64_t announced)
{
	fleet->configurations[fleet->ballot.configuration_count++] =
		(struct announced_configuration){configuration, announced};
}

static void version(struct fleet_of *fleet, const char *test, int64_t configuration,
	int64_t fingerprint, int shard)
{
	fleet->versions[fleet->ballot.version_count++] =
		(struct announced_test){test, configuration, fingerprint, shard};
}

static void assert_decided(const struct ballot_result *result, size_t at, const char *name,
	int64_t fingerprint, int64_t runner)
{
	assert_true(at < result->count);
	assert_string_equal(result->tests[at].name, name);
	assert_int_equal(result->tests[at].fingerprint, fingerprint);
	assert_int_equal(result->tests[at].runner, runner);
}

static void test_most_agents_decide(void **state)
{
	struct fleet_of *fleet = *state;
	struct ballot_result result;

	agent(fleet, 1, 100);
	agent(fleet, 2, 100);
	agent(fleet, 3, 200);
	configuration(fleet, 100, 1000);
	configuration(fleet, 200, 2000);
	version(fleet, "a", 100, 7, 10);
	version(fleet, "a", 200, 8, 10);
	version(fleet, "b", 100, 7, 11);
	version(fleet, "b", 200, 8, 11);
	fleet->ballot.holders[10] = 1;
	fleet->ballot.holders[11] = 3;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_int_equal(result.count, 2);
	assert_decided(&result, 0, "a", 7, 1);
	assert_decided(&result, 1, "b", 7, result.deputies[11]);
	assert_int_equal(result.deputies[10], 0);
	assert_in_range(result.deputies[11], 1, 2);
	fleet->agents[1].configuration = 200; /* the second follows */
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_decided(&result, 0, "a", 8, result.deputies[10]);
	assert_decided(&result, 1, "b", 8, 3);
	assert_in_range(result.deputies[10], 2, 3);
	assert_int_equal(result.deputies[11], 0);
}

/* The same number of agents for each: what was announced last; of nobody that lives it is nothing.
 */
static void test_a_tie(void **state)
{
	struct fleet_of *fleet = *state;
	struct ballot_result result;

	agent(fleet, 1, 100);
	agent(fleet, 2, 200);
	configuration(fleet, 100, 1000);
	configuration(fleet, 200, 2000);
	configuration(fleet, 300, 3000);
	version(fleet, "a", 100, 7, 10);
	version(fleet, "a", 200, 8, 10);
	version(fleet, "a", 300, 7, 10);
	fleet->ballot.holders[10] = 1;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_decided(&result, 0, "a", 8, 2);
	fleet->configurations[0].announced = 4000;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_decided(&result, 0, "a", 7, 1);
}

/* Whoever has not got a test does not vote against it. */
static void test_new_and_removed(void **state)
{
	struct fleet_of *fleet = *state;
	struct ballot_result result;

	agent(fleet, 1, 100);
	agent(fleet, 2, 100);
	agent(fleet, 3, 200);
	configuration(fleet, 100, 1000);
	configuration(fleet, 200, 2000);
	version(fleet, "new", 200, 8, 20);
	version(fleet, "old", 100, 7, 21);
	fleet->ballot.holders[20] = 2;
	fleet->ballot.holders[21] = 3;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_int_equal(result.count, 2);
	assert_decided(&result, 0, "new", 8, 3);
	assert_decided(&result, 1, "old", 7, result.deputies[21]);
	assert_in_range(result.deputies[21], 1, 2);
	fleet->ballot.holders[20] = 0; /* its shard is on its way */
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_decided(&result, 0, "new", 8, 0);
}

/* An agent whose configuration is not known yet has no vote, and is nobody's deputy. */
static void test_not_announced_yet(void **state)
{
	struct fleet_of *fleet = *state;
	struct ballot_result result;

	agent(fleet, 1, 100);
	agent(fleet, 2, 0);
	agent(fleet, 3, 0);
	configuration(fleet, 100, 1000);
	version(fleet, "a", 100, 7, 10);
	fleet->ballot.holders[10] = 2;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_decided(&result, 0, "a", 7, 1);
	assert_int_equal(result.deputies[10], 1);
}

/* Neither the holder nor its deputy has what decides: one of them runs the test all the same. */
static void test_three_configurations(void **state)
{
	struct fleet_of *fleet = *state;
	struct ballot_result result;

	agent(fleet, 1, 100);
	agent(fleet, 2, 200);
	agent(fleet, 3, 300);
	configuration(fleet, 100, 1000);
	configuration(fleet, 200, 2000);
	configuration(fleet, 300, 3000);
	version(fleet, "a", 200, 8, 10);
	version(fleet, "b", 200, 8, 10);
	version(fleet, "c", 100, 7, 10);
	version(fleet, "c", 300, 9, 10);
	version(fleet, "d", 300, 9, 10);
	fleet->ballot.holders[10] = 1;
	result = ballot_decide(fleet->arena, &fleet->ballot);
	assert_int_equal(result.deputies[10], 2);
	assert_decided(&result, 0, "a", 8, 2);
	assert_decided(&result, 1, "b", 8, 2);
	assert_decided(&result, 2, "c", 9, 1);
	assert_decided(&result, 3, "d", 9, 0);
}

static bool has(
	const struct fleet_of *fleet, int64_t instance, const char *test, int64_t fingerprint)
{
	for (size_t i = 0; i < fleet->ballot.agent_count; i++)
		for (size_t j = 0; j < fleet->ballot.version_count; j++)
			if (fleet->agents[i].instance == instance &&
				fleet->versions[j].configuration ==
					fleet->agents[i].configuration &&
				strcmp(fleet->versions[j].name, test) == 0 &&
				fleet->versions[j].fingerprint == fingerprint)
				return true;
	return false;
}

/* With two configurations, as in a rolling deployment, every test has a runner that has what
 * decides, and it is its shard's holder or deputy. */
static void test_any_two_configurations(void **state)
{
	struct fleet_of *fleet = *state;
	static char names[VERSIONS / 2][16];

	for (uint64_t seed = 1; seed <= 500; seed++) {
		uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15);
		struct ballot_result result;
		size_t agents = 2 + random_next(&random) % (AGENTS - 1);

		fleet->ballot.agent_count = fleet->ballot.configuration_count =
			fleet->ballot.version_count = 0;
		for (size_t i = 0; i < agents; i++)
			agent(fleet, (int64_t)i + 1,
				i == 0                     ? 100
				: i == 1                   ? 200
				: random_next(&random) % 2 ? 100
							   : 200);
		configuration(fleet, 100, (int64_t)(random_next(&random) % 1000));
		configuration(fleet, 200, (int64_t)(random_next(&random) % 1000));
		for (int i = 0; i < STORE_SHARDS; i++)
			fleet->ballot.holders[i] = 1 + (int64_t)(random_next(&random) % agents);
		for (size_t i = 0; i < VERSIONS / 2; i++) {
			int shard = (int)(random_next(&random) % STORE_SHARDS);
			uint64_t kind = random_next(&random) % 4;

			snprintf(names[i], sizeof names[i], "test%03zu", i);
			if (kind != 0)
				version(fleet, names[i], 100, 7, shard);
			if (kind != 1)
				version(fleet, names[i], 200, kind == 2 ? 7 : 8, shard);
		}
		result = ballot_decide(fleet->arena, &fleet->ballot);
		assert_int_equal(result.count, VERSIONS / 2);
		for (size_t i = 0; i < result.count; i++) {
			const struct ballot_test *test = &result.tests[i];

			if (!has(fleet, test->runner, test->name, test->fingerprint))
				fail_msg("seed %llu: %s", (unsigned long long)seed, test->name);
			assert_true(test->runner == fleet->ballot.holders[test->shard] ||
				    test->runner == result.deputies[test->shard]);
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_most_agents_decide),
		TEST(test_a_tie),
		TEST(test_new_and_removed),
		TEST(test_not_announced_yet),
		TEST(test_three_configurations),
		TEST(test_any_two_configurations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
