/*
 * A delivery's key is a hash of receiver, destination and content.
 */
#include "agent/notify/publisher.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/hash.h"
#include "agent/base/log.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/group.h"
#include "agent/decide/incident.h"
#include "agent/notify/environments.h"
#include "notifiers/body.h"
#include "notifiers/notifier.h"
#include "notifiers/text.h"

/* The size of a change from zero, which has none; as in load_incident_messages of the store. */
#define LARGEST 1e308

/* Changes that a reply names; characters. */
enum { NAMED_MOST = 5, COMMIT_MOST = 100, VERDICT_MOST = 300 };

/* ms: what joins an incident waits no longer for others. */
#define GATHERED_MOST INT64_C(86400000)

/* The destination of a message. */
struct recipient {
	const struct receiver *receiver;
	const char *destination;
};

/* The changes of a message, the same for all recipients. */
struct content {
	uint64_t hash;
	struct change_record *records;
	int64_t *ids; /* of the records */
	size_t count;
};

static const char *key_of(struct arena *arena, const struct recipient *to, uint64_t content)
{
	uint64_t sum = HASH_START;

	sum = hash_add(sum, to->receiver->name, strlen(to->receiver->name) + 1);
	sum = hash_add(sum, to->destination, strlen(to->destination) + 1);
	sum = hash_add(sum, &content, sizeof content);
	return arena_printf(arena, "%016" PRIx64, sum);
}

/* Whether sent messages are edited; `brief`: of such receivers (see there), else of the others. */
static bool amends(const struct receiver *receiver, bool brief)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);

	return notifier->brief == brief && notifier->amends && notifier->amends(receiver->options);
}

/* Renders the message and adds a delivery with it; the message's own key is ignored. Returns false
 * with an error, and adds nothing, if it cannot be rendered. */
static bool add_delivery(const struct publisher *publisher, const struct recipient *to,
	const struct message *message, const struct content *content, struct error *error)
{
	struct delivery_rows *out = &publisher->queue->deliveries;
	struct arena *arena = publisher->queue->call.arena;
	struct message keyed = *message;
	struct buf payload = {0};
	bool written;

	keyed.key = key_of(arena, to, content->hash);
	written = notifier_render(notifier_find(to->receiver->notifier->name), &keyed,
		to->receiver->options, to->destination, &payload, error);
	if (written) {
		out->items = arena_grow(arena, out->items, out->count, sizeof *out->items);
		out->items[out->count++] = (struct delivery){.key = keyed.key,
			.receiver = arena_strdup(arena, to->receiver->name),
			.kind = to->receiver->notifier->name,
			.destination = arena_strdup(arena, to->destination),
			.payload = arena_strndup(arena, payload.data, payload.length),
			.thread = arena_strdup(arena, message->thread),
			.now = publisher->now,
			/* The message that is continued is edited, as its thread is easily
			 * overlooked. */
			.amends = message->thread && message->more_of && amends(to->receiver, true),
			.changes = content->ids,
			.change_count = content->count,
			.records = content->records,
			.record_count = content->count};
	}
	buf_free(&payload);
	return written;
}

/* The same for a reply. A failure is only logged: the message it would answer stands. */
static void add_reply(const struct publisher *publisher, const struct recipient *to,
	const struct message *message, uint64_t hash)
{
	struct error error;

	if (!add_delivery(publisher, to, message, &(struct content){.hash = hash}, &error))
		log_event(LEVEL_WARN, "cannot render message",
			LOG_TEXT("receiver", to->receiver->name), LOG_TEXT("problem", error.text));
}

/* Whether the receiver wants messages of this kind. */
static bool wants(const struct receiver *receiver, enum message_kind kind)
{
	return receiver && (receiver->events >> kind & 1) != 0;
}

/* Whether it wants retractions outside of threads and updates of moved or grown changes, too; see
 * `brief`. */
static bool wants_all(const struct receiver *receiver, enum message_kind kind)
{
	return wants(receiver, kind) &&
	       (receiver->chose_events || !notifier_find(receiver->notifier->name)->brief);
}

