/*
 * One lock guards all lanes and the list of finished jobs; a condition variable per lane wakes one
 * worker for one job. The eventfd is written only when the finished list was empty and read only
 * when it has been emptied, so a burst of small jobs costs the loop two system calls and not two
 * per job.
 *
 * Workers block all signals, which are for the main thread. Failing to start a thread is not an
 * error as long as its lane has another one; the first one must start, as the jobs would wait for
 * ever.
 *
 * A job's time starts when a worker takes it; the loop is not notified of that, so it checks once a
 * second while jobs wait for a worker.
 *
 * Blocked reads are given up only after their limit, which may be minutes. So that a few of them do
 * not delay all others until then, the lane gets extra threads, up to a bound, whenever all its
 * threads are slow and jobs wait.
 */
#include "agent/io/pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/arena.h"
#include "agent/base/clock.h"
#include "agent/base/cpus.h"
#include "detectors/detector.h"

enum {
	LANES = 3,
	READERS = 4,
	RELIEF = 4, /* extra threads at a time, ... */
	MOST_RELIEF = POOL_READERS - READERS,
	SLOW = 3000, /* ... once all others have been busy for so many ms */
	WRITERS = 1,
	MOST_THREADS = 256,
	LOOK_IN = 1000,
};

struct job_list {
	struct job *first, **end;
};

struct worker_lane {
	struct pool *pool;
	pthread_cond_t ready;
	struct job_list waiting;
	size_t waiting_count, idle, limit, relief;
	size_t with_limit;    /* waiting jobs that have a limit */
	size_t threads, lost; /* that count, and those whose jobs were given up */
};

struct worker {
	struct worker_lane *lane;
	pthread_t thread;
	struct job *job; /* the running job */
	int64_t since;   /* when it started its job, or itself */
	int64_t due;     /* when the job is given up */
	bool lost, ended;
};

struct pool {
	pthread_mutex_t lock;
	struct worker_lane lanes[LANES];
	struct job_list finished;
	int fd;
	bool stopping;
	pthread_cond_t ended; /* a worker has ended */
	struct worker *workers;
	size_t worker_count;
};

static void list_add(struct job_list *list, struct job *job)
{
	job->next = NULL;
	*list->end = job;
	list->end = &job->next;
}

static struct job *list_remove(struct job_list *list, struct job **link)
{
	struct job *job = *link;
	*link = job->next;
	if (!*link)
		list->end = link;
	return job;
}

static struct job *list_take(struct job_list *list)
{
	return list->first ? list_remove(list, &list->first) : NULL;
}

static void finish(struct pool *pool, struct job *job)
{
	bool wake = !pool->finished.first;
	list_add(&pool->finished, job);
	if (wake && eventfd_write(pool->fd, 1) != 0)
		abort(); /* the counter cannot overflow: it is written once between two reads */
}

/* Under the lock except while the job runs. */
static void run_job(struct worker *worker, struct job *job, struct scratch *scratch)
{
	struct worker_lane *lane = worker->lane;
	struct pool *pool = lane->pool;
	lane->waiting_count--;
	lane->with_limit -= job->overdue != NULL;
	worker->job = job;
	worker->since = clock_monotonic();
	worker->due = job->overdue ? worker->since + job->limit : INT64_MAX;
	pthread_mutex_unlock(&pool->lock);
	job->run(job, scratch);
	pthread_mutex_lock(&pool->lock);
	worker->job = NULL;
	if (worker->lost) {
		lane->lost--;
		lane->threads++;
	}
	worker->lost = false;
	finish(pool, job);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct worker_lane *lane = worker->lane;
	struct pool *pool = lane->pool;
	struct scratch *scratch = scratch_new();

	pthread_mutex_lock(&pool->lock);
	while (!pool->stopping) {
		struct job *job = list_take(&lane->waiting);
		if (job) {
			run_job(worker, job, scratch);
			continue;
		}
		lane->idle++;
		pthread_cond_wait(&lane->ready, &pool->lock);
		lane->idle--;
	}
	scratch_free(scratch);
	worker->ended = true;
	pthread_cond_signal(&pool->ended);
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void start_thread(struct worker_lane *lane)
{
	struct pool *pool = lane->pool;
	struct worker *worker = &pool->workers[pool->worker_count];
	sigset_t all, before;
	*worker = (struct worker){.lane = lane, .since = clock_monotonic()};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&worker->thread, NULL, work, worker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed && lane->threads + lane->lost == 0) {
		fprintf(stderr, "hunter-c: cannot start a thread: %s\n", strerror(failed));
		abort();
	}
	if (failed) {
		lane->limit = lane->threads;
		return;
	}
	lane->threads++;
	pool->worker_count++;
}

