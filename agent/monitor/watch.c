/*
 * Subjects are kept in order of their tests' names, in which a new generation's are merged with
 * them. One that was removed while its pass runs stays aside until that has ended. The schedule
 * knows them by the ids that it gave; in a single pass there is none.
 */
#include "agent/monitor/watch.h"

#include <stdlib.h>
#include <string.h>

#include "agent/engine/timers.h"
#include "agent/monitor/pass.h"
#include "agent/monitor/schedule.h"

enum {
	FIRST_SPREAD = 20, /* ms for each new test */
	MOST_BESIDE = 64,  /* passes at a time that were asked for beside the schedule */
	MOST_WAITERS = 32, /* for the next pass of a test */
};

/* Somebody who waits for the end of a pass. */
struct waiter {
	watch_run_done *done;
	void *context;
	struct waiter *next;
};

struct watch {
	struct agent *agent;
	struct passes passes;
	struct subject **subjects; /* by name */
	size_t count;
	struct subject *leaving;    /* removed, while their passes run */
	struct subject **scheduled; /* by id */
	size_t scheduled_room;
	struct schedule *schedule;
	struct alarm alarm;                 /* at the next test that is due */
	struct subject *asked, **asked_end; /* in line for a pass beside the schedule */
	size_t beside;                      /* such passes that run */
	bool started;
};

static void tick(void *context);
static void pass_done(void *context, struct subject *subject, const struct pass_report *report);

struct watch *watch_new(struct agent *agent, struct announcer *announcer,
	const struct test *const *tests, size_t count)
{
	struct watch *watch = memory_new(1, sizeof *watch);

	*watch = (struct watch){.agent = agent,
		.passes = {agent, announcer, sentinel_new(agent, announcer), pass_done, watch},
		.schedule = schedule_new(),
		.alarm = {.call = tick, .context = watch}};
	watch->asked_end = &watch->asked;
	watch_adopt(watch, tests, count);
	return watch;
}

static void free_waiters(struct waiter *waiter)
{
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		free(waiter);
	}
}

static void free_subject(struct subject *subject)
{
	free_waiters(subject->waiting);
	free_waiters(subject->served);
	pass_clear(subject);
	free(subject);
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	schedule_free(watch->schedule);
	for (size_t i = 0; i < watch->count; i++)
		free_subject(watch->subjects[i]);
	for (struct subject *next, *at = watch->leaving; at; at = next) {
		next = at->next;
		free_subject(at);
	}
	sentinel_free(watch->passes.sentinel);
	free(watch->subjects);
	free(watch->scheduled);
	free(watch);
}

static void arm(struct watch *watch)
{
	int64_t due = schedule_next(watch->schedule);

	if (!watch->agent->stopping && due != INT64_MAX)
		engine_alarm(watch->agent->engine, &watch->alarm, due);
}

/* Calls whoever waits in the list, which is empty afterwards. */
static void answer(struct waiter **waiters, const struct pass_report *report)
{
	struct waiter *waiter = *waiters;

	*waiters = NULL;
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		waiter->done(waiter->context, report);
		free(waiter);
	}
}

static void line_up(struct watch *watch, struct subject *subject)
{
	if (subject->asked_at)
		return;
	subject->asked = NULL;
	subject->asked_at = watch->asked_end;
	*watch->asked_end = subject;
	watch->asked_end = &subject->asked;
}

static void leave_line(struct watch *watch, struct subject *subject)
{
	if (!subject->asked_at)
		return;
	*subject->asked_at = subject->asked;
	if (subject->asked)
		subject->asked->asked_at = subject->asked_at;
	else
		watch->asked_end = subject->asked_at;
	subject->asked_at = NULL;
}

static void begin(struct watch *watch, struct subject *subject)
{
	leave_line(watch, subject);
	subject->served = subject->waiting;
	subject->waiting = NULL;
	subject->again = false;
	pass_begin(&watch->passes, subject);
}

static void begin_asked(struct watch *watch)
{
	while (watch->asked && watch->beside < MOST_BESIDE && !watch->agent->stopping) {
		struct subject *subject = watch->asked;

		subject->beside = true;
		watch->beside++;
		schedule_pick(watch->schedule, subject->id);
		begin(watch, subject);
	}
}

