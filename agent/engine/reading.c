/*
 * A read works on a copy of the task's query, with an arena of its own, which the task takes over
 * when the read ends in time. If it does not, the task fails and the read is left behind: whatever
 * it does then, it does to itself. The task's memory, from which the query borrows, is kept for it,
 * and the test is not read again until it has ended, so that a test costs one thread at most.
 *
 * Sources notice by themselves that their time is over wherever they can; what is given up here is
 * stuck in the kernel.
 */
#include "agent/engine/reading.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/when.h"
#include "agent/engine/pool.h"

enum { MOST_GRACE = 5000 }; /* ms, for a read that notices by itself */

struct reading {
	struct job job;
	struct readings *owner;
	struct task *task;
	const struct source *source;
	reading_done *done; /* NULL: the read was given up */
	void *context;
	struct query query; /* with an arena of its own */
	struct error error;
	bool good;
	struct reading *next; /* among those left */
};

static struct reading *reading_of_job(struct job *job)
{
	return (struct reading *)((char *)job - offsetof(struct reading, job));
}

void reading_free(struct reading *reading)
{
	if (!reading)
		return;
	arena_free(reading->query.arena);
	free(reading);
}

/* Whoever owned the task may be done with it or not. */
static void free_left(struct reading *reading)
{
	struct task *task = reading->task;
	task->lent = false;
	if (task->freed)
		task_free(task);
	reading_free(reading);
}

void readings_free(struct readings *readings)
{
	for (struct reading *reading = readings->left, *next; reading; reading = next) {
		next = reading->next;
		free_left(reading);
	}
	readings->left = NULL;
}

static void run(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct reading *reading = reading_of_job(job);
	reading->good = reading->source->read(&reading->query, &reading->error);
}

static void ended_after_all(struct reading *reading)
{
	struct reading **link = &reading->owner->left;
	while (*link != reading)
		link = &(*link)->next;
	*link = reading->next;
	free_left(reading);
}

static void ended(struct job *job)
{
	struct reading *reading = reading_of_job(job);
	if (!reading->done) {
		ended_after_all(reading);
		return;
	}
	struct reading kept = *reading;
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
	struct reading *reading = reading_of_job(job);
	struct readings *owner = reading->owner;
	struct task *task = reading->task;
	reading_done *done = reading->done;
	void *context = reading->context;
	char duration[WHEN_TEXT];
	if (running) {
		error_set(&task->error, ERROR_DATA,
			"reading does not end within %s and is given up (a disk or server that "
			"does not answer?)",
			when_format_duration(job->limit, duration));
		task->trouble = "timeout";
		reading->done = NULL;
		task->lent = true;
		reading->next = owner->left;
		owner->left = reading;
	} else {
		error_set(&task->error, ERROR_DATA,
			"not read: %d reads do not end, so no more are begun", POOL_LOST);
		reading_free(reading);
	}
	done(context, false);
}

/* Also after a reload that did not change the test. */
static bool is_left(const struct readings *readings, const struct test *test)
{
	for (const struct reading *reading = readings->left; reading; reading = reading->next) {
		const struct test *left = reading->task->test;
		if (left == test || (left->fingerprint == test->fingerprint &&
					    strcmp(left->name, test->name) == 0))
			return true;
	}
	return false;
}

struct reading *reading_begin(struct readings *readings, struct task *task,
	const struct source *source, reading_done *done, void *context)
{
	struct reading *reading = memory_new(1, sizeof *reading);
	*reading = (struct reading){.job = {.run = run, .done = ended},
		.owner = readings,
		.task = task,
		.source = source,
		.done = done,
		.context = context,
		.query = task->query};
	reading->query.arena = arena_new();
	reading->query.timeout = readings->timeout;
	reading->query.learnt = NULL; /* the read may outlive where it is */
	if (is_left(readings, task->test)) {
		error_set(&reading->error, ERROR_DATA,
			"not read: the read that was given up has not ended yet");
		pool_return(readings->pool, &reading->job);
		return reading;
	}
	int64_t limit = source->timeout ? source->timeout(&reading->query) : readings->timeout;
	if (limit > 0) {
		reading->job.overdue = overdue;
		reading->job.limit = limit + (limit < MOST_GRACE ? limit : MOST_GRACE);
	}
	pool_submit(readings->pool, LANE_READ, &reading->job);
	return reading;
}
