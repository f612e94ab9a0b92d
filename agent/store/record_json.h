/*
 * A change record as JSON, for `hunter-c changes` and the API.
 */
#ifndef AGENT_STORE_RECORD_JSON_H
#define AGENT_STORE_RECORD_JSON_H

#include "agent/base/buf.h"
#include "agent/store/store.h"

/* Appends an object on one line. Times are ISO 8601 in UTC; unknown values are null. */
void record_put_json(struct buf *out, const struct change_record *record);

/* Removes from the records' history from where people said something. */
void record_hide_origins(struct arena *arena, struct record_rows *rows);

/* Appends further members of an object: kind, levels, size and place. */
void record_put_description(struct buf *out, const struct announcement *item);

/* When the first message about it arrived, ms; 0 if none has, as far as its history goes back. */
int64_t record_announced(const struct change_record *record);

#endif
