/*
 * A test that fails is told in the log once, and again when it is well; in between it is a counter.
 * Where a source's range slides, it is asked from a start that stands still for half a range, so
 * that noise does not look new because the detector's windows moved.
 */
#include "agent/watch/watch.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/clock.h"
#include "agent/core/hash.h"
#include "agent/core/when.h"
#include "agent/engine/timers.h"
#include "agent/news/news.h"
#include "agent/select.h"
#include "agent/watch/schedule.h"

enum { FIRST_SPREAD = 20 }; /* ms for each test, after the start */

/* What is remembered of a test from pass to pass. */
struct subject {
	const struct test *test;
	bool failing;
	uint64_t notices; /* hash of those of the last pass */
	uint64_t missed;

	/* What a pass that has its data owns between two places that work on it. */
	struct task *task;           /* while it is not the engine's */
	struct store_request *known; /* what the store knows of the test */
	struct store_request *news;  /* what is to be recorded */
};

struct watch {
	struct agent *agent;
	struct announcer *announcer;
	struct subject *subjects;
	size_t count;
	struct schedule *schedule;
	struct alarm alarm; /* at the next test that is due */
};

/* One test's way through a pass; in the arena of its task. */
struct pass {
	struct watch *watch;
	struct task *task;
	size_t id;
	struct analysis analysis;
	const struct store_request *known;
	struct store_request *news;
	int64_t now, oldest; /* ms, for news_find */
	int64_t started;     /* engine_now */
	double detection;    /* seconds */
};

static void tick(void *context);

struct watch *watch_new(struct agent *agent, struct announcer *announcer,
	const struct test *const *tests, size_t count)
{
	struct watch *watch = memory_new(1, sizeof *watch);

	*watch = (struct watch){.agent = agent,
		.announcer = announcer,
		.subjects = memory_new(count, sizeof *watch->subjects),
		.schedule = schedule_new(),
		.alarm = {.call = tick, .context = watch}};
	for (size_t i = 0; i < count; i++) {
		if (!tests[i]->unsupported) {
			watch->subjects[watch->count++].test = tests[i];
			continue;
		}
		log_event(LEVEL_WARN, "test is not supported", LOG_TEXT("test", tests[i]->name),
			LOG_TEXT("problem", tests[i]->unsupported));
		agent->incomplete = true;
	}
	return watch;
}

static void drop_request(struct store_request **request)
{
	if (*request)
		store_request_free(*request);
	*request = NULL;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	schedule_free(watch->schedule);
	for (size_t i = 0; i < watch->count; i++) {
		drop_request(&watch->subjects[i].known);
		drop_request(&watch->subjects[i].news);
		task_free(watch->subjects[i].task);
	}
	free(watch->subjects);
	free(watch);
}

static bool detect(struct task *task, struct scratch *scratch, struct error *error)
{
	struct pass *pass = task->context;
	int64_t start = clock_monotonic_ns();
	bool done = analysis_run(task->query.arena, pass->watch->agent->schema, task->test,
		&task->query.data, NULL, 0, scratch, &pass->analysis, error);

	pass->detection = 1e-9 * (double)(clock_monotonic_ns() - start);
	return done;
}

static void arm(struct watch *watch);

/* The pass is gone afterwards. */
static void end_pass(struct pass *pass)
{
	struct watch *watch = pass->watch;
	struct agent *agent = watch->agent;
	struct subject *subject = &watch->subjects[pass->id];
	double duration = (double)(engine_now(agent->engine) - pass->started) / 1000;

	metrics_add(agent->metrics, METRIC_RUNS, 1, subject->test->source->name, NULL);
	metrics_observe(
		agent->metrics, METRIC_RUN_DURATION, duration, subject->test->source->name, NULL);
	if (!agent->once) {
		uint64_t missed;

		schedule_done(watch->schedule, pass->id, engine_now(agent->engine));
		missed = schedule_missed(watch->schedule, pass->id);
		metrics_add(agent->metrics, METRIC_MISSED_RUNS, (double)(missed - subject->missed),
			NULL, NULL);
		subject->missed = missed;
		arm(watch);
	}
	subject->task = NULL;
	task_free(pass->task);
	agent_ended(agent);
}

