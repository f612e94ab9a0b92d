/*
 * The schedule: when each job runs next.
 *
 * Pure bookkeeping on a monotonic clock that the caller passes in (ms). A job's runs lie on a grid
 * of its own: multiples of its interval, shifted by a stable hash of its name, so that jobs are
 * spread and a restart does not bunch them. A late run is made up for once, never in a burst: the
 * next grid place is chosen when a run ends, so two runs of one job never overlap.
 */
#ifndef AGENT_MONITOR_SCHEDULE_H
#define AGENT_MONITOR_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job's place in the schedule; the caller's memory. */
struct schedule_entry {
	int64_t due; /* when it is due next or, if it is running, was due; INT64_MAX: never */

	/* private to the schedule */
	int64_t interval, phase;
	uint64_t hash, missed, number;
	size_t place; /* in the heap, if not running */
};

/* Zeroed: empty. */
struct schedule {
	struct schedule_entry **heap; /* those that are not running, by the time they are due */
	size_t count, capacity;
	uint64_t added;
};

void schedule_free(struct schedule *schedule);

/*
 * Adds a job. It is first due within `first_within` ms from now (0: at once), spread by the hash
 * as well; with the interval WHEN_NEVER it runs that once only.
 */
void schedule_add(struct schedule *schedule, struct schedule_entry *entry, const char *name,
	int64_t interval, int64_t now, int64_t first_within);

/* Takes the job that has been due longest; NULL if none is due. It counts as running until
 * schedule_done. */
struct schedule_entry *schedule_take(struct schedule *schedule, int64_t now);
void schedule_done(struct schedule *schedule, struct schedule_entry *entry, int64_t now);

/* Puts a job back that was taken and has not run: it is due then. */
void schedule_put_off(struct schedule *schedule, struct schedule_entry *entry, int64_t due);

/* Takes a job that is not running, due or not. If it ends before its due time, that remains. */
void schedule_pick(struct schedule *schedule, struct schedule_entry *entry);

/* Removes a job, running or not. */
void schedule_remove(struct schedule *schedule, struct schedule_entry *entry);

/* Changes the job's interval: it is due at the next place of the new grid. */
void schedule_change(
	struct schedule *schedule, struct schedule_entry *entry, int64_t interval, int64_t now);

/* When the next job that is not running is due; INT64_MAX: none. */
int64_t schedule_next(const struct schedule *schedule);

/* Grid places that passed without a run of their own until now, including those during a run that
 * has not ended. */
uint64_t schedule_missed(const struct schedule_entry *entry, int64_t now);

#endif
