/*
 * A run hands its task to the engine, which fetches and detects on a worker. If that shows nothing
 * new, at most checkpoints are written; else recording.c reads what is known, matches on a worker,
 * and writes. The first run of a test reads its checkpoints before. In between the run owns the
 * task, so that nothing leaks when the program ends there; while the engine has it, that frees it.
 * Before each step with consequences the run checks whether its results are still wanted. Recorded
 * changes are always passed to the dispatcher, since nobody else would announce them before the
 * next start.
 *
 * A failing test is logged once, and again when it has recovered; failures in between are only
 * counted.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/environment.h"
#include "agent/base/clock.h"
#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/fleet/tests.h"
#include "agent/monitor/confirmation.h"
#include "agent/monitor/news.h"
#include "agent/monitor/power.h"
#include "agent/monitor/rhythm.h"
#include "agent/monitor/scheduled_job.h"
#include "agent/monitor/series_cache.h"
#include "agent/runtime/events.h"
#include "detectors/scratch.h"

/* For how long a measured smallest change is valid, ms; the fraction of POWER_STEPS that a run
 * spends on measuring. */
#define MEASURED_GOOD INT64_C(432000000)
enum {
	MEASURED_PART = 8,
	DOUBTED = 10, /* intervals for which missing data are not reported while the clock is wrong,
			 ... */
	MOST_DOUBTED = 3600000 /* ... and ms, at most */
};

/* Owns what it points to, and nothing of it while the engine or the store has it. */
struct test_run {
	struct recording recording; /* its first member */
	const struct run_context *runs;
	struct agent *agent;
	struct monitored_test *monitored; /* whose cache is the run's until its end */
	struct config_ref *config_ref;    /* that it began under */
	const struct test *test;          /* of that configuration */
	struct task *task;
	struct analysis analysis;
	struct realignment **realignments; /* one for each series; owned by the series cache */
	struct outcome outcome;
	struct vanish_rule vanish;
	struct vanish_news *vanished; /* of series; to be passed to health */
	size_t vanished_count;
	const char *seen; /* of a test with an environment: what it saw; or NULL */
	bool awaited;     /* a change waits, which may be for that */
	bool measures;    /* this run measures the smallest change */
	double smallest[RUN_MEASURED];
	size_t measured;
	int64_t max_age;
	double detection; /* seconds */
	uint64_t triages; /* agent_triages before it asked the store */
	struct news_tally tally;
};

static void free_run(struct test_run *run)
{
	if (!run)
		return;
	recording_free(&run->recording);
	task_free(run->task);
	config_ref_release(run->config_ref);
	free(run);
}

static void keep_problem(struct monitored_test *monitored, const char *problem)
{
	free(monitored->problem);
	monitored->problem = problem ? memory_strdup(problem) : NULL;
}

void test_job_forget_seen(struct scheduled_job *job)
{
	struct monitored_test *monitored = (struct monitored_test *)job;

	if (monitored->unwritten)
		store_call_free(&monitored->unwritten->call);
	monitored->unwritten = NULL;
}

static void clear(struct scheduled_job *job)
{
	struct monitored_test *monitored = (struct monitored_test *)job;

	series_cache_free(monitored->cache);
	monitored->cache = NULL;
	monitored->read_to = 0;
	monitored->measured = 0;
	monitored->measured_at = 0;
	monitored->notices = 0;
	monitored->newest = WHEN_ALWAYS;
	keep_problem(monitored, NULL);
	test_job_forget_seen(job);
}

static bool has_points(const struct dataset *data, const struct metric *metric)
{
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].axis->n > 0 && (!metric || data->series[i].metric == metric))
			return true;
	return false;
}

/* Which query returned no series although the server answered, or NULL: each of several queries has
 * to return some. A simulation's data may begin later. */
static const char *emptiness(const struct test_run *run, const struct query *query)
{
	const struct test *test = run->test;

	if (test->allow_empty || run->agent->simulation || test->source->server_size == 0)
		return NULL;
	if (!has_points(&query->data, NULL))
		return query->notices.count == 1
			       ? arena_printf(query->arena, "the query returns no series: %s",
					 query->notices.items[0])
			       : "the query returns no series";
	for (size_t i = 0; i < test->metric_count; i++)
		if (test->metrics[i].query && !has_points(&query->data, &test->metrics[i]))
			return arena_printf(query->arena,
				"the query of metric \"%s\" returns no series",
				test->metrics[i].name);
	return NULL;
}

