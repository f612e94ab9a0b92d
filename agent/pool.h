/*
 * A small worker pool: jobs go in on one side and come back, done, on the other.
 *
 * There are two lanes. LANE_WORK is for work that needs a processor (parsing, detection) and has as
 * many threads as the caller asks for; LANE_READ is for calls that may block (files, SQL), so that
 * a slow disk holds up reads and nothing else. Threads are started when there is work that no idle
 * thread can take. Whoever holds a job, the loop or a worker, is the only one to touch it; the
 * pool's lock is the only lock of the engine.
 */
#ifndef AGENT_POOL_H
#define AGENT_POOL_H

#include <stddef.h>

#include "agent/core/error.h"

struct pool;
struct scratch;

enum lane { LANE_WORK, LANE_READ };

/* Lies within the caller's own struct. */
struct job {
	void (*run)(struct job *job, struct scratch *scratch); /* on a worker */
	void (*done)(struct job *job); /* for whoever takes it back; the pool does not call it */
	struct job *next;              /* the pool's */
};

/* `threads` is LANE_WORK's limit, 0: one a core. NULL and an error if descriptors cannot be had. */
struct pool *pool_new(size_t threads, struct error *error);

/* Waits for the jobs that are running and ends the threads; what was finished can still be taken.
 */
void pool_stop(struct pool *pool);

/* Stops; jobs that wait or were not taken back are forgotten. */
void pool_free(struct pool *pool);

void pool_submit(struct pool *pool, enum lane lane, struct job *job);

/* Lays a job that needs no worker among the finished ones; any thread may call this. */
void pool_return(struct pool *pool, struct job *job);

/* A finished job, in the order of finishing, or NULL. */
struct job *pool_take(struct pool *pool);

/* Readable as long as there may be something to take. */
int pool_fd(const struct pool *pool);

/* Threads started so far. */
size_t pool_threads(struct pool *pool);

#endif