/* Whether routes send it the change, but not messages of this kind. */
static bool is_withheld(const struct publisher *publisher, const struct change_record *record,
	enum message_kind kind, const struct receiver *receiver)
{
	return publisher->router && receiver &&
	       route_withholds(publisher->router, record, 1U << kind, receiver);
}

static bool destinations_of(const struct publisher *publisher, const struct receiver *receiver,
	struct strings *out, struct error *error)
{
	return notifier_destinations(notifier_find(receiver->notifier->name), receiver->options,
		publisher->queue->call.arena, out, error);
}

static const struct receiver *receiver_of(const struct publisher *publisher, const char *name)
{
	const struct config *config = publisher->config;

	for (size_t i = 0; i < config->receiver_count; i++)
		if (strcmp(config->receivers[i].name, name) == 0)
			return &config->receivers[i];
	return NULL;
}

/* The content of a group's message. */
static struct content content_of(const struct publisher *publisher, const struct group_of *group)
{
	struct arena *arena = publisher->queue->call.arena;
	struct content content = {.hash = HASH_START,
		.records = arena_array(arena, group->count, sizeof *content.records),
		.ids = arena_array(arena, group->count, sizeof *content.ids),
		.count = group->count};

	for (size_t i = 0; i < group->count; i++) {
		const struct change_record *record = group->items[i];
		int64_t renewals = record->triage.renewals;

		content.records[i] = *record;
		content.ids[i] = record->item.id;
		content.hash = hash_add(content.hash, &record->item.id, sizeof record->item.id);
		content.hash =
			hash_add(content.hash, &record->first_seen, sizeof record->first_seen);
		if (renewals > 0)
			content.hash = hash_add(content.hash, &renewals, sizeof renewals);
	}
	return content;
}

/* The number of an event's changes that its message does not list, as they were announced there
 * before the event was found. */
static size_t early_of(const struct publisher *publisher, const struct recipient *to,
	const struct environment_event *event, const struct group_of *group)
{
	const struct store_incidents *found = publisher->incidents;
	size_t most = event && event->hit > group->count ? event->hit - group->count : 0;

	for (size_t i = 0; i < found->event_count && most > 0; i++) {
		const struct event_told *told = &found->events[i];

		for (size_t j = 0; told->event == event->id && j < told->early_count; j++) {
			size_t count = (size_t)told->early[j].count;

			if (strcmp(told->early[j].receiver, to->receiver->name) == 0 &&
				strcmp(told->early[j].destination, to->destination) == 0)
				return count < most ? count : most;
		}
	}
	return 0;
}

/* Sets the accepted size of a change that is announced because it has outgrown it. */
static void set_accepted(struct change_record *record)
{
	const struct triage *triage = &record->triage;

	if (triage->renewals > 0 && !isnan(triage->size) &&
		triage_outgrown(triage, &record->item.change))
		record->item.accepted = triage->size;
}

/* The latest message of the recipient about one of the group's incidents, while that is open to
 * further changes; not a reply to another message. NULL: there is none, or a change of the group is
 * announced again as it has outgrown what was accepted. */
