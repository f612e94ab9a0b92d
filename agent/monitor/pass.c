/*
 * Each step hands the task on: store (once a test), engine, store, engine, store; those that would
 * find nothing are left out. In between the subject owns it, so that nothing is lost when the
 * program ends at such a place; where the engine or the store has it, they free it. Whether the
 * results are still wanted is asked before each step that would have consequences. What is recorded
 * is always told, as nobody else would before the next start.
 *
 * A test that fails is told in the log once, and again when it is well; in between it is a counter.
 */
#include "agent/monitor/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/clock.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"
#include "agent/monitor/news.h"
#include "agent/monitor/power.h"
#include "agent/monitor/rhythm.h"
#include "detectors/scratch.h"

/* For how long what was measured is good, ms; the part of POWER_STEPS that a pass spends on it. */
#define MEASURED_GOOD INT64_C(432000000)
enum { MEASURED_PART = 8 };

/* In the arena of its task. */
struct pass {
	const struct passes *passes;
	struct agent *agent;
	struct subject *subject;
	const struct test *test; /* of the generation that it began under */
	struct task *task;
	struct analysis analysis;
	struct hindsight **hindsights; /* one for each series, of the subject's memory */
	const struct store_request *known;
	struct store_request *news;
	struct news_clock clock;
	struct run_outcome outcome;
	struct vanish_rule vanish;
	struct vanish_news *vanished; /* of series; on the way to the sentinel */
	size_t vanished_count;
	struct environment_view *view; /* on the way to the announcer's environments; or NULL */
	bool measures;                 /* and the figures, of a pass that does */
	double smallest[PASS_MEASURED];
	size_t measured;
	int64_t max_age;
	int64_t started;  /* engine_now */
	double detection; /* seconds */
	struct news_tally tally;
};

static void drop_request(struct store_request **request)
{
	if (*request)
		store_request_free(*request);
	*request = NULL;
}

static void keep_problem(struct subject *subject, const char *problem)
{
	free(subject->problem);
	subject->problem = problem ? memory_strdup(problem) : NULL;
}

void pass_clear(struct subject *subject)
{
	drop_request(&subject->known);
	drop_request(&subject->news);
	task_free(subject->task);
	subject->task = NULL;
	memory_free(subject->memory);
	subject->memory = NULL;
	subject->read_to = 0;
	subject->measured = 0;
	subject->measured_at = 0;
	keep_problem(subject, NULL);
}

/* What a server sends is not to fill the disk. */
static void cut_series(struct task *task, const struct memory *memory)
{
	size_t most = (size_t)task->test->max_series;
	struct memory_cut cut = memory_cut(memory, task->query.arena, &task->query.data, most);

	if (cut.too_long > 0)
		query_notice(&task->query,
			"series left out, as their names and labels take more than %d bytes: %zu",
			MEMORY_IDENTITY_MAX, cut.too_long);
	if (cut.too_many > 0)
		query_notice(&task->query,
			"series left out, as there are more than max_series (%zu): %zu; those that"
			" are known already stay",
			most, cut.too_many);
}

static bool has_points(const struct dataset *data, const struct metric *metric)
{
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].axis->n > 0 && (!metric || data->series[i].metric == metric))
			return true;
	return false;
}

/* What is not as it should be though the server has answered, or NULL: of several queries each has
 * to give something. A replay's data begin at some time. */
static const char *emptiness(const struct pass *pass, const struct query *query)
{
	const struct test *test = pass->test;

	if (test->allow_empty || pass->agent->stage ||
		source_find(test->source->name)->server_size == 0)
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

/* The larger one of both ways, percent; NaN: it cannot be said. */
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

/* Of series that lie evenly among all. What fails here or takes too long is left out. */
static void measure(struct pass *pass, struct scratch *scratch)
{
	const struct dataset *data = &pass->task->query.data;
	size_t most = data->count < PASS_MEASURED ? data->count : PASS_MEASURED;
	uint64_t limit = scratch_done(scratch) + POWER_STEPS / MEASURED_PART;

	for (size_t i = 0; i < most && scratch_done(scratch) < limit; i++) {
		const struct power_ask ask = {.test = pass->test,
			.data = data,
			.companions = pass->task->companions,
			.series = &data->series[i * data->count / most],
			.max_age = pass->max_age,
			.scratch = scratch,
			.limit = limit};
		struct power power;
		struct error error;

		if (!power_typical(&ask, pass->task->query.arena, &power, &error))
			continue;
		pass->smallest[pass->measured] = smallest_of(&power);
		pass->measured += (size_t)!isnan(pass->smallest[pass->measured]);
	}
}

static bool detect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct pass *pass = task->context;
	int64_t start = clock_monotonic_ns();
	bool done;

	cut_series(task, pass->subject->memory);
	done = memory_detect(pass->subject->memory, task->query.arena, task->test,
		&task->query.data, task->companions, scratch, &pass->analysis, &pass->hindsights,
		error);

	if (done && task->test->environment)
		pass->view = environment_look(&pass->analysis);
	pass->outcome.problem = emptiness(pass, &task->query);
	pass->outcome.answered = true;
	pass->outcome.usual =
		rhythm_of_all(&task->query.data, &pass->vanish.bounds, &pass->outcome.newest);
	if (pass->test->vanished)
		pass->vanished_count = vanish_look(
			&task->query.data, &pass->vanish, task->query.arena, &pass->vanished);
	pass->detection = 1e-9 * (double)(clock_monotonic_ns() - start);
	if (done && pass->measures)
		measure(pass, scratch);
	return done;
}

