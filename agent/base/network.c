#include "agent/base/network.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPED = 12, TEXT = 64 };

static const unsigned char mapped[NETWORK_ADDRESS] = {[10] = 0xff, [11] = 0xff};

bool network_address(const char *text, unsigned char out[NETWORK_ADDRESS])
{
	memcpy(out, mapped, MAPPED);
	return inet_pton(AF_INET, text, out + MAPPED) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

bool network_has(const struct network *network, const unsigned char address[NETWORK_ADDRESS])
{
	size_t bytes = network->bits / 8;
	unsigned rest = network->bits % 8;

	return memcmp(network->address, address, bytes) == 0 &&
	       (rest == 0 || (network->address[bytes] ^ address[bytes]) >> (8 - rest) == 0);
}

bool network_parse(const char *text, struct network *out, struct error *error)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	char address[TEXT];
	unsigned bits = 0;

	if (length >= sizeof address)
		length = 0;
	memcpy(address, text, length);
	address[length] = '\0';
	bool valid = network_address(address, out->address);
	unsigned most = strchr(address, ':') ? 128 : 32;

	size_t digits = slash ? strspn(slash + 1, "0123456789") : 0;
	if (digits > 0 && digits <= 3)
		bits = (unsigned)atoi(slash + 1);
	if (!valid || bits > most || (slash && (digits == 0 || digits > 3 || slash[1 + digits])))
		return error_set(error, ERROR_USAGE,
			"\"%.80s\" is not an address or a network, like 127.0.0.1 or 10.0.0.0/8",
			text);
	if (slash && bits == 0)
		return error_set(error, ERROR_USAGE, "\"%.80s\" matches all addresses", text);
	out->bits = (slash ? bits : most) + 128 - most;
	if (out->bits <= 8 * MAPPED && network_has(out, mapped))
		return error_set(error, ERROR_USAGE,
			"\"%.80s\" matches all IPv4 addresses; write IPv4 networks such as "
			"10.0.0.0/8",
			text);
	return true;
}

bool network_is_v4(const unsigned char address[NETWORK_ADDRESS])
{
	return memcmp(address, mapped, MAPPED) == 0;
}

const char *network_text(const unsigned char address[NETWORK_ADDRESS], struct arena *arena)
{
	char text[INET6_ADDRSTRLEN];

	if (network_is_v4(address))
		inet_ntop(AF_INET, address + MAPPED, text, sizeof text);
	else
		inet_ntop(AF_INET6, address, text, sizeof text);
	return arena_strdup(arena, text);
}

bool network_is_loopback(const unsigned char address[NETWORK_ADDRESS])
{
	static const struct network v4 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127}, 104};
	static const struct network v6 = {{[15] = 1}, 128};

	return network_has(&v4, address) || network_has(&v6, address);
}
