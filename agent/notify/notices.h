/*
 * Queues notices in the outbox. A notice that cannot be rendered because its receiver is
 * misconfigured is retried until it can.
 */
#ifndef AGENT_NOTIFY_NOTICES_H
#define AGENT_NOTIFY_NOTICES_H

#include "agent/runtime/agent.h"

struct notices;

struct notices *notices_new(struct agent *agent);
void notices_free(struct notices *notices);

/* See struct notice_calls. In a fleet the notice is that of the request's test, or the leader's,
 * and is dropped if another agent has that. */
void notices_queue(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request);

/* Reports that a message cannot be rendered for the receiver because of its configuration. */
void notices_unwritten(struct agent *agent, const struct receiver *receiver,
	const struct error *error, bool retried);

/* Queues a message without changes that has a notice to the receiver, with the request, which it
 * takes over. False: its configuration has no destinations, or it cannot be rendered; nothing is
 * stored. */
bool notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request) MUST_USE;

#endif
