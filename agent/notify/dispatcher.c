/*
 * Each receiver gets the changes of the tests that name it, in groups, one message per destination.
 * One transaction puts all messages of a flush into the outbox and marks their changes as queued,
 * so that a crash neither repeats nor loses an announcement.
 *
 * If no message can be rendered for a receiver, the others still get theirs; the changes stay
 * pending, with the receivers that have them, until the rest can be rendered.
 */
#include "agent/notify/dispatcher.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/timers.h"
#include "agent/notify/announce.h"
#include "agent/notify/notices.h"
#include "agent/notify/publisher.h"
#include "agent/notify/recoveries.h"
#include "agent/notify/retraction.h"
#include "agent/runtime/store_backlog.h"

enum { FLUSH_AGAIN = 30000, MEND_AGAIN = 300000 };

/* Records of one reply of the store, in its arena, which is the batch's. */
struct batch {
	struct arena *arena;
	struct record_rows records;
	struct batch *next;
};

struct dispatcher {
	struct agent *agent;
	struct publisher publisher;
	struct filter filters[DISPATCHER_FILTERS]; /* in the order in which they are asked */
	size_t filter_count;
	struct environments *environments;
	bool look; /* the filters have to be asked again */
	struct batch *waiting;
	struct batch *queuing;         /* their messages are being queued in the store */
	struct store_backlog *backlog; /* notices, and reopened changes */
	struct notices *notices;
	struct recoveries *recoveries;
	struct alarm alarm; /* of the next flush */
};

static void flush_alarm(void *dispatcher)
{
	dispatcher_flush(dispatcher);
}

static void batches_free(struct batch *batch)
{
	for (struct batch *next; batch; batch = next) {
		next = batch->next;
		arena_free(batch->arena);
	}
}

void dispatcher_free(struct dispatcher *dispatcher)
{
	if (!dispatcher)
		return;
	batches_free(dispatcher->waiting);
	batches_free(dispatcher->queuing);
	environments_free(dispatcher->environments);
	notices_free(dispatcher->notices);
	recoveries_free(dispatcher->recoveries);
	store_backlog_free(dispatcher->backlog);
	free(dispatcher);
}

static void flush_after(struct dispatcher *dispatcher, int64_t wait)
{
	if (!dispatcher->agent->once)
		engine_alarm(dispatcher->agent->engine, &dispatcher->alarm,
			engine_now(dispatcher->agent->engine) + wait);
}

static void renew(struct arena *arena, struct announcement *item, const struct announcement *now)
{
	int64_t id = item->id;

	*item = announce_copy(arena, now);
	item->id = id;
}

/* Updates the changes of the batches; drops those that are withdrawn or recovered by now. */
static void update_all(struct batch *batch, const struct store_record *news)
{
	for (; batch; batch = batch->next)
		for (size_t i = 0; i < batch->records.count; i++)
			for (size_t j = 0; j < news->update_count; j++) {
				struct change_record *record = &batch->records.items[i];
				const struct change_record_update *update = &news->updates[j];

				if (record->item.id != update->id || record->news != NOTIFY_PENDING)
					continue;
				if (update->item)
					renew(batch->arena, &record->item, update->item);
				record->item.time = update->time;
				if (update->state == CHANGE_WITHDRAWN ||
					update->state == CHANGE_RECOVERED)
					record->news = NOTIFY_HELD;
			}
}

/* Takes over the arena of a reply. */
static void add(struct dispatcher *dispatcher, struct arena *arena, struct record_rows records)
{
	size_t pending = 0;
	struct batch *batch;

	for (size_t i = 0; i < records.count; i++) {
		records.items[i].handed = engine_now(dispatcher->agent->engine);
		pending += records.items[i].news == NOTIFY_PENDING;
	}
	if (pending == 0) {
		arena_free(arena);
		return;
	}
	batch = arena_alloc(arena, sizeof *batch);
	*batch = (struct batch){arena, records, dispatcher->waiting};
	dispatcher->waiting = batch;
	flush_after(dispatcher, dispatcher->agent->config->agent.group_wait);
}