/* The pass is gone afterwards. */
static void end_pass(struct pass *pass, struct pass_report *report)
{
	const struct passes *passes = pass->passes;
	struct subject *subject = pass->subject;
	struct agent *agent = pass->agent;
	struct task *task = pass->task;

	report->test = pass->test->name;
	report->duration = engine_now(agent->engine) - pass->started;
	subject->task = NULL;
	environment_view_free(pass->view);
	if (subject->dropped) {
		memory_free(subject->memory);
		subject->memory = NULL;
		subject->measured = 0;
		subject->measured_at = 0;
	}
	subject->running = subject->dropped = false;
	subject->last_run = agent_now(agent);
	subject->duration = report->duration;
	passes->done(passes->context, subject, report);
	task_free(task);
	agent_ended(agent);
}

/* A pass that came to an end, good or bad. */
static void finish_pass(struct pass *pass, struct pass_report *report)
{
	const char *source = pass->test->source->name;
	double duration = (double)(engine_now(pass->agent->engine) - pass->started) / 1000;

	metrics_add(pass->agent->metrics, METRIC_RUNS, 1, source, NULL);
	metrics_observe(pass->agent->metrics, METRIC_RUN_DURATION, duration, source, NULL);
	end_pass(pass, report);
}

/* If nobody wants what the pass would do next, it ends here. */
static bool end_unwanted(struct pass *pass)
{
	struct pass_report report = {.failed = true, .problem = "the agent is stopping"};

	if (!pass->agent->stopping && !pass->subject->dropped)
		return false;
	if (!pass->agent->stopping)
		report.problem = "the test was changed or removed meanwhile";
	end_pass(pass, &report);
	return true;
}

static const char *reason_of(enum error_kind kind)
{
	return kind == ERROR_USAGE ? "configuration" : kind == ERROR_STATE ? "state" : "data";
}

static void note_problem(struct pass *pass, const char *problem)
{
	struct subject *subject = pass->subject;

	log_event(subject->failing ? LEVEL_DEBUG : LEVEL_WARN, "test failed",
		LOG_TEXT("test", pass->test->name), LOG_TEXT("problem", problem));
	subject->failing = true;
	keep_problem(subject, problem);
}

static void fail_pass(struct pass *pass, const struct error *error)
{
	struct agent *agent = pass->agent;
	struct subject *subject = pass->subject;
	struct pass_report report = {.failed = true, .problem = error->text};

	metrics_add(agent->metrics, METRIC_RUN_FAILURES, 1, pass->test->source->name,
		reason_of(error->kind));
	note_problem(pass, error->text);
	environments_seen(announcer_environments(pass->passes->announcer), pass->test, NULL);
	if (error->kind != ERROR_STATE && !subject->removed) /* that is ours, not the source's */
		sentinel_note(pass->passes->sentinel, pass->test,
			&(struct run_outcome){.problem = error->text, .newest = WHEN_ALWAYS});
	agent->misconfigured |= error->kind == ERROR_USAGE;
	agent->incomplete |= error->kind == ERROR_DATA;
	agent->stateless |= error->kind == ERROR_STATE;
	finish_pass(pass, &report);
}

