/*
 * Transfers: carries out what sources and notifiers yield, HTTP by libcurl's multi interface.
 *
 * All functions are for the loop's thread. Each server (scheme, host, port) has a queue; servers
 * take turns, each has at most its endpoint's max_concurrent requests in flight, all together
 * TRANSFERS_AT_ONCE. libcurl is initialised with the first HTTP transfer.
 *
 * The answers in flight have a budget of memory, from their first byte until the call is released.
 * While it is used up nothing is asked for: who is slow to read answers stops the asking, not the
 * machine. Where answers turn out larger than there is room for, the youngest of the server that
 * has the most are given up, and asked for again when there is room for what they need. Servers
 * have equal shares; a call that waits for room is overtaken a bounded number of times; the oldest
 * goes on whatever it needs. So all get through, and the budget is passed by one answer at most.
 */
#ifndef AGENT_CLIENT_TRANSFERS_H
#define AGENT_CLIENT_TRANSFERS_H

#include <poll.h>

#include "agent/core/transfer.h"

enum { TRANSFERS_AT_ONCE = 256, TRANSFERS_MEMORY = 256000000 };

struct transfers;

/* One transfer on its way; lies within the caller's own struct and must live until it is released.
 */
struct client_request {
	const struct transfer *transfer;
	void (*done)(struct client_request *call);
	struct reply reply; /* set when done is called, good until transfers_release */

	/* The transfers' own. */
	struct client_request *next, *previous;
	struct client_request_list *list;
	struct host *host;
	struct exchange *exchange;
	char *failure;
	bool counted;
	uint64_t age; /* the number of its first start; 0: none yet */
	size_t wants; /* bytes, of one that was given up for want of room */
};

/* With TRANSFERS_MEMORY bytes for answers, or another budget. An answer counts twice, as what is
 * read from it takes about as much. */
struct transfers *transfers_new(size_t memory);
void transfers_free(struct transfers *transfers); /* all calls are released */
void transfers_set_memory(struct transfers *transfers, size_t memory);

/* Of the budget, what is in use, and how often calls had to begin to wait for it. */
struct transfers_memory {
	size_t used;
	uint64_t waits;
};
struct transfers_memory transfers_memory(const struct transfers *transfers);

/* Queues the call; done is called from a later transfers_run. The transfer must live until the
 * release. */
void transfers_start(struct transfers *transfers, struct client_request *call);

/* Frees the reply; a call that is queued or in flight is cancelled. A zeroed call is welcome. */
void transfers_release(struct transfers *transfers, struct client_request *call);

/* Waits until a transfer or one of the descriptors is ready, or `timeout` ms (-1: no limit) are
 * over. */
void transfers_wait(struct transfers *transfers, struct pollfd *fds, size_t count, int timeout);

/* Moves the transfers on and calls done for those that ended. */
void transfers_run(struct transfers *transfers);

#endif
