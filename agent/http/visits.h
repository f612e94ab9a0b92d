/*
 * Connections and their time: a request must have come, to its end, within a while of its
 * connection's beginning or of the request before. libmicrohttpd only knows of connections that are
 * silent, so one that sends a byte now and then would keep its place for ever.
 *
 * And their places: a new connection always finds one. Where all are taken, or all that one address
 * may have, the connection closes whose request, or whose reading of its answer, has taken longest.
 * So whoever asks at once, as probes of the agent's health do, is served whatever others hold.
 */
#ifndef AGENT_HTTP_VISITS_H
#define AGENT_HTTP_VISITS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct visit {
	struct MHD_Connection *connection;
	int64_t since; /* the request or its answer is on its way; ms of the monotonic clock */
	int64_t due;   /* when a request must have come */
	bool held;     /* the agent is making the answer */
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

/* The request has come; its answer is being sent; and the connection is done with it, the next one
 * may come. */
void http_visits_complete(struct MHD_Connection *connection);
void http_visits_answer(struct MHD_Connection *connection);
void http_visits_again(const struct visits *visits, struct MHD_Connection *connection);

/* Shuts the connections whose time is over, which libmicrohttpd sees when it is run; returns the ms
 * until the next one's is, or -1. */
int64_t http_visits_sweep(struct visits *visits);

/*
 * Shuts the connections that have ended within a request, or between two. To be called when
 * libmicrohttpd has done all it can: it reads what has come, but where the end has come with it, it
 * is not woken again (0.9.75, on epoll).
 */
void http_visits_end(struct visits *visits);

#endif
