/*
 * Monitored tests are kept in order of their names, in which those of a new configuration are
 * merged with them. One that is removed during its run moves to a list until the run has ended.
 * Each has an id in the schedule, except in a single pass (`once`), which has no schedule.
 */
#include "agent/monitor/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "agent/engine/timers.h"
#include "agent/monitor/schedule.h"
#include "agent/monitor/test_run.h"

enum {
	FIRST_SPREAD = 20, /* ms for each new test */
	MOST_BESIDE = 64,  /* on-demand runs at a time */
	MOST_WAITERS = 32, /* for the next run of a test */
};

/* A caller that waits for the end of a run. */
struct waiter {
	scheduler_run_done *done;
	void *context;
	struct waiter *next;
};

struct scheduler {
	struct agent *agent;
	struct run_context runs;
	struct monitored_test **monitored_tests; /* sorted by name */
	size_t count;
	struct monitored_test *leaving;    /* removed, and still running */
	struct monitored_test **scheduled; /* by id */
	size_t scheduled_room;
	struct schedule *schedule;
	struct alarm alarm;                        /* for the next test that is due */
	struct monitored_test *asked, **asked_end; /* queue of on-demand runs */
	size_t beside;                             /* on-demand runs in progress */
	bool started;
};

static void tick(void *context);
static void pass_done(
	void *context, struct monitored_test *monitored, const struct run_report *report);

struct scheduler *scheduler_new(struct agent *agent, struct dispatcher *dispatcher,
	const struct test *const *tests, size_t count)
{
	struct scheduler *watch = memory_new(1, sizeof *watch);

	*watch = (struct scheduler){.agent = agent,
		.runs = {agent, dispatcher, health_new(agent, dispatcher), pass_done, watch},
		.schedule = schedule_new(),
		.alarm = {.call = tick, .context = watch}};
	watch->asked_end = &watch->asked;
	scheduler_adopt(watch, tests, count);
	return watch;
}

static void free_waiters(struct waiter *waiter)
{
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		free(waiter);
	}
}

static void free_subject(struct monitored_test *monitored)
{
	free_waiters(monitored->waiting);
	free_waiters(monitored->served);
	test_run_clear(monitored);
	free(monitored);
}

void scheduler_free(struct scheduler *watch)
{
	if (!watch)
		return;
	schedule_free(watch->schedule);
	for (size_t i = 0; i < watch->count; i++)
		free_subject(watch->monitored_tests[i]);
	for (struct monitored_test *next, *at = watch->leaving; at; at = next) {
		next = at->next;
		free_subject(at);
	}
	health_free(watch->runs.health);
	free(watch->monitored_tests);
	free(watch->scheduled);
	free(watch);
}

static void arm(struct scheduler *watch)
{
	int64_t due = schedule_next(watch->schedule);

	if (!watch->agent->stopping && due != INT64_MAX)
		engine_alarm(watch->agent->engine, &watch->alarm, due);
}

/* Calls everybody in the list, which is empty afterwards. */
static void answer(struct waiter **waiters, const struct run_report *report)
{
	struct waiter *waiter = *waiters;

	*waiters = NULL;
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		waiter->done(waiter->context, report);
		free(waiter);
	}
}

static void line_up(struct scheduler *watch, struct monitored_test *monitored)
{
	if (monitored->asked_at)
		return;
	monitored->asked = NULL;
	monitored->asked_at = watch->asked_end;
	*watch->asked_end = monitored;
	watch->asked_end = &monitored->asked;
}

static void leave_line(struct scheduler *watch, struct monitored_test *monitored)
{
	if (!monitored->asked_at)
		return;
	*monitored->asked_at = monitored->asked;
	if (monitored->asked)
		monitored->asked->asked_at = monitored->asked_at;
	else
		watch->asked_end = monitored->asked_at;
	monitored->asked_at = NULL;
}

static void begin(struct scheduler *watch, struct monitored_test *monitored)
{
	leave_line(watch, monitored);
	monitored->served = monitored->waiting;
	monitored->waiting = NULL;
	monitored->again = false;
	test_run_begin(&watch->runs, monitored);
}

static void begin_asked(struct scheduler *watch)
{
	while (watch->asked && watch->beside < MOST_BESIDE && !watch->agent->stopping) {
		struct monitored_test *monitored = watch->asked;

		monitored->beside = true;
		watch->beside++;
		schedule_pick(watch->schedule, monitored->id);
		begin(watch, monitored);
	}
}

static void leave(struct scheduler *watch, struct monitored_test *monitored)
{
	struct monitored_test **at = &watch->leaving;

	while (*at != monitored)
		at = &(*at)->next;
	*at = monitored->next;
	free_subject(monitored);
}

static void note_missed(struct scheduler *watch, struct monitored_test *monitored)
{
	uint64_t missed =
		schedule_missed(watch->schedule, monitored->id, engine_now(watch->agent->engine));

	if (missed <= monitored->missed)
		return; /* another interval means another grid */
	metrics_add(watch->agent->metrics, METRIC_MISSED_RUNS, (double)(missed - monitored->missed),
		NULL, NULL);
	monitored->missed = missed;
}

