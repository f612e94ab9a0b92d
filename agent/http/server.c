/*
 * libmicrohttpd runs without threads, on an epoll descriptor that the engine's loop watches. After
 * each event it is run until it asks to wait (0.9.75 leaves work behind after one MHD_run), and its
 * timeout is passed to the loop.
 *
 * While a client waits, its connection is suspended, and libmicrohttpd does not watch it: a client
 * that has left is noticed when it is answered, or when its place is needed. A client that waits
 * longer than the route's patience gets an error, and the late answer is dropped.
 *
 * libmicrohttpd aborts the process if it is stopped while a connection is suspended. So once the
 * server stops, no route is called any more.
 */
#include "agent/http/server.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/base/error.h"
#include "agent/http/head.h"
#include "agent/http/request.h"
#include "agent/http/visits.h"
#include "agent/io/engine.h"

enum {
	CONNECTIONS = 256,
	CLOSING = 64, /* extra: shut to make room, until libmicrohttpd notices */
	OF_ONE_ADDRESS = 64,
	MOST_WAITING = 32,  /* so that waiting clients leave connections for others */
	URGENT_PLACES = 4,  /* extra, for urgent routes */
	MOST_PICTURES = 96, /* waiting: a list has many, and each takes little time */
	MOST_KEPT = 512,    /* by routes, most of them for clients that have left */
	IDLE_SECONDS = 15,
	REQUEST_WITHIN = 30000,
	MEMORY = 32 << 10,
	RUNS = 100,
	MOST_BODY = 64 << 10,
	MOST_BULKY = 4,  /* requests with a larger body at a time */
	LONGEST_ID = 18, /* digits */
	MOST_DROPPED =
		1 << 20, /* of a body that is too large, so that its client can read the error */
};

static const char form[] = "application/x-www-form-urlencoded";
static const char stopping[] = "the agent is stopping";

/* Whether the path is the route's, whose * stands for an id: up to 18 digits, not 0. */
static bool fits(const char *pattern, const char *path, int64_t *id)
{
	size_t before = strcspn(pattern, "*"), digits;

	if (!pattern[before] && before > 1 && pattern[before - 1] == '/')
		return strncmp(pattern, path, before) == 0;
	if (!pattern[before])
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, before) != 0)
		return false;
	digits = strspn(path + before, "0123456789");
	if (digits == 0 || digits > LONGEST_ID ||
		strcmp(pattern + before + 1, path + before + digits) != 0)
		return false;
	*id = strtoll(path + before, NULL, 10);
	return *id > 0;
}

static bool find_route(struct http_request *request, const char *path, const char *method)
{
	const struct http_options *options = &request->http->options;
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	unsigned methods = 0, given = reads ? HTTP_READ : 0;

	request->posted = strcmp(method, "POST") == 0;
	if (request->posted)
		given = HTTP_POST;
	for (size_t i = 0; i < HTTP_TABLES; i++)
		for (const struct route *at = options->routes[i]; at && at->path; at++) {
			if (!fits(at->path, path, &request->id))
				continue;
			request->route = at;
			request->rest = arena_strdup(request->arena, path + strlen(at->path));
			if (at->uses & given)
				return true;
			methods |= at->uses & (HTTP_READ | HTTP_POST);
		}
	if (methods == 0) {
		http_request_fail(request, MHD_HTTP_NOT_FOUND, "not found");
		return false;
	}
	request->allow = methods == HTTP_READ   ? "GET, HEAD"
			 : methods == HTTP_POST ? "POST"
						: "GET, HEAD, POST";
	http_request_fail(request, MHD_HTTP_METHOD_NOT_ALLOWED,
		methods == HTTP_READ ? "this page is read-only"
				     : "this page does not support this method");
	return false;
}

/* Headers that delimit the request, or name its target and sender: if one is repeated, or both
 * delimiters are present, a proxy in front of the agent may have used the other one. */
enum header { HOST, LENGTH, CHUNKS, AUTHORIZATION, USER, ROLES, FORWARDED_FOR, HEADERS = 12 };

struct headers {
	const char *names[HEADERS]; /* from FORWARDED_FOR on: those that proxies add */
	const char *values[HEADERS];
	size_t counts[HEADERS];
};

static enum MHD_Result count_header(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct headers *headers = context;

	(void)kind;
	for (size_t i = 0; i < HEADERS; i++)
		if (headers->names[i] && strcasecmp(name, headers->names[i]) == 0) {
			headers->values[i] = value;
			headers->counts[i]++;
		}
	return MHD_YES;
}

