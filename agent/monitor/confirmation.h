/*
 * The changes that a pass has found and that were not believed before: which of them are now, and
 * what is written of them.
 *
 * A change is believed by the rule of its detection (`confirm`), if it is among those that all
 * series of the pass allow together (`fdr`), and not before the time is over for which it is held
 * (agent/monitor/hold.h).
 */
#ifndef AGENT_MONITOR_BELIEF_H
#define AGENT_MONITOR_BELIEF_H

#include "agent/monitor/hold.h"
#include "agent/monitor/news.h"

struct candidate {
	struct change_record *record; /* as it is written if it is believed; one of the request's */
	const struct change_record *known; /* the candidate that it was; NULL: it is new */
	const struct detection *detection;
	struct realignment *realignment; /* of its series, or NULL */
	bool grown;                      /* of a known one: there is something new in its series */
	bool confirmed;                  /* by the rule; after confirmation_share: at all */
	bool exempt;                     /* the share of false ones is not for it */
	bool covered;                    /* the end of the change that it undoes tells it */
	bool waiting;                    /* held, whether or not it is believed else */
	int64_t seen, until;             /* as in struct held */
	int64_t clock;                   /* ms, by which it is held: its series' */
	size_t first_count;              /* points that followed its place when it was first seen */
};

struct candidates {
	struct candidate *items;
	size_t count;
};

/*
 * Holds the suspects against all series whose detection puts up with the same share of false ones:
 * those that fail are not believed, whatever the rule says. A change without a p-value passes.
 */
void confirmation_share(const struct analysis *analysis, struct candidates *suspects);

/* How many series of the data have that share in their detection. */
size_t confirmation_series(const struct test *test, const struct dataset *data, double share);

/* Those that are held are not believed yet; those that are over before that ends are not told. */
void confirmation_hold(struct candidates *suspects);

/* Leaves those of the request's records that are written, adds updates, for which it has room, and
 * counts them. */
void confirmation_write(
	const struct candidates *suspects, struct store_request *request, struct news_tally *tally);

#endif
