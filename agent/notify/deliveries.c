/*
 * The key is a hash of receiver, destination and content.
 */
#include "agent/notify/deliveries.h"

#include <inttypes.h>
#include <string.h>

#include "agent/core/hash.h"

static const char *key_of(struct arena *arena, const struct recipient *to, uint64_t content)
{
	uint64_t sum = HASH_START;

	sum = hash_add(sum, to->receiver->name, strlen(to->receiver->name) + 1);
	sum = hash_add(sum, to->destination, strlen(to->destination) + 1);
	sum = hash_add(sum, &content, sizeof content);
	return arena_printf(arena, "%016" PRIx64, sum);
}

static struct delivery *next_delivery(struct store_queue *request)
{
	request->deliveries.items = arena_grow(request->call.arena, request->deliveries.items,
		request->deliveries.count, sizeof *request->deliveries.items);
	return &request->deliveries.items[request->deliveries.count++];
}

bool deliveries_add(struct store_queue *request, const struct recipient *to,
	const struct message *message, const struct delivery_content *content, struct error *error)
{
	const struct notifier *notifier = notifier_find(to->receiver->notifier->name);
	struct arena *arena = request->call.arena;
	struct message keyed = *message;
	struct buf payload = {0};
	bool written;

	keyed.key = key_of(arena, to, content->hash);
	written = notifier->render(&keyed, to->receiver->options, to->destination, &payload, error);
	if (written)
		*next_delivery(request) = (struct delivery){.key = keyed.key,
			.receiver = arena_strdup(arena, to->receiver->name),
			.destination = arena_strdup(arena, to->destination),
			.payload = arena_strndup(arena, payload.data, payload.length),
			.thread = arena_strdup(arena, message->thread),
			.now = content->now,
			.changes = content->ids,
			.change_count = content->record_count,
			.records = content->records,
			.record_count = content->record_count};
	buf_free(&payload);
	return written;
}