/* Also notes the headers that identify the sender. */
static bool check_headers(struct http_request *request, const char *version)
{
	const struct web_config *config = access_config(request->http->options.access);
	struct headers headers = {
		.names = {"Host", "Content-Length", "Transfer-Encoding", "Authorization", NULL,
			NULL, "X-Forwarded-For", "Forwarded", "Via", "X-Forwarded-Host",
			"X-Forwarded-Proto", "X-Real-IP"}};
	const size_t *counts = headers.counts;
	struct sign_in *sign_in = &request->sign_in;
	const char *problem = NULL;

	if (config && config->proxy_count > 0) {
		headers.names[USER] = config->user_header;
		headers.names[ROLES] = config->role_header;
	}
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &headers);
	if (request->has_nul)
		problem = "a NUL in the path";
	else if (request->after != version && *version)
		problem = "a NUL in the address";
	else if (counts[HOST] == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
		problem = "no Host header";
	else if (counts[HOST] > 1)
		problem = "more than one Host header";
	else if (counts[LENGTH] + counts[CHUNKS] > 1)
		problem = "more than one Content-Length or Transfer-Encoding header";
	else if (counts[AUTHORIZATION] > 1 || counts[USER] > 1 || counts[ROLES] > 1)
		problem = "more than one Authorization header, or header with the user's name or "
			  "roles";
	if (problem) {
		request->closes = true;
		http_request_fail(request, MHD_HTTP_BAD_REQUEST, problem);
		return false;
	}
	if (counts[AUTHORIZATION] > 0)
		arena_holds_secrets(request->arena);
	sign_in->authorization = arena_strdup(request->arena, headers.values[AUTHORIZATION]);
	sign_in->user = arena_strdup(request->arena, headers.values[USER]);
	sign_in->roles = arena_strdup(request->arena, headers.values[ROLES]);
	sign_in->forwarded = arena_strdup(request->arena, headers.values[FORWARDED_FOR]);
	sign_in->relayed = counts[USER] > 0;
	for (size_t i = FORWARDED_FOR; i < HEADERS; i++)
		sign_in->relayed |= counts[i] > 0;
	return true;
}

static bool check_guard(struct http_request *request)
{
	struct http_claim claim = {.host = http_header(request, "Host"),
		.origin = http_header(request, "Origin"),
		.site = http_header(request, "Sec-Fetch-Site"),
		.mode = http_header(request, "Sec-Fetch-Mode"),
		.destination = http_header(request, "Sec-Fetch-Dest"),
		.shown = request->route->uses & HTTP_SHOWN,
		.posted = request->posted,
		.tls = request->http->tls,
		.external = request->http->external,
		.names = {request->http->listener.host, request->http->machine}};
	struct error error;

	if (request->route->uses & HTTP_OPEN || http_guard(&claim, &error))
		return true;
	http_request_fail(request, MHD_HTTP_FORBIDDEN, error.text);
	return false;
}

static bool is_bulk(const struct http_request *request)
{
	return request->route && (request->route->uses & HTTP_BULK);
}

static size_t most_body(const struct http_request *request)
{
	return is_bulk(request) ? HTTP_BULK_MOST : MOST_BODY;
}

/* Only forms may have a body, but for routes with HTTP_BULK. A large one takes a place until the
 * request is over. */
static bool check_body(struct http_request *request)
{
	const char *length = http_header(request, "Content-Length");
	const char *type = http_header(request, "Content-Type");
	bool chunked = http_header(request, "Transfer-Encoding") != NULL;

	if (!request->posted || (!chunked && (!length || atoll(length) == 0)))
		return true;
	if (length && atoll(length) > (long long)most_body(request)) {
		http_request_fail(request, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too large");
		return false;
	}
	if (is_bulk(request) && !chunked && atoll(length) <= MOST_BODY)
		return true;
	if (is_bulk(request) && request->http->bulky >= MOST_BULKY) {
		http_request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE,
			"too many large requests are being received");
		return false;
	}
	if (is_bulk(request)) {
		request->http->bulky++;
		request->bulky = true;
		return true;
	}
	if (type && strncasecmp(type, form, strlen(form)) == 0)
		return true;
	http_request_fail(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
		"expected parameters in the URL or as a form (application/x-www-form-urlencoded)");
	return false;
}

/* Whether the person's role allows the route. */
static bool check_role(struct http_request *request)
{
	enum role needs = request->route->needs == ROLE_UNSET ? ROLE_ADMIN : request->route->needs;

	if (request->sign_in.person.role >= needs)
		return true;
	http_request_fail(request, MHD_HTTP_FORBIDDEN,
		arena_printf(request->arena, "requires the role %s; %.200s has the role %s",
			role_name(needs), request->sign_in.person.name,
			role_name(request->sign_in.person.role)));
	return false;
}

static void refuse(struct http_request *request)
{
	request->retry_after = request->sign_in.retry_after;
	http_request_fail(request, request->sign_in.status, request->sign_in.problem);
}

