/*
 * Failed store requests are repeated until they succeed.
 */
#include "agent/deliver/outbox.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/order.h"
#include "agent/base/utf8.h"
#include "agent/decide/retry.h"
#include "agent/deliver/pictures.h"

enum { SETTLE_AGAIN = 5000, SENT_KEPT = 600000, NAMED = 3, LONGEST_NAME = 200 };

void outgoing_free(struct outgoing *deliveries)
{
	for (struct outgoing *next; deliveries; deliveries = next) {
		next = deliveries->next;
		arena_free(deliveries->arena);
	}
}

void outbox_close(struct outbox *outbox)
{
	outgoing_free(outbox->unsettled);
	outgoing_free(outbox->settling);
	outgoing_free(outbox->sent);
}

static void fence(const struct outgoing *outgoing, struct store_call *call)
{
	fleet_fence(outgoing->outbox->agent, call,
		fleet_shard_of_receiver(outgoing->delivery.receiver));
}

static int cut(const char *name)
{
	return (int)utf8_cut(name, LONGEST_NAME);
}

/* "db.read p99, db.read p95 and 3 more" */
static void describe(struct outgoing *outgoing, const struct change_record *records, size_t count)
{
	struct buf text = {0};

	if (count == 0 || outgoing->what)
		return;
	for (size_t i = 0; i < count && i < NAMED; i++)
		buf_printf(&text, "%s%.*s %.*s", i > 0 ? ", " : "", cut(records[i].item.test),
			records[i].item.test, cut(records[i].item.metric), records[i].item.metric);
	if (count > NAMED)
		buf_printf(&text, " and %zu more", count - NAMED);
	outgoing->what = arena_strndup(outgoing->arena, text.data, text.length);
	buf_free(&text);
}

/* ms that a delivery of an earlier process waits: until the pause that its receiver asked for is
 * over, and until a message that arrived is visible. */
static int64_t rest_of(const struct agent *agent, const struct delivery *delivery)
{
	int64_t look = delivery->begun ? RETRY_LOOK : 0;
	int64_t asked = delivery->not_before > 0 ? delivery->not_before - agent_now(agent) : 0;

	asked = asked > RETRY_WISH ? RETRY_WISH : asked;
	return asked > look ? asked : look;
}

struct outgoing *outgoing_new(struct outbox *outbox, const struct delivery *delivery)
{
	struct arena *arena = arena_new();
	struct outgoing *outgoing = arena_alloc(arena, sizeof *outgoing);

	*outgoing = (struct outgoing){.arena = arena,
		.outbox = outbox,
		.delivery = {.id = delivery->id,
			.key = arena_strdup(arena, delivery->key),
			.receiver = arena_strdup(arena, delivery->receiver),
			.destination = arena_strdup(arena, delivery->destination),
			.thread = arena_strdup(arena, delivery->thread),
			.kind = arena_strdup(arena, delivery->kind),
			.receipt = arena_strdup(arena, delivery->receipt),
			.state = DELIVERY_QUEUED,
			.attempts = delivery->attempts,
			.begun = delivery->begun},
		.maybe_delivered = delivery->begun ? MAYBE_DELIVERED_CHECK : MAYBE_DELIVERED_NO,
		.made = delivery->now,
		.not_before = engine_now(outbox->agent->engine) + rest_of(outbox->agent, delivery)};
	describe(outgoing, delivery->records, delivery->record_count);
	return outgoing;
}

static void settle(struct outgoing *outgoing);

static void settle_again(void *context)
{
	struct outbox *outbox = context;
	struct outgoing *outgoing = outbox->unsettled;

	outbox->unsettled = NULL;
	for (struct outgoing *next; outgoing; outgoing = next) {
		next = outgoing->next;
		settle(outgoing);
	}
}

static void unlink_from(struct outgoing **link, const struct outgoing *outgoing)
{
	while (*link != outgoing)
		link = &(*link)->next;
	*link = outgoing->next;
}

/* The agent that has the receiver now checks for the message or sends it again. If that is this
 * agent, which only lost its connection to the store, it knows. */
void outgoing_lose(struct outgoing *outgoing, bool sent)
{
	struct outbox *outbox = outgoing->outbox;
	size_t kept = 0;

	outgoing->next = NULL;
	if (!sent) {
		outgoing_free(outgoing);
		return;
	}
	outgoing->delivery.state = DELIVERY_SENT;
	outgoing->delivery.payload = NULL;
	outgoing->since = engine_now(outbox->agent->engine);
	outgoing->next = outbox->sent;
	outbox->sent = outgoing;
	for (struct outgoing **link = &outbox->sent, *at; (at = *link); link = &at->next)
		if (++kept > OUTBOX_SENT) {
			outgoing_free(at);
			*link = NULL;
			break;
		}
}

