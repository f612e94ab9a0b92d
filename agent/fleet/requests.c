/*
 * One call asks for what has come in a moment, and one at a time is under way.
 *
 * What this agent is asked to run stays in the state until the run is in hand: then another call
 * says so, by the time at which it was asked for. If an answer is lost, nothing is, and what has
 * been asked for again meanwhile is run again.
 */
#include "agent/fleet/requests.h"

#include <stdlib.h>

#include "agent/base/dict.h"

enum { MOMENT = 20, AGAIN = 5000 }; /* ms */

/* Requested tests, each once. Lies in its arena. */
struct batch {
	struct arena *arena;
	struct dict asked; /* test -> int64_t: when its run was */
	struct run_request *items;
	size_t count;
};

struct requests {
	struct agent *agent;
	bool (*run)(void *context, const char *test);
	void *context;
	struct batch *begun;       /* in hand, which the state does not know yet; NULL: none */
	struct batch *next, *sent; /* NULL: none */
	bool taking, take_again;
	struct alarm alarm;
};

static void send(void *context);

struct requests *requests_new(
	struct agent *agent, bool (*run)(void *context, const char *test), void *context)
{
	struct requests *requests = memory_new(1, sizeof *requests);

	*requests = (struct requests){.agent = agent, .run = run, .context = context};
	requests->alarm = (struct alarm){.call = send, .context = requests};
	return requests;
}

static void batch_free(struct batch *batch)
{
	if (batch)
		arena_free(batch->arena);
}

void requests_free(struct requests *requests)
{
	if (!requests)
		return;
	batch_free(requests->next);
	batch_free(requests->sent);
	batch_free(requests->begun);
	free(requests);
}

static void send_after(struct requests *requests, int64_t wait)
{
	struct engine *engine = requests->agent->engine;

	engine_alarm(engine, &requests->alarm, engine_now(engine) + wait);
}

/* Requests that failed are run here by now, or repeated. */
static void sent(struct store_requests *call)
{
	struct requests *requests = call->call.context;
	struct batch *batch = requests->sent;

	requests->sent = NULL;
	for (size_t i = 0; i < batch->count && call->call.failed; i++)
		if (!requests->run(requests->context, batch->items[i].test))
			requests_ask(requests, batch->items[i].test, batch->items[i].shard);
	if (requests->next)
		send_after(requests, call->call.failed ? AGAIN : 0);
	batch_free(batch);
	store_call_free(&call->call);
}

static void send(void *context)
{
	struct requests *requests = context;
	struct store_requests *call;

	if (!requests->next || requests->sent || requests->agent->stopping)
		return;
	requests->sent = requests->next;
	requests->next = NULL;
	call = store_requests_new(sent, requests);
	call->add = requests->sent->items;
	call->add_count = requests->sent->count;
	store_client_call(requests->agent, &call->call);
}

static struct batch *batch_new(void)
{
	struct arena *arena = arena_new();
	struct batch *batch = arena_alloc(arena, sizeof *batch);

	*batch = (struct batch){.arena = arena, .asked = {.arena = arena}};
	return batch;
}

static void batch_add(struct batch *batch, const struct run_request *request)
{
	struct run_request *item;
	int64_t *asked = arena_alloc(batch->arena, sizeof *asked);

	batch->items = arena_grow(batch->arena, batch->items, batch->count, sizeof *batch->items);
	item = &batch->items[batch->count++];
	*item = *request;
	item->test = arena_strdup(batch->arena, request->test);
	*asked = request->asked;
	*dict_place(&batch->asked, item->test) = asked;
}

void requests_ask(struct requests *requests, const char *test, int shard)
{
	if (!requests->next) {
		requests->next = batch_new();
		if (!requests->sent)
			send_after(requests, MOMENT);
	}
	if (!dict_get(&requests->next->asked, test))
		batch_add(requests->next, &(struct run_request){.test = test, .shard = shard});
}

/* Whether the run has begun since the request. */
static bool is_begun(const struct batch *begun, const struct run_request *request)
{
	const int64_t *asked = begun ? dict_get(&begun->asked, request->test) : NULL;

	return asked && *asked == request->asked;
}

static void taken(struct store_requests *call)
{
	struct requests *requests = call->call.context;
	struct batch *before = requests->begun, *begun = batch_new();
	bool again = requests->take_again;

	requests->taking = requests->take_again = false;
	if (call->call.failed) { /* the next turn reports requests */
		batch_free(begun);
		store_call_free(&call->call);
		return;
	}
	for (size_t i = 0; i < call->found_count; i++)
		if (is_begun(before, &call->found[i]) ||
			requests->run(requests->context, call->found[i].test))
			batch_add(begun, &call->found[i]);
	again |= begun->count > 0;
	requests->begun = begun;
	batch_free(before);
	store_call_free(&call->call);
	if (again)
		requests_take(requests);
}

void requests_take(struct requests *requests)
{
	struct store_requests *call;

	if (requests->taking)
		requests->take_again = true;
	if (requests->taking || requests->agent->stopping)
		return;
	requests->taking = true;
	call = store_requests_new(taken, requests);
	call->take = true;
	if (requests->begun) { /* which stays until the answer comes */
		call->begun = requests->begun->items;
		call->begun_count = requests->begun->count;
	}
	store_client_call(requests->agent, &call->call);
}