/* The larger of the two directions, percent; NaN: unknown. */
static double smallest_of(const struct power *power)
{
	const struct power_side *sides[] = {&power->up, &power->down};
	double smallest = (double)NAN;

	for (size_t i = 0; i < 2; i++) {
		double size = isnan(sides[i]->smallest) ? HUGE_VAL : sides[i]->smallest;

		if (sides[i]->cut ||
			(isnan(sides[i]->smallest) && sides[i]->tries[0].held_until != 0))
			return (double)NAN;
		if (!sides[i]->anyway && !(size < smallest))
			smallest = size;
	}
	return smallest;
}

/* Measures series that are evenly spread over all of them. One that fails or takes too long is left
 * out. */
static void measure(struct test_run *run, const struct task *task, struct scratch *scratch)
{
	const struct dataset *data = &task->query.data;
	size_t most = data->count < RUN_MEASURED ? data->count : RUN_MEASURED;
	uint64_t limit = scratch_done(scratch) + POWER_STEPS / MEASURED_PART;

	for (size_t i = 0; i < most && scratch_done(scratch) < limit; i++) {
		const struct power_request ask = {.test = run->test,
			.data = data,
			.companions = task->companions,
			.series = run->analysis.findings[i * data->count / most].series,
			.max_age = run->max_age,
			.scratch = scratch,
			.limit = limit};
		struct power power;
		struct error error;

		if (!power_typical(&ask, task->query.arena, &power, &error))
			continue;
		run->smallest[run->measured] = smallest_of(&power);
		run->measured += (size_t)!isnan(run->smallest[run->measured]);
	}
}

static bool detect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct test_run *run = task->context;
	struct series_cache *cache = run->monitored->cache;
	int64_t start = clock_monotonic_ns();
	size_t most = (size_t)task->test->max_series;
	/* So that a server cannot fill the disk. */
	struct series_cache_cut cut =
		series_cache_cut(cache, task->query.arena, &task->query.data, most);
	bool done;

	if (cut.too_long > 0)
		query_notice(&task->query,
			"%zu series dropped: their names and labels exceed %d bytes", cut.too_long,
			SERIES_CACHE_IDENTITY_MAX);
	if (cut.too_many > 0)
		query_notice(&task->query,
			"%zu series dropped: max_series (%zu) exceeded; known series are kept "
			"first",
			cut.too_many, most);
	done = series_cache_detect(cache, task->query.arena, task->test, &task->query.data,
		task->companions, scratch, &run->analysis, &run->realignments, error);
	if (done && task->test->environment)
		run->seen = environment_view_put(
			task->query.arena, environment_look(task->query.arena, &run->analysis));
	run->outcome.problem = emptiness(run, &task->query);
	run->outcome.answered = true;
	run->outcome.usual =
		rhythm_of_all(&task->query.data, &run->vanish.bounds, &run->outcome.newest);
	if (run->test->vanished)
		run->vanished_count = vanish_find(
			&task->query.data, &run->vanish, task->query.arena, &run->vanished);
	run->detection = 1e-9 * (double)(clock_monotonic_ns() - start);
	if (done && run->measures)
		measure(run, task, scratch);
	return done;
}

/* Frees the run. */
static void end_run(struct test_run *run, struct run_report *report)
{
	struct monitored_test *monitored = run->monitored;
	struct agent *agent = run->agent;

	report->test = run->test->name;
	report->duration = engine_now(agent->engine) - monitored->job.started;
	monitored->run = NULL;
	monitored->last_run = agent_now(agent);
	monitored->duration = report->duration;
	scheduled_job_ended(&monitored->job, report);
	free_run(run);
	agent_ended(agent);
}

/* Ends a run that has come to an end, successful or not. */
static void finish_run(struct test_run *run, struct run_report *report)
{
	const char *source = run->test->source->name;
	double duration =
		(double)(engine_now(run->agent->engine) - run->monitored->job.started) / 1000;

	metrics_add(run->agent->metrics, METRIC_RUNS, 1, source);
	metrics_observe(run->agent->metrics, METRIC_RUN_DURATION, duration, source);
	end_run(run, report);
}

/* Ends the run if its results are not wanted any more; true if it has ended. */
static bool end_unwanted(void *context)
{
	struct test_run *run = context;
	struct run_report report = {.failed = true, .problem = "the agent is stopping"};

	if (!run->agent->stopping && !scheduled_job_dropped(&run->monitored->job))
		return false;
	if (!run->agent->stopping)
		report.problem = "the test was changed or removed during the run";
	end_run(run, &report);
	return true;
}

