/*
 * A change as JSON, the same for `hunter-c changes` and for the agent's pages.
 */
#ifndef AGENT_STORE_RECORD_JSON_H
#define AGENT_STORE_RECORD_JSON_H

#include "agent/core/buf.h"
#include "agent/store/store.h"

/* Appends an object on one line. Times are ISO 8601 in UTC; what is not known is null. */
void record_put_json(struct buf *out, const struct change_record *record);

/* As further members of an object: what it is, its levels, size and place. */
void record_put_description(struct buf *out, const struct announcement *item);

/* When the first message about it arrived, ms; 0 if none has, as far as its history goes back. */
int64_t record_announced(const struct change_record *record);

#endif
