/*
 * From what was found in a test to what the store shall write.
 */
#ifndef AGENT_MONITOR_NEWS_H
#define AGENT_MONITOR_NEWS_H

#include "agent/analysis/analysis.h"
#include "agent/store/store.h"

/* How the change points of one pass differ from what is known. */
struct news_tally {
	size_t found;           /* not known before */
	size_t fresh, silent;   /* believed now, to be told or not */
	size_t candidates;      /* found, and not believed yet */
	size_t lost, withdrawn; /* not found any more: candidates, and what was believed */
	size_t moved, returned; /* of what was believed */
	size_t corrected;       /* told, and suspects others than those that were told */
	size_t recovered;       /* over by now, of what was believed */
	size_t beyond; /* known ones behind the last point, of which nothing can be said yet */
	size_t revision_new, revision_gone; /* by another revision of the detectors alone: recorded
					       only, and not found any more; those stand */
};

/* A change as it was seen once. */
struct change_key {
	int64_t time; /* ms */
	int sign;
	bool under_way; /* a trend that had begun before the first point: old, wherever it is
			   placed */
};

/*
 * What the detector shows of a series when its windows lie otherwise than in the passes before.
 * What it sees otherwise than they did in the points they knew is no news: a change that is not
 * known was seen and rejected, and one that is known stays as it is, unless the points, which may
 * have been corrected meanwhile, have no evidence of it.
 */
struct realignment {
	bool restarted; /* the windows lie otherwise since the series was last recorded */
	int64_t until;  /* ms: later changes are judged as ever, they may just be showing */
	struct change_key
		*before; /* what they show in the points that were there by then; malloc */
	size_t before_count;
	int64_t *kept; /* ids of these known changes, kept up here; malloc */
	size_t kept_count;
	bool revising;     /* other detectors than those it was last recorded with */
	int64_t settled;   /* ms: of what is earlier the others would have known, but for where it
			      is placed */
	int64_t revised;   /* ms: the last point when the detectors last changed; 0: they never did.
			      What was known until then and is not found stands */
	bool newer;        /* points have come after those that it was last recorded with */
	bool grown;        /* there is something new in the series since it was last recorded */
	int64_t recorded;  /* of a restarted one: ms, the last point by then */
	size_t candidates; /* how many of its changes are not believed yet, kept up here */
	int64_t held;  /* ms, of its clock: until then one is held that is believed else; kept up
			  here; WHEN_NEVER: none is */
	int64_t range; /* ms that are asked for; 0: all there is */
	bool waiting;  /* one may be over, and the next points will tell; kept up here */
};

/* What ages are judged by; ms. */
struct news_clock {
	int64_t now;
	int64_t oldest; /* what is older by the clock is too old to be told; or WHEN_ALWAYS,
			   WHEN_NEVER */
	int64_t ahead;  /* by so much servers say that the clock is ahead; 0: it is not */
};

/*
 * From when on a change is young enough to be told. A clock that is ahead would make all too old,
 * for good. Points that have come since the last look (`newer`) are as young as can be: what counts
 * is the time before the newest. Where nothing is known of when they came, and a server says that
 * the clock is ahead, it is the server's time, or the newest point if that is later, as a server
 * may be wrong. What ended long ago stays old.
 */
int64_t news_oldest(const struct news_clock *clock, int64_t newest, bool newer);

/*
 * Fills `request` (STORE_RECORD) with new records and updates. `known` are the test's records
 * as STORE_KNOWN gives them, in its order. A change that is not believed is recorded as a candidate
 * with NOTIFY_HELD, and becomes NOTIFY_PENDING when it is. One that is too old when it is found is
 * NOTIFY_SILENT for good: by the clock, but where points have come lately, or the clock is ahead,
 * by the series' newest point, too. `realignments` has one for each series, or NULL. Everything is
 * copied to the request's arena. For a worker, as it looks at each point.
 */
struct news_tally news_find(const struct analysis *analysis,
	struct realignment *const *realignments, const char *branch,
	const struct change_record *known, size_t known_count, const struct news_clock *clock,
	struct store_request *request);

#endif
