/*
 * One question to the state is under way at a time: it announces, writes lists and reads what
 * configurations differ in. Its answer leads to a plan; if the lists of that are others than those
 * written, the next question writes them, and the plan is in effect when that is done. What either
 * of the two plans gives to others is not run meanwhile.
 */
#include "agent/monitor/rollout.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/clock.h"
#include "agent/base/dict.h"
#include "agent/base/hash.h"
#include "agent/monitor/ballot.h"
#include "agent/runtime/fleet.h"

enum { AGAIN = 1000, SOON = 100 }; /* ms */

#define CONFIGURATION_BITS 53 /* as of an instance */

/* What an agent does about tests that configurations differ in. */
struct plan {
	struct arena *arena;
	struct dict others;                    /* tests of others -> struct ballot_test */
	struct delegation lists[STORE_SHARDS]; /* of shards that it holds; deputy 0: none */
	const char **names[STORE_SHARDS];      /* of the lists */
};

struct rollout {
	struct agent *agent;
	struct rollout_client client;
	struct fleet_shards held;
	int64_t configuration;
	bool announced;
	bool asking, again, writing;
	struct alarm alarm;
	struct store_configuration *seen; /* the last answer; NULL: none yet */
	struct dict duties;               /* tests on lists of it -> struct delegation */
	struct plan *plan, *next;         /* in effect; to be written. NULL: none */
	uint64_t news;                    /* as last seen */
	uint64_t warned;
};

static void ask(void *context);

static void plan_free(struct plan *plan)
{
	if (plan)
		arena_free(plan->arena);
}

static struct plan *plan_new(void)
{
	struct arena *arena = arena_new();
	struct plan *plan = arena_alloc(arena, sizeof *plan);

	*plan = (struct plan){.arena = arena, .others = {.arena = arena}};
	return plan;
}

static void ask_after(struct rollout *rollout, int64_t wait)
{
	struct engine *engine = rollout->agent->engine;

	if (rollout->asking)
		rollout->again = true;
	else
		engine_alarm_aside(engine, &rollout->alarm, engine_now(engine) + wait);
}

/* --- The plan. */

static struct ballot ballot_of(const struct rollout *rollout, struct arena *arena)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);
	const struct store_configuration *seen = rollout->seen;
	int64_t self = fleet_instance(rollout->agent);
	size_t most = (picture ? picture->agent_count : 0) + 1;
	struct ballot_agent *agents = arena_array(arena, most, sizeof *agents);
	struct ballot ballot = {.agents = agents,
		.configurations = seen->configurations,
		.configuration_count = seen->configuration_count,
		.versions = seen->versions,
		.version_count = seen->version_count};

	agents[ballot.agent_count++] = (struct ballot_agent){self, rollout->configuration};
	for (size_t i = 0; picture && i < picture->agent_count; i++)
		if (!picture->agents[i].gone && picture->agents[i].instance != self)
			agents[ballot.agent_count++] = (struct ballot_agent){
				picture->agents[i].instance, picture->agents[i].configuration};
	for (int i = 0; i < STORE_SHARDS; i++)
		ballot.holders[i] = rollout->held.has[i] ? self
				    : picture            ? picture->shards[i].holder
							 : 0;
	return ballot;
}

static void add_to_list(
	struct plan *plan, const struct ballot_test *test, int64_t deputy, size_t most)
{
	struct delegation *list = &plan->lists[test->shard];
	const char ***names = &plan->names[test->shard];

	if (!*names) {
		*names = arena_array(plan->arena, most, sizeof **names);
		*list = (struct delegation){
			.shard = test->shard, .deputy = deputy, .tests.items = *names};
	}
	(*names)[list->tests.count++] = test->name;
}

/* How many tests a list of each shard can have. */
static void count_tests(const struct ballot_result *result, size_t counts[STORE_SHARDS])
{
	for (size_t i = 0; i < result->count; i++)
		counts[result->tests[i].shard]++;
}

