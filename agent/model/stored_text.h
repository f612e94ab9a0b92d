/* The stored texts of the composite fields of a change: its attributes, its suspects and its
 * culprit. */
#ifndef AGENT_MODEL_STORED_TEXT_H
#define AGENT_MODEL_STORED_TEXT_H

#include "agent/model/columns.h"

/* Reads the output of culprit_put. NULL: malformed. */
const struct culprit *culprit_read(struct arena *arena, const char *text);

/* Appends that of a column of such a type; nothing where there is none. */
void stored_text_put(
	struct buf *out, const struct stored_column *column, const struct change_record *record);

/* Reads it, or NULL for none, into the arena. False: it is malformed. */
bool stored_text_read(struct arena *arena, const struct stored_column *column, const char *text,
	struct change_record *record) MUST_USE;

#endif
