/*
 * Changes as JSON, for messages, commands and the API. Texts from outside lose their control
 * characters.
 */
#ifndef AGENT_MODEL_RECORD_JSON_H
#define AGENT_MODEL_RECORD_JSON_H

#include "agent/base/buf.h"
#include "agent/model/change_record.h"

/* Appends an object on one line. Times are ISO 8601 in UTC; unknown values are null. */
void record_put_json(struct buf *out, const struct change_record *record);

/* Appends the member "triage". */
void triage_put_json(struct buf *out, const struct triage *triage);

/* Removes the origin of users' actions from the records' history. */
void record_hide_origins(struct arena *arena, struct record_rows *rows);

/* Appends further members of an object: a run's finding without the suspects and attributes. */
void record_put_found(struct buf *out, const struct announcement *item);

/* When the first message about it arrived, ms; 0 if none has, as far as its history goes back. */
int64_t record_announced(const struct change_record *record);

/* The following ones write members, after a comma where one is needed: "environment": null, or the
 * numbers of the event. */
void environment_put_json(struct buf *out, const struct environment_event *event);

/* "explained_by": "shop/traffic", "relative_to": null, "other_changed": true, "other_size": 40.1:
 * null where there is no such series, or where it did not change. */
void announcement_put_basis(struct buf *out, const struct announcement *item);

/* "culprit": null where no bisection has ended, else what culprit_put writes. */
void announcement_put_culprit(struct buf *out, const struct announcement *item);

/* "suspects": null where nothing is known, else {"from": ..., "to": ..., "count": ..., "list":
 * [...], "last": ...}; `time` is that of the change, from which ages count. */
void announcement_put_suspects(struct buf *out, const struct attribution *suspects, int64_t time);

/* "attributes" of the first point of the new level, commit and version among them: {"commit": "a1",
 * "machine": "perf7"}; and "attributes_before", of the last point before. */
void announcement_put_attributes(struct buf *out, const struct announcement *item);

#endif
