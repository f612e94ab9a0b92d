#include "agent/bisect/driver.h"

#include <math.h>
#include <stdlib.h>

enum slot_state {
	SLOT_IDLE,
	SLOT_RECORDING, /* its run begins once that is stored */
	SLOT_RUNNING,
};

/* Of a worker. */
struct slot {
	enum slot_state state;
	struct bisect_run run;
	int64_t begun;  /* ms, wall clock */
	int64_t paused; /* ms that the budget did not count until then */
};

struct bisect_driver {
	const struct journal_setup *setup;
	struct bisect_driver_owner owner;
	const struct bisect_runner *runner;
	void *runs;
	struct bisection *search;
	struct journal_times times;
	bool spent; /* the budget was, at the last advance */
	size_t workers;
	struct slot slots[];
};

struct bisect_driver *bisect_driver_new(const struct journal_setup *setup,
	const struct bisect_driver_owner *owner, const struct bisect_runner *runner, void *runs)
{
	size_t workers = setup->options.workers;
	struct bisect_driver *driver =
		memory_new(1, sizeof *driver + workers * sizeof *driver->slots);

	driver->setup = setup;
	driver->owner = *owner;
	driver->runner = runner;
	driver->runs = runs;
	driver->workers = workers;
	driver->search = bisection_new(&setup->options, setup->candidates.count);
	return driver;
}

void bisect_driver_free(struct bisect_driver *driver)
{
	if (driver)
		bisection_free(driver->search);
	free(driver);
}

static int64_t now_of(const struct bisect_driver *driver)
{
	return driver->owner.now(driver->owner.context);
}

static void put(struct bisect_driver *driver, const struct journal_entry *event)
{
	driver->owner.put(driver->owner.context, event);
}

static void begin_run(struct bisect_driver *driver, struct slot *slot)
{
	slot->state = SLOT_RUNNING;
	driver->runner->begin(driver->runs, &slot->run,
		journal_commit(driver->setup, slot->run.position), slot->begun);
}

void bisect_driver_stored(struct bisect_driver *driver, uint64_t run)
{
	for (size_t i = 0; i < driver->workers; i++)
		if (driver->slots[i].state == SLOT_RECORDING && driver->slots[i].run.id == run)
			begin_run(driver, &driver->slots[i]);
}

void bisect_driver_report(
	struct bisect_driver *driver, const struct bisect_result *result, const char *problem)
{
	struct slot *slot = &driver->slots[result->worker];
	struct bisect_result counted = *result;

	slot->state = SLOT_IDLE;
	/* The search counts only the time of work; the journal has wall-clock times. */
	counted.begun -= slot->paused;
	if (bisection_tell(driver->search, &counted))
		put(driver, &(struct journal_entry){.kind = JOURNAL_RESULT,
				    .at = result->begun + result->lasted,
				    .result = *result,
				    .problem = problem});
}

/* A run that ends without anything measured. */
static void lose(struct bisect_driver *driver, const struct slot *slot, const char *problem)
{
	const struct bisect_result lost = {.id = slot->run.id,
		.worker = slot->run.worker,
		.position = slot->run.position,
		.outcome = BISECT_LOST,
		.value = (double)NAN,
		.begun = slot->begun};

	bisect_driver_report(driver, &lost, problem);
}

void bisect_driver_resume(
	struct bisect_driver *driver, const struct journal *journal, const char *problem)
{
	int64_t now = now_of(driver), before;

	bisection_free(driver->search);
	driver->search = journal_replay(journal, &driver->times);
	before = driver->times.paused;
	driver->times.paused += now > driver->times.last ? now - driver->times.last : 0;
	put(driver, &(struct journal_entry){.kind = JOURNAL_RESUMED, .at = now});
	for (size_t i = 0; i < journal->count; i++) {
		const struct journal_entry *entry = &journal->entries[i];
		struct slot *slot;
		bool ended = false;

		if (entry->kind != JOURNAL_BEGIN)
			continue;
		for (size_t k = i + 1; k < journal->count && !ended; k++)
			ended = journal->entries[k].kind == JOURNAL_RESULT &&
				journal->entries[k].result.id == entry->run.id;
		if (ended)
			continue;
		slot = &driver->slots[entry->run.worker];
		*slot = (struct slot){.run = entry->run, .begun = entry->at, .paused = before};
		if (driver->runner->keeps_runs)
			begin_run(driver, slot);
		else
			lose(driver, slot, problem);
	}
}

/* When the budget ends. */
static int64_t end_of(const struct bisect_driver *driver)
{
	int64_t budget = driver->setup->options.budget;

	return budget > 0 && driver->times.first != 0
		       ? driver->times.first + budget + driver->times.paused
		       : INT64_MAX;
}

int64_t bisect_driver_due(const struct bisect_driver *driver)
{
	return driver->spent ? INT64_MAX : end_of(driver);
}

static bool is_busy(const struct bisect_driver *driver, size_t worker)
{
	return driver->slots[worker].state != SLOT_IDLE ||
	       driver->runner->is_busy(driver->runs, worker);
}

bool bisect_driver_stop(struct bisect_driver *driver)
{
	bool idle = true;

	for (size_t i = 0; i < driver->workers; i++) {
		if (driver->slots[i].state == SLOT_RECORDING)
			lose(driver, &driver->slots[i], "no longer needed");
		else if (driver->runner->is_busy(driver->runs, i))
			driver->runner->stop(driver->runs, i);
		idle = idle && !is_busy(driver, i);
	}
	return idle;
}

/* Gives a free worker its next run. */
static void begin_next(struct bisect_driver *driver, size_t worker)
{
	const struct bisect_runner *runner = driver->runner;
	struct slot *slot = &driver->slots[worker];
	int64_t now = now_of(driver), paused = driver->times.paused;
	struct bisect_run run;

	if (is_busy(driver, worker) || (runner->is_gone && runner->is_gone(driver->runs, worker)) ||
		!bisection_next(driver->search, worker, now - paused, &run))
		return;
	if (driver->times.first == 0)
		driver->times.first = now - paused;
	*slot = (struct slot){SLOT_RECORDING, run, now, paused};
	put(driver, &(struct journal_entry){.kind = JOURNAL_BEGIN, .at = now, .run = run});
}

enum bisect_driver_state bisect_driver_advance(struct bisect_driver *driver, bool may_begin)
{
	driver->spent = now_of(driver) >= end_of(driver);
	if (driver->spent)
		bisect_driver_stop(driver);
	for (size_t i = 0; may_begin && i < driver->workers; i++)
		begin_next(driver, i);
	if (bisection_status(driver->search)->phase == BISECT_OVER)
		return bisect_driver_stop(driver) ? BISECT_DRIVER_OVER : BISECT_DRIVER_RUNS;
	for (size_t i = 0; i < driver->workers; i++)
		may_begin = may_begin && !is_busy(driver, i);
	return may_begin ? BISECT_DRIVER_GONE : BISECT_DRIVER_RUNS;
}

void bisect_driver_cancel(struct bisect_driver *driver)
{
	bisection_cancel(driver->search);
	put(driver, &(struct journal_entry){.kind = JOURNAL_CANCELLED, .at = now_of(driver)});
}

const struct bisect_status *bisect_driver_status(struct bisect_driver *driver)
{
	return bisection_status(driver->search);
}