/* That nothing came is no warning where it may be so. */
static void log_notices(struct pass *pass)
{
	const struct strings *notices = &pass->task->query.notices;
	struct subject *subject = pass->subject;
	uint64_t hash = notices->count ? HASH_START : 0;
	bool expected = pass->test->allow_empty && !has_points(&pass->task->query.data, NULL);

	for (size_t i = 0; i < notices->count; i++)
		hash = hash_add(hash, notices->items[i], strlen(notices->items[i]) + 1);
	for (size_t i = 0; i < notices->count && hash != subject->notices; i++)
		log_event(expected ? LEVEL_DEBUG : LEVEL_WARN, notices->items[i],
			LOG_TEXT("test", pass->test->name));
	subject->notices = hash;
}

static size_t count_points(const struct dataset *data)
{
	size_t points = 0;

	for (size_t i = 0; i < data->count; i++)
		points += data->series[i].axis->n;
	return points;
}

static void note_news(struct pass *pass, const struct store_request *request)
{
	const struct news_tally *tally = &pass->tally;
	struct agent *agent = pass->agent;

	metrics_add(agent->metrics, METRIC_CHANGES_FOUND, (double)tally->found, NULL, NULL);
	metrics_add(agent->metrics, METRIC_CHANGES_WITHDRAWN, (double)tally->withdrawn, NULL, NULL);
	metrics_add(agent->metrics, METRIC_CHANGES_RECOVERED, (double)tally->recovered, NULL, NULL);
	if (request->record_count + request->update_count == 0)
		return;
	log_event(request->record_count + tally->withdrawn + tally->returned + tally->recovered > 0
			  ? LEVEL_INFO
			  : LEVEL_DEBUG,
		"changes", LOG_TEXT("test", pass->test->name), LOG_INT("new", tally->fresh),
		LOG_INT("old", tally->silent), LOG_INT("candidates", tally->candidates),
		LOG_INT("lost", tally->lost), LOG_INT("moved", tally->moved),
		LOG_INT("withdrawn", tally->withdrawn), LOG_INT("returned", tally->returned),
		LOG_INT("recovered", tally->recovered));
}

static void note_revision(const struct pass *pass)
{
	const struct news_tally *tally = &pass->tally;

	if (tally->revision_new + tally->revision_gone > 0)
		log_event(LEVEL_INFO,
			"this version of the program finds other changes in old points; nothing "
			"is announced of that",
			LOG_TEXT("test", pass->test->name), LOG_INT("new", tally->revision_new),
			LOG_INT("vanished", tally->revision_gone));
}

/* Some query has given no series, which is the test's problem; the others' are well. */
static void note_emptiness(struct pass *pass)
{
	metrics_add(
		pass->agent->metrics, METRIC_RUN_FAILURES, 1, pass->test->source->name, "empty");
	note_problem(pass, pass->outcome.problem);
	pass->agent->incomplete = true;
}

static void note_well(struct subject *subject)
{
	if (subject->failing)
		log_event(LEVEL_INFO, "test recovered", LOG_TEXT("test", subject->test->name));
	subject->failing = false;
	keep_problem(subject, NULL);
}

static void note_presence(const struct pass *pass)
{
	sentinel_note(pass->passes->sentinel, pass->test, &pass->outcome);
	sentinel_vanished(pass->passes->sentinel, pass->test, pass->vanished, pass->vanished_count);
}

/* The last point of the test's grid that there can be by now, ms; 0: it has none, or depends on
 * more than that. */
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

static void note_read(const struct pass *pass)
{
	struct subject *subject = pass->subject;
	int64_t last = last_on_grid(pass->test, pass->task->query.now);

	subject->usual = pass->outcome.usual;
	if (!pass->outcome.problem && last == pass->outcome.newest)
		subject->read_to = last;
}

static void note_measured(const struct pass *pass)
{
	struct subject *subject = pass->subject;

	if (!pass->measures)
		return;
	memcpy(subject->smallest, pass->smallest, sizeof subject->smallest);
	subject->measured = pass->measured;
	subject->measured_at = agent_now(pass->agent);
}

