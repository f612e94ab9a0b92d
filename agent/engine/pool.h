/*
 * A small worker pool: jobs go in on one side and come back, done, on the other.
 *
 * There are three lanes. LANE_WORK is for work that needs a processor (parsing, detection) and has
 * as many threads as the caller asks for; LANE_READ is for calls that may block (files, SQL), so
 * that a slow disk holds up reads and nothing else; LANE_WRITE has one thread, which keeps an
 * order. Threads are started when there is work that no idle thread can take. Whoever holds a job,
 * the loop or a worker, is the only one to touch it; the pool's lock is the only lock of the
 * engine.
 *
 * No call can be taken back from the kernel, so a job that takes longer than its limit is given up:
 * its thread no longer counts and another one may be started, up to POOL_LOST times. When the job
 * returns after all, it comes back like any other.
 */
#ifndef AGENT_POOL_H
#define AGENT_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/core/error.h"

struct pool;
struct scratch;

/* POOL_READERS: threads of LANE_READ, most of them for when others hang. */
enum { POOL_LOST = 16, POOL_READERS = 32 };

enum pool_lane { LANE_WORK, LANE_READ, LANE_WRITE };

/* Lies within the caller's own struct. */
struct job {
	void (*run)(struct job *job, struct scratch *scratch); /* on a worker */
	void (*done)(struct job *job); /* for whoever takes it back; the pool does not call it */
	/* For whoever gets it from pool_overdue; NULL: the job is never given up. */
	void (*overdue)(struct job *job, bool running);
	int64_t limit;    /* ms it may run before it is given up, with `overdue` */
	struct job *next; /* the pool's */
};

/* `threads` is LANE_WORK's limit, 0: cpus_count. NULL and an error if descriptors cannot be had. */
struct pool *pool_new(size_t threads, struct error *error);

/*
 * Ends the threads; jobs that wait are forgotten, what was finished can still be taken. Jobs that
 * run, but not those given up, are waited for `patience` ms. False: some still run, and use what
 * they use; it may be called again.
 */
bool pool_stop(struct pool *pool, int64_t patience);

/* Of a pool that has stopped; jobs that were not taken back are forgotten. */
void pool_free(struct pool *pool);

void pool_submit(struct pool *pool, enum pool_lane lane, struct job *job);

/* Lays a job that needs no worker among the finished ones; any thread may call this. */
void pool_return(struct pool *pool, struct job *job);

/* A finished job, in the order of finishing, or NULL. */
struct job *pool_take(struct pool *pool);

/*
 * A job that is given up because its time was over at `now` (`*running`, and it comes back by
 * pool_take one day), or that waits in a lane of which no thread is left (it will not be run); or
 * NULL.
 */
struct job *pool_overdue(struct pool *pool, int64_t now, bool *running);

/* When pool_overdue is to be asked again; false: not until something is submitted. ms of the
 * monotonic clock, as is `now`. */
bool pool_due(struct pool *pool, int64_t now, int64_t *due);

/* Readable as long as there may be something to take. */
int pool_fd(const struct pool *pool);

/* Threads started so far, and how many a lane may have. */
size_t pool_threads(struct pool *pool);
size_t pool_limit(const struct pool *pool, enum pool_lane lane);

#endif
