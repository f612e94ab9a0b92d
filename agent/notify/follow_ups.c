/*
 * A follower per receiver, which does one thing after the other: reads the message from the store,
 * has the notifier ask or edit, writes the outcome to the store.
 */
#include "agent/notify/follow_ups.h"

#include <stdlib.h>
#include <string.h>

#include "agent/notify/retry_policy.h"

/* ms. LOOK: between two looks into the store. SPACING: between two requests of a receiver, 20 a
 * minute. FIX: after a failure that somebody has to fix. */
enum {
	LOOK = 5000,
	SPACING = 3000,
	READ_FIRST = 5000,
	READ_LAST = 120000,
	BACKOFF_FIRST = 5000,
	BACKOFF_LAST = 300000,
	FIX = 300000,
	READ_AGE = 20, /* a message is read again after this part of its age */
};

#define READ_FOR (7 * INT64_C(86400000))

/* A sent message. */
struct watch {
	int64_t id;              /* the delivery's */
	const char *destination; /* the follower's */
	int64_t sent;            /* ms */
	int64_t read_at;         /* engine_now: not read before */
	int64_t amend_at;        /* engine_now: not edited before */
	bool reads, amends;      /* what is to be done */
	bool gone;               /* it cannot be read any more */
	bool listed;             /* in the store's last list */
	struct watch *next;
};

struct follower {
	struct follow_ups *owner;
	char *receiver;
	struct watch *watches;
	struct alarm alarm;
	bool busy;
	int64_t not_before;           /* engine_now */
	unsigned failures;            /* in a row, that may pass */
	bool warned[FOLLOW_UP_KINDS]; /* by kind: a failure that somebody has to fix was logged */
	/* Of what it does. */
	int64_t id; /* of the message; its watch may be gone meanwhile */
	int64_t mark;
	const char *key, *taken; /* in the attempt's arena */
	struct config_ref *config_ref;
	struct attempt attempt;
	struct follow_up follow_up;
	struct follower *next;
};

struct follow_ups {
	struct agent *agent;
	void (*triaged)(void *context);
	void *context;
	struct follower *followers;
	struct alarm alarm;
	bool looking, again;
	int64_t look_at; /* engine_now */
};

static const struct notifier *notifier_of(const struct receiver *receiver)
{
	return receiver ? notifier_find(receiver->notifier->name) : NULL;
}

static bool amends(const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_of(receiver);

	return notifier && notifier->amends && notifier->amends(receiver->options);
}

static bool listens(const struct receiver *receiver)
{
	const struct notifier *notifier = notifier_of(receiver);

	return notifier && notifier->listens && notifier->listens(receiver->options);
}

static struct watch *watch_of(struct follower *follower, int64_t id)
{
	struct watch *watch = follower->watches;

	while (watch && watch->id != id)
		watch = watch->next;
	return watch;
}

static void look(void *context);
static void advance(void *context);

static void look_soon(struct follow_ups *follow_ups)
{
	follow_ups->look_at = engine_now(follow_ups->agent->engine);
	engine_alarm(follow_ups->agent->engine, &follow_ups->alarm, follow_ups->look_at);
}

/* When a message is to be read again. */
static int64_t read_again(const struct agent *agent, const struct watch *watch)
{
	int64_t wait = (agent_now(agent) - watch->sent) / READ_AGE;

	wait = wait < READ_FIRST ? READ_FIRST : wait > READ_LAST ? READ_LAST : wait;
	return engine_now(agent->engine) + wait;
}

/* Ends what the follower does; it goes on after a while. */
static void rest(struct follower *follower, int64_t wait)
{
	struct agent *agent = follower->owner->agent;

	arena_free(follower->attempt.arena);
	follower->attempt.arena = NULL;
	config_ref_release(follower->config_ref);
	follower->config_ref = NULL;
	follower->busy = false;
	follower->not_before = engine_now(agent->engine) + wait;
	advance(follower);
}

static void amended(struct store_amended *request)
{
	struct follower *follower = request->call.context;
	struct watch *watch = watch_of(follower, follower->id);

	/* Said meanwhile, or not written: the next look finds the mark again. */
	if (watch && !request->call.failed)
		watch->amends = false;
	if (watch && request->marked)
		look_soon(follower->owner);
	store_call_free(&request->call);
	rest(follower, SPACING);
}

