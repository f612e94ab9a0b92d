#include "agent/io/limiter.h"

#include <stdlib.h>

#include "agent/base/arena.h"

struct server_limit {
	struct server_limit *next;
	const void *server;
	size_t begun, limit;
	struct limiter_slot *first, *last; /* the queue */
	_Atomic int server_flavor;
};

static struct server_limit *find(const struct limiter *limiter, const void *server)
{
	struct server_limit *queue = limiter->first;
	while (queue && queue->server != server)
		queue = queue->next;
	return queue;
}

static void start_member(const struct limiter *limiter, struct server_limit *queue)
{
	while (!limiter->closed && queue->first && queue->begun < queue->limit) {
		struct limiter_slot *member = queue->first;
		queue->first = member->after;
		queue->begun++;
		member->begin(member);
	}
}

void limiter_join(
	struct limiter *limiter, const void *server, size_t limit, struct limiter_slot *member)
{
	struct server_limit *queue = find(limiter, server);
	if (!queue) {
		queue = memory_new(1, sizeof *queue);
		queue->server = server;
		queue->next = limiter->first;
		limiter->first = queue;
	}
	queue->limit = limit;
	member->queue = queue;
	*(queue->first ? &queue->last->after : &queue->first) = member;
	queue->last = member;
	start_member(limiter, queue);
}

void limiter_widen(struct limiter *limiter, const void *server, size_t limit)
{
	struct server_limit *queue = find(limiter, server);
	if (!queue || queue->limit == limit)
		return;
	queue->limit = limit;
	start_member(limiter, queue);
}

_Atomic int *limiter_flavor(struct server_limit *queue)
{
	return &queue->server_flavor;
}

void limiter_leave(struct limiter *limiter, struct limiter_slot *member)
{
	struct server_limit *queue = member->queue;
	if (!queue)
		return;
	queue->begun--;
	start_member(limiter, queue);
	if (queue->begun > 0)
		return;
	struct server_limit **link = &limiter->first;
	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	free(queue);
}

void limiter_free(struct limiter *limiter)
{
	for (struct server_limit *queue = limiter->first, *next; queue; queue = next) {
		next = queue->next;
		free(queue);
	}
	limiter->first = NULL;
}
