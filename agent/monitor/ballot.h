/*
 * While the configuration of a fleet is changed, agent by agent: which version of a test decides,
 * and who runs it. A pure function of what is known of the agents and their configurations.
 *
 * Each live agent votes for the version of a test that its configuration has; one without the test
 * does not vote. The version of most agents decides; a tie, the one that was announced last.
 *
 * A test is run by the holder of its shard, if its configuration has that version. The shard's
 * deputy runs the others: an agent whose configuration has most of them. With three configurations
 * at the same time there can be tests that neither has in the version that decides; whoever of them
 * has the test in another version runs it then.
 */
#ifndef AGENT_MONITOR_BALLOT_H
#define AGENT_MONITOR_BALLOT_H

#include "agent/base/arena.h"
#include "agent/store/store.h"

struct ballot_agent {
	int64_t instance, configuration;
};

struct ballot {
	const struct ballot_agent *agents; /* those that live */
	size_t agent_count;
	const struct announced_configuration *configurations; /* others do not vote */
	size_t configuration_count;
	const struct announced_test *versions; /* by name; of the tests to decide about */
	size_t version_count;
	int64_t holders[STORE_SHARDS]; /* instances; 0: nobody */
};

/* What was decided about a test. */
struct ballot_test {
	const char *name;
	int64_t fingerprint;
	int shard;
	int64_t runner; /* instance; 0: nobody can */
};

struct ballot_result {
	struct ballot_test *tests; /* by name */
	size_t count;
	int64_t deputies[STORE_SHARDS]; /* instances; 0: none is needed */
};

/* The result lies in the arena and borrows the names. */
struct ballot_result ballot_decide(struct arena *arena, const struct ballot *ballot);

#endif
