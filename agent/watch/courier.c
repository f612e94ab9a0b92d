/*
 * See courier.h. A delivery that ended with the program in the middle of it is taken up again after
 * the restart. How far the earlier process came with it is not known, so whatever was in the outbox
 * at the start is in doubt, and the notifier looks first, if it can: at least once is promised,
 * once is what is tried.
 */
#include "agent/watch/courier.h"

#include <stdlib.h>
#include <string.h>

#include "agent/watch/outbox.h"
#include "agent/watch/patience.h"

/* ORPHAN_AFTER: a receiver may be missing from one version of the configuration by mistake. */
enum { FETCH_AGAIN = 5000, ORPHAN_AFTER = 300000 };

struct lane {
	struct courier *courier;
	const char *receiver, *destination;
	struct letter *first, **last;
	size_t count;
	const struct notifier *notifier;
	struct generation *generation; /* of the delivery, while busy */
	struct delivery delivery;      /* of the first letter, while busy */
	bool busy;                     /* the first letter is being fetched or sent */
	bool noticed;
	bool known;           /* its receiver has this destination; see destination_is_known */
	uint64_t fingerprint; /* of the receiver, as the last delivery knew it */
	bool mendable;        /* it waits for somebody to mend something, ... */
	bool own_wait;        /* ... or for as long as we chose, not the receiver */
	bool missing;         /* its receiver is not configured, or not with its destination, ... */
	int64_t missing_since; /* ... from then on, as far as its messages know */
	int64_t not_before;    /* engine_now */
	struct alarm alarm;    /* when to look again */
	struct lane *next;
};

struct courier {
	struct agent *agent;
	struct arena *arena; /* of the lanes */
	struct lane *lanes;
	struct outbox *outbox;
	struct threads *threads;
	struct letter *orphans;
	bool orphans_told;
	void (*orphaned)(void *context);
	void *context;
};

struct courier *courier_new(struct agent *agent)
{
	struct courier *courier = memory_new(1, sizeof *courier);

	*courier = (struct courier){.agent = agent,
		.arena = arena_new(),
		.outbox = outbox_new(agent),
		.threads = threads_new()};
	return courier;
}

static void delivery_end(struct lane *lane)
{
	arena_free(lane->delivery.arena);
	lane->delivery.arena = NULL;
	generation_release(lane->generation);
	lane->generation = NULL;
}

void courier_free(struct courier *courier)
{
	if (!courier)
		return;
	for (struct lane *lane = courier->lanes; lane; lane = lane->next) {
		delivery_end(lane);
		letters_free(lane->first);
	}
	letters_free(courier->orphans);
	outbox_free(courier->outbox);
	threads_free(courier->threads);
	arena_free(courier->arena);
	free(courier);
}

struct threads *courier_threads(struct courier *courier)
{
	return courier->threads;
}

static void lane_advance(struct lane *lane);

static void look_again(void *lane)
{
	lane_advance(lane);
}

/* Options that somebody must mend may have it. */
static bool destination_is_known(const struct lane *lane)
{
	const struct receiver *receiver = agent_receiver(lane->courier->agent, lane->receiver);
	struct arena *arena = arena_new();
	struct strings destinations = {0};
	struct error error;
	bool known = receiver &&
		     !notifier_find(receiver->notifier->name)
			      ->destinations(receiver->options, arena, &destinations, &error);

	for (size_t i = 0; receiver && !known && i < destinations.count; i++)
		known = strcmp(destinations.items[i], lane->destination) == 0;
	arena_free(arena);
	return known;
}

static struct lane *lane_of(struct courier *courier, const struct parcel *parcel)
{
	struct lane *lane = courier->lanes;

	while (lane && (strcmp(lane->receiver, parcel->receiver) != 0 ||
			       strcmp(lane->destination, parcel->destination) != 0))
		lane = lane->next;
	if (lane)
		return lane;
	lane = arena_alloc(courier->arena, sizeof *lane);
	*lane = (struct lane){.courier = courier,
		.receiver = arena_strdup(courier->arena, parcel->receiver),
		.destination = arena_strdup(courier->arena, parcel->destination),
		.next = courier->lanes,
		.alarm = {.call = look_again, .context = lane}};
	lane->last = &lane->first;
	lane->known = destination_is_known(lane);
	courier->lanes = lane;
	return lane;
}

