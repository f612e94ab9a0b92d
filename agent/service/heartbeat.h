/*
 * The weekly sign of life that a receiver may ask for (`heartbeat: weekly`): what was looked at,
 * what was found, and what has no data, so that silence means that all is well.
 *
 * The first one comes when all tests have been looked at once, each later one a week after the one
 * before; the state file knows when that was.
 */
#ifndef AGENT_SERVICE_HEARTBEAT_H
#define AGENT_SERVICE_HEARTBEAT_H

#include "agent/monitor/scheduler.h"
#include "agent/notify/dispatcher.h"

struct heartbeat;

struct heartbeat *heartbeat_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *watch);
void heartbeat_free(struct heartbeat *heartbeat); /* after the engine */

/* What STORE_RESTORE says of earlier ones; before heartbeat_look. */
void heartbeat_restore(struct heartbeat *heartbeat, const struct store_request *restored);

/* Looks what is due, now and, unless it is a single pass, from then on; also after a reload. */
void heartbeat_look(struct heartbeat *heartbeat);

#endif
