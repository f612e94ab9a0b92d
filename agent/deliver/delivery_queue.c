/*
 * Every attempt ends in queue_advance, which starts the next one or sets the alarm for it.
 */
#include "agent/deliver/delivery_queue.h"

#include <stdlib.h>
#include <string.h>

#include "agent/decide/retry.h"
#include "agent/deliver/delivery_manager.h"
#include "agent/deliver/pictures.h"

/* ms. BEGIN_AGAIN: retry of a failed store request. ORPHAN_AFTER: a receiver may be unroutable from
 * one version of the configuration by mistake. */
enum { BEGIN_AGAIN = 5000, ORPHAN_AFTER = 300000 };

/* ms, in a fleet. HOLD_AGAIN: until the receiver's lease is checked again. PACE_MOST: a receiver is
 * not handed over during a pause after a message of at most this length. */
enum { HOLD_AGAIN = 1000, PACE_MOST = 5000 };

static void queue_advance(struct delivery_queue *queue);

static void look_again(void *queue)
{
	queue_advance(queue);
}

/* Assumes yes if the destinations cannot be read because of a configuration error. */
static bool has_destination(const struct receiver *receiver, const char *destination)
{
	struct arena *arena = arena_new();
	struct strings destinations = {0};
	struct error error;
	bool known = !notifier_destinations(notifier_find(receiver->notifier->name),
		receiver->options, arena, &destinations, &error);

	for (size_t i = 0; !known && i < destinations.count; i++)
		known = strcmp(destinations.items[i], destination) == 0;
	arena_free(arena);
	return known;
}

static void count(const struct delivery_queue *queue, const char *result)
{
	metrics_count(queue->agent->metrics, METRIC_DELIVERIES, queue->receiver, result);
}

static void leave_for_next_run(struct delivery_queue *queue)
{
	log_event(LEVEL_WARN, "messages remain queued until the next run",
		LOG_TEXT("receiver", queue->receiver), LOG_TEXT("destination", queue->destination),
		LOG_INT("messages", queue->count));
	queue->state = QUEUE_DEFERRED;
	queue->agent->incomplete = true;
}

static void note_trouble(struct delivery_queue *queue, const struct error *error)
{
	if (!queue->trouble)
		queue->trouble = memory_new(1, sizeof *queue->trouble);
	*queue->trouble = *error;
	queue->failed = agent_now(queue->agent);
}

static void queue_wait(struct delivery_queue *queue, enum queue_state state, int64_t wait)
{
	queue->state = state;
	queue->not_before = engine_now(queue->agent->engine) + wait;
	queue_advance(queue);
}

/* Unlinks the delivery that `link` points to. */
static struct outgoing *unlink_delivery(struct delivery_queue *queue, struct outgoing **link)
{
	struct outgoing *outgoing = *link;

	*link = outgoing->next;
	if (!*link)
		queue->last = link;
	queue->count--;
	outgoing->next = NULL;
	return outgoing;
}

/* It belongs to another agent now, which checks whether it was delivered. */
static void drop_lost(struct delivery_queue *queue, bool delivered)
{
	outgoing_lose(unlink_delivery(queue, &queue->first), delivered);
}

static void sent(struct delivery_queue *queue)
{
	struct outgoing *outgoing = queue->first;
	const struct delivery *delivery = &outgoing->delivery;

	log_event(LEVEL_INFO, "sent", LOG_TEXT("receiver", queue->receiver),
		LOG_TEXT("destination", queue->destination), LOG_TEXT("key", delivery->key));
	count(queue, "sent");
	queue->sent = agent_now(queue->agent);
	outgoing_settle(unlink_delivery(queue, &queue->first), DELIVERY_SENT);
	queue_wait(queue, QUEUE_WAITING, queue->notifier->spacing);
}

