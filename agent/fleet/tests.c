/*
 * One question to the state is in progress at a time: it announces, moves tests and reads what has
 * left its shard and what the configurations in use say differently. Its answer leads to the moves
 * of the next question, until there are none.
 */
#include "agent/fleet/tests.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"

enum {
	AGAIN = 1000,      /* ms */
	MOVES_MOST = 5000, /* tests that one question moves */
};

#define CONFIGURATION_BITS 53 /* as of an instance */

/* A test that has left its shard, or may have to. */
struct apart {
	struct single single;
	bool there;     /* it has left */
	bool differs;   /* configurations in use differ in it */
	bool able;      /* this agent is */
	int64_t runner; /* the agent that should claim it; 0: none can */
};

struct fleet_tests {
	struct agent *agent;
	struct fleet_runner runner;
	/* Of those held: the tests that left it are being read, and have been since it was gained.
	 */
	struct fleet_shards asked, known;
	int64_t configuration;
	bool announced, asking, moving, look;
	bool blocked; /* by a run in progress */
	struct alarm alarm;
	struct store_configuration *seen; /* the last answer; NULL: none yet */
	struct apart *apart;              /* by name, in its arena */
	size_t count;
	uint64_t news; /* as last seen */
	uint64_t warned;
};

static bool is_needed(const struct fleet_tests *tests)
{
	return fleet_is_shared(tests->agent) && store_is_shared(tests->agent->store);
}

static void ask_after(struct fleet_tests *tests, int64_t wait)
{
	struct engine *engine = tests->agent->engine;

	if (!tests->asking)
		engine_alarm_aside(engine, &tests->alarm, engine_now(engine) + wait);
}

static void look(struct fleet_tests *tests)
{
	tests->look = true;
	ask_after(tests, 0);
}

/* --- Tests that left their shards, and those that should. */

static int compare(const void *a, const void *b)
{
	const struct apart *one = a, *other = b;

	return strcmp(one->single.test, other->single.test);
}

/* NULL: it is in its shard, and all agree on it. */
static const struct apart *apart_of(const struct fleet_tests *tests, const char *test)
{
	const struct apart key = {.single.test = test};

	return tests->count > 0 ? bsearch(&key, tests->apart, tests->count, sizeof key, compare)
				: NULL;
}

static bool is_home(const struct fleet_tests *tests, const char *test)
{
	return tests->known.has[fleet_shard_of_test(test)];
}

static bool is_mine(const struct fleet_tests *tests, const struct apart *apart)
{
	return apart->there && apart->single.holder == fleet_instance(tests->agent);
}

static bool decides(const struct announced_test *versions, size_t count, int64_t configuration)
{
	for (size_t i = 0; i < count; i++)
		if (versions[i].configuration == configuration)
			return versions[i].decides;
	return false;
}

/* One of the agents that can, chosen by the test's name, so that few tests move when agents come
 * and go; none, if all agree. */
static int64_t runner_of(const struct fleet_tests *tests, const char *test,
	const struct announced_test *versions, size_t count)
{
	const struct store_turn *picture = fleet_picture(tests->agent);
	int64_t runner = 0, self = fleet_instance(tests->agent);
	uint64_t most = 0;

	for (size_t i = 0; picture && i < picture->agent_count; i++) {
		const struct store_agent *agent = &picture->agents[i];
		uint64_t weight = hash_add(HASH_START, test, strlen(test) + 1);

		weight = hash_add(weight, &agent->instance, sizeof agent->instance);
		if (agent->gone || (runner != 0 && weight < most) ||
			!decides(versions, count,
				agent->instance == self ? tests->seen->configuration
							: agent->configuration))
			continue;
		most = weight;
		runner = agent->instance;
	}
	return runner;
}

