/*
 * A window of tests is under way at a time. Each test's series are copied out of its answer on the
 * worker that parsed it, and joined in the order of the tests when all are there, so that the
 * clusters do not depend on who answered first. What a pass owns between two places that work on it
 * is freed with it if the program ends there.
 */
#include "agent/monitor/cluster_pass.h"

#include <stdlib.h>

#include "agent/core/clock.h"
#include "agent/core/when.h"
#include "agent/engine/parallel.h"

enum { WINDOW = 32 };

/* A test of the pass. */
struct slot {
	struct cluster_pass *pass;
	struct shapes *piece; /* its series; NULL: it could not be read */
};

struct cluster_pass {
	struct cluster_begin given;
	struct generation *generation;
	struct arena *arena;
	struct slot *slots;
	size_t submitted, waiting, failed;
	bool dropped;
	struct error error;          /* of the first test that failed */
	struct store_request *known; /* what the store knows of the group */
	struct store_request *news;  /* what is to be recorded */
	struct shapes *shapes;       /* all series */
	struct shape_report report;
	struct team team;
	struct news_clock clock;
	int64_t started; /* engine_now */
	double seconds;  /* of clustering */
};

void cluster_pass_free(struct cluster_pass *pass)
{
	if (!pass)
		return;
	for (size_t i = 0; i < pass->given.test_count; i++)
		shapes_free(pass->slots[i].piece);
	shapes_free(pass->shapes);
	if (pass->known)
		store_request_free(pass->known);
	if (pass->news)
		store_request_free(pass->news);
	generation_release(pass->generation);
	arena_free(pass->arena);
}

void cluster_pass_drop(struct cluster_pass *pass)
{
	pass->dropped = true;
}

static void end(struct cluster_pass *pass, const char *problem)
{
	struct cluster_begin given = pass->given;
	struct metrics *metrics = given.agent->metrics;
	char text[ERROR_TEXT];

	metrics_add(metrics, METRIC_RUNS, 1, "cluster", NULL);
	metrics_observe(metrics, METRIC_RUN_DURATION,
		(double)(engine_now(given.agent->engine) - pass->started) / 1000, "cluster", NULL);
	if (problem)
		snprintf(text, sizeof text, "%s", problem);
	cluster_pass_free(pass);
	given.done(given.context, problem ? text : NULL);
	agent_ended(given.agent);
}

/* If nobody wants what the pass would do next, it ends here. */
static bool end_unwanted(struct cluster_pass *pass)
{
	if (!pass->given.agent->stopping && !pass->dropped)
		return false;
	end(pass, pass->given.agent->stopping ? "the agent is stopping" : "it was changed");
	return true;
}

static void fail(struct cluster_pass *pass, const char *problem, const char *reason)
{
	metrics_add(pass->given.agent->metrics, METRIC_RUN_FAILURES, 1, "cluster", reason);
	end(pass, problem);
}

static void note_found(const struct cluster_pass *pass, const struct store_request *request)
{
	struct metrics *metrics = pass->given.agent->metrics;

	metrics_add(metrics, METRIC_DETECTION_SECONDS, pass->seconds, NULL, NULL);
	metrics_add(metrics, METRIC_CHANGES_FOUND, (double)request->record_count, NULL, NULL);
	log_event(request->record_count > 0 ? LEVEL_INFO : LEVEL_DEBUG, "clusters",
		LOG_TEXT("group", pass->given.group->name), LOG_INT("series", pass->report.series),
		LOG_INT("left_out", pass->report.left_out), LOG_INT("failed_tests", pass->failed),
		LOG_INT("moved", pass->report.count), LOG_INT("new", request->record_count));
}

static void recorded(struct store_request *request)
{
	struct cluster_pass *pass = request->context;

	if (request->failed) {
		fail(pass, request->error.text, "state");
		store_request_free(request);
		return;
	}
	note_found(pass, request);
	announcer_add(pass->given.announcer, request);
	end(pass, NULL);
}

static void join_pieces(struct cluster_pass *pass)
{
	pass->shapes = shapes_new();
	for (size_t i = 0; i < pass->given.test_count; i++) {
		if (pass->slots[i].piece)
			shapes_join(pass->shapes, pass->slots[i].piece);
		pass->slots[i].piece = NULL;
	}
}

/* On a worker. */
static void find(void *context)
{
	struct cluster_pass *pass = context;
	const struct cluster_begin *given = &pass->given;
	struct parallel parallel = team_parallel(&pass->team);
	int64_t start = clock_monotonic_ns();

	join_pieces(pass);
	shapes_find(pass->shapes, given->group->cluster->options, &parallel, pass->arena,
		&pass->report);
	cluster_news(given->group->name, &pass->report, pass->known->records,
		pass->known->record_count, &pass->clock, given->memory, pass->news);
	pass->seconds = 1e-9 * (double)(clock_monotonic_ns() - start);
}

