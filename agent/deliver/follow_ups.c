/*
 * One follower per receiver, with one follow-up at a time: it reads the message from the store,
 * lets the notifier poll, edit or refresh it, and writes the outcome to the store.
 */
#include "agent/deliver/follow_ups.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/order.h"
#include "agent/base/when.h"
#include "agent/decide/retry.h"
#include "agent/fleet/fleet.h"
#include "agent/runtime/poll.h"

/*
 * ms. LOOK: between polls of the store. LOOK_STANDING: the same for messages to refresh. SPACING:
 * between requests of a receiver that names no pace, 20 a minute. FIX: after a failure that
 * somebody has to fix.
 */
enum {
	LOOK = 5000,
	LOOK_FLEET = 20000, /* in a fleet, whose turns report what others recorded */
	HOLD_AGAIN = 1000,  /* in a fleet: until the receiver's lease is checked again */
	LOOK_STANDING = 60000,
	SPACING = 3000,
	READ_FIRST = 5000,
	READ_LAST = 120000,
	BACKOFF_FIRST = 5000,
	BACKOFF_LAST = 300000,
	FIX = 300000,
	READ_AGE = 20, /* a message is read again after this part of its age */
};

#define READ_FOR (7 * INT64_C(86400000))

/* A follow-up is given up after so many temporary errors of the receiver in a row over so long
 * (ms). One without an answer never is. */
enum { REFUSALS_MOST = 20 };
#define REFUSED_FOR (3 * INT64_C(86400000))

/* A sent message; arrays are by enum follow_up_kind. */
struct watch {
	int64_t id;                          /* the delivery's; first, for searching */
	const char *destination;             /* the watch's own */
	int64_t sent;                        /* ms */
	int64_t at[FOLLOW_UP_KINDS];         /* engine_now: not before */
	bool due[FOLLOW_UP_KINDS];           /* follow-ups that are due */
	bool gone[FOLLOW_UP_KINDS];          /* follow-ups that are no longer possible */
	unsigned refusals[FOLLOW_UP_KINDS];  /* in a row, ... */
	int64_t refused_at[FOLLOW_UP_KINDS]; /* ... engine_now, the first */
};

struct follower {
	struct follow_ups *owner;
	char *receiver;
	struct watch *watches; /* by id */
	size_t count, room;
	struct alarm alarm;
	bool busy;
	int64_t not_before;           /* engine_now */
	int64_t pace;                 /* ms */
	uint64_t fingerprint;         /* of the receiver, when its messages were last refreshed */
	bool missed;                  /* logged as no longer configured */
	unsigned failures;            /* temporary ones in a row */
	bool warned[FOLLOW_UP_KINDS]; /* by kind: a failure that needs a fix was logged */
	/* Of the follow-up in progress. */
	int64_t id;                       /* of the message, whose watch may be gone meanwhile */
	struct store_follow_ups *request; /* has the message; the attempt's arena is its own */
	struct config_ref *config_ref;
	struct attempt attempt;
	struct follow_up follow_up;
	struct follower *next;
};

struct follow_ups {
	struct agent *agent;
	struct poll poll;
	struct follower *followers;
	bool counts;            /* the next poll also lists messages of removed receivers */
	int64_t standing_at;    /* engine_now: the next poll for messages to refresh */
	struct fleet_news news; /* in a fleet, the last */
};

static const struct notifier *notifier_of(const struct receiver *receiver)
{
	return receiver ? notifier_find(receiver->notifier->name) : NULL;
}

/* ms after which the receiver's messages must be refreshed; 0: never. */
static int64_t refresh_of(const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_of(receiver);

	return notifier && notifier->refresh ? notifier->refresh(receiver->options) : 0;
}

/* Whether this agent handles the receiver's follow-ups. */
static bool is_ours(const struct follow_ups *follow_ups, const char *receiver)
{
	return fleet_keeps(follow_ups->agent, fleet_shard_of_receiver(receiver));
}

static void fence(const struct follower *follower, struct store_call *call)
{
	fleet_fence(follower->owner->agent, call, fleet_shard_of_receiver(follower->receiver));
}

