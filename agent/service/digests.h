/*
 * The digest of a receiver (`digest: {at, days, zone}`): what is open and whose it is, and what has
 * happened since the last one.
 *
 * It is sent at its times of the zone's clock, once for all times that passed while the agent was
 * down; the state file holds when it was sent last. The first one tells what has happened since the
 * agent has known of it.
 */
#ifndef AGENT_SERVICE_DIGESTS_H
#define AGENT_SERVICE_DIGESTS_H

#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct digests;

struct digests *digests_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler);
void digests_free(struct digests *digests); /* after the engine */

/* Takes the times of earlier ones from store_restore; before digests_look. */
void digests_restore(struct digests *digests, const struct store_restore *restored);

/* Checks what is due, now and, unless with --once, from then on; also after a reload. */
void digests_look(struct digests *digests);

/* The last time of the digest that is not after `now`, and the first one after it. */
int64_t digests_before(const struct digest_times *times, int64_t now);
int64_t digests_after(const struct digest_times *times, int64_t now);

#endif
