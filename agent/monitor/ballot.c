/* Configurations are compared, not agents: many agents have the same. */
#include "agent/monitor/ballot.h"

#include <stdlib.h>
#include <string.h>

/* The versions of one test. */
struct versions {
	const struct announced_test *items;
	size_t count;
};

static const struct announced_configuration *configuration_of(
	const struct ballot *ballot, int64_t configuration)
{
	for (size_t i = 0; i < ballot->configuration_count; i++)
		if (ballot->configurations[i].configuration == configuration)
			return &ballot->configurations[i];
	return NULL;
}

static size_t agents_with(const struct ballot *ballot, int64_t configuration)
{
	size_t count = 0;

	for (size_t i = 0; i < ballot->agent_count; i++)
		count += ballot->agents[i].configuration == configuration;
	return count;
}

/* 0 if it is not known. */
static int64_t configuration_of_agent(const struct ballot *ballot, int64_t instance)
{
	for (size_t i = 0; i < ballot->agent_count; i++)
		if (ballot->agents[i].instance == instance)
			return ballot->agents[i].configuration;
	return 0;
}

static struct versions versions_at(const struct ballot *ballot, size_t first)
{
	struct versions versions = {.items = ballot->versions + first};

	while (first + versions.count < ballot->version_count &&
		strcmp(versions.items[versions.count].name, versions.items->name) == 0)
		versions.count++;
	return versions;
}

static const struct announced_test *version_of(
	const struct versions *versions, int64_t configuration)
{
	for (size_t i = 0; i < versions->count; i++)
		if (versions->items[i].configuration == configuration)
			return &versions->items[i];
	return NULL;
}

/* Whether `a` decides and not `b`, of two versions with so many votes. */
static bool is_ahead(const struct announced_test *a, size_t votes_a, int64_t announced_a,
	const struct announced_test *b, size_t votes_b, int64_t announced_b)
{
	if (votes_a != votes_b)
		return votes_a > votes_b;
	if (announced_a != announced_b)
		return announced_a > announced_b;
	return a->fingerprint > b->fingerprint;
}

/* NULL: no agent that votes has the test. */
static const struct announced_test *winner_of(
	const struct ballot *ballot, const struct versions *versions)
{
	const struct announced_test *best = NULL;
	int64_t best_announced = 0;
	size_t best_votes = 0;

	for (size_t i = 0; i < versions->count; i++) {
		const struct announced_test *version = &versions->items[i];
		int64_t announced = INT64_MIN;
		size_t votes = 0;

		for (size_t j = 0; j < versions->count; j++) {
			const struct announced_configuration *of;
			size_t agents;

			if (versions->items[j].fingerprint != version->fingerprint)
				continue;
			of = configuration_of(ballot, versions->items[j].configuration);
			agents = of ? agents_with(ballot, of->configuration) : 0;
			if (agents > 0 && of->announced > announced)
				announced = of->announced;
			votes += agents;
		}
		if (votes == 0 || (best && !is_ahead(version, votes, announced, best, best_votes,
						   best_announced)))
			continue;
		best = version;
		best_votes = votes;
		best_announced = announced;
	}
	return best;
}

static bool has_version(const struct versions *versions, int64_t configuration, int64_t fingerprint)
{
	const struct announced_test *version = version_of(versions, configuration);

	return version && version->fingerprint == fingerprint;
}

/* Adds, for each configuration, the tests that it could run for a holder that cannot; `wanted` is
 * by shard and configuration. */
static void want(const struct ballot *ballot, const struct versions *versions,
	const struct ballot_test *test, size_t *wanted)
{
	int64_t holder = ballot->holders[test->shard];

	if (holder == 0 ||
		has_version(versions, configuration_of_agent(ballot, holder), test->fingerprint))
		return;
	for (size_t i = 0; i < ballot->configuration_count; i++)
		wanted[(size_t)test->shard * ballot->configuration_count + i] += has_version(
			versions, ballot->configurations[i].configuration, test->fingerprint);
}

/* One of those with the configuration, for each shard another. */
static int64_t agent_with(const struct ballot *ballot, int64_t configuration, int shard)
{
	size_t count = agents_with(ballot, configuration), at = 0;

	if (count == 0)
		return 0;
	at = (size_t)shard % count;
	for (size_t i = 0; i < ballot->agent_count; i++)
		if (ballot->agents[i].configuration == configuration && at-- == 0)
			return ballot->agents[i].instance;
	return 0;
}

static void name_deputies(
	const struct ballot *ballot, const size_t *wanted, int64_t deputies[STORE_SHARDS])
{
	for (int shard = 0; shard < STORE_SHARDS; shard++) {
		size_t most = 0;

		for (size_t i = 0; i < ballot->configuration_count; i++) {
			size_t here = wanted[(size_t)shard * ballot->configuration_count + i];
			int64_t agent =
				agent_with(ballot, ballot->configurations[i].configuration, shard);

			if (agent == 0 || here <= most)
				continue;
			most = here;
			deputies[shard] = agent;
		}
	}
}

static int64_t runner_of(const struct ballot *ballot, const struct versions *versions,
	const struct ballot_test *test, int64_t deputy)
{
	const int64_t agents[] = {ballot->holders[test->shard], deputy};
	int64_t configurations[2];

	for (size_t i = 0; i < 2; i++) {
		configurations[i] = agents[i] ? configuration_of_agent(ballot, agents[i]) : 0;
		if (agents[i] && has_version(versions, configurations[i], test->fingerprint))
			return agents[i];
	}
	for (size_t i = 0; i < 2; i++)
		if (agents[i] && version_of(versions, configurations[i]))
			return agents[i];
	return 0;
}

struct ballot_result ballot_decide(struct arena *arena, const struct ballot *ballot)
{
	struct ballot_result result = {
		.tests = arena_array(arena, ballot->version_count, sizeof *result.tests)};
	size_t *wanted =
		memory_new(STORE_SHARDS * (ballot->configuration_count + 1), sizeof *wanted);
	struct versions versions;

	for (size_t i = 0; i < ballot->version_count; i += versions.count) {
		const struct announced_test *winner;
		struct ballot_test *test = &result.tests[result.count];

		versions = versions_at(ballot, i);
		winner = winner_of(ballot, &versions);
		if (!winner)
			continue;
		*test = (struct ballot_test){winner->name, winner->fingerprint, winner->shard, 0};
		want(ballot, &versions, test, wanted);
		result.count++;
	}
	name_deputies(ballot, wanted, result.deputies);
	for (size_t i = 0, next = 0; i < ballot->version_count; i += versions.count) {
		versions = versions_at(ballot, i);
		if (next == result.count ||
			strcmp(result.tests[next].name, versions.items->name) != 0)
			continue;
		result.tests[next].runner = runner_of(ballot, &versions, &result.tests[next],
			result.deputies[result.tests[next].shard]);
		next++;
	}
	free(wanted);
	return result;
}
