/*
 * An entry owns a task that has, or is to have, the data. The engine has it while the data are
 * fetched and while a job is done; its other jobs are in its line.
 */
#include "agent/web/datasets.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/companions.h"
#include "agent/base/order.h"

enum { FETCHES = 4 };
#define LONGEST INT64_C(600000) /* ms that data are kept */

enum entry_state { ENTRY_WAITS, ENTRY_BUSY, ENTRY_RESTS };

struct entry {
	struct fetching fetching;
	struct datasets *datasets;
	struct task *task;
	enum entry_state state;
	bool wide, filled; /* filled: it has data */
	int64_t fetched;   /* ms, wall clock: when the fetch began */
	size_t bytes;
	struct plotting_found *found;
	struct dataset_job *running, *first, **end;
	struct entry *next; /* the oldest is first */
};

struct datasets {
	struct agent *agent;
	struct entry *first;
	size_t fetching;
};

void fetching_begin(struct fetching *fetching, struct agent *agent, struct task *task)
{
	fetching->agent = agent;
	task->context = fetching;
	config_ref_hold_for(agent->config_ref, task);
}

static void submit_companion(void *context, struct task *task)
{
	const struct task *own = context;
	const struct fetching *fetching = own->context;

	config_ref_hold_for(own->holder, task);
	engine_submit(fetching->agent->engine, task);
}

/* The data of other tests that it needs are there, or could not be read. */
static void submit(struct task *task)
{
	const struct fetching *fetching = task->context;

	if (task->failed)
		task->done(task);
	else
		engine_submit(fetching->agent->engine, task);
}

void fetching_submit(struct task *task)
{
	companions_fetch(&(struct companions_way){.submit = submit_companion, .context = task},
		task, submit);
}

struct datasets *datasets_new(struct agent *agent)
{
	struct datasets *datasets = memory_new(1, sizeof *datasets);

	*datasets = (struct datasets){.agent = agent};
	return datasets;
}

void datasets_free(struct datasets *datasets)
{
	for (struct entry *at = datasets ? datasets->first : NULL, *next; at; at = next) {
		next = at->next;
		if (at->running)
			at->running->drop(at->running);
		for (struct dataset_job *job = at->first, *later; job; job = later) {
			later = job->next;
			job->drop(job);
		}
		if (at->state != ENTRY_BUSY)
			task_free(at->task);
		free(at);
	}
	free(datasets);
}

static void remove_entry(struct entry *entry)
{
	struct entry **at = &entry->datasets->first;

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	task_free(entry->task);
	free(entry);
}

static bool is_current(const struct entry *entry)
{
	const struct agent *agent = entry->datasets->agent;
	int64_t keep = entry->task->test->interval;

	return entry->task->holder == agent->config_ref &&
	       (!entry->filled ||
		       agent_now(agent) - entry->fetched < (keep < LONGEST ? keep : LONGEST));
}

/* Frees expired entries, and the oldest until the rest is under the cap. */
static void sweep(struct datasets *datasets)
{
	size_t bytes = 0;

	for (struct entry *at = datasets->first, *next; at; at = next) {
		next = at->next;
		if (at->state == ENTRY_RESTS && !is_current(at))
			remove_entry(at);
		else
			bytes += at->bytes;
	}
	for (struct entry *at = datasets->first, *next; at && bytes > DATASETS_BYTES; at = next) {
		next = at->next;
		if (at->state != ENTRY_RESTS)
			continue;
		bytes -= at->bytes;
		remove_entry(at);
	}
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct entry *entry = task->context;

	(void)error;
	if (!entry->found)
		entry->found = arena_array(
			task->query.arena, task->query.data.count, sizeof *entry->found);
	entry->running->work(entry->running, task, entry->found, task->query.arena, scratch);
	return true;
}

static struct dataset_job *take_job(struct entry *entry)
{
	struct dataset_job *job = entry->first;

	entry->first = job->next;
	if (!entry->first)
		entry->end = &entry->first;
	job->next = NULL;
	return job;
}

/* A fetch may fail at once, which removes its entry. */
static void begin_fetches(struct datasets *datasets)
{
	while (datasets->fetching < FETCHES) {
		struct entry *at = datasets->first;

		while (at && at->state != ENTRY_WAITS)
			at = at->next;
		if (!at)
			return;
		at->state = ENTRY_BUSY;
		at->fetched = agent_now(datasets->agent);
		at->running = take_job(at);
		datasets->fetching++;
		fetching_submit(at->task);
	}
}

static void fail_all(struct entry *entry)
{
	struct dataset_job *job = entry->running;
	struct error error = entry->task->error;

	entry->running = NULL;
	entry->state = ENTRY_RESTS;
	job->done(job, &error);
	while (entry->first) {
		job = take_job(entry);
		job->done(job, &error);
	}
	remove_entry(entry);
}

/* A job may ask for another; then the entry is not the last to know. */
static void done(struct task *task)
{
	struct entry *entry = task->context;
	struct datasets *datasets = entry->datasets;
	struct dataset_job *job = entry->running;

	if (!entry->filled)
		datasets->fetching--;
	if (task->failed) {
		fail_all(entry);
		begin_fetches(datasets);
		return;
	}
	entry->filled = true;
	entry->bytes = arena_size(task->query.arena) + companions_bytes(task->companions);
	if (entry->first) {
		entry->running = take_job(entry);
		engine_work(datasets->agent->engine, task);
	} else {
		entry->running = NULL;
		entry->state = ENTRY_RESTS;
	}
	job->done(job, NULL);
	sweep(datasets);
	begin_fetches(datasets);
}

static struct entry *find(
	const struct datasets *datasets, const struct task *task, bool wide, int64_t newer)
{
	const struct query *query = &task->query;
	struct entry *at = datasets->first;

	for (; at; at = at->next)
		if (is_current(at) && at->task->test->fingerprint == task->test->fingerprint &&
			strcmp(at->task->test->name, task->test->name) == 0 && at->wide == wide &&
			(!wide || at->task->query.since == query->since) &&
			order_same(at->task->query.branch, query->branch) &&
			(at->state == ENTRY_WAITS || at->fetched >= newer))
			return at;
	return NULL;
}

static struct entry *add(struct datasets *datasets, struct task *task, bool wide)
{
	struct entry *entry = memory_new(1, sizeof *entry), **at = &datasets->first;

	*entry = (struct entry){.datasets = datasets, .task = task, .wide = wide};
	entry->end = &entry->first;
	fetching_begin(&entry->fetching, datasets->agent, task);
	task->work = work;
	task->done = done;
	while (*at)
		at = &(*at)->next;
	*at = entry;
	return entry;
}

void datasets_use(struct datasets *datasets, struct task *task, bool wide, int64_t newer,
	struct dataset_job *job)
{
	struct entry *entry;

	sweep(datasets);
	entry = find(datasets, task, wide, newer);
	if (entry)
		task_free(task);
	else
		entry = add(datasets, task, wide);
	job->next = NULL;
	*entry->end = job;
	entry->end = &job->next;
	if (entry->state == ENTRY_RESTS) {
		entry->state = ENTRY_BUSY;
		entry->running = take_job(entry);
		engine_work(datasets->agent->engine, entry->task);
	}
	begin_fetches(datasets);
}