/* Whether the receiver has follow-ups of this kind. */
static bool follows(const struct receiver *receiver, enum follow_up_kind kind)
{
	const struct notifier *notifier = notifier_of(receiver);

	switch (kind) {
	case FOLLOW_UP_READ:
		return notifier && notifier->listens && notifier->listens(receiver->options);
	case FOLLOW_UP_AMEND:
		return notifier && notifier->amends && notifier->amends(receiver->options);
	case FOLLOW_UP_REFRESH: return refresh_of(receiver) > 0;
	case FOLLOW_UP_KINDS: break;
	}
	return false;
}

/* The place of the message's watch, or where it would be. */
static size_t place_of(const struct follower *follower, int64_t id)
{
	return order_lower_bound(
		&id, follower->watches, follower->count, sizeof *follower->watches, order_times);
}

static struct watch *watch_of(const struct follower *follower, int64_t id)
{
	struct watch *watch = follower->watches + place_of(follower, id);

	return watch < follower->watches + follower->count && watch->id == id ? watch : NULL;
}

static void advance(void *context);

static void release(struct follower *follower)
{
	if (follower->request)
		store_call_free(&follower->request->call);
	follower->request = NULL;
	config_ref_release(follower->config_ref);
	follower->config_ref = NULL;
}

/* A single pass tries each follow-up once and leaves those that cannot run soon to the next
 * pass. */
static void leave(struct follower *follower, int64_t wait)
{
	int64_t most = engine_now(follower->owner->agent->engine) + RETRY_ONCE;

	for (size_t i = 0; i < follower->count; i++) {
		struct watch *watch = &follower->watches[i];

		for (enum follow_up_kind kind = 0; kind < FOLLOW_UP_KINDS; kind++)
			if (wait > RETRY_ONCE || watch->at[kind] > most ||
				(watch->id == follower->id && kind == follower->follow_up.kind))
				watch->due[kind] = false;
	}
}

/* Ends the follow-up in progress; the follower continues after `wait`. */
static void rest(struct follower *follower, int64_t wait)
{
	struct agent *agent = follower->owner->agent;

	release(follower);
	if (agent->once)
		leave(follower, wait);
	follower->busy = false;
	follower->not_before = engine_now(agent->engine) + wait;
	advance(follower);
}

static const struct followed_message *followed_by(const struct follower *follower)
{
	return &follower->request->messages[0];
}

static void amended(struct store_amended *request)
{
	struct follower *follower = request->call.context;
	struct watch *watch = watch_of(follower, follower->id);
	bool failed;

	/* Triaged meanwhile, or not written: the next poll finds the mark again. */
	if (watch && !request->call.failed)
		watch->due[FOLLOW_UP_AMEND] = false;
	if (watch && request->marked)
		poll_now(&follower->owner->poll);
	failed = request->call.failed;
	store_call_free(&request->call);
	rest(follower, failed ? BACKOFF_LAST : follower->pace);
}

/* The message is edited, or never will be. */
static void settle_amendment(struct follower *follower)
{
	struct store_amended *request = store_amended_new(amended, follower);

	request->delivery = follower->id;
	request->mark = followed_by(follower)->mark;
	request->receipt = arena_strdup(request->call.arena, follower->attempt.receipt);
	fence(follower, &request->call);
	store_client_call(follower->owner->agent, &request->call);
}

static void said(struct store_triage *request)
{
	struct follower *follower = request->call.context;
	const struct follow_up *follow_up = &follower->follow_up;
	bool changed = !request->call.failed && request->changed > 0;

	if (changed || (!request->call.failed && follow_up->state != 0))
		log_event(LEVEL_INFO,
			follow_up->undone ? "reaction to a message removed"
					  : "reaction to a message applied",
			LOG_TEXT("receiver", follower->receiver),
			LOG_TEXT("destination", follower->attempt.destination),
			LOG_TEXT("key", follower->attempt.key),
			LOG_TEXT("person", follow_up->person ? follow_up->person : ""),
			LOG_TEXT("triage", triage_state_names[request->triage.state]),
			LOG_TEXT("instead_of", follow_up->overrides ? follow_up->overrides : ""),
			LOG_INT("changes", request->changed));
	store_call_free(&request->call);
	if (changed)
		agent_hint(follower->owner->agent, HINT_TRIAGE);
	rest(follower, follower->pace);
}