static void count(const struct lane *lane, const char *result)
{
	metrics_add(lane->courier->agent->metrics, METRIC_DELIVERIES, 1, lane->receiver, result);
}

static void leave_for_next_run(const struct lane *lane)
{
	log_event(LEVEL_WARN, "messages stay queued for the next run",
		LOG_TEXT("receiver", lane->receiver), LOG_TEXT("destination", lane->destination),
		LOG_INT("messages", lane->count));
	lane->courier->agent->incomplete = true;
}

static void lane_wait(struct lane *lane, int64_t wait)
{
	lane->mendable = lane->own_wait = false;
	lane->not_before = engine_now(lane->courier->agent->engine) + wait;
	lane_advance(lane);
}

/* Takes the letter that the link points to out of the lane. */
static struct letter *take(struct lane *lane, struct letter **link)
{
	struct letter *letter = *link;

	*link = letter->next;
	if (!*link)
		lane->last = link;
	lane->count--;
	letter->next = NULL;
	return letter;
}

static void sent(struct lane *lane)
{
	struct letter *letter = lane->first;
	const struct parcel *parcel = &letter->parcel;

	log_event(LEVEL_INFO, "sent", LOG_TEXT("receiver", lane->receiver),
		LOG_TEXT("destination", lane->destination), LOG_TEXT("key", parcel->key));
	count(lane, "sent");
	threads_sent(lane->courier->threads, parcel->thread ? parcel->thread : parcel->key,
		parcel->receipt);
	letter_settle(take(lane, &lane->first), PARCEL_SENT);
	lane_wait(lane, lane->notifier->spacing);
}

/* One post of several is there; the next follows. */
static void continued(struct lane *lane)
{
	struct letter *letter = lane->first;

	letter->doubt = lane->delivery.doubt;
	letter->tries = 0;
	letter->since = engine_now(lane->courier->agent->engine);
	letter_note(letter);
	lane_wait(lane, lane->notifier->spacing);
}

static void abandon(
	struct lane *lane, struct letter **link, const char *result, const char *problem)
{
	struct letter *letter = take(lane, link);

	log_event(LEVEL_ERROR, "not delivered, given up", LOG_TEXT("receiver", lane->receiver),
		LOG_TEXT("destination", lane->destination), LOG_TEXT("key", letter->parcel.key),
		LOG_TEXT("what", letter->what ? letter->what : "a notice"),
		LOG_TEXT("problem", problem), LOG_INT("attempts", letter->parcel.attempts));
	count(lane, result);
	lane->courier->agent->incomplete = true;
	letter->parcel.problem = arena_strdup(letter->arena, problem);
	letter_settle(letter, PARCEL_ABANDONED);
}

/* What the lane waits for may have been mended; what the receiver asked for is kept, and so is the
 * time in which a post that may have arrived can show. */
static void hurry(struct lane *lane)
{
	int64_t soon;

	if (!lane->own_wait)
		return;
	soon = engine_now(lane->courier->agent->engine) + lane->notifier->spacing;
	if (soon < lane->not_before)
		lane->not_before = soon;
}

/* Waits after a failure, but not for long if the receiver is another by now than the one that
 * failed. */
static void lane_hold(struct lane *lane, const struct delivery *delivery, int64_t wait, bool mend)
{
	const struct receiver *receiver = agent_receiver(lane->courier->agent, lane->receiver);

	lane_wait(lane, wait);
	lane->own_wait = delivery->retry_after < 0 && delivery->doubt == DOUBT_NONE;
	lane->mendable = lane->own_wait && mend;
	if (receiver && receiver->fingerprint != lane->fingerprint) {
		hurry(lane);
		lane_advance(lane);
	}
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
		.give_up_after = agent->config->agent.give_up_after,
		.once = agent->once};
	int64_t wait;
	enum patience patience = patience_with(&setback, &wait);
	bool mend = error->kind == ERROR_USAGE && !delivery->retry;

	letter->doubt = delivery->doubt;
	letter->parcel.attempts++;
	letter->parcel.problem = arena_strdup(letter->arena, error->text);
	if (patience == PATIENCE_GIVE_UP) {
		abandon(lane, &lane->first, "abandoned", error->text);
		lane_wait(lane, 0);
		return;
	}
	if (mend)
		letter->since = engine_now(agent->engine);
	log_event(mend ? LEVEL_ERROR : LEVEL_WARN, "not delivered, will try again",
		LOG_TEXT("receiver", lane->receiver), LOG_TEXT("destination", lane->destination),
		LOG_TEXT("problem", error->text), LOG_INT("attempts", letter->parcel.attempts),
		LOG_INT("wait_ms", wait));
	count(lane, mend ? "misconfigured" : "retried");
	agent->misconfigured |= mend && agent->once;
	letter_note(letter);
	if (patience == PATIENCE_LEAVE)
		leave_for_next_run(lane);
	else
		lane_hold(lane, delivery, wait, mend);
}

