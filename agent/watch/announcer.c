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

#include <stdlib.h>
#include <string.h>

#include "agent/core/hash.h"
#include "agent/engine/timers.h"
#include "agent/news/group.h"
#include "agent/watch/parcels.h"

enum { FLUSH_AGAIN = 30000, MEND_AGAIN = 300000 };

struct announcer {
	struct agent *agent;
	struct courier *courier;
	struct store_request *waiting; /* linked by next */
	struct store_request *queuing; /* their messages are on the way to the outbox */
	struct store_request *notices; /* that the store did not take */
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
	requests_free(announcer->notices);
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

/* Adds the group's message to each destination. */
static bool add_group(struct announcer *announcer, struct store_request *request,
	const struct receiver *receiver, const struct strings *destinations,
	const struct group_of *group, struct error *error)
{
	struct announcement *items = arena_array(request->arena, group->count, sizeof *items);
	struct message message = {.items = items, .count = group->count};
	uint64_t content = HASH_START;

	for (size_t i = 0; i < group->count; i++) {
		const struct record *record = group->items[i];

		items[i] = record->item;
		content = hash_add(content, &record->item.id, sizeof record->item.id);
		content = hash_add(content, &record->first_seen, sizeof record->first_seen);
	}
	for (size_t i = 0; i < destinations->count; i++) {
		struct addressee to = {receiver, destinations->items[i]};

		if (!parcels_add(request, &to, &message, content, announcer->agent->now(), error))
			return false;
	}
	return true;
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
		if (!add_group(announcer, request, receiver, &destinations, &groups[i], error)) {
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

static void complain(
	struct announcer *announcer, const struct receiver *receiver, const struct error *error)
{
	log_event(LEVEL_ERROR, "no message can be written, will try again",
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error->text));
	metrics_add(announcer->agent->metrics, METRIC_DELIVERIES, 1, receiver->name, "unwritten");
	announcer->agent->misconfigured = true;
}

static void tell(
	struct announcer *announcer, struct store_request *request, const struct receiver *receiver)
{
	const struct record **records;
	struct error error;
	size_t count = records_for(announcer, request->arena, receiver, &records);

	if (count == 0)
		return;
	if (add_parcels(announcer, request, receiver, records, count, &error))
		mark_told(announcer, receiver);
	else
		complain(announcer, receiver, &error);
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

static void notice_queued(struct store_request *request);

static void queue_notices(void *context)
{
	struct announcer *announcer = context;
	struct store_request *request = announcer->notices;

	announcer->notices = NULL;
	for (struct store_request *next; request; request = next) {
		next = request->next;
		ledger_ask(announcer->agent, request);
	}
}

/* A store that does not take it is asked again: whoever is to know that something is down should
 * not depend on the minute. */
static void notice_queued(struct store_request *request)
{
	struct announcer *announcer = request->context;
	struct agent *agent = announcer->agent;

	if (request->failed && !agent->once && !agent->stopping) {
		if (!announcer->notices)
			engine_after(agent->engine, FLUSH_AGAIN, queue_notices, announcer);
		request->next = announcer->notices;
		announcer->notices = request;
		return;
	}
	agent->stateless |= request->failed;
	for (size_t i = 0; i < request->parcel_count && !request->failed; i++)
		courier_add(announcer->courier, &request->parcels[i]);
	store_request_free(request);
}

static bool add_notice(struct announcer *announcer, struct store_request *request,
	const struct receiver *receiver, const struct notice *notice, struct error *error)
{
	struct message message = {.kind = MESSAGE_NOTICE, .notice = notice};
	uint64_t content = hash_add(HASH_START, notice->subject, strlen(notice->subject) + 1);
	struct strings destinations;

	content = hash_add(content, notice->text, strlen(notice->text) + 1);
	content = hash_add(content, &notice->time, sizeof notice->time);
	content = hash_add(content, &notice->recovered, sizeof notice->recovered);
	if (!notifier_find(receiver->notifier->name)
			->destinations(receiver->options, request->arena, &destinations, error))
		return false;
	for (size_t i = 0; i < destinations.count; i++) {
		struct addressee to = {receiver, destinations.items[i]};

		if (!parcels_add(request, &to, &message, content, announcer->agent->now(), error))
			return false;
	}
	return true;
}

void announcer_notice(
	struct announcer *announcer, const struct notice *notice, const struct strings *receivers)
{
	struct store_request *request = store_request_new(STORE_QUEUE, notice_queued, announcer);
	struct error error;

	log_event(notice->recovered ? LEVEL_INFO : LEVEL_WARN, "notice",
		LOG_TEXT("subject", notice->subject), LOG_TEXT("text", notice->text));
	for (size_t i = 0; i < receivers->count; i++) {
		const struct receiver *receiver =
			agent_receiver(announcer->agent, receivers->items[i]);
		size_t before = request->parcel_count;

		if (!receiver || add_notice(announcer, request, receiver, notice, &error))
			continue;
		request->parcel_count = before;
		complain(announcer, receiver, &error);
	}
	ledger_ask(announcer->agent, request);
}