/* The password has been checked. */
static void decided(struct sign_in *sign_in, enum access_outcome outcome)
{
	struct http_request *request = sign_in->context;

	if (outcome == ACCESS_REFUSED) {
		refuse(request);
	} else if (check_role(request)) {
		request->stage = STAGE_ADMITTED;
		http_visits_again(&request->http->visits, request->connection);
		http_request_resume(request);
	}
}

/* Authenticates the sender and checks the role; false: pending, or refused. */
static bool check_sender(struct http_request *request)
{
	struct access *access = request->http->options.access;
	struct sign_in *sign_in = &request->sign_in;

	sign_in->person = (struct http_person){"", "", ROLE_ADMIN, true};
	if (!access || request->route->needs == ROLE_ANYBODY)
		return true;
	sign_in->access = access;
	sign_in->arena = request->arena;
	sign_in->peer = peer_of(request->connection);
	sign_in->decided = decided;
	sign_in->context = request;
	switch (access_sign_in(sign_in)) {
	case ACCESS_GRANTED: return check_role(request);
	case ACCESS_REFUSED: refuse(request); return false;
	case ACCESS_PENDING:
	default: break;
	}
	request->stage = STAGE_SIGN_IN;
	http_visits_complete(request->connection);
	MHD_suspend_connection(request->connection);
	return false;
}

/* Checks that need no body. */
static void take_head(
	struct http_request *request, const char *path, const char *method, const char *version)
{
	request->stage = STAGE_BODY;
	/* A sign-in that begins now would be suspended when libmicrohttpd stops. */
	if (request->http->stopping) {
		http_request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, stopping);
		return;
	}
	if (!check_headers(request, version))
		return;
	if (find_route(request, path, method) && check_guard(request) && check_sender(request))
		(void)check_body(request);
}

/* MHD_NO, which ends the connection, for a body without end. */
static enum MHD_Result take_body(struct http_request *request, const char *body, size_t *size)
{
	if (request->posted && request->body.length + *size <= most_body(request))
		buf_append(&request->body, body, *size);
	else
		request->dropped += *size;
	*size = 0;
	return request->dropped <= MOST_DROPPED ? MHD_YES : MHD_NO;
}

static bool parse(struct http_request *request, struct error *error)
{
	const char *names = request->route->parameters;

	if (names && strcmp(names, "*") == 0)
		return true;
	return http_query_parse(request->arena, request->query, strlen(request->query), names,
		       HTTP_VALUE, &request->parameters, error) &&
	       (request->body.length == 0 || is_bulk(request) ||
		       http_query_parse(request->arena, request->body.data, request->body.length,
			       names, HTTP_FORM_VALUE, &request->parameters, error));
}

