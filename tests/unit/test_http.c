/* The agent's HTTP face, asked over the loopback by a thread of the test. */
#include "unit.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

#include "agent/base/clock.h"
#include "agent/http/request.h"
#include "agent/io/engine.h"
#include "agent/web/api.h"
#include "tests/unit/waiting.h"

/* PLACES: connections at a time, OF_ONE: of them for one address, MANY: more than there are. */
enum { ANSWER = 1 << 16, PLACES = 256, OF_ONE = 64, MANY = 300 };

/* An agent's face on a port of its own, and a client that talks to it while the engine runs. */
struct world {
	struct engine *engine;
	struct http *http;
	struct metrics *metrics;
	struct agent agent;
	struct api api;
	const char *why; /* it is not ready */
	int collected;
	struct http_request *kept[40];
	_Atomic size_t kept_count;
	int waiting;
	struct flowing *flowing; /* answers that come piece by piece, in progress */
	_Atomic int flows, ended;
	int open[MANY];
	sem_t still, on;  /* the engine stands still; it may go on */
	ssize_t received; /* last: 0 at the end, -1 if none came */
	void (*client)(struct world *world);
	char answer[ANSWER];
};

static const char *unready(void *context)
{
	return ((struct world *)context)->why;
}

static void collect(void *context)
{
	struct world *world = context;
	metrics_set(world->metrics, METRIC_TESTS, ++world->collected, NULL);
}

static struct world *world_of(const struct http_request *request)
{
	return ((struct api *)request->context)->options.context;
}

/* Says what it was asked. */
static void say(struct http_request *request)
{
	struct http_answer answer = {.type = "text/plain"};

	buf_printf(&answer.body, "%s a=%s b=%s\n", request->posted ? "posted" : "read",
		http_parameter(request, "a"), http_parameter(request, "b"));
	if (request->id != 0)
		buf_printf(&answer.body, "id=%" PRId64 "\n", request->id);
	http_answer(request, &answer);
}

/* More than the sockets hold. */
static void say_much(struct http_request *request)
{
	struct http_answer answer = {.type = "text/plain"};

	char part[1 << 14];

	memset(part, 'x', sizeof part);
	for (int i = 0; i < 1 << 7; i++)
		buf_append(&answer.body, part, sizeof part);
	http_answer(request, &answer);
}

/* Keeps the request; the test answers it. */
static void keep(struct http_request *request)
{
	struct world *world = world_of(request);

	world->kept[world->kept_count++] = request;
}

static void answer_kept(void *context)
{
	struct world *world = context;

	for (size_t i = 0; i < world->kept_count; i++) {
		struct http_answer answer = {.status = 201};

		buf_printf(&answer.body, "late %s\n", http_parameter(world->kept[i], "a"));
		http_answer(world->kept[i], &answer);
	}
	world->kept_count = 0;
}

static void release(struct http_request *request)
{
	say(request);
	answer_kept(world_of(request));
}

/* An answer of `a` pieces, each of a line and 10,000 bytes; b: how it goes on after them. */
struct flowing {
	struct world *world;
	struct http_request *request;
	struct flowing *next;
	int pieces, made;
	const char *then;
};

static bool flow(void *context, struct buf *out)
{
	struct flowing *flowing = context;
	char part[10001];

	assert_int_equal(out->length, 0);
	if (flowing->made >= flowing->pieces && flowing->pieces >= 0) {
		if (!flowing->then)
			http_end_streams(flowing->world->http);
		return !flowing->then || strcmp(flowing->then, "breaks") != 0;
	}
	buf_printf(out, "piece %d\n", flowing->made++);
	memset(part, 'x', sizeof part - 1);
	part[sizeof part - 1] = '\n';
	buf_append(out, part, sizeof part);
	return true;
}

static void end_flow(void *context)
{
	struct flowing *flowing = context, **link = &flowing->world->flowing;

	flowing->world->ended++;
	while (*link != flowing)
		link = &(*link)->next;
	*link = flowing->next;
	free(flowing);
}

static void begin_flow(struct world *world, struct http_request *request)
{
	struct flowing *flowing = calloc(1, sizeof *flowing);
	const char *then = http_parameter(request, "b");

	*flowing = (struct flowing){.world = world,
		.request = request,
		.next = world->flowing,
		.pieces = http_parameter(request, "a") ? atoi(http_parameter(request, "a")) : 0,
		.then = then};
	world->flowing = flowing;
	world->flows++;
	if (http_stream(request, &(struct http_stream){.type = "text/plain",
					 .every = then && strcmp(then, "beats") == 0 ? 20 : 3600000,
					 .next = flow,
					 .end = end_flow,
					 .context = flowing}))
		return;
	end_flow(flowing);
	http_fail(request, 503, "too many");
}

static void serve_flow(struct http_request *request)
{
	begin_flow(world_of(request), request);
}

/* Those that rest have one more piece. */
static void serve_wake(struct http_request *request)
{
	struct world *world = world_of(request);

	for (struct flowing *flowing = world->flowing; flowing; flowing = flowing->next) {
		flowing->pieces++;
		http_stream_wake(flowing->request);
	}
	say(request);
}

static void serve_end(struct http_request *request)
{
	http_end_streams(world_of(request)->http);
	say(request);
}

/* A JSON string of `a` bytes; b: another type, "fails", or "later". */
static void serve_text(struct http_request *request)
{
	struct http_answer answer = {0};
	const char *b = http_parameter(request, "b");

	if (b && strcmp(b, "fails") == 0)
		answer.status = 409;
	else if (b && strcmp(b, "png") == 0)
		answer.type = "image/png";
	for (int i = 0, n = atoi(http_parameter(request, "a")); i < n; i++)
		buf_char(&answer.body, (char)('a' + i % 13 * (i % 2)));
	http_answer(request, &answer);
}

static const char test_names[] = "a b";

