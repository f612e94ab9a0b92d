/* The socket that the HTTP server listens on: of TCP, or in the file system. */
#ifndef AGENT_HTTP_LISTEN_H
#define AGENT_HTTP_LISTEN_H

#include <stdint.h>
#include <sys/types.h>

#include "agent/base/error.h"

enum { LISTEN_HOST = 256, LISTEN_PATH = 108 };

struct listen_options {
	const char *address; /* "127.0.0.1:9469", "[::1]:9469", "localhost:0", "unix:/run/x.sock" */
	bool open;           /* allow any address, not only loopback */
	const char *mode;    /* of a socket's file, octal; NULL: 0660 */
	const char *owner;   /* "user", "user:group" or ":group"; NULL: as the process */
};

struct listener {
	int fd;
	char host[LISTEN_HOST]; /* as given; "": a Unix socket */
	bool reachable;         /* from other machines */
	char path[LISTEN_PATH]; /* of the socket's file, or "" */
	dev_t device;
	ino_t inode;
};

/*
 * A host is resolved once, and its first address is used. [::] accepts IPv4 as well, whatever the
 * system's default. A socket file without a listener is replaced.
 *
 * False and an error: ERROR_USAGE for an address that is invalid, or not loopback and not `open`;
 * ERROR_STATE if binding fails. The caller closes the descriptor.
 */
bool listen_open(
	const struct listen_options *options, struct listener *out, struct error *error) MUST_USE;

/* Removes the socket's file, if it is still the one that was made. */
void listen_remove(const struct listener *listener);

#endif
