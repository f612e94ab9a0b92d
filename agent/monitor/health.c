/* Health of sources and tests, and notices about it. */
#include "agent/monitor/health.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/decide/route.h"
#include "agent/decide/silence.h"
#include "agent/runtime/poll.h"

/* ms; LOOK_AGAIN: the wall clock may be set. */
enum { LOOK_AGAIN = 3600000, MOMENT = 200, AGAIN = 5000, SETTLED = 60000 };

#define FIRST_LOOK "series " /* store key, followed by the test: since when it is watched */

/* A test, and its series that were reported as vanished. */
struct lost {
	char *test;
	struct lost *next;
	bool ours;     /* this agent has it, and has read its stored state */
	bool fresh;    /* it has just become so */
	int64_t since; /* ms, wall clock, of its first run; 0: none yet */
	struct vanished *series;
	size_t count;
};

struct health {
	struct agent *agent;
	struct conditions *conditions;
	/* In a fleet: one poll writes this agent's views of sources and reads those of all. */
	struct poll poll;
	uint64_t written;         /* hash of the views that were written last, ... */
	bool rewrite;             /* ... which the state may not have */
	struct store_views *seen; /* the last answer, or NULL */
	int64_t changed;          /* engine_now, when anything was another than before */
	struct alarm settle;      /* when nothing has changed for a while */
	uint64_t views_seen;      /* of struct fleet_news, ... */
	uint64_t agents_seen;     /* ... as of the last turn */
	bool leads;
	struct arena *arena;
	struct dict names; /* identity -> struct vanished, in the arena */
	struct lost *lost;
	/* Conditions whose notice a silence holds back, with their own texts; not stored, so that
	 * the next process finds them anew. */
	struct condition *held;
	size_t held_count;
	struct alarm alarm;     /* when the first of them may be reported, ... */
	int64_t held_until;     /* ... ms, wall clock */
	uint64_t held_silences; /* the version of the silences that hold them */
};

static void tell_held(void *context);
static void judge_sources(void *context);
static void ask_views(void *context);

struct health *health_new(struct agent *agent)
{
	struct health *health = memory_new(1, sizeof *health);

	*health = (struct health){.agent = agent,
		.conditions = conditions_new(fleet_is_shared(agent)),
		.arena = arena_new(),
		.poll = {.agent = agent, .ask = ask_views, .context = health},
		.settle = {.call = judge_sources, .context = health},
		.alarm = {.call = tell_held, .context = health}};
	health->names.arena = health->arena;
	return health;
}

static void lost_clear(struct lost *lost)
{
	for (size_t i = 0; i < lost->count; i++)
		free((char *)(uintptr_t)lost->series[i].series);
	free(lost->series);
	lost->series = NULL;
	lost->count = 0;
}

/* Forgets it; false: it is not held. */
static bool held_drop(struct health *health, const char *subject)
{
	size_t at = 0;

	while (at < health->held_count && strcmp(health->held[at].subject, subject) != 0)
		at++;
	if (at == health->held_count)
		return false;
	free((char *)(uintptr_t)health->held[at].subject);
	free((char *)(uintptr_t)health->held[at].text);
	health->held_count--;
	memmove(health->held + at, health->held + at + 1,
		(health->held_count - at) * sizeof *health->held);
	return true;
}

void health_free(struct health *health)
{
	if (!health)
		return;
	for (struct lost *lost = health->lost; lost; lost = lost->next)
		lost_clear(lost);
	while (health->held_count > 0)
		(void)held_drop(health, health->held[0].subject);
	free(health->held);
	arena_free(health->arena);
	if (health->seen)
		store_call_free(&health->seen->call);
	conditions_free(health->conditions);
	free(health);
}

static uint64_t version_of_silences(const struct health *health)
{
	return health->agent->notices.version(health->agent->notices.context);
}

static bool is_held(
	const struct health *health, const struct silence_target *subject, int64_t *until)
{
	return health->agent->notices.holds(health->agent->notices.context, subject, until);
}

/* Takes over the request. */
static void notify(const struct health *health, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	struct agent *agent = health->agent;

	if (agent->simulation)
		agent->simulation->notice(agent, notice);
	agent->notices.queue(agent->notices.context, notice, receivers, request);
}

static bool about_test(enum condition_kind kind)
{
	return kind == CONDITION_TEST || kind == CONDITION_STALE;
}

