/*
 * From a change point of a series to what is told of it.
 */
#ifndef AGENT_NOTIFY_ANNOUNCE_H
#define AGENT_NOTIFY_ANNOUNCE_H

#include "agent/core/arena.h"
#include "agent/core/series.h"
#include "agent/store/store.h"
#include "conf/config.h"

enum { ANNOUNCE_ATTRIBUTE_CHARS = 200 };

/* The announcement, without id and links; texts are copied to the arena, but for `test`.
 * `environment`: the test's, or NULL. */
struct announcement announce_change(struct arena *arena, const char *test, const char *environment,
	const struct series *series, const struct change *change);

/* The same in another arena; its test too. */
struct announcement announce_copy(struct arena *arena, const struct announcement *item);

/* Sets the links and the owner that the record's test has templates for; it may be gone. A
 * cluster's are those that all its tests have. The item borrows the configuration's templates. */
void announce_links(struct arena *arena, const struct config *config, struct change_record *record);

/* The same by the templates of that test, which may be NULL. */
void announce_links_by(struct arena *arena, const struct test *test, struct change_record *record);

#endif