/* Still, and by this agent. */
static bool is_monitored(const struct test_run *run)
{
	enum scheduled_job_state state = run->monitored->job.state;

	return state != JOB_REMOVED && state != JOB_LOST;
}

static const char *reason_of(enum error_kind kind)
{
	return kind == ERROR_USAGE ? "configuration" : kind == ERROR_STATE ? "state" : "data";
}

static void note_problem(struct test_run *run, const char *problem)
{
	struct monitored_test *monitored = run->monitored;

	log_event(monitored->problem ? LEVEL_DEBUG : LEVEL_WARN, "test failed",
		LOG_TEXT("test", run->test->name), LOG_TEXT("problem", problem));
	if (!monitored->problem || strcmp(monitored->problem, problem) != 0)
		events_test(run->agent, run->test->name, true, problem);
	keep_problem(monitored, problem);
}

static struct seen_run *seen_by(const struct test_run *run, struct arena *arena)
{
	struct seen_run *seen = arena_alloc(arena, sizeof *seen);

	*seen = (struct seen_run){.test = arena_strdup(arena, run->test->name),
		.label = arena_strdup(arena, run->test->environment),
		.ended = run->recording.clock.now,
		.text = arena_strdup(arena, run->seen)};
	return seen;
}

static void seen_written(struct store_record *request)
{
	if (!request->call.failed)
		agent_recorded(request->call.context, request);
	store_call_free(&request->call);
}

void test_job_write(struct scheduled_job *job)
{
	struct monitored_test *monitored = (struct monitored_test *)job;
	struct store_record *request = monitored->unwritten;
	struct agent *agent = job->context->agent;

	if (!request)
		return;
	monitored->unwritten = NULL;
	fleet_fence_test(agent, &request->call, job->name);
	store_client_call(agent, &request->call);
}

/* What the run of a test with an environment saw, and did not write, is written once a change
 * waits, which may be for it. A run that has seen nothing leaves what the one before saw. */
static void keep_seen(const struct test_run *run)
{
	struct monitored_test *monitored = run->monitored;

	if (!run->test->environment)
		return;
	if (run->seen)
		test_job_forget_seen(&monitored->job);
	if (!monitored->unwritten) {
		monitored->unwritten = store_record_new(seen_written, run->agent);
		monitored->unwritten->seen = seen_by(run, monitored->unwritten->call.arena);
	}
	monitored->unwritten->seen->ended = agent_now(run->agent);
	if (run->agent->due.changes > 0)
		test_job_write(&monitored->job);
}

static void fail_run(struct test_run *run, const struct error *error)
{
	struct agent *agent = run->agent;
	struct run_report report = {.failed = true, .problem = error->text};

	metrics_count(agent->metrics, METRIC_RUN_FAILURES, run->test->source->name,
		reason_of(error->kind));
	note_problem(run, error->text);
	keep_seen(run);
	if (error->kind != ERROR_STATE && is_monitored(run)) /* else it is our store that fails */
		health_note(run->runs->health, run->test,
			&(struct outcome){.problem = error->text,
				.begun = run->outcome.begun,
				.newest = WHEN_ALWAYS});
	agent->misconfigured |= error->kind == ERROR_USAGE;
	agent->incomplete |= error->kind == ERROR_DATA;
	agent->stateless |= error->kind == ERROR_STATE;
	finish_run(run, &report);
}

/* In a fleet the state cannot be used, which says nothing about the test, or another agent has
 * taken it over. */
static void fail_for_state(struct test_run *run, const struct store_call *call)
{
	if (!fleet_is_shared(run->agent)) {
		fail_run(run, call->error);
		return;
	}
	metrics_count(run->agent->metrics, METRIC_RUN_FAILURES, run->test->source->name, "state");
	end_run(run, &(struct run_report){.failed = true,
			     .unrecorded = true,
			     .problem = call->fenced ? "another agent has taken over the test"
						     : call->error->text});
}

/* Missing data is not a warning where it is allowed. */
static void log_notices(struct test_run *run)
{
	const struct strings *notices = &run->task->query.notices;
	struct monitored_test *monitored = run->monitored;
	uint64_t hash = notices->count ? HASH_START : 0;
	bool expected = run->test->allow_empty && !has_points(&run->task->query.data, NULL);

	for (size_t i = 0; i < notices->count; i++)
		hash = hash_add(hash, notices->items[i], strlen(notices->items[i]) + 1);
	for (size_t i = 0; i < notices->count && hash != monitored->notices; i++)
		log_event(expected ? LEVEL_DEBUG : LEVEL_WARN, notices->items[i],
			LOG_TEXT("test", run->test->name));
	monitored->notices = hash;
	run->agent->incomplete |= run->task->query.incomplete;
}