static const struct incident_message *find_message(
	const struct publisher *publisher, const struct recipient *to, const struct group_of *group)
{
	const struct incident_messages *messages = &publisher->incidents->messages;

	for (size_t i = 0; i < group->count; i++)
		if (group->items[i]->triage.renewals > 0)
			return NULL;
	for (size_t i = messages->count; i > 0; i--) {
		const struct incident_message *at = &messages->items[i - 1];
		size_t j = 0;

		while (j < group->count && group->items[j]->item.incident != at->incident)
			j++;
		if (j == group->count || at->message.thread ||
			strcmp(at->message.receiver, to->receiver->name) != 0 ||
			strcmp(at->message.destination, to->destination) != 0)
			continue;
		if (!group->key || strcmp(route_group(publisher->router, at->message.records,
						  &group->names, publisher->queue->call.arena),
					   group->key) == 0)
			return at;
	}
	return NULL;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* The worst of what the message, and those that continue it, tell of its incident; *last: when the
 * last of these was sent. */
static struct incident_worst told_of(
	const struct publisher *publisher, const struct incident_message *first, int64_t *last)
{
	const struct incident_messages *messages = &publisher->incidents->messages;
	struct incident_worst told = first->worst;

	*last = first->message.now;
	for (size_t i = 0; i < messages->count; i++) {
		const struct incident_message *at = &messages->items[i];

		if (at->incident != first->incident || !at->message.thread ||
			strcmp(at->message.thread, first->message.key) != 0)
			continue;
		told.regression = larger(told.regression, at->worst.regression);
		told.other = larger(told.other, at->worst.other);
		*last = at->message.now > *last ? at->message.now : *last;
	}
	return told;
}

static void add_to_worst(struct incident_worst *worst, const struct announcement *item)
{
	double size = isnan(item->change.size) ? LARGEST : fabs(item->change.size);
	double *of = announcement_verdict(item) > 0 ? &worst->regression : &worst->other;

	*of = larger(*of, size);
}

/* Whether the changes are worse than all that the thread shows of its incident. */
static bool is_worse(const struct publisher *publisher, const struct incident_message *first,
	const struct announcement *items, size_t count)
{
	int64_t last;
	struct incident_worst told = told_of(publisher, first, &last), more = {0};

	for (size_t i = 0; i < count; i++)
		add_to_worst(&more, &items[i]);
	return incident_is_worse(&told, &more);
}

/* Whether it has an incident that was not announced there: in the thread of another one, it would
 * be overlooked. */
static bool has_untold(
	const struct publisher *publisher, const struct recipient *to, const struct group_of *group)
{
	for (size_t i = 0; !group->key && i < group->count; i++)
		if (!find_message(publisher, to,
			    &(struct group_of){.items = &group->items[i], .count = 1}))
			return true;
	return false;
}

/* Adds the group's message for each destination, in the thread of a recent message that it belongs
 * to. */
static bool add_group(const struct publisher *publisher, const struct receiver *receiver,
	const struct strings *destinations, const struct group_of *group, unsigned kinds,
	struct error *error)
{
	struct arena *arena = publisher->queue->call.arena;
	struct announcement *items = memory_new(group->count, sizeof *items);
	struct content content = content_of(publisher, group);
	struct message message = {.items = items,
		.count = group->count,
		.environment = group->items[0]->summary
				       ? NULL
				       : environments_find(&publisher->events,
						 group->items[0]->environment_event),
		.summary = group->items[0]->summary,
		.first_look = group->first_look};
	bool written = true;

	for (size_t i = 0; i < group->count; i++) {
		struct change_record announced = *group->items[i];

		announce_links(arena, publisher->config, &announced);
		set_accepted(&announced);
		items[i] = announced.item;
	}
	for (size_t i = 0; i < destinations->count && written; i++) {
		struct recipient to = {receiver, destinations->items[i]};
		const struct incident_message *found =
			message.summary || has_untold(publisher, &to, group) ||
					!(kinds & receiver->events & 1u << MESSAGE_UPDATED)
				? NULL
				: find_message(publisher, &to, group);

		message.kind = found ? MESSAGE_UPDATED : MESSAGE_NEW;
		message.thread = found ? found->message.key : NULL;
		message.more_of = found ? &found->message.records[0].item : NULL;
		message.loud = found && is_worse(publisher, found, items, group->count);
		message.early = found ? 0 : early_of(publisher, &to, message.environment, group);
		if (!wants(receiver, message.kind) || (kinds & 1u << message.kind) == 0)
			continue; /* counts as announced */
		written = add_delivery(publisher, &to, &message, &content, error);
	}
	free(items);
	return written;
}

/* The receiver's message that the change would continue; NULL: it would open one. */
static const struct incident_message *joined_by(const struct publisher *publisher,
	const struct receiver *receiver, const struct strings *destinations,
	const struct change_record *record, const struct strings *group_by)
{
	struct group_of group = {.items = &record, .count = 1};
	const struct incident_message *found = NULL;

	if (record->summary)
		return NULL;
	if (group_by->count > 0 && record->environment_event == 0) {
		group.names = *group_by;
		group.key = route_group(
			publisher->router, record, group_by, publisher->queue->call.arena);
	}
	for (size_t i = 0; i < destinations->count && !found; i++)
		found = find_message(
			publisher, &(struct recipient){receiver, destinations->items[i]}, &group);
	return found;
}

/* Whether a recovery in the incident is told now. */
static bool is_ending(const struct publisher *publisher, int64_t incident)
{
	const struct due_rows *events = &publisher->queue->events;

	for (size_t i = 0; i < events->count; i++) {
		const struct due_event *due = &events->items[i];

		if (due->event.kind == EVENT_RECOVERED && due->event.due == 0 &&
			!due->event.reason && due->record->item.incident == incident)
			return true;
	}
	return false;
}

/* The decision about those of the changes that continue the message `first`. */
static struct decision gather(const struct publisher *publisher, const struct receiver *receiver,
	const struct incident_message *first, const struct incident_message *const *found,
	const struct change_record *const *records, size_t count)
{
	struct incident_joiners joiners = {.interval = GATHERED_MOST,
		.ends = wants(receiver, MESSAGE_RECOVERED) &&
			is_ending(publisher, first->incident)};

	joiners.told = told_of(publisher, first, &joiners.last);
	for (size_t i = 0; i < count; i++) {
		int64_t interval;

		if (found[i] != first)
			continue;
		interval = incidents_interval(publisher->config, records[i]);
		if (interval < joiners.interval)
			joiners.interval = interval;
		add_to_worst(&joiners.more, &records[i]->item);
	}
	return incident_gather(&joiners, publisher->now);
}

size_t publisher_due(const struct publisher *publisher, const struct receiver *receiver,
	const struct change_record **records, struct strings *group_by, size_t count,
	unsigned kinds, int64_t *until)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);
	struct arena *arena = publisher->queue->call.arena;
	const struct incident_message **found = arena_array(arena, count, sizeof(void *));
	struct decision *decisions = arena_array(arena, count, sizeof *decisions);
	struct strings destinations;
	struct error error;
	size_t due = 0;

	if (!notifier_gathers(notifier, receiver->options) ||
		!(kinds & receiver->events & 1u << MESSAGE_UPDATED) ||
		!destinations_of(publisher, receiver, &destinations, &error))
		return count;
	for (size_t i = 0; i < count; i++)
		found[i] = joined_by(publisher, receiver, &destinations, records[i], &group_by[i]);
	for (size_t i = 0; i < count; i++) {
		size_t same = 0;

		while (found[i] && found[same] != found[i])
			same++;
		if (found[i])
			decisions[i] = same < i ? decisions[same]
						: gather(publisher, receiver, found[i], found,
							  records, count);
	}
	for (size_t i = 0; i < count; i++) {
		const struct change_record *record = records[i];
		struct strings names = group_by[i];

		if (decisions[i].verdict == HOLD) {
			log_event(LEVEL_DEBUG, "change held", LOG_INT("id", record->item.id),
				LOG_TEXT("receiver", receiver->name),
				LOG_TEXT("reason", decisions[i].reason));
			if (*until == 0 || decisions[i].until < *until)
				*until = decisions[i].until;
			continue;
		}
		records[i] = records[due];
		group_by[i] = group_by[due];
		records[due] = record;
		group_by[due++] = names;
	}
	return due;
}

