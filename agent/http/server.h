/*
 * The agent's HTTP server: libmicrohttpd as a guest of the engine's loop.
 *
 * Tables of routes map paths to handlers. A handler runs on the loop's thread and answers at once
 * or later: a request that is not answered when its route returns is kept, and its client waits,
 * until http_answer. Requests are bounded (size, number, time), errors are JSON: {"error": "..."}.
 * Each route has the role it needs (see access.h), and pages of other sites in a user's browser are
 * refused (see head.h).
 */
#ifndef AGENT_HTTP_SERVER_H
#define AGENT_HTTP_SERVER_H

#include <stdint.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/http/access.h"
#include "agent/http/listen.h"

struct http;
struct http_request;

/* What a route is used for, and how. Bits. */
enum http_use {
	HTTP_READ = 1,    /* GET and HEAD */
	HTTP_POST = 2,    /* with a form, if it has a body */
	HTTP_BULK = 4,    /* in addition to POST: a body of any content type, which it may take */
	HTTP_SHOWN = 8,   /* pages of other sites may show it as an image, but not read it, ... */
	HTTP_OPEN = 16,   /* ... or use it freely; else not at all */
	HTTP_URGENT = 32, /* may wait even if all ordinary places are taken */
};

enum { HTTP_BULK_MOST = 10 << 20 }; /* bytes */

/* Texts are static or in the request's arena. */
struct http_answer {
	int status;       /* 0: 200 */
	const char *type; /* content type; NULL: JSON */
	struct buf body;
	const void *fixed; /* instead of a body: bytes that live as long as the program, or NULL */
	size_t fixed_length;
	const char *encoding; /* of the body as it is: "gzip"; NULL: none */
	/* Quoted; a client that has this version gets 304. It may keep the answer, and revalidates
	 * it each time. NULL: it must not be kept. */
	const char *etag;
	const char *policy; /* Content-Security-Policy; NULL: nothing may be loaded or run */
};

struct route {
	/* Exact, but for a *, which stands for an id. One that ends with a slash, but "/", has all
	 * paths below it. */
	const char *path;
	unsigned uses; /* enum http_use */
	enum role needs;
	int64_t patience; /* ms a client waits for a later answer; 0: it is answered at once */
	/* Names of accepted ones, with blanks between them; NULL: none. "*": they are ignored, as
	 * by a page whose script reads them. */
	const char *parameters;
	void (*serve)(struct http_request *request);
};

enum { HTTP_TABLES = 4 };

struct http_options {
	struct listen_options listen;
	struct access *access;                   /* access control; NULL: none */
	const char *external_url;                /* the agent's public address, or NULL */
	const struct route *routes[HTTP_TABLES]; /* each ends with one without a path; or NULL */
	void *context;                           /* of the routes */
	const bool *ending;     /* routes that clients may wait for are called no more; or NULL */
	int64_t request_within; /* ms to receive a request; 0: half a minute */
};

/*
 * Listens; NULL and an error as for listen_open. There is TLS if `access` has a certificate, but
 * not on a Unix socket. The routes and their context are borrowed.
 */
struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error);

/* Answers waiting and new clients that the agent is stopping, and closes. Requests kept by routes
 * stay until http_free; answering them has no effect. Both accept NULL. */
void http_stop(struct http *http);
void http_free(struct http *http);

/* The port in use; 0: a Unix socket. Whether other machines can reach it. */
uint16_t http_port(const struct http *http);
bool http_is_reachable(const struct http *http);

/* A parameter or header; NULL: not given. Headers are valid while the route is called, parameters
 * as long as the request (see request.h). */
const char *http_parameter(const struct http_request *request, const char *name);
const char *http_header(const struct http_request *request, const char *name);

/* Answers; takes the body. The route must not use the request afterwards. http_send answers with
 * what the request's buffer has, as JSON, and a line break. */
void http_answer(struct http_request *request, struct http_answer *answer);
void http_send(struct http_request *request, int status);
void http_fail(struct http_request *request, int status, const char *format, ...) PRINTF_LIKE(3, 4);

/* An answer without end. */
struct http_stream {
	const char *type; /* content type, static */
	int64_t every;    /* ms after which it is asked for a piece again, unless it is woken */
	/* Appends to `out`, which is empty; not called before the client has taken the previous
	 * piece. Nothing: that is all for now. False: the connection is closed, so that the client
	 * knows. */
	bool (*next)(void *context, struct buf *out);
	void (*end)(void *context); /* called once, at the end */
	void *context;
};

enum { HTTP_LISTENERS = 200, HTTP_LISTENERS_OF_ONE = 50 /* address, or user of a socket */ };

/*
 * Answers piece by piece, with status 200, before the route returns. A client that does not read is
 * closed, never waited for. The request is valid until `end`, and only for http_stream_wake. False:
 * all places are taken; the request is still to be answered, and `end` is not called.
 */
bool http_stream(struct http_request *request, const struct http_stream *stream) MUST_USE;
void http_stream_wake(struct http_request *request);

/* Ends all of them, so that their clients reconnect. */
void http_end_streams(struct http *http);

/* Appends the text that gzip packed, of several files in a row. False: it is malformed, cut off, or
 * has more than `most` bytes, which `out` then has, too. */
bool http_unpack(const void *packed, size_t length, size_t most, struct buf *out) MUST_USE;

/* The status for an error: 400, 502 or 503. */
int http_status_of(const struct error *error);

#endif
