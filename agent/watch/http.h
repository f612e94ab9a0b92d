/*
 * The agent's HTTP server: libmicrohttpd as a guest of the engine's loop.
 *
 * A table of routes says who answers what; answers are made on the loop's thread, whole and at
 * once. Requests are bounded (size, number, time), errors are JSON: {"error": "..."}. Nothing here
 * speaks TLS or asks who is there, so only addresses of this machine may be listened on.
 */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include <stdint.h>

#include "agent/core/buf.h"
#include "agent/core/error.h"

struct engine;
struct http;

struct http_answer {
	int status;       /* 200 unless set */
	const char *type; /* content type, static; "text/plain; charset=utf-8" unless set */
	struct buf body;
};

struct route {
	const char *path; /* exact */
	void (*get)(void *context, struct http_answer *answer);
};

/*
 * Listens on "host:port" ("127.0.0.1:9469", "[::1]:9469", "localhost:0"). NULL and an error: of
 * kind ERROR_USAGE for an address that is wrong or not this machine's own, ERROR_STATE for a port
 * that cannot be had. The routes end with one without a path and are borrowed.
 */
struct http *http_start(struct engine *engine, const char *listen, const struct route *routes,
	void *context, struct error *error);
void http_stop(struct http *http);

/* The port that is listened on. */
uint16_t http_port(const struct http *http);

#endif
