#include "agent/client/limiter.h"

#include <stdlib.h>

#include "agent/core/arena.h"

struct server_limit {
	struct server_limit *next;
	const void *server;
	size_t begun, limit;
	struct limiter_slot *first, *last; /* the queue */
	_Atomic int server_flavor;
};

static struct server_limit *find(const struct limiter *limiter, const void *server)
{
	struct server_limit *limit_of = limiter->first;
	while (limit_of && limit_of->server != server)
		limit_of = limit_of->next;
	return limit_of;
}

static struct server_limit *add(struct limiter *limiter, const void *server)
{
	struct server_limit *limit_of = memory_new(1, sizeof *limit_of);
	limit_of->server = server;
	limit_of->next = limiter->first;
	limiter->first = limit_of;
	return limit_of;
}

static void begin(const struct limiter *limiter, struct server_limit *limit_of)
{
	while (!limiter->closed && limit_of->first && limit_of->begun < limit_of->limit) {
		struct limiter_slot *member = limit_of->first;
		limit_of->first = member->after;
		limit_of->begun++;
		member->begin(member);
	}
}

void limiter_join(
	struct limiter *limiter, const void *server, size_t limit, struct limiter_slot *member)
{
	struct server_limit *limit_of = find(limiter, server);
	if (!limit_of)
		limit_of = add(limiter, server);
	limit_of->limit = limit;
	member->limit_of = limit_of;
	*(limit_of->first ? &limit_of->last->after : &limit_of->first) = member;
	limit_of->last = member;
	begin(limiter, limit_of);
}

void limiter_widen(struct limiter *limiter, const void *server, size_t limit)
{
	struct server_limit *limit_of = find(limiter, server);
	if (!limit_of || limit_of->limit == limit)
		return;
	limit_of->limit = limit;
	begin(limiter, limit_of);
}

_Atomic int *limiter_flavor(struct server_limit *limit_of)
{
	return &limit_of->server_flavor;
}

void limiter_leave(struct limiter *limiter, struct limiter_slot *member)
{
	struct server_limit *limit_of = member->limit_of;
	if (!limit_of)
		return;
	limit_of->begun--;
	begin(limiter, limit_of);
	if (limit_of->begun > 0)
		return;
	struct server_limit **link = &limiter->first;
	while (*link != limit_of)
		link = &(*link)->next;
	*link = limit_of->next;
	free(limit_of);
}

void limiter_free(struct limiter *limiter)
{
	for (struct server_limit *limit_of = limiter->first, *next; limit_of; limit_of = next) {
		next = limit_of->next;
		free(limit_of);
	}
	limiter->first = NULL;
}