/* One transaction has the triage and the marks that keep a reaction from being applied twice. */
static void submit_triage(struct follower *follower)
{
	const struct follow_up *follow_up = &follower->follow_up;
	struct store_triage *request = store_triage_new(said, follower);
	struct arena *arena = request->call.arena;

	request->message = arena_strdup(arena, follower->attempt.key);
	request->reaction = arena_strdup(arena, follow_up->taken);
	request->triage = (struct triage){
		.state = follow_up->undone ? TRIAGE_OPEN : follow_up->state, .until = -1};
	request->said = follow_up->undone;
	request->version = -1;
	request->actor = (struct actor){.person = arena_strdup(arena, follow_up->person),
		.origin = arena_strdup(arena, follow_up->origin)};
	request->now = follower->attempt.now;
	fence(follower, &request->call);
	store_client_call(follower->owner->agent, &request->call);
}

static void done(struct follower *follower)
{
	struct agent *agent = follower->owner->agent;
	const struct follow_up *follow_up = &follower->follow_up;
	const char *taken = follow_up->taken ? follow_up->taken : "";
	const char *known = followed_by(follower)->reaction;
	struct watch *watch = watch_of(follower, follower->id);
	int64_t now = engine_now(agent->engine), wait;

	follower->failures = 0;
	follower->warned[follow_up->kind] = false;
	if (watch) {
		watch->refusals[follow_up->kind] = 0;
		wait = (agent_now(agent) - watch->sent) / READ_AGE;
		wait = wait < READ_FIRST ? READ_FIRST : wait > READ_LAST ? READ_LAST : wait;
		if (follow_up->kind == FOLLOW_UP_READ)
			watch->at[FOLLOW_UP_READ] = now + wait;
		else /* an edit refreshes the alert, too */
			watch->at[FOLLOW_UP_REFRESH] =
				now + refresh_of(agent_receiver(agent, follower->receiver));
	}
	if (follow_up->kind == FOLLOW_UP_AMEND) {
		log_event(LEVEL_INFO, "message updated", LOG_TEXT("receiver", follower->receiver),
			LOG_TEXT("destination", follower->attempt.destination),
			LOG_TEXT("key", follower->attempt.key));
		settle_amendment(follower);
	} else if (follow_up->kind == FOLLOW_UP_READ &&
		   (follow_up->state != 0 || follow_up->undone != 0 ||
			   strcmp(taken, known ? known : "") != 0))
		submit_triage(follower);
	else
		rest(follower, follower->pace);
}

static const char *const failures[] = {[FOLLOW_UP_READ] = "cannot read reactions to messages",
	[FOLLOW_UP_AMEND] = "cannot update messages",
	[FOLLOW_UP_REFRESH] = "cannot refresh open alerts"};

static void warn(const struct follower *follower, const char *what, const struct error *error)
{
	log_event(LEVEL_WARN, what, LOG_TEXT("receiver", follower->receiver),
		LOG_TEXT("key", follower->attempt.key), LOG_TEXT("problem", error->text));
}

static void sent_anew(struct store_send_anew *request)
{
	struct follower *follower = request->call.context;

	if (!request->call.failed && request->queued)
		agent_hint(follower->owner->agent, HINT_DELIVERIES);
	store_call_free(&request->call);
	rest(follower, follower->pace);
}

static bool stands(const struct follow_up *follow_up)
{
	for (size_t i = 0; i < follow_up->count; i++)
		if (!announced_is_over(&follow_up->changes[i]))
			return true;
	return false;
}

