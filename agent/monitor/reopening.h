/*
 * Reopens changes whose triage has expired: at that time, or at the next start.
 */
#ifndef AGENT_MONITOR_REOPENING_H
#define AGENT_MONITOR_REOPENING_H

#include "agent/runtime/agent.h"

struct reopening;

struct reopening *reopening_new(struct agent *agent);
void reopening_free(struct reopening *reopening); /* accepts NULL; after the engine */

#endif