/* While the clock is wrong, a text about missing data mentions that. */
static const char *with_doubt(const struct health *health, const char *text, struct arena *arena)
{
	int64_t ahead = health->agent->clock_ahead;
	char time[WHEN_TEXT];

	return ahead == 0 ? text
			  : arena_printf(arena,
				    "%s; possible cause: this machine's clock is %s %s a server's",
				    text, when_format_rough(llabs(ahead), time),
				    ahead > 0 ? "ahead of" : "behind");
}

/* Stores or deletes the condition in the transaction of its notices. */
static void notify_receivers(const struct health *health, const struct condition *condition,
	const struct strings *receivers)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct arena *arena = request->call.arena;
	struct condition *copy = arena_copy(arena, condition, 1, sizeof *copy);
	const char *name = condition_name(condition);
	struct notice notice = {.subject = name,
		.text = condition->over ? condition->text
					: with_doubt(health, condition->text, arena),
		.time = condition->since,
		.ended = condition->over ? agent_now(health->agent) : 0,
		.recovered = condition->over};

	copy->subject = arena_strdup(arena, condition->subject);
	copy->text = arena_strdup(arena, condition->text);
	request->health.conditions = copy;
	request->health.condition_count = 1;
	if (about_test(condition->kind))
		fleet_fence_test(health->agent, &request->call, name);
	else
		fleet_fence(health->agent, &request->call, FLEET_LEADER);
	notify(health, &notice, receivers, request);
}

static void notify_about(const struct health *health, const struct condition *condition)
{
	const struct config *config = health->agent->config;
	struct arena *arena = arena_new();
	struct router *router = router_new(config_routing(config));
	const char **tests = arena_array(arena, config->test_count, sizeof *tests);
	struct strings receivers;
	size_t count = 0;

	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];

		if (test->source &&
			strcmp(about_test(condition->kind) ? test->name : condition_source(test),
				condition_name(condition)) == 0)
			tests[count++] = test->name;
	}
	receivers = route_notices(router, tests, count, 1u << MESSAGE_NOTICE, arena);
	router_free(router);
	notify_receivers(health, condition, &receivers);
	arena_free(arena);
}

static bool is_silenced(
	const struct health *health, const struct condition *condition, int64_t *until)
{
	const char *name = condition_name(condition);
	const struct test *test =
		about_test(condition->kind) ? config_test(health->agent->config, name) : NULL;
	struct silence_target subject = {.source = name};

	if (about_test(condition->kind))
		subject = (struct silence_target){.test = name,
			.source = test && test->source ? condition_source(test) : NULL};
	return is_held(health, &subject, until);
}

static void tell_at(struct health *health, int64_t time)
{
	struct engine *engine = health->agent->engine;
	int64_t wait = time - agent_now(health->agent);

	health->held_until = time;
	if (!health->agent->once)
		engine_alarm(engine, &health->alarm,
			engine_now(engine) + (wait < LOOK_AGAIN ? wait : LOOK_AGAIN));
}

/* The end of a condition that was not reported is not reported either. */
static void notify_unless_silenced(void *context, const struct condition *condition)
{
	struct health *health = context;
	struct condition *held;
	int64_t until;

	if (condition->over && held_drop(health, condition->subject))
		return;
	if (condition->over || !is_silenced(health, condition, &until)) {
		notify_about(health, condition);
		return;
	}
	if (health->held_count == 0)
		health->held_silences = version_of_silences(health);
	else if (health->held_until < until)
		until = health->held_until;
	health->held = memory_resize(health->held, health->held_count + 1, sizeof *health->held);
	held = &health->held[health->held_count++];
	*held = *condition;
	held->subject = memory_strdup(condition->subject);
	held->text = memory_strdup(condition->text);
	log_event(LEVEL_INFO, "notice held", LOG_TEXT("subject", condition->subject),
		LOG_TEXT("text", condition->text));
	tell_at(health, until);
}

/* Reports conditions that no silence holds any more. */
static void tell_held(void *context)
{
	struct health *health = context;
	int64_t until, first = WHEN_NEVER;

	health->held_silences = version_of_silences(health);
	for (size_t i = health->held_count; i > 0 && !health->agent->stopping; i--) {
		const struct condition *held = &health->held[i - 1];

		if (is_silenced(health, held, &until)) {
			first = until < first ? until : first;
			continue;
		}
		notify_about(health, held);
		(void)held_drop(health, held->subject);
	}
	if (health->held_count > 0)
		tell_at(health, first);
}

