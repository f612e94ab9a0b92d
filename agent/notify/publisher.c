/*
 * A delivery's key is a hash of receiver, destination and content.
 */
#include "agent/notify/publisher.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/log.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/group.h"
#include "agent/decide/incident.h"
#include "agent/notify/announce.h"
#include "agent/notify/environments.h"
#include "notifiers/body.h"
#include "notifiers/notifier.h"
#include "notifiers/text.h"

/* The size of a change from zero, which has none; as in load_incident_messages of the store. */
#define LARGEST 1e308

/* Changes that a retraction names; characters. */
enum { NAMED_MOST = 5, COMMIT_MOST = 100, VERDICT_MOST = 300 };

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

/* Whether the message that is continued is edited, as its thread is easily overlooked. */
static bool amends_first(const struct message *message, const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);

	return message->thread && message->more_of && notifier->brief && notifier->amends &&
	       notifier->amends(receiver->options);
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
	written = notifier_find(to->receiver->notifier->name)
			  ->render(&keyed, to->receiver->options, to->destination, &payload, error);
	if (written) {
		out->items = arena_grow(arena, out->items, out->count, sizeof *out->items);
		out->items[out->count++] = (struct delivery){.key = keyed.key,
			.receiver = arena_strdup(arena, to->receiver->name),
			.kind = to->receiver->notifier->name,
			.destination = arena_strdup(arena, to->destination),
			.payload = arena_strndup(arena, payload.data, payload.length),
			.thread = arena_strdup(arena, message->thread),
			.now = publisher->now,
			.amends = amends_first(message, to->receiver),
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
	       router_withholds(publisher->router, record, 1U << kind, receiver);
}

/* Whether its messages are edited instead: another message about the same change would be a second
 * alert. */
static bool amends_messages(const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_find(receiver->notifier->name);

	return !notifier->brief && notifier->amends && notifier->amends(receiver->options);
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

/* The content of a group's message; fill adds its records. */
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

		content.ids[i] = record->item.id;
		content.hash = hash_add(content.hash, &record->item.id, sizeof record->item.id);
		content.hash =
			hash_add(content.hash, &record->first_seen, sizeof record->first_seen);
		if (renewals > 0)
			content.hash = hash_add(content.hash, &renewals, sizeof renewals);
	}
	return content;
}

/* Called after rendering, which needs as much memory again. */
static void fill(struct content *content, const struct group_of *group)
{
	for (size_t i = 0; i < group->count; i++)
		content->records[i] = *group->items[i];
}

/* The number of an event's changes that its message does not list, as they were announced
 * before. */
static size_t early_of(const struct publisher *publisher, const struct recipient *to,
	const struct environment_event *event, const struct group_of *group)
{
	size_t most = event && event->hit > group->count ? event->hit - group->count : 0;
	size_t count = most == 0 ? 0
				 : incidents_early(publisher->incidents, event->id,
					   to->receiver->name, to->destination);

	return count < most ? count : most;
}

/* Sets the accepted size of a change that is announced because it has outgrown it. */
static void set_accepted(struct change_record *record)
{
	const struct triage *triage = &record->triage;

	if (triage->renewals > 0 && !isnan(triage->size) &&
		triage_outgrown(triage, &record->item.change))
		record->item.accepted = triage->size;
}

/* A group, and the router that decides its members. */
struct group_search {
	struct router *router;
	const struct group_of *group;
	struct arena *arena; /* of its keys */
};

/* Whether a change that a message showed would be in the group. */
static bool is_of_group(void *context, const struct change_record *record)
{
	const struct group_search *search = context;

	return strcmp(router_group(search->router, record, &search->group->names, search->arena),
		       search->group->key) == 0;
}

/* Whether the changes are worse than all that the thread shows of its incident. */
static bool is_worse(const struct publisher *publisher, const struct incident_message *found,
	const struct announcement *items, size_t count)
{
	struct incident_worst told = incidents_worst(publisher->incidents, found), more = {0};

	for (size_t i = 0; i < count; i++) {
		double size = fabs(items[i].change.size);
		double *worst =
			announcement_verdict(&items[i]) > 0 ? &more.regression : &more.other;

		if (!(size <= *worst)) /* one from zero has none */
			*worst = isnan(size) ? LARGEST : size;
	}
	return incident_is_worse(&told, &more);
}

/* Whether it has an incident that was not announced there: in the thread of another one, it would
 * be overlooked. */
