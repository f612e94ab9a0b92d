/*
 * Changes that were told and are over: who was told of them is told that, too, as an answer to the
 * message if there is one, else in a message of its own.
 *
 * What is to be told is in the store (NOTIFY_RECOVERY), and its message enters the outbox in the
 * transaction in which that is taken away: it is told once, whenever the program dies. A receiver
 * that is gone is told nothing.
 */
#ifndef AGENT_NOTIFY_RECOVERIES_H
#define AGENT_NOTIFY_RECOVERIES_H

#include "agent/notify/publisher.h"

struct recoveries;

/* `telling` is borrowed. */
struct recoveries *recoveries_new(const struct publisher *publisher);
void recoveries_free(struct recoveries *recoveries);

/* Looks whether the answer of the store says that there are some; they are told `group_wait` later,
 * in a single pass by recoveries_tell. */
void recoveries_note(struct recoveries *recoveries, const struct store_request *answer);

void recoveries_tell(struct recoveries *recoveries);

#endif
