/*
 * Reminders: of regressions that nobody has said anything about, to receivers with `remind_after`.
 *
 * One message for each sent message with such a change, as long after it, and then again as long
 * after each reminder. When people were reminded is stored in the transaction that queues the
 * message. Changes that a silence holds are left out until it is over.
 */
#ifndef AGENT_NOTIFY_REMINDERS_H
#define AGENT_NOTIFY_REMINDERS_H

#include "agent/notify/dispatcher.h"

struct reminders;

struct reminders *reminders_new(struct agent *agent, struct delivery_manager *delivery_manager,
	struct dispatcher *dispatcher);
void reminders_free(struct reminders *reminders); /* after the engine; accepts NULL */

/* Looks for what is due: at the start and after a reload. Accepts NULL. */
void reminders_look(struct reminders *reminders);

#endif
