/*
 * Opens again what people have said about changes until a time: at that time, or at the next start.
 */
#ifndef AGENT_MONITOR_REOPENING_H
#define AGENT_MONITOR_REOPENING_H

#include "agent/notify/dispatcher.h"

struct reopening;

struct reopening *reopening_new(struct agent *agent, struct dispatcher *dispatcher);
void reopening_free(struct reopening *reopening); /* accepts NULL; after the engine */

/* Opens what has expired, and waits for the next. Call it at the start, and when something was said
 * about changes. */
void reopening_look(struct reopening *reopening);

#endif