/* The message is gone, or the receiver does not allow edits. */
static void give_up(struct follower *follower, const struct error *error)
{
	enum follow_up_kind kind = follower->follow_up.kind;
	struct watch *watch = watch_of(follower, follower->id);
	struct store_send_anew *request;

	if (watch)
		watch->gone[kind] = kind != FOLLOW_UP_AMEND;
	if (kind == FOLLOW_UP_READ) {
		log_event(LEVEL_DEBUG, "stopped reading reactions to a message",
			LOG_TEXT("receiver", follower->receiver),
			LOG_TEXT("key", follower->attempt.key), LOG_TEXT("problem", error->text));
		rest(follower, follower->pace);
		return;
	}
	if (follower->follow_up.deleted && stands(&follower->follow_up)) {
		request = store_send_anew_new(sent_anew, follower);
		warn(follower, "message deleted while its changes stand: sending it again", error);
		request->delivery = follower->id;
		fence(follower, &request->call);
		store_client_call(follower->owner->agent, &request->call);
		return;
	}
	warn(follower, kind == FOLLOW_UP_AMEND ? "message not updated" : "open alert not refreshed",
		error);
	if (kind == FOLLOW_UP_AMEND)
		settle_amendment(follower);
	else
		rest(follower, follower->pace);
}

/* Token, scope or channel: only this destination's messages wait, as others may work. */
static void wait_for_fix(struct follower *follower, const struct error *error)
{
	int64_t then = engine_now(follower->owner->agent->engine) + FIX;
	enum follow_up_kind kind = follower->follow_up.kind;

	if (!follower->warned[kind])
		warn(follower, failures[kind], error);
	follower->warned[kind] = true;
	follower->owner->agent->misconfigured |= follower->owner->agent->once;
	for (size_t i = 0; i < follower->count; i++) {
		struct watch *watch = &follower->watches[i];

		/* Last, as this message alone may be the cause. */
		if (strcmp(watch->destination, follower->attempt.destination) == 0)
			watch->at[kind] = then + (watch->id == follower->id);
	}
	rest(follower, follower->pace);
}

/* Whether the message was refused for so long that it will never be accepted. */
static bool is_hopeless(const struct follower *follower)
{
	enum follow_up_kind kind = follower->follow_up.kind;
	struct watch *watch = watch_of(follower, follower->id);
	int64_t now = engine_now(follower->owner->agent->engine);

	if (!watch || !follower->attempt.answered)
		return false;
	if (watch->refusals[kind]++ == 0)
		watch->refused_at[kind] = now;
	return watch->refusals[kind] >= REFUSALS_MOST &&
	       now - watch->refused_at[kind] >= REFUSED_FOR;
}

static void try_again(struct follower *follower, int64_t asked, const struct error *error)
{
	struct watch *watch = watch_of(follower, follower->id);
	int64_t wait;

	if (follower->failures++ == 0)
		warn(follower, failures[follower->follow_up.kind], error);
	follower->owner->agent->incomplete |= follower->owner->agent->once;
	wait = BACKOFF_FIRST;
	for (unsigned i = 1; i < follower->failures && wait < BACKOFF_LAST; i++)
		wait *= 2;
	wait = wait > BACKOFF_LAST ? BACKOFF_LAST : wait;
	if (asked >= 0)
		wait = asked > RETRY_WISH ? RETRY_WISH : asked;
	wait = wait > follower->pace ? wait : follower->pace;
	if (watch) /* this message alone may be the cause, so another goes next */
		watch->at[follower->follow_up.kind] =
			engine_now(follower->owner->agent->engine) + wait + follower->pace;
	rest(follower, wait);
}

static void attempt_ended(
	struct attempt *attempt, bool carried_out, const struct error *error, void *context)
{
	struct follower *follower = context;

	if (carried_out)
		done(follower);
	else if (attempt->retry && !is_hopeless(follower))
		try_again(follower, attempt->retry_after, error);
	else if (attempt->retry || follower->follow_up.gone || error->kind != ERROR_USAGE)
		give_up(follower, error);
	else
		wait_for_fix(follower, error);
}

static const struct announced_change *all_told(
	struct agent *agent, struct arena *arena, const struct told_record *told, size_t count)
{
	struct announced_change *changes = arena_array(arena, count, sizeof *changes);

	for (size_t i = 0; i < count; i++) {
		changes[i] = announce_now(arena, agent->config, &told[i].record, agent_now(agent));
		changes[i].told = told[i].time;
	}
	return changes;
}

