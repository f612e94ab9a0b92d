/*
 * A limited number of tests is fetched at a time. The worker that parses an answer copies the
 * series out of it, and the copies are joined in the order of the tests when all have arrived, so
 * that the clusters do not depend on the order of the answers. What a run owns between two steps
 * is freed with it if the program ends there.
 */
#include "agent/monitor/cluster_run.h"

#include <stdlib.h>

#include "agent/core/clock.h"
#include "agent/core/when.h"
#include "agent/engine/parallel.h"

enum { WINDOW = 32 };

/* One test of the run. */
struct slot {
	struct cluster_run *run;
	struct shapes *piece; /* its series; NULL: reading failed */
};

struct cluster_run {
	struct cluster_begin given;
	struct config_ref *config_ref;
	struct arena *arena;
	const struct test **tests;
	size_t test_count;
	struct slot *slots;
	size_t submitted, waiting, failed;
	struct error error;        /* of the first test that failed */
	struct store_known *known; /* what the store knows of the group */
	struct store_record *news; /* the records to write */
	struct shapes *shapes;     /* all series */
	struct shape_report report;
	struct team team;
	struct news_clock clock;
	double seconds; /* seconds spent clustering */
};

void cluster_run_free(struct cluster_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; i < run->test_count; i++)
		shapes_free(run->slots[i].piece);
	shapes_free(run->shapes);
	if (run->known)
		store_call_free(&run->known->call);
	if (run->news)
		store_call_free(&run->news->call);
	config_ref_release(run->config_ref);
	arena_free(run->arena);
}

static void end(struct cluster_run *run, const char *problem)
{
	struct cluster_begin given = run->given;
	struct metrics *metrics = given.agent->metrics;
	char text[ERROR_TEXT];

	metrics_add(metrics, METRIC_RUNS, 1, "cluster", NULL);
	metrics_observe(metrics, METRIC_RUN_DURATION,
		(double)(engine_now(given.agent->engine) - given.job->started) / 1000, "cluster",
		NULL);
	if (problem)
		snprintf(text, sizeof text, "%s", problem);
	cluster_run_free(run);
	given.done(given.context, problem ? text : NULL);
	agent_ended(given.agent);
}

/* Ends the run if its results are not wanted any more; true if it has ended. */
static bool end_unwanted(struct cluster_run *run)
{
	if (!run->given.agent->stopping && !scheduled_job_dropped(run->given.job))
		return false;
	end(run, run->given.agent->stopping ? "the agent is stopping" : "the cluster was changed");
	return true;
}

static void fail(struct cluster_run *run, const char *problem, const char *reason)
{
	metrics_add(run->given.agent->metrics, METRIC_RUN_FAILURES, 1, "cluster", reason);
	end(run, problem);
}

static void note_found(const struct cluster_run *run, const struct store_record *request)
{
	struct metrics *metrics = run->given.agent->metrics;

	metrics_add(metrics, METRIC_DETECTION_SECONDS, run->seconds, NULL, NULL);
	metrics_add(metrics, METRIC_CHANGES_FOUND, (double)request->records.count, NULL, NULL);
	log_event(request->records.count > 0 ? LEVEL_INFO : LEVEL_DEBUG, "clusters",
		LOG_TEXT("group", run->given.group->name), LOG_INT("series", run->report.series),
		LOG_INT("left_out", run->report.left_out), LOG_INT("failed_tests", run->failed),
		LOG_INT("moved", run->report.count), LOG_INT("new", request->records.count));
}

static void recorded(struct store_record *request)
{
	struct cluster_run *run = request->call.context;

	if (request->call.failed) {
		fail(run, request->call.error.text, "state");
		store_call_free(&request->call);
		return;
	}
	note_found(run, request);
	dispatcher_note(run->given.dispatcher, request);
	store_call_free(&request->call);
	end(run, NULL);
}

static void join_pieces(struct cluster_run *run)
{
	run->shapes = shapes_new();
	for (size_t i = 0; i < run->test_count; i++) {
		if (run->slots[i].piece)
			shapes_join(run->shapes, run->slots[i].piece);
		run->slots[i].piece = NULL;
	}
}

/* Clusters the series. Runs on a worker. */
static void find(void *context)
{
	struct cluster_run *run = context;
	const struct cluster_begin *given = &run->given;
	struct parallel parallel = team_parallel(&run->team);
	int64_t start = clock_monotonic_ns();

	join_pieces(run);
	shapes_find(
		run->shapes, given->group->cluster->options, &parallel, run->arena, &run->report);
	cluster_news(given->group->name, &run->report, run->known->records.items,
		run->known->records.count, &run->clock, given->cache, run->news);
	run->seconds = 1e-9 * (double)(clock_monotonic_ns() - start);
}