static const struct route test_routes[] = {
	{"/say", HTTP_READ | HTTP_POST, ROLE_VIEWER, 0, test_names, say},
	{"/post", HTTP_POST, ROLE_VIEWER, 0, test_names, say},
	{"/two", HTTP_READ, ROLE_VIEWER, 0, NULL, say},
	{"/two", HTTP_POST, ROLE_VIEWER, 0, test_names, say},
	{"/of/*/say", HTTP_POST, ROLE_VIEWER, 0, test_names, say},
	{"/of/*", HTTP_READ, ROLE_VIEWER, 0, test_names, say},
	{"/keep", HTTP_READ, ROLE_VIEWER, 60000, test_names, keep},
	{"/urgent", HTTP_READ | HTTP_URGENT, ROLE_VIEWER, 60000, test_names, keep},
	{"/impatient", HTTP_READ, ROLE_VIEWER, 20, test_names, keep},
	{"/large", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, test_names, say_much},
	{"/text", HTTP_READ | HTTP_POST | HTTP_OPEN, ROLE_VIEWER, 0, test_names, serve_text},
	{"/flow", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, test_names, serve_flow},
	{"/wake", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, test_names, serve_wake},
	{"/end", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, test_names, serve_end},
	{"/release", HTTP_READ | HTTP_OPEN, ROLE_VIEWER, 0, test_names, release},
	{0},
};

static struct http *start(struct world *world, const char *listen, bool open, struct error *error)
{
	return http_start(world->engine,
		&(struct http_options){.listen = {.address = listen, .open = open},
			.routes = {pages_routes, test_routes},
			.context = &world->api},
		error);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;
	*state = world;
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	sem_init(&world->still, 0, 0);
	sem_init(&world->on, 0, 0);
	world->metrics = metrics_new();
	world->agent.metrics = world->metrics;
	world->api = (struct api){.agent = &world->agent,
		.options = {.unready = unready, .collect = collect, .context = world}};
	world->http = start(world, "127.0.0.1:0", false, &error);
	return world->engine && world->http ? 0 : -1;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	http_stop(world->http);
	answer_kept(world); /* nobody waits for it */
	engine_free(world->engine);
	http_free(world->http);
	metrics_free(world->metrics);
	sem_destroy(&world->still);
	sem_destroy(&world->on);
	free(world);
	return 0;
}

/* From 127.0.0.`from`. */
static int connect_from(const struct world *world, unsigned from)
{
	struct sockaddr_in source = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((INADDR_LOOPBACK & 0xffffff00) + from)};
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(http_port(world->http))};
	/* A stuck answer fails the test, before idle connections end by themselves (15 s). */
	struct timeval limit = {.tv_sec = 10};
	int buffer = 4096;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
	if (bind(fd, (struct sockaddr *)&source, sizeof source) != 0 ||
		connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		abort();
	return fd;
}

static int connect_to(const struct world *world)
{
	return connect_from(world, 1);
}

static void send_text(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		return;
}

/* Reads until the end of the stream. */
static void receive(struct world *world, int fd)
{
	size_t length = 0;
	ssize_t got = 0;
	while (length < ANSWER - 1 &&
		(got = recv(fd, world->answer + length, ANSWER - 1 - length, 0)) > 0)
		length += (size_t)got;
	world->received = got;
	world->answer[length] = '\0';
	close(fd);
}

static void ask(struct world *world, const char *request)
{
	int fd = connect_to(world);
	send_text(fd, request);
	receive(world, fd);
}

static void stop(void *engine)
{
	engine_stop(engine);
}

static void *run_client(void *argument)
{
	struct world *world = argument;
	world->client(world);
	engine_post(world->engine, stop, NULL, world->engine);
	return NULL;
}

static void run(struct world *world, void (*client)(struct world *))
{
	pthread_t thread;
	world->client = client;
	engine_hold(world->engine);
	pthread_create(&thread, NULL, run_client, world);
	engine_run(world->engine);
	pthread_join(thread, NULL);
	engine_release(world->engine);
}

static void saw(const struct world *world, const char *text)
{
	if (!strstr(world->answer, text))
		fail_msg("no \"%s\" in:\n%s", text, world->answer);
}

