/*
 * Changes that known_changes covers are expected: the agent triages them itself, as soon as a run
 * has recorded them, and announces nothing. A person's triage stands until it expires.
 */
#ifndef AGENT_MONITOR_EXPECTED_H
#define AGENT_MONITOR_EXPECTED_H

#include "agent/runtime/agent.h"
#include "agent/runtime/filter.h"

struct expected;

struct expected *expected_new(struct agent *agent);
void expected_free(struct expected *expected); /* accepts NULL */

/* The records of a run, before they can be announced. */
void expected_note(struct expected *expected, const struct record_rows *records);

/* Holds changes that it covers, for those whose triage the store could not write. */
struct filter expected_filter(struct expected *expected);

/* Takes over changes that were accepted in another state or by another agent: the records with
 * triage, which are borrowed. `origin` names it in the audit log. */
void expected_elsewhere(struct expected *expected, struct record_rows records, const char *origin);

/* How many changes it has triaged. */
size_t expected_count(const struct expected *expected);

#endif