bool publisher_changes(const struct publisher *publisher, const struct receiver *receiver,
	const struct change_record **records, const struct strings *group_by, size_t count,
	unsigned kinds, struct error *error)
{
	struct arena *arena = publisher->queue->call.arena;
	size_t before = publisher->queue->deliveries.count, group_count;
	const char **keys = arena_array(arena, count, sizeof *keys);
	struct group_of *groups;
	struct strings destinations;

	if (!destinations_of(publisher, receiver, &destinations, error))
		return false;
	for (size_t i = 0; i < count; i++)
		if (group_by[i].count > 0)
			keys[i] = route_group(publisher->router, records[i], &group_by[i], arena);
	group_count = group_changes(arena, records, group_by, keys, count, &groups);
	for (size_t i = 0; i < group_count; i++)
		if (!add_group(publisher, receiver, &destinations, &groups[i], kinds, error)) {
			publisher->queue->deliveries.count = before;
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

bool publisher_message(const struct publisher *publisher, const struct receiver *receiver,
	const struct message *message, struct error *error)
{
	struct content content = {.hash = notice_hash(message->notice)};
	size_t before = publisher->queue->deliveries.count;
	struct strings destinations;

	if (!destinations_of(publisher, receiver, &destinations, error))
		return false;
	for (size_t i = 0; i < destinations.count; i++) {
		struct recipient to = {receiver, destinations.items[i]};

		if (!add_delivery(publisher, &to, message, &content, error)) {
			publisher->queue->deliveries.count = before;
			return false;
		}
	}
	return true;
}

static void add_followed(const struct publisher *publisher, const struct receiver *receiver,
	int64_t event, const struct notice *notice)
{
	const struct change_record *of_event = &(struct change_record){.item.incident = event};
	const struct group_of group = {.items = &of_event, .count = 1};
	struct strings destinations;
	struct error error;

	if (!wants(receiver, MESSAGE_NOTICE) ||
		!destinations_of(publisher, receiver, &destinations, &error))
		return;
	for (size_t i = 0; i < destinations.count; i++) {
		struct recipient to = {receiver, destinations.items[i]};
		const struct incident_message *told = find_message(publisher, &to, &group);

		if (told)
			add_reply(publisher, &to,
				&(struct message){.kind = MESSAGE_NOTICE,
					.notice = notice,
					.thread = told->message.key},
				notice_hash(notice));
	}
}

void publisher_followed(
	const struct publisher *publisher, const struct environment_event *event, const char *value)
{
	struct notice notice = {.subject = event->value, .time = publisher->now};
	struct buf text = {0};

	text_followed(&text, value);
	notice.text = text.data;
	for (size_t i = 0; i < publisher->config->receiver_count; i++)
		add_followed(publisher, &publisher->config->receivers[i], event->id, &notice);
	buf_free(&text);
}

/* A message that announced a change with an event, in whose thread that is reported. */
struct mention {
	const struct due_event *due;
	const struct delivery *message;
	const char *thread;
	bool done; /* or nothing is reported there */
};

/* The thread of the message that announced a change; NULL if the message was pruned. */
static const char *thread_of(const struct delivery *message)
{
	return message->thread ? message->thread : *message->key ? message->key : NULL;
}

/* Takes those that belong to the thread of the first that is left; returns their number. */
static size_t take_thread(struct mention *mentions, size_t count, const struct mention **out)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		struct mention *mention = &mentions[i];
		const struct delivery *message = mention->message;

		if (mention->done ||
			(found > 0 && (strcmp(message->receiver, out[0]->message->receiver) != 0 ||
					      strcmp(message->destination,
						      out[0]->message->destination) != 0 ||
					      !order_same(mention->thread, out[0]->thread))))
			continue;
		mention->done = true;
		out[found++] = mention;
	}
	return found;
}