/* One of several posts of a message has arrived; continues with the next. */
static void continued(struct delivery_queue *queue)
{
	struct outgoing *outgoing = queue->first;

	outgoing->maybe_delivered = queue->attempt.maybe_delivered;
	outgoing->begun = outgoing->delivery.begun =
		outgoing->maybe_delivered != MAYBE_DELIVERED_NO;
	outgoing->tries = 0;
	outgoing_note(outgoing);
	queue_wait(queue, QUEUE_WAITING, queue->notifier->spacing);
}

static void abandon(struct delivery_queue *queue, struct outgoing **link, const char *result,
	const char *problem)
{
	struct outgoing *outgoing = unlink_delivery(queue, link);

	log_event(LEVEL_ERROR, "delivery given up", LOG_TEXT("receiver", queue->receiver),
		LOG_TEXT("destination", queue->destination),
		LOG_TEXT("key", outgoing->delivery.key),
		LOG_TEXT("what", outgoing->what ? outgoing->what : "a notice"),
		LOG_TEXT("problem", problem), LOG_INT("attempts", outgoing->delivery.attempts));
	count(queue, result);
	queue->agent->incomplete = true;
	outgoing->delivery.problem = arena_strdup(outgoing->arena, problem);
	outgoing_settle(outgoing, DELIVERY_ABANDONED);
}

/* Its receiver is gone. */
static void reroute_first(struct delivery_queue *queue)
{
	struct outgoing *outgoing = unlink_delivery(queue, &queue->first);

	log_event(LEVEL_WARN,
		"delivery dropped: receiver not configured; rerouting to the other receivers",
		LOG_TEXT("receiver", queue->receiver), LOG_TEXT("destination", queue->destination),
		LOG_TEXT("key", outgoing->delivery.key),
		LOG_TEXT("what", outgoing->what ? outgoing->what : ""));
	count(queue, "rerouted");
	outgoing_reroute(outgoing, "receiver is not configured");
}

/* ms between attempts that fail because of the configuration, at least. */
static int64_t least_wait(const struct delivery_queue *queue)
{
	bool in_doubt = queue->first && queue->first->maybe_delivered != MAYBE_DELIVERED_NO;
	int64_t spacing = queue->notifier->spacing;

	return in_doubt && spacing < RETRY_LOOK ? RETRY_LOOK : spacing;
}

/* The configuration has changed: retries deliveries that failed because of it. */
static void retry_now(struct delivery_queue *queue)
{
	int64_t soon = engine_now(queue->agent->engine) + least_wait(queue);

	if (soon < queue->not_before)
		queue->not_before = soon;
}

static bool is_reconfigured(const struct delivery_queue *queue)
{
	const struct receiver *receiver = agent_receiver(queue->agent, queue->receiver);

	return receiver && receiver->fingerprint != queue->fingerprint;
}

/* Backs off after a failure; only briefly if the receiver's configuration has changed since the
 * attempt. Keeps the pause that the receiver asked for, and the delay before checking for a message
 * that may have arrived. */
static void queue_back_off(struct delivery_queue *queue, const struct attempt *attempt,
	int64_t wait, bool config_error)
{
	bool ours = attempt->retry_after < 0 &&
		    (config_error || attempt->maybe_delivered == MAYBE_DELIVERED_NO);

	if (ours && is_reconfigured(queue) && least_wait(queue) < wait)
		wait = least_wait(queue);
	queue_wait(queue,
		!ours          ? QUEUE_WAITING
		: config_error ? QUEUE_MISCONFIGURED
			       : QUEUE_BACKING_OFF,
		wait);
}

static void failed(
	struct delivery_queue *queue, const struct attempt *attempt, const struct error *error)
{
	struct agent *agent = queue->agent;
	struct outgoing *outgoing = queue->first;
	struct failed_attempt failed = {.kind = error->kind,
		.retry = attempt->retry,
		.maybe_delivered = attempt->maybe_delivered,
		.retry_after = attempt->retry_after,
		.tries = ++outgoing->tries,
		.trying = engine_now(agent->engine) - outgoing->since,
		.give_up_after = agent->config->agent.give_up_after,
		.once = agent->once};
	struct decision decision = retry_decide(&failed);
	bool config_error = error->kind == ERROR_USAGE && !attempt->retry;

