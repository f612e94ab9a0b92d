/*
 * Which changes of a series are over, and how the changes that end them are announced.
 *
 * A regression, or a change of a metric without a direction, is over once a later level brings the
 * previous one back (detectors/recovery.h); an improvement that is undone is a new regression. A
 * change that was found and has turned out to be an excursion is over in any case. The change that
 * brings a level back is announced as the end of the other: it is no separate news if the change
 * that it undoes was announced, or is announced now.
 *
 *   known change             what is found now                     becomes
 *   open, found              a later level is back                 recovered
 *   open, found              ... probably, with few points         unchanged; its end waits
 *   open, not found          an excursion that is over             recovered
 *   open, not found          ... probably                          unchanged; judged again
 *   open, not found          it ended a change that has recovered  withdrawn; told: unchanged
 *   open, before the points  a later level is back                 recovered
 *   recovered                found at its place, and over          unchanged
 *   recovered                ... and its level is the last         open again; not announced
 *   candidate, or none       a later level is back                 recovered; announced as that
 */
#ifndef AGENT_DECIDE_RECOVER_H
#define AGENT_DECIDE_RECOVER_H

#include "agent/decide/match.h"
#include "agent/model/change_record.h"
#include "detectors/recovery.h"

enum ending {
	ENDING_NONE, /* not over: judged as usual */
	ENDING_WAIT, /* not found, and probably an excursion: left as it is */
	ENDING_OVER,
	ENDING_LOST, /* it was the end of an excursion that is over */
	ENDING_BACK, /* had recovered, and is open again */
};

/* Which questions about a found change need more points. */
enum doubt {
	DOUBT_NONE,
	DOUBT_OVER, /* it may be over */
	DOUBT_END,  /* it may bring back the level before an earlier one */
};

/* The decision of recover_judge about one known change. */
struct closure {
	enum ending ending;
	struct recovered over; /* with ENDING_OVER */
	bool silent;           /* with ENDING_OVER: the end has been announced already */
};

/* One series, its known changes and those found now. */
struct closing {
	struct arena *arena;
	const int64_t *times; /* of the existing points */
	const double *values; /* without cycles */
	size_t n;
	const struct change *changes; /* those found; indices into these points */
	size_t count;
	const bool *silent;   /* by found change: it is no news if it is unknown, ... */
	int64_t oldest;       /* ms: ... and neither is an unknown one from before it */
	const int64_t *until; /* ms: by found change: until when its level may be that of days off,
				 whose cycle is not known yet, and ... */
	int64_t now;          /* ... the time of the series' own clock */
	int direction;
	bool service; /* do not announce changes that are over before their announcement */

	/* Set by recover_judge: */
	struct recovery *ends; /* by found change */
	bool *covered; /* by found change: it brings a level back, and the end of the other change
			  announces it */
	enum doubt *doubts; /* by found change: it waits for more points */
	bool *passed; /* by found change: over before its announcement, or the end of such a change;
			 not announced */
	struct closure *closures; /* by known change */
	bool waiting;             /* a change may be over; the next points will decide */
};

/* `known` are the records of the series; the first `open` of them have not recovered. */
void recover_judge(struct closing *closing, const struct change_record *known, size_t open,
	size_t count, const struct matching *result);

#endif
