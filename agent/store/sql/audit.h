/*
 * The audit log: who has changed what, and when; used by the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_AUDIT_H
#define AGENT_STORE_SQL_AUDIT_H

#include "agent/store/sql/rows.h"

/* Without a subject, one about a change is about its test and metric. */
void audit_add(struct tx *tx, const struct audit_entry *entry);

/* "; owner: ann": part of a detail; quoted if it could be taken for several. */
void audit_put_text(struct buf *detail, const char *name, const char *text);

/* Merges the last of what was said about the records into their events, in the order of time. */
void audit_load_events(struct tx *tx, struct change_record *records, const struct owners *owners);

#endif