/* What people should know of a receiver is said once. */
static void note(struct lane *lane, const char *notice)
{
	if (notice && !lane->noticed)
		log_event(LEVEL_WARN, notice, LOG_TEXT("receiver", lane->receiver));
	lane->noticed |= notice != NULL;
}

/* The lane's delivery may be the next one before this returns. */
static void carried(struct delivery *finished, bool done, const struct error *error, void *context)
{
	struct lane *lane = context;
	struct agent *agent = lane->courier->agent;
	struct letter *letter = lane->first;
	struct delivery delivery = *finished;
	struct generation *generation = lane->generation;

	lane->busy = false;
	lane->delivery.arena = NULL;
	lane->generation = NULL;
	agent->under_way--;
	note(lane, delivery.notice);
	if (delivery.receipt)
		letter->parcel.receipt = arena_strdup(letter->arena, delivery.receipt);
	if (!done)
		failed(lane, &delivery, error);
	else if (delivery.more)
		continued(lane);
	else
		sent(lane);
	arena_free(delivery.arena);
	generation_release(generation);
	agent_ended(agent);
}

static void begin(struct lane *lane, const struct receiver *receiver)
{
	struct courier *courier = lane->courier;
	struct agent *agent = courier->agent;
	struct letter *letter = lane->first;
	struct arena *arena = arena_new();

	agent->under_way++;
	lane->generation = agent->generation ? generation_hold(agent->generation) : NULL;
	lane->notifier = notifier_find(receiver->notifier->name);
	lane->fingerprint = receiver->fingerprint;
	lane->delivery = (struct delivery){.arena = arena,
		.options = receiver->options,
		.destination = lane->destination,
		.key = letter->parcel.key,
		.payload = letter->parcel.payload,
		.made = letter->made,
		.now = agent_now(agent),
		.doubt = letter->doubt,
		.receipt = letter->parcel.receipt,
		.thread = letter->parcel.thread
				  ? arena_strdup(arena, threads_receipt(courier->threads,
								letter->parcel.thread))
				  : NULL,
		.retry_after = -1};
	engine_deliver(agent->engine, lane->notifier, &lane->delivery, carried, lane);
}

static void fetched(void *context, bool read)
{
	struct lane *lane = context;

	lane->busy = false;
	if (read && !lane->first->parcel.payload)
		abandon(lane, &lane->first, "abandoned", "it is not in the state file any more");
	lane_wait(lane, read ? 0 : FETCH_AGAIN);
}

static void tell_orphans(void *context)
{
	struct courier *courier = context;

	courier->orphans_told = false;
	if (courier->orphans && courier->orphaned)
		courier->orphaned(courier->context);
}

static void orphan(struct courier *courier, struct letter *letter)
{
	letter->parcel.payload = NULL;
	letter->next = courier->orphans;
	courier->orphans = letter;
	if (!courier->orphans_told)
		engine_after(courier->agent->engine, 0, tell_orphans, courier);
	courier->orphans_told = true;
}

/* The messages of a receiver that is not configured, or not with this destination (a channel), wait
 * for it a while, as a day's alarms are not to be lost by a slip in one line; in a single pass
 * nothing can come back. */