static void found(void *context)
{
	struct cluster_run *run = context;
	struct store_record *request = run->news;

	if (end_unwanted(run))
		return;
	run->news = NULL;
	if (request->records.count + request->update_count > 0) {
		store_client_call(run->given.agent, &request->call);
		return;
	}
	note_found(run, request);
	store_call_free(&request->call);
	end(run, NULL);
}

static void known_read(struct store_known *known)
{
	struct cluster_run *run = known->call.context;
	struct agent *agent = run->given.agent;
	int64_t max_age = agent->config->agent.max_age;

	run->known = known;
	if (known->call.failed) {
		fail(run, known->call.error.text, "state");
		return;
	}
	if (end_unwanted(run))
		return;
	run->clock.now = agent_now(agent);
	run->clock.oldest = max_age == WHEN_NEVER ? WHEN_ALWAYS : run->clock.now - max_age;
	run->clock.ahead = agent->clock_ahead;
	if (run->given.silent)
		run->clock.oldest = WHEN_NEVER;
	run->news = store_record_new(recorded, run);
	run->news->test = run->given.group->name;
	run->team.threads = (size_t)agent->config->agent.jobs;
	engine_compute(agent->engine, find, found, run);
}

/* Called when all tests have answered or failed. */
static void complete(struct cluster_run *run)
{
	const struct cluster_begin *given = &run->given;
	struct store_known *known;

	if (end_unwanted(run))
		return;
	if (2 * run->failed > run->test_count) {
		error_prefix(&run->error, "%zu of %zu tests failed; the first: ", run->failed,
			run->test_count);
		fail(run, run->error.text, "data");
		return;
	}
	known = store_known_new(known_read, run);
	known->test = given->group->name;
	store_client_call(given->agent, &known->call);
}

/* Runs on a worker. */
static bool collect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct slot *slot = task->context;

	(void)scratch, (void)error;
	slot->piece = shapes_new();
	shapes_add(slot->piece, task->test->name, &task->query.data);
	return true;
}

static void submit_next(struct cluster_run *run);

static void fetched(struct task *task)
{
	struct slot *slot = task->context;
	struct cluster_run *run = slot->run;

	if (task->failed && run->failed++ == 0)
		run->error = task->error;
	if (task->failed)
		log_event(LEVEL_DEBUG, "test failed", LOG_TEXT("group", run->given.group->name),
			LOG_TEXT("test", task->test->name), LOG_TEXT("problem", task->error.text));
	task_free(task);
	run->waiting--;
	if (!scheduled_job_dropped(run->given.job) && !run->given.agent->stopping)
		submit_next(run);
	if (run->waiting == 0)
		complete(run);
}

static void submit_next(struct cluster_run *run)
{
	struct agent *agent = run->given.agent;
	const struct test *test;
	struct task *task;
	int64_t range;

	if (run->submitted == run->test_count)
		return;
	test = run->tests[run->submitted];
	task = task_new(test, agent_now(agent));
	range = source_range(source_find(test->source->name), test->options);
	if (range > 0)
		task->query.since = task->query.now - range;
	if (test->evaluation_delay > 0)
		task->query.until = task->query.now - test->evaluation_delay;
	task->work = collect;
	task->done = fetched;
	task->context = &run->slots[run->submitted++];
	task->release = config_ref_release_task;
	task->holder = config_ref_hold(run->config_ref);
	run->waiting++;
	if (agent->simulation)
		agent->simulation->look(agent, task);
	else
		engine_submit(agent->engine, task);
}

struct cluster_run *cluster_run_begin(const struct cluster_begin *begin)
{
	struct arena *arena = arena_new();
	struct cluster_run *run = arena_alloc(arena, sizeof *run);
	const struct test **tests = arena_array(arena, begin->job->test_count, sizeof *tests);

	*run = (struct cluster_run){.given = *begin,
		.config_ref = config_ref_hold(begin->agent->config_ref),
		.arena = arena,
		.tests = tests,
		.test_count = begin->job->test_count,
		.slots = arena_array(arena, begin->job->test_count, sizeof *run->slots)};
	for (size_t i = 0; i < run->test_count; i++) {
		tests[i] = begin->job->tests[i];
		run->slots[i].run = run;
	}
	while (run->submitted < run->test_count && run->submitted < WINDOW)
		submit_next(run);
	return run;
}
