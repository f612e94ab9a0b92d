/*
 * Changes that known_changes covers are expected: the agent triages them itself, as soon as a run
 * has recorded them, and nobody is told. What a person has said about a change stands until it
 * expires.
 */
#ifndef AGENT_NOTIFY_EXPECTED_H
#define AGENT_NOTIFY_EXPECTED_H

#include "agent/notify/dispatcher.h"

struct expected;

/* Adds its filter to the dispatcher. `triaged` is called when something was said that will expire,
 * or opens a change. */
struct expected *expected_new(struct agent *agent, struct dispatcher *dispatcher,
	void (*triaged)(void *context), void *context);
void expected_free(struct expected *expected); /* accepts NULL */

/* Changes that were accepted elsewhere are taken over: those with triage among the records, which
 * are borrowed. `origin` names that place in the audit log. */
void expected_elsewhere(struct expected *expected, struct record_rows records, const char *origin);

/* Looks at the changes that are known and open, and whether those that entries have accepted still
 * are, as the entries say: at the start, and with another configuration. */
void expected_sweep(struct expected *expected);

/* How many changes it has triaged. */
size_t expected_count(const struct expected *expected);

#endif