static bool has_untold(
	const struct publisher *publisher, const struct recipient *to, const struct group_of *group)
{
	for (size_t i = 0; !group->key && i < group->count; i++)
		if (!incidents_message(publisher->incidents, to->receiver->name, to->destination,
			    &group->items[i], 1, NULL))
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
	struct group_search search = {publisher->router, group, arena};
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
				: incidents_message(publisher->incidents, receiver->name,
					  to.destination, group->items, group->count,
					  group->key ? &(struct continued){is_of_group, &search}
						     : NULL);

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
	fill(&content, group);
	return written;
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
			keys[i] = router_group(publisher->router, records[i], &group_by[i], arena);
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
	struct strings destinations;
	struct error error;

	if (!wants(receiver, MESSAGE_NOTICE) ||
		!destinations_of(publisher, receiver, &destinations, &error))
		return;
	for (size_t i = 0; i < destinations.count; i++) {
		struct recipient to = {receiver, destinations.items[i]};
		const struct incident_message *told = incidents_message(
			publisher->incidents, receiver->name, to.destination, &of_event, 1, NULL);

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

/* The thread of the message that announced a change; NULL if the message was pruned. */
static const char *announced_by(const struct delivery *sent)
{
	return sent->thread ? sent->thread : *sent->key ? sent->key : NULL;
}

static bool belong_together(const struct delivery *a, const struct delivery *b)
{
	return strcmp(a->receiver, b->receiver) == 0 &&
	       strcmp(a->destination, b->destination) == 0 &&
	       order_same(announced_by(a), announced_by(b));
}

/* One message for all recoveries that belong to the thread of the first. */
static void add_recoveries(
	const struct publisher *publisher, const struct delivery *sent, size_t count)
{
	struct recipient to = {receiver_of(publisher, sent->receiver), sent->destination};
	struct announcement *items = memory_new(count, sizeof *items);
	struct message message = {
		.kind = MESSAGE_RECOVERED, .items = items, .thread = announced_by(sent)};
	uint64_t hash = HASH_START;
	int64_t event = sent->records[0].environment_event;

	for (size_t i = 0; i < count; i++) {
		const struct change_record *record = &sent[i].records[0];

		if (record->held || !belong_together(&sent[i], sent) ||
			is_withheld(publisher, record, MESSAGE_RECOVERED, to.receiver))
			continue;
		if (record->environment_event != event)
			event = 0;
		items[message.count] = record->item;
		announce_page(
			publisher->queue->call.arena, publisher->config, &items[message.count++]);
		hash = hash_add(hash, &record->item.id, sizeof record->item.id);
		hash = hash_add(hash, &record->item.over.time, sizeof record->item.over.time);
	}
	message.environment = environments_find(&publisher->events, event);
	if (message.count > 0 && wants(to.receiver, MESSAGE_RECOVERED))
		(void)add_delivery(publisher, &to, &message, &(struct content){.hash = hash},
			&publisher->lost[to.receiver - publisher->config->receivers]);
	free(items);
}

static bool is_first_recovery(const struct delivery_rows *messages, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!messages->items[i].records[0].held &&
			belong_together(&messages->items[i], &messages->items[index]))
			return false;
	return !messages->items[index].records[0].held;
}

void publisher_recoveries(const struct publisher *publisher, const struct delivery_rows *messages)
{
	for (size_t i = 0; i < messages->count; i++)
		if (is_first_recovery(messages, i))
			add_recoveries(publisher, &messages->items[i], messages->count - i);
}

/* Retractions, with the key of the thread that gets each; NULL: none. */
struct retracted {
	const struct said *items;
	const char **threads;
	size_t count;
};

/* A message that continues another belongs to the same thread. */
static const char *thread_of(const struct delivery *sent)
{
	if (sent->thread && sent->thread_receipt)
		return sent->thread;
	return sent->receipt ? sent->key : NULL;
}

/* What is said of announced changes: a sentence that names the first, and their list. */
struct sentence {
	struct buf text;
	struct announced_change *changes;
	size_t count;
};

static void add_change(const struct publisher *publisher, struct sentence *sentence,
	const struct change_record *record)
{
	struct arena *arena = publisher->queue->call.arena;

	sentence->changes =
		arena_grow(arena, sentence->changes, sentence->count, sizeof *sentence->changes);
	sentence->changes[sentence->count++] =
		announce_now(arena, publisher->config, record, publisher->now);
}

/* Whether the last change is to be named, after what is written here. */
static bool names_last(struct sentence *sentence)
{
	if (sentence->count > 1 && sentence->count <= NAMED_MOST)
		buf_text(&sentence->text, "; ");
	return sentence->count <= NAMED_MOST;
}

/* Adds the message, and frees the sentence. */
static void say(const struct publisher *publisher, const struct recipient *to,
	enum message_kind kind, const char *thread, struct sentence *sentence, uint64_t hash)
{
	struct notice notice = {.subject = sentence->changes[0].item.test,
		.time = publisher->now,
		.recovered = kind == MESSAGE_WITHDRAWN};
	struct message message =
		body_of_announced(publisher->queue->call.arena, sentence->changes, sentence->count);

	if (kind != MESSAGE_WITHDRAWN && sentence->count > NAMED_MOST)
		buf_printf(&sentence->text, "; and %zu more", sentence->count - NAMED_MOST);
	notice.text = sentence->text.data;
	message.kind = kind;
	message.notice = &notice;
	message.thread = thread;
	hash = hash_add(hash, sentence->text.data, sentence->text.length);
	hash = hash_add(hash, thread ? thread : "", strlen(thread ? thread : ""));
	add_reply(publisher, to, &message, hash);
	buf_free(&sentence->text);
}

static bool same_thread(const struct retracted *retracted, size_t a, size_t b)
{
	return order_same(retracted->threads[a], retracted->threads[b]);
}

static void name_change(const struct announcement *item, struct buf *out)
{
	buf_printf(out, "%s ", item->metric);
	text_percent(out, &item->change);
	buf_text(out, " of ");
	text_utc.time(out, item->time, TEXT_MINUTE);
}

static bool is_withdrawn(const struct said *retraction)
{
	return retraction->message.records[0].state == CHANGE_WITHDRAWN;
}

/* "p99 +24% of ...: c40 .. c41, deployed 2026-07-02 07:48" */
static void write_suspects(const struct announcement *item, struct buf *out)
{
	const char *before, *after;
	struct buf note = {0};

	name_change(item, out);
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

/* One sentence about all changes that the thread announced. */
static void write_some(
	const struct retracted *retracted, size_t first, bool withdrawn, struct buf *out)
{
	const char *head = withdrawn ? "no longer found: " : "corrected suspects: ";
	size_t count = 0;

	for (size_t i = first; i < retracted->count; i++) {
		const struct said *at = &retracted->items[i];

		if (!same_thread(retracted, first, i) || is_withdrawn(at) != withdrawn)
			continue;
		if (count == 0 && out->length > 0)
			buf_text(out, ". ");
		if (count < NAMED_MOST) {
			buf_text(out, count == 0 ? head : "; ");
			(withdrawn ? name_change : write_suspects)(
				&at->message.records[0].item, out);
		}
		count++;
	}
	if (count > NAMED_MOST)
		buf_printf(out, "; and %zu more", count - NAMED_MOST);
}

static bool is_first(const struct retracted *retracted, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same_thread(retracted, i, index))
			return false;
	return retracted->threads[index] != NULL;
}

static void add_retraction(
	const struct publisher *publisher, const struct retracted *retracted, size_t index)
{
	const struct delivery *sent = &retracted->items[index].message;
	const char *thread = retracted->threads[index];
	struct recipient to = {receiver_of(publisher, sent->receiver), sent->destination};
	struct sentence sentence = {0};

	write_some(retracted, index, true, &sentence.text);
	write_some(retracted, index, false, &sentence.text);
	for (size_t i = index; i < retracted->count; i++)
		if (same_thread(retracted, index, i))
			add_change(publisher, &sentence, &retracted->items[i].message.records[0]);
	say(publisher, &to, MESSAGE_WITHDRAWN, thread, &sentence,
		hash_add(HASH_START, &publisher->now, sizeof publisher->now));
}

/* The key of the thread that gets the retraction; NULL: none. */
static const char *retracted_in(const struct publisher *publisher, const struct said *at)
{
	const struct receiver *receiver = receiver_of(publisher, at->message.receiver);
	const char *thread = thread_of(&at->message);

	if ((!publisher->config->agent.announce_withdrawn && is_withdrawn(at)) ||
		is_withheld(publisher, &at->message.records[0], MESSAGE_WITHDRAWN, receiver))
		return NULL;
	if (wants_all(receiver, MESSAGE_WITHDRAWN))
		return thread ? thread : announced_by(&at->message);
	return wants(receiver, MESSAGE_WITHDRAWN) ? thread : NULL;
}

void publisher_retractions(const struct publisher *publisher, const struct said_rows *retractions)
{
	struct retracted retracted = {.items = retractions->items,
		.threads = arena_array(publisher->queue->call.arena, retractions->count,
			sizeof *retracted.threads),
		.count = retractions->count};

	for (size_t i = 0; i < retracted.count; i++)
		retracted.threads[i] = retracted_in(publisher, &retracted.items[i]);
	for (size_t i = 0; i < retracted.count; i++)
		if (is_first(&retracted, i))
			add_retraction(publisher, &retracted, i);
}

/* Whether the update is reported; a change that is pending again, over or accepted needs none. */
static bool is_reported(
	const struct publisher *publisher, const struct said *at, enum said_kind what)
{
	const struct receiver *receiver = receiver_of(publisher, at->message.receiver);
	const struct change_record *record = &at->message.records[0];
	enum triage_state triage = triage_at(&record->triage, publisher->now);
	bool stands = change_stands(record->state);

	if ((at->what & what) == 0 ||
		is_withheld(publisher, record,
			what == SAID_TRIAGED ? MESSAGE_TRIAGED : MESSAGE_UPDATED, receiver))
		return false;
	if (what == SAID_TRIAGED)
		return wants(receiver, MESSAGE_TRIAGED);
	if (what == SAID_CULPRIT)
		return record->item.culprit && record->state != CHANGE_WITHDRAWN &&
		       !triage_is_accepted(triage) && wants(receiver, MESSAGE_UPDATED) &&
		       !amends_messages(receiver);
	return stands && record->news != NOTIFY_PENDING && !triage_is_accepted(triage) &&
	       wants_all(receiver, MESSAGE_UPDATED) && !amends_messages(receiver);
}

static void write_update(
	const struct announced_change *change, enum said_kind what, struct buf *out)
{
	if (what == SAID_TRIAGED) {
		text_triage(out, &change->triage);
		buf_text(out, ": ");
	}
	if (what == SAID_CULPRIT)
		buf_text(out, "bisected: ");
	name_change(&change->item, out);
	if (what == SAID_CULPRIT) {
		buf_text(out, ": ");
		buf_clean(out, change->item.culprit->verdict, VERDICT_MOST);
	}
}

/* A bisection's verdict is announced once only. */
static uint64_t hash_update(uint64_t hash, const struct change_record *record, enum said_kind what)
{
	hash = hash_add(hash, &record->item.id, sizeof record->item.id);
	if (what == SAID_CULPRIT)
		return hash_add(hash, &record->item.culprit->bisection,
			sizeof record->item.culprit->bisection);
	hash = hash_add(hash, &record->updated, sizeof record->updated);
	return hash_add(hash, &record->triage.version, sizeof record->triage.version);
}

/* One message for all such updates in the thread of the first. */
static void add_update(const struct publisher *publisher, const struct said *said, size_t count,
	enum said_kind what)
{
	const struct delivery *sent = &said->message;
	struct recipient to = {receiver_of(publisher, sent->receiver), sent->destination};
	struct sentence sentence = {0};
	uint64_t hash = hash_add(HASH_START, &what, sizeof what);

	buf_text(&sentence.text, what == SAID_UPDATED ? "updated: " : "");
	for (size_t i = 0; i < count; i++) {
		const struct change_record *record = &said[i].message.records[0];

		if (!is_reported(publisher, &said[i], what) ||
			!belong_together(&said[i].message, sent))
			continue;
		hash = hash_update(hash, record, what);
		add_change(publisher, &sentence, record);
		if (names_last(&sentence))
			write_update(&sentence.changes[sentence.count - 1], what, &sentence.text);
	}
	say(publisher, &to, what == SAID_TRIAGED ? MESSAGE_TRIAGED : MESSAGE_UPDATED,
		announced_by(sent), &sentence, hash);
}

static bool is_first_update(const struct publisher *publisher, const struct said_rows *rows,
	size_t index, enum said_kind what)
{
	for (size_t i = 0; i < index; i++)
		if (is_reported(publisher, &rows->items[i], what) &&
			belong_together(&rows->items[i].message, &rows->items[index].message))
			return false;
	return is_reported(publisher, &rows->items[index], what);
}

void publisher_updates(const struct publisher *publisher, const struct said_rows *rows)
{
	static const enum said_kind kinds[] = {SAID_UPDATED, SAID_TRIAGED, SAID_CULPRIT};

	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
		for (size_t i = 0; i < rows->count; i++)
			if (is_first_update(publisher, rows, i, kinds[k]))
				add_update(publisher, &rows->items[i], rows->count - i, kinds[k]);
}

void publisher_reminder(const struct publisher *publisher, const struct delivery *sent,
	const struct change_record *const *records, size_t count)
{
	struct recipient to = {receiver_of(publisher, sent->receiver), sent->destination};
	struct sentence sentence = {0};
	char since[WHEN_TEXT];

	if (!wants(to.receiver, MESSAGE_REMINDER))
		return;
	buf_printf(&sentence.text,
		"not triaged for %s: ", when_format_rough(publisher->now - sent->now, since));
	for (size_t i = 0; i < count; i++) {
		if (is_withheld(publisher, records[i], MESSAGE_REMINDER, to.receiver))
			continue;
		add_change(publisher, &sentence, records[i]);
		if (names_last(&sentence))
			name_change(&records[i]->item, &sentence.text);
	}
	if (sentence.count > 0)
		say(publisher, &to, MESSAGE_REMINDER, announced_by(sent), &sentence,
			hash_add(HASH_START, &publisher->now, sizeof publisher->now));
	else
		buf_free(&sentence.text);
}
