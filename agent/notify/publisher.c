/*
 * Chooses the thread that a group continues, and renders its message for each destination.
 */
#include "agent/notify/publisher.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/hash.h"
#include "agent/notify/announce.h"
#include "agent/notify/deliveries.h"
#include "agent/notify/group.h"
#include "notifiers/text.h"

/* By default a thread stays open for three points, as the changes of one deployment need not show
 * in the same one; at most for 30 days. */
enum { OPEN_STEPS = 3 };
#define OPEN_MOST INT64_C(2592000000)

/* How long the records' thread stays open. */
static int64_t open_for(
	const struct config *config, const struct change_record *const *records, size_t count)
{
	int64_t longest = config->agent.group_interval;

	for (size_t i = 0; i < count && config->agent.group_interval == 0; i++) {
		int64_t interval = config_interval(config, records[i]->item.test);
		int64_t steps = records[i]->spacing < OPEN_MOST / OPEN_STEPS
					? OPEN_STEPS * records[i]->spacing
					: OPEN_MOST;

		interval = interval > steps ? interval : steps;
		longest = interval > longest ? interval : longest;
	}
	return longest;
}

static struct delivery_content content_of(
	const struct publisher *publisher, struct arena *arena, const struct group_of *group)
{
	struct change_record *records = arena_array(arena, group->count, sizeof *records);
	int64_t *ids = arena_array(arena, group->count, sizeof *ids);
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < group->count; i++) {
		records[i] = *group->items[i];
		ids[i] = records[i].item.id;
		hash = hash_add(hash, &ids[i], sizeof ids[i]);
		hash = hash_add(hash, &records[i].first_seen, sizeof records[i].first_seen);
	}
	return (struct delivery_content){.hash = hash,
		.records = records,
		.record_count = group->count,
		.ids = ids,
		.now = agent_now(publisher->agent)};
}

/* Changes that an event says it has, and does not list as they were told before. */
static size_t early_of(const struct publisher *publisher, const struct recipient *to,
	const struct environment_event *event, const struct group_of *group)
{
	size_t most = event && event->hit > group->count ? event->hit - group->count : 0;
	size_t count =
		most == 0
			? 0
			: threads_early(delivery_manager_threads(publisher->delivery_manager),
				  to->receiver->name, to->destination, group->items, group->count);

	return count < most ? count : most;
}

/* Adds the group's message for each destination, in the thread of a recent message that it belongs
 * to. */
static bool add_group(const struct publisher *publisher, struct store_queue *request,
	const struct receiver *receiver, const struct strings *destinations,
	const struct group_of *group, struct error *error)
{
	const struct config *config = publisher->agent->config;
	struct announcement *items = memory_new(group->count, sizeof *items);
	struct delivery_content content = content_of(publisher, request->call.arena, group);
	struct message message = {.items = items,
		.count = group->count,
		.environment = environments_event(
			publisher->environments, group->items[0]->environment_event)};
	int64_t interval = open_for(config, group->items, group->count);
	bool written = true;

	for (size_t i = 0; i < group->count; i++) {
		struct change_record told = content.records[i];

		announce_links(request->call.arena, config, &told);
		items[i] = told.item;
	}
	for (size_t i = 0; i < destinations->count && written; i++) {
		struct recipient to = {receiver, destinations->items[i]};
		const struct thread *thread = threads_find(
			delivery_manager_threads(publisher->delivery_manager), receiver->name,
			to.destination, group->items, group->count, interval, content.now);

		message.kind = thread ? MESSAGE_UPDATED : MESSAGE_NEW;
		message.thread = thread ? thread->key : NULL;
		message.more_of = thread ? &thread->first : NULL;
		message.early = thread ? 0 : early_of(publisher, &to, message.environment, group);
		written = deliveries_add(request, &to, &message, &content, error);
	}
	free(items);
	return written;
}

/* The changes of one environment event are a group; all others are grouped as usual. */
static size_t group_all(struct arena *arena, const struct change_record **records, size_t count,
	struct group_of **groups)
{
	const struct change_record **others = arena_array(arena, count, sizeof *others);
	struct group_of *events = arena_array(arena, count, sizeof *events), *rest;
	size_t event_count = 0, other_count = 0, rest_count;

	for (size_t i = 0; i < count; i++) {
		int64_t event = records[i]->environment_event;
		size_t at = 0;

		if (event == 0) {
			others[other_count++] = records[i];
			continue;
		}
		while (at < event_count && events[at].items[0]->environment_event != event)
			at++;
		event_count += at == event_count;
		events[at].items = arena_grow(
			arena, events[at].items, events[at].count, sizeof *events[at].items);
		events[at].items[events[at].count++] = records[i];
	}
	for (size_t i = 0; i < event_count; i++)
		group_sort(events[i].items, events[i].count);
	rest_count = other_count > 0 ? group_records(arena, others, other_count, &rest) : 0;
	*groups = arena_array(arena, event_count + rest_count, sizeof **groups);
	memcpy(*groups, events, event_count * sizeof *events);
	if (rest_count > 0)
		memcpy(*groups + event_count, rest, rest_count * sizeof *rest);
	return event_count + rest_count;
}

