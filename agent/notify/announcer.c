/*
 * Each receiver gets what the tests that name it have to say, in groups, one
 * message for each of its destinations. All messages of a flush enter the outbox in one transaction
 * together with the changes being told, so that none is told twice and none forgotten, whenever the
 * program dies.
 *
 * A receiver for which cannot render message holds up no other: those get theirs, and the
 * changes stay pending, with a note of who has been told, until that receiver can be told, too.
 */
#include "agent/notify/announcer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/timers.h"
#include "agent/notify/announce.h"
#include "agent/notify/notices.h"
#include "agent/notify/recoveries.h"
#include "agent/notify/withdrawal.h"

enum { FLUSH_AGAIN = 30000, MEND_AGAIN = 300000 };

struct announcer {
	struct agent *agent;
	struct telling telling;
	struct filter filters[ANNOUNCER_FILTERS]; /* in the order they are asked */
	size_t filter_count;
	struct environments *environments;
	bool look;                     /* the filters are to be asked again */
	struct store_request *waiting; /* linked by next */
	struct store_request *queuing; /* their messages are on the way to the outbox */
	struct backlog *backlog;       /* notices, and what is told anew */
	struct notices *notices;
	struct recoveries *recoveries;
	struct alarm alarm; /* of the next flush */
};

static void flush_alarm(void *announcer)
{
	announcer_flush(announcer);
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
	environments_free(announcer->environments);
	notices_free(announcer->notices);
	recoveries_free(announcer->recoveries);
	backlog_free(announcer->backlog);
	free(announcer);
}

static void flush_after(struct announcer *announcer, int64_t wait)
{
	if (!announcer->agent->once)
		engine_alarm(announcer->agent->engine, &announcer->alarm,
			engine_now(announcer->agent->engine) + wait);
}

static void renew(struct arena *arena, struct announcement *item, const struct announcement *now)
{
	int64_t id = item->id;

	*item = announce_copy(arena, now);
	item->id = id;
}

/* What waits is told as it is by now, and not at all if it is withdrawn, or over. */
static void update_all(struct store_request *waiting, const struct store_request *news)
{
	for (; waiting; waiting = waiting->next)
		for (size_t i = 0; i < waiting->record_count; i++)
			for (size_t j = 0; j < news->update_count; j++) {
				struct record *record = &waiting->records[i];
				const struct record_update *update = &news->updates[j];

				if (record->item.id != update->id || record->news != NEWS_PENDING)
					continue;
				if (update->item)
					renew(waiting->arena, &record->item, update->item);
				record->item.time = update->time;
				if (update->state == CHANGE_WITHDRAWN ||
					update->state == CHANGE_RECOVERED)
					record->news = NEWS_HELD;
			}
}

void announcer_add(struct announcer *announcer, struct store_request *records)
{
	size_t pending = 0;

	update_all(announcer->waiting, records);
	update_all(announcer->queuing, records);
	recoveries_note(announcer->recoveries, records);
	for (size_t i = 0; i < records->record_count; i++) {
		records->records[i].handed = engine_now(announcer->agent->engine);
		pending += records->records[i].news == NEWS_PENDING;
	}
	if (pending == 0) {
		store_request_free(records);
		return;
	}
	records->next = announcer->waiting;
	announcer->waiting = records;
	flush_after(announcer, announcer->agent->config->agent.group_wait);
}

void announcer_restore(struct announcer *announcer, struct store_request *restored)
{
	for (size_t i = restored->recent_count; i > 0; i--)
		telling_remember(&announcer->telling, &restored->recent[i - 1]);
	for (size_t i = 0; i < restored->parcel_count; i++)
		telling_remember(&announcer->telling, &restored->parcels[i]);
	environments_restore(announcer->environments, restored);
	announcer_add(announcer, restored);
}

void announcer_filter(struct announcer *announcer, struct filter filter)
{
	assert(announcer->filter_count < ANNOUNCER_FILTERS);
	memmove(announcer->filters + 1, announcer->filters,
		announcer->filter_count * sizeof *announcer->filters);
	announcer->filters[0] = filter;
	announcer->filter_count++;
}

struct environments *announcer_environments(const struct announcer *announcer)
{
	return announcer->environments;
}

void announcer_look(struct announcer *announcer)
{
	announcer->look = true;
	flush_after(announcer, announcer->agent->config->agent.group_wait);
}

