/*
 * Follow-ups to sent messages, where the notifier supports them.
 *
 * A message is edited when its changes differ from what it shows: triaged, moved, grown, with other
 * suspects, recovered, withdrawn or found again. The store marks it in the transaction that writes
 * the change and clears the mark once it was edited, so that a crash in between loses nothing. If
 * the message was deleted while one of its changes stands, it is sent again. Messages about open or
 * acknowledged changes, and those whose reactions were applied, are polled for reactions for a
 * week, less often as they age; reactions become triage. Receivers that forget alerts unless they
 * are repeated get them refreshed from time to time: that schedule is not stored, so a new process
 * starts by refreshing all but those that were sent just now.
 *
 * Each receiver has one request at a time, at most 20 a minute unless it names another pace;
 * deliveries are never delayed by them. A pause that the receiver asks for is kept. A request that
 * is refused repeatedly for three days is given up; one without an answer never is.
 *
 * A single pass neither polls messages nor edits those of Slack. It updates or resolves each
 * message once at receivers that hold an alert until it is resolved; the next pass does the rest.
 */
#ifndef AGENT_DELIVER_FOLLOW_UPS_H
#define AGENT_DELIVER_FOLLOW_UPS_H

#include "agent/runtime/agent.h"

struct follow_ups;

struct follow_ups *follow_ups_new(struct agent *agent);
void follow_ups_free(struct follow_ups *follow_ups); /* after the engine; accepts NULL */

/* Polls the store for due follow-ups now; so does HINT_LOOK. */
void follow_ups_look(struct follow_ups *follow_ups);

/* The names, in the arena, of receivers that hold an alert until it is resolved. */
struct strings follow_ups_keeping(const struct config *config, struct arena *arena);

#endif
