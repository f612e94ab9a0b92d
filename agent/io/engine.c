/*
 * The loop. It waits in one place, for transfers, finished jobs, signals and guests at once, and
 * never for long in any other: steps and work run on workers, the transfers keep the queues. A
 * turn hands on what is finished, advances transfers, calls timers, and waits only if nothing
 * was left to hand on.
 *
 * Posts travel through the pool as jobs that need no worker, so they share its lock and its
 * eventfd.
 */
#include "agent/io/engine.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/clock.h"
#include "agent/io/driver.h"
#include "agent/io/pool.h"
#include "agent/io/signals.h"
#include "agent/io/timers.h"
#include "agent/io/transfers.h"

enum { PROGRESS_AFTER = 1000, PROGRESS_EVERY = 250, RETRY_DELAY = 500, PATIENCE = 1000 };

/* A call for the loop's thread; with `work`, which runs on a worker before, a background call. */
struct loop_call {
	struct job job; /* must be first */
	engine_call *work, *call, *drop;
	void *context;
	size_t *in_progress; /* the count of background calls, or NULL */
};

struct task *task_new(const struct test *test, int64_t now)
{
	struct arena *arena = arena_new();
	struct task *task = arena_alloc(arena, sizeof *task);
	task->test = test;
	task->query = (struct query){
		.arena = arena,
		.test = test->name,
		.options = test->options,
		.server = test->server ? test->server->options : NULL,
		.metrics = test->metrics,
		.metric_count = test->metric_count,
		.tags = test->tags,
		.window = test->window,
		.since = INT64_MIN,
		.until = INT64_MAX,
		.now = now,
	};
	return task;
}

void task_free(struct task *task)
{
	if (!task)
		return;
	if (task->abandoned) {
		task->freed = true;
		return;
	}
	void (*release)(void *) = task->release;
	void *holder = task->holder;
	if (task->forget)
		task->forget(task->companions);
	arena_free(task->query.arena);
	if (release)
		release(holder);
}

int64_t engine_now(const struct engine *engine)
{
	return engine->options.jumping ? engine->time : clock_monotonic();
}

struct engine *engine_new(const struct engine_options *options, struct error *error)
{
	struct engine *engine = memory_new(1, sizeof *engine);
	engine->options = *options;
	engine->signals.fd = -1;
	if (options->catch_signals &&
		!signals_catch(&engine->signals, options->hangup != NULL, error)) {
		free(engine);
		return NULL;
	}
	engine->pool = pool_new(options->jobs, error);
	if (!engine->pool) {
		engine_free(engine);
		return NULL;
	}
	engine->transfers = transfers_new(
		options->max_memory > 0 ? (size_t)options->max_memory : TRANSFERS_MEMORY);
	engine->drivers = (struct drivers){
		.engine = engine,
		.pool = engine->pool,
		.transfers = engine->transfers,
		.retry_delay = options->retry_delay ? options->retry_delay : RETRY_DELAY,
		.executor = {.pool = engine->pool},
		.read_timeout = options->read_timeout,
		.dated = options->dated,
		.context = options->context,
		.seed = (uint64_t)clock_monotonic() ^ (uint64_t)getpid() << 32,
	};
	return engine;
}

static void run_call(struct job *job, struct scratch *scratch)
{
	struct loop_call *call = (struct loop_call *)job;
	(void)scratch;
	call->work(call->context);
}

static void call_done(struct job *job)
{
	struct loop_call kept = *(struct loop_call *)job;
	if (kept.in_progress)
		--*kept.in_progress;
	free(job);
	kept.call(kept.context);
}

/* Workers have stopped. The jobs they handed back lie within drivers, which are freed as such; a
 * call has no other owner. */
static void drop_calls(struct pool *pool)
{
	struct job *job;
	while ((job = pool_take(pool))) {
		if (job->done != call_done)
			continue;
		struct loop_call *call = (struct loop_call *)job;
		if (call->drop)
			call->drop(call->context);
		free(call);
	}
}

bool engine_free(struct engine *engine)
{
	if (!engine)
		return true;
	if (engine->pool)
		executor_stop(&engine->drivers.executor);
	if (engine->pool && !pool_stop(engine->pool, PATIENCE))
		return false;
	if (engine->pool) {
		drop_calls(engine->pool);
		drivers_free(&engine->drivers);
		transfers_free(engine->transfers);
		pool_free(engine->pool);
	}
	timers_free(&engine->timers);
	timers_free(&engine->aside);
	signals_restore(&engine->signals);
	free(engine);
	return true;
}

