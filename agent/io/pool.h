/*
 * A small worker pool: jobs are submitted by the loop, run on workers, and taken back when
 * finished.
 *
 * There are three lanes. LANE_WORK is for computation (parsing, detection) and has as many
 * threads as the caller asks for; LANE_READ is for calls that may block (files, SQL), so that a
 * slow disk blocks reads and nothing else; LANE_WRITE has one thread and so keeps the order.
 * Threads are started when there is work that no idle thread can take. Only a job's current
 * holder, the loop or a worker, may touch it; the pool's lock is the only lock of the engine.
 *
 * A system call cannot be cancelled, so a job that exceeds its limit is given up: its thread no
 * longer counts and another one may be started, up to POOL_LOST times. When the job returns
 * after all, it comes back like any other.
 */
#ifndef AGENT_IO_POOL_H
#define AGENT_IO_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "agent/base/error.h"

struct pool;
struct scratch;

/* POOL_READERS: threads of LANE_READ, most of them a reserve for when reads block. */
enum { POOL_LOST = 16, POOL_READERS = 32 };

enum pool_lane { LANE_WORK, LANE_READ, LANE_WRITE };

/* Lies within the caller's own struct. */
struct job {
	void (*run)(struct job *job, struct scratch *scratch); /* on a worker */
	void (*done)(struct job *job); /* for the caller of pool_take; the pool does not call it */
	/* For the caller of pool_overdue; NULL: the job is never given up. */
	void (*overdue)(struct job *job, bool running);
	int64_t limit;    /* ms it may run before it is given up, with `overdue` */
	struct job *next; /* private to the pool */
};

/* `threads` limits LANE_WORK, 0: cpus_count. NULL and an error if out of descriptors. */
struct pool *pool_new(size_t threads, struct error *error);

/* Ends the threads; jobs that wait, which do not run any more, and finished ones can still be
 * taken. Waits `patience` ms for running jobs, except those given up. False: some still run, with
 * all that they use; it may be called again. */
bool pool_stop(struct pool *pool, int64_t patience);

/* For a pool that has stopped; jobs that were not taken back are dropped. */
void pool_free(struct pool *pool);

void pool_submit(struct pool *pool, enum pool_lane lane, struct job *job);

/* Adds a job that needs no worker to the finished ones; any thread may call this. */
void pool_return(struct pool *pool, struct job *job);

/* The next finished job, in the order of finishing, or NULL. */
struct job *pool_take(struct pool *pool);

/* A job that is given up because it exceeded its limit at `now` (`*running`; pool_take returns
 * it eventually), or that waits in a lane that has no threads left (it will not be run); or
 * NULL. */
struct job *pool_overdue(struct pool *pool, int64_t now, bool *running);

/* When to call pool_overdue again; false: not until a job is submitted. ms of the monotonic
 * clock, as is `now`. */
bool pool_due(struct pool *pool, int64_t now, int64_t *due);

/* Readable while there may be finished jobs. */
int pool_fd(const struct pool *pool);

/* Threads started so far, and the most a lane may have. */
size_t pool_threads(struct pool *pool);
size_t pool_limit(const struct pool *pool, enum pool_lane lane);

#endif
