/*
 * libmicrohttpd runs without threads, on an epoll descriptor that the engine's loop watches.
 * After each event it is run until it asks to wait (0.9.75 leaves work behind after one
 * MHD_run), and its timeout is passed to the loop.
 *
 * While a client waits, its connection is suspended, and libmicrohttpd does not watch it: that
 * the client has left is noticed when it is answered, or when its place is needed. A client that
 * waits longer than the route's patience gets an error, and the late answer is dropped.
 *
 * libmicrohttpd aborts the process if it is stopped while a connection is suspended. So once the
 * server stops, no route is called any more.
 */
#include "agent/http/server.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/core/clock.h"
#include "agent/core/error.h"
#include "agent/engine/engine.h"
#include "agent/http/head.h"
#include "agent/http/request.h"
#include "agent/http/visits.h"

/*
 * The socket that the HTTP server listens on.
 *
 * A host is resolved once, and its first address is used. [::] accepts IPv4 as well, whatever
 * the system's default.
 */

enum { BACKLOG = 64 };

/* Splits "host:port" or "[host]:port". */
static bool http_listen_split(const char *listen, char host[256], char port[6], struct error *error)
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

/* The port of a socket. */
static uint16_t http_listen_port(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
		return 0;
	/* The port is at the same offset in both families. */
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

/*
 * A socket that listens on "host:port"; the caller closes it. -1 and an error: ERROR_USAGE for
 * an address that is invalid, or reachable from other machines unless `open`; ERROR_STATE if
 * binding fails.
 */
static int http_listen_open(const char *listen_on, bool open, struct error *error)
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

enum {
	CONNECTIONS = 256,
	CLOSING = 64, /* extra: shut to make room, until libmicrohttpd notices */
	OF_ONE_ADDRESS = 64,
	MOST_WAITING = 32, /* so that waiting clients leave connections for others */
	URGENT_PLACES = 4, /* extra, for urgent routes */
	MOST_KEPT = 512,   /* by routes, most of them for clients that have left */
	IDLE_SECONDS = 15,
	REQUEST_WITHIN = 30000,
	MEMORY = 32 << 10,
	RUNS = 100,
	MOST_BODY = 64 << 10,
	MOST_DROPPED =
		1 << 20, /* of a body that is too large, so that its client can read the error */
};

static const char form[] = "application/x-www-form-urlencoded";
static const char stopping[] = "the agent is stopping";

static const struct route *find_in(const struct route *routes, const char *path)
{
	while (routes && routes->path && strcmp(routes->path, path) != 0)
		routes++;
	return routes && routes->path ? routes : NULL;
}

static const struct route *find_route(const struct http *http, const char *path)
{
	const struct route *route = find_in(http->options.routes, path);

	return route ? route : find_in(http->options.more, path);
}

static bool check_method(struct http_request *request, const char *method)
{
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	unsigned methods = request->route->methods;

	request->posted = strcmp(method, "POST") == 0;
	if ((reads && methods & HTTP_READ) || (request->posted && methods & HTTP_POST))
		return true;
	request->allow = methods == HTTP_READ   ? "GET, HEAD"
			 : methods == HTTP_POST ? "POST"
						: "GET, HEAD, POST";
	http_request_fail(request, MHD_HTTP_METHOD_NOT_ALLOWED,
		methods == HTTP_READ ? "this page is read-only"
				     : "this page does not support this method");
	return false;
}

/* Headers that identify the host and delimit the request: if one is repeated, or both delimiters
 * are present, a proxy before the agent may have used the other one. */
struct single {
	size_t hosts, ends;
};

static enum MHD_Result count_single(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct single *single = context;

	(void)kind, (void)value;
	single->hosts += strcasecmp(name, "Host") == 0;
	single->ends += strcasecmp(name, "Content-Length") == 0 ||
			strcasecmp(name, "Transfer-Encoding") == 0;
	return MHD_YES;
}

static bool check_headers(struct http_request *request)
{
	struct single single = {0};

	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_single, &single);
	if (single.hosts <= 1 && single.ends <= 1)
		return true;
	request->closes = true;
	http_request_fail(request, MHD_HTTP_BAD_REQUEST,
		single.hosts > 1 ? "more than one Host header"
				 : "more than one Content-Length or Transfer-Encoding header");
	return false;
}

