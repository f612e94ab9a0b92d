/*
 * What a reply to a source's request is good for: whether to ask again, when, and what to call it.
 */
#ifndef AGENT_CLIENT_REPLY_H
#define AGENT_CLIENT_REPLY_H

#include "agent/core/transfer.h"

bool reply_worth_repeating(const struct reply *reply);

/* Half to one and a half times the delay (ms), but not before the server wants to be asked. The
 * seed changes with each call. */
int64_t reply_wait(const struct reply *reply, int64_t delay, uint64_t *seed);

/* For task.trouble; NULL: nothing about the reply itself. */
const char *reply_trouble(const struct reply *reply);

#endif