/* When a run of the test counts as finished. */
static int64_t rest_of(struct agent *agent, const struct test *test)
{
	return agent->simulation ? agent->simulation->rest(agent, test) : engine_now(agent->engine);
}

static void go_on(struct scheduler *watch, struct monitored_test *monitored)
{
	schedule_done(watch->schedule, monitored->id, rest_of(watch->agent, monitored->test));
	note_missed(watch, monitored);
	if (monitored->again && !watch->agent->stopping) {
		schedule_pick(watch->schedule, monitored->id);
		begin(watch, monitored);
	}
	arm(watch);
}

static void pass_done(
	void *context, struct monitored_test *monitored, const struct run_report *report)
{
	struct scheduler *watch = context;

	watch->beside -= monitored->beside;
	monitored->beside = false;
	answer(&monitored->served, report);
	if (monitored->removed) {
		answer(&monitored->waiting, report);
		leave(watch, monitored);
	} else if (!watch->agent->once) {
		go_on(watch, monitored);
	}
	begin_asked(watch);
}

static void tick(void *context)
{
	struct scheduler *watch = context;
	int64_t now = engine_now(watch->agent->engine), due = schedule_next(watch->schedule);
	size_t id;

	while (!watch->agent->stopping && schedule_take(watch->schedule, now, &id)) {
		metrics_observe(watch->agent->metrics, METRIC_SCHEDULE_LAG,
			(double)(now - due) / 1000, NULL, NULL);
		begin(watch, watch->scheduled[id]);
		due = schedule_next(watch->schedule);
	}
	arm(watch);
}

static void schedule_subject(
	struct scheduler *watch, struct monitored_test *monitored, int64_t within)
{
	const struct test *test = monitored->test;

	monitored->id = schedule_add(watch->schedule, test->name, test->interval,
		engine_now(watch->agent->engine), within);
	watch->scheduled = memory_grow(watch->scheduled, &watch->scheduled_room, monitored->id + 1,
		sizeof *watch->scheduled);
	watch->scheduled[monitored->id] = monitored;
}

/* Adds new tests to the schedule, spread over the first moments. */
static void begin_watching(struct scheduler *watch, size_t fresh)
{
	metrics_set(watch->agent->metrics, METRIC_TESTS, (double)watch->count, NULL, NULL);
	for (size_t i = 0; i < watch->count; i++) {
		struct monitored_test *monitored = watch->monitored_tests[i];

		if (!monitored->fresh)
			continue;
		monitored->fresh = false;
		if (watch->agent->once)
			begin(watch, monitored);
		else
			schedule_subject(watch, monitored, FIRST_SPREAD * (int64_t)fresh);
	}
	if (!watch->agent->once)
		arm(watch);
}

void scheduler_start(struct scheduler *watch, const struct store_request *restored)
{
	health_restore(watch->runs.health, restored);
	watch->started = true;
	begin_watching(watch, watch->count);
}

/* Whether the test means the same in the new configuration. */
static bool same_meaning(const struct test *before, const struct test *now)
{
	return before->fingerprint == now->fingerprint;
}

static void remove_subject(struct scheduler *watch, struct monitored_test *monitored)
{
	if (watch->started)
		schedule_remove(watch->schedule, monitored->id);
	if (!monitored->running) {
		leave_line(watch, monitored);
		answer(&monitored->waiting, &(struct run_report){.test = monitored->test->name,
						    .failed = true,
						    .problem = "the test was removed"});
		free_subject(monitored);
		return;
	}
	monitored->removed = monitored->dropped = true;
	monitored->next = watch->leaving;
	watch->leaving = monitored;
}

/* The results of the current run are not wanted any more: another run, of the test as it is now,
 * follows for those who wait, too. */
static void rerun(struct monitored_test *monitored)
{
	struct waiter **end = &monitored->served;

	while (*end)
		end = &(*end)->next;
	*end = monitored->waiting;
	monitored->waiting = monitored->served;
	monitored->served = NULL;
	monitored->dropped = monitored->again = true;
}

static void adopt_test(
	struct scheduler *watch, struct monitored_test *monitored, const struct test *test)
{
	bool same = same_meaning(monitored->test, test);

	if (watch->started && monitored->test->interval != test->interval)
		schedule_change(watch->schedule, monitored->id, test->interval,
			engine_now(watch->agent->engine));
	monitored->test = test;
	if (same)
		return;
	if (monitored->running)
		rerun(monitored);
	else
		test_run_clear(monitored);
	monitored->failing = false;
	monitored->notices = 0;
}

