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
struct reading;

struct readings {
	struct pool *pool;
	int64_t timeout;      /* ms that a file may take to be read, 0: no limit */
	struct reading *left; /* that were given up and still go on */
};

/* The task's data and notices, or its error, are set. Called from the loop, never from
 * reading_begin. */
typedef void reading_done(void *context, bool good);

struct reading *reading_begin(struct readings *readings, struct task *task,
	const struct source *source, reading_done *done, void *context);

/* One that is not done, and those that were given up; the pool must have stopped. NULL is welcome.
 */
void reading_free(struct reading *reading);
void readings_free(struct readings *readings);

#endif
