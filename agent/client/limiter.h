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

struct crowd;

struct crowds {
	struct crowd *first;
	bool closed; /* nobody is begun any more */
};

/* One of a crowd; embedded in what waits. */
struct member {
	struct crowd *crowd; /* NULL: of none */
	struct member *after;
	void (*begin)(struct member *);
};

/* Begins the member now or when it is its turn. The crowd is that of `server`, of which `limit` are
 * begun at a time. */
void crowd_join(struct crowds *crowds, const void *server, size_t limit, struct member *member);

/* The crowd, if there is one, has another limit. */
void crowd_widen(struct crowds *crowds, const void *server, size_t limit);

/* For query.learnt: lasts as long as the crowd has members that were begun. */
_Atomic int *crowd_learnt(struct crowd *crowd);

/* A member that was begun is through: the next begins. One of no crowd is fine. */
void crowd_leave(struct crowds *crowds, struct member *member);

void crowds_free(struct crowds *crowds);

#endif
