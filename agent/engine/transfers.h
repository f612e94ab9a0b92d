/*
 * Transfers: carries out what sources and notifiers yield, HTTP by libcurl's multi interface.
 *
 * All functions are for the loop's thread. Each server (scheme, host, port) has a queue; servers
 * take turns, each has at most its endpoint's max_concurrent requests in flight, all together
 * TRANSFERS_AT_ONCE. A call counts until it is released, and no new one is started while the
 * answers held pass TRANSFERS_HELD bytes: who is slow to read answers stops the asking, not the
 * machine. Where the answers in flight grow past twice of that, the youngest are given up and asked
 * for again later. libcurl is initialised with the first HTTP transfer.
 */
#ifndef AGENT_TRANSFERS_H
#define AGENT_TRANSFERS_H

#include <poll.h>

#include "agent/core/transfer.h"

enum { TRANSFERS_AT_ONCE = 256, TRANSFERS_HELD = 256 << 20 };

struct transfers;

/* One transfer on its way; lies within the caller's own struct and must live until it is released.
 */
struct call {
	const struct transfer *transfer;
	void (*done)(struct call *call);
	struct reply reply; /* set when done is called, good until transfers_release */

	/* The transfers' own. */
	struct call *next, *previous;
	struct call_list *list;
	struct host *host;
	struct exchange *exchange;
	char *failure;
	bool counted;
};

struct transfers *transfers_new(size_t held);     /* TRANSFERS_HELD, or another mark */
void transfers_free(struct transfers *transfers); /* all calls are released */

/* Queues the call; done is called from a later transfers_run. The transfer must live until the
 * release. */
void transfers_start(struct transfers *transfers, struct call *call);

/* Frees the reply; a call that is queued or in flight is cancelled. A zeroed call is welcome. */
void transfers_release(struct transfers *transfers, struct call *call);

/* Waits until a transfer or one of the descriptors is ready, or `timeout` ms (-1: no limit) are
 * over. */
void transfers_wait(struct transfers *transfers, struct pollfd *fds, size_t count, int timeout);

/* Moves the transfers on and calls done for those that ended. */
void transfers_run(struct transfers *transfers);

#endif
