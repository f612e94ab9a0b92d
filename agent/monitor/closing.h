/*
 * Which changes of a series are over, and what becomes of those that say so.
 *
 * A regression, or a change of a metric without a direction, is over once a later level is back
 * (detectors/recovery.h); an improvement that is undone is a new regression. What was found and has
 * gone again as an excursion is over whatever it was. The change that brings a level back is told
 * by that: it is no news of its own if the one it undoes was told, or known before.
 *
 *   known change             what is found now                     becomes
 *   open, found              a later level is back                 recovered
 *   open, found              ... seems to be, with few points      as it is; the way back waits
 *   open, not found          an excursion that is over             recovered
 *   open, not found          ... seems to be                       as it is, looked at again
 *   open, not found          it brought back what has recovered    withdrawn
 *   open, before the points  a later level is back                 recovered
 *   recovered                found again where it was, and over    stays so
 *   recovered                ... and its level is the last         open again; nobody is told
 *   candidate, or none       a later level is back                 recovered, and told as that
 */
#ifndef AGENT_MONITOR_CLOSING_H
#define AGENT_MONITOR_CLOSING_H

#include "agent/monitor/reconcile.h"
#include "agent/store/store.h"
#include "detectors/recovery.h"

enum ending {
	ENDING_NONE, /* nothing of the kind: it is judged as ever */
	ENDING_WAIT, /* it is not found, and seems to have been an excursion: it stays as it is */
	ENDING_OVER,
	ENDING_LOST, /* it was the end of an excursion that is over */
	ENDING_BACK, /* it had recovered, and is open again */
};

/* What is said of one known change. */
struct closure {
	enum ending ending;
	struct recovered over; /* of OVER */
	bool silent;           /* of OVER: people know */
};

/* A series whose changes are to be closed. */
struct closing {
	struct arena *arena;
	const int64_t *times; /* of the points that exist */
	const double *values; /* without cycles */
	size_t n;
	const struct change *changes; /* that are found, with places among these points */
	size_t count;
	int direction;
	int64_t recorded; /* ms: what the points up to there say was known, and is not told; or
			     WHEN_ALWAYS */

	/* Set by closing_judge: */
	struct recovery *ends;    /* of each change that is found */
	bool *covered;            /* it brings back a level, and is told by that */
	bool *held;               /* it may be one that does, and waits for more points */
	struct closure *closures; /* of each known change */
	bool waiting;             /* something may be over, and the next points will tell */
};

/* `known` are the series' records, of which the first `open` have not recovered. */
void closing_judge(struct closing *closing, const struct change_record *known, size_t open,
	size_t count, const struct reconciliation *result);

#endif
