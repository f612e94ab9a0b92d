/* A queue: the first call is with the store, or waits for a retry after a failure. */
#include "agent/runtime/store_backlog.h"

#include <stdlib.h>

enum { ASK_AGAIN = 30000 };

struct store_backlog {
	struct agent *agent;
	struct store_call *first, **last; /* except the current one */
	bool busy;                        /* a call is in progress or waits for its retry */
};

/* The call's original reply and context. */
struct wrapped {
	struct store_backlog *backlog;
	void (*reply)(struct store_call *call);
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
	for (struct store_call *next, *at = backlog->first; at; at = next) {
		next = at->next;
		store_call_free(at);
	}
	free(backlog);
}

static void ask_next(struct store_backlog *backlog)
{
	struct store_call *call = backlog->first;

	if (!call || backlog->busy)
		return;
	backlog->busy = true;
	backlog->first = call->next;
	if (!backlog->first)
		backlog->last = &backlog->first;
	call->next = NULL;
	store_client_call(backlog->agent, call);
}

static void ask_again(void *context)
{
	struct store_backlog *backlog = context;

	backlog->busy = false;
	ask_next(backlog);
}

static void answered(struct store_call *call)
{
	struct wrapped wrapped = *(const struct wrapped *)call->context;
	struct store_backlog *backlog = wrapped.backlog;
	struct agent *agent = backlog->agent;

	agent->stateless |= call->failed && !call->fenced;
	if (call->failed && !call->fenced && !agent->once && !agent->stopping) {
		call->next = backlog->first;
		if (!backlog->first)
			backlog->last = &call->next;
		backlog->first = call;
		engine_after(agent->engine, ASK_AGAIN, ask_again, backlog);
		return;
	}
	call->reply = wrapped.reply;
	call->context = wrapped.context;
	call->reply(call);
	ask_again(backlog);
}

void store_backlog_add(struct store_backlog *backlog, struct store_call *call)
{
	struct wrapped *wrapped = arena_alloc(call->arena, sizeof *wrapped);

	*wrapped = (struct wrapped){backlog, call->reply, call->context};
	call->reply = answered;
	call->context = wrapped;
	call->next = NULL;
	*backlog->last = call;
	backlog->last = &call->next;
	ask_next(backlog);
}
