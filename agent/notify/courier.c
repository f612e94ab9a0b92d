/*
 * A delivery that ended with the program in the middle of it is taken up again after
 * the restart. How far the earlier process came with it is not known, so what it has begun to send
 * is in doubt: the notifier looks first, if it can, and not at once, as what the receiver has in
 * hand may not show yet. At least once is promised, once is what is tried.
 */
#include "agent/notify/courier.h"

#include <stdlib.h>
#include <string.h>

#include "agent/notify/lane.h"

struct courier {
	struct agent *agent;
	struct arena *arena; /* of the lanes */
	struct lane *lanes;
	struct outbox *outbox;
	struct threads *threads;
	struct letter *orphans;
	bool orphans_told;
	void (*orphaned)(void *context);
	void *context;
};

struct courier *courier_new(struct agent *agent)
{
	struct courier *courier = memory_new(1, sizeof *courier);

	*courier = (struct courier){.agent = agent,
		.arena = arena_new(),
		.outbox = outbox_new(agent),
		.threads = threads_new()};
	return courier;
}

void courier_free(struct courier *courier)
{
	if (!courier)
		return;
	for (struct lane *lane = courier->lanes; lane; lane = lane->next)
		lane_close(lane);
	letters_free(courier->orphans);
	outbox_free(courier->outbox);
	threads_free(courier->threads);
	arena_free(courier->arena);
	free(courier);
}

struct threads *courier_threads(struct courier *courier)
{
	return courier->threads;
}

static void tell_orphans(void *context)
{
	struct courier *courier = context;

	courier->orphans_told = false;
	if (courier->orphans && courier->orphaned)
		courier->orphaned(courier->context);
}

static void orphan(void *context, struct letter *letter)
{
	struct courier *courier = context;

	letter->parcel.payload = NULL;
	letter->next = courier->orphans;
	courier->orphans = letter;
	if (!courier->orphans_told)
		engine_after(courier->agent->engine, 0, tell_orphans, courier);
	courier->orphans_told = true;
}

static struct lane *lane_of(struct courier *courier, const struct parcel *parcel)
{
	struct lane *lane = courier->lanes;

	while (lane && (strcmp(lane->receiver, parcel->receiver) != 0 ||
			       strcmp(lane->destination, parcel->destination) != 0))
		lane = lane->next;
	if (lane)
		return lane;
	lane = arena_alloc(courier->arena, sizeof *lane);
	*lane = (struct lane){.agent = courier->agent,
		.threads = courier->threads,
		.orphan = orphan,
		.context = courier,
		.receiver = arena_strdup(courier->arena, parcel->receiver),
		.destination = arena_strdup(courier->arena, parcel->destination),
		.next = courier->lanes};
	lane_open(lane);
	courier->lanes = lane;
	return lane;
}

void courier_add(struct courier *courier, const struct parcel *parcel)
{
	struct lane *lane = lane_of(courier, parcel);

	lane_add(lane, letter_new(courier->outbox, parcel));
}

static bool is_receiver(void *context, const char *name)
{
	const struct courier *courier = context;

	return agent_receiver(courier->agent, name) != NULL;
}

void courier_adopt(struct courier *courier)
{
	metrics_retain(courier->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, is_receiver, courier);
	for (struct lane *lane = courier->lanes; lane; lane = lane->next)
		lane_adopt(lane);
}

void courier_listen(struct courier *courier, void (*orphaned)(void *context),
	void (*late)(void *context, const struct store_request *settled), void *context)
{
	courier->orphaned = orphaned;
	courier->context = context;
	outbox_listen(courier->outbox, late, context);
}

void courier_orphans(struct courier *courier, struct store_request *request)
{
	struct arena *arena = request->arena;
	size_t room = 0;

	for (const struct letter *letter = courier->orphans; letter; letter = letter->next)
		room++;
	request->parcels = arena_array(arena, room, sizeof *request->parcels);
	for (const struct letter *letter = courier->orphans; letter; letter = letter->next) {
		const struct parcel *parcel = &letter->parcel;

		log_event(LEVEL_WARN,
			"not delivered, its receiver is not configured; others are told of its"
			" changes",
			LOG_TEXT("receiver", parcel->receiver),
			LOG_TEXT("destination", parcel->destination), LOG_TEXT("key", parcel->key),
			LOG_TEXT("what", letter->what ? letter->what : ""));
		metrics_add(courier->agent->metrics, METRIC_DELIVERIES, 1, parcel->receiver,
			"rerouted");
		request->parcels[request->parcel_count++] = (struct parcel){.id = parcel->id,
			.problem = "its receiver is not configured",
			.attempts = parcel->attempts,
			.now = agent_now(courier->agent)};
	}
	letters_free(courier->orphans);
	courier->orphans = NULL;
}

void courier_collect(struct courier *courier)
{
	const struct config *config = courier->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const char *name = config->receivers[i].name;
		size_t length = 0;

		for (const struct lane *lane = courier->lanes; lane; lane = lane->next)
			if (strcmp(lane->receiver, name) == 0)
				length += lane->count;
		metrics_set(courier->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, (double)length,
			name, NULL);
	}
}
