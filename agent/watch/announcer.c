/*
 * See announcer.h. Each receiver gets what the tests that name it have to say, in groups, one
 * message for each of its destinations. All messages of a flush enter the outbox in one transaction
 * together with the changes being told, so that none is told twice and none forgotten, whenever the
 * program dies.
 *
 * A receiver for which no message can be written holds up no other: those get theirs, and the
 * changes stay pending, with a note of who has been told, until that receiver can be told, too.
 */
#include "agent/watch/announcer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/hash.h"
#include "agent/engine/timers.h"
#include "agent/news/group.h"

enum { FLUSH_AGAIN = 30000, MEND_AGAIN = 300000 };

struct announcer {
	struct agent *agent;
	struct courier *courier;
	struct store_request *waiting; /* linked by next */
	struct store_request *queuing; /* their messages are on the way to the outbox */
	struct alarm alarm;            /* of the next flush */
};

static void flush_alarm(void *announcer)
{
	announcer_flush(announcer);
}

struct announcer *announcer_new(struct agent *agent, struct courier *courier)
{
	struct announcer *announcer = memory_new(1, sizeof *announcer);

	*announcer = (struct announcer){.agent = agent,
		.courier = courier,
		.alarm = {.call = flush_alarm, .context = announcer}};
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

static void flush_after(struct announcer *announcer, int64_t wait)
{
	if (!announcer->agent->once)
		engine_alarm(announcer->agent->engine, &announcer->alarm,
			engine_now(announcer->agent->engine) + wait);
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

/* Whether the record is to be told to the receiver and was not yet. */
static bool lacks(
	const struct config *config, const struct record *record, const struct receiver *receiver)
{
	if (record->news != NEWS_PENDING || !concerns(config, record, receiver))
		return false;
	for (size_t i = 0; i < record->told.count; i++)
		if (strcmp(record->told.items[i], receiver->name) == 0)
			return false;
	return true;
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
			if (lacks(announcer->agent->config, &at->records[i], receiver))
				(*out)[count++] = &at->records[i];
	return count;
}

/* The same for the same changes to the same destination, and for no others. */
static const char *message_key(struct arena *arena, const struct receiver *receiver,
	const char *destination, const struct group_of *group)
{
	uint64_t sum = HASH_START;

	sum = hash_add(sum, receiver->name, strlen(receiver->name) + 1);
	sum = hash_add(sum, destination, strlen(destination) + 1);
	for (size_t i = 0; i < group->count; i++) {
		sum = hash_add(sum, &group->items[i]->item.id, sizeof group->items[i]->item.id);
		sum = hash_add(
			sum, &group->items[i]->first_seen, sizeof group->items[i]->first_seen);
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

static bool add_parcel(struct announcer *announcer, struct store_request *request,
	const struct receiver *receiver, const char *destination, const struct group_of *group,
	struct error *error)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	struct arena *arena = request->arena;
	struct announcement *items = arena_array(arena, group->count, sizeof *items);
	int64_t *ids = arena_array(arena, group->count, sizeof *ids);
	struct message message = {.key = message_key(arena, receiver, destination, group),
		.items = items,
		.count = group->count};
	struct buf payload = {0};
	bool written;

	for (size_t i = 0; i < group->count; i++) {
		items[i] = group->items[i]->item;
		ids[i] = items[i].id;
	}
	written = notifier->render(&message, receiver->options, destination, &payload, error);
	if (written)
		*next_parcel(request) = (struct parcel){.key = message.key,
			.receiver = receiver->name,
			.destination = arena_strdup(arena, destination),
			.payload = arena_strndup(arena, payload.data, payload.length),
			.now = announcer->agent->now(),
			.changes = ids,
			.change_count = group->count};
	buf_free(&payload);
	return written;
}

/* All messages of the receiver, or none and an error. */
static bool add_parcels(struct announcer *announcer, struct store_request *request,
	const struct receiver *receiver, const struct record **records, size_t count,
	struct error *error)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	size_t before = request->parcel_count, group_count;
	struct group_of *groups;
	struct strings destinations;

	if (!notifier->destinations(receiver->options, request->arena, &destinations, error))
		return false;
	group_count = group_records(request->arena, records, count, &groups);
	for (size_t i = 0; i < group_count; i++)
		for (size_t j = 0; j < destinations.count; j++)
			if (!add_parcel(announcer, request, receiver, destinations.items[j],
				    &groups[i], error)) {
				request->parcel_count = before;
				return false;
			}
	return true;
}

static void mark_told(struct announcer *announcer, const struct receiver *receiver)
{
	const struct config *config = announcer->agent->config;

	for (struct store_request *at = announcer->queuing; at; at = at->next)
		for (size_t i = 0; i < at->record_count; i++)
			if (lacks(config, &at->records[i], receiver))
				record_told(at->arena, &at->records[i],
					arena_strdup(at->arena, receiver->name));
}

static void tell(
	struct announcer *announcer, struct store_request *request, const struct receiver *receiver)
{
	const struct record **records;
	struct error error;
	size_t count = records_for(announcer, request->arena, receiver, &records);

	if (count == 0)
		return;
	if (add_parcels(announcer, request, receiver, records, count, &error)) {
		mark_told(announcer, receiver);
		return;
	}
	log_event(LEVEL_ERROR, "no message can be written, will try again",
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error.text),
		LOG_INT("changes", count));
	metrics_add(announcer->agent->metrics, METRIC_DELIVERIES, 1, receiver->name, "unwritten");
	announcer->agent->misconfigured = true;
}

/* True if nobody who is to be told of the record lacks it. */
static bool complete(const struct announcer *announcer, const struct record *record)
{
	const struct config *config = announcer->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++)
		if (lacks(config, record, &config->receivers[i]))
			return false;
	return record->told.count > 0;
}

