/*
 * An attempt that was in progress when the program ended is retried after the restart. Since it may
 * have arrived, a notifier that can first checks whether the message is there, after a delay, as it
 * may take a moment to become visible. Delivery is at least once, exactly once where the notifier
 * can check.
 */
#include "agent/deliver/delivery_manager.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/deliver/delivery_queue.h"
#include "agent/fleet/fleet.h"
#include "agent/runtime/poll.h"

enum { READ_AGAIN = 5000 }; /* ms, after a failure of the store */

struct delivery_manager {
	struct agent *agent;
	struct arena *arena; /* of the queues */
	struct delivery_queue *queues;
	struct outbox outbox;
	struct poll poll;      /* of the queue */
	int64_t newest;        /* id of a delivery, as of that */
	int64_t last_delivery; /* in a fleet, as of the last news */
};

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
		.receiver = arena_strdup(delivery_manager->arena, delivery->receiver),
		.destination = arena_strdup(delivery_manager->arena, delivery->destination),
		.next = delivery_manager->queues};
	delivery_queue_open(queue);
	delivery_manager->queues = queue;
	return queue;
}

static bool is_ours(const struct delivery_manager *delivery_manager, const char *receiver)
{
	return fleet_keeps(delivery_manager->agent, fleet_shard_of_receiver(receiver));
}

void delivery_manager_add(
	struct delivery_manager *delivery_manager, const struct delivery_rows *deliveries)
{
	struct outbox *outbox = &delivery_manager->outbox;

	for (size_t i = 0; i < deliveries->count; i++) {
		const struct delivery *delivery = &deliveries->items[i];
		struct delivery_queue *queue;

		if (delivery->id > delivery_manager->newest)
			delivery_manager->newest = delivery->id;
		if (!is_ours(delivery_manager, delivery->receiver))
			continue;
		queue = queue_of(delivery_manager, delivery);
		if (!delivery_queue_has(queue, delivery->id) && !outbox_has(outbox, delivery->id))
			delivery_queue_add(queue, outgoing_new(outbox, delivery));
	}
}

static bool is_receiver(void *context, const char *name)
{
	const struct delivery_manager *delivery_manager = context;

	return agent_receiver(delivery_manager->agent, name) != NULL;
}

static void adopt(void *context)
{
	struct delivery_manager *delivery_manager = context;

	metrics_retain(delivery_manager->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, is_receiver,
		delivery_manager);
	for (struct delivery_queue *queue = delivery_manager->queues; queue; queue = queue->next)
		delivery_queue_adopt(queue);
}

static const char *state_of(const struct delivery_queue *queue)
{
	if (!queue->first)
		return "idle";
	switch (queue->state) {
	case QUEUE_RECORDING:
	case QUEUE_SENDING: return "sending";
	case QUEUE_MISCONFIGURED: return "misconfigured";
	case QUEUE_UNROUTABLE: return "unknown receiver";
	case QUEUE_BACKING_OFF: return "retrying";
	case QUEUE_WAITING:
	case QUEUE_DEFERRED: break;
	}
	return queue->first->failure ? "retrying" : "waiting";
}

void delivery_manager_each(const struct delivery_manager *delivery_manager,
	void (*call)(void *context, const struct destination_state *state), void *context)
{
	struct agent *agent = delivery_manager->agent;
	int64_t now = engine_now(agent->engine), wall = agent_now(agent);

	for (const struct delivery_queue *queue = delivery_manager->queues; queue;
		queue = queue->next) {
		const struct outgoing *first = queue->first;

		if (!first && !is_ours(delivery_manager, queue->receiver))
			continue;
		struct destination_state state = {.receiver = queue->receiver,
			.destination = queue->destination,
			.state = state_of(queue),
			.waiting = queue->count,
			.sent = queue->sent,
			.failed = queue->failed,
			.problem = queue->trouble ? queue->trouble->text : NULL};

		if (first) {
			int64_t due = first->not_before > queue->not_before ? first->not_before
									    : queue->not_before;

			state.since = first->made;
			state.attempts = first->delivery.attempts;
			state.next = due > now ? wall + (due - now) : 0;
		}
		call(context, &state);
	}
}

