/* The peer of a connection: an address, or a user of this machine. */
#ifndef AGENT_HTTP_PEER_H
#define AGENT_HTTP_PEER_H

#include <microhttpd.h>
#include <sys/types.h>

#include "agent/base/arena.h"
#include "agent/base/network.h"

struct peer {
	bool local; /* through a Unix socket: `uid` is known, otherwise `address` */
	uid_t uid;
	unsigned char address[NETWORK_ADDRESS];
};

struct peer peer_of(struct MHD_Connection *connection);
bool peer_is_same(const struct peer *a, const struct peer *b);

/* "192.0.2.7" or "uid 1000"; and "ann" instead of "uid 1000", if /etc/passwd names the user. */
const char *peer_text(const struct peer *peer, struct arena *arena);
const char *peer_user(const struct peer *peer, struct arena *arena);

#endif
