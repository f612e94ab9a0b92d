/*
 * A decision and its reason.
 *
 * Decisions are pure functions: they read no clock, no file and no state. All clients (runs, rounds
 * of messages, `why`, gates, the page) call the same function.
 */
#ifndef AGENT_DECIDE_DECISION_H
#define AGENT_DECIDE_DECISION_H

#include <stdint.h>

enum verdict {
	PASS,
	HOLD, /* not yet */
	DROP, /* not at all */
};

struct decision {
	enum verdict verdict;
	const char *reason; /* a literal, or borrowed from the input; NULL: none */
	int64_t until;      /* ms, of HOLD: when to decide again; 0: unknown */
};

#endif