/* One message for all recoveries of a thread. */
static void add_recoveries(
	const struct publisher *publisher, const struct mention *const *mentions, size_t count)
{
	const struct delivery *first = mentions[0]->message;
	struct arena *arena = publisher->queue->call.arena;
	struct recipient to = {receiver_of(publisher, first->receiver), first->destination};
	struct announcement *items = arena_array(arena, count, sizeof *items);
	struct message message = {.kind = MESSAGE_RECOVERED,
		.items = items,
		.count = count,
		.thread = mentions[0]->thread};
	uint64_t hash = HASH_START;
	int64_t event = mentions[0]->due->record->environment_event;

	for (size_t i = 0; i < count; i++) {
		const struct change_record *record = mentions[i]->due->record;

		if (record->environment_event != event)
			event = 0;
		items[i] = record->item;
		announce_page(arena, publisher->config, &items[i]);
		hash = hash_add(hash, &record->item.id, sizeof record->item.id);
		hash = hash_add(hash, &record->item.over.time, sizeof record->item.over.time);
	}
	message.environment = environments_find(&publisher->events, event);
	(void)add_delivery(publisher, &to, &message, &(struct content){.hash = hash},
		&publisher->lost[to.receiver - publisher->config->receivers]);
}

static void name_change(const struct announcement *item, struct buf *out)
{
	buf_printf(out, "%s ", item->metric);
	text_percent(out, &item->change);
	buf_text(out, " of ");
	text_utc.time(out, item->time, TEXT_MINUTE);
}