/* Takes the message over into the attempt. */
static void prepare(struct follower *follower, const struct receiver *receiver)
{
	struct agent *agent = follower->owner->agent;
	struct arena *arena = follower->request->call.arena;
	const struct followed_message *followed = followed_by(follower);

	follower->follow_up.changes = all_told(agent, arena, followed->told, followed->count);
	follower->follow_up.count = followed->count;
	follower->follow_up.joined =
		all_told(agent, arena, followed->joined, followed->joined_count);
	follower->follow_up.joined_count = followed->joined_count;
	follower->follow_up.amended = followed->amended > 0;
	follower->follow_up.taken = followed->reaction;
	follower->config_ref = agent->config_ref ? config_ref_hold(agent->config_ref) : NULL;
	follower->attempt = (struct attempt){.arena = arena,
		.follow_up = &follower->follow_up,
		.options = receiver->options,
		.destination = followed->message.destination,
		.key = followed->message.key,
		.payload = followed->message.payload,
		.made = followed->message.now,
		.now = agent_now(agent),
		.receipt = followed->message.receipt,
		.retry_after = -1};
}

/* The message's current row, if it still exists. */
static void fetched(struct store_follow_ups *request)
{
	struct follower *follower = request->call.context;
	struct agent *agent = follower->owner->agent;
	const struct receiver *receiver = agent_receiver(agent, follower->receiver);
	enum follow_up_kind kind = follower->follow_up.kind;
	struct watch *watch = watch_of(follower, follower->id);
	bool usable = !agent->stopping && receiver && follows(receiver, kind) &&
		      fleet_holds(agent, fleet_shard_of_receiver(follower->receiver));

	follower->request = request;
	if (request->call.failed) {
		rest(follower, BACKOFF_FIRST);
		return;
	}
	usable = usable && request->count > 0 && request->messages[0].message.receipt &&
		 delivery_is_of(&request->messages[0].message, receiver->notifier->name);
	if (usable)
		prepare(follower, receiver);
	if (usable && kind == FOLLOW_UP_AMEND)
		usable = followed_by(follower)->mark > 0;
	else if (usable && kind == FOLLOW_UP_REFRESH)
		usable = stands(&follower->follow_up);
	if (usable) {
		engine_deliver(agent->engine, notifier_of(receiver), &follower->attempt,
			attempt_ended, follower);
		return;
	}
	if (watch && kind == FOLLOW_UP_READ)
		watch->gone[kind] = true;
	else if (watch)
		watch->due[kind] = false;
	rest(follower, 0);
}

/* The next message: the kinds take turns, and of each kind the message that has waited longest.
 * NULL: none is due before `due`. */
static struct watch *next_of(struct follower *follower, const struct receiver *receiver,
	enum follow_up_kind *kind, int64_t *due)
{
	int64_t now = engine_now(follower->owner->agent->engine);
	struct watch *first[FOLLOW_UP_KINDS] = {0};

	*due = INT64_MAX;
	for (enum follow_up_kind at = 0; at < FOLLOW_UP_KINDS; at++) {
		if (!follows(receiver, at))
			continue;
		for (size_t i = 0; i < follower->count; i++) {
			struct watch *watch = &follower->watches[i];

			if (watch->due[at] && !watch->gone[at] &&
				(!first[at] || watch->at[at] < first[at]->at[at]))
				first[at] = watch;
		}
		if (first[at] && first[at]->at[at] < *due)
			*due = first[at]->at[at];
	}
	for (unsigned step = 1; step <= FOLLOW_UP_KINDS; step++) {
		*kind = (follower->follow_up.kind + step) % FOLLOW_UP_KINDS;
		if (first[*kind] && first[*kind]->at[*kind] <= now)
			return first[*kind];
	}
	return NULL;
}

