/*
 * Asks the store for the messages that announced the changes, and queues one reply for each thread.
 */
#include "agent/notify/retraction.h"

#include <string.h>

#include "agent/core/hash.h"
#include "agent/notify/deliveries.h"
#include "notifiers/text.h"

enum { NAMED_MOST = 5, COMMIT_MOST = 100 }; /* changes that a reply names; characters */

static void queued(struct store_queue *request)
{
	if (!request->call.failed)
		publisher_send(request->call.context, request);
	store_call_free(&request->call);
}

/* The messages that announced the withdrawn changes. */
struct told {
	struct publisher *publisher;
	const struct delivery *deliveries; /* each with one record */
	const char **threads;              /* keys of their threads; NULL: no receipt is known */
	size_t count;
};

/* A message that continues another belongs to the same thread. */
static const char *thread_of(const struct publisher *publisher, const struct delivery *delivery)
{
	const struct threads *threads = delivery_manager_threads(publisher->delivery_manager);

	if (delivery->thread && threads_receipt(threads, delivery->thread))
		return delivery->thread;
	return threads_receipt(threads, delivery->key) ? delivery->key : NULL;
}

static bool same_thread(const struct told *told, size_t a, size_t b)
{
	return told->threads[a] && told->threads[b] &&
	       strcmp(told->threads[a], told->threads[b]) == 0;
}

static void name_change(const struct announcement *item, struct buf *out)
{
	buf_printf(out, "%s ", item->metric);
	text_percent(out, &item->change);
	buf_text(out, " of ");
	text_utc.time(out, item->time, false);
}

static bool is_withdrawn(const struct told *told, size_t index)
{
	return told->deliveries[index].records[0].state == CHANGE_WITHDRAWN;
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
		text_clean(out, before, COMMIT_MOST);
		buf_text(out, " .. ");
	}
	if (after)
		text_clean(out, after, COMMIT_MOST);
	if (note.length > 0)
		buf_printf(out, "%s%s", after ? ", " : "", note.data);
	buf_free(&note);
}

/* One sentence about all changes that the thread announced. */
static void write_some(const struct told *told, size_t first, bool withdrawn, struct buf *out)
{
	const char *head = withdrawn ? "no longer found: " : "corrected suspects: ";
	size_t count = 0;

	for (size_t i = first; i < told->count; i++) {
		const struct announcement *item = &told->deliveries[i].records[0].item;

		if (!same_thread(told, first, i) || is_withdrawn(told, i) != withdrawn)
			continue;
		if (count == 0 && out->length > 0)
			buf_text(out, ". ");
		if (count < NAMED_MOST) {
			buf_text(out, count == 0 ? head : "; ");
			(withdrawn ? name_change : write_suspects)(item, out);
		}
		count++;
	}
	if (count > NAMED_MOST)
		buf_printf(out, "; and %zu more", count - NAMED_MOST);
}

static void write_text(const struct told *told, size_t first, struct buf *out)
{
	write_some(told, first, true, out);
	write_some(told, first, false, out);
}

static bool is_first(const struct told *told, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same_thread(told, i, index))
			return false;
	return told->threads[index] != NULL;
}

static void add_answer(const struct told *told, size_t index, struct store_queue *request)
{
	const struct delivery *delivery = &told->deliveries[index];
	const char *thread = told->threads[index];
	int64_t now = agent_now(told->publisher->agent);
	struct recipient to = {
		agent_receiver(told->publisher->agent, delivery->receiver), delivery->destination};
	struct delivery_content content = {.hash = HASH_START, .now = now};
	struct buf text = {0};
	struct error error;

	if (!to.receiver)
		return;
	write_text(told, index, &text);
	struct notice notice = {.subject = delivery->records[0].item.test,
		.text = text.data,
		.time = now,
		.recovered = true};
	struct message message = {.kind = MESSAGE_RETRACTION, .notice = &notice, .thread = thread};
	content.hash = hash_add(content.hash, text.data, text.length);
	content.hash = hash_add(content.hash, thread, strlen(thread));
	content.hash = hash_add(content.hash, &now, sizeof now);
	if (!deliveries_add(request, &to, &message, &content, &error))
		log_event(LEVEL_WARN, "cannot render message",
			LOG_TEXT("receiver", to.receiver->name), LOG_TEXT("problem", error.text));
	buf_free(&text);
}

void retraction_send(struct publisher *publisher, struct store_backlog *backlog,
	const struct delivery_rows *retractions)
{
	struct store_queue *request = store_queue_new(queued, publisher);
	const struct agent_settings *settings = &publisher->agent->config->agent;
	struct told told = {.publisher = publisher,
		.deliveries = retractions->items,
		.count = retractions->count};

	told.threads = arena_array(request->call.arena, told.count, sizeof *told.threads);
	for (size_t i = 0; i < told.count; i++)
		publisher_remember(publisher, &told.deliveries[i]);
	for (size_t i = 0; i < told.count; i++)
		if (settings->announce_withdrawn || !is_withdrawn(&told, i))
			told.threads[i] = thread_of(publisher, &told.deliveries[i]);
	for (size_t i = 0; i < told.count; i++)
		if (is_first(&told, i))
			add_answer(&told, i, request);
	if (request->deliveries.count > 0 && !publisher->agent->stopping)
		store_backlog_add(backlog, &request->call);
	else
		store_call_free(&request->call);
}
