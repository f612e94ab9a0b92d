/*
 * The jobs are kept in an array, tests before clusters and each in order of their names, in which
 * those of a new configuration are merged with them. One that is removed during its run moves to a
 * list until the run has ended.
 *
 * A job is due by its schedule, by which a single pass (`once`) runs each job at once and never
 * again, or waits in a queue for an on-demand run. A run that is asked for during a run, or
 * necessary since the job has changed, is queued at its end.
 *
 * In a fleet the jobs that other agents run are in no schedule. Nothing begins while the agent may
 * not trust in its lease; what is due then is looked at again soon.
 */
#include "agent/monitor/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/fleet/requests.h"
#include "agent/fleet/tests.h"
#include "agent/io/timers.h"
#include "agent/monitor/scheduled_job.h"

enum {
	FIRST_SPREAD = 20, /* ms for each new test */
	GAINED_SPREAD =
		5000, /* ms at most, for those of a shard that was gained: no agent runs them */
	LOOK_AGAIN = 1000,   /* ms */
	RUN_AGAIN = 5000,    /* ms after a run that could not be recorded */
	MOST_ON_DEMAND = 64, /* on-demand runs at a time */
	MOST_WAITERS = 32,   /* for the next run of a job */
	QUIET = 100,         /* ms without a write before the test is run */
	LONGEST = 5000,      /* ms for which continuous writes can delay it */
};

/* A caller that waits for the end of a run. */
struct waiter {
	scheduler_run_done *done;
	void *context;
	struct waiter *next;
};

struct job_list {
	struct scheduled_job *first, **end;
};

struct scheduler {
	struct run_context context;
	struct scheduled_job **jobs;
	size_t count, test_count; /* of all jobs; of those that are tests, which come first */
	struct job_list removed;  /* and still running */
	struct job_list queue;    /* of on-demand runs */
	struct job_list held;     /* of those in the queue that may not begin yet */
	size_t on_demand;         /* on-demand runs in progress */
	struct schedule schedule;
	struct alarm alarm;            /* for the next job that is due */
	struct alarm retry;            /* for those held */
	struct scheduled_job *written; /* jobs whose data were written */
	struct alarm quiet;            /* for the first of them whose burst of writes is over */
	bool started;

	/* In a fleet. */
	bool leads;
	size_t busy[FLEET_SHARDS]; /* runs in progress */
	struct requests *requests;
};

/* Whether the job runs here. */
static bool is_ours(const struct scheduler *scheduler, const struct scheduled_job *job)
{
	if (job->kind->of_test)
		return fleet_runs(scheduler->context.agent, job->name);
	return !fleet_is_shared(scheduler->context.agent) || scheduler->leads;
}

/* Whether it may begin now. */
static bool may_begin(const struct scheduler *scheduler, const struct scheduled_job *job)
{
	if (job->kind->of_test)
		return fleet_may_run(scheduler->context.agent, job->name);
	return is_ours(scheduler, job) && fleet_holds(scheduler->context.agent, job->shard);
}

static void list_add(struct job_list *list, struct scheduled_job *job)
{
	job->next = NULL;
	job->place = list->end;
	*list->end = job;
	list->end = &job->next;
}

static void list_remove(struct job_list *list, struct scheduled_job *job)
{
	*job->place = job->next;
	if (job->next)
		job->next->place = job->place;
	else
		list->end = job->place;
}

static void forget_writes(struct scheduled_job *job)
{
	if (!job->written.place)
		return;
	*job->written.place = job->written.next;
	if (job->written.next)
		job->written.next->written.place = job->written.place;
	job->written.place = NULL;
}

static void free_waiters(struct waiter *waiter)
{
	for (struct waiter *next; waiter; waiter = next) {
		next = waiter->next;
		free(waiter);
	}
}

static void free_job(struct scheduled_job *job)
{
	free_waiters(job->waiting);
	free_waiters(job->served);
	job->kind->free(job);
}

