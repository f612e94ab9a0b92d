/* The knowledge about an attempt to deliver a message. */
#ifndef AGENT_MODEL_DELIVERY_H
#define AGENT_MODEL_DELIVERY_H

/* Whether an unconfirmed delivery may have arrived. */
enum maybe_delivered {
	MAYBE_DELIVERED_NO,
	MAYBE_DELIVERED_CHECK, /* maybe; the notifier checks first at the next attempt */
	MAYBE_DELIVERED_BLIND, /* maybe, and it cannot be checked: it is sent again */
};

#endif