/* The message is edited, or never will be. */
static void settle_amendment(struct follower *follower)
{
	struct store_amended *request = store_amended_new(amended, follower);

	request->delivery = follower->id;
	request->mark = follower->mark;
	store_client_call(follower->owner->agent, &request->call);
}

static void log_said(const struct follower *follower, const struct store_triage *request)
{
	const struct follow_up *follow_up = &follower->follow_up;

	if (follow_up->state == 0 && request->changed == 0)
		return;
	log_event(LEVEL_INFO,
		follow_up->undone ? "an answer to a message was taken back"
				  : "an answer to a message was taken",
		LOG_TEXT("receiver", follower->receiver),
		LOG_TEXT("destination", follower->attempt.destination),
		LOG_TEXT("key", follower->key),
		LOG_TEXT("person", follow_up->person ? follow_up->person : ""),
		LOG_TEXT("triage", triage_state_names[request->triage.state]),
		LOG_TEXT("instead_of", follow_up->overrides ? follow_up->overrides : ""),
		LOG_INT("changes", request->changed));
}

static void said(struct store_triage *request)
{
	struct follower *follower = request->call.context;
	struct follow_ups *follow_ups = follower->owner;
	bool changed = !request->call.failed && request->changed > 0;

	if (!request->call.failed)
		log_said(follower, request);
	store_call_free(&request->call);
	if (changed) {
		look_soon(follow_ups);
		follow_ups->triaged(follow_ups->context);
	}
	rest(follower, SPACING);
}

