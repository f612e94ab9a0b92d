/*
 * Triage: the state that people give a change, beside the detector's own.
 */
#ifndef AGENT_MODEL_TRIAGE_H
#define AGENT_MODEL_TRIAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/model/change.h"

/* The numbers are stored: never change them. */
enum triage_state {
	TRIAGE_OPEN = 1, /* the default: untriaged */
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

/* Ignored, infra, false: it is none of the program's, and its end is not told. */
bool triage_is_foreign(enum triage_state state);

/* Not counted in gates: all but open. */
bool triage_passes_gates(enum triage_state state);

/* The latest triage. Strings are borrowed, or NULL. */
struct triage {
	enum triage_state state;
	int64_t version; /* counts triages; 0: none */
	const char *owner, *note, *link;
	const char *person; /* its author */
	int64_t time;       /* ms, its time */
	int64_t until;      /* ms: open again from then on; 0: never */
	/* The change's size with its interval at the time of triage, percent; of an open one, the
	 * previous one. NaN: unknown. For a change without an interval, that of single values. */
	double size, size_low, size_high;
	int64_t inherited; /* id of the incident that it was inherited from; 0: it was given */
	int64_t renewals;  /* how often the change outgrew its size and was announced again */
};

/* The state at a time: open if it has expired, even if the store has not noticed yet. */
enum triage_state triage_at(const struct triage *triage, int64_t now);

/* Sets the sizes to those of the change. */
void triage_measure(struct triage *triage, const struct change *change);

/* Whether a change is larger than when it was triaged, by more than the intervals of
 * both. A size that is unknown only now, or was only then, counts as larger. */
bool triage_outgrown(const struct triage *accepted, const struct change *change);

#endif
