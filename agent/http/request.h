/*
 * A request's life: shared by server.c, which receives requests, and request.c, which answers
 * them.
 */
#ifndef AGENT_HTTP_REQUEST_H
#define AGENT_HTTP_REQUEST_H

#include <microhttpd.h>

#include "agent/http/head.h"
#include "agent/http/server.h"
#include "agent/http/visits.h"

struct http {
	struct engine *engine;
	struct MHD_Daemon *daemon; /* NULL: stopped */
	struct http_options options;
	struct listener listener;
	char machine[LISTEN_HOST];
	char *external; /* the origin of external_url, or NULL */
	int epoll;
	struct visits visits;
	struct http_request *requests;
	size_t kept;    /* by routes, unanswered */
	size_t waiting; /* suspended connections */
	bool tls;
	bool resumed;  /* a connection resumes when libmicrohttpd is run */
	bool stopping; /* routes are not called any more */
};

enum http_stage {
	STAGE_HEAD,     /* only the first line has been received */
	STAGE_SIGN_IN,  /* the password is being checked, the client waits */
	STAGE_ADMITTED, /* the password was right */
	STAGE_BODY,     /* the body is being received */
	STAGE_SERVING,  /* the route is running */
	STAGE_WAITING,  /* the route has kept it, the client waits */
	STAGE_ANSWERED, /* an answer is ready to be sent */
	STAGE_SENT,
};

struct http_request {
	struct http *http;
	struct arena *arena;
	struct MHD_Connection *connection; /* NULL: it has finished with the request */
	struct http_request *next, **link;
	const struct route *route;
	int64_t id;        /* in the path, or 0 */
	const char *query; /* not decoded */
	struct http_query parameters;
	bool posted;
	struct buf body, buffer;
	size_t dropped; /* body bytes */
	enum http_stage stage;
	bool kept; /* by its route */
	int64_t deadline;
	struct http_answer answer;
	struct sign_in sign_in;
	const char *allow;   /* sent with 405 */
	int64_t retry_after; /* seconds, sent with 429 */
	bool closes;         /* the connection is closed afterwards */
};

/* For libmicrohttpd: called with the first line of a request, returns the request's state; and
 * called when a connection has finished with a request. */
void *http_request_begin(void *context, const char *uri, struct MHD_Connection *connection);
void http_request_end(void *context, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code);

void http_request_free(struct http_request *request);

/* Lets a suspended connection go on. */
void http_request_resume(struct http_request *request);

/* Sets an error as the answer, which is sent when libmicrohttpd asks for it. */
void http_request_fail(struct http_request *request, int status, const char *problem);

/* Sends the answer that was set. */
enum MHD_Result http_request_send(struct http_request *request);

#endif