static void found(void *context)
{
	struct cluster_pass *pass = context;
	struct store_request *request = pass->news;

	if (end_unwanted(pass))
		return;
	pass->news = NULL;
	if (request->record_count + request->update_count > 0) {
		ledger_ask(pass->given.agent, request);
		return;
	}
	note_found(pass, request);
	store_request_free(request);
	end(pass, NULL);
}

static void known_read(struct store_request *known)
{
	struct cluster_pass *pass = known->context;
	struct agent *agent = pass->given.agent;
	int64_t max_age = agent->config->agent.max_age;

	pass->known = known;
	if (known->failed) {
		fail(pass, known->error.text, "state");
		return;
	}
	if (end_unwanted(pass))
		return;
	pass->clock.now = agent_now(agent);
	pass->clock.oldest = max_age == WHEN_NEVER ? WHEN_ALWAYS : pass->clock.now - max_age;
	pass->clock.ahead = agent->clock_ahead;
	if (pass->given.silent)
		pass->clock.oldest = WHEN_NEVER;
	pass->news = store_request_new(STORE_RECORD, recorded, pass);
	pass->news->test = pass->given.group->name;
	pass->team.threads = (size_t)agent->config->agent.jobs;
	engine_compute(agent->engine, find, found, pass);
}

/* All tests have answered or failed. */
static void complete(struct cluster_pass *pass)
{
	const struct cluster_begin *given = &pass->given;
	struct store_request *request;

	if (end_unwanted(pass))
		return;
	if (2 * pass->failed > given->test_count) {
		error_prefix(&pass->error,
			"%zu of %zu tests cannot be read, the first: ", pass->failed,
			given->test_count);
		fail(pass, pass->error.text, "data");
		return;
	}
	request = store_request_new(STORE_KNOWN, known_read, pass);
	request->test = given->group->name;
	ledger_ask(given->agent, request);
}

/* On a worker. */
static bool collect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct slot *slot = task->context;

	(void)scratch, (void)error;
	slot->piece = shapes_new();
	shapes_add(slot->piece, task->test->name, &task->query.data);
	return true;
}

static void submit_next(struct cluster_pass *pass);

static void fetched(struct task *task)
{
	struct slot *slot = task->context;
	struct cluster_pass *pass = slot->pass;

	if (task->failed && pass->failed++ == 0)
		pass->error = task->error;
	if (task->failed)
		log_event(LEVEL_DEBUG, "test failed", LOG_TEXT("group", pass->given.group->name),
			LOG_TEXT("test", task->test->name), LOG_TEXT("problem", task->error.text));
	task_free(task);
	pass->waiting--;
	if (!pass->dropped && !pass->given.agent->stopping)
		submit_next(pass);
	if (pass->waiting == 0)
		complete(pass);
}

static void submit_next(struct cluster_pass *pass)
{
	struct agent *agent = pass->given.agent;
	const struct test *test;
	struct task *task;
	int64_t range;

	if (pass->submitted == pass->given.test_count)
		return;
	test = pass->given.tests[pass->submitted];
	task = task_new(test, agent_now(agent));
	range = source_range(source_find(test->source->name), test->options);
	if (range > 0)
		task->query.since = task->query.now - range;
	if (test->evaluation_delay > 0)
		task->query.until = task->query.now - test->evaluation_delay;
	task->work = collect;
	task->done = fetched;
	task->context = &pass->slots[pass->submitted++];
	task->release = generation_release_task;
	task->holder = generation_hold(pass->generation);
	pass->waiting++;
	if (agent->stage)
		agent->stage->look(agent, task);
	else
		engine_submit(agent->engine, task);
}

struct cluster_pass *cluster_pass_begin(const struct cluster_begin *begin)
{
	struct arena *arena = arena_new();
	struct cluster_pass *pass = arena_alloc(arena, sizeof *pass);
	const struct test **tests = arena_array(arena, begin->test_count, sizeof *tests);

	*pass = (struct cluster_pass){.given = *begin,
		.generation = generation_hold(begin->agent->generation),
		.arena = arena,
		.slots = arena_array(arena, begin->test_count, sizeof *pass->slots),
		.started = engine_now(begin->agent->engine)};
	pass->given.tests = tests;
	for (size_t i = 0; i < begin->test_count; i++) {
		tests[i] = begin->tests[i];
		pass->slots[i].pass = pass;
	}
	while (pass->submitted < begin->test_count && pass->submitted < WINDOW)
		submit_next(pass);
	return pass;
}
