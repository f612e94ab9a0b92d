/*
 * What is decided, and why.
 *
 * A decision is a pure function of what is known: it reads no clock, no file and no state. Whoever
 * needs one (a run, a round of messages, `why`, a gate, the page) calls the same function.
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
	const char
		*reason; /* a literal, or borrowed from the input; NULL: there is nothing to say */
	int64_t until;   /* ms, of HOLD: when to decide again; 0: nobody knows */
};

#endif