/* Starts the next follow-up, or sets the alarm for it. */
static void advance(void *context)
{
	struct follower *follower = context;
	struct agent *agent = follower->owner->agent;
	const struct receiver *receiver = agent_receiver(agent, follower->receiver);
	struct store_follow_ups *request;
	enum follow_up_kind kind;
	struct watch *watch;
	int64_t due;

	if (follower->busy || agent->stopping || !receiver || follower->count == 0)
		return;
	if (!fleet_holds(agent, fleet_shard_of_receiver(follower->receiver))) {
		engine_alarm(
			agent->engine, &follower->alarm, engine_now(agent->engine) + HOLD_AGAIN);
		return;
	}
	follower->pace = notifier_of(receiver)->pace;
	if (follower->pace == 0)
		follower->pace = SPACING;
	watch = next_of(follower, receiver, &kind, &due);
	if (due < follower->not_before)
		due = follower->not_before;
	if (!watch || follower->not_before > engine_now(agent->engine)) {
		if (due != INT64_MAX)
			engine_alarm(agent->engine, &follower->alarm, due);
		return;
	}
	follower->busy = true;
	follower->id = watch->id;
	follower->follow_up = (struct follow_up){.kind = kind};
	request = store_follow_ups_new(fetched, follower);
	request->delivery = watch->id;
	store_client_call(agent, &request->call);
}

static struct follower *follower_of(struct follow_ups *follow_ups, const char *receiver)
{
	struct follower *follower = follow_ups->followers;

	while (follower && strcmp(follower->receiver, receiver) != 0)
		follower = follower->next;
	if (follower)
		return follower;
	follower = memory_new(1, sizeof *follower);
	*follower = (struct follower){.owner = follow_ups,
		.receiver = memory_strdup(receiver),
		.next = follow_ups->followers};
	follower->alarm = (struct alarm){.call = advance, .context = follower};
	return follow_ups->followers = follower;
}

static struct watch *find_or_add(struct follower *follower, const struct delivery *message)
{
	size_t at = place_of(follower, message->id);

	if (watch_of(follower, message->id))
		return &follower->watches[at];
	follower->watches = memory_grow(
		follower->watches, &follower->room, follower->count + 1, sizeof *follower->watches);
	memmove(&follower->watches[at + 1], &follower->watches[at],
		(follower->count++ - at) * sizeof *follower->watches);
	follower->watches[at] = (struct watch){.id = message->id,
		.destination = memory_strdup(message->destination),
		.sent = message->now};
	return &follower->watches[at];
}

/* Takes over a row of the store's lists. */
static void take_row(struct follow_ups *follow_ups, const struct followed_message *followed)
{
	struct agent *agent = follow_ups->agent;
	int64_t now = engine_now(agent->engine), refresh, left;
	struct follower *follower;
	struct watch *watch;

	if (!is_ours(follow_ups, followed->message.receiver))
		return;
	follower = follower_of(follow_ups, followed->message.receiver);
	watch = find_or_add(follower, &followed->message);
	if (followed->stands && watch->at[FOLLOW_UP_REFRESH] == 0) {
		/* Its last refresh is unknown: at once, unless it was sent just now. */
		refresh = refresh_of(agent_receiver(agent, follower->receiver));
		left = followed->message.now + refresh - agent_now(agent);
		left = left < refresh ? left : refresh;
		watch->at[FOLLOW_UP_REFRESH] = now + (left > 0 ? left : 0);
	}
	watch->due[FOLLOW_UP_READ] |= followed->answers;
	/* A single pass leaves a refresh for which it has no time to wait to the next one. */
	watch->due[FOLLOW_UP_REFRESH] |=
		followed->stands &&
		(!agent->once || watch->at[FOLLOW_UP_REFRESH] <= now + RETRY_ONCE);
	watch->due[FOLLOW_UP_AMEND] |= followed->mark > 0;
}

/* Forgets messages without due follow-ups; `all`: every message. */
static void settle_watches(struct follower *follower, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < follower->count; i++) {
		struct watch *watch = &follower->watches[i];

		if (!all && (watch->due[FOLLOW_UP_READ] || watch->due[FOLLOW_UP_AMEND] ||
				    watch->due[FOLLOW_UP_REFRESH]))
			follower->watches[kept++] = *watch;
		else
			free((void *)(uintptr_t)watch->destination);
	}
	follower->count = kept;
}

