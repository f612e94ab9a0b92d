/*
 * Silences and mute times: which changes and notices are held back, and until when.
 *
 * A filter of the dispatcher holds what a live silence selects, or what is found while a mute time
 * of its test holds. When the silence is over, what is still to be announced goes into one message,
 * which says so. The silences are rows of the store; those that are not over, or whose message has
 * not been queued, are kept here with their matchers compiled. A pending change is matched with
 * each silence once, not in each round.
 */
#ifndef AGENT_NOTIFY_SILENCES_H
#define AGENT_NOTIFY_SILENCES_H

#include "agent/notify/filter.h"
#include "agent/notify/silence.h"
#include "agent/runtime/agent.h"

struct silences;

/* What the dispatcher does for them. */
struct silences_events {
	void (*look)(void *context); /* a round is due: a silence is over */
	void (*remind)(void *context, const struct notice *notice, const struct strings *receivers);
	void *context;
};

struct silences *silences_new(struct agent *agent, const struct silences_events *events);
void silences_free(struct silences *silences);

/* Takes over those of the store, by id, in place of those that are here. */
void silences_restore(struct silences *silences, const struct silence_rows *rows);

/* One that was added, or ended early; as it is in the store. */
void silences_note(struct silences *silences, const struct silence *silence);

/* To be called after a reload: tests have other groups and mute times. */
void silences_adopt(struct silences *silences);

/* Holds changes, and sets the `summary` of those that a silence which is over has held. Its texts
 * are valid until the filter's next round begins. */
struct filter silences_filter(struct silences *silences);

/* Sets the `summary` of a record that the filter is not asked about, since some receivers have it;
 * in a round, after the filter. */
void silences_summarize(struct silences *silences, struct change_record *record);

/* How many changes are pending, as the store says: fewer than are held means that a round is due.
 */
void silences_pending(struct silences *silences, int64_t changes);

/* In a fleet, when another agent tells what is pending: forgets what was held. */
void silences_forget(struct silences *silences);

/* Reports the end of a round, and whether what was to be announced in it is in the store. */
void silences_written(struct silences *silences, bool stored);

/* Whether a notice about it is held back now. *until is set to when that may end. */
bool silences_hold(struct silences *silences, const struct silence_target *subject, int64_t *until);

/* Differs when a silence was noted or the configuration has changed: until then, and until what
 * silences_hold has said, the same is held. */
uint64_t silences_version(const struct silences *silences);

#endif
