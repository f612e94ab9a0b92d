/*
 * One lock guards both lanes and the list of finished jobs; a condition variable for each lane
 * wakes one worker for one job. The eventfd is written only when the finished list was empty and
 * read only when it has been emptied, so a burst of small jobs costs the loop two system calls and
 * not two a job.
 *
 * Workers block all signals, which are the main thread's to handle. A thread that cannot be started
 * is no failure as long as its lane has another one; the first one must start, as the jobs would
 * wait for ever.
 */
#include "agent/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/core/arena.h"
#include "detectors/detector.h"

enum { LANES = 2, READERS = 4, MOST_THREADS = 256 };

struct job_list {
	struct job *first, **end;
};

struct worker_lane {
	struct pool *pool;
	pthread_cond_t ready;
	struct job_list waiting;
	size_t waiting_count, idle, threads, limit;
};

struct pool {
	pthread_mutex_t lock;
	struct worker_lane lanes[LANES];
	struct job_list finished;
	int fd;
	bool stopping;
	pthread_t *threads;
	size_t thread_count;
};

static void list_add(struct job_list *list, struct job *job)
{
	job->next = NULL;
	*list->end = job;
	list->end = &job->next;
}

static struct job *list_take(struct job_list *list)
{
	struct job *job = list->first;
	if (!job)
		return NULL;
	list->first = job->next;
	if (!list->first)
		list->end = &list->first;
	return job;
}

static void finish(struct pool *pool, struct job *job)
{
	bool wake = !pool->finished.first;
	list_add(&pool->finished, job);
	if (wake && eventfd_write(pool->fd, 1) != 0)
		abort(); /* the counter cannot overflow: it is written once between two reads */
}

static void *work(void *argument)
{
	struct worker_lane *lane = argument;
	struct pool *pool = lane->pool;
	struct scratch *scratch = scratch_new();

	pthread_mutex_lock(&pool->lock);
	while (!pool->stopping) {
		struct job *job = list_take(&lane->waiting);
		if (!job) {
			lane->idle++;
			pthread_cond_wait(&lane->ready, &pool->lock);
			lane->idle--;
			continue;
		}
		lane->waiting_count--;
		pthread_mutex_unlock(&pool->lock);
		job->run(job, scratch);
		pthread_mutex_lock(&pool->lock);
		finish(pool, job);
	}
	pthread_mutex_unlock(&pool->lock);
	scratch_free(scratch);
	return NULL;
}

static void start_thread(struct worker_lane *lane)
{
	struct pool *pool = lane->pool;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&pool->threads[pool->thread_count], NULL, work, lane);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed && lane->threads == 0) {
		fprintf(stderr, "hunter-c: cannot start a thread: %s\n", strerror(failed));
		abort();
	}
	if (failed) {
		lane->limit = lane->threads;
		return;
	}
	lane->threads++;
	pool->thread_count++;
}

static size_t cores(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) != 0)
		return 1;
	int count = CPU_COUNT(&set);
	return count > 0 ? (size_t)count : 1;
}

struct pool *pool_new(size_t threads, struct error *error)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0) {
		error_set(error, ERROR_STATE, "eventfd: %s", strerror(errno));
		return NULL;
	}
	if (threads == 0)
		threads = cores();
	if (threads > MOST_THREADS)
		threads = MOST_THREADS;

	struct pool *pool = memory_new(1, sizeof *pool);
	pool->fd = fd;
	pool->threads = memory_new(threads + READERS, sizeof *pool->threads);
	pool->finished.end = &pool->finished.first;
	pthread_mutex_init(&pool->lock, NULL);
	for (size_t i = 0; i < LANES; i++) {
		struct worker_lane *lane = &pool->lanes[i];
		lane->pool = pool;
		lane->waiting.end = &lane->waiting.first;
		lane->limit = i == LANE_WORK ? threads : READERS;
		pthread_cond_init(&lane->ready, NULL);
	}
	return pool;
}

void pool_stop(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	pool->stopping = true;
	for (size_t i = 0; i < LANES; i++)
		pthread_cond_broadcast(&pool->lanes[i].ready);
	pthread_mutex_unlock(&pool->lock);
	for (size_t i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	pool->thread_count = 0;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pool_stop(pool);
	for (size_t i = 0; i < LANES; i++)
		pthread_cond_destroy(&pool->lanes[i].ready);
	pthread_mutex_destroy(&pool->lock);
	close(pool->fd);
	free(pool->threads);
	free(pool);
}

void pool_submit(struct pool *pool, enum lane which, struct job *job)
{
	struct worker_lane *lane = &pool->lanes[which];
	pthread_mutex_lock(&pool->lock);
	list_add(&lane->waiting, job);
	lane->waiting_count++;
	if (lane->waiting_count > lane->idle && lane->threads < lane->limit)
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
		abort(); /* it was written when the list got its first job */
	pthread_mutex_unlock(&pool->lock);
	return job;
}

int pool_fd(const struct pool *pool)
{
	return pool->fd;
}

size_t pool_threads(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	size_t count = pool->thread_count;
	pthread_mutex_unlock(&pool->lock);
	return count;
}
