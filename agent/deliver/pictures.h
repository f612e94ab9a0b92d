/*
 * Pictures in messages: the worst change of a message is drawn when it is sent, from the points
 * that the store has around it.
 */
#ifndef AGENT_DELIVER_PICTURES_H
#define AGENT_DELIVER_PICTURES_H

#include "agent/store/store.h"
#include "conf/config.h"
#include "notifiers/notifier.h"

/* Whether messages to the receiver may show one. */
bool pictures_wanted(const struct receiver *receiver);

/* A copy with all that is drawn, in the arena; NULL of NULL. */
const struct excerpted *pictures_keep(struct arena *arena, const struct excerpted *worst);

/* Lets the attempt draw the change, which must outlive it; does nothing with NULL. */
void pictures_offer(struct attempt *attempt, const struct excerpted *worst);

#endif
