/*
 * A request, and its life: shared by server.c, which receives requests, request.c, which answers
 * them, and routes, for the first members of a request.
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
	size_t kept;        /* by routes, unanswered */
	struct pack *packs; /* answers that a worker compresses */
	size_t flows;       /* answers without end, in progress */
	size_t waiting,
		pictures; /* suspended connections: of pictures, and of all other requests */
	size_t bulky;     /* requests that receive a large body */
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
	STAGE_PACKING,  /* the answer is being compressed, the client waits */
	STAGE_ANSWERED, /* an answer is ready to be sent */
	STAGE_SENT,
};

/* An answer that is sent piece by piece. */
struct flow {
	struct http_stream stream; /* without `next`: the answer is none */
	struct buf piece;
	size_t sent;  /* of the piece */
	bool resting; /* the connection is suspended until it is woken */
	bool over;    /* the piece is the last one */
	int64_t due;  /* while it rests: when it is woken at the latest */
};

struct http_request {
	/* For routes */
	void *context; /* of the routes */
	struct arena *arena;
	int64_t id;              /* in the path, or 0 */
	const char *rest;        /* of the path, if the route's ends with a slash */
	struct buf body, buffer; /* buffer: for building the answer */
	struct sign_in sign_in;  /* its person is the sender */
	const struct route *route;

	/* Here alone */
	struct http *http;
	struct MHD_Connection *connection; /* NULL: it has finished with the request */
	struct http_request *next, **link;
	bool has_nul;      /* the path, percent-encoded */
	const char *after; /* the rest of the first line after the address, up to its first NUL */
	const char *query; /* not decoded */
	struct http_query parameters;
	bool posted;
	bool bulky;     /* counted among http->bulky */
	size_t dropped; /* body bytes */
	enum http_stage stage;
	bool kept; /* by its route */
	int64_t deadline;
	struct http_answer answer;
	struct flow flow;
	struct pack *pack;   /* of its answer, or NULL */
	const char *known;   /* the header If-None-Match, or NULL */
	bool gzips;          /* the client takes answers in gzip */
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

/* The counter of waiting requests of its kind. */
size_t *http_places(struct http_request *request);

/* Lets a suspended connection continue. */
void http_request_resume(struct http_request *request);

/* Sets an error as the answer, which is sent on libmicrohttpd's next call. */
void http_request_fail(struct http_request *request, int status, const char *problem);

/* Sets the answer, which is sent on libmicrohttpd's next call. */
void http_request_answer(struct http_request *request, struct http_answer *answer);

/* Whether the client has this version: If-None-Match lists it, or *. */
bool http_is_known(const struct http_request *request, const char *etag);

/* Gives an answer a version and compresses it, if that saves space. True: a worker does so, owns
 * the answer and sets it later. http_pack_leave: the request waits no longer. http_packs_free frees
 * unfinished work. (pack.c) */
bool http_pack(struct http_request *request, struct http_answer *answer);
void http_pack_leave(struct http_request *request);
void http_packs_free(struct http *http);

/* Gives libmicrohttpd the pieces of the answer; ends a flow with its request. (stream.c) */
struct MHD_Response *http_flow_response(struct http_request *request);
void http_flow_end(struct http_request *request);

/* Sends the answer that was set. */
enum MHD_Result http_request_send(struct http_request *request);

#endif
