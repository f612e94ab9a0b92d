/*
 * bench_sources: what asking a server costs, end to end and reading alone.
 *
 * A process of ours plays Prometheus with canned answers, as fast as the loopback goes, so that
 * what is measured is hunter-c; its CPU time is part of the wall time. Every child is forked while
 * this process is small, because a process's peak memory counts from its fork.
 *
 *     bench_sources HUNTER-C FOLDER      configurations are written to FOLDER
 *
 * Prints rows of: name, work, time, rate, peak memory, with tabs between.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "sources/prometheus/prometheus.h"

enum {
	QUERIES = 10000,
	SMALL_POINTS = 200,
	BIG_SERIES = 2000,
	BIG_POINTS = 720,
	ROUNDS = 3,
	PARSE_ROUNDS = 5,
	START = 1709251200, /* 2024-03-01 00:00:00 UTC */
	CONNECTIONS = 300,
	REQUEST = 8192,
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* About 100 with 2% noise and eight digits, as a benchmark's results are. */
static double next_value(uint64_t *state)
{
	double sum = 0;
	for (int i = 0; i < 12; i++) {
		*state ^= *state << 13;
		*state ^= *state >> 7;
		*state ^= *state << 17;
		sum += (double)(*state >> 11) * 0x1p-53;
	}
	return 100 + 2 * (sum - 6);
}

static void write_answer(struct buf *out, size_t series, size_t points)
{
	uint64_t seed = 88172645463325252u;
	buf_text(out, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	for (size_t i = 0; i < series; i++) {
		buf_printf(out,
			"%s{\"metric\":{\"__name__\":\"request_seconds\",\"instance\":\"10.0.%zu.%"
			"zu:9090\","
			"\"job\":\"shop\"},\"values\":[",
			i ? "," : "", i / 250, i % 250);
		for (size_t k = 0; k < points; k++)
			buf_printf(out, "%s[%d,\"%.5f\"]", k ? "," : "", START + 3600 * (int)k,
				next_value(&seed));
		buf_text(out, "]}");
	}
	buf_text(out, "]}}");
}

/* The answer as HTTP. */
static void write_http(struct buf *out, size_t series, size_t points)
{
	struct buf body = {0};
	write_answer(&body, series, points);
	buf_printf(out,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		body.length);
	buf_append(out, body.data, body.length);
	buf_free(&body);
}

struct connection {
	char request[REQUEST];
	size_t got;
	const struct buf *answer; /* that is being sent, or NULL */
	size_t sent;
};

/* Reads and answers as far as it goes without waiting; false when the connection is over. */
static bool serve(struct connection *connection, int fd, const struct buf answers[2])
{
	for (;;) {
		if (connection->answer) {
			ssize_t sent = send(fd, connection->answer->data + connection->sent,
				connection->answer->length - connection->sent, MSG_NOSIGNAL);
			if (sent < 0)
				return true;
			connection->sent += (size_t)sent;
			if (connection->sent == connection->answer->length)
				connection->answer = NULL;
			continue;
		}
		ssize_t got = recv(fd, connection->request + connection->got,
			REQUEST - 1 - connection->got, 0);
		if (got <= 0)
			return got < 0;
		connection->got += (size_t)got;
		connection->request[connection->got] = '\0';
		if (!strstr(connection->request, "\r\n\r\n"))
			continue;
		connection->answer = &answers[strstr(connection->request, "query=big") != NULL];
		connection->sent = connection->got = 0;
	}
}

static void play_prometheus(int listener)
{
	struct buf answers[2] = {0};
	static struct pollfd fds[CONNECTIONS];
	struct connection *connections = calloc(CONNECTIONS, sizeof *connections);
	size_t count = 1;
	write_http(&answers[0], 1, SMALL_POINTS);
	write_http(&answers[1], BIG_SERIES, BIG_POINTS);
	fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
	while (connections && poll(fds, count, -1) > 0) {
		for (size_t i = count; i-- > 1;) {
			if (!fds[i].revents)
				continue;
			if (serve(&connections[i], fds[i].fd, answers)) {
				fds[i].events = connections[i].answer ? POLLOUT : POLLIN;
				continue;
			}
			close(fds[i].fd);
			fds[i] = fds[--count];
			connections[i] = connections[count];
		}
		if (!fds[0].revents || count == CONNECTIONS)
			continue;
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd < 0)
			continue;
		fds[count] = (struct pollfd){.fd = fd, .events = POLLIN};
		memset(&connections[count++], 0, sizeof *connections);
	}
}

/* The server's process and port. */
static pid_t start_server(int *port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
		listen(listener, CONNECTIONS) != 0 ||
		getsockname(listener, (struct sockaddr *)&address, &size) != 0)
		die("server");
	pid_t parent = getpid(), child = fork();
	if (child == 0) {
		signal(SIGALRM, SIG_DFL);
		alarm(600); /* should the parent die */
		play_prometheus(listener);
		_exit(parent == getppid());
	}
	if (child < 0)
		die("fork");
	close(listener);
	*port = ntohs(address.sin_port);
	return child;
}

