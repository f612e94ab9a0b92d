#include "agent/notify/notices.h"

#include <stdlib.h>

#include "agent/fleet/tests.h"
#include "agent/notify/publisher.h"

struct notices {
	struct agent *agent;
	struct delivery_manager *delivery_manager;
	struct store_backlog *backlog;
};

struct notices *notices_new(struct agent *agent, struct delivery_manager *delivery_manager,
	struct store_backlog *backlog)
{
	struct notices *notices = memory_new(1, sizeof *notices);

	*notices = (struct notices){agent, delivery_manager, backlog};
	return notices;
}

void notices_free(struct notices *notices)
{
	free(notices);
}

static bool render(const struct notices *notices, struct store_queue *request,
	const struct receiver *receiver, const struct message *message)
{
	struct publisher publisher = {.config = notices->agent->config,
		.now = agent_now(notices->agent),
		.queue = request};
	struct error error;

	if (publisher_message(&publisher, receiver, message, &error))
		return true;
	delivery_manager_unwritten(notices->delivery_manager, receiver, &error, false);
	return false;
}

static void queued(struct store_call *call)
{
	const struct notices *notices = call->context;

	if (!call->failed)
		delivery_manager_send(
			notices->delivery_manager, &((const struct store_queue *)call)->deliveries);
	store_call_free(call);
}

static void submit(const struct notices *notices, struct store_queue *request)
{
	request->call.reply = queued;
	request->call.context = (void *)(uintptr_t)notices;
	store_backlog_add(notices->backlog, &request->call);
}

void notices_queue(const struct notices *notices, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition, const char *test)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct arena *arena = request->call.arena;

	if (test)
		fleet_fence_test(notices->agent, &request->call, test);
	else
		fleet_fence(notices->agent, &request->call, FLEET_LEADER);
	if (condition) {
		struct condition *copy = arena_alloc(arena, sizeof *copy);

		*copy = *condition;
		copy->subject = arena_strdup(arena, condition->subject);
		copy->text = arena_strdup(arena, condition->text);
		request->health.conditions = copy;
		request->health.condition_count = 1;
	}
	notices_queue_storing(notices, notice, receivers, request);
}

void notices_queue_storing(const struct notices *notices, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	const struct message message = {.kind = MESSAGE_NOTICE, .notice = notice};

	log_event(notice->recovered ? LEVEL_INFO : LEVEL_WARN, "notice",
		LOG_TEXT("subject", notice->subject), LOG_TEXT("text", notice->text));
	for (size_t i = 0; i < receivers->count; i++) {
		const struct receiver *receiver =
			agent_receiver(notices->agent, receivers->items[i]);

		if (receiver)
			(void)render(notices, request, receiver, &message);
	}
	submit(notices, request);
}

bool notices_message(const struct notices *notices, const struct message *message,
	const struct receiver *receiver, struct store_queue *request)
{
	fleet_fence(notices->agent, &request->call, FLEET_LEADER);
	if (!render(notices, request, receiver, message)) {
		store_call_free(&request->call);
		return false;
	}
	log_event(LEVEL_INFO, message_kind_names[message->kind],
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("text", message->notice->text));
	submit(notices, request);
	return true;
}
