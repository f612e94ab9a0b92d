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
	FIRST_SPREAD = 20,   /* ms for each new test */
	MOST_ON_DEMAND = 64, /* on-demand runs at a time */
	MOST_WAITERS = 32,   /* for the next run of a test */
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
	size_t on_demand;                          /* on-demand runs in progress */
	bool started;
};

static void tick(void *context);
static void pass_done(
	void *context, struct monitored_test *monitored, const struct run_report *report);

struct scheduler *scheduler_new(struct agent *agent, struct dispatcher *dispatcher,
	const struct test *const *tests, size_t count)
{
	struct scheduler *scheduler = memory_new(1, sizeof *scheduler);

	*scheduler = (struct scheduler){.agent = agent,
		.runs = {agent, dispatcher, health_new(agent, dispatcher), pass_done, scheduler},
		.schedule = schedule_new(),
		.alarm = {.call = tick, .context = scheduler}};
	scheduler->asked_end = &scheduler->asked;
	scheduler_adopt(scheduler, tests, count);
	return scheduler;
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

void scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return;
	schedule_free(scheduler->schedule);
	for (size_t i = 0; i < scheduler->count; i++)
		free_subject(scheduler->monitored_tests[i]);
	for (struct monitored_test *next, *at = scheduler->leaving; at; at = next) {
		next = at->next;
		free_subject(at);
	}
	health_free(scheduler->runs.health);
	free(scheduler->monitored_tests);
	free(scheduler->scheduled);
	free(scheduler);
}

