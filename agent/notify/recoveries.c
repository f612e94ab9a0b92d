/*
 * Two store requests: one reads the pending recoveries and who was told of the changes, the other
 * queues the messages.
 */
#include "agent/notify/recoveries.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/hash.h"
#include "agent/notify/deliveries.h"

enum { TELL_AGAIN = 30000 };

/* The recovery of an environment event is announced when this percentage of its changes has
 * recovered; otherwise, for those that have, after this many points, at most a day (ms). What
 * recovers after that was announced waits for the last of them, or for as many as make an event, at
 * most a day. */
enum { RIPE_SHARE = ENVIRONMENT_SHARE, RIPE_POINTS = 2 };
#define RIPE_MOST INT64_C(86400000)

struct recoveries {
	const struct publisher *publisher;
	bool waiting; /* the store has pending ones */
	bool busy;    /* a request is under way */
	size_t kept;  /* not due yet, ... */
	int64_t left; /* ... and ms until the first is */
	struct alarm alarm;
};

static void tell_alarm(void *recoveries)
{
	recoveries_tell(recoveries);
}

struct recoveries *recoveries_new(const struct publisher *publisher)
{
	struct recoveries *recoveries = memory_new(1, sizeof *recoveries);

	*recoveries = (struct recoveries){
		.publisher = publisher, .alarm = {.call = tell_alarm, .context = recoveries}};
	return recoveries;
}

void recoveries_free(struct recoveries *recoveries)
{
	free(recoveries);
}

static void tell_after(struct recoveries *recoveries, int64_t wait)
{
	struct agent *agent = recoveries->publisher->agent;

	recoveries->waiting = true;
	if (!agent->once)
		engine_alarm(agent->engine, &recoveries->alarm, engine_now(agent->engine) + wait);
}

void recoveries_note(struct recoveries *recoveries, int64_t pending)
{
	bool more = recoveries->kept > 0 && pending > (int64_t)recoveries->kept;

	if (pending == 0 || recoveries->busy || (recoveries->waiting && !more))
		return;
	recoveries->kept = 0;
	tell_after(recoveries, recoveries->publisher->agent->config->agent.group_wait);
}

