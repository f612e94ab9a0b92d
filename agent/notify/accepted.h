/*
 * Which changes have been accepted: by an entry of known_changes, or by triage. Pure functions,
 * shared by the agent and the gates of one-shot commands.
 */
#ifndef AGENT_NOTIFY_ACCEPTED_H
#define AGENT_NOTIFY_ACCEPTED_H

#include "agent/store/store.h"
#include "conf/config.h"
#include "conf/known_changes.h"

/*
 * The first entry that covers the record at `now` (ms), or NULL. Then *expired is an entry that
 * covered it until it expired, else NULL. Reads only the record's item, series, sign and spacing.
 */
const struct known_change *accepted_known(const struct config *config,
	const struct change_record *record, int64_t now, const struct known_change **expired);

/* Whether any entry is about the test. */
bool accepted_concerns(const struct config *config, const char *test);

/* The entry that covers the record, for known_changes_write. Borrows the record's texts. */
struct known_change accepted_entry(
	const struct change_record *record, const char *reason, int64_t until);

#endif