	outgoing->maybe_delivered = attempt->maybe_delivered;
	outgoing->begun = outgoing->delivery.begun = attempt->maybe_delivered != MAYBE_DELIVERED_NO;
	outgoing->delivery.not_before =
		attempt->retry_after < 0 ? 0 : agent_now(agent) + decision.until;
	outgoing->delivery.attempts++;
	if (!outgoing->failure) /* allocated once: a delivery may be retried for weeks */
		outgoing->failure = arena_alloc(outgoing->arena, sizeof *outgoing->failure);
	*outgoing->failure = *error;
	outgoing->delivery.problem = outgoing->failure->text;
	note_trouble(queue, error);
	if (decision.verdict == DROP) {
		abandon(queue, &queue->first, "abandoned", error->text);
		queue_wait(queue, QUEUE_WAITING, 0);
		return;
	}
	if (config_error)
		outgoing->since = engine_now(agent->engine);
	log_event(config_error ? LEVEL_ERROR : LEVEL_WARN, "delivery failed, will retry",
		LOG_TEXT("receiver", queue->receiver), LOG_TEXT("destination", queue->destination),
		LOG_TEXT("problem", error->text), LOG_INT("attempts", outgoing->delivery.attempts),
		LOG_INT("wait_ms", decision.until));
	count(queue, config_error ? "misconfigured" : "retried");
	agent->misconfigured |= config_error && agent->once;
	outgoing_note(outgoing);
	if (decision.verdict == HOLD)
		leave_for_next_run(queue);
	else
		queue_back_off(queue, attempt, decision.until, config_error);
}

/* The queue's next attempt may have started before this returns. */
static void attempt_ended(
	struct attempt *finished, bool done, const struct error *error, void *context)
{
	struct delivery_queue *queue = context;
	struct agent *agent = queue->agent;
	struct outgoing *outgoing = queue->first;
	struct attempt attempt = *finished;
	struct config_ref *config_ref = queue->config_ref;

	queue->state = QUEUE_WAITING;
	queue->attempt.arena = NULL;
	queue->config_ref = NULL;
	agent->under_way--;
	if (attempt.notice && !queue->noticed)
		log_event(LEVEL_WARN, attempt.notice, LOG_TEXT("receiver", queue->receiver));
	queue->noticed |= attempt.notice != NULL;
	if (attempt.receipt && attempt.receipt != outgoing->delivery.receipt)
		outgoing->delivery.receipt = arena_strdup(outgoing->arena, attempt.receipt);
	if (outgoing->lost) {
		drop_lost(queue, done && !attempt.more);
		queue_wait(queue, QUEUE_WAITING, queue->notifier->spacing);
	} else if (!done)
		failed(queue, &attempt, error);
	else if (attempt.more)
		continued(queue);
	else
		sent(queue);
	arena_free(attempt.arena);
	config_ref_release(config_ref);
	agent_ended(agent);
}

static void start_attempt(struct delivery_queue *queue, const struct receiver *receiver)
{
	struct agent *agent = queue->agent;
	struct outgoing *outgoing = queue->first;
	struct arena *arena = arena_new();

	queue->state = QUEUE_SENDING;
	agent->under_way++;
	if (outgoing->tries == 0)
		outgoing->since = engine_now(agent->engine);
	queue->config_ref = agent->config_ref ? config_ref_hold(agent->config_ref) : NULL;
	queue->notifier = notifier_find(receiver->notifier->name);
	queue->fingerprint = receiver->fingerprint;
	queue->attempt = (struct attempt){.arena = arena,
		.options = receiver->options,
		.destination = queue->destination,
		.key = outgoing->delivery.key,
		.payload = outgoing->delivery.payload,
		.made = outgoing->made,
		.now = agent_now(agent),
		.maybe_delivered = outgoing->maybe_delivered,
		.receipt = outgoing->delivery.receipt,
		.thread = arena_strdup(arena, outgoing->delivery.thread_receipt),
		.retry_after = -1};
	/* A message that was sent in part draws its picture only if no other delivery waits. */
	if (!outgoing->delivery.receipt || queue->count == 1)
		pictures_offer(&queue->attempt, outgoing->worst);
	engine_deliver(agent->engine, queue->notifier, &queue->attempt, attempt_ended, queue);
}

