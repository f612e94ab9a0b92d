/*
 * Changes that known_changes covers are expected: the agent triages them itself, as soon as a run
 * has recorded them, and announces nothing. A person's triage stands until it expires.
 */
#ifndef AGENT_NOTIFY_EXPECTED_H
#define AGENT_NOTIFY_EXPECTED_H

#include "agent/notify/dispatcher.h"

struct expected;

/* Adds its filter to the dispatcher. `triaged` is called when a triage was recorded that will
 * expire, or that opens a change. */
struct expected *expected_new(struct agent *agent, struct dispatcher *dispatcher,
	void (*triaged)(void *context), void *context);
void expected_free(struct expected *expected); /* accepts NULL */

/* Takes over changes that were accepted in another state or by another agent: the records with
 * triage, which are borrowed. `origin` names it in the audit log. */
void expected_elsewhere(struct expected *expected, struct record_rows records, const char *origin);

/* Reviews known open changes and those accepted by entries against known_changes: at the start and
 * after a reload. */
void expected_sweep(struct expected *expected);

/* How many changes it has triaged. */
size_t expected_count(const struct expected *expected);

#endif