/* A client that has shut down its side has most likely left. */
static void clear_places(struct http *http)
{
	for (struct http_request *request = http->requests; request; request = request->next) {
		struct pollfd poller = {.events = POLLRDHUP};

		if (request->stage != STAGE_WAITING)
			continue;
		poller.fd = MHD_get_connection_info(
			request->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				    ->connect_fd;
		if (poll(&poller, 1, 0) == 1)
			http_request_fail(
				request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pending requests");
	}
}

static bool check_place(struct http_request *request)
{
	struct http *http = request->http;
	const struct route *route = request->route;
	size_t *waiting = http_places(request);
	bool urgent = route->uses & HTTP_URGENT;
	size_t places = route->uses & HTTP_SHOWN ? MOST_PICTURES
						 : MOST_WAITING + (urgent ? URGENT_PLACES : 0);

	if (route->patience == 0)
		return true;
	if (*waiting >= places)
		clear_places(http);
	if (*waiting < places && (http->kept < MOST_KEPT || urgent))
		return true;
	http_request_fail(
		request, MHD_HTTP_SERVICE_UNAVAILABLE, "too many requests are waiting for answers");
	return false;
}

static void call_route(struct http_request *request)
{
	struct http *http = request->http;

	request->known = arena_strdup(request->arena, http_header(request, "If-None-Match"));
	request->gzips = http_quality(request->arena, http_header(request, "Accept-Encoding"),
				 "gzip", NULL) > 0;
	request->stage = STAGE_SERVING;
	request->kept = true;
	http->kept++;
	request->route->serve(request);
	if (request->stage != STAGE_SERVING)
		return;
	assert(request->route->patience > 0);
	request->stage = STAGE_WAITING;
	++*http_places(request);
	request->deadline = clock_monotonic() + request->route->patience;
	MHD_suspend_connection(request->connection);
}

static void serve_request(struct http_request *request)
{
	struct error error;

	const struct http *http = request->http;
	bool ends = http->options.ending && *http->options.ending && request->route->patience > 0;

	http_visits_complete(request->connection);
	if (http->stopping || ends)
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

	(void)context, (void)connection;
	if (request->stage == STAGE_ADMITTED) {
		request->stage = STAGE_BODY;
		(void)check_body(request);
	} else if (request->stage == STAGE_HEAD)
		take_head(request, path, method, version);
	else if (request->stage == STAGE_BODY && *body_size > 0)
		return take_body(request, body, body_size);
	else if (request->stage == STAGE_BODY)
		serve_request(request);
	return request->stage == STAGE_ANSWERED ? http_request_send(request) : MHD_YES;
}

/* Answers clients that have waited too long (libmicrohttpd then needs to run), and wakes streams
 * that have rested; returns the ms until the next one's time is over, or -1. */
static int64_t give_up(struct http *http)
{
	int64_t now = clock_monotonic(), next = INT64_MAX;

	for (struct http_request *request = http->requests; request; request = request->next) {
		bool waits = request->stage == STAGE_WAITING;
		int64_t due = waits ? request->deadline : request->flow.due;

		if (!waits && !request->flow.resting)
			continue;
		if (due > now)
			next = due < next ? due : next;
		else if (waits)
			http_request_fail(request, MHD_HTTP_GATEWAY_TIMEOUT,
				"timed out; the operation continues in the background");
		else
			http_stream_wake(request);
	}
	return next == INT64_MAX ? -1 : next - now;
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

/* A connection keeps the certificate that it began with. */
static void note_connection(void *context, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode code)
{
	struct http *http = context;
	bool begins = code == MHD_CONNECTION_NOTIFY_STARTED && http->tls;
	struct tls *tls = begins ? access_tls(http->options.access) : NULL;

	http_visits_note(&http->visits, connection, visit, code);
	if (tls)
		((struct visit *)*visit)->tls = tls_begin(tls, connection);
}

static struct MHD_Daemon *start_daemon(struct http *http)
{
	/* Without a certificate of its own the daemon needs a callback for one. */
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)tls_no_certificate},
		{MHD_OPTION_END, 0, NULL}};
	unsigned flags = MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;

	if (http->tls)
		flags |= MHD_USE_TLS;
	else
		tls[0].option = MHD_OPTION_END;
	return MHD_start_daemon(flags, 0, NULL, NULL, handle, http, MHD_OPTION_EXTERNAL_LOGGER,
		keep_quiet, NULL, MHD_OPTION_LISTEN_SOCKET, http->listener.fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)(CONNECTIONS + CLOSING + HTTP_LISTENERS),
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
		MHD_OPTION_URI_LOG_CALLBACK, http_request_begin, http, MHD_OPTION_NOTIFY_COMPLETED,
		http_request_end, http, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
}

struct http *http_start(
	struct engine *engine, const struct http_options *options, struct error *error)
{
	struct http *http = memory_new(1, sizeof *http);
	const char *url = options->external_url, *host = url ? strstr(url, "://") : NULL;

	*http = (struct http){.engine = engine, .options = *options};
	http->options.listen = (struct listen_options){0}; /* a reload may free borrowed data */
	http->options.external_url = NULL;
	http->visits = (struct visits){
		.within = options->request_within ? options->request_within : REQUEST_WITHIN,
		.most = CONNECTIONS,
		.of_an_address = OF_ONE_ADDRESS};
	if (!listen_open(&options->listen, &http->listener, error)) {
		free(http);
		return NULL;
	}
	http->tls = options->access && !*http->listener.path && access_tls(options->access);
	http->daemon = start_daemon(http);
	if (!http->daemon) {
		error_set(error, ERROR_STATE, "cannot listen on %.200s: %s",
			options->listen.address, strerror(errno));
		listen_remove(&http->listener);
		close(http->listener.fd);
		free(http);
		return NULL;
	}
	if (host) /* "https://hunter.example.com:8443", under which there may be a path */
		http->external = strndup(url, (size_t)(host - url) + 3 + strcspn(host + 3, "/?#"));
	(void)!gethostname(http->machine, sizeof http->machine - 1);
	http->epoll = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	engine_host(engine, http->epoll, serve, http);
	return http;
}

void http_stop(struct http *http)
{
	if (!http || !http->daemon)
		return;
	http->stopping = true;
	listen_remove(&http->listener);
	for (struct http_request *request = http->requests; request; request = request->next) {
		access_abandon(&request->sign_in);
		if (request->stage == STAGE_WAITING || request->stage == STAGE_SIGN_IN ||
			request->stage == STAGE_PACKING)
			http_request_fail(request, MHD_HTTP_SERVICE_UNAVAILABLE, stopping);
		http_stream_wake(request);
	}
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
	if (http) {
		http_packs_free(http);
		free(http->external);
	}
	free(http);
}

uint16_t http_port(const struct http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

bool http_is_reachable(const struct http *http)
{
	return http->listener.reachable;
}