/* By what its changes were: 1 withdrawn, 2 accepted, both; a reply has none. */
static const char *const cancelled[] = {
	"delivery cancelled: the message that it continues was given up",
	"delivery cancelled: its changes were withdrawn",
	"delivery cancelled: its changes were accepted",
	"delivery cancelled: its changes were withdrawn or accepted"};

/* Nothing is sent unless the store has recorded the attempt: after a crash the next process would
 * not know that the message may have arrived. */
static void begun(struct store_attempt *request)
{
	struct delivery_queue *queue = request->call.context;
	struct agent *agent = queue->agent;
	const struct outgoing *first = queue->first;
	bool failed = request->call.failed, fenced = request->call.fenced;

	if (!failed)
		outgoing_begun(queue->first, request);
	store_call_free(&request->call);
	queue->state = QUEUE_WAITING;
	if (queue->first->lost) {
		drop_lost(queue, false);
		queue_advance(queue);
		return;
	}
	if (failed) {
		agent->stateless |= !fenced;
		if (agent->once)
			leave_for_next_run(queue);
		else
			queue_wait(queue, QUEUE_WAITING, BEGIN_AGAIN);
		return;
	}
	if (first->delivery.state == DELIVERY_ABANDONED) { /* the store has recorded that */
		log_event(LEVEL_INFO, cancelled[first->withdrawn + 2 * first->accepted],
			LOG_TEXT("receiver", queue->receiver),
			LOG_TEXT("destination", queue->destination),
			LOG_TEXT("key", first->delivery.key),
			LOG_TEXT("what", first->what ? first->what : ""));
		count(queue, "withdrawn");
		outgoing_free(unlink_delivery(queue, &queue->first));
	} else if (!first->begun) /* it is settled already, by another agent perhaps */
		outgoing_free(unlink_delivery(queue, &queue->first));
	queue_advance(queue);
}

/* Keeps the deliveries of an unconfigured receiver or destination for ORPHAN_AFTER, so that a typo
 * in the configuration does not lose a day's alarms. A single pass cannot be reloaded, so it gives
 * them up at once. */
static void queue_unroutable(struct delivery_queue *queue)
{
	struct agent *agent = queue->agent;
	int64_t now = engine_now(agent->engine);

	if (queue->state != QUEUE_UNROUTABLE) {
		log_event(LEVEL_WARN, "messages queued for an unconfigured receiver",
			LOG_TEXT("receiver", queue->receiver),
			LOG_TEXT("destination", queue->destination),
			LOG_INT("messages", queue->count));
		if (queue->state == QUEUE_BACKING_OFF || queue->state == QUEUE_MISCONFIGURED)
			retry_now(queue);
		queue->state = QUEUE_UNROUTABLE;
		queue->orphan_at = now + (agent->once ? 0 : ORPHAN_AFTER);
	}
	if (now < queue->orphan_at) {
		engine_alarm(agent->engine, &queue->alarm, queue->orphan_at);
		return;
	}
	queue->state = QUEUE_WAITING;
	while (queue->first)
		reroute_first(queue);
}

/* False if it is too early: sets the alarm, or in a single pass defers longer waits to the next
 * process. */
static bool may_begin(struct delivery_queue *queue)
{
	struct agent *agent = queue->agent;
	int64_t now = engine_now(agent->engine), from = queue->first->not_before;

	if (agent->once && from - now > RETRY_ONCE) {
		if (queue->state != QUEUE_DEFERRED)
			leave_for_next_run(queue);
		return false;
	}
	from = from > queue->not_before ? from : queue->not_before;
	if (now >= from)
		return true;
	engine_alarm(agent->engine, &queue->alarm, from);
	return false;
}

