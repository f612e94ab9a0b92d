/*
 * The socket that the HTTP server listens on.
 */
#ifndef AGENT_HTTP_LISTEN_H
#define AGENT_HTTP_LISTEN_H

#include <stdint.h>

#include "agent/core/error.h"

/* Cuts "host:port" or "[host]:port" in two. */
bool http_listen_split(
	const char *listen, char host[256], char port[6], struct error *error) MUST_USE;

/*
 * A socket that listens on "host:port"; the caller closes it. -1 and an error: of kind ERROR_USAGE
 * for an address that is wrong, or that other machines reach unless `open`; ERROR_STATE for one
 * that cannot be had.
 */
int http_listen_open(const char *listen, bool open, struct error *error);

/* The port of a socket. */
uint16_t http_listen_port(int fd);

#endif
