/* A queue: the first request is with the store, or waits for a retry after a failure. */
#include "agent/runtime/store_backlog.h"

#include <stdlib.h>

enum { ASK_AGAIN = 30000 };

struct store_backlog {
	struct agent *agent;
	struct store_request *first, **last; /* except the current one */
	bool busy;                           /* a request is in progress or waits for its retry */
};

/* The request's original reply and context. */
struct wrapped {
	struct store_backlog *backlog;
	void (*reply)(struct store_request *request);
	void *context;
};

struct store_backlog *store_backlog_new(struct agent *agent)
{
	struct store_backlog *backlog = memory_new(1, sizeof *backlog);

	backlog->agent = agent;
	backlog->last = &backlog->first;
	return backlog;
}

void store_backlog_free(struct store_backlog *backlog)
{
	if (!backlog)
		return;
	for (struct store_request *next, *at = backlog->first; at; at = next) {
		next = at->next;
		store_request_free(at);
	}
	free(backlog);
}

static void ask_next(struct store_backlog *backlog)
{
	struct store_request *request = backlog->first;

	if (!request || backlog->busy)
		return;
	backlog->busy = true;
	backlog->first = request->next;
	if (!backlog->first)
		backlog->last = &backlog->first;
	request->next = NULL;
	store_client_call(backlog->agent, request);
}

static void ask_again(void *context)
{
	struct store_backlog *backlog = context;

	backlog->busy = false;
	ask_next(backlog);
}

static void put_back(struct store_backlog *backlog, struct store_request *request)
{
	request->next = backlog->first;
	if (!backlog->first)
		backlog->last = &request->next;
	backlog->first = request;
	engine_after(backlog->agent->engine, ASK_AGAIN, ask_again, backlog);
}

static void answered(struct store_request *request)
{
	struct wrapped wrapped = *(const struct wrapped *)request->context;
	struct store_backlog *backlog = wrapped.backlog;
	struct agent *agent = backlog->agent;

	agent->stateless |= request->failed;
	if (request->failed && !agent->once && !agent->stopping) {
		put_back(backlog, request);
		return;
	}
	request->reply = wrapped.reply;
	request->context = wrapped.context;
	request->reply(request);
	ask_again(backlog);
}

void store_backlog_add(struct store_backlog *backlog, struct store_request *request)
{
	struct wrapped *wrapped = arena_alloc(request->arena, sizeof *wrapped);

	*wrapped = (struct wrapped){backlog, request->reply, request->context};
	request->reply = answered;
	request->context = wrapped;
	request->next = NULL;
	*backlog->last = request;
	backlog->last = &request->next;
	ask_next(backlog);
}