static void note_differing(struct rollout *rollout, const struct ballot_result *result)
{
	const struct store_configuration *seen = rollout->seen;
	uint64_t hash =
		hash_add(HASH_START, &rollout->configuration, sizeof rollout->configuration);
	const char *first = NULL;
	size_t differing = 0;

	for (size_t i = 0, at = 0; i < seen->version_count; i++) {
		const struct announced_test *version = &seen->versions[i];

		while (at < result->count && strcmp(result->tests[at].name, version->name) < 0)
			at++;
		if (version->configuration != rollout->configuration || at == result->count ||
			strcmp(result->tests[at].name, version->name) != 0 ||
			result->tests[at].fingerprint == version->fingerprint)
			continue;
		first = first ? first : version->name;
		hash = hash_add(hash, version->name, strlen(version->name) + 1);
		differing++;
	}
	metrics_set(rollout->agent->metrics, METRIC_DIFFERING_TESTS, (double)differing, NULL, NULL);
	if (differing > 0 && hash != rollout->warned)
		log_event(LEVEL_WARN,
			"configuration differs from that of most agents: running theirs",
			LOG_INT("tests", differing), LOG_TEXT("first", first));
	rollout->warned = differing > 0 ? hash : 0;
}

static struct plan *make_plan(struct rollout *rollout)
{
	struct plan *plan = plan_new();
	struct ballot ballot = ballot_of(rollout, plan->arena);
	struct ballot_result result = ballot_decide(plan->arena, &ballot);
	size_t counts[STORE_SHARDS] = {0};
	int64_t self = fleet_instance(rollout->agent);

	count_tests(&result, counts);
	for (size_t i = 0; i < result.count; i++) {
		struct ballot_test *test = &result.tests[i];
		int64_t deputy = result.deputies[test->shard];

		test->name = arena_strdup(plan->arena, test->name);
		if (test->runner == self)
			continue;
		*dict_place(&plan->others, test->name) = test;
		if (rollout->held.has[test->shard] && deputy != 0 && test->runner == deputy)
			add_to_list(plan, test, deputy, counts[test->shard]);
	}
	note_differing(rollout, &result);
	return plan;
}

static bool is_same_list(const struct delegation *a, const struct delegation *b)
{
	if (a->deputy != b->deputy || a->tests.count != b->tests.count)
		return false;
	for (size_t i = 0; i < a->tests.count; i++)
		if (strcmp(a->tests.items[i], b->tests.items[i]) != 0)
			return false;
	return true;
}

static const struct delegation *list_of(const struct plan *plan, int shard)
{
	static const struct delegation none;

	return plan ? &plan->lists[shard] : &none;
}

static bool is_to_write(const struct rollout *rollout, int shard)
{
	return rollout->held.has[shard] &&
	       !is_same_list(list_of(rollout->plan, shard), list_of(rollout->next, shard));
}

/* Whether nothing is in progress here of what others are to run from now on. */
static bool is_let_go(const struct rollout *rollout, int shard)
{
	const struct strings *tests = &list_of(rollout->next, shard)->tests;

	for (size_t i = 0; i < tests->count; i++)
		if (rollout->client.is_running(rollout->client.context, tests->items[i]))
			return false;
	return true;
}

static void put_in_effect(struct rollout *rollout)
{
	plan_free(rollout->plan);
	rollout->plan = rollout->next;
	rollout->next = NULL;
	rollout->client.changed(rollout->client.context);
}

static void decide(struct rollout *rollout)
{
	bool write = false;

	plan_free(rollout->next);
	rollout->next = make_plan(rollout);
	for (int i = 0; i < STORE_SHARDS; i++)
		write |= is_to_write(rollout, i);
	if (!write) {
		put_in_effect(rollout);
		return;
	}
	rollout->client.changed(rollout->client.context);
	ask_after(rollout, 0);
}

/* --- Questions. */

