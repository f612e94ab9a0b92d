/*
 * The schedule: when each test runs next.
 *
 * Pure bookkeeping on a monotonic clock that the caller passes in (ms). A test's runs lie on a
 * grid of its own: multiples of its interval, shifted by a stable hash of its name, so that tests
 * are spread and a restart does not bunch them. A late run is made up for once, never in a burst:
 * the next grid place is chosen when a run ends, so two runs of one test never overlap.
 */
#ifndef AGENT_MONITOR_SCHEDULE_H
#define AGENT_MONITOR_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct schedule;

struct schedule *schedule_new(void);
void schedule_free(struct schedule *schedule);

/*
 * Adds a test and returns its id: a removed test's, else the next of 0, 1, 2, ... It is first due
 * within `first_within` ms from now (0: at once), spread by the hash as well; with the interval
 * WHEN_NEVER it runs that once only.
 */
size_t schedule_add(struct schedule *schedule, const char *name, int64_t interval, int64_t now,
	int64_t first_within);

/* Takes the test that has been due longest; false if none is due. It counts as running until
 * schedule_done. */
bool schedule_take(struct schedule *schedule, int64_t now, size_t *id);
void schedule_done(struct schedule *schedule, size_t id, int64_t now);

/* Takes a test that is not running, due or not. If it ends before its due time, that remains. */
void schedule_pick(struct schedule *schedule, size_t id);

/* Removes a test, running or not; its id may be reused. */
void schedule_remove(struct schedule *schedule, size_t id);

/* Changes the test's interval: it is due at the next place of the new grid. */
void schedule_change(struct schedule *schedule, size_t id, int64_t interval, int64_t now);

/* When the test is due next or, if it is running, was due; INT64_MAX: never. */
int64_t schedule_due(const struct schedule *schedule, size_t id);

/* When the next test that is not running is due; INT64_MAX: none. */
int64_t schedule_next(const struct schedule *schedule);

/* Grid places that passed without a run of their own until now, including those during a run that
 * has not ended. */
uint64_t schedule_missed(const struct schedule *schedule, size_t id, int64_t now);

#endif
