/*
 * Every way out of a delivery ends in lane_advance, which does the next thing there is
 * to do or sees to it that it happens when it may.
 */
#include "agent/notify/lane.h"

#include <string.h>

#include "agent/notify/courier.h"
#include "agent/notify/patience.h"

/* ORPHAN_AFTER: a receiver may be missing from one version of the configuration by mistake. */
enum { BEGIN_AGAIN = 5000, ORPHAN_AFTER = 300000 };

static void delivery_end(struct lane *lane)
{
	arena_free(lane->delivery.arena);
	lane->delivery.arena = NULL;
	generation_release(lane->generation);
	lane->generation = NULL;
}

static void lane_advance(struct lane *lane);

static void look_again(void *lane)
{
	lane_advance(lane);
}

/* Options that somebody must mend may have it. */
static bool destination_is_known(const struct lane *lane)
{
	const struct receiver *receiver = agent_receiver(lane->agent, lane->receiver);
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

static void count(const struct lane *lane, const char *result)
{
	metrics_add(lane->agent->metrics, METRIC_DELIVERIES, 1, lane->receiver, result);
}

static void leave_for_next_run(const struct lane *lane)
{
	log_event(LEVEL_WARN, "messages stay queued for the next run",
		LOG_TEXT("receiver", lane->receiver), LOG_TEXT("destination", lane->destination),
		LOG_INT("messages", lane->count));
	lane->agent->incomplete = true;
}

static void lane_wait(struct lane *lane, int64_t wait)
{
	lane->mendable = lane->own_wait = false;
	lane->not_before = engine_now(lane->agent->engine) + wait;
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

/* What it was about is withdrawn, and the store knows that it is not sent. */
static void drop_pointless(struct lane *lane)
{
	struct letter *letter = take(lane, &lane->first);

	log_event(LEVEL_INFO, "not sent, its changes were withdrawn in the meantime",
		LOG_TEXT("receiver", lane->receiver), LOG_TEXT("destination", lane->destination),
		LOG_TEXT("key", letter->parcel.key),
		LOG_TEXT("what", letter->what ? letter->what : ""));
	count(lane, "withdrawn");
	threads_forget(lane->threads, letter->parcel.key);
	letters_free(letter);
}

static void sent(struct lane *lane)
{
	struct letter *letter = lane->first;
	const struct parcel *parcel = &letter->parcel;

	log_event(LEVEL_INFO, "sent", LOG_TEXT("receiver", lane->receiver),
		LOG_TEXT("destination", lane->destination), LOG_TEXT("key", parcel->key));
	count(lane, "sent");
	threads_sent(lane->threads, parcel->thread ? parcel->thread : parcel->key, parcel->receipt);
	letter_settle(take(lane, &lane->first), PARCEL_SENT);
	lane_wait(lane, lane->notifier->spacing);
}

/* One post of several is there; the next follows. */
static void continued(struct lane *lane)
{
	struct letter *letter = lane->first;

	letter->doubt = lane->delivery.doubt;
	letter->begun = letter->parcel.begun = letter->doubt != DOUBT_NONE;
	letter->tries = 0;
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
	lane->agent->incomplete = true;
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
	soon = engine_now(lane->agent->engine) + lane->notifier->spacing;
	if (soon < lane->not_before)
		lane->not_before = soon;
}

/* Waits after a failure, but not for long if the receiver is another by now than the one that
 * failed. */
static void lane_hold(struct lane *lane, const struct delivery *delivery, int64_t wait, bool mend)
{
	const struct receiver *receiver = agent_receiver(lane->agent, lane->receiver);

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
	struct agent *agent = lane->agent;
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
	letter->begun = letter->parcel.begun = delivery->doubt != DOUBT_NONE;
	letter->parcel.not_before = delivery->retry_after < 0 ? 0 : agent_now(agent) + wait;
	letter->parcel.attempts++;
	if (!letter->failure) /* one place: a letter may be tried for weeks */
		letter->failure = arena_alloc(letter->arena, sizeof *letter->failure);
	*letter->failure = *error;
	letter->parcel.problem = letter->failure->text;
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
	struct agent *agent = lane->agent;
	struct letter *letter = lane->first;
	struct delivery delivery = *finished;
	struct generation *generation = lane->generation;

	lane->busy = false;
	lane->delivery.arena = NULL;
	lane->generation = NULL;
	agent->under_way--;
	note(lane, delivery.notice);
	if (delivery.receipt && delivery.receipt != letter->parcel.receipt)
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

/* The receipt of the message that the letter continues. */
static const char *thread_of(const struct lane *lane, const struct letter *letter)
{
	const char *receipt = threads_receipt(lane->threads, letter->parcel.thread);

	return receipt ? receipt : letter->parcel.thread_receipt;
}

static void begin(struct lane *lane, const struct receiver *receiver)
{
	struct agent *agent = lane->agent;
	struct letter *letter = lane->first;
	struct arena *arena = arena_new();

	agent->under_way++;
	if (letter->tries == 0)
		letter->since = engine_now(agent->engine);
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
		.thread = arena_strdup(arena, thread_of(lane, letter)),
		.retry_after = -1};
	engine_deliver(agent->engine, lane->notifier, &lane->delivery, carried, lane);
}

/* Without the store's word that an attempt begins nothing is sent: the next process would not know
 * that it may have arrived. */
static void ready(void *context, bool written)
{
	struct lane *lane = context;
	struct agent *agent = lane->agent;

	lane->busy = false;
	if (!written) {
		agent->stateless = true;
		if (agent->once)
			leave_for_next_run(lane);
		else
			lane_wait(lane, BEGIN_AGAIN);
		return;
	}
	if (lane->first->parcel.state == PARCEL_ABANDONED)
		drop_pointless(lane);
	else if (!lane->first->begun)
		abandon(lane, &lane->first, "abandoned", "it is not in the state file any more");
	lane_advance(lane);
}

/* The messages of a receiver that is not configured, or not with this destination (a channel), wait
 * for it a while, as a day's alarms are not to be lost by a slip in one line; in a single pass
 * nothing can come back. */
static void lane_miss(struct lane *lane)
{
	struct agent *agent = lane->agent;
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
		lane->orphan(lane->context, take(lane, &lane->first));
}

/* False: it is too early, and the lane looks again when it is not; in a single pass nobody waits
 * for long. */
static bool may_begin(struct lane *lane)
{
	struct agent *agent = lane->agent;
	int64_t now = engine_now(agent->engine), from = lane->first->not_before;

	if (agent->once && from - now > PATIENCE_ONCE) {
		if (!lane->left)
			leave_for_next_run(lane);
		lane->left = true;
		return false;
	}
	from = from > lane->not_before ? from : lane->not_before;
	if (now >= from)
		return true;
	engine_alarm(agent->engine, &lane->alarm, from);
	return false;
}

/* Sends the first letter of the lane, or sees to it that this happens when it may. */
static void lane_advance(struct lane *lane)
{
	struct agent *agent = lane->agent;
	const struct receiver *receiver;

	if (lane->busy || !lane->first || agent->stopping)
		return;
	receiver = agent_receiver(agent, lane->receiver);
	if (!receiver || !lane->known) {
		lane_miss(lane);
		return;
	}
	lane->missing = false;
	if (!may_begin(lane))
		return;
	lane->busy = true;
	if (lane->first->begun)
		begin(lane, receiver);
	else
		letter_begin(lane->first, ready, lane);
}

void lane_open(struct lane *lane)
{
	lane->alarm = (struct alarm){.call = look_again, .context = lane};
	lane->last = &lane->first;
	lane->known = destination_is_known(lane);
}

void lane_close(struct lane *lane)
{
	delivery_end(lane);
	letters_free(lane->first);
}

void lane_add(struct lane *lane, struct letter *letter)
{
	*lane->last = letter;
	lane->last = &letter->next;
	if (++lane->count > COURIER_QUEUE)
		abandon(lane, &lane->first->next, "dropped", "too many messages wait");
	lane_advance(lane);
}

void lane_adopt(struct lane *lane)
{
	const struct receiver *receiver = agent_receiver(lane->agent, lane->receiver);

	lane->noticed = false;
	lane->known = destination_is_known(lane);
	if (lane->mendable || (receiver && receiver->fingerprint != lane->fingerprint))
		hurry(lane);
	lane_advance(lane);
}