/* Records the first run in the store, by the agent that runs the test: what ended or was stale
 * before is not reported. */
static int64_t note_first_look(struct agent *agent, const char *test)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct arena *arena = request->call.arena;
	int64_t now = agent_now(agent);

	fleet_fence_test(agent, &request->call, test);
	request->health.moments = arena_alloc(arena, sizeof *request->health.moments);
	*request->health.moments =
		(struct stored_moment){arena_printf(arena, FIRST_LOOK "%s", test), now};
	request->health.moment_count = 1;
	store_client_call(agent, &request->call);
	return now;
}

static struct lost *lost_of(struct health *health, const char *test)
{
	struct lost *lost = (struct lost *)(uintptr_t)dict_get(&health->names, test);

	if (lost)
		return lost;
	lost = arena_alloc(health->arena, sizeof *lost);
	lost->test = arena_strdup(health->arena, test);
	*dict_place(&health->names, lost->test) = lost;
	lost->next = health->lost;
	health->lost = lost;
	return lost;
}

static void lost_add(struct lost *lost, const struct vanished *series)
{
	lost->series = memory_resize(lost->series, lost->count + 1, sizeof *lost->series);
	lost->series[lost->count] = *series;
	lost->series[lost->count].test = lost->test;
	lost->series[lost->count++].series = memory_strdup(series->series);
}

static void count_lost(const struct health *health)
{
	size_t count = 0;

	for (const struct lost *lost = health->lost; lost; lost = lost->next)
		count += lost->count;
	metrics_set(health->agent->metrics, METRIC_VANISHED_SERIES, (double)count, NULL);
}

/* Of tests that have just become ours. */
static void restore(struct health *health, const struct health_rows *rows)
{
	const size_t skip = strlen(FIRST_LOOK);

	for (size_t i = 0; i < rows->moment_count; i++) {
		const struct stored_moment *moment = &rows->moments[i];

		if (strncmp(moment->name, FIRST_LOOK, skip) == 0 &&
			lost_of(health, moment->name + skip)->fresh)
			lost_of(health, moment->name + skip)->since = moment->time;
	}
	for (size_t i = 0; i < rows->vanished_count; i++)
		if (lost_of(health, rows->vanished[i].test)->fresh)
			lost_add(lost_of(health, rows->vanished[i].test), &rows->vanished[i]);
	for (size_t i = 0; i < rows->condition_count; i++)
		if (about_test(rows->conditions[i].kind) &&
			lost_of(health, condition_name(&rows->conditions[i]))->fresh)
			conditions_restore(health->conditions, &rows->conditions[i]);
}

static void note_stale(const struct health *health)
{
	metrics_set(health->agent->metrics, METRIC_STALE_TESTS,
		(double)conditions_stale(health->conditions), NULL);
}

static void judge_sources(void *context)
{
	struct health *health = context;
	struct agent *agent = health->agent;
	int64_t rest = health->changed + SETTLED - engine_now(agent->engine);
	bool settled = rest <= 0;

	/* No agent runs the tests of a shard without a holder. */
	for (int shard = 0; settled && shard < FLEET_SHARDS; shard++)
		settled = fleet_holds(agent, shard) || fleet_holder(agent, shard);
	if (!health->leads || !health->seen || !fleet_holds(agent, FLEET_LEADER))
		return;
	conditions_judge(health->conditions, health->seen->views, health->seen->view_count,
		agent_now(agent), settled, notify_unless_silenced, health);
	if (conditions_wait(health->conditions))
		engine_alarm(agent->engine, &health->settle,
			engine_now(agent->engine) + (rest > 0 ? rest : SETTLED));
}

static void views_read(struct store_views *answer)
{
	struct health *health = answer->call.context;

	if (answer->call.failed) {
		health->rewrite = true;
		store_call_free(&answer->call);
		poll_answered(&health->poll, AGAIN);
		return;
	}
	if (health->seen)
		store_call_free(&health->seen->call);
	health->seen = answer;
	health->changed = engine_now(health->agent->engine);
	conditions_others(health->conditions, answer->views, answer->view_count);
	judge_sources(health);
	poll_answered(&health->poll, WHEN_NEVER);
}