static void note_news(struct test_run *run)
{
	const struct store_record *request = run->recording.news;
	const struct news_tally *tally = &run->tally;
	struct agent *agent = run->agent;

	if (tally->revision_new + tally->revision_gone > 0)
		log_event(LEVEL_INFO,
			"detector revision changed: new changes in old points are not announced",
			LOG_TEXT("test", run->test->name), LOG_INT("new", tally->revision_new),
			LOG_INT("vanished", tally->revision_gone));
	metrics_add(agent->metrics, METRIC_CHANGES_FOUND, (double)tally->found, NULL);
	metrics_add(agent->metrics, METRIC_CHANGES_WITHDRAWN, (double)tally->withdrawn, NULL);
	metrics_add(agent->metrics, METRIC_CHANGES_RECOVERED, (double)tally->recovered, NULL);
	if (request->records.count + request->update_count == 0)
		return;
	log_event(request->records.count + tally->withdrawn + tally->returned + tally->recovered > 0
			  ? LEVEL_INFO
			  : LEVEL_DEBUG,
		"changes", LOG_TEXT("test", run->test->name), LOG_INT("new", tally->fresh),
		LOG_INT("old", tally->silent), LOG_INT("candidates", tally->candidates),
		LOG_INT("lost", tally->lost), LOG_INT("moved", tally->moved),
		LOG_INT("withdrawn", tally->withdrawn), LOG_INT("returned", tally->returned),
		LOG_INT("recovered", tally->recovered));
}

/* The last point that the test's grid can have by now, ms; 0: no grid, or depends on more than
 * that. */
static int64_t last_on_grid(const struct test *test, int64_t now)
{
	int64_t step = source_step(source_find(test->source->name), test->options);
	int64_t last = test->evaluation_delay > 0 ? now - test->evaluation_delay - 1 : now;

	if (step <= 0 || last <= 0 || test->detection.control)
		return 0;
	for (size_t i = 0; i < test->metric_count; i++)
		if (test->detections[i].control)
			return 0;
	return last - last % step;
}

/* Notes whether the test has data. A query without series is a failure of the test; its other
 * series are processed. */
static void note_data(struct test_run *run)
{
	struct monitored_test *monitored = run->monitored;
	const struct outcome *outcome = &run->outcome;
	int64_t last = last_on_grid(run->test, run->task->query.now);
	int64_t now = engine_now(run->agent->engine), interval = run->test->interval;

	if (outcome->problem) {
		metrics_count(
			run->agent->metrics, METRIC_RUN_FAILURES, run->test->source->name, "empty");
		note_problem(run, outcome->problem);
		run->agent->incomplete = true;
	} else if (monitored->problem) {
		log_event(LEVEL_INFO, "test recovered", LOG_TEXT("test", run->test->name));
		events_test(run->agent, run->test->name, false, NULL);
		keep_problem(monitored, NULL);
	}
	/* While the clock is wrong the queries are for another time: empty or old answers prove
	 * nothing about the data. But the server's clock may be the wrong one, or ours may never
	 * be corrected, so after a while they are reported nevertheless. */
	if (run->agent->clock_ahead == 0 || outcome->newest > monitored->newest)
		monitored->doubted = 0;
	else if (monitored->doubted == 0)
		monitored->doubted = now > 0 ? now : 1;
	if (is_monitored(run) &&
		(monitored->doubted == 0 ||
			now - monitored->doubted >= (interval < MOST_DOUBTED / DOUBTED
								    ? DOUBTED * interval
								    : MOST_DOUBTED))) {
		health_note(run->runs->health, run->test, outcome);
		health_vanished(run->runs->health, run->test, run->vanished, run->vanished_count);
	}
	monitored->usual = outcome->usual;
	if (!outcome->problem && last == outcome->newest)
		monitored->read_to = last;
	if (outcome->newest != WHEN_ALWAYS)
		monitored->newest = outcome->newest;
}

