/*
 * See announcer.h. Each receiver gets what the tests that name it have to say, in groups, one
 * message for each of its destinations. All messages of a flush enter the outbox in one transaction
 * together with the changes being told, so that none is told twice and none forgotten, whenever the
 * program dies.
 */
#include "agent/announcer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/group.h"

enum { FLUSH_AGAIN = 30000 };

struct announcer {
	struct agent *agent;
	struct courier *courier;
	struct store_request *waiting; /* linked by next */
	struct store_request *queuing; /* their messages are on the way to the outbox */
	bool timer;
};

struct announcer *announcer_new(struct agent *agent, struct courier *courier)
{
	struct announcer *announcer = memory_new(1, sizeof *announcer);

	*announcer = (struct announcer){.agent = agent, .courier = courier};
	return announcer;
}

static void requests_free(struct store_request *request)
{
	for (struct store_request *next; request; request = next) {
		next = request->next;
		store_request_free(request);
	}
}

void announcer_free(struct announcer *announcer)
{
	if (!announcer)
		return;
	requests_free(announcer->waiting);
	requests_free(announcer->queuing);
	free(announcer);
}

static void flush_timer(void *context)
{
	struct announcer *announcer = context;

	announcer->timer = false;
	announcer_flush(announcer);
}

static void flush_after(struct announcer *announcer, int64_t wait)
{
	if (announcer->timer || announcer->agent->once)
		return;
	announcer->timer = true;
	engine_after(announcer->agent->engine, wait, flush_timer, announcer);
}

void announcer_add(struct announcer *announcer, struct store_request *records)
{
	size_t pending = 0;

	for (size_t i = 0; i < records->record_count; i++)
		pending += records->records[i].news == NEWS_PENDING;
	if (pending == 0) {
		store_request_free(records);
		return;
	}
	records->next = announcer->waiting;
	announcer->waiting = records;
	flush_after(announcer, announcer->agent->config->agent.group_wait);
}

/* Of a test that is no longer configured all receivers are told. */
static bool concerns(
	const struct config *config, const struct record *record, const struct receiver *receiver)
{
	const struct test *test = config_test(config, record->item.test);

	if (!test)
		return true;
	for (size_t i = 0; i < test->notify.count; i++)
		if (strcmp(test->notify.items[i], receiver->name) == 0)
			return true;
	return false;
}

static size_t records_for(const struct announcer *announcer, struct arena *arena,
	const struct receiver *receiver, const struct record ***out)
{
	size_t room = 0, count = 0;

	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		room += at->record_count;
	*out = arena_array(arena, room, sizeof **out);
	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		for (size_t i = 0; i < at->record_count; i++)
			if (at->records[i].news == NEWS_PENDING &&
				concerns(announcer->agent->config, &at->records[i], receiver))
				(*out)[count++] = &at->records[i];
	return count;
}

static void hash(uint64_t *sum, const void *data, size_t length)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < length; i++)
		*sum = (*sum ^ at[i]) * UINT64_C(0x100000001b3);
}

/* The same for the same changes to the same destination, and for no others. */
static const char *message_key(struct arena *arena, const struct receiver *receiver,
	const char *destination, const struct group_of *group)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	hash(&sum, receiver->name, strlen(receiver->name) + 1);
	hash(&sum, destination, strlen(destination) + 1);
	for (size_t i = 0; i < group->count; i++) {
		hash(&sum, &group->items[i]->item.id, sizeof group->items[i]->item.id);
		hash(&sum, &group->items[i]->first_seen, sizeof group->items[i]->first_seen);
	}
	return arena_printf(arena, "%016" PRIx64, sum);
}

static struct parcel *next_parcel(struct store_request *request)
{
	size_t used = request->parcel_count;

	if ((used & (used - 1)) == 0) {
		struct parcel *more =
			arena_array(request->arena, used == 0 ? 1 : 2 * used, sizeof *more);

		if (used > 0)
			memcpy(more, request->parcels, used * sizeof *more);
		request->parcels = more;
	}
	request->parcel_count++;
	return &request->parcels[used];
}

static void add_parcel(struct announcer *announcer, struct store_request *request,
	const struct receiver *receiver, const char *destination, const struct group_of *group)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	struct arena *arena = request->arena;
	struct announcement *items = arena_array(arena, group->count, sizeof *items);
	int64_t *ids = arena_array(arena, group->count, sizeof *ids);
	struct message message = {.key = message_key(arena, receiver, destination, group),
		.items = items,
		.count = group->count};
	struct buf payload = {0};
	struct error error;

	for (size_t i = 0; i < group->count; i++) {
		items[i] = group->items[i]->item;
		ids[i] = items[i].id;
	}
	if (notifier->render(&message, receiver->options, destination, &payload, &error))
		*next_parcel(request) = (struct parcel){.key = message.key,
			.receiver = receiver->name,
			.destination = arena_strdup(arena, destination),
			.payload = arena_strndup(arena, payload.data, payload.length),
			.now = announcer->agent->now(),
			.changes = ids,
			.change_count = group->count};
	else
		log_event(LEVEL_ERROR, "message cannot be written",
			LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error.text));
	buf_free(&payload);
}

static void add_parcels(
	struct announcer *announcer, struct store_request *request, const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	const struct record **records;
	struct group_of *groups;
	struct strings destinations;
	struct error error;
	size_t count = records_for(announcer, request->arena, receiver, &records), group_count;

	if (count == 0)
		return;
	if (!notifier->destinations(receiver->options, request->arena, &destinations, &error)) {
		log_event(LEVEL_ERROR, "receiver cannot be told",
			LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error.text));
		announcer->agent->misconfigured = true;
		return;
	}
	group_count = group_records(request->arena, records, count, &groups);
	for (size_t i = 0; i < group_count; i++)
		for (size_t j = 0; j < destinations.count; j++)
			add_parcel(announcer, request, receiver, destinations.items[j], &groups[i]);
}

/* Back to what waits, for another try. */
static void put_back(struct announcer *announcer)
{
	struct store_request **end = &announcer->waiting;

	while (*end)
		end = &(*end)->next;
	*end = announcer->queuing;
	announcer->queuing = NULL;
	announcer->agent->stateless = true;
	flush_after(announcer, FLUSH_AGAIN);
}

static void queued(struct store_request *request)
{
	struct announcer *announcer = request->context;

	if (request->failed) {
		put_back(announcer);
	} else {
		requests_free(announcer->queuing);
		announcer->queuing = NULL;
		for (size_t i = 0; i < request->parcel_count; i++)
			courier_add(announcer->courier, &request->parcels[i]);
		if (announcer->waiting)
			flush_after(announcer, announcer->agent->config->agent.group_wait);
	}
	store_request_free(request);
}

void announcer_flush(struct announcer *announcer)
{
	const struct config *config = announcer->agent->config;
	struct store_request *request;

	if (!announcer->waiting || announcer->queuing || announcer->agent->stopping)
		return;
	announcer->queuing = announcer->waiting;
	announcer->waiting = NULL;
	request = store_request_new(STORE_QUEUE, queued, announcer);
	for (size_t i = 0; i < config->receiver_count; i++)
		add_parcels(announcer, request, &config->receivers[i]);
	ledger_ask(announcer->agent, request);
}
