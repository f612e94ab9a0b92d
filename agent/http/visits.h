/*
 * Connections and their deadlines: a request must be complete within a while of its connection's
 * start or of the request before. libmicrohttpd only times out silent connections, so one that
 * sends a byte now and then would keep its place for ever.
 *
 * A new connection always finds a place: if all are taken, or all that one address may have, the
 * connection whose request, or whose reading of the answer, has taken longest is closed. So a
 * client that sends its request at once, such as a health probe, is served even if others hold all
 * places.
 */
#ifndef AGENT_HTTP_VISITS_H
#define AGENT_HTTP_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/http/peer.h"
#include "agent/http/tls.h"

struct visit {
	struct MHD_Connection *connection;
	struct peer peer;
	struct tls *tls; /* the certificate in use, or NULL; released at the end */
	int64_t since;   /* start of the request or the answer in transit; ms of the monotonic clock
			  */
	int64_t due;     /* deadline of the request */
	bool held;       /* the agent is computing the answer */
	bool listens;    /* to an answer without end: does not count */
	bool shut;
	struct visit *next, **link;
};

struct visits {
	int64_t within;             /* ms for a request */
	size_t most, of_an_address; /* connections */
	struct visit *first;
};

/* For libmicrohttpd: called with the visits as the context when a connection begins and ends. */
void http_visits_note(void *context, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode code);

/* The answer has no end. */
void http_visits_listen(struct MHD_Connection *connection);

/* The request is complete, or waits for us; its answer is being sent; the connection has finished
 * with it, and the next one may come, or the rest of this one. */
void http_visits_complete(struct MHD_Connection *connection);
void http_visits_answer(struct MHD_Connection *connection);
void http_visits_again(const struct visits *visits, struct MHD_Connection *connection);

/* Shuts the connections whose time is over, which libmicrohttpd notices when it is run; returns
 * the ms until the next deadline, or -1. */
int64_t http_visits_sweep(struct visits *visits);

/*
 * Shuts the connections whose peers have closed within a request, or between two. To be called
 * when libmicrohttpd has done all it can: it reads what has arrived, but is not woken again for
 * an end that arrived with it (0.9.75, on epoll).
 */
void http_visits_end(struct visits *visits);

#endif
