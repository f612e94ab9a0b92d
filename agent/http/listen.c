/*
 * An address is looked up once, and the first that is found is listened on. [::] takes IPv4 as
 * well, whatever the machine's default is.
 */
#include "agent/http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64 };

bool http_listen_split(const char *listen, char host[256], char port[6], struct error *error)
{
	const char *colon = strrchr(listen, ':');
	size_t length = colon ? (size_t)(colon - listen) : 0;
	const char *begin = listen;
	if (length > 1 && listen[0] == '[' && colon[-1] == ']') {
		begin++;
		length -= 2;
	} else if (colon && memchr(listen, ':', length)) {
		length = 0; /* an IPv6 address needs its brackets */
	}
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	if (length == 0 || length > 255 || digits == 0 || digits > 5 || colon[1 + digits] ||
		atol(colon + 1) > 65535)
		return error_set(error, ERROR_USAGE,
			"\"%.200s\" is not of the form host:port, as 127.0.0.1:9469 or "
			"[::1]:9469 are",
			listen);
	memcpy(host, begin, length);
	host[length] = '\0';
	strcpy(port, colon + 1);
	return true;
}

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET) {
		struct sockaddr_in v4;
		memcpy(&v4, address, sizeof v4);
		return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
	}
	struct sockaddr_in6 v6;
	if (address->sa_family != AF_INET6)
		return false;
	memcpy(&v6, address, sizeof v6);
	return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

uint16_t http_listen_port(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return 0;
	/* The port lies at the same place in both families. */
	struct sockaddr_in v4;
	memcpy(&v4, &address, sizeof v4);
	return ntohs(v4.sin_port);
}

static int open_address(const char *listen_on, const struct addrinfo *found, struct error *error)
{
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1,
	    no = 0;
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (fd >= 0 && found->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
		listen(fd, BACKLOG) != 0) {
		error_set(error, ERROR_STATE, "cannot listen on %.200s: %s", listen_on,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

int http_listen_open(const char *listen_on, bool open, struct error *error)
{
	char host[256], port[6];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	if (!http_listen_split(listen_on, host, port, error))
		return -1;
	int failed = getaddrinfo(host, port, &hints, &found);
	if (failed) {
		error_set(error, ERROR_USAGE, "%s: %s", host, gai_strerror(failed));
		return -1;
	}
	int fd = -1;
	if (open || is_loopback(found->ai_addr))
		fd = open_address(listen_on, found, error);
	else
		error_set(error, ERROR_USAGE,
			"%s can be reached from other machines, and the API has no "
			"authentication; use 127.0.0.1:%s (or --insecure; metrics_listen opens the "
			"metrics alone)",
			listen_on, port);
	freeaddrinfo(found);
	return fd;
}
