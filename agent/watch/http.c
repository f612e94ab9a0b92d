/*
 * libmicrohttpd runs without threads, on an epoll descriptor that the engine's loop watches. After
 * each event it is run until it asks to wait (0.9.75 leaves work behind after one MHD_run), and the
 * loop is told how long it wants to wait.
 */
#include "agent/watch/http.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/arena.h"
#include "agent/engine/engine.h"

enum { CONNECTIONS = 64, IDLE_SECONDS = 15, MEMORY = 32 << 10, BACKLOG = 64, RUNS = 100 };

struct http {
	struct engine *engine;
	struct MHD_Daemon *daemon;
	const struct route *routes;
	void *context;
	int epoll;
	uint16_t port;
};

static int64_t serve(void *context)
{
	struct http *http = context;
	MHD_UNSIGNED_LONG_LONG wait = 0;
	for (int i = 0; i < RUNS; i++) {
		MHD_run(http->daemon);
		if (MHD_get_timeout(http->daemon, &wait) != MHD_YES)
			return -1;
		if (wait > 0)
			break;
	}
	return (int64_t)wait;
}

static enum MHD_Result send_answer(
	struct MHD_Connection *connection, struct http_answer *answer, const char *allow)
{
	size_t length = answer->body.length;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		length, buf_steal(&answer->body), MHD_RESPMEM_MUST_FREE);
	if (!response)
		abort(); /* out of memory */
	MHD_add_response_header(response, "Content-Type", answer->type);
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (allow)
		MHD_add_response_header(response, "Allow", allow);
	enum MHD_Result queued = MHD_queue_response(connection, (unsigned)answer->status, response);
	MHD_destroy_response(response);
	return queued;
}

static enum MHD_Result send_error(
	struct MHD_Connection *connection, int status, const char *problem, const char *allow)
{
	struct http_answer answer = {.status = status, .type = "application/json"};
	buf_text(&answer.body, "{\"error\": ");
	buf_json_text(&answer.body, problem);
	buf_text(&answer.body, "}\n");
	return send_answer(connection, &answer, allow);
}

static const struct route *route_find(const struct http *http, const char *path)
{
	const struct route *route = http->routes;
	while (route->path && strcmp(route->path, path) != 0)
		route++;
	return route->path ? route : NULL;
}

/* Called with the headers, then with pieces of a body, then at its end; *state tells the first. */
static enum MHD_Result answer_request(void *context, struct MHD_Connection *connection,
	const char *path, const char *method, const char *version, const char *body,
	size_t *body_size, void **state)
{
	(void)version, (void)body;
	const struct http *http = context;
	const struct route *route = route_find(http, path);
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	if (!route)
		return send_error(connection, MHD_HTTP_NOT_FOUND, "there is no such page", NULL);
	if (!reads)
		return send_error(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
			"this page is for reading only", "GET, HEAD");
	if (!*state || *body_size > 0) { /* a body is passed over */
		*state = context;
		*body_size = 0;
		return MHD_YES;
	}
	struct http_answer answer = {.status = 200, .type = "text/plain; charset=utf-8"};
	route->get(http->context, &answer);
	return send_answer(connection, &answer, NULL);
}

static void keep_quiet(void *context, const char *format, va_list arguments)
{
	(void)context, (void)format, (void)arguments;
}

/* Cuts "host:port" or "[host]:port" in two. */
static bool split_listen(const char *listen, char host[256], char port[6], struct error *error)
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
			"listen: \"%.200s\" is not of the form host:port, as 127.0.0.1:9469 or "
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

static uint16_t port_of(int fd)
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
	int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
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

static int open_listener(const char *listen_on, struct error *error)
{
	char host[256], port[6];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	if (!split_listen(listen_on, host, port, error))
		return -1;
	int failed = getaddrinfo(host, port, &hints, &found);
	if (failed) {
		error_set(error, ERROR_USAGE, "listen: %s: %s", host, gai_strerror(failed));
		return -1;
	}
	int fd = -1;
	if (is_loopback(found->ai_addr))
		fd = open_address(listen_on, found, error);
	else
		error_set(error, ERROR_USAGE,
			"listen: %s can be reached from other machines, and the agent does not ask "
			"who "
			"is there; use 127.0.0.1:%s",
			listen_on, port);
	freeaddrinfo(found);
	return fd;
}

struct http *http_start(struct engine *engine, const char *listen_on, const struct route *routes,
	void *context, struct error *error)
{
	int fd = open_listener(listen_on, error);
	if (fd < 0)
		return NULL;
	struct http *http = memory_new(1, sizeof *http);
	*http = (struct http){
		.engine = engine, .routes = routes, .context = context, .port = port_of(fd)};
	http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		answer_request, http, MHD_OPTION_EXTERNAL_LOGGER, keep_quiet, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_END);
	if (!http->daemon) {
		error_set(error, ERROR_STATE, "cannot listen on %.200s: %s", listen_on,
			strerror(errno));
		close(fd);
		free(http);
		return NULL;
	}
	http->epoll = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	engine_host(engine, http->epoll, serve, http);
	return http;
}

void http_stop(struct http *http)
{
	if (!http)
		return;
	engine_unhost(http->engine, http->epoll);
	MHD_stop_daemon(http->daemon);
	free(http);
}

uint16_t http_port(const struct http *http)
{
	return http->port;
}