static int compare_tests(const void *a, const void *b)
{
	const struct test *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* The tests that can run, in order of their names. The caller frees the array. */
static const struct test **order_tests(
	struct agent *agent, const struct test *const *tests, size_t *count)
{
	const struct test **ordered = memory_new(*count, sizeof *ordered);
	size_t kept = 0;

	for (size_t i = 0; i < *count; i++) {
		if (!tests[i]->unsupported) {
			ordered[kept++] = tests[i];
			continue;
		}
		log_event(LEVEL_WARN, "test is not supported", LOG_TEXT("test", tests[i]->name),
			LOG_TEXT("problem", tests[i]->unsupported));
		agent->incomplete = true;
	}
	qsort(ordered, kept, sizeof *ordered, compare_tests);
	*count = kept;
	return ordered;
}

/* Merges the tests into the monitored tests; both are in order of names. Returns how many are
 * new. */
static size_t merge(struct scheduler *watch, const struct test *const *tests, size_t count)
{
	struct monitored_test **merged = memory_new(count, sizeof *merged);
	size_t old = 0, fresh = 0;

	for (size_t i = 0; i < count; i++) {
		int order = 1;

		for (; old < watch->count; old++) {
			order = strcmp(watch->monitored_tests[old]->test->name, tests[i]->name);
			if (order >= 0)
				break;
			remove_subject(watch, watch->monitored_tests[old]);
		}
		if (old < watch->count && order == 0) {
			merged[i] = watch->monitored_tests[old++];
			adopt_test(watch, merged[i], tests[i]);
			continue;
		}
		merged[i] = memory_new(1, sizeof **merged);
		merged[i]->test = tests[i];
		merged[i]->fresh = true;
		fresh++;
	}
	for (; old < watch->count; old++)
		remove_subject(watch, watch->monitored_tests[old]);
	free(watch->monitored_tests);
	watch->monitored_tests = merged;
	watch->count = count;
	return fresh;
}

void scheduler_adopt(struct scheduler *watch, const struct test *const *tests, size_t count)
{
	const struct test **ordered = order_tests(watch->agent, tests, &count);
	size_t fresh = merge(watch, ordered, count);

	free(ordered);
	if (!watch->started)
		return;
	health_adopt(watch->runs.health);
	begin_watching(watch, fresh);
}

static struct monitored_test *find_subject(const struct scheduler *watch, const char *name)
{
	size_t low = 0, high = watch->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(watch->monitored_tests[middle]->test->name, name);

		if (order == 0)
			return watch->monitored_tests[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Why an on-demand run is refused, or NULL. */
static const char *refusal(
	const struct scheduler *watch, const struct monitored_test *monitored, bool waits)
{
	size_t waiting = 0;

	if (watch->agent->stopping)
		return "the agent is stopping";
	if (!watch->started || watch->agent->once)
		return "the agent is starting";
	for (const struct waiter *at = monitored->waiting; waits && at; at = at->next)
		waiting++;
	return waiting >= MOST_WAITERS ? "too many pending requests for this test" : NULL;
}

bool scheduler_run_now(
	struct scheduler *watch, const char *test, scheduler_run_done *done, void *context)
{
	struct monitored_test *monitored = find_subject(watch, test);
	const char *problem = monitored ? refusal(watch, monitored, done != NULL) : NULL;

	if (!monitored)
		return false;
	if (problem) {
		if (done)
			done(context, &(struct run_report){.test = monitored->test->name,
					      .failed = true,
					      .problem = problem});
		return true;
	}
	if (done) {
		struct waiter *waiter = memory_new(1, sizeof *waiter);

		*waiter = (struct waiter){done, context, monitored->waiting};
		monitored->waiting = waiter;
	}
	if (monitored->running)
		monitored->again = true;
	else
		line_up(watch, monitored);
	begin_asked(watch);
	return true;
}

bool scheduler_source_up(const struct scheduler *watch, const char *source)
{
	return health_up(watch->runs.health, source);
}

bool scheduler_stale(const struct scheduler *watch, const char *test)
{
	return health_stale(watch->runs.health, test);
}

void scheduler_collect(struct scheduler *watch)
{
	for (size_t i = 0; watch->started && !watch->agent->once && i < watch->count; i++)
		note_missed(watch, watch->monitored_tests[i]);
}

void scheduler_each(const struct scheduler *watch,
	void (*call)(void *context, const struct scheduler_test *state), void *context)
{
	int64_t now = engine_now(watch->agent->engine), wall = agent_now(watch->agent);

	for (size_t i = 0; i < watch->count; i++) {
		const struct monitored_test *monitored = watch->monitored_tests[i];
		int64_t due = watch->started && !watch->agent->once
				      ? schedule_due(watch->schedule, monitored->id)
				      : INT64_MAX;

		call(context, &(struct scheduler_test){.test = monitored->test,
				      .running = monitored->running,
				      .failing = monitored->failing,
				      .problem = monitored->problem,
				      .last_run = monitored->last_run,
				      .next_due = due == INT64_MAX ? due : wall + (due - now),
				      .duration = monitored->duration,
				      .series = monitored->series,
				      .points = monitored->points,
				      .smallest = monitored->smallest,
				      .measured = monitored->measured});
	}
}