/* What some have been told of already is told to the others, too. */
static size_t list_open(const struct announcer *announcer, struct record ***out)
{
	size_t room = 0, count = 0;

	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		room += at->record_count;
	*out = memory_new(room, sizeof **out);
	for (struct store_request *at = announcer->queuing; at; at = at->next)
		for (size_t i = 0; i < at->record_count; i++) {
			struct record *record = &at->records[i];

			record->held = record->covered = false;
			if (record->news == NEWS_PENDING && record->told.count == 0)
				(*out)[count++] = record;
		}
	return count;
}

/* Keeps those that the filter lets pass, and returns their number. */
static size_t ask_filter(const struct filter *filter, struct record **records, size_t count)
{
	size_t kept = 0;

	if (filter->begin)
		filter->begin(filter->context, records, count);
	for (size_t i = 0; i < count; i++) {
		const char *reason = "";
		enum filter_verdict verdict = filter->judge(filter->context, records[i], &reason);

		records[i]->held = verdict == FILTER_HOLD;
		records[i]->covered = verdict == FILTER_SUPPRESS;
		if (verdict == FILTER_PASS)
			continue;
		log_event(LEVEL_DEBUG,
			verdict == FILTER_HOLD ? "change held back" : "change suppressed",
			LOG_INT("id", records[i]->item.id), LOG_TEXT("filter", filter->name),
			LOG_TEXT("reason", reason));
	}
	for (size_t i = 0; i < count; i++)
		if (!records[i]->held && !records[i]->covered)
			records[kept++] = records[i];
	return kept;
}

static void ask_filters(struct announcer *announcer)
{
	struct record **records;
	size_t count = list_open(announcer, &records);

	announcer->look = false;
	for (size_t i = 0; i < announcer->filter_count; i++)
		count = ask_filter(&announcer->filters[i], records, count);
	free(records);
}

/* Of what is no longer configured all receivers are told. */
static bool concerns(
	const struct config *config, const struct record *record, const struct receiver *receiver)
{
	const struct strings *notify = config_notify(config, record->item.test);

	if (!notify)
		return true;
	for (size_t i = 0; i < notify->count; i++)
		if (strcmp(notify->items[i], receiver->name) == 0)
			return true;
	return false;
}

/* Whether the record is to be told to the receiver and was not yet. */
static bool lacks(
	const struct config *config, const struct record *record, const struct receiver *receiver)
{
	if (record->news != NEWS_PENDING || record->held || record->covered ||
		!concerns(config, record, receiver))
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
	if (telling_changes(&announcer->telling, request, receiver, records, count, &error))
		mark_told(announcer, receiver);
	else
		telling_complain(&announcer->telling, receiver, &error);
}

