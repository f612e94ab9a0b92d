/*
 * Connections and their time: a request must have come, to its end, within a while of its
 * connection's beginning or of the request before. libmicrohttpd only knows of connections that are
 * silent, so one that sends a byte now and then would keep its place for ever.
 */
#ifndef AGENT_HTTP_VISITS_H
#define AGENT_HTTP_VISITS_H

#include <microhttpd.h>
#include <stdint.h>

struct visit {
	struct MHD_Connection *connection;
	int64_t due; /* when a request must have come; ms of the monotonic clock */
	struct visit *next, **link;
};

struct visits {
	int64_t within; /* ms for a request */
	struct visit *first;
};

/* For libmicrohttpd: called with the visits as the context when a connection begins and ends. */
void http_visits_note(void *context, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode code);

/* The request has come; and the connection is done with it, the next one may come. */
void http_visits_complete(struct MHD_Connection *connection);
void http_visits_again(const struct visits *visits, struct MHD_Connection *connection);

/* Shuts the connections whose time is over, which libmicrohttpd sees when it is run; returns the ms
 * until the next one's is, or -1. */
int64_t http_visits_sweep(struct visits *visits);

#endif
