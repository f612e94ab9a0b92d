/*
 * Queues notices in the outbox. A notice that cannot be rendered because its receiver is
 * misconfigured is retried until it can.
 */
#ifndef AGENT_NOTIFY_NOTICES_H
#define AGENT_NOTIFY_NOTICES_H

#include "agent/notify/delivery_manager.h"
#include "agent/runtime/store_backlog.h"

struct notices;

/* All are borrowed. */
struct notices *notices_new(struct agent *agent, struct delivery_manager *delivery_manager,
	struct store_backlog *backlog);
void notices_free(struct notices *notices);

/* See dispatcher_notice. */
void notices_queue(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition, const char *test);
void notices_queue_storing(struct notices *notices, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request);

/* See dispatcher_message. */
bool notices_message(struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request) MUST_USE;

#endif
