/*
 * The agent's HTTP server: libmicrohttpd as a guest of the engine's loop.
 *
 * Tables of routes map paths to handlers. A handler runs on the loop's thread and answers at
 * once or later: a request that is not answered when its route returns is kept, and its client
 * waits, until http_answer. Requests are bounded (size, number, time), errors are JSON:
 * {"error": "..."}. There is no TLS and no authentication, so whatever does more than show
 * numbers is for this machine only, and pages of other sites in a browser on this machine are
 * refused (see head.h).
 */
#ifndef AGENT_HTTP_SERVER_H
#define AGENT_HTTP_SERVER_H

#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/buf.h"

struct engine;
struct http;
struct http_request;

enum http_methods { HTTP_READ = 1 /* GET and HEAD */, HTTP_POST = 2 };

struct http_answer {
	int status;       /* 0: 200 */
	const char *type; /* content type, static; NULL: JSON */
	struct buf body;
};

struct route {
	const char *path; /* exact */
	unsigned methods; /* enum http_methods */
	bool guarded;     /* refused to pages of other sites */
	int64_t patience; /* ms a client waits for a later answer; 0: it is answered at once */
	const char *const *parameters; /* accepted ones, ends with NULL; or NULL: none */
	void (*serve)(void *context, struct http_request *request);
	bool urgent; /* may wait even if all ordinary places are taken */
};

struct http_options {
	const char *listen;                /* "127.0.0.1:9469", "[::1]:9469", "localhost:0" */
	bool open;                         /* allow any address, not only loopback */
	const struct route *routes, *more; /* end with one without a path; `more` may be NULL */
	void *context;                     /* of the routes */
	int64_t request_within;            /* ms to receive a request; 0: half a minute */
};

/*
 * Listens. NULL and an error: ERROR_USAGE for an address that is invalid, or not loopback and
 * not `open`; ERROR_STATE if binding fails. The routes and their context are borrowed.
 */
struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error);

/* Tells waiting and new clients that the agent is stopping, and closes. Requests kept by routes
 * stay until http_free; answering them is harmless. Both accept NULL. */
void http_stop(struct http *http);
void http_free(struct http *http);

/* The port in use. */
uint16_t http_port(const struct http *http);

/* A parameter or header; NULL: not given. Headers are valid while the route is called, all else
 * as long as the request. */
const char *http_parameter(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);
struct arena *http_arena(struct http_request *request);
struct buf *http_buffer(struct http_request *request); /* for building the answer */

/* Answers; takes the body. The route must not use the request afterwards. */
void http_answer(struct http_request *request, struct http_answer *answer);
void http_fail(struct http_request *request, int status, const char *format, ...) PRINTF_LIKE(3, 4);

/* The status for an error: 400, 502 or 503. */
int http_status_of(const struct error *error);

#endif
