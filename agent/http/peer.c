/*
 * Users are looked up in /etc/passwd only: getpwuid may ask a directory server, and the loop's
 * thread must not wait for one.
 */
#include "agent/http/peer.h"

#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { LINE = 4096, LAST_FOUR = 12 };

static void take_address(struct peer *peer, const struct sockaddr *address)
{
	static const struct peer v4 = {.address = {[10] = 0xff, [11] = 0xff}};
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	if (address->sa_family == AF_INET) {
		memcpy(&in, address, sizeof in);
		*peer = v4;
		memcpy(peer->address + LAST_FOUR, &in.sin_addr, sizeof in.sin_addr);
	} else if (address->sa_family == AF_INET6) {
		memcpy(&in6, address, sizeof in6);
		memcpy(peer->address, &in6.sin6_addr, sizeof in6.sin6_addr);
	}
}

struct peer peer_of(struct MHD_Connection *connection)
{
	int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	const struct sockaddr *address =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
			->client_addr;
	struct peer peer = {0};
	struct ucred user;
	socklen_t size = sizeof user;

	if (address->sa_family != AF_UNIX) {
		take_address(&peer, address);
		return peer;
	}
	peer.local = true;
	peer.uid = (uid_t)-1; /* nobody */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0)
		peer.uid = user.uid;
	return peer;
}

bool peer_is_same(const struct peer *a, const struct peer *b)
{
	return a->local == b->local && a->uid == b->uid &&
	       memcmp(a->address, b->address, sizeof a->address) == 0;
}

const char *peer_text(const struct peer *peer, struct arena *arena)
{
	if (peer->local)
		return arena_printf(arena, "uid %lu", (unsigned long)peer->uid);
	return network_text(peer->address, arena);
}

const char *peer_user(const struct peer *peer, struct arena *arena)
{
	FILE *file = fopen("/etc/passwd", "re");
	const char *name = NULL;
	struct passwd entry, *found;
	char line[LINE];

	while (file && !name && fgetpwent_r(file, &entry, line, sizeof line, &found) == 0)
		if (entry.pw_uid == peer->uid)
			name = arena_strdup(arena, entry.pw_name);
	if (file)
		fclose(file);
	return name ? name : peer_text(peer, arena);
}