/* `versions` of the test: none if all agree. */
static void add(struct fleet_tests *tests, const struct single *single,
	const struct announced_test *versions, size_t count)
{
	tests->apart[tests->count++] = (struct apart){.single = *single,
		.there = single->term != 0,
		.differs = count > 0,
		.able = count > 0 ? decides(versions, count, tests->seen->configuration)
				  : config_test(tests->agent->config, single->test) != NULL,
		.runner = runner_of(tests, single->test, versions, count)};
}

/* Merges both lists, which are ordered by name. */
static void keep_seen(struct fleet_tests *tests, struct store_configuration *seen)
{
	size_t at = 0, i = 0;

	if (tests->seen)
		store_call_free(&tests->seen->call);
	tests->seen = seen;
	tests->apart = arena_array(
		seen->call.arena, seen->single_count + seen->version_count, sizeof *tests->apart);
	tests->count = 0;
	while (at < seen->single_count || i < seen->version_count) {
		int order = at == seen->single_count ? 1
			    : i == seen->version_count
				    ? -1
				    : strcmp(seen->singles[at].test, seen->versions[i].name);
		const struct single single =
			order <= 0 ? seen->singles[at]
				   : (struct single){.test = seen->versions[i].name};
		size_t same = 0;

		at += order <= 0;
		while (order >= 0 && i + same < seen->version_count &&
			strcmp(seen->versions[i + same].name, single.test) == 0)
			same++;
		add(tests, &single, &seen->versions[i], same);
		i += same;
	}
}

static void note_differing(struct fleet_tests *tests)
{
	uint64_t hash = hash_add(HASH_START, &tests->configuration, sizeof tests->configuration);
	const struct store_configuration *seen = tests->seen;
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
	metrics_set(tests->agent->metrics, METRIC_DIFFERING_TESTS, (double)differing, NULL);
	if (differing > 0 && hash != tests->warned)
		log_event(LEVEL_WARN,
			"configuration differs from that of most agents: using theirs",
			LOG_INT("tests", differing), LOG_TEXT("first", first));
	tests->warned = differing > 0 ? hash : 0;
}

/* --- Questions. */

static bool is_running(const struct fleet_tests *tests, const char *test)
{
	return tests->runner.is_running && tests->runner.is_running(tests->runner.context, test);
}

/* The table in tests.h. False: not yet, as a run of it is in progress here. A test that joins a
 * shard of this agent need not wait: a run in progress is refused and repeated. */
static bool move(const struct fleet_tests *tests, struct store_configuration *call,
	const struct apart *apart)
{
	const char *test = apart->single.test;
	bool home = is_home(tests, test), mine = is_mine(tests, apart);
	bool stops = tests->agent->stopping;
	bool joins = !apart->differs;
	struct strings *list = joins ? &call->join : &call->release;

	if (!apart->there) {
		if (!home || apart->able || stops)
			return true;
		list = &call->leave;
	} else if (apart->single.holder == 0) {
		if (stops || (joins ? !home : apart->runner != fleet_instance(tests->agent)))
			return true;
		list = joins ? &call->join : &call->claim;
	} else if (!mine || (apart->able && !joins && !stops)) {
		return true;
	}
	if ((mine || !apart->there) && !(joins && home) && is_running(tests, test))
		return false;
	((const char **)(uintptr_t)list->items)[list->count++] = test;
	return true;
}

static size_t moves_of(const struct store_configuration *call)
{
	return call->leave.count + call->claim.count + call->release.count + call->join.count;
}

/* Adds up to the limit of one request; the next one moves the rest. False: some have to wait. */
static bool add_moves(const struct fleet_tests *tests, struct store_configuration *call)
{
	struct arena *arena = call->call.arena;
	size_t room = tests->count < MOVES_MOST ? tests->count : MOVES_MOST;
	bool done = true;
	int *shards;

	call->leave.items = arena_array(arena, room, sizeof *call->leave.items);
	call->claim.items = arena_array(arena, room, sizeof *call->claim.items);
	call->release.items = arena_array(arena, room, sizeof *call->release.items);
	call->join.items = arena_array(arena, room, sizeof *call->join.items);
	for (size_t i = 0; i < tests->count && moves_of(call) < MOVES_MOST; i++)
		done &= move(tests, call, &tests->apart[i]);
	shards = arena_array(arena, call->leave.count, sizeof *shards);
	for (size_t i = 0; i < call->leave.count; i++)
		shards[i] = fleet_shard_of_test(call->leave.items[i]);
	call->leave_shards = shards;
	return done;
}

