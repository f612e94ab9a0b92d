/*
 * The state of a test's series between runs.
 *
 * A series whose points are unchanged is not examined again, one that has grown only in its tail,
 * and one whose history was corrected from its anchor on, which is the time from which on its
 * points count. The anchor stays while the range slides on, and only moves to where a detector
 * window begins anyway, so that noise does not get a new chance to look like a change in each run.
 * Anchors are stored with the last point, as checkpoints; points are not stored. After a restart,
 * one full run from the anchor reproduces the same windows.
 *
 * Owned by the holder of the run: the loop or a worker.
 */
#ifndef AGENT_MONITOR_SERIES_CACHE_H
#define AGENT_MONITOR_SERIES_CACHE_H

#include "agent/monitor/news.h"

struct series_cache;

struct series_cache *series_cache_make(void);
void series_cache_free(struct series_cache *cache);

/* Restores the stored checkpoints; once, before the first run. */
void series_cache_restore(
	struct series_cache *cache, const struct series_checkpoint *checkpoints, size_t count);
bool series_cache_restored(const struct series_cache *cache);

/* Begins a run of a source whose range is `range` (ms; 0: it has none). Returns the start of the
 * query: at least a range before `now` and at most two, depending on the anchors. */
int64_t series_cache_begin(struct series_cache *cache, int64_t now, int64_t range);

/* Sets the time range of a query as the first run after a start with these checkpoints would;
 * returns its start. */
int64_t series_cache_query(const struct checkpoint_rows *checkpoints, struct task *task);

/* The changes that the agent finds after a start in the series as it is judged, from index `front`
 * on. */
bool series_cache_examine(struct arena *arena, const struct test *test, const struct dataset *data,
	const struct companions *companions, const struct series *series, size_t front,
	struct scratch *scratch, struct findings *out, struct error *error) MUST_USE;

/* Where the windows of the series begin; WHEN_ALWAYS: unknown. */
int64_t checkpoint_anchor(const struct checkpoint_rows *checkpoints, const char *series);

/*
 * Removes series that are not monitored from the answer: those with an identity longer than
 * SERIES_CACHE_IDENTITY_MAX, and those beyond `most`. Known series are kept first, then the first
 * ones in order of identity, so that the same are kept in each run. Runs on a worker.
 */
enum { SERIES_CACHE_IDENTITY_MAX = 4096 /* bytes; the state file holds it about four times */ };

struct series_cache_cut {
	size_t too_long, too_many;
};

struct series_cache_cut series_cache_cut(
	const struct series_cache *cache, struct arena *arena, struct dataset *data, size_t most);

/*
 * Runs detection on new data. The findings are in the arena; (*realignments)[i], owned by the
 * cache, is further knowledge about those of series i. Fails as analysis_run does. Runs on a
 * worker.
 */
bool series_cache_detect(struct series_cache *cache, struct arena *arena, const struct test *test,
	const struct dataset *data, const struct companions *companions, struct scratch *scratch,
	struct analysis *out, struct realignment ***realignments, struct error *error) MUST_USE;

/* True if there can be no news: the findings equal those last recorded, no series with a candidate
 * or with a change that may be over, or was triaged, has anything new, and no hold is over by `now`
 * (ms, wall clock). */
bool series_cache_settled(const struct series_cache *cache, int64_t now);

/* True if all findings have been recorded, so that without new points there is nothing to do. */
bool series_cache_done(const struct series_cache *cache);

/* Changes of this run's series that are not confirmed yet, as news_find left them. */
size_t series_cache_candidates(const struct series_cache *cache);

/* Adds the checkpoints that are due to a store_record, or all that have moved; returns how many. */
size_t series_cache_checkpoints(struct series_cache *cache, struct store_record *request, bool all);

/* The findings of this run are in the store. Not `settled`: the next run examines them again in any
 * case. */
void series_cache_recorded(struct series_cache *cache, bool settled);

#endif