void dispatcher_add(struct dispatcher *dispatcher, struct store_record *recorded)
{
	update_all(dispatcher->waiting, recorded);
	update_all(dispatcher->queuing, recorded);
	recoveries_note(dispatcher->recoveries, recorded->counts.recoveries);
	add(dispatcher, recorded->call.arena, recorded->records);
}

void dispatcher_restore(struct dispatcher *dispatcher, struct store_restore *restored)
{
	for (size_t i = restored->recent.count; i > 0; i--)
		publisher_remember(&dispatcher->publisher, &restored->recent.items[i - 1]);
	for (size_t i = 0; i < restored->deliveries.count; i++)
		publisher_remember(&dispatcher->publisher, &restored->deliveries.items[i]);
	environments_restore(dispatcher->environments, &restored->environments);
	recoveries_note(dispatcher->recoveries, restored->counts.recoveries);
	add(dispatcher, restored->call.arena, restored->records);
}

void dispatcher_filter(struct dispatcher *dispatcher, struct filter filter)
{
	assert(dispatcher->filter_count < DISPATCHER_FILTERS);
	memmove(dispatcher->filters + 1, dispatcher->filters,
		dispatcher->filter_count * sizeof *dispatcher->filters);
	dispatcher->filters[0] = filter;
	dispatcher->filter_count++;
}

struct environments *dispatcher_environments(const struct dispatcher *dispatcher)
{
	return dispatcher->environments;
}

void dispatcher_look(struct dispatcher *dispatcher)
{
	dispatcher->look = true;
	flush_after(dispatcher, dispatcher->agent->config->agent.group_wait);
}

/* Lists what to ask the filters about: not what some receivers have already, which the others get,
 * too. */
static size_t list_open(const struct dispatcher *dispatcher, struct change_record ***out)
{
	size_t room = 0, count = 0;

	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		room += at->records.count;
	*out = memory_new(room, sizeof **out);
	for (struct batch *at = dispatcher->queuing; at; at = at->next)
		for (size_t i = 0; i < at->records.count; i++) {
			struct change_record *record = &at->records.items[i];

			record->held = record->covered = false;
			if (record->news == NOTIFY_PENDING && record->told.count == 0)
				(*out)[count++] = record;
		}
	return count;
}

/* Keeps the records that the filter passes; returns their number. */
static size_t ask_filter(const struct filter *filter, struct change_record **records, size_t count)
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
		log_event(LEVEL_DEBUG, verdict == FILTER_HOLD ? "change held" : "change suppressed",
			LOG_INT("id", records[i]->item.id), LOG_TEXT("filter", filter->name),
			LOG_TEXT("reason", reason));
	}
	for (size_t i = 0; i < count; i++)
		if (!records[i]->held && !records[i]->covered)
			records[kept++] = records[i];
	return kept;
}

static void ask_filters(struct dispatcher *dispatcher)
{
	struct change_record **records;
	size_t count = list_open(dispatcher, &records);

	dispatcher->look = false;
	for (size_t i = 0; i < dispatcher->filter_count; i++)
		count = ask_filter(&dispatcher->filters[i], records, count);
	free(records);
}

/* The changes of a test that is no longer configured go to all receivers. */
static bool concerns(const struct config *config, const struct change_record *record,
	const struct receiver *receiver)
{
	const struct strings *notify = config_notify(config, record->item.test);

	if (!notify)
		return true;
	for (size_t i = 0; i < notify->count; i++)
		if (strcmp(notify->items[i], receiver->name) == 0)
			return true;
	return false;
}

/* Whether the receiver should get the record and has not yet. */
static bool lacks(const struct config *config, const struct change_record *record,
	const struct receiver *receiver)
{
	if (record->news != NOTIFY_PENDING || record->held || record->covered ||
		!concerns(config, record, receiver))
		return false;
	for (size_t i = 0; i < record->told.count; i++)
		if (strcmp(record->told.items[i], receiver->name) == 0)
			return false;
	return true;
}

static size_t records_for(const struct dispatcher *dispatcher, struct arena *arena,
	const struct receiver *receiver, const struct change_record ***out)
{
	size_t room = 0, count = 0;

	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		room += at->records.count;
	*out = arena_array(arena, room, sizeof **out);
	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		for (size_t i = 0; i < at->records.count; i++)
			if (lacks(dispatcher->agent->config, &at->records.items[i], receiver))
				(*out)[count++] = &at->records.items[i];
	return count;
}

