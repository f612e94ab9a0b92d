/*
 * Transfers: carries out the requests of sources and notifiers, HTTP by libcurl's multi interface.
 *
 * All functions are for the loop's thread. Each server (scheme, host, port) has a queue; servers
 * take turns, each has at most its endpoint's max_concurrent requests in flight, all together
 * TRANSFERS_AT_ONCE. libcurl is initialised with the first HTTP transfer.
 *
 * Answers in flight have a memory budget, from their first byte until the request is released.
 * While it is used up no request is started, so slow processing of answers slows down the requests
 * instead of filling memory. When answers exceed their memory, the youngest requests of the server
 * that uses the most are given up, and repeated when enough is free. Servers have equal shares; a
 * request that waits for memory is overtaken a bounded number of times; the oldest continues
 * whatever its size. So every request completes, and the budget is exceeded by one answer at most.
 */
#ifndef AGENT_IO_TRANSFERS_H
#define AGENT_IO_TRANSFERS_H

#include <poll.h>

#include "agent/base/transfer.h"

enum { TRANSFERS_AT_ONCE = 256, TRANSFERS_MEMORY = 256000000 };

struct transfers;

/* A request; lies within the caller's own struct and must live until it is released. */
struct client_request {
	const struct transfer *transfer;
	void (*done)(struct client_request *request);
	struct reply reply; /* set when `done` is called, valid until transfers_release */

	/* Private to transfers. */
	struct client_request *next, *previous;
	struct client_request_list *list;
	struct host *host;
	struct exchange *exchange;
	char *failure;
	bool counted;
	uint64_t age; /* number of its first start; 0: not started */
	size_t wants; /* bytes it needs, if it was given up for lack of memory */
};

/* `memory`: the budget in bytes. An answer counts twice, as the parsed data take about as much. */
struct transfers *transfers_new(size_t memory);
void transfers_free(struct transfers *transfers); /* all requests are released */
void transfers_set_memory(struct transfers *transfers, size_t memory);

/* Each server's limit is shared by so many programs; at least one request is made at a time. */
void transfers_share(struct transfers *transfers, size_t programs);

/* The budget, the bytes in use, and how often requests began to wait for memory. */
struct transfers_memory {
	size_t used;
	uint64_t waits;
};
struct transfers_memory transfers_memory(const struct transfers *transfers);

/* Makes libcurl ready for use by other threads, too, until transfers_free. */
void transfers_prepare(struct transfers *transfers);

/* Queues the request; `done` is called from a later transfers_run. The transfer must live until
 * the release. */
void transfers_start(struct transfers *transfers, struct client_request *request);

/* Frees the reply; cancels a request that is queued or in flight. Accepts a zeroed request. */
void transfers_release(struct transfers *transfers, struct client_request *request);

/* Waits until a transfer or one of the descriptors is ready, at most `timeout` ms (-1: no
 * limit). */
void transfers_wait(struct transfers *transfers, struct pollfd *fds, size_t count, int timeout);

/* Advances the transfers and calls `done` for those that ended. */
void transfers_run(struct transfers *transfers);

#endif
