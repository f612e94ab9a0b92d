/*
 * An attempt that was in progress when the program ended is retried after the restart. Since it may
 * have arrived, the notifier first checks whether the message is there, if it can, and after a
 * delay, as it may take a moment to become visible. Delivery is at least once, exactly once where
 * the notifier can check.
 */
#include "agent/notify/delivery_manager.h"

#include <stdlib.h>
#include <string.h>

#include "agent/notify/delivery_queue.h"
#include "agent/notify/publisher.h"

struct delivery_manager {
	struct agent *agent;
	struct arena *arena; /* of the queues */
	struct delivery_queue *queues;
	struct outbox *outbox;
	struct threads *threads;
	struct outgoing *orphans;
	bool orphans_reported;
	void (*orphaned)(void *context);
	void *context;
};

struct delivery_manager *delivery_manager_new(struct agent *agent)
{
	struct delivery_manager *delivery_manager = memory_new(1, sizeof *delivery_manager);

	*delivery_manager = (struct delivery_manager){.agent = agent,
		.arena = arena_new(),
		.outbox = outbox_new(agent),
		.threads = threads_new()};
	return delivery_manager;
}

void delivery_manager_free(struct delivery_manager *delivery_manager)
{
	if (!delivery_manager)
		return;
	for (struct delivery_queue *queue = delivery_manager->queues; queue; queue = queue->next)
		delivery_queue_close(queue);
	outgoing_free(delivery_manager->orphans);
	outbox_free(delivery_manager->outbox);
	threads_free(delivery_manager->threads);
	arena_free(delivery_manager->arena);
	free(delivery_manager);
}

struct threads *delivery_manager_threads(struct delivery_manager *delivery_manager)
{
	return delivery_manager->threads;
}

static void report_orphans(void *context)
{
	struct delivery_manager *delivery_manager = context;

	delivery_manager->orphans_reported = false;
	if (delivery_manager->orphans && delivery_manager->orphaned)
		delivery_manager->orphaned(delivery_manager->context);
}

static void orphan(void *context, struct outgoing *outgoing)
{
	struct delivery_manager *delivery_manager = context;

	outgoing->delivery.payload = NULL;
	outgoing->next = delivery_manager->orphans;
	delivery_manager->orphans = outgoing;
	if (!delivery_manager->orphans_reported)
		engine_after(delivery_manager->agent->engine, 0, report_orphans, delivery_manager);
	delivery_manager->orphans_reported = true;
}

static struct delivery_queue *queue_of(
	struct delivery_manager *delivery_manager, const struct delivery *delivery)
{
	struct delivery_queue *queue = delivery_manager->queues;

	while (queue && (strcmp(queue->receiver, delivery->receiver) != 0 ||
				strcmp(queue->destination, delivery->destination) != 0))
		queue = queue->next;
	if (queue)
		return queue;
	queue = arena_alloc(delivery_manager->arena, sizeof *queue);
	*queue = (struct delivery_queue){.agent = delivery_manager->agent,
		.threads = delivery_manager->threads,
		.orphan = orphan,
		.context = delivery_manager,
		.receiver = arena_strdup(delivery_manager->arena, delivery->receiver),
		.destination = arena_strdup(delivery_manager->arena, delivery->destination),
		.next = delivery_manager->queues};
	delivery_queue_open(queue);
	delivery_manager->queues = queue;
	return queue;
}

void delivery_manager_add(
	struct delivery_manager *delivery_manager, const struct delivery *delivery)
{
	struct delivery_queue *queue = queue_of(delivery_manager, delivery);

	delivery_queue_add(queue, outgoing_new(delivery_manager->outbox, delivery));
}

void delivery_manager_remember(
	struct delivery_manager *delivery_manager, const struct delivery *delivery)
{
	threads_add(delivery_manager->threads, delivery,
		publisher_open_for(delivery_manager->agent->config, delivery->records,
			delivery->record_count));
}

void delivery_manager_send(
	struct delivery_manager *delivery_manager, const struct delivery_rows *deliveries)
{
	for (size_t i = 0; i < deliveries->count; i++) {
		if (deliveries->items[i].state != DELIVERY_QUEUED)
			continue;
		delivery_manager_remember(delivery_manager, &deliveries->items[i]);
		delivery_manager_add(delivery_manager, &deliveries->items[i]);
	}
}

void delivery_manager_unwritten(const struct delivery_manager *delivery_manager,
	const struct receiver *receiver, const struct error *error, bool retried)
{
	struct agent *agent = delivery_manager->agent;

	log_event(LEVEL_ERROR,
		retried ? "cannot render message, will retry"
			: "cannot render message, it is not sent",
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error->text));
	metrics_add(agent->metrics, METRIC_DELIVERIES, 1, receiver->name, "unwritten");
	agent->misconfigured = true;
}

static bool is_receiver(void *context, const char *name)
{
	const struct delivery_manager *delivery_manager = context;

	return agent_receiver(delivery_manager->agent, name) != NULL;
}

void delivery_manager_adopt(struct delivery_manager *delivery_manager)
{
	metrics_retain(delivery_manager->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, is_receiver,
		delivery_manager);
	for (struct delivery_queue *queue = delivery_manager->queues; queue; queue = queue->next)
		delivery_queue_adopt(queue);
}

void delivery_manager_listen(struct delivery_manager *delivery_manager,
	void (*orphaned)(void *context), void (*late)(void *context), void *context)
{
	delivery_manager->orphaned = orphaned;
	delivery_manager->context = context;
	outbox_listen(delivery_manager->outbox, late, context);
}

void delivery_manager_orphans(
	struct delivery_manager *delivery_manager, struct store_reopen *request)
{
	struct arena *arena = request->call.arena;
	size_t room = 0;

	for (const struct outgoing *outgoing = delivery_manager->orphans; outgoing;
		outgoing = outgoing->next)
		room++;
	request->deliveries.items = arena_array(arena, room, sizeof *request->deliveries.items);
	for (const struct outgoing *outgoing = delivery_manager->orphans; outgoing;
		outgoing = outgoing->next) {
		const struct delivery *delivery = &outgoing->delivery;

		log_event(LEVEL_WARN,
			"delivery dropped: receiver is not configured; its changes go to the other"
			" receivers",
			LOG_TEXT("receiver", delivery->receiver),
			LOG_TEXT("destination", delivery->destination),
			LOG_TEXT("key", delivery->key),
			LOG_TEXT("what", outgoing->what ? outgoing->what : ""));
		metrics_add(delivery_manager->agent->metrics, METRIC_DELIVERIES, 1,
			delivery->receiver, "rerouted");
		request->deliveries.items[request->deliveries.count++] =
			(struct delivery){.id = delivery->id,
				.problem = "receiver is not configured",
				.attempts = delivery->attempts,
				.now = agent_now(delivery_manager->agent)};
	}
	outgoing_free(delivery_manager->orphans);
	delivery_manager->orphans = NULL;
}

void delivery_manager_collect(struct delivery_manager *delivery_manager)
{
	const struct config *config = delivery_manager->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const char *name = config->receivers[i].name;
		size_t length = 0;

		for (const struct delivery_queue *queue = delivery_manager->queues; queue;
			queue = queue->next)
			if (strcmp(queue->receiver, name) == 0)
				length += queue->count;
		metrics_set(delivery_manager->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH,
			(double)length, name, NULL);
	}
}
