/*
 * One question to the state is under way at a time: it announces, moves tests and reads what has
 * left its shard and what the configurations in use say differently. Its answer leads to the moves
 * of the next question, until there are none. A test is moved once no run of it is in progress
 * here, unless it joins a shard of this agent: then what was under way is refused and run again.
 *
 * An agent's right to a test is one lease at each moment, the test's own or its shard's.
 */
#include "agent/fleet/rollout.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"

enum { AGAIN = 1000, SOON = 100 }; /* ms */
enum { MOVES_MOST = 5000 };        /* tests that one question moves */

#define CONFIGURATION_BITS 53 /* as of an instance */

/* A test that has left its shard, or on which the configurations in use do not agree. */
struct apart {
	struct single single;
	bool there;     /* it has left */
	bool differs;   /* configurations in use say different things of it, ... */
	bool able;      /* ... and this agent's what decides */
	int64_t runner; /* who is to claim it; 0: nobody can */
};

struct rollout {
	struct agent *agent;
	struct fleet_shards held, asked, known; /* `known`: what has left them was read since */
	int64_t configuration;
	bool announced, asking, moving, look;
	struct alarm alarm;
	struct store_configuration *seen; /* the last answer; NULL: none yet */
	struct apart *apart;              /* by name, in its arena */
	size_t count;
	uint64_t news; /* as last seen */
	uint64_t warned;
};

static bool is_needed(const struct rollout *rollout)
{
	return fleet_is_shared(rollout->agent) && store_is_shared(rollout->agent->store);
}

static void ask_after(struct rollout *rollout, int64_t wait)
{
	struct engine *engine = rollout->agent->engine;

	if (!rollout->asking)
		engine_alarm_aside(engine, &rollout->alarm, engine_now(engine) + wait);
}

static void look(struct rollout *rollout)
{
	rollout->look = true;
	ask_after(rollout, 0);
}

/* --- What has left, and what is to. */

static int compare(const void *a, const void *b)
{
	const struct apart *one = a, *other = b;

	return strcmp(one->single.test, other->single.test);
}

/* NULL: it is in its shard, and all agree on it. */
static const struct apart *apart_of(const struct rollout *rollout, const char *test)
{
	const struct apart key = {.single.test = test};

	return rollout->count > 0
		       ? bsearch(&key, rollout->apart, rollout->count, sizeof key, compare)
		       : NULL;
}

static bool is_mine(const struct rollout *rollout, const struct apart *apart)
{
	return apart->there && apart->single.holder == fleet_instance(rollout->agent);
}

static bool decides(const struct announced_test *versions, size_t count, int64_t configuration)
{
	for (size_t i = 0; i < count; i++)
		if (versions[i].configuration == configuration)
			return versions[i].decides;
	return false;
}

/* One of those that can, for each test another, and the same however many come and go. */
static int64_t runner_of(
	const struct rollout *rollout, const struct announced_test *versions, size_t count)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);
	int64_t runner = 0, self = fleet_instance(rollout->agent);
	uint64_t most = 0;

	for (size_t i = 0; picture && i < picture->agent_count; i++) {
		const struct store_agent *agent = &picture->agents[i];
		uint64_t weight = hash_add(HASH_START, versions->name, strlen(versions->name) + 1);

		weight = hash_add(weight, &agent->instance, sizeof agent->instance);
		if (agent->gone || (runner != 0 && weight < most) ||
			!decides(versions, count,
				agent->instance == self ? rollout->seen->configuration
							: agent->configuration))
			continue;
		most = weight;
		runner = agent->instance;
	}
	return runner;
}

static void add_versions(struct rollout *rollout, struct apart *apart,
	const struct announced_test *versions, size_t count)
{
	apart->differs = true;
	apart->able = decides(versions, count, rollout->seen->configuration);
	apart->runner = runner_of(rollout, versions, count);
	for (size_t i = 0; i < count && !apart->there; i++)
		if (i == 0 || rollout->held.has[versions[i].shard])
			apart->single.shard = versions[i].shard;
}

/* Merges both lists, which are ordered by name. */
static void keep_seen(struct rollout *rollout, struct store_configuration *seen)
{
	if (rollout->seen)
		store_call_free(&rollout->seen->call);
	rollout->seen = seen;
	rollout->apart = arena_array(
		seen->call.arena, seen->single_count + seen->version_count, sizeof *rollout->apart);
	rollout->count = 0;
	for (size_t at = 0, i = 0, same; at < seen->single_count || i < seen->version_count;
		i += same) {
		struct apart *apart = &rollout->apart[rollout->count++];
		int order = at == seen->single_count ? 1
			    : i == seen->version_count
				    ? -1
				    : strcmp(seen->singles[at].test, seen->versions[i].name);

		same = 0;
		*apart = (struct apart){.there = order <= 0};
		if (apart->there)
			apart->single = seen->singles[at++];
		else
			apart->single.test = seen->versions[i].name;
		while (order >= 0 && i + same < seen->version_count &&
			strcmp(seen->versions[i + same].name, apart->single.test) == 0)
			same++;
		if (same > 0)
			add_versions(rollout, apart, &seen->versions[i], same);
	}
}

