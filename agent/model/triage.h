/*
 * Triage: what people say about a change, beside the detector's own state of it.
 */
#ifndef AGENT_MODEL_TRIAGE_H
#define AGENT_MODEL_TRIAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/model/change.h"

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
	/* The change's size with its interval when that was said, percent; of an open one, what it
	 * was before. NaN: unknown. Of a change without an interval, that of single values. */
	double size, size_low, size_high;
	int64_t renewals; /* how often the change outgrew its size, and was news again */
};

/* The state at a time: open if it has expired, even if the store has not noticed yet. */
enum triage_state triage_at(const struct triage *triage, int64_t now);

/* Sets the sizes to those of the change. */
void triage_measure(struct triage *triage, const struct change *change);

/* Whether a change is larger than when it was triaged, by more than the intervals of
 * both. A size that is unknown only now, or was only then, counts as larger. */
bool triage_outgrown(const struct triage *accepted, const struct change *change);

#endif
