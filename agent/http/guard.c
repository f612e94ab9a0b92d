/* IP addresses in Host need no check: only a name can be made to resolve to another address. */
#include "agent/http/guard.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { NAME = 256 };

/* Cuts off the port and an IPv6 address' brackets. False: not a host. */
static bool name_of(const char *host, char out[NAME])
{
	const char *end = *host == '[' ? strchr(host, ']') : strchrnul(host, ':');
	size_t length = end ? (size_t)(end - host) : 0;
	const char *rest = end ? end + (*end == ']') : "";

	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (*host == '[' && length > 0)
		host++, length--;
	if (length == 0 || length >= NAME || *rest)
		return false;
	memcpy(out, host, length);
	out[length] = '\0';
	return true;
}

static bool is_address(const char *name)
{
	struct in6_addr address;

	return inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
}

static bool is_local(const char *name)
{
	size_t length = strlen(name), local = strlen("localhost");

	return length >= local && strcasecmp(name + length - local, "localhost") == 0 &&
	       (length == local || name[length - local - 1] == '.');
}

static bool is_ours(const struct http_claim *claim)
{
	char name[NAME];

	if (!name_of(claim->host, name))
		return false;
	for (size_t i = 0; i < sizeof claim->names / sizeof *claim->names; i++)
		if (claim->names[i] && strcasecmp(claim->names[i], name) == 0)
			return true;
	return is_address(name) || is_local(name);
}

static bool is_same_origin(const char *origin, const char *host)
{
	const char *name = strstr(origin, "://");

	return name && host && strcasecmp(name + 3, host) == 0;
}

bool http_guard(const struct http_claim *claim, struct error *error)
{
	bool link = !claim->posted && claim->mode && strcmp(claim->mode, "navigate") == 0;

	if (claim->host && !is_ours(claim))
		return error_set(error, ERROR_USAGE,
			"\"%.200s\" is not a name of this agent: use its address", claim->host);
	if (claim->origin && !is_same_origin(claim->origin, claim->host))
		return error_set(error, ERROR_USAGE, "requests from other sites are refused");
	if (claim->site && !link && strcmp(claim->site, "same-origin") != 0 &&
		strcmp(claim->site, "none") != 0)
		return error_set(error, ERROR_USAGE, "requests from other sites are refused");
	return true;
}