/* ": c40 .. c41, deployed 2026-07-02 07:48" */
static void write_suspects(const struct announcement *item, struct buf *out)
{
	const char *before, *after;
	struct buf note = {0};

	buf_text(out, ": ");
	announcement_range(item, &before, &after);
	text_suspects(&note, item, &text_utc);
	if (before) {
		buf_clean(out, before, COMMIT_MOST);
		buf_text(out, " .. ");
	}
	if (after)
		buf_clean(out, after, COMMIT_MOST);
	if (note.length > 0)
		buf_printf(out, "%s%s", after ? ", " : "", note.data);
	buf_free(&note);
}

/* "HEADp99 +24% of ...; p95 -3% of ...; and 3 more", a sentence; none of no changes. */
static void list_changes(struct buf *out, const char *head, const struct announced_change *changes,
	size_t count, enum message_kind kind, bool bisected)
{
	if (count > 0)
		buf_printf(out, "%s%s", out->length > 0 ? ". " : "", head);
	for (size_t i = 0; i < count && i < NAMED_MOST; i++) {
		const struct announced_change *change = &changes[i];

		if (i > 0)
			buf_text(out, "; ");
		if (kind == MESSAGE_TRIAGED) {
			text_triage(out, &change->triage);
			buf_text(out, ": ");
		}
		if (bisected)
			buf_text(out, "bisected: ");
		name_change(&change->item, out);
		if (kind == MESSAGE_WITHDRAWN && change->state != ANNOUNCED_WITHDRAWN)
			write_suspects(&change->item, out);
		if (bisected) {
			buf_text(out, ": ");
			buf_clean(out, change->item.culprit->verdict, VERDICT_MOST);
		}
	}
	if (count > NAMED_MOST)
		buf_printf(out, "; and %zu more", count - NAMED_MOST);
}

/* Adds a message about announced changes in a thread of the message's destination, and frees the
 * text. */
static void add_update(const struct publisher *publisher, const struct delivery *announced,
	const char *thread, enum message_kind kind, const struct announced_change *changes,
	size_t count, struct buf *text, uint64_t hash)
{
	struct recipient to = {receiver_of(publisher, announced->receiver), announced->destination};
	struct notice notice = {.subject = changes[0].item.test,
		.text = text->data,
		.time = publisher->now,
		.recovered = kind == MESSAGE_WITHDRAWN};
	struct message message = body_of_announced(publisher->queue->call.arena, changes, count);

	message.kind = kind;
	message.notice = &notice;
	message.thread = thread;
	hash = hash_add(hash, text->data, text->length);
	hash = hash_add(hash, thread ? thread : "", strlen(thread ? thread : ""));
	add_reply(publisher, &to, &message, hash);
	buf_free(text);
}

/* The kind of message that reports an event. */
static const enum message_kind report_kinds[EVENT_KINDS] = {[EVENT_WITHDRAWN] = MESSAGE_WITHDRAWN,
	[EVENT_CORRECTED] = MESSAGE_WITHDRAWN,
	[EVENT_MOVED] = MESSAGE_UPDATED,
	[EVENT_GROWN] = MESSAGE_UPDATED,
	[EVENT_RETURNED] = MESSAGE_UPDATED,
	[EVENT_BISECTION_ENDED] = MESSAGE_UPDATED,
	[EVENT_TRIAGED] = MESSAGE_TRIAGED,
	[EVENT_REOPENED] = MESSAGE_TRIAGED,
	[EVENT_RECOVERED] = MESSAGE_RECOVERED};

