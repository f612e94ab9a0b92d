/*
 * See courier.h. A delivery that ended with the program in the middle of it is taken up again after
 * the restart. How far the earlier process came with it is not known, so whatever was in the outbox
 * at the start is in doubt, and the notifier looks first, if it can: at least once is promised,
 * once is what is tried.
 */
#include "agent/watch/courier.h"

#include <stdlib.h>
#include <string.h>

#include "agent/watch/patience.h"

enum { SETTLE_AGAIN = 5000 };

struct letter {
	struct arena *arena;
	struct courier *courier;
	struct parcel parcel;
	enum doubt doubt;
	int64_t made;  /* ms */
	int64_t since; /* engine_now, for setback.trying */
	int64_t tries; /* of this process */
	struct letter *next;
};

struct lane {
	struct courier *courier;
	const struct receiver *receiver;
	const struct notifier *notifier;
	const char *destination;
	struct letter *first, **last;
	size_t count;
	struct delivery delivery; /* of the first letter, while busy */
	bool busy, timer, noticed;
	int64_t not_before; /* engine_now */
	struct lane *next;
};

struct courier {
	struct agent *agent;
	struct arena *arena; /* of the lanes */
	struct lane *lanes;
	struct letter *unsettled; /* were carried out, but the store did not take it */
	struct letter *settling;  /* the store has been asked to */
};

struct courier *courier_new(struct agent *agent)
{
	struct courier *courier = memory_new(1, sizeof *courier);

	*courier = (struct courier){.agent = agent, .arena = arena_new()};
	return courier;
}

static void letters_free(struct letter *letter)
{
	for (struct letter *next; letter; letter = next) {
		next = letter->next;
		arena_free(letter->arena);
	}
}

void courier_free(struct courier *courier)
{
	if (!courier)
		return;
	for (struct lane *lane = courier->lanes; lane; lane = lane->next) {
		if (lane->busy)
			arena_free(lane->delivery.arena);
		letters_free(lane->first);
	}
	letters_free(courier->unsettled);
	letters_free(courier->settling);
	arena_free(courier->arena);
	free(courier);
}

static struct lane *lane_of(
	struct courier *courier, const struct receiver *receiver, const char *destination)
{
	struct lane *lane = courier->lanes;

	while (lane && (lane->receiver != receiver || strcmp(lane->destination, destination) != 0))
		lane = lane->next;
	if (lane)
		return lane;
	lane = arena_alloc(courier->arena, sizeof *lane);
	*lane = (struct lane){.courier = courier,
		.receiver = receiver,
		.notifier = notifier_find(receiver->notifier->name),
		.destination = arena_strdup(courier->arena, destination),
		.next = courier->lanes};
	lane->last = &lane->first;
	courier->lanes = lane;
	return lane;
}

static void count(const struct lane *lane, const char *result)
{
	metrics_add(
		lane->courier->agent->metrics, METRIC_DELIVERIES, 1, lane->receiver->name, result);
}

static void lane_advance(struct lane *lane);

static void lane_timer(void *context)
{
	struct lane *lane = context;

	lane->timer = false;
	lane_advance(lane);
}

static void leave_for_next_run(const struct lane *lane)
{
	log_event(LEVEL_WARN, "messages stay queued for the next run",
		LOG_TEXT("receiver", lane->receiver->name),
		LOG_TEXT("destination", lane->destination), LOG_INT("messages", lane->count));
	lane->courier->agent->incomplete = true;
}

static void lane_wait(struct lane *lane, int64_t wait)
{
	lane->not_before = engine_now(lane->courier->agent->engine) + wait;
	lane_advance(lane);
}

static struct letter *take_first(struct lane *lane)
{
	struct letter *letter = lane->first;

	lane->first = letter->next;
	if (!lane->first)
		lane->last = &lane->first;
	lane->count--;
	letter->next = NULL;
	return letter;
}

static void settle(struct letter *letter);

static void settle_again(void *context)
{
	struct courier *courier = context;
	struct letter *letter = courier->unsettled;

	courier->unsettled = NULL;
	for (struct letter *next; letter; letter = next) {
		next = letter->next;
		settle(letter);
	}
}

