/*
 * The optional weekly heartbeat of a receiver (`heartbeat: weekly`): what was read, what was found,
 * and what has no data, so that silence means no changes.
 *
 * The first one is sent when all tests have run once, each later one a week after the one before;
 * the state file holds the time.
 */
#ifndef AGENT_SERVICE_HEARTBEAT_H
#define AGENT_SERVICE_HEARTBEAT_H

#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct heartbeat;

struct heartbeat *heartbeat_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler);
void heartbeat_free(struct heartbeat *heartbeat); /* after the engine */

/* Takes the times of earlier heartbeats from store_restore; before heartbeat_look. */
void heartbeat_restore(struct heartbeat *heartbeat, const struct store_restore *restored);

/* Sends due heartbeats, now and, unless with --once, from then on; also after a reload. */
void heartbeat_look(struct heartbeat *heartbeat);

#endif