static void get_metrics(struct world *world)
{
	ask(world, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

static void test_metrics(void **state)
{
	struct world *world = *state;
	run(world, get_metrics);
	saw(world, "HTTP/1.1 200 OK\r\n");
	saw(world, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	saw(world, "\nhunter_build_info{version=\"" HUNTER_VERSION "\",revision=");
	saw(world, "\nhunter_tests 1\n");
}

static void get_health(struct world *world)
{
	ask(world, "GET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

static void get_ready(struct world *world)
{
	ask(world, "GET /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

static void test_health(void **state)
{
	struct world *world = *state;
	run(world, get_health);
	saw(world, "HTTP/1.1 200 OK\r\n");
	saw(world, "\r\n\r\nhealthy\n");
	run(world, get_ready);
	saw(world, "HTTP/1.1 200 OK\r\n");
	saw(world, "\r\n\r\nready\n");
	world->why = "the state file cannot be written";
	run(world, get_ready);
	saw(world, "HTTP/1.1 503 ");
	saw(world, "\r\n\r\nthe state file cannot be written\n");
}

static void get_nothing(struct world *world)
{
	ask(world, "GET /metrics/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

static void post(struct world *world)
{
	ask(world, "POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
		   "4\r\n\r\nbody");
}

static void get_head(struct world *world)
{
	ask(world, "HEAD /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
}

static void get_with_body(struct world *world)
{
	ask(world, "GET /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
		   "4\r\n\r\nbody");
}

static void get_garbage(struct world *world)
{
	ask(world, "\x16\x03\x01 what\r\n\r\n");
}

static void test_other_requests(void **state)
{
	struct world *world = *state;
	run(world, get_nothing);
	saw(world, "HTTP/1.1 404 ");
	saw(world, "Content-Type: application/json\r\n");
	saw(world, "\r\n\r\n{\"error\": \"not found\"}\n");
	run(world, post);
	saw(world, "HTTP/1.1 405 ");
	saw(world, "Allow: GET, HEAD\r\n");
	saw(world, "{\"error\": \"this page is read-only\"}\n");
	run(world, get_head);
	saw(world, "HTTP/1.1 200 OK\r\n");
	assert_string_equal(strstr(world->answer, "\r\n\r\n"), "\r\n\r\n");
	run(world, get_with_body);
	saw(world, "\r\n\r\nready\n");
	run(world, get_garbage);
	assert_null(strstr(world->answer, " 200 "));
}

static void expect(struct world *world, const char *request, const char *first, const char *second)
{
	ask(world, request);
	saw(world, first);
	saw(world, second);
}

#define HEAD(method, uri, more)                                                                    \
	method " " uri " HTTP/1.1\r\nHost: localhost:9\r\nConnection: close\r\n" more "\r\n"

static void ask_with_parameters(struct world *world)
{
	expect(world, HEAD("GET", "/say?a=x+y%26&b=%C3%A4", ""), " 200 ",
		"read a=x y& b=\xC3\xA4\n");
	expect(world, HEAD("GET", "/say?&a&", ""), " 200 ", "read a= b=(null)\n");
	expect(world, HEAD("GET", "/say?aa=1", ""), " 400 ",
		"{\"error\": \"unknown parameter \\\"aa\\\"");
	expect(world, HEAD("GET", "/say?a=1&a=1", ""), " 400 ", "duplicate parameter \\\"a\\\"");
	expect(world, HEAD("GET", "/say?a=%zz", ""), " 400 ", "\\\"a\\\" is not percent-encoded");
	expect(world, HEAD("GET", "/metrics?a=1", ""), " 400 ", "unknown parameter");
	expect(world,
		HEAD("POST", "/say?a=1",
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5\r\n") "b="
												    "%41",
		" 200 ", "posted a=1 b=A\n");
	expect(world,
		HEAD("POST", "/say?a=1",
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n") "a="
												    "2",
		" 400 ", "duplicate");
	expect(world,
		HEAD("POST", "/say", "Content-Type: text/plain\r\nContent-Length: 3\r\n") "a=2",
		" 415 ", "as a form");
	expect(world, HEAD("POST", "/say?a=1", "Content-Length: 0\r\n"), " 200 ", "posted a=1");
}

static void test_parameters(void **state)
{
	run(*state, ask_with_parameters);
}

/* Hundreds of parameters, which libmicrohttpd has no room for, are refused like one. */
static void ask_with_many_parameters(struct world *world)
{
	for (size_t count = 100; count <= 6400; count *= 2) {
		struct buf request = {0};

		buf_text(&request, "GET /say?b=1");
		for (size_t i = 0; i < count; i++)
			buf_text(&request, "&c=");
		buf_text(&request, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
		expect(world, request.data, " 400 ", "unknown parameter \\\"c\\\"");
		buf_free(&request);
	}
}

static void test_many_parameters(void **state)
{
	run(*state, ask_with_many_parameters);
}

static void ask_by_other_methods(struct world *world)
{
	expect(world, HEAD("GET", "/post", ""), " 405 ", "\r\nAllow: POST\r\n");
	expect(world, HEAD("PUT", "/say", "Content-Length: 0\r\n"), " 405 ",
		"\r\nAllow: GET, HEAD, POST\r\n");
	expect(world, HEAD("DELETE", "/metrics", ""), " 405 ", "\r\nAllow: GET, HEAD\r\n");
	expect(world, HEAD("OPTIONS", "/post", "Origin: http://localhost:9\r\n"), " 405 ", "POST");
}

static void test_methods(void **state)
{
	run(*state, ask_by_other_methods);
}

/* What would be more than 64 kB is not taken, whether it says so first or not. */
static void post_much(struct world *world)
{
	expect(world,
		HEAD("POST", "/say",
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: "
			"65537\r\n"),
		" 413 ", "too large");
	int fd = connect_to(world);
	send_text(fd, HEAD("POST", "/say",
			      "Content-Type: application/x-www-form-urlencoded\r\n"
			      "Transfer-Encoding: chunked\r\n"));
	for (int i = 0; i < 5000; i++)
		send_text(fd, "10\r\na=0123456789abcd\r\n");
	send_text(fd, "0\r\n\r\n");
	receive(world, fd);
	saw(world, " 413 ");
	fd = connect_to(world);
	send_text(fd, HEAD("POST", "/say",
			      "Content-Type: application/x-www-form-urlencoded\r\n"
			      "Transfer-Encoding: chunked\r\n"));
	for (int i = 0; i < 500000; i++)
		send_text(fd, "10\r\na=0123456789abcd\r\n");
	receive(world, fd);
	assert_null(strstr(world->answer, " 200 "));
}

static void test_bodies_are_bounded(void **state)
{
	run(*state, post_much);
}

static void ask_as_a_page_of_another_site(struct world *world)
{
	expect(world, "POST /say HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		" 403 ", "not a name of this agent");
	expect(world, HEAD("POST", "/say", "Origin: http://evil.example\r\n"), " 403 ",
		"cross-site");
	expect(world, HEAD("POST", "/say", "Origin: null\r\n"), " 403 ", "cross-site");
	expect(world, HEAD("POST", "/say", "Sec-Fetch-Site: cross-site\r\n"), " 403 ",
		"cross-site");
	expect(world,
		HEAD("POST", "/say",
			"Origin: http://localhost:9\r\nSec-Fetch-Site: same-origin\r\n"),
		" 200 ", "posted");
	expect(world, "GET /metrics HTTP/1.1\r\nHost: any.example\r\nConnection: close\r\n\r\n",
		" 200 ", "hunter_tests");
}

static void test_other_sites_are_kept_out(void **state)
{
	run(*state, ask_as_a_page_of_another_site);
}

/* Waits for its answer, which another request brings about. */
static void ask_and_wait(struct world *world)
{
	int fd = connect_to(world), other = connect_to(world), gone = connect_to(world);
	send_text(fd, HEAD("GET", "/keep?a=1", ""));
	send_text(other, HEAD("HEAD", "/keep?a=2", ""));
	send_text(gone, HEAD("GET", "/keep?a=3", ""));
	close(gone);
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 3); /* read by the other thread, but only to wait */
	expect(world, HEAD("GET", "/release?a=4", ""), " 200 ", "read a=4");
	receive(world, fd);
	saw(world, " 201 ");
	saw(world, "\r\n\r\nlate 1\n");
	receive(world, other);
	saw(world, " 201 ");
	assert_string_equal(strstr(world->answer, "\r\n\r\n"), "\r\n\r\n");
}

static void test_late_answers(void **state)
{
	run(*state, ask_and_wait);
}

static void ask_without_patience(struct world *world)
{
	expect(world, HEAD("GET", "/impatient?a=1", ""), " 504 ",
		"timed out; the operation continues in the background");
}

static void ask_for_release(struct world *world)
{
	expect(world, HEAD("GET", "/release", ""), " 200 ", "read");
}

static void test_patience_ends(void **state)
{
	struct world *world = *state;
	run(world, ask_without_patience);
	assert_int_equal(world->kept_count, 1);
	run(world, ask_for_release); /* the answer comes after all */
	assert_int_equal(world->kept_count, 0);
	run(world, ask_without_patience);
	world->kept_count = 0; /* this one's never */
}

static void keep_many(struct world *world)
{
	int waiting[32];
	for (int i = 0; i < 32; i++) {
		waiting[i] = connect_to(world);
		send_text(waiting[i], HEAD("GET", "/keep?a=1", ""));
	}
	do
		ask(world, HEAD("GET", "/keep?a=2", ""));
	while (!strstr(world->answer, " 503 "));
	saw(world, "\r\nRetry-After: 10\r\n");
	expect(world, HEAD("GET", "/-/healthy", ""), " 200 ", "healthy");
	ask(world, HEAD("GET", "/release", ""));
	for (int i = 0; i < 32; i++) {
		receive(world, waiting[i]);
		saw(world, "late 1");
	}
}

static void test_few_may_wait(void **state)
{
	run(*state, keep_many);
}

static void keep_one(struct world *world)
{
	int fd = connect_to(world);
	send_text(fd, HEAD("GET", "/keep?a=1", ""));
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 1);
	world->waiting = fd;
}

static void test_stopping_tells_those_who_wait(void **state)
{
	struct world *world = *state;
	run(world, keep_one);
	http_stop(world->http);
	receive(world, world->waiting);
	saw(world, " 503 ");
	saw(world, "the agent is stopping");
}

static void keep_one_of_two(struct world *world)
{
	int fd = connect_to(world);
	send_text(fd,
		"GET /keep?a=1 HTTP/1.1\r\nHost: localhost:9\r\n\r\n" HEAD("GET", "/keep?a=2", ""));
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 1);
	world->waiting = fd;
}

/* One request has come behind another one on its connection, one on a connection of its own. */
static void test_stopping_keeps_no_more(void **state)
{
	struct world *world = *state;
	run(world, keep_one_of_two);
	int fd = connect_to(world);
	send_text(fd, HEAD("GET", "/keep?a=3", ""));
	http_stop(world->http);
	assert_int_equal(world->kept_count, 1);
	receive(world, world->waiting);
	saw(world, " 503 ");
	assert_non_null(strstr(strstr(world->answer, " 503 ") + 1, " 503 "));
	receive(world, fd);
	saw(world, " 503 ");
	saw(world, "the agent is stopping");
}

/* Those who wait have left: they hold up nobody, though nothing was answered yet. */
static void keep_for_others(struct world *world)
{
	int waiting[32], last;
	for (int i = 0; i < 32; i++) {
		waiting[i] = connect_to(world);
		send_text(waiting[i], HEAD("GET", "/keep?a=1", ""));
	}
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 32);
	for (int i = 0; i < 32; i++)
		close(waiting[i]);
	last = connect_to(world);
	send_text(last, HEAD("GET", "/keep?a=2", ""));
	for (int i = 0; i < 1000 && world->kept_count < 33; i++)
		ask(world, HEAD("GET", "/metrics", ""));
	ask(world, HEAD("GET", "/release", ""));
	receive(world, last);
	saw(world, "late 2");
}

static void test_who_has_left_takes_no_place(void **state)
{
	run(*state, keep_for_others);
}

static void ask_urgently(struct world *world)
{
	int waiting[33];
	for (int i = 0; i < 32; i++) {
		waiting[i] = connect_to(world);
		send_text(waiting[i], HEAD("GET", "/keep?a=1", ""));
	}
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 32);
	expect(world, HEAD("GET", "/keep?a=2", ""), " 503 ", "too many");
	waiting[32] = connect_to(world);
	send_text(waiting[32], HEAD("GET", "/urgent?a=1", ""));
	do
		ask(world, HEAD("GET", "/metrics", ""));
	while (world->kept_count < 33);
	ask(world, HEAD("GET", "/release", ""));
	for (int i = 0; i < 33; i++) {
		receive(world, waiting[i]);
		saw(world, "late 1");
	}
}

static void test_what_is_urgent_finds_a_place(void **state)
{
	run(*state, ask_urgently);
}

static void get_huge(struct world *world)
{
	int fd = connect_to(world);
	send_text(fd, "GET /metrics HTTP/1.1\r\nHost: x\r\n");
	for (int i = 0; i < 5000; i++)
		send_text(fd, "X-More: 0123456789012345678901234567890123456789\r\n");
	send_text(fd, "\r\n");
	receive(world, fd);
}

static void test_requests_are_bounded(void **state)
{
	struct world *world = *state;
	run(world, get_huge);
	assert_null(strstr(world->answer, " 200 "));
	assert_int_equal(world->collected, 0);
}

/* Two requests on one connection while forty others are open and say nothing. */
static void get_among_idle_ones(struct world *world)
{
	int idle[40];
	for (int i = 0; i < 40; i++) {
		idle[i] = connect_to(world);
		send_text(idle[i], "GET /met");
	}
	int fd = connect_to(world);
	send_text(fd, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
	for (char c; read(fd, &c, 1) == 1 && c != '\n';) /* the first answer has begun */
		continue;
	send_text(fd, "GET /-/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
	receive(world, fd);
	for (int i = 0; i < 40; i++)
		close(idle[i]);
}

static void test_idle_connections_hold_up_nobody(void **state)
{
	struct world *world = *state;
	run(world, get_among_idle_ones);
	saw(world, "healthy\n");
	saw(world, "\r\n\r\nready\n");
}

/* Connections that stay open, each of which has been answered once. */
static void keep_open(struct world *world, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char first;

		world->open[i] = connect_from(world, 2 + (unsigned)i / OF_ONE);
		send_text(world->open[i], "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_int_equal(recv(world->open[i], &first, 1, 0), 1);
	}
}

static void take_all_places(struct world *world)
{
	keep_open(world, PLACES);
}

/* All connections there may be end at once. */
static void test_when_all_places_were_taken(void **state)
{
	struct world *world = *state;

	run(world, take_all_places);
	for (int i = 0; i < PLACES; i++)
		close(world->open[i]);
	run(world, get_health);
	saw(world, "healthy\n");
}

/* Connections of one address, or of as many as there are, each with what may be half a request. */
static void crowd(struct world *world, size_t count, bool of_one, const char *request)
{
	for (size_t i = 0; i < count; i++) {
		world->open[i] = connect_from(world, of_one ? 2 : 3 + (unsigned)i / 2);
		send_text(world->open[i], request);
		if (i % 32 > 0)
			continue;
		get_health(world); /* the others have been accepted by then */
		saw(world, "healthy\n");
	}
}

static void leave(struct world *world, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(world->open[i]);
}

static void ask_beside_a_crowd(struct world *world)
{
	int other = connect_from(world, 9), fd;
	char byte;

	send_text(other, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n");
	crowd(world, OF_ONE, true, "GET /");
	fd = connect_from(world, 2);
	send_text(fd, HEAD("GET", "/-/healthy", ""));
	receive(world, fd);
	saw(world, "healthy\n");
	assert_int_equal(recv(world->open[0], &byte, 1, 0), 0);
	for (int i = 1; i < OF_ONE; i++)
		assert_int_equal(recv(world->open[i], &byte, 1, MSG_DONTWAIT), -1);
	send_text(other, "\r\n"); /* it came before them all */
	assert_int_equal(recv(other, &byte, 1, 0), 1);
	close(other);
	leave(world, OF_ONE);
}

/* Of one address, the connection that has taken longest makes room. */
static void test_one_address_does_not_take_all(void **state)
{
	run(*state, ask_beside_a_crowd);
}

static void ask_beside_those_who_do_not_read(struct world *world)
{
	int fd;

	crowd(world, OF_ONE, true, HEAD("GET", "/large", ""));
	fd = connect_from(world, 2);
	send_text(fd, HEAD("GET", "/-/healthy", ""));
	receive(world, fd);
	saw(world, "healthy\n");
	leave(world, OF_ONE);
}

static void test_unread_answers_make_room(void **state)
{
	run(*state, ask_beside_those_who_do_not_read);
}

static void ask_beside_too_many(struct world *world)
{
	char byte;

	crowd(world, MANY, false, "GET /met");
	get_health(world);
	saw(world, "healthy\n");
	assert_int_equal(recv(world->open[0], &byte, 1, 0), 0);
	assert_int_equal(recv(world->open[MANY - 1], &byte, 1, MSG_DONTWAIT), -1);
	leave(world, MANY);
}

static void test_health_has_a_place(void **state)
{
	run(*state, ask_beside_too_many);
}

static void stand_still(void *context)
{
	struct world *world = context;

	sem_post(&world->still);
	sem_wait(&world->on);
}

/* The loop sees what is sent and the end at once. */
static void send_with_end(struct world *world, const char *text)
{
	int fd = connect_to(world);

	get_health(world); /* it has been accepted */
	engine_post(world->engine, stand_still, NULL, world);
	sem_wait(&world->still);
	send_text(fd, text);
	shutdown(fd, SHUT_WR);
	sem_post(&world->on);
	receive(world, fd);
	assert_int_equal(world->received, 0); /* the end, not the limit */
}

static void send_halves(struct world *world)
{
	static const char *const halves[] = {"", "GET /met", "GET /metrics HTTP/1.1\r\nHost: x\r\n",
		HEAD("POST", "/post",
			"Content-Type: application/x-www-form-urlencoded\r\n"
			"Content-Length: 9\r\n") "a=1"};

	for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
		send_with_end(world, halves[i]);
		assert_string_equal(world->answer, "");
	}
	send_with_end(world, "GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n");
	saw(world, "\r\n\r\nready\n");
	send_with_end(world, "GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"
			     "GET /-/ready HTTP/1.1\r\nHost: x\r\n\r\nGET");
	saw(world, "healthy\n");
	saw(world, "\r\n\r\nready\n");
}

/* Who sends half a request and ends is gone at once; who ends after a whole one is answered. */
static void test_the_end_within_a_request(void **state)
{
	run(*state, send_halves);
}

/* "@" is sent as a NUL. */
static void expect_nul_refused(struct world *world, const char *text)
{
	size_t length = strlen(text);
	char bytes[256];
	int fd = connect_to(world);

	assert_true(length < sizeof bytes);
	for (size_t i = 0; i < length; i++)
		bytes[i] = text[i] == '@' ? '\0' : text[i];
	assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
	receive(world, fd);
	saw(world, " 400 ");
	saw(world, "a NUL in the address");
}

#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"

/* What a proxy may have understood as another request. */
static void ask_ambiguously(struct world *world)
{
	expect(world, "GET /say HTTP/1.1\r\nConnection: close\r\n\r\n", " 400 ", "no Host");
	expect(world, "GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n", " 400 ", "no Host");
	expect(world, "GET /say HTTP/1.0\r\n\r\n", " 200 ", "read a=");
	expect(world, HEAD("GET", "/say%00", ""), " 400 ", "a NUL in the path");
	expect(world, HEAD("POST", "/say%00/more?a=1", ""), " 400 ", "a NUL in the path");
	expect(world, HEAD("GET", "/say?a=%00", ""), " 400 ", "is not percent-encoded UTF-8");
	expect_nul_refused(world, HEAD("GET", "/say@", ""));
	expect_nul_refused(world, HEAD("GET", "/say@HTTP/1.1", ""));
	expect_nul_refused(world, HEAD("GET", "/say?a=1@&b=2", ""));
	expect_nul_refused(world, HEAD("GET", "/say@?a=1", ""));
	expect_nul_refused(world, HEAD("GET", "/say @ /x", ""));
	expect(world, HEAD("GET", "/metrics", "Host: localhost:9\r\n"), " 400 ",
		"more than one Host");
	expect(world, HEAD("GET", "/nowhere", "hOST: other\r\n"), " 400 ", "more than one Host");
	expect(world, HEAD("POST", "/say", FORM "Content-Length: 3\r\nContent-Length: 3\r\n") "a=1",
		" 400 ", "more than one Content-Length");
	expect(world, HEAD("GET", "/say", "Content-Length: 0\r\nContent-Length: 30\r\n"), " 400 ",
		"\r\nConnection: close\r\n");
	expect(world,
		HEAD("POST", "/say",
			FORM "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
		" 400 ", "more than one Content-Length or Transfer-Encoding");
	ask(world, "GET /say HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
		   "Content-Length: 0\r\n\r\nGET /say?a=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
	saw(world, " 400 ");
	assert_null(strstr(world->answer, " 200 ")); /* what follows is not taken for a request */
}

static void test_ambiguous_headers(void **state)
{
	run(*state, ask_ambiguously);
}

/* A byte now and then, for as long as the other side takes it. */
static void dawdle(struct world *world, const char *head)
{
	int fd = connect_to(world);
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	int64_t until = clock_monotonic() + LONGEST;

	send_text(fd, head);
	while (poll(&poller, 1, 20) == 0 && clock_monotonic() < until)
		send_text(fd, "a");
	assert_true(clock_monotonic() < until);
	receive(world, fd);
	assert_string_equal(world->answer, "");
}

static void ask_slowly(struct world *world)
{
	int fd = connect_to(world);

	send_text(fd, HEAD("GET", "/keep?a=1", ""));
	dawdle(world, "GET /metr");
	dawdle(world, "GET /metrics HTTP/1.1\r\nHost: x\r\nX: ");
	dawdle(world, "POST /say HTTP/1.1\r\nHost: localhost\r\n"
		      "Content-Type: application/x-www-form-urlencoded\r\n"
		      "Content-Length: 60000\r\n\r\na=");
	ask(world, HEAD("GET", "/release", ""));
	receive(world, fd);
	saw(world, "late 1"); /* whoever has asked may wait for longer */
}

static void test_requests_have_their_time(void **state)
{
	struct world *world = *state;
	struct error error;

	http_stop(world->http);
	http_free(world->http);
	world->http = http_start(world->engine,
		&(struct http_options){.listen = {.address = "127.0.0.1:0"},
			.routes = {pages_routes, test_routes},
			.context = &world->api,
			.request_within = 300},
		&error);
	assert_non_null(world->http);
	run(world, ask_slowly);
}

static void get_often(struct world *world)
{
	for (int i = 0; i < 300; i++)
		get_metrics(world);
}

static void test_often(void **state)
{
	struct world *world = *state;
	int64_t before = clock_monotonic();
	run(world, get_often);
	saw(world, "\nhunter_tests 300\n");
	assert_in_range(clock_monotonic() - before, 0, 15000); /* no answer waits for a timeout */
}

static void test_addresses(void **state)
{
	struct world *world = *state;
	static const struct {
		const char *listen;
		enum error_kind kind;
		const char *words;
	} cases[] = {
		{"", ERROR_USAGE, "not of the form host:port"},
		{"9469", ERROR_USAGE, "not of the form"},
		{":9469", ERROR_USAGE, "not of the form"},
		{"127.0.0.1:", ERROR_USAGE, "not of the form"},
		{"127.0.0.1:http", ERROR_USAGE, "not of the form"},
		{"127.0.0.1:65536", ERROR_USAGE, "not of the form"},
		{"127.0.0.1:-1", ERROR_USAGE, "not of the form"},
		{"::1:9469", ERROR_USAGE, "not of the form"},
		{"[::1:9469", ERROR_USAGE, "not of the form"},
		{"0.0.0.0:9469", ERROR_USAGE, "is reachable from other machines"},
		{"[::]:9469", ERROR_USAGE, "is reachable from other machines"},
		{"192.0.2.1:9469", ERROR_USAGE, "is reachable from other machines"},
	};
	struct error error;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(start(world, cases[i].listen, false, &error));
		assert_int_equal(error.kind, cases[i].kind);
		if (!strstr(error.text, cases[i].words))
			fail_msg("%s: %s", cases[i].listen, error.text);
	}
	char busy[32];
	snprintf(busy, sizeof busy, "127.0.0.1:%d", http_port(world->http));
	assert_null(start(world, busy, false, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	assert_non_null(strstr(error.text, "Address already in use"));

	struct http *other = start(world, "localhost:0", false, &error);
	assert_non_null(other);
	assert_int_not_equal(http_port(other), 0);
	http_free(other);

	static const char *const open[] = {"0.0.0.0:0", "[::]:0", "[::1]:0"};
	for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
		other = start(world, open[i], true, &error);
		if (!other)
			fail_msg("%s: %s", open[i], error.text);
		assert_int_not_equal(http_port(other), 0);
		http_free(other);
	}
}

static void get_ids(struct world *world)
{
	static const struct {
		const char *request, *told;
	} cases[] = {
		{"POST /of/812/say?a=1", "posted a=1 b=(null)\nid=812\n"},
		{"GET /of/1", "id=1\n"},
		{"GET /of/999999999999999999", "id=999999999999999999\n"},
		{"GET /of/0", " 404 "},
		{"GET /of/9999999999999999999", " 404 "},
		{"GET /of/", " 404 "},
		{"GET /of/x", " 404 "},
		{"GET /of/-1", " 404 "},
		{"GET /of/1/", " 404 "},
		{"POST /of/1/say/", " 404 "},
		{"POST /of/1/2/say", " 404 "},
		{"GET /of/1/say", "Allow: POST\r\n"},
		{"POST /of/1", "Allow: GET, HEAD\r\n"},
		{"GET /two", "read a=(null)"},
		{"POST /two?b=2", "posted a=(null) b=2\n"},
		{"GET /two?b=2", " 400 "},
		{"DELETE /two", "Allow: GET, HEAD, POST\r\n"},
	};
	char request[200];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(request, sizeof request,
			"%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
			cases[i].request);
		ask(world, request);
		if (!strstr(world->answer, cases[i].told))
			fail_msg("%s: no \"%s\" in:\n%s", cases[i].request, cases[i].told,
				world->answer);
	}
}

/* An id in the path, and routes that share a path. */
static void test_ids(void **state)
{
	run(*state, get_ids);
}

/* Reads a chunked body into world->answer; returns its length, or -1 if it is cut off. */
static long receive_chunks(struct world *world, int fd)
{
	static char body[1 << 22];
	size_t length = 0, at, body_length = 0;
	ssize_t got;
	char *end;

	while ((got = recv(fd, body + length, sizeof body - 1 - length, 0)) > 0)
		length += (size_t)got;
	close(fd);
	body[length] = '\0';
	end = strstr(body, "\r\n\r\n");
	assert_non_null(end);
	assert_non_null(strstr(body, "Transfer-Encoding: chunked\r\n"));
	for (at = (size_t)(end + 4 - body); at < length;) {
		size_t size = strtoul(body + at, &end, 16);

		at = (size_t)(end + 2 - body);
		if (size == 0)
			return (long)body_length;
		if (at + size > length)
			return -1;
		memcpy(world->answer, body + at, size < 100 ? size : 100);
		body_length += size;
		at += size + 2;
	}
	return -1;
}

static void ask_pieces(struct world *world)
{
	int fd = connect_to(world);

	send_text(fd, HEAD("GET", "/flow?a=300", ""));
	assert_int_equal(receive_chunks(world, fd), 300 * 10001 + 10 * 8 + 90 * 9 + 200 * 10);
	fd = connect_to(world);
	send_text(fd, HEAD("GET", "/flow?a=3&b=breaks", ""));
	assert_int_equal(receive_chunks(world, fd), -1);
	ask(world, HEAD("GET", "/flow", ""));
	saw(world, "\r\n\r\n0\r\n\r\n");
	ask(world, HEAD("HEAD", "/flow?a=3", ""));
	saw(world, "HTTP/1.1 200 OK\r\n");
	assert_null(strstr(world->answer, "piece"));
	ask(world, "GET /flow?a=2 HTTP/1.0\r\nHost: x\r\n\r\n");
	saw(world, "\r\n\r\npiece 0\n");
	saw(world, "\npiece 1\n");
	assert_int_equal(world->received, 0);
}

static void wait_for(const _Atomic int *counter, int least)
{
	while (*counter < least)
		sched_yield();
}

static void test_answers_in_pieces(void **state)
{
	struct world *world = *state;

	run(world, ask_pieces);
	assert_int_equal(world->flows, 5);
	assert_int_equal(world->ended, 5);
}

/* Reads until there is so much of that text. */
static void read_until(struct world *world, int fd, const char *text)
{
	size_t length = 0;
	ssize_t got;

	world->answer[0] = '\0';
	while (!strstr(world->answer, text)) {
		got = recv(fd, world->answer + length, ANSWER - 1 - length, 0);
		assert_true(got > 0);
		length += (size_t)got;
		world->answer[length] = '\0';
	}
}

static void ask_resting(struct world *world)
{
	int fd = connect_to(world), beating = connect_to(world);

	send_text(fd, HEAD("GET", "/flow?a=1&b=rests", ""));
	read_until(world, fd, "piece 0\n");
	send_text(beating, HEAD("GET", "/flow?a=1&b=beats", ""));
	read_until(world, beating, "piece 0\n");
	for (int i = 1; i < 4; i++) {
		char piece[20];

		snprintf(piece, sizeof piece, "piece %d\n", i);
		ask(world, HEAD("GET", "/wake", ""));
		read_until(world, fd, piece);
		read_until(world, beating, piece);
	}
	/* One ends, the other is left. */
	ask(world, HEAD("GET", "/end", ""));
	receive(world, fd);
	assert_int_equal(world->received, 0);
	saw(world, "\r\n0\r\n\r\n");
	wait_for(&world->ended, 1);
	close(beating);
	ask(world, HEAD("GET", "/wake", ""));
	wait_for(&world->ended, 2);
}

static void test_pieces_that_come_later(void **state)
{
	run(*state, ask_resting);
}

/* One reads nothing of what has no end, the other rests; then the server stops. */
static void ask_without_reading(struct world *world)
{
	int unread = connect_to(world), rests = connect_to(world);

	send_text(unread, HEAD("GET", "/flow?a=-1&b=rests", ""));
	send_text(rests, HEAD("GET", "/flow?a=1&b=rests", ""));
	read_until(world, rests, "piece 0\n");
	for (int i = 0; i < 50; i++)
		expect(world, HEAD("GET", "/say?a=1", ""), " 200 ", "read a=1");
	world->open[0] = unread;
	world->open[1] = rests;
}

static void test_stopping_ends_all_pieces(void **state)
{
	struct world *world = *state;

	run(world, ask_without_reading);
	assert_int_equal(world->ended, 0);
	http_stop(world->http);
	assert_int_equal(world->ended, 2);
	receive(world, world->open[1]);
	saw(world, "\r\n0\r\n\r\n");
	close(world->open[0]);
}

static void ask_for_all_streams(struct world *world)
{
	int open[HTTP_LISTENERS];

	for (int i = 0; i < HTTP_LISTENERS; i++) {
		open[i] = connect_from(world, 1 + (unsigned)i / HTTP_LISTENERS_OF_ONE);
		send_text(open[i], HEAD("GET", "/flow?a=1&b=rests", ""));
		read_until(world, open[i], "piece 0\n");
		if (i + 1 != HTTP_LISTENERS_OF_ONE)
			continue;
		/* As many as one address may have; others find a place. */
		expect(world, HEAD("GET", "/flow?a=1&b=rests", ""), " 503 ", "Retry-After: ");
		assert_int_equal(world->ended, 1);
	}
	int late = connect_from(world, 9);
	send_text(late, HEAD("GET", "/flow?a=1&b=rests", ""));
	read_until(world, late, " 503 ");
	close(late);
	assert_int_equal(world->ended, 2);
	expect(world, HEAD("GET", "/say?a=1", ""), " 200 ", "read a=1");
	for (int i = 0; i < HTTP_LISTENERS; i++)
		close(open[i]);
	ask(world, HEAD("GET", "/wake", ""));
	ask(world, HEAD("GET", "/wake", ""));
	wait_for(&world->ended, HTTP_LISTENERS + 2);
	int fd = connect_to(world);
	send_text(fd, HEAD("GET", "/flow?a=1&b=rests", ""));
	read_until(world, fd, "piece 0\n");
	close(fd);
}

/* More than one address may have, which takes no place of others. */
static void test_streams_have_their_places(void **state)
{
	run(*state, ask_for_all_streams);
}

/* Asks for so many bytes; returns the length of the body, unpacked if it is packed. */
static long ask_text(struct world *world, const char *what, const char *headers)
{
	static char got[1 << 21], plain[1 << 21];
	char request[400];
	size_t length = 0;
	ssize_t count;
	int fd = connect_to(world);

	snprintf(request, sizeof request, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
		what, headers);
	send_text(fd, request);
	while ((count = recv(fd, got + length, sizeof got - 1 - length, 0)) > 0)
		length += (size_t)count;
	close(fd);
	got[length] = '\0';
	const char *body = strstr(got, "\r\n\r\n");
	assert_non_null(body);
	size_t head = (size_t)(body + 4 - got);
	memcpy(world->answer, got, head);
	world->answer[head] = '\0';
	if (!strstr(world->answer, "Content-Encoding: gzip") || length == head)
		return (long)(length - head);
	z_stream stream = {.next_in = (Bytef *)got + head,
		.avail_in = (uInt)(length - head),
		.next_out = (Bytef *)plain,
		.avail_out = sizeof plain};
	assert_int_equal(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	inflateEnd(&stream);
	for (uLong i = 0; i < stream.total_out; i++)
		assert_int_equal(plain[i], 'a' + (int)(i % 13 * (i % 2)));
	return (long)stream.total_out;
}

static void ask_texts(struct world *world)
{
	static const char packs[] = "Accept-Encoding: gzip, deflate, br\r\n";
	static const int sizes[] = {1024, 32768, 32769, 40000};
	char what[100], known[200];

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		snprintf(what, sizeof what, "GET /text?a=%d", sizes[i]);
		assert_int_equal(ask_text(world, what, packs), sizes[i]);
		saw(world, " 200 ");
		saw(world, "Content-Encoding: gzip\r\n");
		saw(world, "Vary: Accept-Encoding\r\n");
		saw(world, "Cache-Control: private, no-cache\r\n");
		snprintf(known, sizeof known, "%sIf-None-Match: \"x\", %.24s\r\n", packs,
			strstr(world->answer, "ETag: ") + strlen("ETag: "));
		*strchr(strstr(known, "W/"), '\r') = '\0';
		strcat(known, "\r\n");
		assert_int_equal(ask_text(world, what, known), 0);
		saw(world, " 304 ");
		assert_null(strstr(world->answer, "Content-Encoding"));
		snprintf(what, sizeof what, "GET /text?a=%d", sizes[i] + 1);
		assert_int_equal(ask_text(world, what, known), sizes[i] + 1);
		saw(world, " 200 ");
		assert_int_equal(ask_text(world, what, ""), sizes[i] + 1);
		assert_null(strstr(world->answer, "Content-Encoding"));
		saw(world, "ETag: W/\"");
		assert_int_equal(
			ask_text(world, what, "Accept-Encoding: gzip;q=0\r\n"), sizes[i] + 1);
		assert_null(strstr(world->answer, "Content-Encoding"));
	}
	/* Small ones, errors and pictures are sent as they are; answers to a POST have no version.
	 */
	assert_int_equal(ask_text(world, "GET /text?a=1023", packs), 1023);
	assert_null(strstr(world->answer, "Content-Encoding"));
	saw(world, "Cache-Control: no-store\r\n");
	assert_int_equal(ask_text(world, "GET /text?a=50000&b=png", packs), 50000);
	assert_null(strstr(world->answer, "Content-Encoding"));
	assert_int_equal(ask_text(world, "GET /text?a=50000&b=fails", packs), 50000);
	saw(world, " 409 ");
	assert_null(strstr(world->answer, "ETag"));
	snprintf(known, sizeof known, "%sContent-Length: 0\r\n", packs);
	assert_int_equal(ask_text(world, "POST /text?a=50000", known), 50000);
	saw(world, "Content-Encoding: gzip\r\n");
	assert_null(strstr(world->answer, "ETag"));
	assert_int_equal(ask_text(world, "HEAD /text?a=50000", packs), 0);
	saw(world, "Content-Encoding: gzip\r\n");
}

static void test_small_on_their_way(void **state)
{
	run(*state, ask_texts);
}

/* Their answers are not there yet when the server stops. */
static void leave_packing(struct world *world)
{
	world->open[0] = connect_to(world);
	send_text(world->open[0], HEAD("GET", "/keep?a=1", "Accept-Encoding: gzip\r\n"));
	while (world->kept_count < 1)
		sched_yield();
}

static void test_stopping_while_answers_are_packed(void **state)
{
	struct world *world = *state;
	struct http_answer answer = {0};

	run(world, leave_packing);
	for (int i = 0; i < 1 << 20; i++)
		buf_char(&answer.body, 'x');
	http_answer(world->kept[0], &answer);
	world->kept_count = 0;
	http_stop(world->http);
	receive(world, world->open[0]);
	saw(world, " 503 ");
	saw(world, "stopping");
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_metrics),
		WORLD_TEST(test_health),
		WORLD_TEST(test_other_requests),
		WORLD_TEST(test_ids),
		WORLD_TEST(test_parameters),
		WORLD_TEST(test_many_parameters),
		WORLD_TEST(test_methods),
		WORLD_TEST(test_bodies_are_bounded),
		WORLD_TEST(test_other_sites_are_kept_out),
		WORLD_TEST(test_late_answers),
		WORLD_TEST(test_patience_ends),
		WORLD_TEST(test_few_may_wait),
		WORLD_TEST(test_stopping_tells_those_who_wait),
		WORLD_TEST(test_stopping_keeps_no_more),
		WORLD_TEST(test_who_has_left_takes_no_place),
		WORLD_TEST(test_what_is_urgent_finds_a_place),
		WORLD_TEST(test_requests_are_bounded),
		WORLD_TEST(test_idle_connections_hold_up_nobody),
		WORLD_TEST(test_when_all_places_were_taken),
		WORLD_TEST(test_one_address_does_not_take_all),
		WORLD_TEST(test_unread_answers_make_room),
		WORLD_TEST(test_health_has_a_place),
		WORLD_TEST(test_the_end_within_a_request),
		WORLD_TEST(test_ambiguous_headers),
		WORLD_TEST(test_requests_have_their_time),
		WORLD_TEST(test_often),
		WORLD_TEST(test_addresses),
		WORLD_TEST(test_answers_in_pieces),
		WORLD_TEST(test_pieces_that_come_later),
		WORLD_TEST(test_stopping_ends_all_pieces),
		WORLD_TEST(test_streams_have_their_places),
		WORLD_TEST(test_small_on_their_way),
		WORLD_TEST(test_stopping_while_answers_are_packed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
