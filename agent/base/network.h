/* IP addresses and networks, IPv4 as the part of IPv6 that stands for it (::ffff:a.b.c.d). */
#ifndef AGENT_BASE_NETWORK_H
#define AGENT_BASE_NETWORK_H

#include "agent/base/arena.h"

enum { NETWORK_ADDRESS = 16 };

struct network {
	unsigned char address[NETWORK_ADDRESS];
	unsigned bits; /* leading bits of the address that all members share */
};

/* An address as text, without port and brackets; false: it is none. */
bool network_address(const char *text, unsigned char out[NETWORK_ADDRESS]) MUST_USE;

/* "10.0.0.0/8", "fd00::/8" or a single address. Fails with ERROR_USAGE; a network of all
 * addresses is refused. */
bool network_parse(const char *text, struct network *out, struct error *error) MUST_USE;

bool network_has(const struct network *network, const unsigned char address[NETWORK_ADDRESS]);

/* The address as text, without brackets. */
const char *network_text(const unsigned char address[NETWORK_ADDRESS], struct arena *arena);

/* Whether it is one of IPv4. */
bool network_is_v4(const unsigned char address[NETWORK_ADDRESS]);

/* Whether the address is this machine's loopback. */
bool network_is_loopback(const unsigned char address[NETWORK_ADDRESS]);

#endif
