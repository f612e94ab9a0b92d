/*
 * From a change point of a series to what is told of it.
 */
#ifndef AGENT_ANNOUNCE_H
#define AGENT_ANNOUNCE_H

#include "agent/core/arena.h"
#include "agent/core/series.h"
#include "conf/config.h"
#include "notifiers/notifier.h"

enum { ANNOUNCE_ATTRIBUTES_MAX = 20, ANNOUNCE_ATTRIBUTE_CHARS = 200 };

/* The announcement, without id and links; texts are copied to the arena, but for `test`. */
struct announcement announce_change(struct arena *arena, const char *test,
	const struct series *series, const struct change *change);

/* The same in another arena; its test too. */
struct announcement announce_copy(struct arena *arena, const struct announcement *item);

/* Sets the links that the test, which may be NULL, has templates for. */
void announce_links(struct arena *arena, const struct test *test, struct announcement *item);

#endif
