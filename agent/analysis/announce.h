/*
 * Builds the announcement of a change point: attributes, slope, suspects, links and owner.
 */
#ifndef AGENT_ANALYSIS_ANNOUNCE_H
#define AGENT_ANALYSIS_ANNOUNCE_H

#include "agent/base/arena.h"
#include "agent/model/change_record.h"
#include "agent/model/message.h"
#include "agent/model/series.h"
#include "conf/config.h"

enum { ANNOUNCE_ATTRIBUTE_CHARS = 200 };

/* Returns the announcement without id and links. Texts are copied to the arena, except `test`.
 * `environment` is the test's environment, or NULL. */
struct announcement announce_change(struct arena *arena, const char *test, const char *environment,
	const struct series *series, const struct change *change);

/* Copies the announcement, including its test name, without its excerpt, to another arena. */
struct announcement announce_copy(struct arena *arena, const struct announcement *item);

/* Sets the URL of the change's page, if agent.external_url is set. */
void announce_page(struct arena *arena, const struct config *config, struct announcement *item);

/* Sets the page, and links and owner from the templates of the record's test, which may no longer
 * be configured. A cluster gets those that all its tests share. The item borrows the
 * configuration's templates. */
void announce_links(struct arena *arena, const struct config *config, struct change_record *record);

/* How the change of a sent message stands `now` (ms), with links; `told` is its time as it is now.
 */
struct announced_change announce_now(struct arena *arena, const struct config *config,
	const struct change_record *record, int64_t now);

/* Like announce_links, without the page and with the templates of `test`, which may be NULL. */
void announce_links_by(struct arena *arena, const struct test *test, struct change_record *record);

#endif
