/*
 * Errands: what the engine does for a task or a delivery, step by step.
 *
 * An errand goes to and fro between a worker, which runs the next step, and the loop, which carries
 * the transfer that the step asked for. All functions are for the loop's thread.
 */
#ifndef AGENT_ERRAND_H
#define AGENT_ERRAND_H

#include "agent/client/limiter.h"
#include "agent/engine/blocking_read.h"
#include "agent/engine/engine.h"
#include "agent/engine/printing.h"

struct driver;

struct drivers {
	struct engine *engine;
	struct pool *pool;
	struct transfers *transfers;
	int64_t retry_delay; /* ms */
	struct blocking_reads blocking_reads;
	struct printer printer;
	uint64_t seed; /* of the jitter */
	/* Called with each answer that has a date, unless it is NULL; see struct engine_options. */
	void (*dated)(void *context, const char *url, int64_t ahead);
	void *context;
	struct driver *live;
	struct limiter limiter; /* tasks by the server they ask; closed: they go no further */
	size_t count, ended;    /* under way, and ended since the start */
	size_t uncounted;       /* of those under way: they read no test; never in `ended` */
	size_t waiting;         /* of those under way: for the time to ask again */
};

void drivers_task(struct drivers *drivers, struct task *task);

/* To be called when the pool may take more reads at a time than before. */
void drivers_widen(struct drivers *drivers);

/* Only the task's work, on a worker, and done: for a task that has been fetched before. */
void drivers_work(struct drivers *drivers, struct task *task);

void drivers_deliver(struct drivers *drivers, const struct notifier *notifier,
	struct attempt *attempt, attempt_done *done, void *context);

/* Cancels all: frees the tasks that are under way, drops the deliveries. The pool must have
 * stopped. */
void drivers_free(struct drivers *drivers);

#endif
