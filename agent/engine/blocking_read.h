/*
 * Readings: a source's blocking `read`, for a task, in the pool's lane for such calls, with an end
 * to our patience.
 *
 * All functions are for the loop's thread.
 */
#ifndef AGENT_READING_H
#define AGENT_READING_H

#include "agent/engine/engine.h"

struct pool;
struct blocking_read;

struct blocking_reads {
	struct pool *pool;
	int64_t timeout;            /* ms that a file may take to be read, 0: no limit */
	struct blocking_read *left; /* that were given up and still go on */
};

/* The task's data and notices, or its error, are set. Called from the loop, never from
 * blocking_read_begin. */
typedef void blocking_read_done(void *context, bool good);

struct blocking_read *blocking_read_begin(struct blocking_reads *blocking_reads, struct task *task,
	const struct source *source, blocking_read_done *done, void *context);

/* One that is not done, and those that were given up; the pool must have stopped. NULL is welcome.
 */
void blocking_read_free(struct blocking_read *reading);
void blocking_reads_free(struct blocking_reads *blocking_reads);

#endif
