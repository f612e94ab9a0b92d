/*
 * What people say about changes, and when that is open again; used by the other files of this
 * folder.
 */
#ifndef AGENT_STORE_SQL_TRIAGE_H
#define AGENT_STORE_SQL_TRIAGE_H

#include "agent/store/sql/driver.h"

/* Opens a triaged change that has outgrown its size then, and makes it news. Both this and the next
 * add to `pending` how many changes are to be announced again. */
void triage_open_outgrown(struct tx *tx, int64_t id, const struct triage *accepted,
	const struct change *change, int64_t now, size_t *pending);

/* Settles the news of accepted changes, and makes that of those pending that are so no longer.
 * After all that can change either. */
void triage_settle(struct tx *tx, size_t *pending);

/* What messages say of the changes, whose ids are a JSON array, is to be edited. */
void triage_amend(struct tx *tx, const char *changes);

/* What is new of the changes, the same, is to be shown in their messages, and
 * receivers that have them are to be told it: bits of enum said_kind. */
void triage_announce(struct tx *tx, const char *changes, unsigned what);

#endif