static const char *reason_of(enum error_kind kind)
{
	return kind == ERROR_USAGE ? "configuration" : kind == ERROR_STATE ? "state" : "data";
}

static void fail_pass(struct pass *pass, const struct error *error)
{
	struct agent *agent = pass->watch->agent;
	struct subject *subject = &pass->watch->subjects[pass->id];

	metrics_add(agent->metrics, METRIC_RUN_FAILURES, 1, subject->test->source->name,
		reason_of(error->kind));
	log_event(subject->failing ? LEVEL_DEBUG : LEVEL_WARN, "test failed",
		LOG_TEXT("test", subject->test->name), LOG_TEXT("problem", error->text));
	subject->failing = true;
	agent->misconfigured |= error->kind == ERROR_USAGE;
	agent->incomplete |= error->kind == ERROR_DATA;
	agent->stateless |= error->kind == ERROR_STATE;
	end_pass(pass);
}

static void log_notices(struct pass *pass)
{
	const struct strings *notices = &pass->task->query.notices;
	struct subject *subject = &pass->watch->subjects[pass->id];
	uint64_t hash = notices->count ? HASH_START : 0;

	for (size_t i = 0; i < notices->count; i++)
		hash = hash_add(hash, notices->items[i], strlen(notices->items[i]) + 1);
	for (size_t i = 0; i < notices->count && hash != subject->notices; i++)
		log_event(LEVEL_WARN, notices->items[i], LOG_TEXT("test", subject->test->name));
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
	const struct news_tally *tally = pass->task->result;
	struct agent *agent = pass->watch->agent;

	metrics_add(
		agent->metrics, METRIC_CHANGES_FOUND, (double)request->record_count, NULL, NULL);
	metrics_add(agent->metrics, METRIC_CHANGES,
		(double)(request->record_count + tally->returned), "active", NULL);
	metrics_add(agent->metrics, METRIC_CHANGES, (double)tally->withdrawn, "withdrawn", NULL);
	metrics_add(agent->metrics, METRIC_CHANGES, -(double)tally->withdrawn, "active", NULL);
	metrics_add(agent->metrics, METRIC_CHANGES, -(double)tally->returned, "withdrawn", NULL);
	if (request->record_count + request->update_count == 0)
		return;
	log_event(tally->moved == request->update_count && request->record_count == 0 ? LEVEL_DEBUG
										      : LEVEL_INFO,
		"changes", LOG_TEXT("test", pass->task->test->name), LOG_INT("new", tally->fresh),
		LOG_INT("old", tally->silent), LOG_INT("moved", tally->moved),
		LOG_INT("withdrawn", tally->withdrawn), LOG_INT("returned", tally->returned));
}

/* A pass that went well: what it found is in the store. */
static void note_pass(struct pass *pass, struct store_request *request)
{
	struct agent *agent = pass->watch->agent;
	struct subject *subject = &pass->watch->subjects[pass->id];
	const char *source = subject->test->source->name;

	if (subject->failing)
		log_event(LEVEL_INFO, "test is well again", LOG_TEXT("test", subject->test->name));
	subject->failing = false;
	note_news(pass, request);
	metrics_add(agent->metrics, METRIC_POINTS_READ,
		(double)count_points(&pass->task->query.data), source, NULL);
	metrics_add(agent->metrics, METRIC_DETECTION_SECONDS, pass->detection, NULL, NULL);
	metrics_set(agent->metrics, METRIC_LAST_PASS, (double)agent->now() / 1000, NULL, NULL);
	announcer_add(pass->watch->announcer, request);
	end_pass(pass);
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
	struct news_tally *tally = arena_alloc(task->query.arena, sizeof *tally);

	(void)scratch, (void)error;
	*tally = news_find(&pass->analysis, "", pass->known->records, pass->known->record_count,
		pass->now, pass->oldest, pass->news);
	task->result = tally;
	return true;
}