static void collect(void *context)
{
	const struct delivery_manager *delivery_manager = context;
	const struct config *config = delivery_manager->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const char *name = config->receivers[i].name;
		size_t length = 0;

		for (const struct delivery_queue *queue = delivery_manager->queues; queue;
			queue = queue->next)
			if (strcmp(queue->receiver, name) == 0)
				length += queue->count;
		metrics_set(delivery_manager->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH,
			(double)length, name);
	}
}

static void queued(struct store_restore *request)
{
	struct delivery_manager *delivery_manager = request->call.context;
	bool failed = request->call.failed;

	delivery_manager->agent->stateless |= failed;
	if (!failed)
		delivery_manager_add(delivery_manager, &request->deliveries);
	store_call_free(&request->call);
	poll_answered(&delivery_manager->poll, failed ? READ_AGAIN : WHEN_NEVER);
}

static void ask(void *context)
{
	struct delivery_manager *delivery_manager = context;
	struct store_restore *request = store_restore_new(queued, delivery_manager);

	request->queued = true;
	request->known = delivery_manager->newest;
	store_client_call(delivery_manager->agent, &request->call);
}

static void read_queued(void *context)
{
	struct delivery_manager *delivery_manager = context;

	poll_now(&delivery_manager->poll);
}

/* In a fleet */

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct delivery_manager *delivery_manager = context;

	for (size_t i = 0; i < restored->deliveries.count; i++) {
		const struct delivery *delivery = &restored->deliveries.items[i];

		if (delivery->begun && shards->has[fleet_shard_of_receiver(delivery->receiver)])
			metrics_add(
				delivery_manager->agent->metrics, METRIC_CLAIMS_EXPIRED, 1, NULL);
	}
	delivery_manager_add(delivery_manager, &restored->deliveries);
}

static void lost(void *context, const struct fleet_shards *shards)
{
	struct delivery_manager *delivery_manager = context;

	outbox_lose(&delivery_manager->outbox, shards);
	for (struct delivery_queue *queue = delivery_manager->queues; queue; queue = queue->next)
		if (shards->has[fleet_shard_of_receiver(queue->receiver)])
			delivery_queue_lose(queue);
}

static bool is_busy(void *context, int shard)
{
	const struct delivery_manager *delivery_manager = context;

	for (const struct delivery_queue *queue = delivery_manager->queues; queue;
		queue = queue->next)
		if (fleet_shard_of_receiver(queue->receiver) == shard &&
			delivery_queue_is_busy(queue))
			return true;
	return false;
}

/* Another agent may have queued a message for a receiver whose shard this agent holds. */
static void news(void *context, const struct fleet_news *news)
{
	struct delivery_manager *delivery_manager = context;

	if (news->last_delivery != delivery_manager->last_delivery)
		read_queued(delivery_manager);
	delivery_manager->last_delivery = news->last_delivery;
}

struct delivery_manager *delivery_manager_new(struct agent *agent)
{
	struct delivery_manager *delivery_manager = memory_new(1, sizeof *delivery_manager);

	*delivery_manager = (struct delivery_manager){.agent = agent,
		.arena = arena_new(),
		.outbox.agent = agent,
		.poll = {.agent = agent, .ask = ask, .context = delivery_manager}};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained,
				    .lost = lost,
				    .is_busy = is_busy,
				    .news = news,
				    .context = delivery_manager});
	agent_listen(agent, HINT_DELIVERIES, read_queued, delivery_manager);
	agent_listen(agent, HINT_CONFIGURATION, adopt, delivery_manager);
	agent_listen(agent, HINT_METRICS, collect, delivery_manager);
	return delivery_manager;
}

void delivery_manager_free(struct delivery_manager *delivery_manager)
{
	if (!delivery_manager)
		return;
	for (struct delivery_queue *queue = delivery_manager->queues; queue; queue = queue->next)
		delivery_queue_close(queue);
	outbox_close(&delivery_manager->outbox);
	arena_free(delivery_manager->arena);
	free(delivery_manager);
}
