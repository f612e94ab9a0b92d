/*
 * Triage: what people say about a change, beside the detector's own state of it.
 */
#ifndef AGENT_CORE_TRIAGE_H
#define AGENT_CORE_TRIAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers are stored: never change them. */
enum triage_state {
	TRIAGE_OPEN = 1, /* the default: nobody has said anything */
	TRIAGE_ACKNOWLEDGED,
	TRIAGE_EXPECTED,
	TRIAGE_IGNORED,
	TRIAGE_INFRA, /* the environment changed, not the program */
	TRIAGE_FALSE, /* no change at all */
	TRIAGE_FIXED,
	TRIAGE_STATES,
};

/* By state, NULL for 0; ends with NULL. */
extern const char *const triage_state_names[TRIAGE_STATES + 1];

/* False: no such state. */
bool triage_state_named(const char *name, enum triage_state *state);

/* Expected, ignored, infra, false: it is neither announced nor counted in gates. */
bool triage_is_accepted(enum triage_state state);

/* Not counted in gates: all but open. */
bool triage_passes_gates(enum triage_state state);

/* What was said last. Strings are borrowed; NULL: nothing. */
struct triage {
	enum triage_state state;
	int64_t version; /* counts what was said; 0: nothing */
	const char *owner, *note, *link;
	const char *person; /* who said it */
	int64_t time;       /* ms, when */
	int64_t until;      /* ms: open again from then on; 0: never */
	/* The change's size with its interval when it was said, percent; NaN: unknown. */
	double size, size_low, size_high;
};

#endif