/* Blocking calls, such as loading the configuration, run in the lane for them, so a folder on a
 * blocked disk costs one thread there; computations, such as finding clusters, in the other. */
static void begin_call(struct engine *engine, enum pool_lane lane, engine_call *work,
	engine_call *done, void *context)
{
	struct loop_call *call = memory_new(1, sizeof *call);
	*call = (struct loop_call){.job = {.run = run_call, .done = call_done},
		.work = work,
		.call = done,
		.context = context,
		.in_progress = &engine->background};
	engine->background++;
	pool_submit(engine->pool, lane, &call->job);
}

void engine_run_blocking(struct engine *engine, engine_call *work, engine_call *done, void *context)
{
	begin_call(engine, LANE_READ, work, done, context);
}

void engine_compute(struct engine *engine, engine_call *work, engine_call *done, void *context)
{
	begin_call(engine, LANE_WORK, work, done, context);
}

void engine_execute(struct engine *engine, struct execution *execution,
	const struct transfer *transfer, void (*done)(struct execution *execution))
{
	execution_begin(execution, &engine->drivers.executor, transfer, done);
}

void engine_close(struct engine *engine)
{
	engine->drivers.limiter.closed = true;
}

void engine_set_read_timeout(struct engine *engine, int64_t timeout)
{
	engine->drivers.read_timeout = timeout;
}

void engine_set_max_memory(struct engine *engine, int64_t bytes)
{
	transfers_set_memory(engine->transfers, (size_t)bytes);
}

void engine_share(struct engine *engine, size_t programs)
{
	transfers_share(engine->transfers, programs);
}

struct engine_memory engine_memory(const struct engine *engine)
{
	struct transfers_memory memory = transfers_memory(engine->transfers);
	return (struct engine_memory){(int64_t)memory.used, memory.waits};
}

void engine_after(struct engine *engine, int64_t delay, engine_call *call, void *context)
{
	int64_t due;
	if (__builtin_add_overflow(engine_now(engine), delay > 0 ? delay : 0, &due))
		due = INT64_MAX;
	timers_add(&engine->timers, due, call, context);
}

void engine_alarm(struct engine *engine, struct alarm *alarm, int64_t due)
{
	timers_set_alarm(&engine->timers, alarm, due);
}

void engine_alarm_aside(struct engine *engine, struct alarm *alarm, int64_t due)
{
	timers_set_alarm(&engine->aside, alarm, due);
}

void engine_post(struct engine *engine, engine_call *call, engine_call *drop, void *context)
{
	struct loop_call *post = memory_new(1, sizeof *post);
	*post = (struct loop_call){
		.job = {.done = call_done}, .call = call, .drop = drop, .context = context};
	pool_return(engine->pool, &post->job);
}

void engine_hold(struct engine *engine)
{
	engine->holds++;
}

void engine_release(struct engine *engine)
{
	assert(engine->holds > 0);
	engine->holds--;
}

static struct guest *guest_of(struct engine *engine, int fd)
{
	for (size_t i = 0; i < engine->guest_count; i++)
		if (engine->guests[i].fd == fd)
			return &engine->guests[i];
	return NULL;
}

void engine_host(struct engine *engine, int fd, engine_serve *serve, void *context)
{
	assert(engine->guest_count < MOST_GUESTS);
	engine->guests[engine->guest_count++] = (struct guest){fd, serve, context, 0};
}

void engine_unhost(struct engine *engine, int fd)
{
	for (size_t i = 0; i < engine->guest_count; i++)
		if (engine->guests[i].fd == fd)
			engine->guests[i--] = engine->guests[--engine->guest_count];
}

void engine_rouse(struct engine *engine, int fd)
{
	struct guest *guest = guest_of(engine, fd);

	if (guest)
		guest->due = 0;
}

static void show_progress(struct engine *engine, int64_t now)
{
	const struct drivers *drivers = &engine->drivers;
	size_t tests = drivers->ended + drivers->count - drivers->uncounted;
	if (!engine->options.progress || now < engine->progress_due || drivers->count == 0 ||
		tests == 0)
		return;
	engine->progress_due = now + PROGRESS_EVERY;
	engine->progress_shown = true;
	fprintf(stderr, "\r\033[K%zu of %zu tests", drivers->ended, tests);
	fflush(stderr);
}