/* Whether others have another configuration, or something has to be taken back. */
static bool is_divided(const struct rollout *rollout)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);
	int64_t self = fleet_instance(rollout->agent);

	for (size_t i = 0; picture && i < picture->agent_count; i++)
		if (!picture->agents[i].gone && picture->agents[i].instance != self &&
			picture->agents[i].configuration != rollout->configuration)
			return true;
	for (int i = 0; picture && i < STORE_SHARDS; i++)
		if (picture->shards[i].deputy == self ||
			(rollout->held.has[i] && list_of(rollout->plan, i)->deputy != 0))
			return true;
	return rollout->seen && rollout->seen->version_count > 0;
}

static void drop_seen(struct rollout *rollout)
{
	if (rollout->seen)
		store_call_free(&rollout->seen->call);
	rollout->seen = NULL;
}

static void keep_seen(struct rollout *rollout, struct store_configuration *call)
{
	rollout->seen = call;
	rollout->duties = (struct dict){.arena = call->call.arena};
	for (size_t i = 0; i < call->delegated_count; i++)
		for (size_t j = 0; j < call->delegated[i].tests.count; j++)
			*dict_place(&rollout->duties, call->delegated[i].tests.items[j]) =
				&call->delegated[i];
}

static void answered(struct store_configuration *call)
{
	struct rollout *rollout = call->call.context;
	bool again = rollout->again, writing = rollout->writing;

	rollout->asking = rollout->again = rollout->writing = false;
	if (call->call.failed) {
		store_call_free(&call->call);
		ask_after(rollout, AGAIN);
		return;
	}
	if (call->announce && call->configuration == rollout->configuration) {
		rollout->announced = true;
		fleet_announce(rollout->agent, rollout->configuration);
	}
	drop_seen(rollout);
	keep_seen(rollout, call);
	if (writing && rollout->next)
		put_in_effect(rollout);
	decide(rollout);
	if (again || !rollout->announced)
		ask_after(rollout, 0);
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

/* False: something of it is still in progress. */
static bool write_lists(struct rollout *rollout, struct store_configuration *call)
{
	struct delegation *lists = arena_array(call->call.arena, STORE_SHARDS, sizeof *lists);

	for (int i = 0; rollout->next && i < STORE_SHARDS; i++) {
		if (!is_to_write(rollout, i))
			continue;
		if (!is_let_go(rollout, i))
			return false;
		lists[call->delegate_count] = *list_of(rollout->next, i);
		lists[call->delegate_count++].shard = i;
	}
	call->delegate = lists;
	return true;
}

static void ask(void *context)
{
	struct rollout *rollout = context;
	struct store_configuration *call;

	if (rollout->asking || rollout->agent->stopping)
		return;
	call = store_configuration_new(answered, rollout);
	call->configuration = rollout->configuration;
	if (!rollout->announced)
		announce(rollout, call);
	if (!write_lists(rollout, call)) {
		store_call_free(&call->call);
		ask_after(rollout, SOON);
		return;
	}
	rollout->writing = call->delegate_count > 0;
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

static bool is_needed(const struct rollout *rollout)
{
	return rollout->agent->fleet && !rollout->agent->once &&
	       store_is_shared(rollout->agent->store);
}

void rollout_adopt(struct rollout *rollout)
{
	int64_t configuration = (int64_t)hash_of(rollout->agent->config_ref);

	if (!is_needed(rollout) || configuration == rollout->configuration)
		return;
	rollout->configuration = configuration;
	rollout->announced = false;
	ask_after(rollout, 0);
}

/* --- What the fleet tells. */

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct rollout *rollout = context;

	(void)restored;
	for (int i = 0; i < STORE_SHARDS; i++)
		rollout->held.has[i] |= shards->has[i];
	if (is_needed(rollout) && rollout->seen && !rollout->writing)
		decide(rollout);
	else
		rollout->again |= rollout->asking;
}

/* Their lists went with them. */
static void lost(void *context, const struct fleet_shards *shards)
{
	struct rollout *rollout = context;

	for (int i = 0; i < STORE_SHARDS; i++) {
		if (!shards->has[i])
			continue;
		rollout->held.has[i] = false;
		if (rollout->plan)
			rollout->plan->lists[i] = (struct delegation){0};
		if (rollout->next)
			rollout->next->lists[i] = (struct delegation){0};
	}
}

static void note_news(void *context, const struct fleet_news *news)
{
	struct rollout *rollout = context;

	if (!is_needed(rollout) || news->configuration == rollout->news)
		return;
	rollout->news = news->configuration;
	if (is_divided(rollout))
		ask_after(rollout, 0);
	rollout->client.changed(rollout->client.context);
}

struct rollout *rollout_new(struct agent *agent, const struct rollout_client *client)
{
	struct rollout *rollout = memory_new(1, sizeof *rollout);

	*rollout = (struct rollout){.agent = agent, .client = *client};
	rollout->alarm = (struct alarm){.call = ask, .context = rollout};
	fleet_listen(agent,
		&(struct fleet_listener){
			.gained = gained, .lost = lost, .news = note_news, .context = rollout});
	return rollout;
}

void rollout_free(struct rollout *rollout)
{
	if (!rollout)
		return;
	drop_seen(rollout);
	plan_free(rollout->plan);
	plan_free(rollout->next);
	free(rollout);
}

/* --- Who runs a test. */

/* Without a fleet, or in a single run, which has all shards. */
static bool is_alone(const struct agent *agent)
{
	return !agent->fleet || agent->once;
}

/* The list on which this agent, as a deputy, has the test; NULL: it has not. */
static const struct delegation *duty_of(const struct rollout *rollout, const char *test)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);
	const struct delegation *list =
		picture && rollout->seen ? dict_get(&rollout->duties, test) : NULL;
	const struct store_shard *shard = list ? &picture->shards[list->shard] : NULL;

	return list && shard->deputy == fleet_instance(rollout->agent) &&
			       shard->epoch == list->epoch
		       ? list
		       : NULL;
}