/* Why an event is not reported although it was to be; NULL: it is. Of several of the same kind the
 * last one counts. */
static const char *obsolete(
	const struct publisher *publisher, const struct due_rows *rows, size_t index)
{
	const struct due_event *due = &rows->items[index];
	const struct change_record *record = due->record;
	enum event_kind kind = due->event.kind;
	bool withdrawn = record && record->state == CHANGE_WITHDRAWN;

	if (!record)
		return "the change is gone";
	for (size_t i = index + 1; i < rows->count; i++) {
		enum event_kind later = rows->items[i].event.kind;

		if (rows->items[i].record == record && report_kinds[later] == report_kinds[kind] &&
			(later == EVENT_BISECTION_ENDED) == (kind == EVENT_BISECTION_ENDED))
			return "a later event covers it";
	}
	if (kind == EVENT_RECOVERED)
		return record->state == CHANGE_RECOVERED ? NULL : "the change is not over any more";
	if (kind == EVENT_WITHDRAWN && !withdrawn)
		return "the change was found again";
	if (report_kinds[kind] == MESSAGE_WITHDRAWN && withdrawn &&
		!publisher->config->agent.announce_withdrawn)
		return "withdrawn changes are not announced";
	if (report_kinds[kind] != MESSAGE_UPDATED)
		return NULL;
	if (triage_is_accepted(triage_at(&record->triage, publisher->now)))
		return "the change was accepted";
	if (kind == EVENT_BISECTION_ENDED)
		return withdrawn || !record->item.culprit ? "the change was withdrawn" : NULL;
	if (record->news == NOTIFY_PENDING && record->triage.renewals > 0)
		return "the change is announced again";
	return change_stands(record->state) ? NULL : "the change does not stand any more";
}

/* Whether the change is announced to the receiver again, rather than to others later. */
static bool is_announced_anew(const struct publisher *publisher, const struct change_record *record,
	const struct receiver *receiver)
{
	const struct record_rows *rows = &publisher->pending->records;

	for (size_t i = 0; i < rows->count; i++) {
		const struct strings *told = &rows->items[i].told;

		if (rows->items[i].item.id != record->item.id)
			continue;
		for (size_t j = 0; j < told->count; j++)
			if (strcmp(told->items[j], receiver->name) == 0)
				return false;
	}
	return record->news == NOTIFY_PENDING;
}

/* Whether the receiver of the message gets a report of the event; one that edits its messages gets
 * none of moved changes: another message about the same change would be a second alert. Retractions
 * go to threads, unless the receiver asked for them. */
static bool is_reported(const struct publisher *publisher, const struct due_event *due,
	const struct delivery *message)
{
	const struct receiver *receiver = receiver_of(publisher, message->receiver);
	enum message_kind kind = report_kinds[due->event.kind];

	if (!wants(receiver, kind) || is_withheld(publisher, due->record, kind, receiver))
		return false;
	if (kind == MESSAGE_WITHDRAWN)
		return wants_all(receiver, kind) ||
		       notifier_threads(notifier_find(receiver->notifier->name), receiver->options);
	if (kind != MESSAGE_UPDATED)
		return true;
	return !amends(receiver, false) &&
	       (due->event.kind == EVENT_BISECTION_ENDED ||
		       (wants_all(receiver, MESSAGE_UPDATED) &&
			       !is_announced_anew(publisher, due->record, receiver)));
}