static bool check_guard(struct http_request *request)
{
	struct http_claim claim = {.host = http_header(request, "Host"),
		.origin = http_header(request, "Origin"),
		.site = http_header(request, "Sec-Fetch-Site"),
		.mode = http_header(request, "Sec-Fetch-Mode"),
		.posted = request->posted,
		.names = {request->http->listen_host, request->http->machine}};
	struct error error;

	if (!request->route->guarded || http_guard(&claim, &error))
		return true;
	http_request_fail(request, MHD_HTTP_FORBIDDEN, error.text);
	return false;
}

/* Only forms may have a body. */
static bool check_body(struct http_request *request)
{
	const char *length = http_header(request, "Content-Length");
	const char *type = http_header(request, "Content-Type");
	bool chunked = http_header(request, "Transfer-Encoding") != NULL;

	if (!request->posted || (!chunked && (!length || atoll(length) == 0)))
		return true;
	if (length && atoll(length) > MOST_BODY) {
		http_request_fail(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
		return false;
	}
	if (type && strncasecmp(type, form, strlen(form)) == 0)
		return true;
	http_request_fail(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
		"parameters are taken from the address and from forms "
		"(application/x-www-form-urlencoded) only");
	return false;
}

/* Checks that need no body. */
static void take_head(struct http_request *request, const char *path, const char *method)
{
	request->stage = STAGE_BODY;
	if (!check_headers(request))
		return;
	request->route = find_route(request->http, path);
	if (!request->route)
		http_request_fail(request, MHD_HTTP_NOT_FOUND, "no such page");
	else if (check_method(request, method) && check_guard(request))
		(void)check_body(request);
}

/* MHD_NO, which ends the connection, for a body without end. */
static enum MHD_Result take_body(struct http_request *request, const char *body, size_t *size)
{
	if (request->posted && request->body.length + *size <= MOST_BODY)
		buf_append(&request->body, body, *size);
	else
		request->dropped += *size;
	*size = 0;
	return request->dropped <= MOST_DROPPED ? MHD_YES : MHD_NO;
}

static bool parse(struct http_request *request, struct error *error)
{
	const char *const *names = request->route->parameters;

	return http_query_parse(request->arena, request->query, strlen(request->query), names,
		       &request->parameters, error) &&
	       (request->body.length == 0 ||
		       http_query_parse(request->arena, request->body.data, request->body.length,
			       names, &request->parameters, error));
}

/* A client that has shut its side has most likely left. */
static bool has_left(const struct http_request *request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct pollfd poller = {.fd = info->connect_fd, .events = POLLRDHUP};

	return poll(&poller, 1, 0) == 1;
}

static void clear_places(struct http *http)
{
	for (struct http_request *request = http->requests; request; request = request->next)
		if (request->stage == STAGE_WAITING && has_left(request))
			http_request_fail(
				request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pending requests");
}

static bool check_place(struct http_request *request)
{
	struct http *http = request->http;
	const struct route *route = request->route;
	size_t places = MOST_WAITING + (route->urgent ? URGENT_PLACES : 0);

	if (route->patience == 0)
		return true;
	if (http->waiting >= places)
		clear_places(http);
	if (http->waiting < places && (http->kept < MOST_KEPT || route->urgent))
		return true;
	http_request_fail(
		request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting for answers");
	return false;
}

static void call_route(struct http_request *request)
{
	struct http *http = request->http;

	request->stage = STAGE_SERVING;
	request->kept = true;
	http->kept++;
	request->route->serve(http->options.context, request);
	if (request->stage != STAGE_SERVING)
		return;
	assert(request->route->patience > 0);
	request->stage = STAGE_WAITING;
	http->waiting++;
	request->deadline = clock_monotonic() + request->route->patience;
	MHD_suspend_connection(request->connection);
}

static void serve_request(struct http_request *request)
{
	struct error error;

	http_visits_complete(request->connection);
	if (request->http->stopping)
		http_request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, stopping);
	else if (request->posted && request->dropped > 0)
		http_request_fail(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
	else if (!parse(request, &error))
		http_request_fail(request, MHD_HTTP_BAD_REQUEST, error.text);
	else if (check_place(request))
		call_route(request);
}

/* Called with the headers, then with pieces of a body, at its end, and when it is resumed. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *body, size_t *body_size, void **state)
{
	struct http_request *request = *state;

	(void)context, (void)connection, (void)version;
	if (request->stage == STAGE_HEAD)
		take_head(request, path, method);
	else if (request->stage == STAGE_BODY && *body_size > 0)
		return take_body(request, body, body_size);
	else if (request->stage == STAGE_BODY)
		serve_request(request);
	return request->stage == STAGE_ANSWERED ? http_request_send(request) : MHD_YES;
}

/* Answers clients that have waited too long (libmicrohttpd then needs to run); returns the ms
 * until the next one's time is over, or -1. */
static int64_t give_up(struct http *http)
{
	int64_t now = clock_monotonic(), next = -1;

	for (struct http_request *request = http->requests; request; request = request->next) {
		if (request->stage != STAGE_WAITING)
			continue;
		if (request->deadline <= now)
			http_request_fail(request, MHD_HTTP_GATEWAY_TIMEOUT,
				"timed out; the operation continues in the background");
		else if (next < 0 || request->deadline - now < next)
			next = request->deadline - now;
	}
	return next;
}

static unsigned connections(const struct http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)
		->num_connections;
}

/* The shorter of two timeouts, of which -1 is infinite. */
static int64_t sooner(int64_t a, int64_t b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

/* Returns the ms until the next turn is needed, -1: on the next event. If all places were taken,
 * libmicrohttpd listens again only on the run after one became free, and does not ask for that
 * run. */
static int64_t turn(struct http *http)
{
	unsigned before = connections(http);
	MHD_UNSIGNED_LONG_LONG wait;
	int64_t due;

	http->resumed = false;
	MHD_run(http->daemon);
	due = sooner(give_up(http), http_visits_sweep(&http->visits));
	if (http->resumed || connections(http) < before)
		return 0;
	if (MHD_get_timeout(http->daemon, &wait) == MHD_YES)
		due = sooner(due, (int64_t)wait);
	if (due != 0)
		http_visits_end(&http->visits);
	return due;
}

static int64_t serve(void *context)
{
	int64_t wait = 0;

	for (int i = 0; i < RUNS && wait == 0; i++)
		wait = turn(context);
	return wait;
}

static void keep_quiet(void *context, const char *format, va_list arguments)
{
	(void)context, (void)format, (void)arguments;
}

static struct MHD_Daemon *start_daemon(struct http *http, int fd)
{
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0,
		NULL, NULL, handle, http, MHD_OPTION_EXTERNAL_LOGGER, keep_quiet, NULL,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(CONNECTIONS + CLOSING), MHD_OPTION_NOTIFY_CONNECTION, http_visits_note,
		&http->visits, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY, MHD_OPTION_URI_LOG_CALLBACK,
		http_request_begin, http, MHD_OPTION_NOTIFY_COMPLETED, http_request_end, http,
		MHD_OPTION_END);
}

struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error)
{
	int fd = http_listen_open(options->listen, options->open, error);
	char port[6];

	if (fd < 0)
		return NULL;
	struct http *http = memory_new(1, sizeof *http);
	*http = (struct http){.engine = engine, .options = *options, .port = http_listen_port(fd)};
	http->options.listen = NULL; /* a reload may free it */
	http->visits = (struct visits){
		.within = options->request_within ? options->request_within : REQUEST_WITHIN,
		.most = CONNECTIONS,
		.of_an_address = OF_ONE_ADDRESS};
	(void)!http_listen_split(options->listen, http->listen_host, port, error); /* was opened */
	(void)!gethostname(http->machine, sizeof http->machine - 1);
	http->daemon = start_daemon(http, fd);
	if (!http->daemon) {
		error_set(error, ERROR_STATE, "cannot listen on %.200s: %s", options->listen,
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
	if (!http || !http->daemon)
		return;
	http->stopping = true;
	for (struct http_request *request = http->requests; request; request = request->next)
		if (request->stage == STAGE_WAITING)
			http_request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, stopping);
	(void)serve(http); /* resumes them all, and refuses new ones */
	engine_unhost(http->engine, http->epoll);
	MHD_stop_daemon(http->daemon);
	http->daemon = NULL;
}

void http_free(struct http *http)
{
	http_stop(http);
	while (http && http->requests)
		http_request_free(http->requests);
	free(http);
}

uint16_t http_port(const struct http *http)
{
	return http->port;
}