/* The store has the last word on a letter: one that it does not take is kept until it does. */
static void settled(struct store_request *request)
{
	struct letter *letter = request->context;
	struct courier *courier = letter->courier;
	bool failed = request->failed;
	struct letter **link = &courier->settling;

	while (*link != letter)
		link = &(*link)->next;
	*link = letter->next;
	store_request_free(request);
	if (!failed) {
		arena_free(letter->arena);
		return;
	}
	courier->agent->stateless = true;
	if (!courier->unsettled && !courier->agent->once)
		engine_after(courier->agent->engine, SETTLE_AGAIN, settle_again, courier);
	letter->next = courier->unsettled;
	courier->unsettled = letter;
}

static void settle(struct letter *letter)
{
	struct store_request *request = store_request_new(STORE_SETTLE, settled, letter);

	letter->next = letter->courier->settling;
	letter->courier->settling = letter;
	letter->parcel.now = letter->courier->agent->now();
	request->parcels = &letter->parcel;
	request->parcel_count = 1;
	ledger_ask(letter->courier->agent, request);
}

static void forgotten(struct store_request *request)
{
	store_request_free(request);
}

/* Writes down an attempt; losing that costs nothing. */
static void note_attempt(struct courier *courier, const struct parcel *parcel)
{
	struct store_request *request = store_request_new(STORE_SETTLE, forgotten, NULL);

	request->parcels = arena_alloc(request->arena, sizeof *parcel);
	*request->parcels = *parcel;
	request->parcels->receipt = arena_strdup(request->arena, parcel->receipt);
	request->parcels->problem = arena_strdup(request->arena, parcel->problem);
	request->parcels->now = courier->agent->now();
	request->parcel_count = 1;
	ledger_ask(courier->agent, request);
}

static void finish(struct lane *lane, enum parcel_state state)
{
	struct letter *letter = take_first(lane);

	letter->parcel.state = state;
	settle(letter);
}

static void sent(struct lane *lane)
{
	log_event(LEVEL_INFO, "sent", LOG_TEXT("receiver", lane->receiver->name),
		LOG_TEXT("destination", lane->destination),
		LOG_TEXT("key", lane->first->parcel.key));
	count(lane, "sent");
	finish(lane, PARCEL_SENT);
	lane_wait(lane, lane->notifier->spacing);
}

static void give_up(struct lane *lane, const struct error *error)
{
	log_event(LEVEL_ERROR, "not delivered, given up",
		LOG_TEXT("receiver", lane->receiver->name),
		LOG_TEXT("destination", lane->destination),
		LOG_TEXT("key", lane->first->parcel.key), LOG_TEXT("problem", error->text));
	count(lane, "abandoned");
	lane->courier->agent->incomplete = true;
	finish(lane, PARCEL_ABANDONED);
	lane_wait(lane, 0);
}

static void failed(struct lane *lane, const struct delivery *delivery, const struct error *error)
{
	struct agent *agent = lane->courier->agent;
	struct letter *letter = lane->first;
	struct setback setback = {.kind = error->kind,
		.retry = delivery->retry,
		.doubt = delivery->doubt,
		.retry_after = delivery->retry_after,
		.tries = ++letter->tries,
		.trying = engine_now(agent->engine) - letter->since,
		.once = agent->once};
	int64_t wait;
	enum patience patience = patience_with(&setback, &wait);
	bool mend = error->kind == ERROR_USAGE && !delivery->retry;

	letter->doubt = delivery->doubt;
	letter->parcel.attempts++;
	letter->parcel.problem = arena_strdup(letter->arena, error->text);
	if (patience == PATIENCE_GIVE_UP) {
		give_up(lane, error);
		return;
	}
	if (mend)
		letter->since = engine_now(agent->engine);
	log_event(mend ? LEVEL_ERROR : LEVEL_WARN, "not delivered, will try again",
		LOG_TEXT("receiver", lane->receiver->name),
		LOG_TEXT("destination", lane->destination), LOG_TEXT("problem", error->text),
		LOG_INT("attempts", letter->parcel.attempts), LOG_INT("wait_ms", wait));
	count(lane, mend ? "misconfigured" : "retried");
	agent->misconfigured |= mend && agent->once;
	note_attempt(lane->courier, &letter->parcel);
	if (patience == PATIENCE_LEAVE)
		leave_for_next_run(lane);
	else
		lane_wait(lane, wait);
}