static void mark_told(struct dispatcher *dispatcher, const struct receiver *receiver)
{
	const struct config *config = dispatcher->agent->config;

	for (struct batch *at = dispatcher->queuing; at; at = at->next)
		for (size_t i = 0; i < at->records.count; i++)
			if (lacks(config, &at->records.items[i], receiver))
				record_told(at->arena, &at->records.items[i],
					arena_strdup(at->arena, receiver->name));
}

static void tell(
	struct dispatcher *dispatcher, struct store_queue *request, const struct receiver *receiver)
{
	const struct change_record **records;
	struct error error;
	size_t count = records_for(dispatcher, request->call.arena, receiver, &records);

	if (count == 0)
		return;
	if (publisher_changes(&dispatcher->publisher, request, receiver, records, count, &error))
		mark_told(dispatcher, receiver);
	else
		publisher_complain(&dispatcher->publisher, receiver, &error);
}

/* True if all receivers of the record have it. */
static bool complete(const struct dispatcher *dispatcher, const struct change_record *record)
{
	const struct config *config = dispatcher->agent->config;

	if (record->held || record->covered)
		return record->covered;
	for (size_t i = 0; i < config->receiver_count; i++)
		if (lacks(config, record, &config->receivers[i]))
			return false;
	return record->told.count > 0;
}

static void list_told(const struct dispatcher *dispatcher, struct store_queue *request)
{
	size_t room = 0;
	int64_t *told;

	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		room += at->records.count;
	told = arena_array(request->call.arena, room, sizeof *told);
	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		for (size_t i = 0; i < at->records.count; i++)
			if (at->records.items[i].news == NOTIFY_PENDING &&
				complete(dispatcher, &at->records.items[i]))
				told[request->told_count++] = at->records.items[i].item.id;
	request->told = told;
}

/* Records that are announced as part of an environment event, or suppressed by it. */
static void list_members(struct dispatcher *dispatcher, struct store_queue *request)
{
	size_t room = 0, count = 0;
	const struct change_record **members;

	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		room += at->records.count;
	members = arena_array(request->call.arena, room, sizeof *members);
	for (const struct batch *at = dispatcher->queuing; at; at = at->next)
		for (size_t i = 0; i < at->records.count; i++)
			if (at->records.items[i].environment_event !=
				at->records.items[i].environment_stored)
				members[count++] = &at->records.items[i];
	environments_write(dispatcher->environments, request, members, count);
}

/* After the store's reply; without success no receiver has the records. `written`: all renderable
 * messages are in the request. Returns how many records are still pending, and adds to `due` those
 * that wait only for a retry. */
static size_t settle(const struct dispatcher *dispatcher, struct record_rows records, bool written,
	bool stored, size_t *due)
{
	size_t pending = 0;

	for (size_t i = 0; i < records.count; i++) {
		struct change_record *record = &records.items[i];

		if (stored)
			record->told_stored = record->told.count;
		else
			record->told.count = record->told_stored;
		if (written)
			record->environment_stored = record->environment_event;
		else
			record->environment_event = record->environment_stored;
		record->covered &= stored;
		if (record->news == NOTIFY_PENDING && complete(dispatcher, record))
			record->news = NOTIFY_QUEUED;
		pending += record->news == NOTIFY_PENDING;
		*due += record->news == NOTIFY_PENDING && !record->held;
	}
	return pending;
}

/* Records that some receivers lack go back to the waiting ones. */
static void settle_all(struct dispatcher *dispatcher, bool written, bool stored)
{
	struct batch *batch = dispatcher->queuing;
	size_t due = 0;

	dispatcher->queuing = NULL;
	environments_written(dispatcher->environments, written);
	for (struct batch *next; batch; batch = next) {
		next = batch->next;
		if (settle(dispatcher, batch->records, written, stored, &due) == 0) {
			arena_free(batch->arena);
			continue;
		}
		batch->next = dispatcher->waiting;
		dispatcher->waiting = batch;
	}
	if (due > 0)
		flush_after(dispatcher, stored ? MEND_AGAIN : FLUSH_AGAIN);
}

