#include "agent/service/letters.h"

#include <stdlib.h>
#include <string.h>

#include "agent/fleet/fleet.h"
#include "agent/monitor/condition.h"

enum {
	LOOK_AGAIN = 1000,     /* ms, while waiting for the first runs */
	WAIT_MOST = 600000,    /* ms to wait for them at most */
	LOOK_ANYWAY = 3600000, /* ms, as the wall clock may be set */
	LOOK_AT_LEAD = 30000,  /* ms, in a fleet: until the next check for the leader */
	TRY_AGAIN = 300000,    /* ms, after a failure */
};
#define DAY INT64_C(86400000)

static const struct letter_kind *const kinds[] = {&digest_letter, &heartbeat_letter};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct sent {
	const struct letter_kind *kind;
	char *receiver;
	int64_t last;  /* ms, wall clock; 0: never */
	int64_t again; /* engine_now before which it is not sent, after a failure */
};

struct letters {
	struct agent *agent;
	struct dispatcher *dispatcher;
	const struct scheduler *scheduler;
	struct sent *sent;
	size_t count;
	int64_t started; /* engine_now */
	bool asking;     /* waiting for the store */
	struct alarm alarm;
};

static void on_alarm(void *context)
{
	letters_look(context);
}

static void gained(
	void *context, const struct fleet_shards *shards, const struct store_restore *restored)
{
	struct letters *letters = context;

	if (!shards->has[FLEET_LEADER])
		return;
	letters->started = engine_now(letters->agent->engine);
	letters_restore(letters, restored);
	letters_look(letters);
}

struct letters *letters_new(
	struct agent *agent, struct dispatcher *dispatcher, const struct scheduler *scheduler)
{
	struct letters *letters = memory_new(1, sizeof *letters);

	*letters = (struct letters){.agent = agent,
		.dispatcher = dispatcher,
		.scheduler = scheduler,
		.started = engine_now(agent->engine),
		.alarm = {.call = on_alarm, .context = letters}};
	fleet_listen(agent, &(struct fleet_listener){.gained = gained, .context = letters});
	if (!agent->once)
		agent_listen(agent, HINT_LOOK, on_alarm, letters);
	return letters;
}

void letters_free(struct letters *letters)
{
	if (!letters)
		return;
	for (size_t i = 0; i < letters->count; i++)
		free(letters->sent[i].receiver);
	free(letters->sent);
	free(letters);
}

bool letter_goes_to(const struct strings *receivers, const char *receiver)
{
	for (size_t i = 0; receivers && i < receivers->count; i++)
		if (strcmp(receivers->items[i], receiver) == 0)
			return true;
	return false;
}

static struct sent *sent_of(
	struct letters *letters, const struct letter_kind *kind, const char *receiver)
{
	for (size_t i = 0; i < letters->count; i++)
		if (letters->sent[i].kind == kind &&
			strcmp(letters->sent[i].receiver, receiver) == 0)
			return &letters->sent[i];
	letters->sent = memory_resize(letters->sent, letters->count + 1, sizeof *letters->sent);
	letters->sent[letters->count] =
		(struct sent){.kind = kind, .receiver = memory_strdup(receiver)};
	return &letters->sent[letters->count++];
}

static void put_moment(struct store_queue *request, const struct letter_kind *kind,
	const char *receiver, int64_t now)
{
	struct arena *arena = request->call.arena;
	struct health_rows *health = &request->health;

	health->moments =
		arena_grow(arena, health->moments, health->moment_count, sizeof *health->moments);
	health->moments[health->moment_count++] =
		(struct stored_moment){arena_printf(arena, "%s%s", kind->name, receiver), now};
}

/* The kind of the first that is due, for `*receiver`; or NULL and the ms until one is. Notes in
 * `begun`, unless NULL, when a receiver is seen for the first time. */
static const struct letter_kind *find_due(struct letters *letters, struct store_queue *begun,
	const struct receiver **receiver, int64_t *wait)
{
	const struct config *config = letters->agent->config;
	const struct letter_kind *due = NULL;
	int64_t now = agent_now(letters->agent), clock = engine_now(letters->agent->engine);

	*wait = LOOK_ANYWAY;
	letters->agent->measures = false;
	for (size_t i = 0; i < KINDS * config->receiver_count; i++) {
		const struct receiver *to = &config->receivers[i / KINDS];
		const struct letter_kind *kind = kinds[i % KINDS];
		struct sent *sent = sent_of(letters, kind, to->name);
		int64_t before, next;

		if (sent->last > now + DAY) /* the clock was wrong then */
			sent->last = now;
		if (!kind->times(to, sent->last, now, &before, &next))
			continue;
		if (sent->last == 0 && begun && !kind->at_once) {
			sent->last = now;
			put_moment(begun, kind, to->name, now);
		}
		letters->agent->measures |= kind->measures && next - now <= DAY;
		if (before > sent->last && sent->again > clock) {
			next = now + (sent->again - clock);
		} else if (!due && before > sent->last) {
			due = kind;
			*receiver = to;
		}
		if (next - now < *wait)
			*wait = next - now;
	}
	return due;
}