/* A pass that went well: what it found is in the store. Without a request nothing is new. */
static void note_pass(struct pass *pass, struct store_request *request)
{
	struct agent *agent = pass->agent;
	struct subject *subject = pass->subject;
	struct pass_report report = {.series = pass->task->query.data.count,
		.points = count_points(&pass->task->query.data),
		.fresh = pass->tally.fresh,
		.silent = pass->tally.silent,
		.candidates = memory_candidates(subject->memory),
		.moved = pass->tally.moved,
		.withdrawn = pass->tally.withdrawn,
		.returned = pass->tally.returned,
		.written = request && request->record_count + request->update_count > 0,
		.recorded = pass->clock.now};

	report.failed = pass->outcome.problem != NULL;
	report.problem = pass->outcome.problem;
	if (report.failed)
		note_emptiness(pass);
	else
		note_well(subject);
	if (!subject->removed)
		note_presence(pass);
	note_read(pass);
	subject->series = report.series;
	subject->points = report.points;
	note_measured(pass);
	memory_recorded(subject->memory, pass->tally.beyond == 0);
	if (request)
		note_news(pass, request);
	note_revision(pass);
	metrics_add(agent->metrics, METRIC_POINTS_READ, (double)report.points,
		pass->test->source->name, NULL);
	metrics_add(agent->metrics, METRIC_DETECTION_SECONDS, pass->detection, NULL, NULL);
	metrics_set(agent->metrics, METRIC_LAST_PASS, (double)agent_now(agent) / 1000, NULL, NULL);
	environments_seen(announcer_environments(pass->passes->announcer), pass->test, pass->view);
	pass->view = NULL;
	if (request && pass->tally.withdrawn + pass->tally.corrected > 0)
		announcer_withdrawn(pass->passes->announcer, request);
	if (request)
		announcer_add(pass->passes->announcer, request);
	finish_pass(pass, &report);
}

static void recorded(struct store_request *request)
{
	struct pass *pass = request->context;

	if (!request->failed) {
		note_pass(pass, request);
		return;
	}
	fail_pass(pass, &request->error);
	store_request_free(request);
}

/* On a worker: a long series takes a while. */
static bool find_news(struct task *task, struct scratch *scratch, struct error *error)
{
	struct pass *pass = task->context;

	(void)scratch, (void)error;
	pass->tally = news_find(&pass->analysis, pass->hindsights, "", pass->known->records,
		pass->known->record_count, &pass->clock, pass->news);
	return true;
}

/* What is written anyway takes all marks along that have moved. */
static void record(struct pass *pass, struct store_request *request)
{
	bool news = request->record_count + request->update_count > 0;

	request->test = pass->test->name;
	if (memory_marks(pass->subject->memory, request, news) > 0 || news) {
		ledger_ask(pass->agent, request);
		return;
	}
	store_request_free(request);
	note_pass(pass, NULL);
}

static void news_found(struct task *task)
{
	struct pass *pass = task->context;
	struct subject *subject = pass->subject;
	struct store_request *request = subject->news;

	subject->task = task;
	drop_request(&subject->known);
	if (subject->dropped) {
		drop_request(&subject->news);
		(void)end_unwanted(pass);
		return;
	}
	subject->news = NULL;
	record(pass, request);
}

static void known_read(struct store_request *known)
{
	struct pass *pass = known->context;
	struct agent *agent = pass->agent;
	struct subject *subject = pass->subject;
	int64_t max_age = agent->config->agent.max_age;

	if (known->failed) {
		fail_pass(pass, &known->error);
		store_request_free(known);
		return;
	}
	pass->clock.now = agent_now(agent);
	pass->clock.oldest = max_age == WHEN_NEVER ? WHEN_ALWAYS : pass->clock.now - max_age;
	pass->clock.ahead = agent->clock_ahead;
	if (agent->stage && subject->last_run == 0) /* it was found before, by an agent that ran */
		pass->clock.oldest = WHEN_NEVER;
	pass->known = subject->known = known;
	pass->news = subject->news = store_request_new(STORE_RECORD, recorded, pass);
	pass->task->work = find_news;
	pass->task->done = news_found;
	subject->task = NULL;
	engine_work(agent->engine, pass->task);
}

static void fetched(struct task *task)
{
	struct pass *pass = task->context;
	struct store_request *request;

	pass->subject->task = task;
	if (end_unwanted(pass))
		return;
	log_notices(pass);
	if (task->failed) {
		metrics_add(pass->agent->metrics, METRIC_FETCH_ERRORS, 1,
			task->test->server ? task->test->server->name : task->test->source->name,
			task->trouble);
		fail_pass(pass, &task->error);
		return;
	}
	if (memory_settled(pass->subject->memory, agent_now(pass->agent))) {
		record(pass, store_request_new(STORE_RECORD, recorded, pass));
		return;
	}
	request = store_request_new(STORE_KNOWN, known_read, pass);
	request->test = task->test->name;
	ledger_ask(pass->agent, request);
}