/* One transaction has what was said and the notes by which it is not taken again. */
static void say(struct follower *follower)
{
	const struct follow_up *follow_up = &follower->follow_up;
	struct store_triage *request = store_triage_new(said, follower);
	struct arena *arena = request->call.arena;

	request->message = arena_strdup(arena, follower->key);
	request->reaction = arena_strdup(arena, follow_up->taken);
	request->triage = (struct triage){
		.state = follow_up->undone ? TRIAGE_OPEN : follow_up->state, .until = -1};
	request->said = follow_up->undone;
	request->version = -1;
	request->actor = (struct actor){.person = arena_strdup(arena, follow_up->person),
		.origin = arena_strdup(arena, follow_up->origin)};
	request->now = follower->attempt.now;
	store_client_call(follower->owner->agent, &request->call);
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static void done(struct follower *follower)
{
	struct watch *watch = watch_of(follower, follower->id);
	const struct follow_up *follow_up = &follower->follow_up;

	follower->failures = 0;
	follower->warned[follow_up->kind] = false;
	if (follow_up->kind == FOLLOW_UP_AMEND) {
		settle_amendment(follower);
		return;
	}
	if (watch)
		watch->read_at = read_again(follower->owner->agent, watch);
	if (follow_up->state != 0 || follow_up->undone != 0 ||
		!same_text(follow_up->taken, follower->taken))
		say(follower);
	else
		rest(follower, SPACING);
}

static const char *const failures[] = {[FOLLOW_UP_READ] = "cannot read answers to messages",
	[FOLLOW_UP_AMEND] = "cannot show the triage in messages",
	[FOLLOW_UP_REFRESH] = "cannot say again what still stands"};

static void warn(const struct follower *follower, const char *what, const struct error *error)
{
	log_event(LEVEL_WARN, what, LOG_TEXT("receiver", follower->receiver),
		LOG_TEXT("key", follower->key), LOG_TEXT("problem", error->text));
}

/* The message is gone, or the receiver never lets it be edited. */
static void give_up(struct follower *follower, const struct error *error)
{
	struct watch *watch = watch_of(follower, follower->id);

	if (follower->follow_up.kind == FOLLOW_UP_AMEND) {
		warn(follower, "the triage is not shown in a message", error);
		settle_amendment(follower);
		return;
	}
	log_event(LEVEL_DEBUG, "answers to a message are not read any more",
		LOG_TEXT("receiver", follower->receiver), LOG_TEXT("key", follower->key),
		LOG_TEXT("problem", error->text));
	if (watch)
		watch->gone = true;
	rest(follower, SPACING);
}

/* Token, scope or channel: the messages of the destination wait, as others may be well. */
static void wait_for_fix(struct follower *follower, const struct error *error)
{
	int64_t then = engine_now(follower->owner->agent->engine) + FIX;
	enum follow_up_kind kind = follower->follow_up.kind;

	if (!follower->warned[kind])
		warn(follower, failures[kind], error);
	follower->warned[kind] = true;
	for (struct watch *watch = follower->watches; watch; watch = watch->next) {
		if (strcmp(watch->destination, follower->attempt.destination) != 0)
			continue;
		if (kind == FOLLOW_UP_READ)
			watch->read_at = then;
		else
			watch->amend_at = then;
	}
	rest(follower, SPACING);
}

static int64_t backoff(const struct follower *follower)
{
	int64_t wait = BACKOFF_FIRST;

	for (unsigned i = 1; i < follower->failures && wait < BACKOFF_LAST; i++)
		wait *= 2;
	return wait > BACKOFF_LAST ? BACKOFF_LAST : wait;
}

/* The failure may be the message's own, so another one has the next turn. */
static void put_off(struct follower *follower, int64_t until)
{
	struct watch *watch = watch_of(follower, follower->id);

	if (watch && follower->follow_up.kind == FOLLOW_UP_AMEND)
		watch->amend_at = until;
	else if (watch)
		watch->read_at = until;
}

static void try_again(struct follower *follower, int64_t asked, const struct error *error)
{
	int64_t wait;

	if (follower->failures++ == 0)
		warn(follower, failures[follower->follow_up.kind], error);
	wait = asked >= 0 ? asked : backoff(follower);
	if (wait > RETRY_POLICY_WISH)
		wait = RETRY_POLICY_WISH;
	wait = wait > SPACING ? wait : SPACING;
	put_off(follower, engine_now(follower->owner->agent->engine) + wait + SPACING);
	rest(follower, wait);
}

static void attempt_ended(
	struct attempt *attempt, bool carried_out, const struct error *error, void *context)
{
	struct follower *follower = context;

	if (carried_out)
		done(follower);
	else if (attempt->retry)
		try_again(follower, attempt->retry_after, error);
	else if (follower->follow_up.gone)
		give_up(follower, error);
	else
		wait_for_fix(follower, error);
}

static void begin(struct follower *follower, const struct receiver *receiver,
	const struct followed_message *followed)
{
	struct agent *agent = follower->owner->agent;
	struct arena *arena = arena_new();
	struct told_change *changes = arena_array(arena, followed->count, sizeof *changes);

	for (size_t i = 0; i < followed->count; i++) {
		const struct triage *from = &followed->triages[i];

		changes[i].triage = *from;
		changes[i].triage.owner = arena_strdup(arena, from->owner);
		changes[i].triage.note = arena_strdup(arena, from->note);
		changes[i].triage.link = arena_strdup(arena, from->link);
		changes[i].triage.person = arena_strdup(arena, from->person);
	}
	follower->mark = followed->mark;
	follower->key = arena_strdup(arena, followed->message.key);
	follower->taken = arena_strdup(arena, followed->reaction);
	follower->follow_up.changes = changes;
	follower->follow_up.sent = followed->message.now;
	follower->follow_up.count = followed->count;
	follower->follow_up.taken = follower->taken;
	follower->config_ref = agent->config_ref ? config_ref_hold(agent->config_ref) : NULL;
	follower->attempt = (struct attempt){.arena = arena,
		.follow_up = &follower->follow_up,
		.options = receiver->options,
		.destination = arena_strdup(arena, followed->message.destination),
		.key = follower->key,
		.payload = arena_strdup(arena, followed->message.payload),
		.now = agent_now(agent),
		.receipt = arena_strdup(arena, followed->message.receipt),
		.retry_after = -1};
	engine_deliver(
		agent->engine, notifier_of(receiver), &follower->attempt, attempt_ended, follower);
}

/* The message as it is in the store, if it is there still. */
static void fetched(struct store_follow_ups *request)
{
	struct follower *follower = request->call.context;
	struct agent *agent = follower->owner->agent;
	const struct receiver *receiver = agent_receiver(agent, follower->receiver);
	bool amend = follower->follow_up.kind == FOLLOW_UP_AMEND;
	struct watch *watch = watch_of(follower, follower->id);
	const struct followed_message *followed = request->count > 0 ? &request->messages[0] : NULL;

	if (request->call.failed) {
		rest(follower, BACKOFF_FIRST);
	} else if (!agent->stopping && receiver && followed && followed->message.receipt &&
		   (amend ? amends(receiver) && followed->mark > 0 : listens(receiver))) {
		begin(follower, receiver, followed);
	} else {
		if (watch && amend)
			watch->amends = false;
		else if (watch)
			watch->gone = true;
		rest(follower, 0);
	}
	store_call_free(&request->call);
}

static void fetch(struct follower *follower, const struct watch *watch, enum follow_up_kind kind)
{
	struct store_follow_ups *request = store_follow_ups_new(fetched, follower);

	follower->busy = true;
	follower->id = watch->id;
	follower->follow_up = (struct follow_up){.kind = kind};
	request->delivery = watch->id;
	store_client_call(follower->owner->agent, &request->call);
}

/* The message whose turn it is, to be edited and to be read in turn, the one that waits for longest
 * first. NULL: none yet; `due` is when there is one. */
static struct watch *next_of(struct follower *follower, const struct receiver *receiver,
	enum follow_up_kind *kind, int64_t *due)
{
	bool amending = amends(receiver), listening = listens(receiver);
	struct watch *amend = NULL, *read = NULL;
	int64_t now = engine_now(follower->owner->agent->engine);

	for (struct watch *watch = follower->watches; watch; watch = watch->next) {
		if (amending && watch->amends && (!amend || watch->amend_at < amend->amend_at))
			amend = watch;
		if (listening && watch->reads && !watch->gone &&
			(!read || watch->read_at < read->read_at))
			read = watch;
	}
	*due = INT64_MAX;
	if (amend)
		*due = amend->amend_at;
	if (read && read->read_at < *due)
		*due = read->read_at;
	if (*due > now)
		return NULL;
	if (amend && amend->amend_at > now)
		amend = NULL;
	if (read && read->read_at > now)
		read = NULL;
	*kind = amend && (!read || follower->follow_up.kind == FOLLOW_UP_READ) ? FOLLOW_UP_AMEND
									       : FOLLOW_UP_READ;
	return *kind == FOLLOW_UP_AMEND ? amend : read;
}

/* Begins what is due, or sets the alarm for it. */
static void advance(void *context)
{
	struct follower *follower = context;
	struct agent *agent = follower->owner->agent;
	const struct receiver *receiver = agent_receiver(agent, follower->receiver);
	enum follow_up_kind kind;
	struct watch *watch;
	int64_t due;

	if (follower->busy || agent->stopping || !receiver)
		return;
	watch = next_of(follower, receiver, &kind, &due);
	if (due < follower->not_before)
		due = follower->not_before;
	if (watch && follower->not_before <= engine_now(agent->engine))
		fetch(follower, watch, kind);
	else if (due != INT64_MAX)
		engine_alarm(agent->engine, &follower->alarm, due);
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

static void free_watch(struct watch *watch)
{
	free((void *)(uintptr_t)watch->destination);
	free(watch);
}

/* Takes over a row of the store's list. */
static void take(struct follow_ups *follow_ups, const struct followed_message *followed)
{
	struct follower *follower = follower_of(follow_ups, followed->message.receiver);
	struct watch *watch = watch_of(follower, followed->message.id);

	if (!watch) {
		watch = memory_new(1, sizeof *watch);
		*watch = (struct watch){.id = followed->message.id,
			.destination = memory_strdup(followed->message.destination),
			.sent = followed->message.now,
			.next = follower->watches};
		follower->watches = watch;
	}
	if (!watch->listed)
		watch->amends = watch->reads = false;
	watch->listed = true;
	watch->amends |= followed->mark > 0;
	watch->reads |= followed->answers;
}

static void forget_unlisted(struct follower *follower)
{
	struct watch **link = &follower->watches;

	for (struct watch *watch; (watch = *link);) {
		if (watch->listed) {
			watch->listed = false;
			link = &watch->next;
		} else {
			*link = watch->next;
			free_watch(watch);
		}
	}
}

static void looked(struct store_follow_ups *request)
{
	struct follow_ups *follow_ups = request->call.context;
	struct agent *agent = follow_ups->agent;

	follow_ups->looking = false;
	for (size_t i = 0; !request->call.failed && i < request->count; i++)
		take(follow_ups, &request->messages[i]);
	for (struct follower *follower = follow_ups->followers; !request->call.failed && follower;
		follower = follower->next) {
		forget_unlisted(follower);
		advance(follower);
	}
	store_call_free(&request->call);
	if (agent->stopping)
		return;
	if (follow_ups->again)
		look_soon(follow_ups);
	else
		engine_alarm(agent->engine, &follow_ups->alarm, follow_ups->look_at);
	follow_ups->again = false;
}

static void look(void *context)
{
	struct follow_ups *follow_ups = context;
	struct agent *agent = follow_ups->agent;
	const struct config *config = agent->config;
	struct store_follow_ups *request;
	struct arena *arena;
	const char **amending, **listening;
	size_t amending_count = 0, listening_count = 0;

	if (agent->stopping)
		return;
	follow_ups->again |= follow_ups->looking;
	if (follow_ups->looking)
		return;
	if (engine_now(agent->engine) < follow_ups->look_at) { /* the alarm of an earlier time */
		engine_alarm(agent->engine, &follow_ups->alarm, follow_ups->look_at);
		return;
	}
	follow_ups->look_at = engine_now(agent->engine) + LOOK;
	request = store_follow_ups_new(looked, follow_ups);
	arena = request->call.arena;
	amending = arena_array(arena, config->receiver_count, sizeof *amending);
	listening = arena_array(arena, config->receiver_count, sizeof *listening);
	for (size_t i = 0; i < config->receiver_count; i++) {
		const struct receiver *receiver = &config->receivers[i];

		if (amends(receiver))
			amending[amending_count++] = arena_strdup(arena, receiver->name);
		if (listens(receiver))
			listening[listening_count++] = arena_strdup(arena, receiver->name);
	}
	request->amending = (struct strings){amending, amending_count};
	request->listening = (struct strings){listening, listening_count};
	request->since = agent_now(agent) - READ_FOR;
	if (amending_count + listening_count == 0) {
		store_call_free(&request->call);
		return;
	}
	follow_ups->looking = true;
	store_client_call(agent, &request->call);
}

struct follow_ups *follow_ups_new(
	struct agent *agent, void (*triaged)(void *context), void *context)
{
	struct follow_ups *follow_ups = memory_new(1, sizeof *follow_ups);

	*follow_ups = (struct follow_ups){.agent = agent, .triaged = triaged, .context = context};
	follow_ups->alarm = (struct alarm){.call = look, .context = follow_ups};
	return follow_ups;
}

void follow_ups_free(struct follow_ups *follow_ups)
{
	if (!follow_ups)
		return;
	for (struct follower *follower = follow_ups->followers, *next; follower; follower = next) {
		next = follower->next;
		forget_unlisted(follower);
		arena_free(follower->attempt.arena);
		config_ref_release(follower->config_ref);
		free(follower->receiver);
		free(follower);
	}
	free(follow_ups);
}

void follow_ups_look(struct follow_ups *follow_ups)
{
	if (follow_ups)
		look_soon(follow_ups);
}

void follow_ups_adopt(struct follow_ups *follow_ups)
{
	int64_t now;

	if (!follow_ups)
		return;
	now = engine_now(follow_ups->agent->engine);
	for (struct follower *follower = follow_ups->followers; follower;
		follower = follower->next) {
		follower->warned[FOLLOW_UP_READ] = follower->warned[FOLLOW_UP_AMEND] = false;
		for (struct watch *watch = follower->watches; watch; watch = watch->next) {
			watch->gone = false;
			watch->amend_at = now;
			if (watch->read_at > now)
				watch->read_at = now;
		}
	}
	look_soon(follow_ups);
}
