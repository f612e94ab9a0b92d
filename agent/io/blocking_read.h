/*
 * Blocking reads: runs a source's blocking `read` for a task in the pool's lane for such calls,
 * with a deadline.
 *
 * All functions are for the loop's thread.
 */
#ifndef AGENT_IO_BLOCKING_READ_H
#define AGENT_IO_BLOCKING_READ_H

#include "agent/io/engine.h"

struct pool;
struct blocking_read;

struct blocking_reads {
	struct pool *pool;
	int64_t timeout;                 /* ms that reading a file may take, 0: no limit */
	struct blocking_read *abandoned; /* reads that were abandoned and have not returned */
};

/* The task's data and notices, or its error, are set. Called from the loop, never from within
 * blocking_read_begin. */
typedef void blocking_read_done(void *context, bool good);

struct blocking_read *blocking_read_begin(struct blocking_reads *blocking_reads, struct task *task,
	const struct source *source, blocking_read_done *done, void *context);

/* Frees a read that is not done, and all abandoned ones; the pool must have stopped. Accepts
 * NULL. */
void blocking_read_free(struct blocking_read *reading);
void blocking_reads_free(struct blocking_reads *blocking_reads);

#endif