static void list_told(const struct announcer *announcer, struct store_request *request)
{
	size_t room = 0;
	int64_t *told;

	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		room += at->record_count;
	told = arena_array(request->arena, room, sizeof *told);
	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		for (size_t i = 0; i < at->record_count; i++)
			if (at->records[i].news == NEWS_PENDING &&
				complete(announcer, &at->records[i]))
				told[request->told_count++] = at->records[i].item.id;
	request->told = told;
}

/* The store has it, or has not: then nobody has been told. Returns how many are still pending. */
static size_t settle(const struct announcer *announcer, struct store_request *records, bool stored)
{
	size_t pending = 0;

	for (size_t i = 0; i < records->record_count; i++) {
		struct record *record = &records->records[i];

		if (stored)
			record->told_stored = record->told.count;
		else
			record->told.count = record->told_stored;
		if (record->news == NEWS_PENDING && complete(announcer, record))
			record->news = NEWS_QUEUED;
		pending += record->news == NEWS_PENDING;
	}
	return pending;
}

/* What is not told to all goes back to what waits. */
static void settle_all(struct announcer *announcer, bool stored)
{
	struct store_request *records = announcer->queuing;

	announcer->queuing = NULL;
	for (struct store_request *next; records; records = next) {
		next = records->next;
		if (settle(announcer, records, stored) == 0) {
			store_request_free(records);
			continue;
		}
		records->next = announcer->waiting;
		announcer->waiting = records;
		flush_after(announcer, stored ? MEND_AGAIN : FLUSH_AGAIN);
	}
}

static void queued(struct store_request *request)
{
	struct announcer *announcer = request->context;
	bool fresh = announcer->waiting;

	settle_all(announcer, !request->failed);
	if (request->failed)
		announcer->agent->stateless = true;
	for (size_t i = 0; i < request->parcel_count && !request->failed; i++)
		courier_add(announcer->courier, &request->parcels[i]);
	if (fresh)
		flush_after(announcer, announcer->agent->config->agent.group_wait);
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
		tell(announcer, request, &config->receivers[i]);
	list_told(announcer, request);
	ledger_ask(announcer->agent, request);
}