void letters_restore(struct letters *letters, const struct store_restore *restored)
{
	const struct receiver *receiver;
	int64_t wait;

	for (size_t i = 0; i < KINDS * restored->health.moment_count; i++) {
		const struct stored_moment *moment = &restored->health.moments[i / KINDS];
		const struct letter_kind *kind = kinds[i % KINDS];
		size_t skip = strlen(kind->name);

		if (strncmp(moment->name, kind->name, skip) == 0)
			sent_of(letters, kind, moment->name + skip)->last = moment->time;
	}
	(void)find_due(letters, NULL, &receiver, &wait);
}

static void arm(struct letters *letters, int64_t wait)
{
	struct agent *agent = letters->agent;

	if (!agent->once && !agent->stopping)
		engine_alarm(agent->engine, &letters->alarm, engine_now(agent->engine) + wait);
}

/* False: it could not be rendered; it is retried. */
static bool send(struct letter *letter, const struct receiver *receiver)
{
	struct store_queue *request = store_queue_new(NULL, NULL);
	struct message message = {.kind = letter->kind->message, .notice = &letter->notice};

	letter->notice.time = letter->now;
	letter->kind->write(letter, receiver);
	message.sections = letter->sections;
	message.section_count = letter->section_count;
	put_moment(request, letter->kind, receiver->name, letter->now);
	if (!notices_message(dispatcher_notices(letter->dispatcher), &message, receiver, request))
		return false;
	sent_of(letter->letters, letter->kind, receiver->name)->last = letter->now;
	return true;
}

static const struct condition *find_condition(
	const struct health_rows *health, enum condition_kind kind, const char *name)
{
	for (size_t i = 0; i < health->condition_count; i++)
		if (health->conditions[i].kind == kind &&
			strcmp(condition_name(&health->conditions[i]), name) == 0)
			return &health->conditions[i];
	return NULL;
}

struct scheduler_test letter_test(
	const struct scheduler_test *state, const struct health_rows *health)
{
	const struct condition *down, *failing;
	struct scheduler_test known = *state;

	if (!state->elsewhere)
		return known;
	down = find_condition(health, CONDITION_SOURCE, condition_source(state->test));
	failing = find_condition(health, CONDITION_TEST, state->test->name);
	known.down_since = down ? down->since : 0;
	known.failing = failing != NULL;
	known.problem = failing ? failing->text : NULL;
	known.stale = find_condition(health, CONDITION_STALE, state->test->name) != NULL;
	return known;
}

static void ask(struct letter *letter);

static void listed(struct store_list *list)
{
	struct letter *letter = list->call.context;
	struct letters *letters = letter->letters;
	const struct receiver *receiver = agent_receiver(letter->agent, letter->receiver);
	bool good = !list->call.failed;
	int64_t before, next;

	if (good && letter->asked + 1 < letter->kind->lists) {
		letter->asked++;
		ask(letter);
		return;
	}
	letters->asking = false;
	if (good && receiver &&
		letter->kind->times(receiver, letter->since, letter->now, &before, &next))
		good = send(letter, receiver);
	if (!good)
		sent_of(letters, letter->kind, letter->receiver)->again =
			engine_now(letter->agent->engine) + TRY_AGAIN;
	for (size_t i = letter->asked + 1; i-- > 0;) /* the first has the memory of all */
		store_call_free(&letter->lists[i]->call);
	letters_look(letters);
}

static void ask(struct letter *letter)
{
	size_t number = letter->asked;
	struct store_list *list = letter->lists[number];

	if (!list)
		list = letter->lists[number] = store_list_new(listed, letter);
	letter->kind->filter(letter, number, &list->filter);
	if (letter->agent->fleet && number == 0)
		list->about = "";
	store_client_call(letter->agent, &list->call);
}

static void begin(
	struct letters *letters, const struct letter_kind *kind, const struct receiver *receiver)
{
	struct store_list *first = store_list_new(listed, NULL);
	struct letter *letter = arena_alloc(first->call.arena, sizeof *letter);

	*letter = (struct letter){.letters = letters,
		.kind = kind,
		.agent = letters->agent,
		.dispatcher = letters->dispatcher,
		.scheduler = letters->scheduler,
		.arena = first->call.arena,
		.receiver = arena_strdup(first->call.arena, receiver->name),
		.since = sent_of(letters, kind, receiver->name)->last,
		.now = agent_now(letters->agent),
		.lists = {first}};
	first->call.context = letter;
	letters->asking = true;
	ask(letter);
}

static void note_run(void *context, const struct scheduler_test *state)
{
	*(bool *)context &= state->last_run != 0 || state->elsewhere;
}

void letters_look(struct letters *letters)
{
	const struct receiver *receiver = NULL;
	const struct letter_kind *due;
	struct store_queue *begun;
	bool ran = true;
	int64_t wait;

	if (letters->asking || letters->agent->stopping)
		return;
	if (!fleet_holds(letters->agent, FLEET_LEADER)) {
		letters->agent->measures = false;
		arm(letters, LOOK_AT_LEAD);
		return;
	}
	begun = store_queue_new(NULL, NULL);
	fleet_fence(letters->agent, &begun->call, FLEET_LEADER);
	due = find_due(letters, begun, &receiver, &wait);
	if (begun->health.moment_count > 0)
		store_client_call(letters->agent, &begun->call);
	else
		store_call_free(&begun->call);
	if (due)
		scheduler_each(letters->scheduler, note_run, &ran);
	ran |= engine_now(letters->agent->engine) - letters->started >= WAIT_MOST;
	if (due && ran)
		begin(letters, due, receiver);
	else
		arm(letters, due ? LOOK_AGAIN : wait);
}
