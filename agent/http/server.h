/*
 * The agent's HTTP server: libmicrohttpd as a guest of the engine's loop.
 *
 * Tables of routes map paths to handlers. A handler runs on the loop's thread and answers at
 * once or later: a request that is not answered when its route returns is kept, and its client
 * waits, until http_answer. Requests are bounded (size, number, time), errors are JSON:
 * {"error": "..."}. Each route says who may use it (see access.h), and pages of other sites in a
 * user's browser are refused (see head.h).
 */
#ifndef AGENT_HTTP_SERVER_H
#define AGENT_HTTP_SERVER_H

#include <stdint.h>

#include "agent/core/arena.h"
#include "agent/core/buf.h"
#include "agent/http/access.h"
#include "agent/http/listen.h"

struct http;
struct http_request;

enum http_methods { HTTP_READ = 1 /* GET and HEAD */, HTTP_POST = 2 };

struct http_answer {
	int status;       /* 0: 200 */
	const char *type; /* content type, static; NULL: JSON */
	struct buf body;
};

struct route {
	const char *path; /* exact, but for a *, which stands for an id: see http_id */
	unsigned methods; /* enum http_methods */
	bool guarded;     /* refused to pages of other sites */
	int64_t patience; /* ms a client waits for a later answer; 0: it is answered at once */
	const char *const *parameters; /* accepted ones, ends with NULL; or NULL: none */
	void (*serve)(void *context, struct http_request *request);
	bool urgent; /* may wait even if all ordinary places are taken */
	enum role needs;
};

struct http_options {
	struct listen_options listen;
	struct access *access;             /* who may do what; NULL: everybody everything */
	const char *external_url;          /* under which users know the agent, or NULL */
	const struct route *routes, *more; /* end with one without a path; `more` may be NULL */
	void *context;                     /* of the routes */
	int64_t request_within;            /* ms to receive a request; 0: half a minute */
};

/*
 * Listens; NULL and an error as for listen_open. There is TLS if `access` has a certificate, but
 * not on a Unix socket. The routes and their context are borrowed.
 */
struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error);

/* Tells waiting and new clients that the agent is stopping, and closes. Requests kept by routes
 * stay until http_free; answering them is harmless. Both accept NULL. */
void http_stop(struct http *http);
void http_free(struct http *http);

/* The port in use; 0: a Unix socket. Whether other machines can reach it. */
uint16_t http_port(const struct http *http);
bool http_is_reachable(const struct http *http);

/* The id in the request's path; 0: its route has none. */
int64_t http_id(const struct http_request *request);

/* Who has sent the request. */
const struct http_person *http_person(const struct http_request *request);

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