/* Notes a successful run, whose findings are in the store. */
static void note_success(struct test_run *run)
{
	const struct store_record *request = run->recording.news;
	struct agent *agent = run->agent;
	struct monitored_test *monitored = run->monitored;
	const struct dataset *data = &run->task->query.data;
	struct run_report report = {.failed = run->outcome.problem != NULL,
		.problem = run->outcome.problem,
		.series = data->count,
		.fresh = run->tally.fresh,
		.silent = run->tally.silent,
		.candidates = series_cache_candidates(monitored->cache),
		.moved = run->tally.moved,
		.withdrawn = run->tally.withdrawn,
		.returned = run->tally.returned,
		.written = request->records.count + request->update_count > 0,
		.recorded = run->recording.clock.now};

	for (size_t i = 0; i < data->count; i++)
		report.points += data->series[i].axis->n;
	note_data(run);
	monitored->series = report.series;
	monitored->points = report.points;
	if (run->measures) {
		memcpy(monitored->smallest, run->smallest, sizeof monitored->smallest);
		monitored->measured = run->measured;
		monitored->measured_at = agent_now(agent);
	}
	series_cache_recorded(monitored->cache, run->tally.beyond == 0);
	monitored->triages = run->triages;
	note_news(run);
	metrics_add(
		agent->metrics, METRIC_POINTS_READ, (double)report.points, run->test->source->name);
	metrics_add(agent->metrics, METRIC_DETECTION_SECONDS, run->detection, NULL);
	metrics_set(agent->metrics, METRIC_LAST_PASS, (double)agent_now(agent) / 1000, NULL);
	if (!request->seen)
		keep_seen(run);
	finish_run(run, &report);
}

static void recorded(struct recording *recording, const struct store_call *failed)
{
	struct test_run *run = (struct test_run *)recording;

	if (failed)
		fail_for_state(run, failed);
	else
		note_success(run);
}

/* On a worker, since a long series takes a while; without `known` there is nothing new. If anything
 * is written, all checkpoints that have moved are written with it. So is what it saw, also if a
 * change waits, which may be for it. */
static void match(void *context)
{
	struct test_run *run = context;
	const struct store_known *known = run->recording.known;
	struct store_record *request = run->recording.news;

	if (known)
		run->tally = news_find(&run->analysis, run->realignments, known->records.items,
			known->records.count, &run->recording.clock, request);
	series_cache_checkpoints(
		run->monitored->cache, request, request->records.count + request->update_count > 0);
	if (run->seen && (known || request->checkpoints.count > 0 || run->awaited))
		request->seen = seen_by(run, request->call.arena);
}

static void fetched(struct task *task)
{
	struct test_run *run = task->context;

	run->task = task;
	if (end_unwanted(run))
		return;
	if (!task->failed)
		confirmation_notice(run->test, &task->query);
	log_notices(run);
	if (task->failed) {
		metrics_count(run->agent->metrics, METRIC_FETCH_ERRORS,
			condition_source(task->test), task->trouble);
		fail_run(run, &task->error);
		return;
	}
	/* Noted before the read: triage that comes in between makes the next run look again. */
	run->triages = agent_triages(run->agent, task->test->name);
	run->awaited = run->agent->due.changes > 0;
	recording_begin(&run->recording, run->monitored->last_run == 0,
		run->triages == run->monitored->triages &&
			series_cache_settled(run->monitored->cache, agent_now(run->agent)));
}

/* Submitted through the simulation if there is one, independently of the schedule. */
static void submit_companion(void *context, struct task *task)
{
	const struct test_run *run = context;
	struct agent *agent = run->agent;

	config_ref_hold_for(run->config_ref, task);
	if (agent->simulation)
		agent->simulation->look(agent, task);
	else
		engine_submit(agent->engine, task);
}

/* The data of other tests that it needs have been read, or could not be. */
static void submit(struct task *task)
{
	struct test_run *run = task->context;

	if (task->failed || run->agent->stopping || scheduled_job_dropped(&run->monitored->job)) {
		fetched(task);
		return;
	}
	run->task = NULL;
	if (run->agent->simulation)
		run->agent->simulation->fetch(run->agent, task);
	else
		engine_submit(run->agent->engine, task);
}

static void fetch(struct test_run *run)
{
	struct task *task = run->task;
	int64_t range = source_range(source_find(run->test->source->name), run->test->options);
	int64_t since = series_cache_begin(run->monitored->cache, task->query.now, range);

	if (range > 0)
		task->query.since = since;
	companions_fetch(
		&(struct companions_way){.submit = submit_companion, .context = run}, task, submit);
}

static void checkpoints_read(struct store_checkpoints *found)
{
	struct test_run *run = found->call.context;

	if (found->call.failed) {
		fail_for_state(run, &found->call);
	} else if (!end_unwanted(run)) {
		series_cache_restore(
			run->monitored->cache, found->checkpoints.items, found->checkpoints.count);
		fetch(run);
	}
	store_call_free(&found->call);
}