static void note_differing(struct rollout *rollout)
{
	uint64_t hash =
		hash_add(HASH_START, &rollout->configuration, sizeof rollout->configuration);
	const struct store_configuration *seen = rollout->seen;
	const char *first = NULL;
	size_t differing = 0;

	for (size_t i = 0; i < seen->version_count; i++) {
		const struct announced_test *version = &seen->versions[i];

		if (version->configuration != seen->configuration || version->decides)
			continue;
		first = first ? first : version->name;
		hash = hash_add(hash, version->name, strlen(version->name) + 1);
		differing++;
	}
	metrics_set(rollout->agent->metrics, METRIC_DIFFERING_TESTS, (double)differing, NULL, NULL);
	if (differing > 0 && hash != rollout->warned)
		log_event(LEVEL_WARN,
			"configuration differs from that of most agents: using theirs",
			LOG_INT("tests", differing), LOG_TEXT("first", first));
	rollout->warned = differing > 0 ? hash : 0;
}

/* --- Questions. */

static void add_name(struct strings *list, const struct apart *apart)
{
	((const char **)(uintptr_t)list->items)[list->count++] = apart->single.test;
}

/* From its shard, which this agent holds, for whoever is able. */
static bool leave(
	const struct rollout *rollout, struct store_configuration *call, const struct apart *apart)
{
	if (!rollout->known.has[apart->single.shard] || apart->able)
		return true;
	if (fleet_is_running(rollout->agent, apart->single.test))
		return false;
	((struct single *)(uintptr_t)call->leave)[call->leave_count++] = apart->single;
	return true;
}

/* False: not yet, as a run of it is in progress here. */
static bool move(
	const struct rollout *rollout, struct store_configuration *call, const struct apart *apart)
{
	bool at_home = rollout->known.has[apart->single.shard];

	if (!apart->there)
		return leave(rollout, call, apart);
	if (apart->single.holder == 0) {
		if (apart->differs && apart->runner == fleet_instance(rollout->agent))
			add_name(&call->claim, apart);
		else if (!apart->differs && at_home)
			add_name(&call->join, apart);
		return true;
	}
	if (!is_mine(rollout, apart) || (apart->differs && apart->able))
		return true;
	if ((apart->differs || !at_home) && fleet_is_running(rollout->agent, apart->single.test))
		return false;
	add_name(apart->differs ? &call->release : &call->join, apart);
	return true;
}

static size_t moves_of(const struct store_configuration *call)
{
	return call->leave_count + call->claim.count + call->release.count + call->join.count;
}

/* As many as one question moves: the next one moves the others. False: some have to wait. */
static bool add_moves(const struct rollout *rollout, struct store_configuration *call)
{
	struct arena *arena = call->call.arena;
	size_t room = rollout->count < MOVES_MOST ? rollout->count : MOVES_MOST;
	bool done = true;

	call->leave = arena_array(arena, room, sizeof *call->leave);
	call->claim.items = arena_array(arena, room, sizeof *call->claim.items);
	call->release.items = arena_array(arena, room, sizeof *call->release.items);
	call->join.items = arena_array(arena, room, sizeof *call->join.items);
	for (size_t i = 0; i < rollout->count && moves_of(call) < MOVES_MOST; i++)
		done &= move(rollout, call, &rollout->apart[i]);
	return done;
}

static void answered(struct store_configuration *call)
{
	struct rollout *rollout = call->call.context;
	bool moved = rollout->moving;

	rollout->asking = rollout->moving = false;
	if (call->call.failed) {
		store_call_free(&call->call);
		rollout->look = true;
		ask_after(rollout, AGAIN);
		return;
	}
	if (call->announce && call->configuration == rollout->configuration) {
		rollout->announced = true;
		fleet_announce(rollout->agent, rollout->configuration);
	}
	for (int i = 0; i < STORE_SHARDS; i++)
		rollout->known.has[i] |= rollout->asked.has[i];
	keep_seen(rollout, call);
	note_differing(rollout);
	fleet_moved(rollout->agent);
	ask_after(rollout, moved && !rollout->look ? AGAIN : 0);
}

static void announce(const struct rollout *rollout, struct store_configuration *call)
{
	const struct config_ref *config = rollout->agent->config_ref;
	struct announced_test *tests =
		arena_array(call->call.arena, config->test_count, sizeof *tests);

	call->announce = true;
	for (size_t i = 0; i < config->test_count; i++)
		if (!config->tests[i]->unsupported)
			tests[call->test_count++] = (struct announced_test){
				.name = arena_strdup(call->call.arena, config->tests[i]->name),
				.fingerprint = (int64_t)config->tests[i]->fingerprint,
				.shard = fleet_shard_of_test(config->tests[i])};
	call->tests = tests;
}