static void moved(const struct fleet_tests *tests, const struct health_rows *rows)
{
	if (tests->runner.moved)
		tests->runner.moved(tests->runner.context, rows);
}

static void answered(struct store_configuration *call)
{
	struct fleet_tests *tests = call->call.context;
	bool again = tests->moving && !tests->look;

	tests->asking = tests->moving = false;
	if (call->call.failed) {
		store_call_free(&call->call);
		tests->look = true;
		ask_after(tests, AGAIN);
		return;
	}
	if (call->announce && call->configuration == tests->configuration) {
		tests->announced = true;
		fleet_announce(tests->agent, tests->configuration);
	}
	for (int i = 0; i < STORE_SHARDS; i++)
		tests->known.has[i] |= tests->asked.has[i];
	keep_seen(tests, call);
	note_differing(tests);
	moved(tests, call->gains ? &call->health : NULL);
	ask_after(tests, again ? AGAIN : 0);
}

static void announce(const struct fleet_tests *tests, struct store_configuration *call)
{
	const struct config_ref *config = tests->agent->config_ref;
	struct announced_test *list =
		arena_array(call->call.arena, config->test_count, sizeof *list);

	call->announce = true;
	for (size_t i = 0; i < config->test_count; i++)
		if (!config->tests[i]->unsupported)
			list[call->test_count++] = (struct announced_test){
				.name = arena_strdup(call->call.arena, config->tests[i]->name),
				.fingerprint = (int64_t)config->tests[i]->fingerprint};
	call->tests = list;
}

static void ask(void *context)
{
	struct fleet_tests *tests = context;
	struct store_configuration *call;

	if (tests->asking)
		return;
	call = store_configuration_new(answered, tests);
	call->configuration = tests->configuration;
	tests->blocked = !add_moves(tests, call);
	tests->moving = moves_of(call) > 0;
	if (!tests->moving && (!tests->look || tests->agent->stopping)) {
		store_call_free(&call->call);
		return;
	}
	if (!tests->announced)
		announce(tests, call);
	call->gains = tests->count > 0; /* one that is away, or those of shards */
	for (int i = 0; i < STORE_SHARDS; i++) {
		tests->asked.has[i] = fleet_keeps(tests->agent, i);
		call->gains |= tests->asked.has[i] && !tests->known.has[i];
	}
	tests->look = false;
	tests->asking = true;
	store_client_call(tests->agent, &call->call);
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
	struct fleet_tests *tests = agent->fleet_tests;
	int64_t configuration = (int64_t)hash_of(agent->config_ref);

	if (!tests || !is_needed(tests) || configuration == tests->configuration)
		return;
	tests->configuration = configuration;
	tests->announced = false;
	look(tests);
}

void fleet_move(struct agent *agent)
{
	struct fleet_tests *tests = agent->fleet_tests;

	if (tests && (tests->blocked || agent->stopping))
		ask_after(tests, 0);
}

/* --- Events of the fleet. */

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct fleet_tests *tests = context;
	bool needed = is_needed(tests);

	for (int i = 0; i < STORE_SHARDS; i++)
		tests->known.has[i] |= shards->has[i] && !needed;
	if (needed)
		look(tests);
	else
		moved(tests, &restored->health);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct fleet_tests *tests = context;

	for (int i = 0; i < STORE_SHARDS; i++)
		if (shards->has[i])
			tests->asked.has[i] = tests->known.has[i] = false;
	moved(tests, NULL);
}

