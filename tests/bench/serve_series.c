/*
 * serve_series: a Prometheus that has much to say, for measuring who asks it.
 *
 *     serve_series PORT LABEL_SETS POINTS THREADS [steady]
 *
 * Answers any range or instant query with LABEL_SETS series of at most POINTS points, a minute
 * apart, up to an hour before the time that was asked for: noise with a step now and then, the same
 * for the same time; with `steady` nothing is to be found. Later answers have the points of earlier
 * ones and a new one each minute; /advance?N makes the hour N minutes shorter from then on.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MINUTE = 60, REQUEST = 16384 };

struct server {
	int listener;
	int64_t sets, points;
	bool steady;            /* nothing is to be found */
	_Atomic int64_t behind; /* minutes */
};

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

static double unit(uint64_t x)
{
	return (double)(mix(x) >> 11) * 0x1p-53;
}

/* Of a series at a minute. The level changes every 500 minutes, for some of the series. */
static double value_at(const struct server *server, uint64_t series, int64_t minute)
{
	if (server->steady)
		return 1000 + (double)(minute % 2);

	uint64_t era = (uint64_t)(minute + (int64_t)(mix(series) % 500)) / 500;
	double level = unit(series * 977 + era * 31) < 0.1 ? 1100 : 1000;

	return level * (1 + 0.1 * (unit(series * 1000003 + (uint64_t)minute) - 0.5));
}

struct text {
	char *data;
	size_t length, room;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
	va_list arguments;

	if (text->room - text->length < 256) {
		text->room = 2 * text->room + 65536;
		text->data = realloc(text->data, text->room);
	}
	va_start(arguments, format);
	text->length += (size_t)vsnprintf(
		text->data + text->length, text->room - text->length, format, arguments);
	va_end(arguments);
}

static int64_t parameter(const char *request, const char *name, int64_t otherwise)
{
	const char *at = strstr(request, name);

	return at ? (int64_t)strtod(at + strlen(name), NULL) : otherwise;
}

static void add_series(const struct server *server, struct text *text, uint64_t number,
	int64_t first, int64_t last)
{
	for (int64_t minute = first; minute <= last; minute++)
		add(text, "%s[%lld,\"%.3f\"]", minute == first ? "" : ",",
			(long long)(minute * MINUTE), value_at(server, number, minute));
}

/* `start` and `end` of query_range; an instant query has `time`. The query's text makes the series
 * others than those of another query. */
static void answer_query(const struct server *server, const char *request, struct text *text)
{
	int64_t end = parameter(request, "end=", (int64_t)time(NULL));
	int64_t last = end / MINUTE - server->behind;
	int64_t first = parameter(request, "start=", 0) / MINUTE;
	const char *query = strstr(request, "query=");
	uint64_t seed = 0;

	for (; query && *query && !strchr("& \r\n", *query); query++)
		seed = mix(seed ^ (uint64_t)*query);
	if (first < last - server->points + 1)
		first = last - server->points + 1;
	add(text, "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[");
	for (int64_t i = 0; i < server->sets; i++) {
		add(text,
			"%s{\"metric\":{\"__name__\":\"bench\",\"instance\":\"%lld\"},\"values\":[",
			i ? "," : "", (long long)i);
		add_series(server, text, seed + (uint64_t)i, first, last);
		add(text, "]}");
	}
	add(text, "]}}");
}

static bool send_all(int fd, const char *data, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		data += sent;
		length -= (size_t)sent;
	}
	return true;
}

static bool answer(struct server *server, int fd, const char *request)
{
	struct text text = {0};
	char head[160];
	const char *advance = strstr(request, "/advance?");
	bool sent;

	if (advance)
		server->behind -= atoi(advance + strlen("/advance?"));
	if (strstr(request, "/api/v1/query"))
		answer_query(server, request, &text);
	else
		add(&text, "{\"status\":\"success\",\"data\":{}}");
	snprintf(head, sizeof head,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		text.length);
	sent = send_all(fd, head, strlen(head)) && send_all(fd, text.data, text.length);
	free(text.data);
	return sent;
}

/* One connection after the other per thread; requests have no body but a form's. */
static void *serve(void *context)
{
	struct server *server = context;

	for (;;) {
		char request[REQUEST];
		int fd = accept(server->listener, NULL, NULL);
		size_t length = 0;

		for (;;) {
			ssize_t got = recv(fd, request + length, REQUEST - 1 - length, 0);
			char *end, *size;

			if (got <= 0)
				break;
			length += (size_t)got;
			request[length] = 0;
			end = strstr(request, "\r\n\r\n");
			size = strcasestr(request, "\r\nContent-Length:");
			if (!end || (size && length < (size_t)(end + 4 - request) +
							      strtoul(size + 17, NULL, 10)))
				continue;
			if (!answer(server, fd, request))
				break;
			length = 0;
		}
		close(fd);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct server server = {.behind = 60};
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int yes = 1;

	if (argc < 5 || argc > 6) {
		fprintf(stderr, "usage: serve_series PORT LABEL_SETS POINTS THREADS [steady]\n");
		return 2;
	}
	server.sets = atoi(argv[2]);
	server.points = atoi(argv[3]);
	server.steady = argc == 6;
	address.sin_port = htons((uint16_t)atoi(argv[1]));
	server.listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(server.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
		listen(server.listener, 512) != 0) {
		perror("serve_series");
		return 1;
	}
	for (int i = 1; i < atoi(argv[4]); i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, serve, &server) != 0)
			return 1;
	}
	serve(&server);
}