static void arm(struct scheduler *scheduler)
{
	int64_t due = schedule_next(&scheduler->schedule);

	if (!scheduler->context.agent->stopping && due != INT64_MAX)
		engine_alarm(scheduler->context.agent->engine, &scheduler->alarm, due);
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

/* Has the job run out of schedule. */
static void queue(struct scheduler *scheduler, struct scheduled_job *job)
{
	if (job->state == JOB_RUNNING)
		job->state = JOB_RERUN;
	if (job->state != JOB_WAITING)
		return;
	job->state = JOB_QUEUED;
	list_add(&scheduler->queue, job);
}

static void unqueue(struct scheduler *scheduler, struct scheduled_job *job)
{
	if (job->state == JOB_QUEUED)
		list_remove(&scheduler->queue, job);
	else if (job->state == JOB_HELD)
		list_remove(&scheduler->held, job);
}

static void start_run(struct scheduler *scheduler, struct scheduled_job *job)
{
	unqueue(scheduler, job);
	job->served = job->waiting;
	job->waiting = NULL;
	job->state = JOB_RUNNING;
	job->busy = job->shard;
	scheduler->busy[job->busy]++;
	job->started = engine_now(scheduler->context.agent->engine);
	job->kind->begin(job);
}

/* Those that may not begin yet are looked at again by the alarm. */
static void begin_queued(struct scheduler *scheduler)
{
	struct engine *engine = scheduler->context.agent->engine;
	struct scheduled_job *job;

	while ((job = scheduler->queue.first) && scheduler->on_demand < MOST_ON_DEMAND &&
		!scheduler->context.agent->stopping) {
		if (!may_begin(scheduler, job)) {
			if (!scheduler->held.first)
				engine_alarm(
					engine, &scheduler->retry, engine_now(engine) + LOOK_AGAIN);
			list_remove(&scheduler->queue, job);
			job->state = JOB_HELD;
			list_add(&scheduler->held, job);
			continue;
		}
		job->on_demand = true;
		scheduler->on_demand++;
		schedule_pick(&scheduler->schedule, &job->entry);
		start_run(scheduler, job);
	}
}

static void begin_held(void *context)
{
	struct scheduler *scheduler = context;
	struct scheduled_job *job;

	while ((job = scheduler->held.first)) {
		list_remove(&scheduler->held, job);
		job->state = JOB_QUEUED;
		list_add(&scheduler->queue, job);
	}
	begin_queued(scheduler);
}

static void run_due(void *context)
{
	struct scheduler *scheduler = context;
	struct agent *agent = scheduler->context.agent;
	int64_t now = engine_now(agent->engine), due = schedule_next(&scheduler->schedule);
	struct schedule_entry *entry;

	while (!agent->stopping && (entry = schedule_take(&scheduler->schedule, now))) {
		if (may_begin(scheduler, (struct scheduled_job *)entry)) {
			metrics_observe(agent->metrics, METRIC_SCHEDULE_LAG,
				(double)(now - due) / 1000, NULL);
			start_run(scheduler, (struct scheduled_job *)entry);
		} else {
			schedule_put_off(&scheduler->schedule, entry, now + LOOK_AGAIN);
		}
		due = schedule_next(&scheduler->schedule);
	}
	arm(scheduler);
}

static void note_missed(struct scheduler *scheduler, struct scheduled_job *job)
{
	struct agent *agent = scheduler->context.agent;
	uint64_t missed;

	if (job->state == JOB_NEW || job->state == JOB_LOST)
		return; /* another agent's */
	missed = schedule_missed(&job->entry, engine_now(agent->engine));
	if (missed <= job->missed)
		return; /* another interval means another grid */
	metrics_add(agent->metrics, METRIC_MISSED_RUNS, (double)(missed - job->missed), NULL);
	job->missed = missed;
}

void scheduled_job_ended(struct scheduled_job *job, const struct run_report *report)
{
	struct scheduler *scheduler = job->context->scheduler;
	struct agent *agent = scheduler->context.agent;
	bool again = job->state == JOB_RERUN || job->state == JOB_CHANGED;
	int64_t now = engine_now(agent->engine), rest = INT64_MAX;

	/* In a simulation it is not finished before there is new data. */
	for (size_t i = 0; agent->simulation && i < job->test_count; i++) {
		int64_t one = agent->simulation->rest(agent, job->tests[i]);

		rest = one < rest ? one : rest;
	}
	scheduler->on_demand -= job->on_demand;
	job->on_demand = false;
	scheduler->busy[job->busy]--;
	if (job->state == JOB_LOST) {
		job->kind->clear(job);
		job->state = JOB_NEW;
		answer(&job->served, report);
		answer(&job->waiting, report);
	} else if (job->state == JOB_REMOVED) {
		answer(&job->served, report);
		answer(&job->waiting, report);
		list_remove(&scheduler->removed, job);
		free_job(job);
	} else {
		if (job->state == JOB_CHANGED)
			job->kind->clear(job);
		job->state = JOB_WAITING;
		if (report->unrecorded && fleet_is_shared(agent))
			schedule_put_off(&scheduler->schedule, &job->entry, now + RUN_AGAIN);
		else
			schedule_done(
				&scheduler->schedule, &job->entry, rest == INT64_MAX ? now : rest);
		note_missed(scheduler, job);
		answer(&job->served, report);
		if (again)
			queue(scheduler, job);
		arm(scheduler);
	}
	begin_queued(scheduler);
	fleet_move(agent);
}

/* Adds new jobs to the schedule, spread over the first moments. */
static void add_new_jobs(struct scheduler *scheduler)
{
	struct agent *agent = scheduler->context.agent;
	int64_t now = engine_now(agent->engine), spread = 0;
	size_t ours = 0;

	for (size_t i = 0; i < scheduler->test_count; i++) {
		if (!is_ours(scheduler, scheduler->jobs[i]))
			continue;
		ours++;
		spread += scheduler->jobs[i]->state == JOB_NEW ? FIRST_SPREAD : 0;
	}
	if (fleet_is_shared(agent) && spread > GAINED_SPREAD)
		spread = GAINED_SPREAD;
	metrics_set(agent->metrics, METRIC_TESTS, (double)ours, NULL);
	for (size_t i = 0; i < scheduler->count; i++) {
		struct scheduled_job *job = scheduler->jobs[i];

		if (job->state != JOB_NEW || !is_ours(scheduler, job))
			continue;
		job->state = JOB_WAITING;
		job->missed = 0;
		schedule_add(&scheduler->schedule, &job->entry, job->name,
			agent->once ? WHEN_NEVER : job->interval, now,
			agent->once ? 0 : job->kind->first_after + spread);
	}
	arm(scheduler);
}

void scheduler_start(struct scheduler *scheduler, const struct store_restore *restored)
{
	if (!fleet_is_shared(scheduler->context.agent))
		health_restore(scheduler->context.health, &restored->health);
	scheduler->started = true;
	fleet_adopt(scheduler->context.agent);
	add_new_jobs(scheduler);
}

static void remove_job(struct scheduler *scheduler, struct scheduled_job *job)
{
	forget_writes(job);
	if (job->state != JOB_NEW)
		schedule_remove(&scheduler->schedule, &job->entry);
	if (job->state >= JOB_RUNNING) {
		job->state = JOB_REMOVED;
		list_add(&scheduler->removed, job);
		return;
	}
	unqueue(scheduler, job);
	answer(&job->waiting,
		&(struct run_report){
			.test = job->name, .failed = true, .problem = "the test was removed"});
	free_job(job);
}

/* The results of the current run are obsolete: another run, of the present job, follows, also for
 * waiting requests. */
static void rerun(struct scheduled_job *job)
{
	struct waiter **end = &job->served;

	while (*end)
		end = &(*end)->next;
	*end = job->waiting;
	job->waiting = job->served;
	job->served = NULL;
	job->state = JOB_CHANGED;
}

/* The job is another agent's from now on. */
static void lose(struct scheduler *scheduler, struct scheduled_job *job)
{
	struct run_report report = {.test = job->name,
		.failed = true,
		.problem = "another agent has taken over the test"};

	if (job->state == JOB_NEW || job->state == JOB_LOST)
		return;
	unqueue(scheduler, job);
	schedule_remove(&scheduler->schedule, &job->entry);
	answer(&job->waiting, &report);
	if (job->state >= JOB_RUNNING) {
		job->state = JOB_LOST;
		return;
	}
	job->kind->clear(job);
	job->state = JOB_NEW;
}

static int compare_names(const void *a, const void *b)
{
	const struct scheduled_job *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

/* Merges the jobs of a new configuration into those of the same kind, which stand in `before`. Both
 * are in order of names. */
static void merge(struct scheduler *scheduler, struct scheduled_job **before, size_t before_count,
	struct scheduled_job **jobs, size_t count)
{
	size_t old = 0;

	for (size_t i = 0; i < count; i++) {
		int order = 1;

		for (; old < before_count; old++) {
			order = compare_names(&before[old], &jobs[i]);
			if (order >= 0)
				break;
			remove_job(scheduler, before[old]);
		}
		if (order != 0)
			continue;

		struct scheduled_job *job = before[old++], *now = jobs[i];
		bool same = job->fingerprint == now->fingerprint;

		job->shard = now->shard;
		if (!is_ours(scheduler, job))
			lose(scheduler, job);
		if (job->state != JOB_NEW && job->state != JOB_LOST &&
			job->interval != now->interval)
			schedule_change(&scheduler->schedule, &job->entry, now->interval,
				engine_now(scheduler->context.agent->engine));
		job->name = now->name;
		job->interval = now->interval;
		job->fingerprint = now->fingerprint;
		job->kind->adopt(job, now);
		free_job(now);
		jobs[i] = job;
		if (!same && job->state >= JOB_RUNNING && job->state != JOB_LOST)
			rerun(job);
		else if (!same && job->state != JOB_LOST)
			job->kind->clear(job);
	}
	for (; old < before_count; old++)
		remove_job(scheduler, before[old]);
}

static void take_over(struct scheduler *scheduler)
{
	const struct run_context *context = &scheduler->context;
	const struct config_ref *config_ref = context->agent->config_ref;
	const struct config *config = config_ref->config;
	struct scheduled_job **before = scheduler->jobs;
	struct scheduled_job **jobs =
		memory_new(config_ref->test_count + config->group_count, sizeof *jobs);
	struct dict monitored = {.arena = arena_new()};
	size_t tests = 0, clusters = 0;

	for (size_t i = 0; i < config_ref->test_count; i++) {
		const struct test *test = config_ref->tests[i];

		if (!test->unsupported) {
			jobs[tests] = test_job_new(context, test);
			*dict_place(&monitored, test->name) = jobs[tests++];
			continue;
		}
		log_event(LEVEL_WARN, "test is not supported", LOG_TEXT("test", test->name),
			LOG_TEXT("problem", test->unsupported));
		context->agent->incomplete = true;
	}
	for (size_t i = 0; i < config->group_count; i++) {
		struct scheduled_job *job =
			config->groups[i].cluster
				? cluster_job_new(context, &config->groups[i], &monitored)
				: NULL;

		if (job)
			jobs[tests + clusters++] = job;
	}
	arena_free(monitored.arena);
	qsort(jobs, tests, sizeof *jobs, compare_names);
	qsort(jobs + tests, clusters, sizeof *jobs, compare_names);
	merge(scheduler, before, scheduler->test_count, jobs, tests);
	if (before)
		merge(scheduler, before + scheduler->test_count,
			scheduler->count - scheduler->test_count, jobs + tests, clusters);
	free(before);
	scheduler->jobs = jobs;
	scheduler->test_count = tests;
	scheduler->count = tests + clusters;
}

/*
 * A job whose meaning has not changed keeps its schedule and state; a changed one starts over, at
 * its place in the schedule; results of the current run of a removed or changed job are dropped.
 */
static void adopt(void *context)
{
	struct scheduler *scheduler = context;

	take_over(scheduler);
	if (!scheduler->started)
		return;
	fleet_adopt(scheduler->context.agent);
	health_adopt(scheduler->context.health);
	add_new_jobs(scheduler);
}

static int64_t burst_end(const struct scheduled_job *job)
{
	int64_t quiet = job->written.last + QUIET, longest = job->written.first + LONGEST;

	return quiet < longest ? quiet : longest;
}

/* Runs the tests whose bursts of writes are over. */
static void run_written(void *context)
{
	struct scheduler *scheduler = context;
	struct agent *agent = scheduler->context.agent;
	int64_t now = engine_now(agent->engine), next = INT64_MAX;

	if (agent->stopping) /* the next start reads it */
		return;
	for (struct scheduled_job *following, *job = scheduler->written; job; job = following) {
		int64_t end = burst_end(job);

		following = job->written.next;
		if (end > now) {
			next = end < next ? end : next;
			continue;
		}
		forget_writes(job);
		log_event(
			LEVEL_DEBUG, "test triggered by written data", LOG_TEXT("test", job->name));
		scheduler_run_now(scheduler, job->name, NULL, NULL);
	}
	if (next != INT64_MAX)
		engine_alarm(agent->engine, &scheduler->quiet, next);
}

static void write_seen(void *context)
{
	const struct scheduler *scheduler = context;

	for (size_t i = 0; i < scheduler->test_count; i++)
		test_job_write(scheduler->jobs[i]);
}

static struct decision judge_cluster(void *context, struct change_record *record)
{
	const struct scheduler *scheduler = context;
	struct decision decision = {0};

	for (size_t i = scheduler->test_count; i < scheduler->count && decision.verdict != DROP;
		i++) {
		struct decision next = cluster_judge(scheduler->jobs[i], record);

		if (next.verdict != PASS)
			decision = next;
	}
	return decision;
}

/* Jobs moved to another agent or to this one, which has not run them yet. */
static void jobs_moved(void *context, const struct health_rows *rows)
{
	struct scheduler *scheduler = context;

	for (size_t i = 0; i < scheduler->count; i++)
		if (!is_ours(scheduler, scheduler->jobs[i]))
			lose(scheduler, scheduler->jobs[i]);
	health_move(scheduler->context.health, rows);
	for (size_t i = 0; i < scheduler->count; i++)
		if (scheduler->jobs[i]->state == JOB_LOST && is_ours(scheduler, scheduler->jobs[i]))
			rerun(scheduler->jobs[i]);
	if (scheduler->started)
		add_new_jobs(scheduler);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct scheduler *scheduler = context;

	scheduler->leads |= shards->has[FLEET_LEADER];
	if (shards->has[FLEET_LEADER])
		health_lead(scheduler->context.health, &restored->health);
	scheduler->started = true;
	jobs_moved(scheduler, NULL);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct scheduler *scheduler = context;

	scheduler->leads &= !shards->has[FLEET_LEADER];
	if (shards->has[FLEET_LEADER])
		health_lead(scheduler->context.health, NULL);
	jobs_moved(scheduler, NULL);
}

static struct scheduled_job *find_test(const struct scheduler *scheduler, const char *name)
{
	const struct scheduled_job key = {.name = name}, *sought = &key;
	struct scheduled_job **found = bsearch(&sought, scheduler->jobs, scheduler->test_count,
		sizeof *scheduler->jobs, compare_names);

	return found ? *found : NULL;
}

static bool is_running(void *context, const char *test)
{
	const struct scheduler *scheduler = context;
	const struct scheduled_job *job = find_test(scheduler, test);

	if (job && job->state >= JOB_RUNNING)
		return true;
	for (job = scheduler->removed.first; job; job = job->next)
		if (job->kind->of_test && strcmp(job->name, test) == 0)
			return true;
	return false;
}

static bool is_busy(void *context, int shard)
{
	const struct scheduler *scheduler = context;

	return scheduler->busy[shard] > 0;
}

static void note_news(void *context, const struct fleet_news *news)
{
	struct scheduler *scheduler = context;
	const struct agent *agent = scheduler->context.agent;

	if (news->requests > 0)
		requests_take(scheduler->requests);
	health_news(scheduler->context.health, news);
	engine_share(agent->engine, fleet_size(agent));
}

/* A run requested by another agent, or of a test that moved here before the request was sent;
 * false: this agent does not (or not yet) run it. */
static bool run_asked(void *context, const char *test)
{
	struct scheduler *scheduler = context;
	const struct scheduled_job *job = find_test(scheduler, test);

	if (!job || !is_ours(scheduler, job) || job->state == JOB_NEW)
		return false;
	return scheduler_run_now(scheduler, test, NULL, NULL);
}

static void collect(void *context)
{
	struct scheduler *scheduler = context;

	for (size_t i = 0; scheduler->started && i < scheduler->count; i++)
		note_missed(scheduler, scheduler->jobs[i]);
}

struct filter scheduler_filter(struct scheduler *scheduler)
{
	return (struct filter){.name = "cluster", .judge = judge_cluster, .context = scheduler};
}

struct scheduler *scheduler_new(struct agent *agent, struct expected *expected)
{
	struct scheduler *scheduler = memory_new(1, sizeof *scheduler);

	*scheduler = (struct scheduler){.context = {agent, expected, health_new(agent), scheduler},
		.removed.end = &scheduler->removed.first,
		.queue.end = &scheduler->queue.first,
		.held.end = &scheduler->held.first,
		.alarm = {.call = run_due, .context = scheduler},
		.quiet = {.call = run_written, .context = scheduler},
		.retry = {.call = begin_held, .context = scheduler},
		.requests = requests_new(agent, run_asked, scheduler)};
	fleet_listen(agent, &(struct fleet_listener){gained, lost, is_busy, note_news, scheduler});
	fleet_tests_listen(agent, &(struct fleet_runner){jobs_moved, is_running, scheduler});
	agent_listen(agent, HINT_CONFIGURATION, adopt, scheduler);
	agent_listen(agent, HINT_METRICS, collect, scheduler);
	agent_listen(agent, HINT_WAITING, write_seen, scheduler);
	take_over(scheduler);
	return scheduler;
}

void scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return;
	schedule_free(&scheduler->schedule);
	for (size_t i = 0; i < scheduler->count; i++)
		free_job(scheduler->jobs[i]);
	for (struct scheduled_job *next, *job = scheduler->removed.first; job; job = next) {
		next = job->next;
		free_job(job);
	}
	health_free(scheduler->context.health);
	requests_free(scheduler->requests);
	free(scheduler->jobs);
	free(scheduler);
}

/* Why an on-demand run is refused, or NULL. */
static const char *refusal(
	const struct scheduler *scheduler, const struct scheduled_job *job, bool waits)
{
	size_t waiting = 0;

	if (scheduler->context.agent->stopping)
		return "the agent is stopping";
	if (job->state == JOB_NEW)
		return "the agent is starting";
	for (const struct waiter *at = job->waiting; waits && at; at = at->next)
		waiting++;
	return waiting >= MOST_WAITERS ? "too many pending requests for this test" : NULL;
}

/* The agent that runs it; NULL: this one. */
static const char *holder_of(const struct scheduler *scheduler, const struct scheduled_job *job)
{
	const char *holder;

	if (is_ours(scheduler, job))
		return NULL;
	holder = job->kind->of_test ? fleet_runner(scheduler->context.agent, job->name)
				    : fleet_holder(scheduler->context.agent, job->shard);
	return holder ? holder : "";
}

const char *scheduler_elsewhere(const struct scheduler *scheduler, const char *test)
{
	const struct scheduled_job *job = find_test(scheduler, test);

	return job ? holder_of(scheduler, job) : NULL;
}

bool scheduler_run_now(
	struct scheduler *scheduler, const char *test, scheduler_run_done *done, void *context)
{
	struct scheduled_job *job = find_test(scheduler, test);
	const char *problem = job ? refusal(scheduler, job, done != NULL) : NULL;

	if (job && !is_ours(scheduler, job)) {
		requests_ask(scheduler->requests, job->name, job->shard);
		problem = "forwarded to the agent that holds this test";
	}

	if (!job)
		return false;
	if (problem) {
		if (done)
			done(context,
				&(struct run_report){
					.test = job->name, .failed = true, .problem = problem});
		return true;
	}
	if (done) {
		struct waiter *waiter = memory_new(1, sizeof *waiter);

		*waiter = (struct waiter){done, context, job->waiting};
		job->waiting = waiter;
	}
	queue(scheduler, job);
	begin_queued(scheduler);
	return true;
}

void scheduler_written(struct scheduler *scheduler, const char *test)
{
	struct scheduled_job *job = find_test(scheduler, test);

	if (!job)
		return;
	job->written.last = engine_now(scheduler->context.agent->engine);
	if (!job->written.place) {
		job->written.first = job->written.last;
		job->written.next = scheduler->written;
		job->written.place = &scheduler->written;
		if (job->written.next)
			job->written.next->written.place = &job->written.next;
		scheduler->written = job;
	}
	engine_alarm(scheduler->context.agent->engine, &scheduler->quiet, burst_end(job));
}

void scheduler_each(const struct scheduler *scheduler,
	void (*call)(void *context, const struct scheduler_test *state), void *context)
{
	struct agent *agent = scheduler->context.agent;
	const struct health *health = scheduler->context.health;
	int64_t now = engine_now(agent->engine), wall = agent_now(agent);

	for (size_t i = 0; i < scheduler->test_count; i++) {
		const struct scheduled_job *job = scheduler->jobs[i];
		const struct monitored_test *monitored = (const struct monitored_test *)job;
		int64_t due = job->state == JOB_NEW ? INT64_MAX : job->entry.due;
		struct scheduler_test state = {.test = monitored->test,
			.elsewhere = holder_of(scheduler, job),
			.down_since = health_down_since(health, monitored->test),
			.next_due = INT64_MAX,
			.newest = WHEN_ALWAYS};

		if (!state.elsewhere) {
			state.running = job->state >= JOB_RUNNING;
			state.failing = monitored->problem != NULL;
			state.stale = health_stale(health, monitored->test);
			state.problem = monitored->problem;
			state.last_run = monitored->last_run;
			state.next_due = due == INT64_MAX ? due : wall + (due - now);
			state.duration = monitored->duration;
			state.series = monitored->series;
			state.points = monitored->points;
			state.newest = monitored->newest;
			state.smallest = monitored->smallest;
			state.measured = monitored->measured;
		}
		call(context, &state);
	}
}

void scheduler_each_cluster(const struct scheduler *scheduler,
	void (*call)(void *context, const struct scheduler_cluster *state), void *context)
{
	struct agent *agent = scheduler->context.agent;
	int64_t now = engine_now(agent->engine), wall = agent_now(agent);

	for (size_t i = scheduler->test_count; i < scheduler->count; i++) {
		const struct scheduled_job *job = scheduler->jobs[i];
		int64_t due = job->state == JOB_NEW ? INT64_MAX : job->entry.due;
		struct scheduler_cluster state = {.tests = job->test_count,
			.elsewhere = holder_of(scheduler, job),
			.running = job->state >= JOB_RUNNING,
			.interval = job->interval,
			.next_due = due == INT64_MAX ? due : wall + (due - now)};

		cluster_show(job, &state);
		call(context, &state);
	}
}