static void leave(struct watch *watch, struct subject *subject)
{
	struct subject **at = &watch->leaving;

	while (*at != subject)
		at = &(*at)->next;
	*at = subject->next;
	free_subject(subject);
}

static void note_missed(struct watch *watch, struct subject *subject)
{
	uint64_t missed =
		schedule_missed(watch->schedule, subject->id, engine_now(watch->agent->engine));

	if (missed <= subject->missed)
		return; /* another interval has another grid */
	metrics_add(watch->agent->metrics, METRIC_MISSED_RUNS, (double)(missed - subject->missed),
		NULL, NULL);
	subject->missed = missed;
}

/* When a pass of the test counts as ended. */
static int64_t rest_of(struct agent *agent, const struct test *test)
{
	return agent->stage ? agent->stage->rest(agent, test) : engine_now(agent->engine);
}

static void go_on(struct watch *watch, struct subject *subject)
{
	schedule_done(watch->schedule, subject->id, rest_of(watch->agent, subject->test));
	note_missed(watch, subject);
	if (subject->again && !watch->agent->stopping) {
		schedule_pick(watch->schedule, subject->id);
		begin(watch, subject);
	}
	arm(watch);
}

static void pass_done(void *context, struct subject *subject, const struct pass_report *report)
{
	struct watch *watch = context;

	watch->beside -= subject->beside;
	subject->beside = false;
	answer(&subject->served, report);
	if (subject->removed) {
		answer(&subject->waiting, report);
		leave(watch, subject);
	} else if (!watch->agent->once) {
		go_on(watch, subject);
	}
	begin_asked(watch);
}

