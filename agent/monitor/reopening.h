/*
 * Reopens changes whose triage has expired: at that time, or at the next start.
 */
#ifndef AGENT_MONITOR_REOPENING_H
#define AGENT_MONITOR_REOPENING_H

#include "agent/runtime/agent.h"

struct reopening;

struct reopening *reopening_new(struct agent *agent);
void reopening_free(struct reopening *reopening); /* accepts NULL; after the engine */

/* Reopens expired triage and waits for the next expiry. Call it at the start, and after triage. */
void reopening_look(struct reopening *reopening);

#endif