/* In the world, beside the schedule's own reads. */
static void submit_companion(void *context, struct task *task)
{
	const struct pass *pass = context;
	struct agent *agent = pass->agent;

	task->release = generation_release_task;
	task->holder = generation_hold(pass->task->holder);
	if (agent->stage)
		agent->stage->look(agent, task);
	else
		engine_submit(agent->engine, task);
}

/* The data of other tests that it needs is there, or could not be read. */
static void submit(struct task *task)
{
	struct pass *pass = task->context;

	if (task->failed || pass->agent->stopping || pass->subject->dropped) {
		fetched(task);
		return;
	}
	pass->subject->task = NULL;
	if (pass->agent->stage)
		pass->agent->stage->fetch(pass->agent, task);
	else
		engine_submit(pass->agent->engine, task);
}

static void fetch(struct pass *pass)
{
	struct task *task = pass->task;
	int64_t range = source_range(source_find(pass->test->source->name), pass->test->options);
	int64_t since = memory_begin(pass->subject->memory, task->query.now, range);

	if (range > 0)
		task->query.since = since;
	companions_fetch(&(struct companions_way){.submit = submit_companion, .context = pass},
		task, submit);
}

static void marks_read(struct store_request *marks)
{
	struct pass *pass = marks->context;

	if (marks->failed) {
		fail_pass(pass, &marks->error);
	} else if (!end_unwanted(pass)) {
		memory_restore(pass->subject->memory, marks->marks, marks->mark_count);
		fetch(pass);
	}
	store_request_free(marks);
}

static void begin_pass(const struct passes *passes, struct subject *subject)
{
	struct agent *agent = passes->agent;
	struct task *task = task_new(subject->test, agent_now(agent));
	struct pass *pass = arena_alloc(task->query.arena, sizeof *pass);
	struct store_request *marks;

	*pass = (struct pass){.passes = passes,
		.agent = agent,
		.subject = subject,
		.test = subject->test,
		.task = task,
		.measures =
			agent->measures && agent_now(agent) - subject->measured_at >= MEASURED_GOOD,
		.max_age = agent->config->agent.max_age,
		.started = engine_now(agent->engine)};
	if (task->test->evaluation_delay > 0)
		task->query.until = task->query.now - task->test->evaluation_delay;
	pass->vanish = sentinel_vanish_rule(passes->sentinel, pass->test,
		&(struct rhythm_bounds){.interval = pass->test->interval,
			.step = source_step(
				source_find(pass->test->source->name), pass->test->options),
			.delay = pass->test->evaluation_delay},
		task->query.arena);
	task->work = detect;
	task->done = fetched;
	task->context = pass;
	task->release = generation_release_task;
	task->holder = generation_hold(agent->generation);
	subject->running = true;
	subject->task = task;
	if (!subject->memory)
		subject->memory = memory_make();
	if (memory_restored(subject->memory)) {
		fetch(pass);
		return;
	}
	marks = store_request_new(STORE_MARKS, marks_read, pass);
	marks->test = subject->test->name;
	ledger_ask(agent, marks);
}

/* True if a pass of the subject could read nothing but what the last one has read. Whoever asks for
 * a pass gets one, and a replay has its own time. */
static bool has_nothing_new(const struct passes *passes, const struct subject *subject)
{
	return subject->read_to > 0 && !subject->beside && !subject->served &&
	       !passes->agent->stage && subject->memory && memory_done(subject->memory) &&
	       last_on_grid(subject->test, agent_now(passes->agent)) == subject->read_to;
}

static void skip_pass(const struct passes *passes, struct subject *subject)
{
	struct agent *agent = passes->agent;
	const char *source = subject->test->source->name;

	metrics_add(agent->metrics, METRIC_RUNS, 1, source, NULL);
	metrics_add(agent->metrics, METRIC_RUNS_SKIPPED, 1, source, NULL);
	metrics_set(agent->metrics, METRIC_LAST_PASS, (double)agent_now(agent) / 1000, NULL, NULL);
	sentinel_note(passes->sentinel, subject->test,
		&(struct run_outcome){
			.unasked = true, .newest = subject->read_to, .usual = subject->usual});
	subject->last_run = agent_now(agent);
	subject->duration = 0;
	passes->done(passes->context, subject,
		&(struct pass_report){.test = subject->test->name,
			.series = subject->series,
			.points = subject->points,
			.recorded = subject->last_run});
}

void pass_begin(const struct passes *passes, struct subject *subject)
{
	if (has_nothing_new(passes, subject)) {
		skip_pass(passes, subject);
		return;
	}
	subject->read_to = 0;
	begin_pass(passes, subject);
}