/* What people should know of a receiver is said once. */
static void note(struct lane *lane, const char *notice)
{
	if (notice && !lane->noticed)
		log_event(LEVEL_WARN, notice, LOG_TEXT("receiver", lane->receiver->name));
	lane->noticed |= notice != NULL;
}

static void carried(struct delivery *delivery, bool done, const struct error *error, void *context)
{
	struct lane *lane = context;
	struct letter *letter = lane->first;
	struct arena *arena = delivery->arena; /* the lane's delivery may be the next one soon */

	lane->busy = false;
	lane->courier->agent->under_way--;
	note(lane, delivery->notice);
	if (delivery->receipt)
		letter->parcel.receipt = arena_strdup(letter->arena, delivery->receipt);
	if (done)
		sent(lane);
	else
		failed(lane, delivery, error);
	arena_free(arena);
	agent_ended(lane->courier->agent);
}

/* Sends the first letter of the lane, or sees to it that this happens when it may. */
static void lane_advance(struct lane *lane)
{
	struct agent *agent = lane->courier->agent;
	struct letter *letter = lane->first;
	int64_t wait = lane->not_before - engine_now(agent->engine);

	if (lane->busy || !letter || agent->stopping)
		return;
	if (wait > 0) {
		if (!lane->timer)
			engine_after(agent->engine, wait, lane_timer, lane);
		lane->timer = true;
		return;
	}
	lane->busy = true;
	agent->under_way++;
	lane->delivery = (struct delivery){.arena = arena_new(),
		.options = lane->receiver->options,
		.destination = lane->destination,
		.key = letter->parcel.key,
		.payload = letter->parcel.payload,
		.made = letter->made,
		.doubt = letter->doubt,
		.receipt = letter->parcel.receipt,
		.retry_after = -1};
	engine_deliver(agent->engine, lane->notifier, &lane->delivery, carried, lane);
}

static struct letter *letter_new(struct courier *courier, const struct parcel *parcel)
{
	struct arena *arena = arena_new();
	struct letter *letter = arena_alloc(arena, sizeof *letter);

	*letter = (struct letter){.arena = arena,
		.courier = courier,
		.parcel = *parcel,
		.doubt = parcel->restored ? DOUBT_LOOK : DOUBT_NONE,
		.made = parcel->now,
		.since = engine_now(courier->agent->engine)};
	letter->parcel.key = arena_strdup(arena, parcel->key);
	letter->parcel.receiver = arena_strdup(arena, parcel->receiver);
	letter->parcel.destination = arena_strdup(arena, parcel->destination);
	letter->parcel.payload = arena_strdup(arena, parcel->payload);
	letter->parcel.receipt = arena_strdup(arena, parcel->receipt);
	letter->parcel.problem = NULL;
	letter->parcel.changes = NULL;
	letter->parcel.change_count = 0;
	return letter;
}

void courier_add(struct courier *courier, const struct parcel *parcel)
{
	const struct receiver *receiver = agent_receiver(courier->agent, parcel->receiver);
	struct letter *letter;
	struct lane *lane;

	if (!receiver) {
		log_event(LEVEL_WARN, "message stays queued, its receiver is not configured",
			LOG_TEXT("receiver", parcel->receiver), LOG_TEXT("key", parcel->key));
		courier->agent->incomplete = true;
		return;
	}
	letter = letter_new(courier, parcel);
	lane = lane_of(courier, receiver, parcel->destination);
	*lane->last = letter;
	lane->last = &letter->next;
	lane->count++;
	lane_advance(lane);
}

void courier_collect(struct courier *courier)
{
	const struct config *config = courier->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++) {
		size_t length = 0;

		for (const struct lane *lane = courier->lanes; lane; lane = lane->next)
			if (lane->receiver == &config->receivers[i])
				length += lane->count;
		metrics_set(courier->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, (double)length,
			config->receivers[i].name, NULL);
	}
}
