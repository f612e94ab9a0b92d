/*
 * A read works on a copy of the task's query, with its own arena, which the task takes over when
 * the read ends in time. Otherwise the task fails and the read is abandoned: from then on it
 * touches nothing but its own memory. The task's memory, from which the query borrows, is kept
 * until it ends, and the test is not read again before, so a test costs one thread at most.
 *
 * Sources observe their deadline themselves wherever they can; a read that is abandoned is stuck
 * in the kernel.
 */
#include "agent/io/blocking_read.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/io/pool.h"

enum { MOST_GRACE = 5000 }; /* ms, for a read that observes the deadline itself */

struct blocking_read {
	struct job job; /* must be first */
	struct blocking_reads *owner;
	struct task *task;
	const struct source *source;
	blocking_read_done *done; /* NULL: the read was abandoned */
	void *context;
	struct query query; /* with its own arena */
	struct error error;
	bool good;
	struct blocking_read *next; /* in the list of abandoned reads */
};

void blocking_read_free(struct blocking_read *reading)
{
	if (!reading)
		return;
	arena_free(reading->query.arena);
	free(reading);
}

/* Frees an abandoned read, and its task if the owner has freed that. */
static void free_abandoned(struct blocking_read *reading)
{
	struct task *task = reading->task;
	task->abandoned = false;
	if (task->freed)
		task_free(task);
	blocking_read_free(reading);
}

void blocking_reads_free(struct blocking_reads *blocking_reads)
{
	for (struct blocking_read *reading = blocking_reads->abandoned, *next; reading;
		reading = next) {
		next = reading->next;
		free_abandoned(reading);
	}
	blocking_reads->abandoned = NULL;
}

static void run(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct blocking_read *reading = (struct blocking_read *)job;
	reading->good = reading->source->read(&reading->query, &reading->error);
}

static void ended_after_all(struct blocking_read *reading)
{
	struct blocking_read **link = &reading->owner->abandoned;
	while (*link != reading)
		link = &(*link)->next;
	*link = reading->next;
	free_abandoned(reading);
}

static void ended(struct job *job)
{
	struct blocking_read *reading = (struct blocking_read *)job;
	if (!reading->done) {
		ended_after_all(reading);
		return;
	}
	struct blocking_read kept = *reading;
	struct task *task = kept.task;
	struct arena *arena = task->query.arena;
	arena_join(arena, kept.query.arena);
	free(reading);
	task->query = kept.query;
	task->query.arena = arena;
	task->error = kept.error;
	kept.done(kept.context, kept.good);
}

static void overdue(struct job *job, bool running)
{
	struct blocking_read *reading = (struct blocking_read *)job;
	struct blocking_reads *owner = reading->owner;
	struct task *task = reading->task;
	blocking_read_done *done = reading->done;
	void *context = reading->context;
	char duration[WHEN_TEXT];
	if (running) {
		error_set(&task->error, ERROR_DATA,
			"read timed out after %s (unresponsive disk or server?)",
			when_format_duration(job->limit, duration));
		task->trouble = "timeout";
		reading->done = NULL;
		task->abandoned = true;
		reading->next = owner->abandoned;
		owner->abandoned = reading;
	} else {
		error_set(&task->error, ERROR_DATA, "skipped: %d earlier reads are still blocked",
			POOL_LOST);
		blocking_read_free(reading);
	}
	done(context, false);
}

/* Whether a read of that test is still blocked, also after a reload that did not change the
 * test. */
static bool is_abandoned(const struct blocking_reads *blocking_reads, const struct test *test)
{
	for (const struct blocking_read *reading = blocking_reads->abandoned; reading;
		reading = reading->next) {
		const struct test *other = reading->task->test;
		if (other == test || (other->fingerprint == test->fingerprint &&
					     strcmp(other->name, test->name) == 0))
			return true;
	}
	return false;
}

struct blocking_read *blocking_read_begin(struct blocking_reads *blocking_reads, struct task *task,
	const struct source *source, blocking_read_done *done, void *context)
{
	struct blocking_read *reading = memory_new(1, sizeof *reading);
	*reading = (struct blocking_read){.job = {.run = run, .done = ended},
		.owner = blocking_reads,
		.task = task,
		.source = source,
		.done = done,
		.context = context,
		.query = task->query};
	reading->query.arena = arena_new();
	reading->query.timeout = blocking_reads->timeout;
	reading->query.server_flavor = NULL; /* the read may outlive the limiter's flag */
	if (is_abandoned(blocking_reads, task->test)) {
		error_set(&reading->error, ERROR_DATA,
			"skipped: the previous read timed out and is still blocked");
		pool_return(blocking_reads->pool, &reading->job);
		return reading;
	}
	int64_t limit =
		source->timeout ? source->timeout(&reading->query) : blocking_reads->timeout;
	if (limit > 0) {
		reading->job.overdue = overdue;
		reading->job.limit = limit + (limit < MOST_GRACE ? limit : MOST_GRACE);
	}
	pool_submit(blocking_reads->pool, LANE_READ, &reading->job);
	return reading;
}
