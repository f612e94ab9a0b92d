/*
 * Follow-ups: what happens to messages after they were sent, where the notifier has a hook for it.
 *
 * A message is edited when its changes are no longer what it says of them: somebody has triaged
 * them, or they have moved, grown, other suspects, recovered, were withdrawn or found again. The
 * store marks it in the transaction that writes that, and forgets the mark when it was edited, so
 * that a crash in between loses nothing. If it was deleted while one of its changes stands, it is
 * sent again. Messages about changes that are open or acknowledged, and those from which something
 * was taken, are read for what people answered where they were sent, for a week; what they say
 * becomes triage. The older a message, the longer until it is read again. Where the receiver
 * forgets what is not repeated, what still stands is said again from time to time: that is not
 * stored, and a new process begins with all of it.
 *
 * Each receiver has one request at a time, and at most 20 a minute if it names no other pace, apart
 * from its deliveries, which are never delayed. A pause that the receiver asks for is kept. What it
 * refuses again and again for three days is given up; while it does not answer, nothing is.
 *
 * A single pass neither reads messages nor edits those of Slack. Receivers that keep what they were
 * told are told what became of it, each message once; the next pass does the rest.
 */
#ifndef AGENT_NOTIFY_FOLLOW_UPS_H
#define AGENT_NOTIFY_FOLLOW_UPS_H

#include "agent/notify/delivery_manager.h"

struct follow_ups;

/* `triaged` is called when an answer has changed the triage of changes. */
struct follow_ups *follow_ups_new(struct agent *agent, struct delivery_manager *delivery_manager,
	void (*triaged)(void *context), void *context);
void follow_ups_free(struct follow_ups *follow_ups); /* after the engine; accepts NULL */

/* Looks into the store now for what is to be done: at the start, after a reload, and when somebody
 * has said something. Accepts NULL. */
void follow_ups_look(struct follow_ups *follow_ups);

/* The names, in the arena, of receivers that keep what they were told until they are told
 * otherwise. */
struct strings follow_ups_keeping(const struct config *config, struct arena *arena);

/* Call after a configuration reload: what failed by the configuration is tried again. */
void follow_ups_adopt(struct follow_ups *follow_ups);

#endif
