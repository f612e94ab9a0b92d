/*
 * A server of our own on loopback, for tests: it reads one request, hands its text to the test's
 * function, which writes what it likes to the socket, and goes on until the function says that the
 * connection is over. Each connection has a thread.
 */
#ifndef TESTS_UNIT_PEER_H
#define TESTS_UNIT_PEER_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEER_REQUEST = 16384, PEER_CONNECTIONS = 512 };

struct peer;

/* True: the connection may carry another request. */
typedef bool peer_serve(struct peer *peer, int fd, const char *request);

struct peer {
	peer_serve *serve;
	void *context;
	int listener;
	int port;
	char url[64];
	pthread_t thread;
	pthread_t connections[PEER_CONNECTIONS];
	int fds[PEER_CONNECTIONS];
	int count;
	atomic_int requests, at_once, most_at_once;
	pthread_mutex_t lock;
	char last[PEER_REQUEST]; /* the last request; under the lock */
};

struct peer_connection {
	struct peer *peer;
	int fd;
};

/*
 * Reads up to the blank line and the body that Content-Length announces, or whatever comes first if
 * it is TLS; false at the end of the stream.
 */
static inline bool peer_read(int fd, char request[PEER_REQUEST])
{
	size_t length = 0;
	while (length < PEER_REQUEST - 1) {
		ssize_t got = read(fd, request + length, PEER_REQUEST - 1 - length);
		if (got <= 0)
			return false;
		length += (size_t)got;
		request[length] = '\0';
		if (request[0] == 0x16)
			return true;
		const char *end = strstr(request, "\r\n\r\n");
		if (!end)
			continue;
		const char *announced = strstr(request, "Content-Length: ");
		size_t body = announced ? strtoul(announced + 16, NULL, 10) : 0;
		if (length >= (size_t)(end + 4 - request) + body)
			return true;
	}
	return false;
}

static inline void *peer_connection(void *argument)
{
	struct peer_connection connection = *(struct peer_connection *)argument;
	struct peer *peer = connection.peer;
	char *request = malloc(PEER_REQUEST);
	free(argument);
	for (bool more = true; more && peer_read(connection.fd, request);) {
		pthread_mutex_lock(&peer->lock);
		strcpy(peer->last, request);
		pthread_mutex_unlock(&peer->lock);
		atomic_fetch_add(&peer->requests, 1);
		int now = atomic_fetch_add(&peer->at_once, 1) + 1,
		    most = atomic_load(&peer->most_at_once);
		while (now > most && !atomic_compare_exchange_weak(&peer->most_at_once, &most, now))
			continue;
		more = peer->serve(peer, connection.fd, request);
		atomic_fetch_sub(&peer->at_once, 1);
	}
	shutdown(connection.fd, SHUT_RDWR);
	free(request);
	return NULL;
}

static inline void *peer_listen(void *argument)
{
	struct peer *peer = argument;
	for (int fd;
		peer->count < PEER_CONNECTIONS && (fd = accept(peer->listener, NULL, NULL)) >= 0;) {
		struct peer_connection *connection = malloc(sizeof *connection);
		*connection = (struct peer_connection){peer, fd};
		peer->fds[peer->count] = fd;
		pthread_create(
			&peer->connections[peer->count++], NULL, peer_connection, connection);
	}
	return NULL;
}

static inline struct peer *peer_new(peer_serve *serve, void *context)
{
	struct peer *peer = calloc(1, sizeof *peer);
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	peer->serve = serve;
	peer->context = context;
	peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_mutex_init(&peer->lock, NULL);
	if (bind(peer->listener, (struct sockaddr *)&address, size) != 0 ||
		listen(peer->listener, 64) != 0 ||
		getsockname(peer->listener, (struct sockaddr *)&address, &size) != 0)
		abort();
	peer->port = ntohs(address.sin_port);
	snprintf(peer->url, sizeof peer->url, "http://127.0.0.1:%d", peer->port);
	pthread_create(&peer->thread, NULL, peer_listen, peer);
	return peer;
}

static inline void peer_free(struct peer *peer)
{
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	for (int i = 0; i < peer->count; i++)
		shutdown(peer->fds[i], SHUT_RDWR);
	for (int i = 0; i < peer->count; i++) {
		pthread_join(peer->connections[i], NULL);
		close(peer->fds[i]);
	}
	close(peer->listener);
	pthread_mutex_destroy(&peer->lock);
	free(peer);
}

/* Does the last request hold this text? */
static inline bool peer_saw(struct peer *peer, const char *text)
{
	pthread_mutex_lock(&peer->lock);
	bool saw = strstr(peer->last, text) != NULL;
	pthread_mutex_unlock(&peer->lock);
	return saw;
}

static inline void peer_write(int fd, const void *data, size_t length)
{
	const char *at = data;
	for (ssize_t sent; length > 0; at += sent, length -= (size_t)sent)
		if ((sent = send(fd, at, length, MSG_NOSIGNAL)) <= 0)
			return;
}

static inline void peer_text(int fd, const char *text)
{
	peer_write(fd, text, strlen(text));
}

/* A whole answer, in one piece; `headers` are lines with their line breaks, or "". */
static inline void peer_answer(int fd, int status, const char *headers, const char *body)
{
	char *text = NULL;
	int length = asprintf(&text, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n%s\r\n%s", status,
		strlen(body), headers, body);
	if (length < 0)
		abort();
	peer_write(fd, text, (size_t)length);
	free(text);
}

/* Waits until the other side closes the connection. */
static inline void peer_hang(int fd)
{
	char byte;
	while (read(fd, &byte, 1) > 0)
		continue;
}

/* Ends the connection with a reset. */
static inline void peer_reset(int fd)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};
	if (connect(fd, &none, sizeof none) != 0)
		abort();
}

#endif
