/*
 * Limits how many tasks per server, or how many reads, are in progress at once. The others wait in
 * a queue, a list entry each, so ten thousand of them cost little, and answers are processed soon
 * after they arrive.
 *
 * For the loop's thread.
 */
#ifndef AGENT_IO_LIMITER_H
#define AGENT_IO_LIMITER_H

#include <stdbool.h>
#include <stddef.h>

struct server_limit;

struct limiter {
	struct server_limit *first;
	bool closed; /* no more members are started */
};

/* A member: in progress or waiting; embedded in the caller's struct. */
struct limiter_slot {
	struct server_limit *queue; /* NULL: unlimited */
	struct limiter_slot *after;
	void (*begin)(struct limiter_slot *);
};

/* Starts the member now or when a place becomes free, as one of at most `limit` for `server`. */
void limiter_join(
	struct limiter *limiter, const void *server, size_t limit, struct limiter_slot *member);

/* Changes the limit of `server`, if it has members. */
void limiter_widen(struct limiter *limiter, const void *server, size_t limit);

/* For query.server_flavor: valid while members of that server are in progress. */
_Atomic int *limiter_flavor(struct server_limit *queue);

/* Ends a member that was started and starts the next. Members without a limit are ignored. */
void limiter_leave(struct limiter *limiter, struct limiter_slot *member);

void limiter_free(struct limiter *limiter);

#endif
