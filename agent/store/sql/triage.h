/*
 * What people say about changes, and when that is open again; used by the other files of this
 * folder.
 */
#ifndef AGENT_STORE_SQL_TRIAGE_H
#define AGENT_STORE_SQL_TRIAGE_H

#include "agent/store/sql/driver.h"

/* Opens a triaged change that has outgrown its size then, and makes it news. Both this and the next
 * add to `pending` how many changes are to be announced again. */
bool triage_open_outgrown(struct store_file *file, int64_t id, const struct triage *accepted,
	const struct change *change, int64_t now, size_t *pending, struct error *error) MUST_USE;

/* Settles the news of accepted changes, and makes that of those pending that are so no longer.
 * After all that can change either. */
bool triage_settle(struct store_file *file, size_t *pending, struct error *error) MUST_USE;

/* Receivers that have the change are to be told this of it; bits of enum said_kind. */
bool triage_announce(
	struct store_file *file, int64_t change, unsigned what, struct error *error) MUST_USE;

#endif
