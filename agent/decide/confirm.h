/*
 * Which changes of a run are confirmed, and which of those are announced.
 *
 * A change is confirmed if it satisfies the rule of its detection (detectors/confirm.h), waits for
 * nothing in its own series (detectors/precedent.h, agent/decide/recover.h), passes the false
 * discovery rate over all series of the run (detectors/fdr.h), and is not held
 * (agent/decide/hold.h). See docs/design/algorithms.md.
 */
#ifndef AGENT_DECIDE_CONFIRM_H
#define AGENT_DECIDE_CONFIRM_H

#include <stddef.h>

#include "agent/decide/decision.h"
#include "agent/decide/recover.h"
#include "agent/model/change.h"
#include "detectors/confirm.h"
#include "detectors/precedent.h"

struct arena;

/* Why a change waits, or is recorded but not announced. */
enum confirm_reason {
	CONFIRM_RULE,  /* `confirm` is not satisfied */
	CONFIRM_AGAIN, /* the points are those that were judged before, in another way */
	CONFIRM_END,   /* it may be the end of an earlier one, ... */
	CONFIRM_DOUBT, /* ... or over itself */
	CONFIRM_SHARE, /* `fdr`; its rank and limit follow */
	CONFIRM_HELD,
	CONFIRM_AGE,     /* recorded only: older than max_age, ... */
	CONFIRM_SEEN,    /* ... seen in points that were judged before, ... */
	CONFIRM_OVER,    /* ... over before its announcement, ... */
	CONFIRM_BACK,    /* ... or before its hold ended, ... */
	CONFIRM_COVERED, /* ... or announced as the recovery of another */
	CONFIRM_LOST,    /* of a candidate: not found any more */
	CONFIRM_REASONS,
};

/* Sentences, in lower case and without a full stop. A series' own record has others
 * (precedent_reasons). */
extern const char *const confirm_reasons[CONFIRM_REASONS];

/* The word for a decision's reason: "confirmation", "fdr", "hold", "precedent", "max_age",
 * "silent", "way_back", "withdrawn"; NULL: it is none of these. */
const char *confirm_word(const char *reason);

/* A change that a run has found, and that was not confirmed before. */
struct confirm_case {
	const struct confirm_rule *rule;
	const struct change *change; /* as found now */
	int64_t time;                /* ms, its place */
	size_t first_count;          /* points that followed it when it was first found */
	bool service;                /* as confirm_holds takes it */
	const char *silent;          /* why it is never announced; NULL: it may be */
	bool at_once;                /* such a one that waits for nothing */
	const char *again;           /* why it waited, if the points are those of then; or NULL */
	enum doubt doubt;
	bool covered; /* see CONFIRM_COVERED */
	enum precedent_verdict precedent;
	double share;        /* `fdr`; 0: off */
	size_t series;       /* that have the same share, found or not */
	const void *of;      /* its series. Cases of one series are adjacent */
	int64_t seen, until; /* ms, as in struct hold, ... */
	bool off;            /* ... and this */
	int64_t clock;       /* ms, the series' own (hold_clock) */
	bool on_hold;        /* out: it waits for more than the rule */
	struct decision
		decision; /* out: PASS: to announce. HOLD: a candidate, with `until` if only the
			     hold prevents its confirmation. DROP: confirmed, not announced */
};

/* Decides all candidates of a run. Reasons with numbers live in the arena. */
void confirm_decide(struct arena *arena, struct confirm_case *cases, size_t count);

#endif