static void arm(struct scheduler *scheduler)
{
	int64_t due = schedule_next(scheduler->schedule);

	if (!scheduler->agent->stopping && due != INT64_MAX)
		engine_alarm(scheduler->agent->engine, &scheduler->alarm, due);
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

static void line_up(struct scheduler *scheduler, struct monitored_test *monitored)
{
	if (monitored->asked_at)
		return;
	monitored->asked = NULL;
	monitored->asked_at = scheduler->asked_end;
	*scheduler->asked_end = monitored;
	scheduler->asked_end = &monitored->asked;
}

static void leave_line(struct scheduler *scheduler, struct monitored_test *monitored)
{
	if (!monitored->asked_at)
		return;
	*monitored->asked_at = monitored->asked;
	if (monitored->asked)
		monitored->asked->asked_at = monitored->asked_at;
	else
		scheduler->asked_end = monitored->asked_at;
	monitored->asked_at = NULL;
}

static void begin(struct scheduler *scheduler, struct monitored_test *monitored)
{
	leave_line(scheduler, monitored);
	monitored->served = monitored->waiting;
	monitored->waiting = NULL;
	monitored->again = false;
	test_run_begin(&scheduler->runs, monitored);
}

static void begin_asked(struct scheduler *scheduler)
{
	while (scheduler->asked && scheduler->on_demand < MOST_ON_DEMAND &&
		!scheduler->agent->stopping) {
		struct monitored_test *monitored = scheduler->asked;

		monitored->on_demand = true;
		scheduler->on_demand++;
		schedule_pick(scheduler->schedule, monitored->id);
		begin(scheduler, monitored);
	}
}

static void leave(struct scheduler *scheduler, struct monitored_test *monitored)
{
	struct monitored_test **at = &scheduler->leaving;

	while (*at != monitored)
		at = &(*at)->next;
	*at = monitored->next;
	free_subject(monitored);
}

static void note_missed(struct scheduler *scheduler, struct monitored_test *monitored)
{
	uint64_t missed = schedule_missed(
		scheduler->schedule, monitored->id, engine_now(scheduler->agent->engine));

	if (missed <= monitored->missed)
		return; /* another interval means another grid */
	metrics_add(scheduler->agent->metrics, METRIC_MISSED_RUNS,
		(double)(missed - monitored->missed), NULL, NULL);
	monitored->missed = missed;
}

/* When a run of the test counts as finished. */
static int64_t rest_of(struct agent *agent, const struct test *test)
{
	return agent->simulation ? agent->simulation->rest(agent, test) : engine_now(agent->engine);
}

static void go_on(struct scheduler *scheduler, struct monitored_test *monitored)
{
	schedule_done(
		scheduler->schedule, monitored->id, rest_of(scheduler->agent, monitored->test));
	note_missed(scheduler, monitored);
	if (monitored->again && !scheduler->agent->stopping) {
		schedule_pick(scheduler->schedule, monitored->id);
		begin(scheduler, monitored);
	}
	arm(scheduler);
}

static void pass_done(
	void *context, struct monitored_test *monitored, const struct run_report *report)
{
	struct scheduler *scheduler = context;

	scheduler->on_demand -= monitored->on_demand;
	monitored->on_demand = false;
	answer(&monitored->served, report);
	if (monitored->removed) {
		answer(&monitored->waiting, report);
		leave(scheduler, monitored);
	} else if (!scheduler->agent->once) {
		go_on(scheduler, monitored);
	}
	begin_asked(scheduler);
}

static void tick(void *context)
{
	struct scheduler *scheduler = context;
	int64_t now = engine_now(scheduler->agent->engine),
		due = schedule_next(scheduler->schedule);
	size_t id;

	while (!scheduler->agent->stopping && schedule_take(scheduler->schedule, now, &id)) {
		metrics_observe(scheduler->agent->metrics, METRIC_SCHEDULE_LAG,
			(double)(now - due) / 1000, NULL, NULL);
		begin(scheduler, scheduler->scheduled[id]);
		due = schedule_next(scheduler->schedule);
	}
	arm(scheduler);
}

static void schedule_subject(
	struct scheduler *scheduler, struct monitored_test *monitored, int64_t within)
{
	const struct test *test = monitored->test;

	monitored->id = schedule_add(scheduler->schedule, test->name, test->interval,
		engine_now(scheduler->agent->engine), within);
	scheduler->scheduled = memory_grow(scheduler->scheduled, &scheduler->scheduled_room,
		monitored->id + 1, sizeof *scheduler->scheduled);
	scheduler->scheduled[monitored->id] = monitored;
}

/* Adds new tests to the schedule, spread over the first moments. */
static void add_new_tests(struct scheduler *scheduler, size_t fresh)
{
	metrics_set(scheduler->agent->metrics, METRIC_TESTS, (double)scheduler->count, NULL, NULL);
	for (size_t i = 0; i < scheduler->count; i++) {
		struct monitored_test *monitored = scheduler->monitored_tests[i];

		if (!monitored->fresh)
			continue;
		monitored->fresh = false;
		if (scheduler->agent->once)
			begin(scheduler, monitored);
		else
			schedule_subject(scheduler, monitored, FIRST_SPREAD * (int64_t)fresh);
	}
	if (!scheduler->agent->once)
		arm(scheduler);
}

void scheduler_start(struct scheduler *scheduler, const struct store_request *restored)
{
	health_restore(scheduler->runs.health, restored);
	scheduler->started = true;
	add_new_tests(scheduler, scheduler->count);
}

/* Whether the test means the same in the new configuration. */
static bool same_meaning(const struct test *before, const struct test *now)
{
	return before->fingerprint == now->fingerprint;
}

static void remove_subject(struct scheduler *scheduler, struct monitored_test *monitored)
{
	if (scheduler->started)
		schedule_remove(scheduler->schedule, monitored->id);
	if (!monitored->running) {
		leave_line(scheduler, monitored);
		answer(&monitored->waiting, &(struct run_report){.test = monitored->test->name,
						    .failed = true,
						    .problem = "the test was removed"});
		free_subject(monitored);
		return;
	}
	monitored->removed = monitored->dropped = true;
	monitored->next = scheduler->leaving;
	scheduler->leaving = monitored;
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
	struct scheduler *scheduler, struct monitored_test *monitored, const struct test *test)
{
	bool same = same_meaning(monitored->test, test);

	if (scheduler->started && monitored->test->interval != test->interval)
		schedule_change(scheduler->schedule, monitored->id, test->interval,
			engine_now(scheduler->agent->engine));
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
static size_t merge(struct scheduler *scheduler, const struct test *const *tests, size_t count)
{
	struct monitored_test **merged = memory_new(count, sizeof *merged);
	size_t old = 0, fresh = 0;

	for (size_t i = 0; i < count; i++) {
		int order = 1;

		for (; old < scheduler->count; old++) {
			order = strcmp(scheduler->monitored_tests[old]->test->name, tests[i]->name);
			if (order >= 0)
				break;
			remove_subject(scheduler, scheduler->monitored_tests[old]);
		}
		if (old < scheduler->count && order == 0) {
			merged[i] = scheduler->monitored_tests[old++];
			adopt_test(scheduler, merged[i], tests[i]);
			continue;
		}
		merged[i] = memory_new(1, sizeof **merged);
		merged[i]->test = tests[i];
		merged[i]->fresh = true;
		fresh++;
	}
	for (; old < scheduler->count; old++)
		remove_subject(scheduler, scheduler->monitored_tests[old]);
	free(scheduler->monitored_tests);
	scheduler->monitored_tests = merged;
	scheduler->count = count;
	return fresh;
}

void scheduler_adopt(struct scheduler *scheduler, const struct test *const *tests, size_t count)
{
	const struct test **ordered = order_tests(scheduler->agent, tests, &count);
	size_t fresh = merge(scheduler, ordered, count);

	free(ordered);
	if (!scheduler->started)
		return;
	health_adopt(scheduler->runs.health);
	add_new_tests(scheduler, fresh);
}

static struct monitored_test *find_subject(const struct scheduler *scheduler, const char *name)
{
	size_t low = 0, high = scheduler->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(scheduler->monitored_tests[middle]->test->name, name);

		if (order == 0)
			return scheduler->monitored_tests[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Why an on-demand run is refused, or NULL. */
static const char *refusal(
	const struct scheduler *scheduler, const struct monitored_test *monitored, bool waits)
{
	size_t waiting = 0;

	if (scheduler->agent->stopping)
		return "the agent is stopping";
	if (!scheduler->started || scheduler->agent->once)
		return "the agent is starting";
	for (const struct waiter *at = monitored->waiting; waits && at; at = at->next)
		waiting++;
	return waiting >= MOST_WAITERS ? "too many pending requests for this test" : NULL;
}

bool scheduler_run_now(
	struct scheduler *scheduler, const char *test, scheduler_run_done *done, void *context)
{
	struct monitored_test *monitored = find_subject(scheduler, test);
	const char *problem = monitored ? refusal(scheduler, monitored, done != NULL) : NULL;

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
		line_up(scheduler, monitored);
	begin_asked(scheduler);
	return true;
}

bool scheduler_source_up(const struct scheduler *scheduler, const char *source)
{
	return health_up(scheduler->runs.health, source);
}

bool scheduler_stale(const struct scheduler *scheduler, const char *test)
{
	return health_stale(scheduler->runs.health, test);
}

void scheduler_collect(struct scheduler *scheduler)
{
	for (size_t i = 0; scheduler->started && !scheduler->agent->once && i < scheduler->count;
		i++)
		note_missed(scheduler, scheduler->monitored_tests[i]);
}

void scheduler_each(const struct scheduler *scheduler,
	void (*call)(void *context, const struct scheduler_test *state), void *context)
{
	int64_t now = engine_now(scheduler->agent->engine), wall = agent_now(scheduler->agent);

	for (size_t i = 0; i < scheduler->count; i++) {
		const struct monitored_test *monitored = scheduler->monitored_tests[i];
		int64_t due = scheduler->started && !scheduler->agent->once
				      ? schedule_due(scheduler->schedule, monitored->id)
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