/* Whether other agents have another configuration, or a test has left its shard. */
static bool is_divided(const struct fleet_tests *tests)
{
	const struct store_turn *picture = fleet_picture(tests->agent);

	for (size_t i = 0; i < picture->agent_count; i++)
		if (!picture->agents[i].gone &&
			picture->agents[i].instance != fleet_instance(tests->agent) &&
			picture->agents[i].configuration != tests->configuration)
			return true;
	return picture->singles != 0 || tests->count > 0;
}

static void note_news(void *context, const struct fleet_news *news)
{
	struct fleet_tests *tests = context;

	if (!is_needed(tests) || news->configuration == tests->news)
		return;
	tests->news = news->configuration;
	if (is_divided(tests))
		look(tests);
	moved(tests, NULL);
}

void fleet_tests_new(struct agent *agent)
{
	struct fleet_tests *tests = memory_new(1, sizeof *tests);

	*tests = (struct fleet_tests){.agent = agent, .alarm = {.call = ask, .context = tests}};
	agent->fleet_tests = tests;
	fleet_listen(agent,
		&(struct fleet_listener){
			.gained = gained, .lost = lost, .news = note_news, .context = tests});
}

void fleet_tests_listen(struct agent *agent, const struct fleet_runner *runner)
{
	if (agent->fleet_tests)
		agent->fleet_tests->runner = *runner;
}

void fleet_tests_free(struct agent *agent)
{
	struct fleet_tests *tests = agent->fleet_tests;

	if (tests->seen)
		store_call_free(&tests->seen->call);
	free(tests);
	agent->fleet_tests = NULL;
}

/* --- The agent that runs a test. */

/* NULL: without a fleet, or all is this agent's. */
static const struct fleet_tests *shared(const struct agent *agent)
{
	return fleet_is_shared(agent) ? agent->fleet_tests : NULL;
}

/* NULL: it is in its shard. */
static const struct apart *away(const struct fleet_tests *tests, const char *test)
{
	const struct apart *apart = tests ? apart_of(tests, test) : NULL;

	return apart && apart->there ? apart : NULL;
}

bool fleet_has(const struct agent *agent, const char *test)
{
	const struct fleet_tests *tests = shared(agent);
	const struct apart *apart = away(tests, test);

	return !tests || (apart ? is_mine(tests, apart) : is_home(tests, test));
}

bool fleet_runs(const struct agent *agent, const char *test)
{
	const struct fleet_tests *tests = shared(agent);
	const struct apart *apart = tests ? apart_of(tests, test) : NULL;

	if (!apart || !fleet_has(agent, test))
		return fleet_has(agent, test);
	return apart->differs ? apart->able : is_home(tests, test);
}

bool fleet_may_run(const struct agent *agent, const char *test)
{
	return fleet_runs(agent, test) &&
	       (away(shared(agent), test) ? fleet_is_trusted(agent)
					  : fleet_holds(agent, fleet_shard_of_test(test)));
}

bool fleet_agrees(const struct agent *agent)
{
	const struct fleet_tests *tests = shared(agent);

	return !tests || tests->announced || !is_needed(tests);
}

const char *fleet_runner(const struct agent *agent, const char *test)
{
	const struct apart *apart = away(shared(agent), test);

	return apart ? fleet_agent_name(agent, apart->single.holder)
		     : fleet_holder(agent, fleet_shard_of_test(test));
}

void fleet_fence_test(const struct agent *agent, struct store_call *call, const char *test)
{
	const struct fleet_tests *tests = shared(agent);
	const struct apart *apart = away(tests, test);

	fleet_fence(agent, call, fleet_shard_of_test(test));
	if (!agent->fleet)
		return;
	call->test = arena_strdup(call->arena, test);
	call->single = apart != NULL;
	if (apart)
		call->term = is_mine(tests, apart) ? apart->single.term : -1;
}
