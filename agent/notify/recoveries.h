/*
 * Announces the recovery of changes that were announced before: as a reply to the original message
 * where there is a thread, else as a message of its own.
 *
 * NOTIFY_RECOVERY marks pending recoveries in the store; the transaction that queues the message
 * clears it, so that a recovery is announced once even after a crash. Receivers that are no longer
 * configured get nothing.
 */
#ifndef AGENT_NOTIFY_RECOVERIES_H
#define AGENT_NOTIFY_RECOVERIES_H

#include "agent/notify/publisher.h"

struct recoveries;

/* Borrows `publisher`. */
struct recoveries *recoveries_new(const struct publisher *publisher);
void recoveries_free(struct recoveries *recoveries);

/* The store has reported so many pending recoveries; they are announced `group_wait`
 * later, in a single pass by recoveries_tell. */
void recoveries_note(struct recoveries *recoveries, int64_t pending);

void recoveries_tell(struct recoveries *recoveries);

#endif
