/*
 * A request's life: what server.c, which takes requests, and request.c, which answers them,
 * share.
 */
#ifndef AGENT_HTTP_REQUEST_H
#define AGENT_HTTP_REQUEST_H

#include <microhttpd.h>

#include "agent/http/query.h"
#include "agent/http/server.h"
#include "agent/http/visits.h"

enum { HTTP_HOST = 256 };

struct http {
	struct engine *engine;
	struct MHD_Daemon *daemon; /* NULL: stopped */
	struct http_options options;
	char listen_host[HTTP_HOST], machine[HTTP_HOST];
	int epoll;
	uint16_t port;
	struct visits visits;
	struct http_request *requests;
	size_t kept;    /* by routes, not answered */
	size_t waiting; /* connections that are suspended */
	bool resumed;   /* a connection goes on when libmicrohttpd is run */
	bool stopping;  /* no route is called any more */
};

enum http_stage {
	STAGE_HEAD,     /* nothing but the first line has come */
	STAGE_BODY,     /* the body is coming */
	STAGE_SERVING,  /* the route has it */
	STAGE_WAITING,  /* the route has kept it, the client waits */
	STAGE_ANSWERED, /* there is an answer to send */
	STAGE_SENT,
};

struct http_request {
	struct http *http;
	struct arena *arena;
	struct MHD_Connection *connection; /* NULL: it is done with the request */
	struct http_request *next, **link;
	const struct route *route;
	const char *query; /* not decoded */
	struct http_query parameters;
	bool posted;
	struct buf body, buffer;
	size_t dropped; /* bytes of the body */
	enum http_stage stage;
	bool kept; /* by its route */
	int64_t deadline;
	struct http_answer answer;
	const char *allow; /* goes with 405 */
	bool closes;       /* nothing after it on its connection is read */
};

/* For libmicrohttpd: called with the first line of a request; what it returns is the request's
 * state from then on. And called when a connection is done with a request. */
void *http_request_begin(void *context, const char *uri, struct MHD_Connection *connection);
void http_request_end(void *context, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code);

void http_request_free(struct http_request *request);

/* Sets an error as the answer, which is sent when libmicrohttpd asks for it. */
void http_request_fail(struct http_request *request, int status, const char *problem);

/* Sends the answer that was set. */
enum MHD_Result http_request_send(struct http_request *request);

#endif