static const struct ballot_test *given_away(const struct plan *plan, const char *test)
{
	return plan ? dict_get(&plan->others, test) : NULL;
}

bool rollout_runs(const struct rollout *rollout, const char *test, int shard)
{
	if (is_alone(rollout->agent))
		return true;
	if (!rollout->held.has[shard])
		return duty_of(rollout, test) != NULL;
	if (!rollout->plan)
		return !is_needed(rollout) || fleet_size(rollout->agent) == 1;
	return !given_away(rollout->plan, test) && !given_away(rollout->next, test);
}

bool rollout_may_run(const struct rollout *rollout, const char *test, int shard)
{
	const struct delegation *duty;

	if (!rollout_runs(rollout, test, shard))
		return false;
	if (is_alone(rollout->agent) || rollout->held.has[shard])
		return fleet_holds(rollout->agent, shard);
	duty = duty_of(rollout, test);
	return duty && fleet_is_deputy(rollout->agent, duty->shard);
}

const char *rollout_runner(const struct rollout *rollout, const char *test, int shard)
{
	const struct store_turn *picture = fleet_picture(rollout->agent);
	const struct ballot_test *given = given_away(rollout->next, test);

	if (!given)
		given = given_away(rollout->plan, test);
	if (!given)
		return fleet_holder(rollout->agent, shard);
	for (size_t i = 0; picture && i < picture->agent_count; i++)
		if (picture->agents[i].instance == given->runner)
			return picture->agents[i].name;
	return NULL;
}

void rollout_fence(
	const struct rollout *rollout, struct store_call *call, const char *test, int shard)
{
	const struct delegation *duty;

	if (is_alone(rollout->agent) || rollout->held.has[shard]) {
		fleet_fence(rollout->agent, call, shard);
		return;
	}
	duty = duty_of(rollout, test);
	call->holder = fleet_instance(rollout->agent);
	call->shard = duty ? duty->shard : shard;
	call->term = duty ? duty->epoch : -1;
}
