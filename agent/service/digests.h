/*
 * The digest of a receiver (`digest: {at, days, zone}`): open changes with their owners, and what
 * happened since the last digest.
 *
 * It is sent at the configured local times, once for all times that passed while the agent was
 * down; the state file has the time of the last one. The first one covers the time since the agent
 * first saw the receiver.
 */
#ifndef AGENT_SERVICE_DIGESTS_H
#define AGENT_SERVICE_DIGESTS_H

#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct digests;

struct digests *digests_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler);
void digests_free(struct digests *digests); /* after the engine */

/* Takes the times of earlier digests from store_restore; before digests_look. */
void digests_restore(struct digests *digests, const struct store_restore *restored);

/* Sends due digests, now and, unless with --once, from then on; also after a reload. */
void digests_look(struct digests *digests);

/* The digest's last time that is not after `now`, and the first one after it. */
int64_t digests_before(const struct digest_times *times, int64_t now);
int64_t digests_after(const struct digest_times *times, int64_t now);

#endif
