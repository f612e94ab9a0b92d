/* The agent's HTTP face, asked over the loopback by a thread of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "agent/core/clock.h"
#include "agent/engine/engine.h"
#include "agent/watch/pages.h"

enum { ANSWER = 1 << 16 };

/* An agent's face on a port of its own, and a client that talks to it while the engine runs. */
struct world {
	struct engine *engine;
	struct http *http;
	struct metrics *metrics;
	struct pages pages;
	const char *why; /* it is not ready */
	int collected;
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
	metrics_set(world->metrics, METRIC_TESTS, ++world->collected, NULL, NULL);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct error error;
	*state = world;
	world->engine = engine_new(&(struct engine_options){.jobs = 1}, &error);
	world->metrics = metrics_new();
	world->pages = (struct pages){world->metrics, unready, collect, world};
	world->http = http_start(world->engine, "127.0.0.1:0", pages_routes, &world->pages, &error);
	return world->engine && world->http ? 0 : -1;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	http_stop(world->http);
	engine_free(world->engine);
	metrics_free(world->metrics);
	free(world);
	return 0;
}

static int connect_to(const struct world *world)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(http_port(world->http))};
	/* A stuck answer fails the test; none takes a second. */
	struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		abort();
	return fd;
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
	ssize_t got;
	while (length < ANSWER - 1 &&
		(got = recv(fd, world->answer + length, ANSWER - 1 - length, 0)) > 0)
		length += (size_t)got;
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
	saw(world, "\r\n\r\n{\"error\": \"there is no such page\"}\n");
	run(world, post);
	saw(world, "HTTP/1.1 405 ");
	saw(world, "Allow: GET, HEAD\r\n");
	saw(world, "{\"error\": \"this page is for reading only\"}\n");
	run(world, get_head);
	saw(world, "HTTP/1.1 200 OK\r\n");
	assert_string_equal(strstr(world->answer, "\r\n\r\n"), "\r\n\r\n");
	run(world, get_with_body);
	saw(world, "\r\n\r\nready\n");
	run(world, get_garbage);
	assert_null(strstr(world->answer, " 200 "));
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
		{"0.0.0.0:9469", ERROR_USAGE, "can be reached from other machines"},
		{"[::]:9469", ERROR_USAGE, "can be reached from other machines"},
		{"192.0.2.1:9469", ERROR_USAGE, "can be reached from other machines"},
	};
	struct error error;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_null(http_start(world->engine, cases[i].listen, pages_routes, NULL, &error));
		assert_int_equal(error.kind, cases[i].kind);
		if (!strstr(error.text, cases[i].words))
			fail_msg("%s: %s", cases[i].listen, error.text);
	}
	char busy[32];
	snprintf(busy, sizeof busy, "127.0.0.1:%d", http_port(world->http));
	assert_null(http_start(world->engine, busy, pages_routes, NULL, &error));
	assert_int_equal(error.kind, ERROR_STATE);
	assert_non_null(strstr(error.text, "Address already in use"));

	struct http *other =
		http_start(world->engine, "localhost:0", pages_routes, &world->pages, &error);
	assert_non_null(other);
	assert_int_not_equal(http_port(other), 0);
	http_stop(other);
}

#define WORLD_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WORLD_TEST(test_metrics),
		WORLD_TEST(test_health),
		WORLD_TEST(test_other_requests),
		WORLD_TEST(test_requests_are_bounded),
		WORLD_TEST(test_idle_connections_hold_up_nobody),
		WORLD_TEST(test_often),
		WORLD_TEST(test_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
