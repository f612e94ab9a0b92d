/*
 * See recoveries.h. Two requests: one reads what is to be told, and to whom; the other queues it.
 */
#include "agent/watch/recoveries.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/hash.h"
#include "agent/watch/parcels.h"

enum { TELL_AGAIN = 30000 };

struct recoveries {
	const struct telling *telling;
	bool waiting; /* the store has some */
	bool busy;    /* a request is under way */
	struct alarm alarm;
};

static void tell_alarm(void *recoveries)
{
	recoveries_tell(recoveries);
}

struct recoveries *recoveries_new(const struct telling *telling)
{
	struct recoveries *recoveries = memory_new(1, sizeof *recoveries);

	*recoveries = (struct recoveries){
		.telling = telling, .alarm = {.call = tell_alarm, .context = recoveries}};
	return recoveries;
}

void recoveries_free(struct recoveries *recoveries)
{
	free(recoveries);
}

static void tell_after(struct recoveries *recoveries, int64_t wait)
{
	struct agent *agent = recoveries->telling->agent;

	recoveries->waiting = true;
	if (!agent->once)
		engine_alarm(agent->engine, &recoveries->alarm, engine_now(agent->engine) + wait);
}

void recoveries_note(struct recoveries *recoveries, const struct store_request *answer)
{
	if (answer->recoveries > 0 && !recoveries->waiting && !recoveries->busy)
		tell_after(recoveries, recoveries->telling->agent->config->agent.group_wait);
}

/* The thread of the message that told a change; NULL: it is forgotten. */
static const char *thread_of(const struct parcel *told)
{
	return told->thread ? told->thread : *told->key ? told->key : NULL;
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool belong_together(const struct parcel *a, const struct parcel *b)
{
	return strcmp(a->receiver, b->receiver) == 0 &&
	       strcmp(a->destination, b->destination) == 0 && is_same(thread_of(a), thread_of(b));
}

/* One message for all that was told in the thread of recent[index]. */
static void add_message(const struct recoveries *recoveries, const struct store_request *found,
	size_t index, struct store_request *request)
{
	struct agent *agent = recoveries->telling->agent;
	const struct parcel *first = &found->recent[index];
	struct addressee to = {agent_receiver(agent, first->receiver), first->destination};
	struct announcement *items =
		arena_array(request->arena, found->recent_count - index, sizeof *items);
	struct content content = {.hash = HASH_START, .now = agent_now(agent)};
	struct message message = {
		.kind = MESSAGE_RECOVERED, .items = items, .thread = thread_of(first)};
	struct error error;

	for (size_t i = index; i < found->recent_count; i++) {
		const struct announcement *item = &found->recent[i].records[0].item;

		if (!belong_together(&found->recent[i], first))
			continue;
		items[message.count++] = *item;
		content.hash = hash_add(content.hash, &item->id, sizeof item->id);
		content.hash = hash_add(content.hash, &item->over.time, sizeof item->over.time);
	}
	if (to.receiver && !parcels_add(request, &to, &message, &content, &error))
		telling_complain(recoveries->telling, to.receiver, &error);
}

static bool is_first(const struct store_request *found, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (belong_together(&found->recent[i], &found->recent[index]))
			return false;
	return true;
}

static void queued(struct store_request *request)
{
	struct recoveries *recoveries = request->context;

	recoveries->busy = false;
	if (request->failed) {
		recoveries->telling->agent->stateless = true;
		tell_after(recoveries, TELL_AGAIN);
	} else {
		telling_send(recoveries->telling, request);
		if (request->recoveries > 0)
			tell_after(recoveries, 0);
	}
	if (!request->failed && recoveries->waiting)
		recoveries_tell(recoveries);
	store_request_free(request);
}

static void queue(struct recoveries *recoveries, const struct store_request *found)
{
	struct store_request *request = store_request_new(STORE_QUEUE, queued, recoveries);
	int64_t *told = arena_array(request->arena, found->record_count, sizeof *told);

	for (size_t i = 0; i < found->recent_count; i++)
		if (is_first(found, i))
			add_message(recoveries, found, i, request);
	for (size_t i = 0; i < found->record_count; i++)
		told[i] = found->records[i].item.id;
	request->told = told;
	request->told_count = found->record_count;
	ledger_ask(recoveries->telling->agent, request);
}

static void found(struct store_request *request)
{
	struct recoveries *recoveries = request->context;

	if (request->failed) {
		recoveries->busy = false;
		tell_after(recoveries, TELL_AGAIN);
	} else if (request->record_count == 0 || recoveries->telling->agent->stopping) {
		recoveries->busy = false;
	} else {
		queue(recoveries, request);
	}
	store_request_free(request);
}

void recoveries_tell(struct recoveries *recoveries)
{
	struct agent *agent = recoveries->telling->agent;

	if (!recoveries->waiting || recoveries->busy || agent->stopping)
		return;
	recoveries->waiting = false;
	recoveries->busy = true;
	ledger_ask(agent, store_request_new(STORE_RECOVERED, found, recoveries));
}