static void ask_views(void *context)
{
	struct health *health = context;
	struct store_views *request = store_views_new(views_read, health);
	uint64_t hash = conditions_views(health->conditions, request);

	request->replaces = health->rewrite || hash != health->written;
	health->written = hash;
	health->rewrite = false;
	store_client_call(health->agent, &request->call);
}

/* This agent's views of sources may be others than the state has. */
static void note_views(struct health *health)
{
	if (fleet_is_shared(health->agent) &&
		conditions_views(health->conditions, NULL) != health->written)
		poll_after(&health->poll, MOMENT);
}

void health_note(struct health *health, const struct test *test, const struct outcome *run)
{
	struct agent *agent = health->agent;
	struct condition turns[CONDITION_TURNS];
	struct outcome outcome = *run;
	size_t count, others = fleet_size(agent);

	outcome.test = test->name;
	outcome.source = condition_source(test);
	outcome.stale_after = test->stale_after;
	outcome.interval = test->interval;
	outcome.since = lost_of(health, test->name)->since;
	outcome.now = agent_now(agent);
	outcome.clock = engine_now(agent->engine);
	if (fleet_is_shared(agent))
		outcome.share = others < CONDITION_TOLD_SINGLY ? CONDITION_TOLD_SINGLY / others : 1;
	count = conditions_note(health->conditions, &outcome, turns);
	for (size_t i = 0; i < count; i++)
		notify_unless_silenced(health, &turns[i]);
	note_views(health);
	if (health->held_count > 0 && (health->held_silences != version_of_silences(health) ||
					      outcome.now >= health->held_until))
		tell_held(health);
	metrics_set(agent->metrics, METRIC_SOURCE_UP,
		conditions_down_since(health->conditions, outcome.source) == 0, outcome.source);
	note_stale(health);
}

struct vanish_rule health_vanish_rule(struct health *health, const struct test *test,
	const struct rhythm_bounds *bounds, struct arena *arena)
{
	struct lost *lost = lost_of(health, test->name);
	int64_t max_age = health->agent->config->agent.max_age;
	struct vanished *told = arena_array(arena, lost->count, sizeof *told);

	if (lost->since == 0)
		lost->since = note_first_look(health->agent, test->name);
	for (size_t i = 0; i < lost->count; i++) {
		told[i] = lost->series[i];
		told[i].series = arena_strdup(arena, told[i].series);
	}
	return (struct vanish_rule){.bounds = *bounds,
		.since = lost->since,
		.oldest = max_age == WHEN_NEVER ? WHEN_ALWAYS : agent_now(health->agent) - max_age,
		.told = told,
		.told_count = lost->count};
}

/* Adds the new state of the series to the request. */
static void store_lost(
	struct store_queue *request, struct lost *lost, const struct vanished *series, size_t count)
{
	request->health.vanished =
		arena_array(request->call.arena, count, sizeof *request->health.vanished);
	for (size_t i = 0; i < count; i++)
		request->health.vanished[i] = (struct vanished){.test = lost->test,
			.series = arena_strdup(request->call.arena, series[i].series),
			.ended = series[i].ended,
			.back = series[i].back};
	request->health.vanished_count = count;
}

static void notify_lost(const struct health *health, const struct test *test, struct lost *lost,
	const struct vanish_news *news)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct notice notice = {.subject = test->name,
		.text = with_doubt(health, vanish_text(news, test->name, request->call.arena),
			request->call.arena),
		.time = news->ended,
		.ended = news->back ? news->since : 0,
		.recovered = news->back};

	fleet_fence_test(health->agent, &request->call, test->name);
	store_lost(request, lost, news->series, news->count);
	for (size_t i = 0; i < news->count; i++) {
		const struct vanished *series = &news->series[i];
		size_t at = 0;

		if (!news->back) {
			lost_add(lost, series);
			continue;
		}
		while (at < lost->count && strcmp(lost->series[at].series, series->series) != 0)
			at++;
		if (at == lost->count)
			continue;
		free((char *)(uintptr_t)lost->series[at].series);
		lost->series[at] = lost->series[--lost->count];
	}
	notify(health, &notice, &test->notify, request);
}

void health_vanished(struct health *health, const struct test *test, const struct vanish_news *news,
	size_t count)
{
	for (size_t i = 0; i < count; i++) {
		/* The next run finds those again that silences cover. */
		bool silenced = !news[i].back;
		int64_t until;

		for (size_t k = 0; silenced && k < news[i].count; k++)
			silenced = is_held(health,
				&(struct silence_target){.test = test->name,
					.source = condition_source(test),
					.series = news[i].series[k].series},
				&until);
		if (!silenced)
			notify_lost(health, test, lost_of(health, test->name), &news[i]);
	}
	if (count > 0)
		count_lost(health);
}

