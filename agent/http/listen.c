#include "agent/http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 64 };

/* Splits "host:port" or "[host]:port". */
static bool split(const char *listen, char host[LISTEN_HOST], char port[6], struct error *error)
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
			"\"%.200s\" is not of the form host:port, such as 127.0.0.1:9469 or "
			"[::1]:9469",
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

static bool fail(const char *address, const char *why, struct error *error)
{
	return error_set(error, ERROR_STATE, "cannot listen on %.200s: %s", address, why);
}

static bool open_address(const char *address, const struct addrinfo *found, struct listener *out,
	struct error *error)
{
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1,
	    no = 0;
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (fd >= 0 && found->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
		listen(fd, BACKLOG) != 0) {
		fail(address, strerror(errno), error);
		if (fd >= 0)
			close(fd);
		return false;
	}
	out->fd = fd;
	out->reachable = !is_loopback(found->ai_addr);
	return true;
}

static bool open_tcp(
	const struct listen_options *options, struct listener *out, struct error *error)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	char port[6];
	if (!split(options->address, out->host, port, error))
		return false;
	int failed = getaddrinfo(out->host, port, &hints, &found);
	if (failed)
		return error_set(error, ERROR_USAGE, "%s: %s", out->host, gai_strerror(failed));
	bool good;
	if (options->open || is_loopback(found->ai_addr))
		good = open_address(options->address, found, out, error);
	else
		good = error_set(error, ERROR_USAGE,
			"%s is reachable from other machines and needs authentication: set "
			"agent.web_config, or use 127.0.0.1:%s (or --insecure; metrics_listen "
			"opens the metrics alone)",
			options->address, port);
	freeaddrinfo(found);
	return good;
}

/* Whether a process listens there. Does not wait. */
static bool is_in_use(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool used = fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
		    errno != ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return used;
}

/* Removes the file of a socket without a listener. */
static bool make_room(const struct sockaddr_un *address, struct error *error)
{
	struct stat status;

	if (lstat(address->sun_path, &status) != 0)
		return true; /* nothing there, or binding reports why */
	if (!S_ISSOCK(status.st_mode))
		return fail(address->sun_path, "the file is not a socket", error);
	if (is_in_use(address))
		return fail(address->sun_path, "in use by another process", error);
	if (unlink(address->sun_path) != 0)
		return error_set(error, ERROR_STATE, "cannot replace %s: %s", address->sun_path,
			strerror(errno));
	return true;
}

/* "user", "user:group" or ":group"; -1 stands for a missing part. */
static bool parse_owner(const char *owner, uid_t *uid, gid_t *gid, struct error *error)
{
	char user[64];
	size_t length = strcspn(owner, ":");
	const char *group = owner[length] ? owner + length + 1 : "";
	const struct passwd *known_user = NULL;
	const struct group *known_group = NULL;

	*uid = (uid_t)-1;
	*gid = (gid_t)-1;
	snprintf(user, sizeof user, "%.*s", (int)length, owner);
	if (*user && !(known_user = getpwnam(user)))
		return error_set(error, ERROR_USAGE, "socket_owner: no user \"%s\"", user);
	if (*group && !(known_group = getgrnam(group)))
		return error_set(error, ERROR_USAGE, "socket_owner: no group \"%.60s\"", group);
	if (known_user)
		*uid = known_user->pw_uid;
	if (known_group)
		*gid = known_group->gr_gid;
	return true;
}

/* The file is the process' alone until its owner and mode are set, and nobody can connect until
 * it listens. */
static bool bind_file(const struct listen_options *options, const struct sockaddr_un *address,
	int fd, struct listener *out, struct error *error)
{
	const char *path = address->sun_path;
	mode_t mode = (mode_t)strtoul(options->mode ? options->mode : "0660", NULL, 8);
	struct stat status;
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	if (options->owner && !parse_owner(options->owner, &uid, &gid, error))
		return false;
	if (!make_room(address, error))
		return false;
	if (fchmod(fd, 0600) != 0 ||
		bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 ||
		lstat(path, &status) != 0)
		return fail(path, strerror(errno), error);
	snprintf(out->path, sizeof out->path, "%s", path);
	out->device = status.st_dev;
	out->inode = status.st_ino;
	if ((options->owner && lchown(path, uid, gid) != 0) ||
		fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) != 0)
		return error_set(error, ERROR_STATE, "cannot set owner and mode of %s: %s", path,
			strerror(errno));
	return listen(fd, BACKLOG) == 0 || fail(path, strerror(errno), error);
}

static bool open_unix(
	const struct listen_options *options, struct listener *out, struct error *error)
{
	const char *path = options->address + strlen("unix:");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (*path != '/' || strlen(path) >= sizeof address.sun_path)
		return error_set(error, ERROR_USAGE,
			"\"%.200s\" is not of the form unix:/path, of at most %zu bytes",
			options->address, sizeof address.sun_path - 1);
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(options->address, strerror(errno), error);
	if (!bind_file(options, &address, fd, out, error)) {
		listen_remove(out);
		close(fd);
		return false;
	}
	out->fd = fd;
	return true;
}

bool listen_open(const struct listen_options *options, struct listener *out, struct error *error)
{
	*out = (struct listener){.fd = -1};
	return strncmp(options->address, "unix:", 5) == 0 ? open_unix(options, out, error)
							  : open_tcp(options, out, error);
}

void listen_remove(const struct listener *listener)
{
	struct stat status;

	if (*listener->path && lstat(listener->path, &status) == 0 &&
		status.st_dev == listener->device && status.st_ino == listener->inode)
		(void)unlink(listener->path);
}
