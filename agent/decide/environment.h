/*
 * Whether simultaneous changes have one environment (a runner, a host) as their cause and are
 * announced as one. See docs/configure/environment.md.
 *
 * Simultaneous changes stand out if they affect at least ENVIRONMENT_LEAST series and
 * ENVIRONMENT_SHARE of those of one environment, but not the same tests elsewhere: of the same
 * series in other environments (same test, metric and labels, apart from that one) at most
 * ENVIRONMENT_ELSEWHERE changed near that time. At least half of the affected series must have such
 * a counterpart, otherwise a deployment explains it as well. A series that changed in most of the
 * other environments, too, has another cause and counts on neither side.
 */
#ifndef AGENT_DECIDE_ENVIRONMENT_H
#define AGENT_DECIDE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/decide/decision.h"

enum {
	ENVIRONMENT_LEAST = 8,
	ENVIRONMENT_SHARE = 60,     /* percent */
	ENVIRONMENT_ELSEWHERE = 20, /* percent */
};

/* The changes in an environment near a time. */
struct environment_tally {
	size_t total;      /* its series at that time */
	size_t hit;        /* of these: changed, and not in most of the others, ... */
	size_t everywhere; /* ... and changed everywhere */
	size_t compared;   /* of those hit: with a counterpart */
	size_t behind;     /* of those not hit: no ENVIRONMENT_POINTS points since then yet */
	size_t elsewhere, elsewhere_changed; /* counterparts of those hit */
	size_t up, down, worse, better;      /* of those hit */
	double size;                         /* percent, their median; NaN */
	int64_t time; /* ms, their median; the requested time if there are none */
};

bool environment_stands_out(const struct environment_tally *tally);

/* Whether it would stand out if those that are behind changed, too. */
bool environment_may_stand_out(const struct environment_tally *tally);

/* The input of a decision about a change in an environment. */
struct environment_case {
	struct environment_tally tally;
	bool is_event;              /* its changes were announced before ... */
	bool has_grown;             /* ... and is much more now */
	bool follows;               /* another environment changed in the same way before */
	bool awaits;                /* tests that could add evidence have not run since, ... */
	size_t more;                /* ... with so many series of the environment */
	bool unknown;               /* the last run of the change's own test is unknown */
	int64_t runs, confirmation; /* ms that may be waited for runs of tests, and for confirmed
				       changes of other series */
	size_t ready; /* changes that are confirmed; read only if the tally stands out */
	bool is_end;  /* it is the recovery of an event of the environment */
};

/* The reason of PASS if the change and those beside it are announced as one event. */
extern const char environment_one_event[];

/* PASS without a reason: the change is announced as usual. HOLD: until so many ms from now. DROP: a
 * message about its environment covers it. */
struct decision environment_decide(const struct environment_case *at);

#endif