void outbox_lose(struct outbox *outbox, const struct fleet_shards *shards)
{
	for (struct outgoing **link = &outbox->unsettled, *at; (at = *link);) {
		if (shards->has[fleet_shard_of_receiver(at->delivery.receiver)]) {
			*link = at->next;
			outgoing_lose(at, at->delivery.state == DELIVERY_SENT);
		} else {
			link = &at->next;
		}
	}
}

static const struct outgoing *find(const struct outgoing *outgoing, int64_t delivery)
{
	while (outgoing && outgoing->delivery.id != delivery)
		outgoing = outgoing->next;
	return outgoing;
}

bool outbox_has(struct outbox *outbox, int64_t delivery)
{
	struct outgoing *sent = (struct outgoing *)(uintptr_t)find(outbox->sent, delivery);
	bool fresh = sent && sent->since + SENT_KEPT > engine_now(outbox->agent->engine);

	if (sent)
		unlink_from(&outbox->sent, sent);
	if (fresh)
		settle(sent);
	else if (sent) /* it may be queued anew since then */
		outgoing_free(sent);
	return fresh || find(outbox->settling, delivery) || find(outbox->unsettled, delivery);
}

static void settled(struct store_settle *request)
{
	struct outgoing *outgoing = request->call.context;
	struct outbox *outbox = outgoing->outbox;
	bool failed = request->call.failed, fenced = request->call.fenced;

	unlink_from(&outbox->settling, outgoing);
	store_call_free(&request->call);
	if (!failed) {
		if (outgoing->rerouted)
			agent_hint(outbox->agent, HINT_CHANGES);
		arena_free(outgoing->arena);
		return;
	}
	if (fenced) {
		outgoing_lose(outgoing, outgoing->delivery.state == DELIVERY_SENT);
		return;
	}
	outbox->agent->stateless = true;
	if (!outbox->unsettled && !outbox->agent->once)
		engine_after(outbox->agent->engine, SETTLE_AGAIN, settle_again, outbox);
	outgoing->next = outbox->unsettled;
	outbox->unsettled = outgoing;
}

static void settle(struct outgoing *outgoing)
{
	struct outbox *outbox = outgoing->outbox;
	struct store_settle *request = store_settle_new(settled, outgoing);

	outgoing->next = outbox->settling;
	outbox->settling = outgoing;
	outgoing->delivery.now = agent_now(outbox->agent);
	request->delivery = outgoing->delivery;
	request->reroutes = outgoing->rerouted;
	fence(outgoing, &request->call);
	store_client_call(outbox->agent, &request->call);
}

void outgoing_settle(struct outgoing *outgoing, enum delivery_state state)
{
	outgoing->delivery.state = state;
	outgoing->delivery.payload = NULL;
	settle(outgoing);
}

void outgoing_reroute(struct outgoing *outgoing, const char *problem)
{
	outgoing->rerouted = true;
	outgoing->delivery.problem = problem;
	outgoing_settle(outgoing, DELIVERY_ABANDONED);
}

void outgoing_note(const struct outgoing *outgoing)
{
	struct store_settle *request = store_settle_new(NULL, NULL);
	const struct delivery *delivery = &outgoing->delivery;

	request->delivery = (struct delivery){.id = delivery->id,
		.state = delivery->state,
		.attempts = delivery->attempts,
		.begun = delivery->begun,
		.not_before = delivery->not_before,
		.receipt = arena_strdup(request->call.arena, delivery->receipt),
		.problem = arena_strdup(request->call.arena, delivery->problem),
		.now = agent_now(outgoing->outbox->agent)};
	fence(outgoing, &request->call);
	store_client_call(outgoing->outbox->agent, &request->call);
}

/* The receipt of the message that it continues, which may have been sent anew, or not be stored
 * yet. */
static void take_thread(struct outgoing *outgoing, const char *receipt)
{
	struct delivery *delivery = &outgoing->delivery;

	for (const struct outgoing *at = outgoing->outbox->unsettled; at && !receipt; at = at->next)
		if (delivery->thread && strcmp(at->delivery.key, delivery->thread) == 0)
			receipt = at->delivery.receipt;
	if (!order_same(delivery->thread_receipt, receipt))
		delivery->thread_receipt = arena_strdup(outgoing->arena, receipt);
}

void outgoing_begun(struct outgoing *outgoing, const struct store_attempt *request)
{
	const struct delivery *delivery = &request->delivery;

	outgoing->begun = delivery->payload && delivery->state == DELIVERY_QUEUED;
	outgoing->delivery.state = delivery->state;
	/* Why the store cancelled it. */
	for (size_t i = 0; delivery->state == DELIVERY_ABANDONED && i < delivery->record_count; i++)
		if (delivery->records[i].state == CHANGE_WITHDRAWN)
			outgoing->withdrawn = true;
		else
			outgoing->accepted = true;
	if (!outgoing->delivery.payload)
		outgoing->delivery.payload = arena_strdup(outgoing->arena, delivery->payload);
	take_thread(outgoing, delivery->thread_receipt);
	describe(outgoing, delivery->records, delivery->record_count);
	outgoing->worst = pictures_keep(outgoing->arena, request->worst);
}