/* Whether the lane may have one more thread: lost ones are replaced, up to a bound. */
static bool has_room(const struct worker_lane *lane)
{
	return lane->threads < lane->limit && lane->lost < POOL_LOST;
}

struct pool *pool_new(size_t threads, struct error *error)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_condattr_t attributes;
	if (fd < 0) {
		error_set(error, ERROR_STATE, "eventfd: %s", strerror(errno));
		return NULL;
	}
	if (threads == 0)
		threads = cpus_count();
	if (threads > MOST_THREADS)
		threads = MOST_THREADS;

	struct pool *pool = memory_new(1, sizeof *pool);
	pool->fd = fd;
	pool->workers = memory_new(
		threads + POOL_READERS + WRITERS + LANES * POOL_LOST, sizeof *pool->workers);
	pool->finished.end = &pool->finished.first;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	for (size_t i = 0; i < LANES; i++) {
		struct worker_lane *lane = &pool->lanes[i];
		lane->pool = pool;
		lane->waiting.end = &lane->waiting.first;
		lane->limit = i == LANE_WORK ? threads : i == LANE_READ ? READERS : WRITERS;
		pthread_cond_init(&lane->ready, NULL);
	}
	return pool;
}

/* Workers that have not ended; with `without_lost` only those whose jobs were not given up. */
static size_t count_running(const struct pool *pool, bool without_lost)
{
	size_t count = 0;
	for (size_t i = 0; i < pool->worker_count; i++)
		count += !pool->workers[i].ended && !(without_lost && pool->workers[i].lost);
	return count;
}

bool pool_stop(struct pool *pool, int64_t patience)
{
	int64_t until = clock_monotonic() + patience;
	struct timespec time = {.tv_sec = until / 1000, .tv_nsec = until % 1000 * 1000000};
	int timed_out = 0;

	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	for (size_t i = 0; i < LANES; i++)
		pthread_cond_broadcast(&pool->lanes[i].ready);
	while (!timed_out && count_running(pool, true) > 0)
		timed_out = pthread_cond_timedwait(&pool->ended, &pool->lock, &time);
	bool stopped = count_running(pool, false) == 0;
	pthread_mutex_unlock(&pool->lock);
	if (!stopped)
		return false;
	for (size_t i = 0; i < pool->worker_count; i++)
		pthread_join(pool->workers[i].thread, NULL);
	pool->worker_count = 0;
	for (size_t i = 0; i < LANES; i++)
		for (struct job *job; (job = list_take(&pool->lanes[i].waiting));)
			finish(pool, job);
	return true;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	assert(pool->worker_count == 0);
	for (size_t i = 0; i < LANES; i++)
		pthread_cond_destroy(&pool->lanes[i].ready);
	pthread_cond_destroy(&pool->ended);
	pthread_mutex_destroy(&pool->lock);
	close(pool->fd);
	free(pool->workers);
	free(pool);
}

