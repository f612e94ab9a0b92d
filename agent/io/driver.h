/*
 * Drivers: carry out a task or a delivery, step by step.
 *
 * A worker runs a step, the loop carries out the transfer that the step requested, and so in turn.
 * All functions are for the loop's thread.
 */
#ifndef AGENT_IO_DRIVER_H
#define AGENT_IO_DRIVER_H

#include "agent/io/engine.h"
#include "agent/io/execution.h"
#include "agent/io/limiter.h"
#include "agent/io/signals.h"
#include "agent/io/timers.h"

struct driver;

struct drivers {
	struct engine *engine;
	struct pool *pool;
	struct transfers *transfers;
	int64_t retry_delay;  /* ms */
	int64_t read_timeout; /* ms that reading a file may take, 0: no limit */
	struct executor executor;
	bool torn;     /* the last print was cut off; of LANE_WRITE's thread */
	uint64_t seed; /* for the jitter */
	/* Called with each answer that has a Date, unless NULL; see struct engine_options. */
	void (*dated)(void *context, const char *url, int64_t ahead);
	void *context;
	struct driver *live, *abandoned; /* abandoned: reads that have not returned */
	struct limiter limiter;          /* tasks by server; closed: no task goes further */
	size_t count, ended;             /* in progress, and ended since the start */
	size_t uncounted;                /* those in progress that read no test; never in `ended` */
	size_t waiting;                  /* those in progress that wait before a retry */
};

/* To be called when the pool may run more reads at a time than before. */
void drivers_widen(struct drivers *drivers);

/* Cancels all: frees the tasks in progress, drops the deliveries. The pool must have stopped. */
void drivers_free(struct drivers *drivers);

enum { MOST_GUESTS = 16 };

struct guest {
	int fd;
	engine_serve *serve;
	void *context;
	int64_t due; /* INT64_MAX: no limit */
};

struct engine {
	struct engine_options options;
	struct pool *pool;
	struct transfers *transfers;
	struct drivers drivers;
	size_t background; /* calls in progress that belong to no task */
	struct timers timers, aside;
	struct guest guests[MOST_GUESTS];
	size_t guest_count;
	size_t holds;
	int64_t time; /* of a simulated clock */
	struct signals signals;
	bool stopped, signalled;
	int64_t progress_due;
	bool progress_shown;
};

#endif