static void take_all(struct follow_ups *follow_ups, const struct store_follow_ups *request)
{
	for (struct follower *follower = follow_ups->followers; follower; follower = follower->next)
		for (size_t i = 0; i < follower->count; i++) {
			bool *due = follower->watches[i].due;

			due[FOLLOW_UP_READ] = due[FOLLOW_UP_AMEND] = false;
			due[FOLLOW_UP_REFRESH] &= request->refreshing.count == 0;
		}
	if (request->count > 0) /* by their first member, the id */
		qsort(request->messages, request->count, sizeof *request->messages, order_times);
	for (size_t i = 0; i < request->count; i++)
		take_row(follow_ups, &request->messages[i]);
	for (struct follower *follower = follow_ups->followers; follower;
		follower = follower->next) {
		settle_watches(follower, false);
		advance(follower);
	}
}

/* A receiver that is no longer configured keeps showing its alerts until it is back. Its messages
 * and their pending edits are kept as long as others. */
static void warn_of_removed(struct follow_ups *follow_ups, const struct store_follow_ups *request)
{
	for (size_t i = 0; i < request->standing_count; i++) {
		const struct standing_messages *at = &request->standing[i];
		struct follower *follower;
		bool missing = !agent_receiver(follow_ups->agent, at->receiver);

		if (!is_ours(follow_ups, at->receiver))
			continue;
		follower = follower_of(follow_ups, at->receiver);
		if (missing && !follower->missed)
			log_event(LEVEL_WARN,
				"receiver no longer configured: its messages about open changes "
				"are no longer updated",
				LOG_TEXT("receiver", at->receiver), LOG_INT("messages", at->count));
		follower->missed = missing;
	}
}

/* ms until the next poll for messages to refresh, well before a refresh is due. */
static int64_t standing_wait(const struct config *config)
{
	int64_t wait = LOOK_STANDING;

	for (size_t i = 0; i < config->receiver_count; i++) {
		int64_t refresh = refresh_of(&config->receivers[i]);

		if (refresh > 0 && refresh / 4 < wait)
			wait = refresh / 4;
	}
	return wait;
}

static void looked(struct store_follow_ups *request)
{
	struct follow_ups *follow_ups = request->call.context;
	struct agent *agent = follow_ups->agent;
	int64_t wait = standing_wait(agent->config);

	if (!request->call.failed) {
		warn_of_removed(follow_ups, request);
		take_all(follow_ups, request);
	}
	store_call_free(&request->call);
	if (!agent->fleet || wait < LOOK)
		wait = LOOK;
	poll_answered(&follow_ups->poll, wait < LOOK_FLEET ? wait : LOOK_FLEET);
}

/* The receivers with follow-ups of this kind: this agent's, or all; in a single pass and of all
 * only those that hold an alert until it is resolved. */
static struct strings receivers_with(const struct follow_ups *follow_ups,
	const struct config *config, struct arena *arena, enum follow_up_kind kind)
{
	const char **names = arena_array(arena, config->receiver_count, sizeof *names);
	bool brief = follow_ups && !follow_ups->agent->once;
	size_t count = 0;

	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];

		if (follows(receiver, kind) && (brief || !notifier_of(receiver)->brief) &&
			(!follow_ups || is_ours(follow_ups, receiver->name)))
			names[count++] = arena_strdup(arena, receiver->name);
	}
	return (struct strings){names, count};
}

struct strings follow_ups_keeping(const struct config *config, struct arena *arena)
{
	return receivers_with(NULL, config, arena, FOLLOW_UP_AMEND);
}

static void ask(void *context)
{
	struct follow_ups *follow_ups = context;
	struct agent *agent = follow_ups->agent;
	const struct config *config = agent->config;
	struct store_follow_ups *request;
	struct arena *arena;
	int64_t now = engine_now(agent->engine);

	request = store_follow_ups_new(looked, follow_ups);
	arena = request->call.arena;
	request->amending = receivers_with(follow_ups, config, arena, FOLLOW_UP_AMEND);
	request->listening = receivers_with(follow_ups, config, arena, FOLLOW_UP_READ);
	if (now >= follow_ups->standing_at) {
		request->refreshing = receivers_with(follow_ups, config, arena, FOLLOW_UP_REFRESH);
		follow_ups->standing_at = now + standing_wait(agent->config);
	}
	request->since = agent_now(agent) - READ_FOR;
	request->count_standing = follow_ups->counts;
	if (request->amending.count + request->listening.count + request->refreshing.count == 0 &&
		!follow_ups->counts) {
		store_call_free(&request->call);
		poll_answered(&follow_ups->poll, WHEN_NEVER);
		return;
	}
	follow_ups->counts = false;
	store_client_call(agent, &request->call);
}

