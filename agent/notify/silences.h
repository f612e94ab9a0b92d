/*
 * Silences and mute times: which changes and notices are held back, and for how long.
 *
 * A filter of the dispatcher holds pending changes that an active silence selects, and those of
 * tests in a mute time. When the silence is over, the changes still pending go into one message
 * that names it. The silences are rows of the store; those that are not over, or whose message has
 * not been queued, are kept here with their matchers compiled. A pending change is matched with
 * each silence once, not in each round.
 */
#ifndef AGENT_NOTIFY_SILENCES_H
#define AGENT_NOTIFY_SILENCES_H

#include "agent/notify/notices.h"
#include "agent/runtime/agent.h"
#include "agent/runtime/filter.h"
#include "agent/runtime/silence.h"

struct silences;

/* `look` is called when a round is due: a silence is over. */
struct silences *silences_new(
	struct agent *agent, struct notices *notices, void (*look)(void *context), void *context);
void silences_free(struct silences *silences);

/* Replaces all silences by those of the store, which come by id. */
void silences_restore(struct silences *silences, const struct silence_rows *rows);

/* A silence was added or ended early; `silence` is as stored. */
void silences_note(struct silences *silences, const struct silence *silence);

/* To be called after a reload, which may change groups and mute times. */
void silences_adopt(struct silences *silences);

/* Holds changes, and sets the `summary` of those that an expired silence has held. Its texts are
 * valid until the filter's next round begins. */
struct filter silences_filter(struct silences *silences);

/* Sets the `summary` of a record that the filter does not judge, since some receivers have it; in a
 * round, after the filter. */
void silences_summarize(struct silences *silences, struct change_record *record);

/* In a fleet, when another agent becomes the leader: forgets held notices. */
void silences_forget(struct silences *silences);

/* Reports the end of a round, and whether its announcements were stored. */
void silences_written(struct silences *silences, bool stored);

/* Whether a notice about the target is held back now. *until: when that may end. */
bool silences_hold(struct silences *silences, const struct silence_target *subject, int64_t *until);

/* Changes with each silence noted and each configuration. While it stays the same, silences_hold
 * answers the same, until its *until. */
uint64_t silences_version(const struct silences *silences);

#endif
