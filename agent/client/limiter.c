#include "agent/client/limiter.h"

#include <stdlib.h>

#include "agent/core/arena.h"

struct crowd {
	struct crowd *next;
	const void *server;
	size_t begun, limit;
	struct member *first, *last; /* that wait */
	_Atomic int learnt;
};

static struct crowd *find(const struct crowds *crowds, const void *server)
{
	struct crowd *crowd = crowds->first;
	while (crowd && crowd->server != server)
		crowd = crowd->next;
	return crowd;
}

static struct crowd *add(struct crowds *crowds, const void *server)
{
	struct crowd *crowd = memory_new(1, sizeof *crowd);
	crowd->server = server;
	crowd->next = crowds->first;
	crowds->first = crowd;
	return crowd;
}

static void begin(const struct crowds *crowds, struct crowd *crowd)
{
	while (!crowds->closed && crowd->first && crowd->begun < crowd->limit) {
		struct member *member = crowd->first;
		crowd->first = member->after;
		crowd->begun++;
		member->begin(member);
	}
}

void crowd_join(struct crowds *crowds, const void *server, size_t limit, struct member *member)
{
	struct crowd *crowd = find(crowds, server);
	if (!crowd)
		crowd = add(crowds, server);
	crowd->limit = limit;
	member->crowd = crowd;
	*(crowd->first ? &crowd->last->after : &crowd->first) = member;
	crowd->last = member;
	begin(crowds, crowd);
}

void crowd_widen(struct crowds *crowds, const void *server, size_t limit)
{
	struct crowd *crowd = find(crowds, server);
	if (!crowd || crowd->limit == limit)
		return;
	crowd->limit = limit;
	begin(crowds, crowd);
}

_Atomic int *crowd_learnt(struct crowd *crowd)
{
	return &crowd->learnt;
}

void crowd_leave(struct crowds *crowds, struct member *member)
{
	struct crowd *crowd = member->crowd;
	if (!crowd)
		return;
	crowd->begun--;
	begin(crowds, crowd);
	if (crowd->begun > 0)
		return;
	struct crowd **link = &crowds->first;
	while (*link != crowd)
		link = &(*link)->next;
	*link = crowd->next;
	free(crowd);
}

void crowds_free(struct crowds *crowds)
{
	for (struct crowd *crowd = crowds->first, *next; crowd; crowd = next) {
		next = crowd->next;
		free(crowd);
	}
	crowds->first = NULL;
}