static void news_found(struct task *task)
{
	struct pass *pass = task->context;
	struct subject *subject = &pass->watch->subjects[pass->id];
	struct store_request *request = subject->news;

	subject->task = task;
	subject->news = NULL;
	drop_request(&subject->known);
	if (request->record_count + request->update_count > 0)
		ledger_ask(pass->watch->agent, request);
	else
		note_pass(pass, request);
}

static void known_read(struct store_request *known)
{
	struct pass *pass = known->context;
	struct agent *agent = pass->watch->agent;
	struct subject *subject = &pass->watch->subjects[pass->id];
	int64_t max_age = agent->config->agent.max_age;

	if (known->failed) {
		fail_pass(pass, &known->error);
		store_request_free(known);
		return;
	}
	pass->now = agent->now();
	pass->oldest = max_age == WHEN_NEVER ? WHEN_ALWAYS : pass->now - max_age;
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

	pass->watch->subjects[pass->id].task = task;
	if (pass->watch->agent->stopping) {
		end_pass(pass);
		return;
	}
	log_notices(pass);
	if (task->failed) {
		fail_pass(pass, &task->error);
		return;
	}
	request = store_request_new(STORE_KNOWN, known_read, pass);
	request->test = task->test->name;
	ledger_ask(pass->watch->agent, request);
}

static void begin_pass(struct watch *watch, size_t id)
{
	struct agent *agent = watch->agent;
	struct task *task = task_new(watch->subjects[id].test, agent->now());
	struct pass *pass = arena_alloc(task->query.arena, sizeof *pass);
	const struct source *source = source_find(task->test->source->name);
	int64_t range = source_range(source, task->test->options);

	*pass = (struct pass){
		.watch = watch, .task = task, .id = id, .started = engine_now(agent->engine)};
	if (range > 0)
		task->query.since = selection_standing_since(task->query.now, range);
	task->work = detect;
	task->done = fetched;
	task->context = pass;
	engine_submit(agent->engine, task);
}

static void tick(void *context)
{
	struct watch *watch = context;
	int64_t now = engine_now(watch->agent->engine), due = schedule_next(watch->schedule);
	size_t id;

	while (!watch->agent->stopping && schedule_take(watch->schedule, now, &id)) {
		metrics_observe(watch->agent->metrics, METRIC_SCHEDULE_LAG,
			(double)(now - due) / 1000, NULL, NULL);
		begin_pass(watch, id);
		due = schedule_next(watch->schedule);
	}
	arm(watch);
}

static void arm(struct watch *watch)
{
	int64_t due = schedule_next(watch->schedule);

	if (!watch->agent->stopping && due != INT64_MAX)
		engine_alarm(watch->agent->engine, &watch->alarm, due);
}

void watch_start(struct watch *watch, const int64_t states[CHANGE_STATES])
{
	struct agent *agent = watch->agent;
	int64_t now = engine_now(agent->engine), spread = FIRST_SPREAD * (int64_t)watch->count;

	metrics_set(agent->metrics, METRIC_TESTS, (double)watch->count, NULL, NULL);
	metrics_set(agent->metrics, METRIC_CHANGES,
		(double)(states[CHANGE_CONFIRMED] + states[CHANGE_MOVED]), "active", NULL);
	metrics_set(agent->metrics, METRIC_CHANGES, (double)states[CHANGE_WITHDRAWN], "withdrawn",
		NULL);
	for (size_t i = 0; i < watch->count; i++) {
		const struct test *test = watch->subjects[i].test;

		if (agent->once)
			begin_pass(watch, i);
		else
			schedule_add(watch->schedule, test->name, test->interval, now,
				spread < test->interval ? spread : test->interval);
	}
	if (!agent->once)
		arm(watch);
}
