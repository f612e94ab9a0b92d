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

#include "agent/notify/telling.h"
#include "agent/runtime/backlog.h"

/* `written` is a request that the store has taken, with its retractions. `telling` must live as
 * long as the engine does. */
void withdrawal_tell(
	struct telling *telling, struct backlog *backlog, const struct store_request *written);

#endif