bool publisher_changes(const struct publisher *publisher, struct store_queue *request,
	const struct receiver *receiver, const struct change_record **records, size_t count,
	struct error *error)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	size_t before = request->deliveries.count, group_count;
	struct group_of *groups;
	struct strings destinations;

	if (!notifier->destinations(receiver->options, request->call.arena, &destinations, error))
		return false;
	group_count = group_all(request->call.arena, records, count, &groups);
	for (size_t i = 0; i < group_count; i++)
		if (!add_group(publisher, request, receiver, &destinations, &groups[i], error)) {
			request->deliveries.count = before;
			return false;
		}
	return true;
}

static uint64_t notice_hash(const struct notice *notice)
{
	uint64_t hash = hash_add(HASH_START, notice->subject, strlen(notice->subject) + 1);

	hash = hash_add(hash, notice->text, strlen(notice->text) + 1);
	hash = hash_add(hash, &notice->time, sizeof notice->time);
	return hash_add(hash, &notice->recovered, sizeof notice->recovered);
}

bool publisher_notice(const struct publisher *publisher, struct store_queue *request,
	const struct receiver *receiver, const struct notice *notice, struct error *error)
{
	struct message message = {.kind = MESSAGE_NOTICE, .notice = notice};
	struct delivery_content content = {
		.hash = notice_hash(notice), .now = agent_now(publisher->agent)};
	size_t before = request->deliveries.count;
	struct strings destinations;

	if (!notifier_find(receiver->notifier->name)
			->destinations(
				receiver->options, request->call.arena, &destinations, error))
		return false;
	for (size_t i = 0; i < destinations.count; i++) {
		struct recipient to = {receiver, destinations.items[i]};

		if (!deliveries_add(request, &to, &message, &content, error)) {
			request->deliveries.count = before;
			return false;
		}
	}
	return true;
}

static void tell_in_thread(const struct publisher *publisher, struct store_queue *request,
	const struct recipient *to, const struct notice *notice, const char *thread)
{
	struct message message = {.kind = MESSAGE_NOTICE, .notice = notice, .thread = thread};
	struct delivery_content content = {
		.hash = notice_hash(notice), .now = agent_now(publisher->agent)};
	struct error error;

	if (!deliveries_add(request, to, &message, &content, &error))
		log_event(LEVEL_WARN, "cannot render message",
			LOG_TEXT("receiver", to->receiver->name), LOG_TEXT("problem", error.text));
}

void publisher_followed(const struct publisher *publisher, struct store_queue *request,
	const struct environment_event *event, const char *value)
{
	const struct config *config = publisher->agent->config;
	struct notice notice = {.subject = arena_strdup(request->call.arena, event->value),
		.time = agent_now(publisher->agent)};
	struct buf text = {0};

	text_followed(&text, value);
	notice.text = arena_strdup(request->call.arena, text.data);
	buf_free(&text);
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];
		struct strings destinations;
		struct error error;

		if (!notifier_find(receiver->notifier->name)
				->destinations(receiver->options, request->call.arena,
					&destinations, &error))
			continue;
		for (size_t j = 0; j < destinations.count; j++) {
			const struct thread *thread = threads_of_environment(
				delivery_manager_threads(publisher->delivery_manager),
				receiver->name, destinations.items[j], event->id);

			if (thread)
				tell_in_thread(publisher, request,
					&(struct recipient){receiver, destinations.items[j]},
					&notice, thread->key);
		}
	}
}

void publisher_complain(const struct publisher *publisher, const struct receiver *receiver,
	const struct error *error)
{
	struct agent *agent = publisher->agent;

	log_event(LEVEL_ERROR, "cannot render message, will retry",
		LOG_TEXT("receiver", receiver->name), LOG_TEXT("problem", error->text));
	metrics_add(agent->metrics, METRIC_DELIVERIES, 1, receiver->name, "unwritten");
	agent->misconfigured = true;
}

void publisher_remember(const struct publisher *publisher, const struct delivery *delivery)
{
	const struct config *config = publisher->agent->config;
	const struct change_record **records = memory_new(delivery->record_count, sizeof *records);

	for (size_t i = 0; i < delivery->record_count; i++)
		records[i] = &delivery->records[i];
	threads_add(delivery_manager_threads(publisher->delivery_manager), delivery,
		open_for(config, records, delivery->record_count));
	free(records);
}

void publisher_send(const struct publisher *publisher, const struct store_queue *request)
{
	for (size_t i = 0; i < request->deliveries.count; i++) {
		if (request->deliveries.items[i].state !=
			DELIVERY_QUEUED) /* another delivery has it */
			continue;
		publisher_remember(publisher, &request->deliveries.items[i]);
		delivery_manager_add(publisher->delivery_manager, &request->deliveries.items[i]);
	}
}