/* True if nobody who is to be told of the record lacks it. */
static bool complete(const struct announcer *announcer, const struct record *record)
{
	const struct config *config = announcer->agent->config;

	if (record->held || record->covered)
		return record->covered;
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

/* What is told as part of an event, or counts as told by it. */
static void list_members(struct announcer *announcer, struct store_request *request)
{
	size_t room = 0, count = 0;
	const struct record **members;

	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		room += at->record_count;
	members = arena_array(request->arena, room, sizeof *members);
	for (const struct store_request *at = announcer->queuing; at; at = at->next)
		for (size_t i = 0; i < at->record_count; i++)
			if (at->records[i].environment_event != at->records[i].environment_stored)
				members[count++] = &at->records[i];
	environments_write(announcer->environments, request, members, count);
}

/* The store has it, or has not: then nobody has been told. `written`: what there was to write is in
 * it. Returns how many are still pending, and
 * adds to `due` those that wait for nothing but another attempt. */
static size_t settle(const struct announcer *announcer, struct store_request *records, bool written,
	bool stored, size_t *due)
{
	size_t pending = 0;

	for (size_t i = 0; i < records->record_count; i++) {
		struct record *record = &records->records[i];

		if (stored)
			record->told_stored = record->told.count;
		else
			record->told.count = record->told_stored;
		if (written)
			record->environment_stored = record->environment_event;
		else
			record->environment_event = record->environment_stored;
		record->covered &= stored;
		if (record->news == NEWS_PENDING && complete(announcer, record))
			record->news = NEWS_QUEUED;
		pending += record->news == NEWS_PENDING;
		*due += record->news == NEWS_PENDING && !record->held;
	}
	return pending;
}

/* What is not told to all goes back to what waits. */
static void settle_all(struct announcer *announcer, bool written, bool stored)
{
	struct store_request *records = announcer->queuing;
	size_t due = 0;

	announcer->queuing = NULL;
	environments_written(announcer->environments, written);
	for (struct store_request *next; records; records = next) {
		next = records->next;
		if (settle(announcer, records, written, stored, &due) == 0) {
			store_request_free(records);
			continue;
		}
		records->next = announcer->waiting;
		announcer->waiting = records;
	}
	if (due > 0)
		flush_after(announcer, stored ? MEND_AGAIN : FLUSH_AGAIN);
}

static void queued(struct store_request *request)
{
	struct announcer *announcer = request->context;
	bool fresh = announcer->waiting || announcer->look;

	if (!request->failed) {
		telling_send(&announcer->telling, request);
		recoveries_note(announcer->recoveries, request);
	}
	settle_all(announcer, !request->failed, !request->failed);
	if (request->failed)
		announcer->agent->stateless = true;
	if (fresh)
		flush_after(announcer, announcer->agent->config->agent.group_wait);
	store_request_free(request);
}

/* An event that another environment has followed is said to be so in its thread. */
static void tell_followed(struct announcer *announcer, struct store_request *request)
{
	const struct environment_event *event;
	const char *value;
	size_t at = 0;

	while ((event = environments_followed(announcer->environments, &at, &value)))
		telling_followed(&announcer->telling, request, event, value);
}

void announcer_flush(struct announcer *announcer)
{
	const struct config *config = announcer->agent->config;
	struct store_request *request;

	if (announcer->agent->once)
		recoveries_tell(announcer->recoveries);
	if (!announcer->waiting || announcer->queuing || announcer->agent->stopping)
		return;
	announcer->queuing = announcer->waiting;
	announcer->waiting = NULL;
	ask_filters(announcer);
	request = store_request_new(STORE_QUEUE, queued, announcer);
	for (size_t i = 0; i < config->receiver_count; i++)
		tell(announcer, request, &config->receivers[i]);
	list_told(announcer, request);
	if (request->parcel_count + request->told_count > 0) {
		list_members(announcer, request);
		tell_followed(announcer, request);
		ledger_ask(announcer->agent, request);
		return;
	}
	store_request_free(request);
	settle_all(announcer, false, true);
}

void announcer_notice(struct announcer *announcer, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition)
{
	notices_tell(announcer->notices, notice, receivers, condition);
}

void announcer_notice_storing(struct announcer *announcer, const struct notice *notice,
	const struct strings *receivers, struct store_request *request)
{
	notices_tell_storing(announcer->notices, notice, receivers, request);
}

static void reopened(struct store_request *request)
{
	struct announcer *announcer = request->context;

	if (request->failed)
		store_request_free(request);
	else
		announcer_add(announcer, request);
}

/* What was for a receiver that is gone is told to those there are. */
static void reopen(void *context)
{
	struct announcer *announcer = context;
	struct store_request *request = store_request_new(STORE_REOPEN, reopened, announcer);

	courier_orphans(announcer->telling.courier, request);
	backlog_add(announcer->backlog, request);
}

void announcer_withdrawn(struct announcer *announcer, const struct store_request *written)
{
	withdrawal_tell(&announcer->telling, announcer->backlog, written);
}

static void late(void *context, const struct store_request *settled)
{
	struct announcer *announcer = context;

	announcer_withdrawn(announcer, settled);
}

static void look(void *announcer)
{
	announcer_look(announcer);
}

struct announcer *announcer_new(struct agent *agent, struct courier *courier)
{
	struct announcer *announcer = memory_new(1, sizeof *announcer);

	*announcer = (struct announcer){.agent = agent,
		.backlog = backlog_new(agent),
		.alarm = {.call = flush_alarm, .context = announcer}};
	announcer->environments = environments_new(agent, look, announcer);
	announcer->telling = (struct telling){agent, courier, announcer->environments};
	announcer_filter(announcer, environments_filter(announcer->environments));
	announcer->notices = notices_new(&announcer->telling, announcer->backlog);
	announcer->recoveries = recoveries_new(&announcer->telling);
	courier_listen(courier, reopen, late, announcer);
	return announcer;
}