static void write_config(const char *path, int port, size_t tests, const char *query)
{
	FILE *file = fopen(path, "w");
	if (!file)
		die(path);
	fprintf(file, "prometheus: {url: 'http://127.0.0.1:%d/'}\ntests:\n", port);
	for (size_t i = 0; i < tests; i++)
		fprintf(file, "  test.%05zu: {type: prometheus, query: '%s_%zu'}\n", i, query, i);
	if (fclose(file) != 0)
		die(path);
}

struct measured {
	double wall, cpu;
	long peak; /* KiB */
};

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static struct measured wait_for(pid_t child, double start)
{
	struct rusage usage;
	int status;
	if (child < 0 || wait4(child, &status, 0, &usage) != child)
		die("wait4");
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		fprintf(stderr, "bench_sources: a child ended with status %d\n", status);
		exit(1);
	}
	return (struct measured){
		now() - start, seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss};
}

static struct measured run_hunter(const char *hunter, const char *config)
{
	double start = now();
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR);
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0)
			_exit(127);
		execl(hunter, hunter, "regressions", "--config", config, "--since", "2024-03-01",
			"--until", "2024-04-01", (char *)NULL);
		perror(hunter);
		_exit(127);
	}
	return wait_for(child, start);
}

static struct measured fastest_hunter(const char *hunter, const char *config)
{
	struct measured best = run_hunter(hunter, config);
	for (int i = 1; i < ROUNDS; i++) {
		struct measured run = run_hunter(hunter, config);
		best.peak = run.peak > best.peak ? run.peak : best.peak;
		if (run.wall < best.wall) {
			best.wall = run.wall;
			best.cpu = run.cpu;
		}
	}
	return best;
}

/* Reads the big answer as the engine hands it over; the seconds of the fastest round. */
static double parse_big(const char *body, size_t length)
{
	struct prometheus_options options = {.query = "big", .range = 86400000};
	struct prometheus_server server = {
		.endpoint = {.url = "http://127.0.0.1/", .timeout = 1000},
		.flavor = FLAVOR_PROMETHEUS};
	double best = 1e9;
	for (int i = 0; i < PARSE_ROUNDS; i++) {
		struct arena *arena = arena_new();
		struct query query = {.arena = arena,
			.test = "big",
			.options = &options,
			.server = &server,
			.since = START * 1000LL,
			.until = (START + 86400 * 31) * 1000LL};
		struct reply reply = {.kind = REPLY_ANSWER,
			.status = 200,
			.retry_after = -1,
			.body = body,
			.length = length};
		struct transfer next;
		struct error error;
		if (prometheus_source.step(&query, NULL, &next, &error) != STEP_TRANSFER)
			exit(2);
		double start = now();
		if (prometheus_source.step(&query, &reply, &next, &error) != STEP_DONE ||
			query.data.count != BIG_SERIES)
			exit(2);
		double taken = now() - start;
		best = taken < best ? taken : best;
		arena_free(arena);
	}
	return best;
}

static void print_row(
	const char *work, double time, double rate, const char *unit, long peak, double body)
{
	printf("sources\t%s\t%.3g s\t%.0f %s\t%.1f MB", work, time, rate, unit,
		(double)peak / 1024);
	if (body > 0)
		printf(" (%.2f x)", (double)peak * 1024 / body);
	printf("\n");
	fflush(stdout);
}

/* Returns the size of the answer. */
static double bench_parse(void)
{
	double *shared = mmap(NULL, 2 * sizeof *shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	double start = now();
	pid_t child = fork();
	if (child == 0) {
		struct buf body = {0};
		write_answer(&body, BIG_SERIES, BIG_POINTS);
		shared[0] = (double)body.length;
		shared[1] = parse_big(body.data, body.length);
		_exit(0);
	}
	struct measured measured = wait_for(child, start);
	char work[128];
	snprintf(work, sizeof work, "read %d series x %d points, %.0f MB of JSON, 1 core",
		BIG_SERIES, BIG_POINTS, shared[0] / 1e6);
	print_row(work, shared[1], shared[0] / shared[1] / 1e6, "MB/s", measured.peak, shared[0]);
	return shared[0];
}

int main(int argc, char **argv)
{
	char config[4096], work[128];
	int port;
	if (argc != 3) {
		fprintf(stderr, "usage: bench_sources HUNTER-C FOLDER\n");
		return 2;
	}
	pid_t server = start_server(&port);

	snprintf(config, sizeof config, "%s/queries.yaml", argv[2]);
	write_config(config, port, QUERIES, "small");
	struct measured measured = fastest_hunter(argv[1], config);
	snprintf(work, sizeof work, "regressions, %d Prometheus queries x %d points, CPU %.2g s",
		QUERIES, SMALL_POINTS, measured.cpu);
	print_row(work, measured.wall, QUERIES / measured.wall, "queries/s", measured.peak, 0);

	double body = bench_parse();
	snprintf(config, sizeof config, "%s/big.yaml", argv[2]);
	write_config(config, port, 1, "big");
	measured = fastest_hunter(argv[1], config);
	snprintf(work, sizeof work, "the same fetched and analysed, CPU %.2g s", measured.cpu);
	print_row(work, measured.wall, body / measured.wall / 1e6, "MB/s", measured.peak, body);

	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	return 0;
}