/* In a fleet */

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct follow_ups *follow_ups = context;

	(void)shards, (void)restored;
	follow_ups->standing_at = engine_now(follow_ups->agent->engine);
	follow_ups->counts = !follow_ups->agent->once;
	poll_now(&follow_ups->poll);
}

/* A follow-up in progress completes, but its result is not recorded. */
static void lost(void *context, const struct fleet_shards *shards)
{
	struct follow_ups *follow_ups = context;

	for (struct follower *follower = follow_ups->followers; follower; follower = follower->next)
		if (shards->has[fleet_shard_of_receiver(follower->receiver)])
			settle_watches(follower, true);
}

static bool is_busy(void *context, int shard)
{
	const struct follow_ups *follow_ups = context;

	for (const struct follower *follower = follow_ups->followers; follower;
		follower = follower->next)
		if (follower->busy && fleet_shard_of_receiver(follower->receiver) == shard)
			return true;
	return false;
}

/* Records of other agents may concern messages of this agent's receivers. */
static void news(void *context, const struct fleet_news *news)
{
	struct follow_ups *follow_ups = context;
	const struct fleet_news *last = &follow_ups->news;
	bool more = news->last_audit != last->last_audit ||
		    news->due.events + news->due.held != last->due.events + last->due.held;

	follow_ups->news = *news;
	if (more && !follow_ups->agent->once)
		poll_now(&follow_ups->poll);
}

/* Retries failures; refreshes open alerts if the receiver's configuration changed. */
static void retry(struct follower *follower)
{
	const struct agent *agent = follower->owner->agent;
	const struct receiver *receiver = agent_receiver(agent, follower->receiver);
	int64_t now = engine_now(agent->engine);
	bool other = receiver && receiver->fingerprint != follower->fingerprint;

	if (receiver)
		follower->fingerprint = receiver->fingerprint;
	for (enum follow_up_kind kind = 0; kind < FOLLOW_UP_KINDS; kind++) {
		follower->warned[kind] = false;
		for (size_t i = 0; i < follower->count; i++) {
			struct watch *watch = &follower->watches[i];

			if (watch->at[kind] > now &&
				(kind != FOLLOW_UP_REFRESH || other || watch->gone[kind]))
				watch->at[kind] = now;
			watch->gone[kind] = false;
			watch->refusals[kind] = 0;
		}
	}
}

static void adopt(void *context)
{
	struct follow_ups *follow_ups = context;

	for (struct follower *follower = follow_ups->followers; follower; follower = follower->next)
		retry(follower);
	follow_ups->standing_at = engine_now(follow_ups->agent->engine);
	follow_ups->counts = true;
}

static void look(void *follow_ups)
{
	follow_ups_look(follow_ups);
}

struct follow_ups *follow_ups_new(struct agent *agent)
{
	struct follow_ups *follow_ups = memory_new(1, sizeof *follow_ups);

	*follow_ups = (struct follow_ups){.agent = agent,
		.poll = {.agent = agent, .ask = ask, .context = follow_ups},
		.counts = !agent->once};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained,
				    .lost = lost,
				    .is_busy = is_busy,
				    .news = news,
				    .context = follow_ups});
	agent_listen(agent, HINT_TRIAGE, look, follow_ups);
	agent_listen(agent, HINT_CONFIGURATION, adopt, follow_ups);
	agent_listen(agent, HINT_LOOK, look, follow_ups);
	return follow_ups;
}

void follow_ups_free(struct follow_ups *follow_ups)
{
	if (!follow_ups)
		return;
	for (struct follower *follower = follow_ups->followers, *next; follower; follower = next) {
		next = follower->next;
		settle_watches(follower, true);
		free(follower->watches);
		release(follower);
		free(follower->receiver);
		free(follower);
	}
	free(follow_ups);
}

void follow_ups_look(struct follow_ups *follow_ups)
{
	poll_now(&follow_ups->poll);
}
