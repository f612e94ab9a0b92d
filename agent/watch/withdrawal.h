/*
 * Changes that were told and are not found any more: the threads of the messages that told them get
 * an answer that says so, where the receiver has threads and keeps receipts. Elsewhere nobody is
 * disturbed. It is a courtesy: what the program dies in the middle of is not told later.
 */
#ifndef AGENT_WITHDRAWAL_H
#define AGENT_WITHDRAWAL_H

#include "agent/watch/telling.h"

/* `recorded` is a STORE_RECORD that the store has taken. `telling` must live as long as the engine
 * does. */
void withdrawal_tell(struct telling *telling, const struct store_request *recorded);

#endif