/* Starts sending the first delivery, or sets the alarm for when it may. */
static void queue_advance(struct delivery_queue *queue)
{
	struct agent *agent = queue->agent;
	const struct receiver *receiver;
	struct store_attempt *request;

	if (queue->state == QUEUE_RECORDING || queue->state == QUEUE_SENDING || !queue->first ||
		agent->stopping)
		return;
	if (!fleet_holds(agent, fleet_shard_of_receiver(queue->receiver))) {
		engine_alarm(agent->engine, &queue->alarm, engine_now(agent->engine) + HOLD_AGAIN);
		return;
	}
	receiver = agent_receiver(agent, queue->receiver);
	if (!receiver || !has_destination(receiver, queue->destination)) {
		queue_unroutable(queue);
		return;
	}
	if (queue->state == QUEUE_UNROUTABLE)
		queue->state = QUEUE_WAITING;
	while (queue->first && !delivery_is_of(&queue->first->delivery, receiver->notifier->name))
		reroute_first(queue);
	if (!queue->first || !may_begin(queue))
		return;
	if (queue->first->begun) {
		start_attempt(queue, receiver);
		return;
	}
	queue->state = QUEUE_RECORDING;
	request = store_attempt_new(begun, queue);
	request->pictured = pictures_wanted(receiver);
	request->delivery.id = queue->first->delivery.id;
	request->delivery.now = agent_now(agent);
	fleet_fence(agent, &request->call, fleet_shard_of_receiver(queue->receiver));
	store_client_call(agent, &request->call);
}

void delivery_queue_open(struct delivery_queue *queue)
{
	queue->alarm = (struct alarm){.call = look_again, .context = queue};
	queue->last = &queue->first;
}

void delivery_queue_close(struct delivery_queue *queue)
{
	arena_free(queue->attempt.arena);
	config_ref_release(queue->config_ref);
	outgoing_free(queue->first);
	free(queue->trouble);
}

void delivery_queue_add(struct delivery_queue *queue, struct outgoing *outgoing)
{
	*queue->last = outgoing;
	queue->last = &outgoing->next;
	if (++queue->count > DELIVERY_MANAGER_QUEUE)
		abandon(queue, &queue->first->next, "dropped", "too many queued messages");
	queue_advance(queue);
}

static bool is_in_hand(const struct delivery_queue *queue)
{
	return queue->state == QUEUE_RECORDING || queue->state == QUEUE_SENDING;
}

bool delivery_queue_has(struct delivery_queue *queue, int64_t delivery)
{
	struct outgoing *outgoing = queue->first;

	while (outgoing && outgoing->delivery.id != delivery)
		outgoing = outgoing->next;
	if (outgoing)
		outgoing->lost = false;
	return outgoing != NULL;
}

void delivery_queue_lose(struct delivery_queue *queue)
{
	bool in_hand = is_in_hand(queue);
	struct outgoing **rest = in_hand ? &queue->first->next : &queue->first;

	while (*rest)
		outgoing_free(unlink_delivery(queue, rest));
	if (in_hand) {
		queue->first->lost = true;
	} else {
		queue->state = QUEUE_WAITING;
		queue->not_before = 0; /* the pause that the receiver requested is in the store */
	}
}

bool delivery_queue_is_busy(const struct delivery_queue *queue)
{
	int64_t pause = queue->not_before - engine_now(queue->agent->engine);

	return is_in_hand(queue) ||
	       (queue->state == QUEUE_WAITING && pause > 0 && pause <= PACE_MOST);
}

void delivery_queue_adopt(struct delivery_queue *queue)
{
	queue->noticed = false;
	if (queue->state == QUEUE_MISCONFIGURED ||
		(queue->state == QUEUE_BACKING_OFF && is_reconfigured(queue)))
		retry_now(queue);
	queue_advance(queue);
}
