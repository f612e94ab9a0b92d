/*
 * Whether a change still counts, or people have accepted it: by an entry of known_changes, or by
 * triage. Used by the agent, the gates of one-shot commands, and `why`.
 */
#ifndef AGENT_DECIDE_GATE_H
#define AGENT_DECIDE_GATE_H

#include "agent/decide/decision.h"
#include "agent/model/change_record.h"
#include "agent/model/known_change.h"

/*
 * The first entry that covers the record at `now` (ms), or NULL. Then *expired is an entry that
 * covered it until it expired, else NULL. Reads only the record's item, series, sign and spacing.
 */
const struct known_change *gate_known(const struct known_change *entries, size_t count,
	const struct change_record *record, int64_t now, const struct known_change **expired);

/* DROP: people have spoken of the change, and it is no larger than it was then. The reason is the
 * state that they gave it. */
struct decision gate_triage(const struct triage *triage, const struct change *change, int64_t now);

/*
 * Whether a change that joins an incident with these members inherits their triage. DROP: that of
 * *from, whose state is the reason. That is if all that stand are triaged, and one that people have
 * accepted has the same suspects, is no smaller, and goes the same way, for better or worse. PASS:
 * it is open, and why; no reason if nothing was accepted.
 */
struct decision gate_inherit(const struct change_record *joiner, const struct record_rows *members,
	int64_t now, const struct change_record **from);

/* Whether any entry is about the test. */
bool gate_concerns(const struct known_change *entries, size_t count, const char *test);

/* The entry that covers the record, for known_changes_write. Borrows the record's texts. */
struct known_change gate_entry(
	const struct change_record *record, const char *reason, int64_t until);

#endif