int64_t health_down_since(const struct health *health, const struct test *test)
{
	return conditions_down_since(health->conditions, condition_source(test));
}

bool health_stale(const struct health *health, const struct test *test)
{
	return conditions_test_stale(health->conditions, test->name);
}

/* Names of tests and sources. */
struct names {
	struct health *health;
	struct dict tests, sources;
};

static bool is_named(void *context, bool test, const char *name)
{
	const struct names *names = context;

	return dict_get(test ? &names->tests : &names->sources, name) != NULL;
}

static bool is_source(void *context, const char *name)
{
	return is_named(context, false, name);
}

/* Of a subject that is no longer configured the receivers are unknown: all are notified. */
static void forget(void *context, const struct condition *condition)
{
	const struct names *names = context;
	const struct config *config = names->health->agent->config;
	const char **receivers = memory_new(config->receiver_count, sizeof *receivers);

	for (size_t i = 0; i < config->receiver_count; i++)
		receivers[i] = config->receivers[i].name;
	if (!held_drop(names->health, condition->subject))
		notify_receivers(names->health, condition,
			&(struct strings){receivers, config->receiver_count});
	free(receivers);
}

static void rename_metric(struct lost *lost, const struct rename *rename)
{
	size_t length = strlen(rename->was);

	for (size_t i = 0; i < lost->count; i++) {
		const char *old = lost->series[i].series;
		struct buf now = {0};

		if (strncmp(old, rename->was, length) != 0 || (old[length] && old[length] != '{'))
			continue;
		buf_printf(&now, "%s%s", rename->metric, old + length);
		lost->series[i].series = memory_strdup(now.data);
		buf_free(&now);
		free((char *)(uintptr_t)old);
	}
}

/* Applies the renames that the store applies to its rows to the state in memory. */
static void rename_tests(struct health *health)
{
	const struct config *config = health->agent->config;

	for (size_t i = 0; i < config->rename_count; i++) {
		const struct rename *rename = &config->renames[i];
		struct lost *old, *heir;

		if (rename->metric && dict_get(&health->names, rename->test))
			rename_metric(lost_of(health, rename->test), rename);
		if (rename->metric || !dict_get(&health->names, rename->was))
			continue;
		conditions_rename(health->conditions, rename->was, rename->test);
		old = lost_of(health, rename->was);
		heir = lost_of(health, rename->test);
		if (heir->since != 0)
			continue;
		*heir = (struct lost){.test = heir->test,
			.next = heir->next,
			.ours = old->ours,
			.since = old->since,
			.series = old->series,
			.count = old->count};
		*old = (struct lost){.test = old->test, .next = old->next};
	}
}

static void forget_unconfigured(struct health *health)
{
	const struct config *config =
		health->agent->config; /* all tests, not only the scheduled ones */
	struct arena *arena = arena_new();
	struct names names = {health, {.arena = arena}, {.arena = arena}};

	for (size_t i = 0; i < config->test_count; i++) {
		const struct test *test = &config->tests[i];

		if (!test->source)
			continue;
		*dict_place(&names.tests, test->name) = test;
		*dict_place(&names.sources, condition_source(test)) = test;
	}
	/* That other tests are gone is reported by the agents that would run them. */
	for (const struct lost *lost = health->lost; lost; lost = lost->next)
		if (!fleet_runs(health->agent, lost->test) || !fleet_agrees(health->agent))
			*dict_place(&names.tests, lost->test) = lost;
	conditions_retain(health->conditions, is_named, forget, &names);
	for (struct lost *lost = health->lost; lost; lost = lost->next) {
		struct store_queue *request;

		if (lost->count == 0 || dict_get(&names.tests, lost->test))
			continue;
		for (size_t j = 0; j < lost->count; j++)
			lost->series[j].back = true;
		request = store_queue_new(NULL, NULL);
		fleet_fence_test(health->agent, &request->call, lost->test);
		store_lost(request, lost, lost->series, lost->count);
		store_client_call(health->agent, &request->call);
		lost_clear(lost);
	}
	count_lost(health);
	metrics_retain(health->agent->metrics, METRIC_SOURCE_UP, is_source, &names);
	note_stale(health);
	arena_free(arena);
}