static void lane_miss(struct lane *lane)
{
	struct agent *agent = lane->courier->agent;
	int64_t now = engine_now(agent->engine);

	if (!lane->missing) {
		log_event(LEVEL_WARN, "messages wait for a receiver that is not configured",
			LOG_TEXT("receiver", lane->receiver),
			LOG_TEXT("destination", lane->destination),
			LOG_INT("messages", lane->count));
		lane->missing_since = now;
	}
	lane->missing = true;
	if (!agent->once && now - lane->missing_since < ORPHAN_AFTER) {
		engine_alarm(agent->engine, &lane->alarm, lane->missing_since + ORPHAN_AFTER);
		return;
	}
	lane->missing = false;
	while (lane->first)
		orphan(lane->courier, take(lane, &lane->first));
}

/* Sends the first letter of the lane, or sees to it that this happens when it may. */
static void lane_advance(struct lane *lane)
{
	struct agent *agent = lane->courier->agent;
	const struct receiver *receiver;

	if (lane->busy || !lane->first || agent->stopping)
		return;
	receiver = agent_receiver(agent, lane->receiver);
	if (!receiver || !lane->known) {
		lane_miss(lane);
		return;
	}
	lane->missing = false;
	if (engine_now(agent->engine) < lane->not_before) {
		engine_alarm(agent->engine, &lane->alarm, lane->not_before);
		return;
	}
	lane->busy = true;
	if (lane->first->parcel.payload)
		begin(lane, receiver);
	else
		letter_fetch(lane->first, fetched, lane);
}

void courier_add(struct courier *courier, const struct parcel *parcel)
{
	struct lane *lane = lane_of(courier, parcel);
	struct letter *letter = letter_new(courier->outbox, parcel, lane->count == 0);

	*lane->last = letter;
	lane->last = &letter->next;
	if (++lane->count > COURIER_QUEUE)
		abandon(lane, &lane->first->next, "dropped", "too many messages wait");
	lane_advance(lane);
}

static bool is_receiver(void *context, const char *name)
{
	const struct courier *courier = context;

	return agent_receiver(courier->agent, name) != NULL;
}

void courier_adopt(struct courier *courier)
{
	metrics_retain(courier->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, is_receiver, courier);
	for (struct lane *lane = courier->lanes; lane; lane = lane->next) {
		const struct receiver *receiver = agent_receiver(courier->agent, lane->receiver);

		lane->noticed = false;
		lane->known = destination_is_known(lane);
		if (lane->mendable || (receiver && receiver->fingerprint != lane->fingerprint))
			hurry(lane);
		lane_advance(lane);
	}
}

void courier_listen(struct courier *courier, void (*orphaned)(void *context), void *context)
{
	courier->orphaned = orphaned;
	courier->context = context;
}

void courier_orphans(struct courier *courier, struct store_request *request)
{
	struct arena *arena = request->arena;
	size_t room = 0;

	for (const struct letter *letter = courier->orphans; letter; letter = letter->next)
		room++;
	request->parcels = arena_array(arena, room, sizeof *request->parcels);
	for (const struct letter *letter = courier->orphans; letter; letter = letter->next) {
		const struct parcel *parcel = &letter->parcel;

		log_event(LEVEL_WARN,
			"not delivered, its receiver is not configured; others are told of its"
			" changes",
			LOG_TEXT("receiver", parcel->receiver),
			LOG_TEXT("destination", parcel->destination), LOG_TEXT("key", parcel->key),
			LOG_TEXT("what", letter->what ? letter->what : ""));
		metrics_add(courier->agent->metrics, METRIC_DELIVERIES, 1, parcel->receiver,
			"rerouted");
		request->parcels[request->parcel_count++] = (struct parcel){.id = parcel->id,
			.problem = "its receiver is not configured",
			.attempts = parcel->attempts,
			.now = agent_now(courier->agent)};
	}
	letters_free(courier->orphans);
	courier->orphans = NULL;
}

void courier_collect(struct courier *courier)
{
	const struct config *config = courier->agent->config;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const char *name = config->receivers[i].name;
		size_t length = 0;

		for (const struct lane *lane = courier->lanes; lane; lane = lane->next)
			if (strcmp(lane->receiver, name) == 0)
				length += lane->count;
		metrics_set(courier->agent->metrics, METRIC_DELIVERY_QUEUE_LENGTH, (double)length,
			name, NULL);
	}
}
