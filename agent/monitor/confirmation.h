/*
 * Confirmation: which candidates of a run are confirmed now, and what is written of the others.
 *
 * A change is confirmed if it satisfies the rule of its detection (`confirm`), passes the false
 * discovery rate over all series of the run (`fdr`), and is not held any more
 * (agent/decide/hold.h). See docs/design/algorithms.md.
 */
#ifndef AGENT_MONITOR_CONFIRMATION_H
#define AGENT_MONITOR_CONFIRMATION_H

#include "agent/decide/hold.h"
#include "agent/monitor/news.h"
#include "sources/source.h"

struct candidate {
	struct change_record *record; /* as written if confirmed; one of the request's records */
	const struct change_record *known; /* the candidate as recorded before; NULL: it is new */
	const struct detection *detection;
	struct realignment *realignment; /* of its series, or NULL */
	bool grown;                      /* known, and its series has new points */
	bool confirmed; /* by the rule; after confirmation_share: by the share as well */
	bool exempt;    /* not subject to the false discovery rate */
	bool covered;   /* announced as the recovery of the change that it undoes */
	bool on_hold;   /* it waits, whether or not it is confirmed otherwise: held, by what the
			   series has done before, or because it may be over */
	int64_t seen, until; /* as in struct hold */
	int64_t clock;       /* ms, the series' own clock, which decides how long it is held */
	size_t first_count;  /* points that followed its place when it was first seen */
};

struct candidates {
	struct candidate *items;
	size_t count;
};

/*
 * Applies the false discovery rate: candidates compete with all series whose detection has the
 * same `fdr`, and those that fail are not confirmed, whatever the rule says. A change without a
 * p-value passes.
 */
void confirmation_share(const struct analysis *analysis, struct candidates *candidates);

/* Tells the user, in the notices of the query, that the data have so few series that the share
 * rejects nothing which the detector's p_value has not rejected. */
void confirmation_notice(const struct test *test, struct query *query);

/* How many series of the data have that share in their detection. */
size_t confirmation_series(const struct test *test, const struct dataset *data, double share);

/* Held candidates are not confirmed yet; those whose level is back before the hold ends are not
 * announced. */
void confirmation_hold(struct candidates *candidates);

/* Removes records that need not be written from the request, adds updates, for which it must have
 * room, and counts both. */
void confirmation_write(const struct candidates *candidates, struct store_record *request,
	struct news_tally *tally);

#endif