/* Tests that other agents run now are dropped. */
static void drop_others(struct health *health)
{
	const struct config_ref *config_ref = health->agent->config_ref;
	struct arena *arena = arena_new();
	struct names ours = {health, {.arena = arena}, {.arena = arena}};

	for (struct lost *lost = health->lost; lost; lost = lost->next) {
		if (lost->ours && !fleet_has(health->agent, lost->test)) {
			lost_clear(lost);
			*lost = (struct lost){.test = lost->test, .next = lost->next};
		}
		if (lost->ours)
			*dict_place(&ours.tests, lost->test) = lost;
	}
	for (size_t i = 0; i < config_ref->test_count; i++) {
		const struct test *test = config_ref->tests[i];

		if (!test->unsupported && dict_get(&ours.tests, test->name))
			*dict_place(&ours.sources, condition_source(test)) = test;
	}
	for (size_t i = health->held_count; i > 0; i--) {
		const struct condition *condition = &health->held[i - 1];

		if (about_test(condition->kind) ? !dict_get(&ours.tests, condition_name(condition))
						: !health->leads)
			(void)held_drop(health, condition->subject);
	}
	conditions_retain(health->conditions, is_named, NULL, &ours);
	arena_free(arena);
}

/* Takes over the tests that have become ours, and returns one of them, or NULL. Also tests of which
 * something is stored, and which are not configured any more, are somebody's. */
static const char *claim_all(struct health *health, const struct health_rows *rows)
{
	const struct config_ref *config_ref = health->agent->config_ref;
	const char *one = NULL;

	for (size_t i = 0; i < config_ref->test_count; i++)
		if (!config_ref->tests[i]->unsupported)
			(void)lost_of(health, config_ref->tests[i]->name);
	for (size_t i = 0; rows && i < rows->vanished_count; i++)
		(void)lost_of(health, rows->vanished[i].test);
	for (size_t i = 0; rows && i < rows->condition_count; i++)
		if (about_test(rows->conditions[i].kind))
			(void)lost_of(health, condition_name(&rows->conditions[i]));
	for (struct lost *lost = health->lost; lost; lost = lost->next) {
		lost->fresh = !lost->ours && fleet_has(health->agent, lost->test);
		lost->ours |= lost->fresh;
		one = lost->fresh ? lost->test : one;
	}
	return one;
}

void health_move(struct health *health, const struct health_rows *rows)
{
	const struct config_ref *config_ref = health->agent->config_ref;
	const char *one;

	if (fleet_is_shared(health->agent))
		drop_others(health);
	one = claim_all(health, rows);
	if (rows)
		restore(health, rows);
	for (size_t i = 0; i < config_ref->test_count && one; i++) {
		const struct test *test = config_ref->tests[i];

		if (test->unsupported || !lost_of(health, test->name)->fresh)
			continue;
		conditions_expect(health->conditions, test->name, condition_source(test));
	}
	health->rewrite |= one != NULL; /* what was written with a lease that was lost is gone */
	forget_unconfigured(health);
	if (one && fleet_is_shared(health->agent))
		poll_after(&health->poll, MOMENT);
	note_views(health);
}

static void restore_sources(struct health *health, const struct health_rows *rows)
{
	for (size_t i = 0; i < rows->condition_count; i++)
		if (!about_test(rows->conditions[i].kind))
			conditions_restore(health->conditions, &rows->conditions[i]);
}

void health_restore(struct health *health, const struct health_rows *rows)
{
	restore_sources(health, rows);
	health_move(health, rows);
}

void health_lead(struct health *health, const struct health_rows *rows)
{
	health->leads = rows != NULL;
	conditions_clear_reports(health->conditions);
	if (!rows)
		return;
	restore_sources(health, rows);
	health->changed = engine_now(health->agent->engine);
	poll_after(&health->poll, 0);
}

void health_adopt(struct health *health)
{
	rename_tests(health);
	health_move(health, NULL);
}

void health_news(struct health *health, const struct fleet_news *news)
{
	if (news->views == health->views_seen && news->configuration == health->agents_seen)
		return;
	health->views_seen = news->views;
	health->agents_seen = news->configuration;
	health->changed = engine_now(health->agent->engine);
	poll_after(&health->poll, 0);
}
