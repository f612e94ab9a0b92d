/*
 * Tests and metrics that have another name now: what the store knows of the old one becomes the
 * new one's.
 */
#ifndef AGENT_SERVICE_RENAMES_H
#define AGENT_SERVICE_RENAMES_H

#include "agent/runtime/agent.h"

/* Asks the store to do it, for all that the agent's configuration says, before it is asked for
 * anything of the new names. What has been done already is left alone. */
void renames_apply(struct agent *agent);

#endif