static void queued(struct store_queue *request)
{
	struct dispatcher *dispatcher = request->call.context;
	bool fresh = dispatcher->waiting || dispatcher->look;

	if (!request->call.failed) {
		publisher_send(&dispatcher->publisher, request);
		recoveries_note(dispatcher->recoveries, request->recoveries);
	}
	settle_all(dispatcher, !request->call.failed, !request->call.failed);
	if (request->call.failed)
		dispatcher->agent->stateless = true;
	if (fresh)
		flush_after(dispatcher, dispatcher->agent->config->agent.group_wait);
	store_call_free(&request->call);
}

/* Replies to an event's thread when another environment changed in the same way. */
static void publish_followed(struct dispatcher *dispatcher, struct store_queue *request)
{
	const struct environment_event *event;
	const char *value;
	size_t at = 0;

	while ((event = environments_followed(dispatcher->environments, &at, &value)))
		publisher_followed(&dispatcher->publisher, request, event, value);
}

void dispatcher_flush(struct dispatcher *dispatcher)
{
	const struct config *config = dispatcher->agent->config;
	struct store_queue *request;

	if (dispatcher->agent->once)
		recoveries_tell(dispatcher->recoveries);
	if (!dispatcher->waiting || dispatcher->queuing || dispatcher->agent->stopping)
		return;
	dispatcher->queuing = dispatcher->waiting;
	dispatcher->waiting = NULL;
	ask_filters(dispatcher);
	request = store_queue_new(queued, dispatcher);
	for (size_t i = 0; i < config->receiver_count; i++)
		tell(dispatcher, request, &config->receivers[i]);
	list_told(dispatcher, request);
	if (request->deliveries.count + request->told_count > 0) {
		list_members(dispatcher, request);
		publish_followed(dispatcher, request);
		store_client_call(dispatcher->agent, &request->call);
		return;
	}
	store_call_free(&request->call);
	settle_all(dispatcher, false, true);
}

void dispatcher_notice(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, const struct condition *condition)
{
	notices_tell(dispatcher->notices, notice, receivers, condition);
}

void dispatcher_notice_storing(struct dispatcher *dispatcher, const struct notice *notice,
	const struct strings *receivers, struct store_queue *request)
{
	notices_tell_storing(dispatcher->notices, notice, receivers, request);
}

static void reopened(struct store_reopen *request)
{
	struct dispatcher *dispatcher = request->call.context;

	if (request->call.failed)
		store_call_free(&request->call);
	else
		add(dispatcher, request->call.arena, request->records);
}

/* Announces the changes of orphaned deliveries to the receivers that are configured. */
static void reopen(void *context)
{
	struct dispatcher *dispatcher = context;
	struct store_reopen *request = store_reopen_new(reopened, dispatcher);

	delivery_manager_orphans(dispatcher->publisher.delivery_manager, request);
	store_backlog_add(dispatcher->backlog, &request->call);
}

void dispatcher_withdrawn(struct dispatcher *dispatcher, const struct delivery_rows *retractions)
{
	retraction_send(&dispatcher->publisher, dispatcher->backlog, retractions);
}

static void late(void *context, const struct delivery_rows *retractions)
{
	dispatcher_withdrawn(context, retractions);
}

static void look(void *dispatcher)
{
	dispatcher_look(dispatcher);
}

struct dispatcher *dispatcher_new(struct agent *agent, struct delivery_manager *delivery_manager)
{
	struct dispatcher *dispatcher = memory_new(1, sizeof *dispatcher);

	*dispatcher = (struct dispatcher){.agent = agent,
		.backlog = store_backlog_new(agent),
		.alarm = {.call = flush_alarm, .context = dispatcher}};
	dispatcher->environments = environments_new(agent, look, dispatcher);
	dispatcher->publisher =
		(struct publisher){agent, delivery_manager, dispatcher->environments};
	dispatcher_filter(dispatcher, environments_filter(dispatcher->environments));
	dispatcher->notices = notices_new(&dispatcher->publisher, dispatcher->backlog);
	dispatcher->recoveries = recoveries_new(&dispatcher->publisher);
	delivery_manager_listen(delivery_manager, reopen, late, dispatcher);
	return dispatcher;
}
