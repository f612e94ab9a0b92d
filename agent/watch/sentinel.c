/*
 * See sentinel.h. A test without a server is one of its kind of source: if no file can be read any
 * more, that is one trouble as well.
 */
#include "agent/watch/sentinel.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/when.h"
#include "conf/dict.h"

#define FIRST_LOOK "stale" /* in the store: since when data are known to be missed */

struct sentinel {
	struct agent *agent;
	struct announcer *announcer;
	struct conditions *conditions;
};

struct sentinel *sentinel_new(struct agent *agent, struct announcer *announcer)
{
	struct sentinel *sentinel = memory_new(1, sizeof *sentinel);

	*sentinel = (struct sentinel){agent, announcer, conditions_new()};
	return sentinel;
}

void sentinel_free(struct sentinel *sentinel)
{
	if (!sentinel)
		return;
	conditions_free(sentinel->conditions);
	free(sentinel);
}

static const char *source_of(const struct test *test)
{
	return test->server ? test->server->name : test->source->name;
}

static bool about_test(enum condition_kind kind)
{
	return kind == CONDITION_TEST || kind == CONDITION_STALE;
}

/* Adds the test's receivers to those that are in the list, which has room for them. */
static void add_receivers(
	const char **names, size_t *count, struct dict *seen, const struct test *test)
{
	for (size_t i = 0; i < test->notify.count; i++) {
		const void **place = dict_place(seen, test->notify.items[i]);

		if (!*place)
			names[(*count)++] = test->notify.items[i];
		*place = test;
	}
}

/* The condition is stored, or forgotten, with the notices. */
static void tell_to(const struct sentinel *sentinel, const struct condition *condition,
	const struct strings *receivers)
{
	struct notice notice = {.subject = condition_name(condition),
		.text = condition->text,
		.time = condition->since,
		.recovered = condition->over};

	if (sentinel->agent->stage)
		sentinel->agent->stage->notice(sentinel->agent, &notice);
	announcer_notice(sentinel->announcer, &notice, receivers, condition);
}

static void tell(const struct sentinel *sentinel, const struct condition *condition)
{
	const struct config *config = sentinel->agent->config;
	struct arena *arena = arena_new();
	struct dict seen = {.arena = arena};
	const char **names;
	size_t room = 0, count = 0;

	for (size_t i = 0; i < config->test_count; i++)
		room += config->tests[i].notify.count;
	names = arena_array(arena, room, sizeof *names);
	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];

		if (test->source &&
			strcmp(about_test(condition->kind) ? test->name : source_of(test),
				condition_name(condition)) == 0)
			add_receivers(names, &count, &seen, test);
	}
	tell_to(sentinel, condition, &(struct strings){names, count});
	arena_free(arena);
}

/* Of what is no longer configured nobody knows who was told. */
static void tell_all(const struct sentinel *sentinel, const struct condition *condition)
{
	const struct config *config = sentinel->agent->config;
	const char **names = memory_new(config->receiver_count, sizeof *names);

	for (size_t i = 0; i < config->receiver_count; i++)
		names[i] = config->receivers[i].name;
	tell_to(sentinel, condition, &(struct strings){names, config->receiver_count});
	free(names);
}

/* What was so before there was an agent that looks for it is no news. */
static int64_t look_since(struct agent *agent, const struct store_request *restored)
{
	struct store_request *request;

	for (size_t i = 0; i < restored->moment_count; i++)
		if (strcmp(restored->moments[i].name, FIRST_LOOK) == 0)
			return restored->moments[i].time;
	request = store_request_new(STORE_CONDITION, store_request_free, NULL);
	request->moments = arena_alloc(request->arena, sizeof *request->moments);
	*request->moments = (struct store_moment){FIRST_LOOK, agent_now(agent)};
	request->moment_count = 1;
	ledger_ask(agent, request);
	return agent_now(agent);
}

void sentinel_restore(struct sentinel *sentinel, const struct store_request *restored)
{
	const struct generation *generation = sentinel->agent->generation;

	conditions_since(sentinel->conditions, look_since(sentinel->agent, restored));
	for (size_t i = 0; i < restored->condition_count; i++)
		conditions_restore(sentinel->conditions, &restored->conditions[i]);
	for (size_t i = 0; i < generation->test_count; i++)
		if (!generation->tests[i]->unsupported)
			conditions_expect(sentinel->conditions, generation->tests[i]->name,
				source_of(generation->tests[i]));
	sentinel_adopt(sentinel);
}

static void note_stale(const struct sentinel *sentinel)
{
	metrics_set(sentinel->agent->metrics, METRIC_STALE_TESTS,
		(double)conditions_stale(sentinel->conditions), NULL, NULL);
}

void sentinel_note(
	struct sentinel *sentinel, const struct test *test, const struct run_outcome *run)
{
	struct agent *agent = sentinel->agent;
	struct condition turns[CONDITION_TURNS];
	struct outcome outcome = {.test = test->name,
		.source = source_of(test),
		.problem = run->problem,
		.answered = run->answered,
		.newest = run->newest,
		.stale_after = test->stale_after,
		.usual = run->usual,
		.interval = test->interval,
		.now = agent_now(agent),
		.clock = engine_now(agent->engine)};
	size_t count = conditions_note(sentinel->conditions, &outcome, turns);

	for (size_t i = 0; i < count; i++)
		tell(sentinel, &turns[i]);
	metrics_set(agent->metrics, METRIC_SOURCE_UP,
		conditions_up(sentinel->conditions, outcome.source), outcome.source, NULL);
	note_stale(sentinel);
}

/* The names that a generation has. */
struct names {
	const struct sentinel *sentinel;
	struct dict tests, sources;
};

static bool is_there(void *context, bool test, const char *name)
{
	const struct names *names = context;

	return dict_get(test ? &names->tests : &names->sources, name);
}

static bool is_source(void *context, const char *name)
{
	return is_there(context, false, name);
}

static void forget(void *context, const struct condition *condition)
{
	const struct names *names = context;

	tell_all(names->sentinel, condition);
}

void sentinel_adopt(struct sentinel *sentinel)
{
	const struct config *config = sentinel->agent->config; /* not only what is watched */
	struct arena *arena = arena_new();
	struct names names = {sentinel, {.arena = arena}, {.arena = arena}};

	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];

		if (!test->source)
			continue;
		*dict_place(&names.tests, test->name) = test;
		*dict_place(&names.sources, source_of(test)) = test;
	}
	conditions_retain(sentinel->conditions, is_there, forget, &names);
	metrics_retain(sentinel->agent->metrics, METRIC_SOURCE_UP, is_source, &names);
	note_stale(sentinel);
	arena_free(arena);
}
