/* A list of open connections, each with the deadline of its request. */
#include "agent/http/visits.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "agent/base/arena.h"
#include "agent/base/clock.h"

static int socket_of(const struct visit *visit)
{
	return MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
		->connect_fd;
}

static void shut(struct visit *visit)
{
	(void)shutdown(socket_of(visit), SHUT_RDWR);
	visit->due = INT64_MAX;
	visit->shut = true;
}

/* If there are more than `most` connections from that address or, with NULL, in total, shuts the
 * one that has taken longest. */
static void keep_to(struct visits *visits, size_t most, const struct peer *peer)
{
	struct visit *longest = NULL;
	size_t count = 0;

	for (struct visit *visit = visits->first; visit; visit = visit->next) {
		if (visit->shut || visit->listens || (peer && !peer_is_same(&visit->peer, peer)))
			continue;
		count++;
		if (!visit->held && (!longest || visit->since <= longest->since))
			longest = visit; /* the first of those that started at the same time */
	}
	if (count > most && longest)
		shut(longest);
}

void http_visits_note(void *context, struct MHD_Connection *connection, void **out,
	enum MHD_ConnectionNotificationCode code)
{
	struct visits *visits = context;
	struct visit *visit = *out;
	int64_t now = clock_monotonic();

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		*visit->link = visit->next;
		if (visit->next)
			visit->next->link = visit->link;
		tls_release(visit->tls);
		free(visit);
		return;
	}
	*out = visit = memory_new(1, sizeof *visit);
	*visit = (struct visit){.connection = connection,
		.peer = peer_of(connection),
		.since = now,
		.due = now + visits->within,
		.next = visits->first,
		.link = &visits->first};
	if (visit->next)
		visit->next->link = &visit->next;
	visits->first = visit;
	keep_to(visits, visits->of_an_address, &visit->peer);
	keep_to(visits, visits->most, NULL);
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

void http_visits_listen(struct MHD_Connection *connection)
{
	visit_of(connection)->listens = true;
}

void http_visits_complete(struct MHD_Connection *connection)
{
	struct visit *visit = visit_of(connection);

	visit->due = INT64_MAX;
	visit->held = true;
}

void http_visits_answer(struct MHD_Connection *connection)
{
	struct visit *visit = visit_of(connection);

	visit->due = INT64_MAX;
	visit->since = clock_monotonic();
	visit->held = false;
}

void http_visits_again(const struct visits *visits, struct MHD_Connection *connection)
{
	struct visit *visit = visit_of(connection);

	visit->since = clock_monotonic();
	visit->held = false;
	visit->listens = false;
	if (!visit->shut)
		visit->due = visit->since + visits->within;
}

int64_t http_visits_sweep(struct visits *visits)
{
	int64_t now = clock_monotonic(), next = INT64_MAX;

	for (struct visit *visit = visits->first; visit; visit = visit->next) {
		if (visit->due <= now)
			shut(visit);
		else if (visit->due < next)
			next = visit->due;
	}
	return next == INT64_MAX ? -1 : next - now;
}

void http_visits_end(struct visits *visits)
{
	char byte;

	for (struct visit *visit = visits->first; visit; visit = visit->next)
		if (visit->due < INT64_MAX &&
			recv(socket_of(visit), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			shut(visit);
}