static void take_overdue(struct engine *engine)
{
	struct job *job;
	bool running;
	while ((job = pool_overdue(engine->pool, clock_monotonic(), &running)))
		job->overdue(job, running);
	drivers_widen(&engine->drivers);
}

/* `fds` are the guests' from before the wait; serving may add and remove guests. */
static void serve_guests(struct engine *engine, const struct pollfd *fds, size_t count)
{
	int64_t now = clock_monotonic();
	for (size_t i = 0; i < count; i++) {
		struct guest *guest = guest_of(engine, fds[i].fd);
		if (!guest || (!fds[i].revents && guest->due > now))
			continue;
		int64_t wait = guest->serve(guest->context);
		guest = guest_of(engine, fds[i].fd);
		if (guest)
			guest->due = wait < 0 ? INT64_MAX : clock_monotonic() + wait;
	}
}

/* Milliseconds until the next timer, guest, progress line or deadline of a job; -1: none. */
static int next_wait(const struct engine *engine, int64_t now)
{
	int64_t due = INT64_MAX, other;
	if (!engine->options.jumping && timers_next(&engine->timers, &other))
		due = other;
	if (timers_next(&engine->aside, &other) && other < due)
		due = other;
	if (pool_due(engine->pool, now, &other) && other < due)
		due = other;
	for (size_t i = 0; i < engine->guest_count; i++)
		if (engine->guests[i].due < due)
			due = engine->guests[i].due;
	if (engine->options.progress && engine->drivers.count > 0 && engine->progress_due < due)
		due = engine->progress_due;
	if (due == INT64_MAX)
		return -1;
	if (due <= now)
		return 0;
	return due - now > INT_MAX ? INT_MAX : (int)(due - now);
}

static void wait_and_serve(struct engine *engine)
{
	struct pollfd fds[MOST_GUESTS + 2];
	size_t guests = engine->guest_count, count = 0;
	for (; count < guests; count++)
		fds[count] = (struct pollfd){.fd = engine->guests[count].fd, .events = POLLIN};
	fds[count++] = (struct pollfd){.fd = pool_fd(engine->pool), .events = POLLIN};
	if (engine->signals.fd >= 0)
		fds[count++] = (struct pollfd){.fd = engine->signals.fd, .events = POLLIN};

	transfers_wait(engine->transfers, fds, count, next_wait(engine, clock_monotonic()));
	bool signals = engine->signals.fd >= 0 && fds[count - 1].revents;
	for (int number; signals && (number = signals_take(&engine->signals)) != 0;)
		if (number == SIGHUP)
			engine->options.hangup(engine->options.context);
		else
			engine->signalled = true;
	serve_guests(engine, fds, guests);
}

static bool engine_busy(const struct engine *engine)
{
	int64_t due;
	return engine->drivers.count > 0 || engine->background > 0 || engine->holds > 0 ||
	       engine->drivers.executor.live || timers_next(&engine->timers, &due);
}

/* Advances a simulated clock to the next timer, unless work in progress may add an earlier one. */
static bool jump(struct engine *engine)
{
	int64_t due;
	if (!engine->options.jumping || engine->holds > 0 || engine->background > 0 ||
		engine->drivers.count > engine->drivers.waiting ||
		!timers_next(&engine->timers, &due))
		return false;
	if (due > engine->time)
		engine->time = due;
	return true;
}

bool engine_run(struct engine *engine)
{
	engine->stopped = engine->signalled = false;
	engine->progress_due = clock_monotonic() + PROGRESS_AFTER;
	while (!engine->signalled) {
		for (struct job *job; !engine->stopped && (job = pool_take(engine->pool));)
			job->done(job);
		take_overdue(engine);
		transfers_run(engine->transfers);
		timers_run(&engine->timers, engine_now(engine));
		timers_run(&engine->aside, clock_monotonic());
		if (engine->stopped || !engine_busy(engine))
			break;
		show_progress(engine, clock_monotonic());
		if (!jump(engine))
			wait_and_serve(engine);
	}
	if (engine->progress_shown)
		fputs("\r\033[K", stderr);
	engine->progress_shown = false;
	return !engine->signalled;
}

void engine_stop(struct engine *engine)
{
	engine->stopped = true;
}