/* True if a run could only repeat the last one. On-demand runs always read; a simulation has its
 * own time. */
static bool has_nothing_new(const struct monitored_test *monitored)
{
	const struct scheduled_job *job = &monitored->job;
	const struct agent *agent = job->context->agent;

	return monitored->read_to > 0 && !job->on_demand && !job->served && !agent->simulation &&
	       monitored->cache && series_cache_done(monitored->cache) &&
	       last_on_grid(monitored->test, agent_now(agent)) == monitored->read_to;
}

static void skip_run(struct monitored_test *monitored)
{
	const struct run_context *runs = monitored->job.context;
	struct agent *agent = runs->agent;
	const char *source = monitored->test->source->name;

	metrics_add(agent->metrics, METRIC_RUNS, 1, source);
	metrics_add(agent->metrics, METRIC_RUNS_SKIPPED, 1, source);
	metrics_set(agent->metrics, METRIC_LAST_PASS, (double)agent_now(agent) / 1000, NULL);
	health_note(runs->health, monitored->test,
		&(struct outcome){
			.unasked = true, .newest = monitored->read_to, .usual = monitored->usual});
	monitored->last_run = agent_now(agent);
	monitored->duration = 0;
	scheduled_job_ended(&monitored->job, &(struct run_report){.test = monitored->test->name,
						     .series = monitored->series,
						     .points = monitored->points,
						     .recorded = monitored->last_run});
}

static void begin_run(struct scheduled_job *job)
{
	struct monitored_test *monitored = (struct monitored_test *)job;
	const struct run_context *runs = job->context;
	struct agent *agent = runs->agent;
	struct store_checkpoints *checkpoints;
	struct test_run *run;
	struct task *task;

	if (has_nothing_new(monitored)) {
		skip_run(monitored);
		return;
	}
	monitored->read_to = 0;
	task = task_new(monitored->test, agent_now(agent));
	run = memory_new(1, sizeof *run);
	*run = (struct test_run){.recording = {.job = job,
					 .name = monitored->test->name,
					 .unwanted = end_unwanted,
					 .match = match,
					 .done = recorded},
		.runs = runs,
		.agent = agent,
		.monitored = monitored,
		.config_ref = config_ref_hold(agent->config_ref),
		.test = monitored->test,
		.task = task,
		.outcome = {.begun = job->started},
		.measures = agent->measures &&
			    agent_now(agent) - monitored->measured_at >= MEASURED_GOOD,
		.max_age = agent->config->agent.max_age};
	if (task->test->evaluation_delay > 0)
		task->query.until = task->query.now - task->test->evaluation_delay;
	run->vanish = health_vanish_rule(runs->health, run->test,
		&(struct rhythm_bounds){.interval = run->test->interval,
			.step = source_step(
				source_find(run->test->source->name), run->test->options),
			.delay = run->test->evaluation_delay},
		task->query.arena);
	task->work = detect;
	task->done = fetched;
	task->context = run;
	config_ref_hold_for(run->config_ref, task);
	monitored->run = run;
	if (!monitored->cache)
		monitored->cache = series_cache_make();
	if (series_cache_restored(monitored->cache)) {
		fetch(run);
		return;
	}
	checkpoints = store_checkpoints_new(checkpoints_read, run);
	checkpoints->test = monitored->test->name;
	store_client_call(agent, &checkpoints->call);
}

static void adopt(struct scheduled_job *job, struct scheduled_job *now)
{
	((struct monitored_test *)job)->test = ((struct monitored_test *)now)->test;
}

static void free_test(struct scheduled_job *job)
{
	struct monitored_test *monitored = (struct monitored_test *)job;

	free_run(monitored->run);
	clear(job);
	free(monitored);
}

static const struct job_kind test_job = {
	.of_test = true, .begin = begin_run, .adopt = adopt, .clear = clear, .free = free_test};

struct scheduled_job *test_job_new(const struct run_context *context, const struct test *test)
{
	struct monitored_test *monitored = memory_new(1, sizeof *monitored);

	*monitored = (struct monitored_test){.job = {.context = context,
						     .kind = &test_job,
						     .name = test->name,
						     .interval = test->interval,
						     .shard = fleet_shard_of_test(test->name),
						     .fingerprint = test->fingerprint,
						     .tests = &monitored->test,
						     .test_count = 1},
		.test = test,
		.newest = WHEN_ALWAYS};
	return &monitored->job;
}
