/*
 * Reminders of untriaged regressions, to receivers with `remind_after`.
 *
 * Each sent message with such a change gets one after `remind_after`, and again as long after each
 * reminder. The time is stored in the transaction that queues the reminder. Changes that a silence
 * holds are left out until it is over.
 */
#ifndef AGENT_NOTIFY_REMINDERS_H
#define AGENT_NOTIFY_REMINDERS_H

#include "agent/runtime/agent.h"

struct reminders;

struct reminders *reminders_new(struct agent *agent);
void reminders_free(struct reminders *reminders); /* after the engine; accepts NULL */

#endif