static void tick(void *context)
{
	struct watch *watch = context;
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

static void schedule_subject(struct watch *watch, struct subject *subject, int64_t within)
{
	const struct test *test = subject->test;

	subject->id = schedule_add(watch->schedule, test->name, test->interval,
		engine_now(watch->agent->engine), within);
	watch->scheduled = memory_grow(watch->scheduled, &watch->scheduled_room, subject->id + 1,
		sizeof *watch->scheduled);
	watch->scheduled[subject->id] = subject;
}

/* New tests are spread over the first moments. */
static void begin_watching(struct watch *watch, size_t fresh)
{
	metrics_set(watch->agent->metrics, METRIC_TESTS, (double)watch->count, NULL, NULL);
	for (size_t i = 0; i < watch->count; i++) {
		struct subject *subject = watch->subjects[i];

		if (!subject->fresh)
			continue;
		subject->fresh = false;
		if (watch->agent->once)
			begin(watch, subject);
		else
			schedule_subject(watch, subject, FIRST_SPREAD * (int64_t)fresh);
	}
	if (!watch->agent->once)
		arm(watch);
}

void watch_start(struct watch *watch, const struct store_request *restored)
{
	sentinel_restore(watch->passes.sentinel, restored);
	watch->started = true;
	begin_watching(watch, watch->count);
}

/* True if the new generation's test means what the one of that name did before. */
static bool same_meaning(const struct test *before, const struct test *now)
{
	return before->fingerprint == now->fingerprint;
}

static void remove_subject(struct watch *watch, struct subject *subject)
{
	if (watch->started)
		schedule_remove(watch->schedule, subject->id);
	if (!subject->running) {
		leave_line(watch, subject);
		answer(&subject->waiting, &(struct pass_report){.test = subject->test->name,
						  .failed = true,
						  .problem = "the test was removed meanwhile"});
		free_subject(subject);
		return;
	}
	subject->removed = subject->dropped = true;
	subject->next = watch->leaving;
	watch->leaving = subject;
}

/* What runs is of no use any more: a pass of what the test is now follows it, for those who wait,
 * too. */
static void rerun(struct subject *subject)
{
	struct waiter **end = &subject->served;

	while (*end)
		end = &(*end)->next;
	*end = subject->waiting;
	subject->waiting = subject->served;
	subject->served = NULL;
	subject->dropped = subject->again = true;
}

static void adopt_test(struct watch *watch, struct subject *subject, const struct test *test)
{
	bool same = same_meaning(subject->test, test);

	if (watch->started && subject->test->interval != test->interval)
		schedule_change(watch->schedule, subject->id, test->interval,
			engine_now(watch->agent->engine));
	subject->test = test;
	if (same)
		return;
	if (subject->running)
		rerun(subject);
	else
		pass_clear(subject);
	subject->failing = false;
	subject->notices = 0;
}

static int compare_tests(const void *a, const void *b)
{
	const struct test *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Those that can be run, in order of their names. The caller frees the array. */
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

/* Merges the tests into the subjects; both are in order of names. Returns how many are new. */
static size_t merge(struct watch *watch, const struct test *const *tests, size_t count)
{
	struct subject **merged = memory_new(count, sizeof *merged);
	size_t old = 0, fresh = 0;

	for (size_t i = 0; i < count; i++) {
		int order = 1;

		for (; old < watch->count; old++) {
			order = strcmp(watch->subjects[old]->test->name, tests[i]->name);
			if (order >= 0)
				break;
			remove_subject(watch, watch->subjects[old]);
		}
		if (old < watch->count && order == 0) {
			merged[i] = watch->subjects[old++];
			adopt_test(watch, merged[i], tests[i]);
			continue;
		}
		merged[i] = memory_new(1, sizeof **merged);
		merged[i]->test = tests[i];
		merged[i]->fresh = true;
		fresh++;
	}
	for (; old < watch->count; old++)
		remove_subject(watch, watch->subjects[old]);
	free(watch->subjects);
	watch->subjects = merged;
	watch->count = count;
	return fresh;
}

void watch_adopt(struct watch *watch, const struct test *const *tests, size_t count)
{
	const struct test **ordered = order_tests(watch->agent, tests, &count);
	size_t fresh = merge(watch, ordered, count);

	free(ordered);
	if (!watch->started)
		return;
	sentinel_adopt(watch->passes.sentinel);
	begin_watching(watch, fresh);
}

static struct subject *find_subject(const struct watch *watch, const char *name)
{
	size_t low = 0, high = watch->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(watch->subjects[middle]->test->name, name);

		if (order == 0)
			return watch->subjects[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Why no pass is begun for one who asks, or NULL. */
static const char *refusal(const struct watch *watch, const struct subject *subject, bool waits)
{
	size_t waiting = 0;

	if (watch->agent->stopping)
		return "the agent is stopping";
	if (!watch->started || watch->agent->once)
		return "the agent is starting";
	for (const struct waiter *at = subject->waiting; waits && at; at = at->next)
		waiting++;
	return waiting >= MOST_WAITERS ? "too many wait for this test already" : NULL;
}

bool watch_run_now(struct watch *watch, const char *test, watch_run_done *done, void *context)
{
	struct subject *subject = find_subject(watch, test);
	const char *problem = subject ? refusal(watch, subject, done != NULL) : NULL;

	if (!subject)
		return false;
	if (problem) {
		if (done)
			done(context, &(struct pass_report){.test = subject->test->name,
					      .failed = true,
					      .problem = problem});
		return true;
	}
	if (done) {
		struct waiter *waiter = memory_new(1, sizeof *waiter);

		*waiter = (struct waiter){done, context, subject->waiting};
		subject->waiting = waiter;
	}
	if (subject->running)
		subject->again = true;
	else
		line_up(watch, subject);
	begin_asked(watch);
	return true;
}

bool watch_source_up(const struct watch *watch, const char *source)
{
	return sentinel_up(watch->passes.sentinel, source);
}

bool watch_stale(const struct watch *watch, const char *test)
{
	return sentinel_stale(watch->passes.sentinel, test);
}

void watch_collect(struct watch *watch)
{
	for (size_t i = 0; watch->started && !watch->agent->once && i < watch->count; i++)
		note_missed(watch, watch->subjects[i]);
}

void watch_each(const struct watch *watch,
	void (*call)(void *context, const struct watch_state *state), void *context)
{
	int64_t now = engine_now(watch->agent->engine), wall = agent_now(watch->agent);

	for (size_t i = 0; i < watch->count; i++) {
		const struct subject *subject = watch->subjects[i];
		int64_t due = watch->started && !watch->agent->once
				      ? schedule_due(watch->schedule, subject->id)
				      : INT64_MAX;

		call(context, &(struct watch_state){.test = subject->test,
				      .running = subject->running,
				      .failing = subject->failing,
				      .problem = subject->problem,
				      .last_run = subject->last_run,
				      .next_due = due == INT64_MAX ? due : wall + (due - now),
				      .duration = subject->duration,
				      .series = subject->series,
				      .points = subject->points,
				      .smallest = subject->smallest,
				      .measured = subject->measured});
	}
}