void pool_submit(struct pool *pool, enum pool_lane which, struct job *job)
{
	struct worker_lane *lane = &pool->lanes[which];
	pthread_mutex_lock(&pool->lock);
	list_add(&lane->waiting, job);
	lane->waiting_count++;
	lane->with_limit += job->overdue != NULL;
	if (lane->waiting_count > lane->idle && has_room(lane))
		start_thread(lane);
	else
		pthread_cond_signal(&lane->ready);
	pthread_mutex_unlock(&pool->lock);
}

void pool_return(struct pool *pool, struct job *job)
{
	pthread_mutex_lock(&pool->lock);
	finish(pool, job);
	pthread_mutex_unlock(&pool->lock);
}

struct job *pool_take(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	struct job *job = list_take(&pool->finished);
	eventfd_t count;
	if (job && !pool->finished.first && eventfd_read(pool->fd, &count) != 0)
		abort(); /* it was written when the first job was added to the list */
	pthread_mutex_unlock(&pool->lock);
	return job;
}

static void relieve(struct pool *pool, int64_t now)
{
	struct worker_lane *lane = &pool->lanes[LANE_READ];
	if (lane->waiting_count <= lane->idle || has_room(lane) || lane->relief >= MOST_RELIEF)
		return;
	for (size_t i = 0; i < pool->worker_count; i++) {
		const struct worker *worker = &pool->workers[i];
		if (worker->lane == lane && !worker->lost && now - worker->since < SLOW)
			return;
	}
	lane->limit += RELIEF;
	lane->relief += RELIEF;
	for (size_t wanted = lane->waiting_count - lane->idle; wanted > 0 && has_room(lane);
		wanted--)
		start_thread(lane);
}

static struct job *give_up(struct pool *pool, int64_t now)
{
	for (size_t i = 0; i < pool->worker_count; i++) {
		struct worker *worker = &pool->workers[i];
		struct worker_lane *lane = worker->lane;
		if (!worker->job || !worker->job->overdue || worker->lost || worker->due > now)
			continue;
		worker->lost = true;
		lane->threads--;
		lane->lost++;
		if (lane->waiting_count > lane->idle && has_room(lane))
			start_thread(lane);
		return worker->job;
	}
	return NULL;
}

/* A job with a limit, in a lane that has no thread and will get none; jobs without a limit wait
 * for a lost thread to return. */
static struct job *take_unrunnable(struct pool *pool)
{
	for (size_t i = 0; i < LANES; i++) {
		struct worker_lane *lane = &pool->lanes[i];
		struct job **link = &lane->waiting.first;
		if (lane->with_limit == 0 || lane->threads > 0 || has_room(lane))
			continue;
		while (!(*link)->overdue)
			link = &(*link)->next;
		lane->waiting_count--;
		lane->with_limit--;
		return list_remove(&lane->waiting, link);
	}
	return NULL;
}

struct job *pool_overdue(struct pool *pool, int64_t now, bool *running)
{
	pthread_mutex_lock(&pool->lock);
	relieve(pool, now);
	struct job *job = give_up(pool, now);
	*running = job != NULL;
	if (!job)
		job = take_unrunnable(pool);
	pthread_mutex_unlock(&pool->lock);
	return job;
}

bool pool_due(struct pool *pool, int64_t now, int64_t *due)
{
	*due = INT64_MAX;
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < pool->worker_count; i++) {
		const struct worker *worker = &pool->workers[i];
		if (worker->job && !worker->lost && worker->due < *due)
			*due = worker->due;
	}
	for (size_t i = 0; i < LANES; i++)
		if (now + LOOK_IN < *due && pool->lanes[i].with_limit > 0)
			*due = now + LOOK_IN;
	pthread_mutex_unlock(&pool->lock);
	return *due < INT64_MAX;
}

int pool_fd(const struct pool *pool)
{
	return pool->fd;
}

size_t pool_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t count = pool->worker_count;
	pthread_mutex_unlock(&pool->lock);
	return count;
}

size_t pool_limit(const struct pool *pool, enum pool_lane lane)
{
	return pool->lanes[lane].limit;
}
