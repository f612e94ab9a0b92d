/*
 * One call asks for what has come in a moment and for what is asked of this agent; one at a time
 * is under way.
 *
 * What this agent is asked to run stays in the state until the run is in hand: then another call
 * says so, by the time at which it was asked for. If an answer is lost, nothing is, and what has
 * been asked for again meanwhile is run again.
 */
#include "agent/fleet/requests.h"

#include <stdlib.h>

#include "agent/base/dict.h"
#include "agent/base/when.h"
#include "agent/runtime/poll.h"

enum { MOMENT = 20, AGAIN = 5000 }; /* ms */

/* Requested tests, each once. Lies in its arena. */
struct batch {
	struct arena *arena;
	struct dict asked; /* test -> int64_t: when its run was */
	struct run_request *items;
	size_t count;
};

struct requests {
	struct poll poll;
	bool (*run)(void *context, const char *test);
	void *context;
	struct batch *next, *sent; /* requests of this agent; NULL: none */
	struct batch *begun;       /* in hand, which the state does not know yet; NULL: none */
	bool take;
};

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

static void keep(struct requests *requests, const char *test, int shard)
{
	if (!requests->next)
		requests->next = batch_new();
	if (!dict_get(&requests->next->asked, test))
		batch_add(requests->next, &(struct run_request){.test = test, .shard = shard});
}

void requests_ask(struct requests *requests, const char *test, int shard)
{
	keep(requests, test, shard);
	poll_after(&requests->poll, MOMENT);
}

/* Whether the run has begun since the request. */
static bool is_begun(const struct batch *begun, const struct run_request *request)
{
	const int64_t *asked = begun ? dict_get(&begun->asked, request->test) : NULL;

	return asked && *asked == request->asked;
}

static void run_found(struct requests *requests, const struct store_requests *call)
{
	struct batch *before = requests->begun, *begun = batch_new();

	for (size_t i = 0; i < call->found_count; i++)
		if (is_begun(before, &call->found[i]) ||
			requests->run(requests->context, call->found[i].test))
			batch_add(begun, &call->found[i]);
	requests->take |= begun->count > 0;
	requests->begun = begun;
	batch_free(before);
}

/* Requests that could not be sent are run here by now, or repeated; those to this agent are
 * reported by the next turn again. */
static void answered(struct store_requests *call)
{
	struct requests *requests = call->call.context;
	struct batch *batch = requests->sent;

	requests->sent = NULL;
	for (size_t i = 0; i < call->add_count && call->call.failed; i++)
		if (!requests->run(requests->context, batch->items[i].test))
			keep(requests, batch->items[i].test, batch->items[i].shard);
	if (call->take && !call->call.failed)
		run_found(requests, call);
	batch_free(batch);
	poll_answered(&requests->poll, call->call.failed                  ? AGAIN
				       : requests->take || requests->next ? 0
									  : WHEN_NEVER);
	store_call_free(&call->call);
}

static void ask(void *context)
{
	struct requests *requests = context;
	struct store_requests *call;

	if (!requests->next && !requests->take) {
		poll_answered(&requests->poll, WHEN_NEVER);
		return;
	}
	call = store_requests_new(answered, requests);
	requests->sent = requests->next;
	requests->next = NULL;
	if (requests->sent) {
		call->add = requests->sent->items;
		call->add_count = requests->sent->count;
	}
	call->take = requests->take;
	requests->take = false;
	if (call->take && requests->begun) { /* which stays until the answer comes */
		call->begun = requests->begun->items;
		call->begun_count = requests->begun->count;
	}
	store_client_call(requests->poll.agent, &call->call);
}

void requests_take(struct requests *requests)
{
	requests->take = true;
	poll_now(&requests->poll);
}

struct requests *requests_new(
	struct agent *agent, bool (*run)(void *context, const char *test), void *context)
{
	struct requests *requests = memory_new(1, sizeof *requests);

	*requests = (struct requests){.poll = {.agent = agent, .ask = ask, .context = requests},
		.run = run,
		.context = context};
	return requests;
}
