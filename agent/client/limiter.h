/*
 * Crowds: the tasks that ask the same server, or those that read. Only so many of a crowd are begun
 * as keep it busy; the others wait with nothing but their place in the queue, so that ten thousand
 * cost little and answers are never far from their work.
 *
 * For the loop's thread.
 */
#ifndef AGENT_CLIENT_LIMITER_H
#define AGENT_CLIENT_LIMITER_H

#include <stdbool.h>
#include <stddef.h>

struct server_limit;

struct limiter {
	struct server_limit *first;
	bool closed; /* nobody is begun any more */
};

/* One of a crowd; embedded in what waits. */
struct limiter_slot {
	struct server_limit *limit_of; /* NULL: of none */
	struct limiter_slot *after;
	void (*begin)(struct limiter_slot *);
};

/* Begins the member now or when it is its turn. The crowd is that of `server`, of which `limit` are
 * begun at a time. */
void limiter_join(
	struct limiter *limiter, const void *server, size_t limit, struct limiter_slot *member);

/* The crowd, if there is one, has another limit. */
void limiter_widen(struct limiter *limiter, const void *server, size_t limit);

/* For query.learnt: lasts as long as the crowd has members that were begun. */
_Atomic int *limiter_flavor(struct server_limit *limit_of);

/* A member that was begun is through: the next begins. One of no crowd is fine. */
void limiter_leave(struct limiter *limiter, struct limiter_slot *member);

void limiter_free(struct limiter *limiter);

#endif
