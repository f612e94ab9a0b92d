/*
 * The column `attributes` of a change: what its points have besides commit and version, as JSON:
 * [["build", "17", "18"], ["machine", "perf7", null]], a name, and the values before and after. The
 * other series that it is judged by comes first: [" explained_by", "shop/traffic", "40.1"], by how
 * many percent that changed, or null.
 *
 * The column `suspects`: {"timed": true, "count": 2, "list": [["c41", null, 1000, 1000], ...],
 * "span": [0, 2000], "last": ["c40", null, null, 0], "corrections": 0}: of each deployment commit,
 * version, and after when and by when it was (ms), null: nobody knows.
 */
#ifndef AGENT_STORE_SQLITE_ATTRIBUTES_H
#define AGENT_STORE_SQLITE_ATTRIBUTES_H

#include "agent/core/arena.h"
#include "agent/store/store.h"

/* Appends the text; nothing where the change has no attributes. */
void store_attributes_put(struct buf *out, const struct announcement *item);

/* Reads it, or NULL for none, into the arena. False if it is not such a text. */
bool store_attributes_read(struct arena *arena, const char *text, struct announcement *item);

/* The same of suspects; nothing where they are not known. */
void store_suspects_put(struct buf *out, const struct attribution *suspects);
bool store_suspects_read(struct arena *arena, const char *text, struct attribution *suspects);

#endif
