/*
 * From the changes found in a test to the records and updates that the store writes.
 */
#ifndef AGENT_MONITOR_NEWS_H
#define AGENT_MONITOR_NEWS_H

#include "agent/analysis/analysis.h"
#include "agent/decide/match.h"
#include "agent/store/store.h"

/* How the change points of one run differ from the known ones. */
struct news_tally {
	size_t found;           /* not known before */
	size_t fresh, silent;   /* confirmed now: announced, or not */
	size_t candidates;      /* found, not confirmed yet */
	size_t lost, withdrawn; /* not found any more: candidates, and confirmed changes */
	size_t moved, returned; /* confirmed changes that moved, or were found again */
	size_t corrected;       /* announced, with suspects that differ from the announced ones */
	size_t recovered;       /* confirmed changes that are over now */
	size_t beyond;          /* known changes after the last point, not judged yet */
	size_t revision_new, revision_gone; /* due to another detector revision alone: new ones are
					       recorded only, those not found any more stand */
};

/* Identifies a change as it was seen once. */
struct change_key {
	int64_t time; /* ms */
	int sign;
	bool under_way; /* a trend that began before the first point: old, wherever it is placed */
};

/*
 * The detector's result for a series when its windows are aligned differently than in earlier runs.
 * A difference within the points that those runs knew is not reported: an unknown change there
 * counts as seen and rejected, and a known one stays, unless the points, which may have been
 * corrected, show no evidence of it.
 */
struct realignment {
	bool restarted; /* the alignment has changed since the series was last recorded */
	int64_t until;  /* ms: later changes are judged as usual, since they may have just become
			   visible */
	struct change_key *before; /* the changes in the points of earlier runs; malloc */
	size_t before_count;
	int64_t *kept; /* ids of known changes that are kept; updated by news_find; malloc */
	size_t kept_count;
	bool revising;   /* the detector revision differs from the last recorded one */
	int64_t settled; /* ms: the other revision would have known anything earlier, apart from its
			    exact place */
	int64_t revised; /* ms: the last point when the revision last changed; 0: never. Changes
			    known up to then stand although they are not found */
	bool refitted;   /* the alignment is the old one: cycles or a control were fitted anew */
	bool newer;      /* there are points after the last recorded one */
	bool grown;      /* there is something new in the series since it was last recorded */
	size_t candidates; /* changes that are not confirmed yet; set by news_find */
	int64_t hold_ends; /* ms, series clock: end of the hold of a change that is confirmed
			  otherwise; WHEN_NEVER: none; set by news_find */
	int64_t range;     /* ms that are queried; 0: everything */
	bool waiting; /* a change may be over, and the next points will decide; set by news_find */
	bool triaged; /* people have spoken of a change, which may outgrow that; set by news_find */
};

/* The clock by which ages are judged; ms. */
struct news_clock {
	int64_t now;
	int64_t oldest; /* changes before that are too old to be announced; or WHEN_ALWAYS,
			   WHEN_NEVER */
	int64_t ahead;  /* by how much the local clock is ahead of servers' clocks; 0: it is not */
};

/*
 * The earliest time at which a change is young enough to be announced. A local clock that is ahead
 * would make every change too old, permanently. Points that arrived since the last run (`newer`)
 * are new: their age counts from the newest point. If it is unknown when they arrived and the local
 * clock is ahead of a server's, the server's time counts, or the newest point if that is later,
 * since a server may be wrong. Series that ended long ago stay old. Of `newer` ones the 100 newest
 * points are never too old. `times` are those of the series' or the cluster's points.
 */
int64_t news_oldest(const struct news_clock *clock, const int64_t *times, size_t n, bool newer);

/* ms between the points around a position, on average: the spacing of a change that is there.
 * `times` are those of the existing points. */
int64_t news_spacing(const int64_t *times, size_t n, size_t position);

/* Whether a known change was confirmed and there is still evidence of it, found or not. */
bool news_stands(struct arena *arena, struct findings *findings, const struct change_record *known);

/* Which of a series' known changes are those found now, by the rule of the agent. */
void news_match(struct arena *arena, struct findings *findings,
	const struct change_record *const *known, size_t count, struct matching *out);

/*
 * Fills `request` with new records and updates. `known` are the test's records as
 * store_known returns them, in that order. A change that is not confirmed is recorded as a
 * candidate with NOTIFY_HELD, and becomes NOTIFY_PENDING when it is. One that is already too
 * old when it is first found (news_oldest) is NOTIFY_SILENT for good. `realignments` has one entry
 * for each series, or is NULL. Everything is copied to the request's arena. Runs on a worker, since
 * it looks at every point.
 */
struct news_tally news_find(const struct analysis *analysis,
	struct realignment *const *realignments, const struct change_record *known,
	size_t known_count, const struct news_clock *clock, struct store_record *request);

#endif
