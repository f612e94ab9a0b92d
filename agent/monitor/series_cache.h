/*
 * What is remembered of a test's series from pass to pass.
 *
 * A series whose points are as they were is not looked at again, a grown one only in its tail, and
 * one whose past was corrected from its anchor on: the time from which on its points count. The
 * anchor stays while the range slides on and only moves to where the detector's windows begin
 * anyway, so that noise gets no new chance to look like a change with each pass. Anchors are stored
 * with the last point, as marks; no points are. Without the rest, after a restart, the same windows
 * are had by one full run from the anchor.
 *
 * It belongs to who holds the pass, loop or worker.
 */
#ifndef AGENT_MONITOR_MEMORY_H
#define AGENT_MONITOR_MEMORY_H

#include "agent/monitor/news.h"

struct series_cache;

struct series_cache *series_cache_make(void);
void series_cache_free(struct series_cache *memory);

/* The marks that are stored; once, before the first pass. */
void series_cache_restore(
	struct series_cache *memory, const struct series_checkpoint *marks, size_t count);
bool series_cache_restored(const struct series_cache *memory);

/* Begins a pass of a source whose range is `range` (ms; 0: it has none). Returns from when on it is
 * to be asked: at least a range before `now` and at most two, as the anchors say. */
int64_t series_cache_begin(struct series_cache *memory, int64_t now, int64_t range);

/*
 * Takes out of the answer, for a worker, what is not watched: series whose identity is longer than
 * SERIES_CACHE_IDENTITY_MAX, and those beyond `most`. Of these the ones that are known stay first,
 * then the first by their identities, so that the same are kept from pass to pass.
 */
enum { SERIES_CACHE_IDENTITY_MAX = 4096 /* bytes; the state file holds it some four times */ };

struct series_cache_cut {
	size_t too_long, too_many;
};

struct series_cache_cut series_cache_cut(
	const struct series_cache *memory, struct arena *arena, struct dataset *data, size_t most);

/*
 * Detects in what is new, for a worker. The findings are in the arena; (*realignments)[i], the
 * memory's, is what is known about those of series i beyond them.
 * Fails as analysis_run does.
 */
bool series_cache_detect(struct series_cache *memory, struct arena *arena, const struct test *test,
	const struct dataset *data, const struct companions *companions, struct scratch *scratch,
	struct analysis *out, struct realignment ***realignments, struct error *error) MUST_USE;

/* True if what was found is what was found when it was last recorded, and there is nothing new in a
 * series with a candidate or with a change that may be over, nor one whose hold is over by `now`
 * (ms, that on the wall), so that there is no news. */
bool series_cache_settled(const struct series_cache *memory, int64_t now);

/* True if all that was found has been recorded, so that without new points there is nothing to do.
 */
bool series_cache_done(const struct series_cache *memory);

/* Changes of the series of this pass that are not believed yet, as news_find has left it. */
size_t series_cache_candidates(const struct series_cache *memory);

/* Adds the marks to a STORE_RECORD that are due, or all that have moved; returns how many. */
size_t series_cache_checkpoints(
	struct series_cache *memory, struct store_request *request, bool all);

/* What this pass found is in the store. Not `settled`: it is to be looked at in the next pass,
 * whatever that finds. */
void series_cache_recorded(struct series_cache *memory, bool settled);

#endif
