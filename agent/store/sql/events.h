/*
 * The log of events; used by the other files of this folder.
 */
#ifndef AGENT_STORE_SQL_EVENTS_H
#define AGENT_STORE_SQL_EVENTS_H

#include "agent/store/sql/rows.h"

/* Without a subject, an entry of the audit log about a change is about its test and metric. */
void event_add(struct tx *tx, const struct event *event);

/* "; owner: ann": part of a detail; quoted if it could be taken for several. */
void event_put_text(struct buf *detail, const char *name, const char *text);

/* Loads the records' histories. */
void events_load(struct tx *tx, struct change_record *records, size_t count);

#endif
