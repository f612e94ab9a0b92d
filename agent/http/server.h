/*
 * The agent's HTTP server: libmicrohttpd as a guest of the engine's loop.
 *
 * Tables of routes say who answers what. An answer is made on the loop's thread, at once or later:
 * a request that is not answered when its route returns is kept, and its client waits, until
 * http_answer. Requests are bounded (size, number, time), errors are JSON: {"error": "..."}.
 * Nothing here speaks TLS or asks who is there, so what does more than show numbers is for this
 * machine only, and pages of other sites in a browser on this machine are kept out (see
 * guard.h).
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
	bool guarded;     /* not for pages of other sites */
	int64_t patience; /* ms a client waits for an answer made later; 0: it is made at once */
	const char *const *parameters; /* those it takes, ends with NULL; or NULL: none */
	void (*serve)(void *context, struct http_request *request);
	bool urgent; /* finds a place to wait where others find none any more */
};

struct http_options {
	const char *listen;                /* "127.0.0.1:9469", "[::1]:9469", "localhost:0" */
	bool open;                         /* other machines may be let in: any address */
	const struct route *routes, *more; /* end with one without a path; more may be NULL */
	void *context;                     /* of the routes */
	int64_t request_within;            /* ms for a request to come; 0: half a minute */
};

/*
 * Listens. NULL and an error: of kind ERROR_USAGE for an address that is wrong, or not this
 * machine's own and not `open`; ERROR_STATE for a port that cannot be had. The routes and their
 * context are borrowed.
 */
struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error);

/* Tells those who wait, and who ask meanwhile, that the agent ends, and closes. Requests that
 * routes have kept stay until http_free; answering them does no harm. Both accept NULL. */
void http_stop(struct http *http);
void http_free(struct http *http);

/* The port that is listened on. */
uint16_t http_port(const struct http *http);

/* What was asked; NULL: it was not given. Headers are there while the route is called, all else as
 * long as the request. */
const char *http_parameter(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);
struct arena *http_arena(struct http_request *request);
struct buf *http_buffer(struct http_request *request); /* for what is made of the answer */

/* Answers; takes the body. The request is gone for its route then. */
void http_answer(struct http_request *request, struct http_answer *answer);
void http_fail(struct http_request *request, int status, const char *format, ...) PRINTF_LIKE(3, 4);

/* The status that an error stands for: 400, 502 or 503. */
int http_status_of(const struct error *error);

#endif