/* One message for all updates of a thread; what was withdrawn comes first. */
static void add_updates(const struct publisher *publisher, const struct mention *const *mentions,
	size_t count, enum message_kind kind, bool bisected)
{
	struct arena *arena = publisher->queue->call.arena;
	struct announced_change *changes = arena_array(arena, count, sizeof *changes);
	uint64_t hash = hash_add(HASH_START, &kind, sizeof kind);
	size_t added = 0, withdrawn = 0;
	struct buf text = {0};

	for (int rest = 0; rest < 2; rest++)
		for (size_t i = 0; i < count; i++) {
			const struct due_event *due = mentions[i]->due;

			if ((due->record->state != CHANGE_WITHDRAWN) != rest)
				continue;
			changes[added++] =
				announce_now(arena, publisher->config, due->record, publisher->now);
			withdrawn += !rest;
			hash = hash_add(hash, &due->event.id, sizeof due->event.id);
		}
	if (kind == MESSAGE_WITHDRAWN) {
		list_changes(&text, "no longer found: ", changes, withdrawn, kind, false);
		list_changes(&text, "corrected suspects: ", changes + withdrawn, count - withdrawn,
			kind, false);
	} else {
		list_changes(&text, kind == MESSAGE_UPDATED && !bisected ? "updated: " : "",
			changes, count, kind, bisected);
	}
	add_update(publisher, mentions[0]->message, mentions[0]->thread, kind, changes, count,
		&text, hash);
}

/* Reports the events that messages of this kind are about. */
static void add_reports(const struct publisher *publisher, struct due_rows *rows,
	enum message_kind kind, bool bisected)
{
	struct arena *arena = publisher->queue->call.arena;
	struct mention *mentions = NULL;
	const struct mention **thread;
	size_t most = 0, count;

	for (size_t i = 0; i < rows->count; i++) {
		struct due_event *due = &rows->items[i];
		size_t before = most;

		if (report_kinds[due->event.kind] != kind || due->event.due != 0 ||
			due->event.reason || (due->event.kind == EVENT_BISECTION_ENDED) != bisected)
			continue;
		for (size_t j = 0; j < due->messages.count; j++) {
			const struct delivery *message = &due->messages.items[j];

			if (!is_reported(publisher, due, message))
				continue;
			mentions = arena_grow(arena, mentions, most, sizeof *mentions);
			mentions[most++] = (struct mention){
				.due = due, .message = message, .thread = thread_of(message)};
		}
		if (most == before)
			due->event.reason = "no receiver gets it";
	}
	thread = arena_array(arena, most, sizeof(void *));
	while ((count = take_thread(mentions, most, thread)) > 0)
		if (kind == MESSAGE_RECOVERED)
			add_recoveries(publisher, thread, count);
		else
			add_updates(publisher, thread, count, kind, bisected);
}

void publisher_replies(const struct publisher *publisher, struct due_rows *events)
{
	for (size_t i = 0; i < events->count; i++)
		if (events->items[i].event.due == 0)
			events->items[i].event.reason = obsolete(publisher, events, i);
	add_reports(publisher, events, MESSAGE_WITHDRAWN, false);
	add_reports(publisher, events, MESSAGE_UPDATED, false);
	add_reports(publisher, events, MESSAGE_TRIAGED, false);
	add_reports(publisher, events, MESSAGE_UPDATED, true);
	add_reports(publisher, events, MESSAGE_RECOVERED, false);
}

void publisher_reminder(const struct publisher *publisher, const struct delivery *sent,
	const struct change_record *const *records, size_t count)
{
	const struct receiver *receiver = receiver_of(publisher, sent->receiver);
	struct arena *arena = publisher->queue->call.arena;
	struct announced_change *changes = arena_array(arena, count, sizeof *changes);
	size_t reminded = 0;
	struct buf text = {0};
	char since[WHEN_TEXT];

	for (size_t i = 0; i < count; i++)
		if (!is_withheld(publisher, records[i], MESSAGE_REMINDER, receiver))
			changes[reminded++] =
				announce_now(arena, publisher->config, records[i], publisher->now);
	if (reminded == 0 || !wants(receiver, MESSAGE_REMINDER))
		return;
	list_changes(&text,
		arena_printf(arena, "not triaged for %s: ",
			when_format_rough(publisher->now - sent->now, since)),
		changes, reminded, MESSAGE_REMINDER, false);
	add_update(publisher, sent, thread_of(sent), MESSAGE_REMINDER, changes, reminded, &text,
		hash_add(HASH_START, &publisher->now, sizeof publisher->now));
}
