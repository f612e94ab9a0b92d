/*
 * Changes that were told and are not found any more, or were withdrawn while their message was on
 * its way (`announce_withdrawn`), and those whose suspects have become others, as a deployment was
 * noted late: the threads of the messages that told them get an answer that says so, where the
 * receiver has threads and keeps receipts. Elsewhere nobody is disturbed. It is a courtesy: what
 * the store cannot take is asked again, but what the program dies in the middle of is not told
 * later.
 */
#ifndef AGENT_NOTIFY_WITHDRAWAL_H
#define AGENT_NOTIFY_WITHDRAWAL_H

#include "agent/notify/publisher.h"
#include "agent/runtime/store_backlog.h"

/* `written` is a request that the store has taken, with its retractions. `telling` must live as
 * long as the engine does. */
void retraction_send(struct publisher *publisher, struct store_backlog *backlog,
	const struct store_request *written);

#endif