/* The thread of the message that announced a change; NULL if the message was pruned. */
static const char *thread_of(const struct delivery *told)
{
	return told->thread ? told->thread : *told->key ? told->key : NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool belong_together(const struct delivery *a, const struct delivery *b)
{
	return strcmp(a->receiver, b->receiver) == 0 &&
	       strcmp(a->destination, b->destination) == 0 && is_same(thread_of(a), thread_of(b));
}

/* The event as the store knows it. */
static const struct environment_event *stored_event(const struct store_recovered *found, int64_t id)
{
	for (size_t i = 0; i < found->environments.count; i++)
		if (found->environments.items[i].id == id)
			return &found->environments.items[i];
	return NULL;
}

/* An event that no new change can belong to is known to the store only. */
static const struct environment_event *event_of(
	const struct recoveries *recoveries, const struct store_recovered *found, int64_t id)
{
	const struct environment_event *event =
		environments_event(recoveries->publisher->environments, id);

	return event || id == 0 ? event : stored_event(found, id);
}

/* The same, with the number of its changes that have not recovered. */
static const struct environment_event *current_event(const struct recoveries *recoveries,
	const struct store_recovered *found, int64_t id, struct arena *arena)
{
	const struct environment_event *event = event_of(recoveries, found, id);
	const struct environment_event *stored = stored_event(found, id);
	struct environment_event *copy;

	if (!event)
		return NULL;
	copy = arena_alloc(arena, sizeof *copy);
	*copy = *event;
	copy->standing = stored ? stored->standing : 0;
	return copy;
}

static const struct extras *extras_of(struct arena *arena, int64_t spacing)
{
	struct extras *extras = arena_alloc(arena, sizeof *extras);

	extras->spacing = spacing;
	return extras;
}

/* One message for all recoveries that belong to the thread of recent[index]. */
static void add_message(const struct recoveries *recoveries, const struct store_recovered *found,
	size_t index, struct store_queue *request)
{
	struct agent *agent = recoveries->publisher->agent;
	const struct delivery *first = &found->messages.items[index];
	struct recipient to = {agent_receiver(agent, first->receiver), first->destination};
	struct announcement *items = memory_new(found->messages.count - index, sizeof *items);
	struct delivery_content content = {.hash = HASH_START, .now = agent_now(agent)};
	struct message message = {
		.kind = MESSAGE_RECOVERED, .items = items, .thread = thread_of(first)};
	struct error error;
	int64_t event = 0;

	for (size_t i = index; i < found->messages.count; i++) {
		const struct announcement *item = &found->messages.items[i].records[0].item;

		if (!belong_together(&found->messages.items[i], first))
			continue;
		if (message.count == 0)
			event = found->messages.items[i].records[0].environment_event;
		else if (found->messages.items[i].records[0].environment_event != event)
			event = 0;
		items[message.count] = *item;
		items[message.count++].extras =
			extras_of(request->call.arena, found->messages.items[i].records[0].spacing);
		content.hash = hash_add(content.hash, &item->id, sizeof item->id);
		content.hash = hash_add(content.hash, &item->over.time, sizeof item->over.time);
	}
	message.environment = current_event(recoveries, found, event, request->call.arena);
	if (to.receiver && !deliveries_add(request, &to, &message, &content, &error))
		publisher_complain(recoveries->publisher, to.receiver, &error);
	free(items);
}

static bool is_first(const struct store_recovered *found, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (belong_together(&found->messages.items[i], &found->messages.items[index]))
			return false;
	return true;
}

static void queued(struct store_queue *request)
{
	struct recoveries *recoveries = request->call.context;

	recoveries->busy = false;
	if (request->call.failed) {
		recoveries->publisher->agent->stateless = true;
		tell_after(recoveries, TELL_AGAIN);
	} else {
		publisher_send(recoveries->publisher, request);
		if (request->recoveries > (int64_t)recoveries->kept)
			tell_after(recoveries, 0);
		else if (recoveries->kept > 0)
			tell_after(recoveries, recoveries->left);
	}
	if (!request->call.failed && recoveries->waiting)
		recoveries_tell(recoveries);
	store_call_free(&request->call);
}

/* How long a recovered change of an event still waits for the others, ms; 0: no longer. */
static int64_t left_of(
	const struct recoveries *recoveries, const struct change_record *record, bool straggler)
{
	int64_t now = agent_now(recoveries->publisher->agent);
	int64_t most = record->spacing < RIPE_MOST && !straggler ? RIPE_POINTS * record->spacing
								 : RIPE_MOST;
	int64_t left = record->updated + (most < RIPE_MOST ? most : RIPE_MOST) - now;

	return left > 0 ? left : 0;
}

/* Whether the recovery of the record's event is due. */
static bool is_due(struct recoveries *recoveries, const struct store_recovered *found,
	const struct change_record *record)
{
	const struct environment_event *event =
		event_of(recoveries, found, record->environment_event);
	const struct environment_event *stored = stored_event(found, record->environment_event);
	bool straggler = stored && stored->back > 0;
	int64_t least = RIPE_MOST;
	size_t over = 0;

	if (!event || (recoveries->publisher->agent->once && !straggler) ||
		found->records.count == STORE_RECOVERIES)
		return true;
	for (size_t i = 0; i < found->records.count; i++)
		if (found->records.items[i].environment_event == event->id) {
			int64_t left = left_of(recoveries, &found->records.items[i], straggler);

			least = left < least ? left : least;
			over++;
		}
	if (least == 0 || (straggler ? stored->standing == 0 || over >= ENVIRONMENT_LEAST
				     : 100 * over >= RIPE_SHARE * event->hit))
		return true;
	if (recoveries->kept++ == 0 || least < recoveries->left)
		recoveries->left = least;
	return false;
}

/* Removes records that are not due yet. */
static void keep_due(struct recoveries *recoveries, struct store_recovered *found)
{
	size_t recent = 0;

	recoveries->kept = 0;
	for (size_t i = 0; i < found->records.count; i++) {
		struct change_record *record = &found->records.items[i];

		record->held = !is_due(recoveries, found, record);
	}
	for (size_t i = 0; i < found->messages.count; i++)
		if (!found->messages.items[i].records[0].held)
			found->messages.items[recent++] = found->messages.items[i];
	found->messages.count = recent;
}

static void queue(struct recoveries *recoveries, const struct store_recovered *found)
{
	struct store_queue *request = store_queue_new(queued, recoveries);
	int64_t *told = arena_array(request->call.arena, found->records.count, sizeof *told);

	for (size_t i = 0; i < found->messages.count; i++)
		if (is_first(found, i))
			add_message(recoveries, found, i, request);
	for (size_t i = 0; i < found->records.count; i++)
		if (!found->records.items[i].held)
			told[request->told_count++] = found->records.items[i].item.id;
	request->told = told;
	store_client_call(recoveries->publisher->agent, &request->call);
}

static void found(struct store_recovered *request)
{
	struct recoveries *recoveries = request->call.context;

	if (request->call.failed) {
		recoveries->busy = false;
		tell_after(recoveries, TELL_AGAIN);
	} else if (request->records.count == 0 || recoveries->publisher->agent->stopping) {
		recoveries->busy = false;
	} else {
		keep_due(recoveries, request);
		if (recoveries->kept < request->records.count) {
			queue(recoveries, request);
		} else {
			recoveries->busy = false;
			tell_after(recoveries, recoveries->left);
		}
	}
	store_call_free(&request->call);
}

void recoveries_tell(struct recoveries *recoveries)
{
	struct agent *agent = recoveries->publisher->agent;

	if (!recoveries->waiting || recoveries->busy || agent->stopping)
		return;
	recoveries->waiting = false;
	recoveries->busy = true;
	store_client_call(agent, &store_recovered_new(found, recoveries)->call);
}