static void ask(void *context)
{
	struct rollout *rollout = context;
	struct store_configuration *call;
	bool done;

	if (rollout->asking || rollout->agent->stopping)
		return;
	call = store_configuration_new(answered, rollout);
	call->configuration = rollout->configuration;
	done = add_moves(rollout, call);
	rollout->moving = moves_of(call) > 0;
	if (!rollout->look && !rollout->moving) {
		store_call_free(&call->call);
		if (!done)
			ask_after(rollout, SOON);
		return;
	}
	if (!rollout->announced)
		announce(rollout, call);
	rollout->asked = rollout->held;
	rollout->look = false;
	rollout->asking = true;
	store_client_call(rollout->agent, &call->call);
}

static uint64_t hash_of(const struct config_ref *config)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = config->tests[i];
		uint64_t one = hash_add(HASH_START, test->name, strlen(test->name) + 1);

		if (!test->unsupported)
			hash += hash_add(one, &test->fingerprint, sizeof test->fingerprint);
	}
	hash = hash_add(HASH_START, &hash, sizeof hash) >> (64 - CONFIGURATION_BITS);
	return hash ? hash : 1;
}

void fleet_adopt(struct agent *agent)
{
	struct rollout *rollout = fleet_rollout(agent);
	int64_t configuration = (int64_t)hash_of(agent->config_ref);

	if (!rollout || !is_needed(rollout) || configuration == rollout->configuration)
		return;
	rollout->configuration = configuration;
	rollout->announced = false;
	look(rollout);
}

/* --- What the fleet tells. */

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct rollout *rollout = context;
	bool needed = is_needed(rollout);

	(void)restored;
	for (int i = 0; i < STORE_SHARDS; i++) {
		rollout->held.has[i] |= shards->has[i];
		rollout->known.has[i] |= shards->has[i] && !needed;
	}
	if (needed)
		look(rollout);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct rollout *rollout = context;

	for (int i = 0; i < STORE_SHARDS; i++)
		if (shards->has[i])
			rollout->held.has[i] = rollout->asked.has[i] = rollout->known.has[i] =
				false;
}

/* Whether others have another configuration, or something has left its shard. */
static bool is_divided(const struct rollout *rollout)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);

	for (size_t i = 0; i < picture->agent_count; i++)
		if (!picture->agents[i].gone &&
			picture->agents[i].instance != fleet_instance(rollout->agent) &&
			picture->agents[i].configuration != rollout->configuration)
			return true;
	return picture->singles != 0 || rollout->count > 0;
}

static void note_news(void *context, const struct fleet_news *news)
{
	struct rollout *rollout = context;

	if (!is_needed(rollout) || news->configuration == rollout->news)
		return;
	rollout->news = news->configuration;
	if (is_divided(rollout))
		look(rollout);
	fleet_moved(rollout->agent);
}

struct rollout *rollout_new(struct agent *agent)
{
	struct rollout *rollout = memory_new(1, sizeof *rollout);

	*rollout = (struct rollout){.agent = agent};
	rollout->alarm = (struct alarm){.call = ask, .context = rollout};
	fleet_listen(agent,
		&(struct fleet_listener){
			.gained = gained, .lost = lost, .news = note_news, .context = rollout});
	return rollout;
}

void rollout_free(struct rollout *rollout)
{
	if (rollout->seen)
		store_call_free(&rollout->seen->call);
	free(rollout);
}

/* --- Who runs a test. */

/* Whether it is its shard's holder that runs the test. */
static bool is_by_shard(const struct apart *apart)
{
	return !apart || !apart->there;
}

bool fleet_runs(const struct agent *agent, const char *test, int shard)
{
	const struct rollout *rollout = fleet_rollout(agent);
	const struct apart *apart;

	if (!rollout || !fleet_is_shared(agent))
		return true;
	apart = apart_of(rollout, test);
	if (is_by_shard(apart))
		return rollout->known.has[shard] && (!apart || apart->able);
	return is_mine(rollout, apart) &&
	       (apart->differs ? apart->able : rollout->known.has[shard]);
}

bool fleet_may_run(const struct agent *agent, const char *test, int shard)
{
	const struct rollout *rollout = fleet_rollout(agent);

	if (!fleet_runs(agent, test, shard))
		return false;
	return rollout && fleet_is_shared(agent) && !is_by_shard(apart_of(rollout, test))
		       ? fleet_is_trusted(agent)
		       : fleet_holds(agent, shard);
}

const char *fleet_runner(const struct agent *agent, const char *test, int shard)
{
	const struct rollout *rollout = fleet_rollout(agent);
	const struct apart *apart = rollout ? apart_of(rollout, test) : NULL;

	return apart && apart->there ? fleet_agent(agent, apart->single.holder)
				     : fleet_holder(agent, shard);
}

void fleet_fence_test(
	const struct agent *agent, struct store_call *call, const char *test, int shard)
{
	const struct rollout *rollout = fleet_rollout(agent);
	const struct apart *apart =
		rollout && fleet_is_shared(agent) && test ? apart_of(rollout, test) : NULL;

	fleet_fence(agent, call, shard);
	if (is_by_shard(apart))
		return;
	call->test = arena_strdup(call->arena, test);
	call->term = is_mine(rollout, apart) ? apart->single.term : -1;
}
