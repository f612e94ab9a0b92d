/*
 * The audit log: who has changed what, and when; used by the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_AUDIT_H
#define AGENT_STORE_SQL_AUDIT_H

#include "agent/store/sql/rows.h"

/* Without a subject, one about a change is about its test and metric. */
bool audit_add(
	struct store_file *file, const struct audit_entry *entry, struct error *error) MUST_USE;

/* "; owner: ann": part of a detail; quoted if it could be taken for several. */
void audit_put_text(struct buf *detail, const char *name, const char *text);

/* Merges the last of what was said about the records into their events, in the order of time. */
bool audit_load_events(struct store_file *file, struct arena *arena, struct change_record *records,
	const struct owners *owners, struct error *error) MUST_USE;

#endif
