/*
 * See http_visits.h.
 */
#include "agent/watch/http_visits.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "agent/core/arena.h"
#include "agent/core/clock.h"

static void begin(struct visits *visits, struct MHD_Connection *connection, void **out)
{
	struct visit *visit = memory_new(1, sizeof *visit);

	*visit = (struct visit){.connection = connection,
		.due = clock_monotonic() + visits->within,
		.next = visits->first,
		.link = &visits->first};
	if (visit->next)
		visit->next->link = &visit->next;
	visits->first = visit;
	*out = visit;
}

static void end(struct visit *visit)
{
	*visit->link = visit->next;
	if (visit->next)
		visit->next->link = visit->link;
	free(visit);
}

void http_visits_note(void *context, struct MHD_Connection *connection, void **visit,
	enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		begin(context, connection, visit);
	else
		end(*visit);
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

void http_visits_complete(struct MHD_Connection *connection)
{
	visit_of(connection)->due = INT64_MAX;
}

void http_visits_again(const struct visits *visits, struct MHD_Connection *connection)
{
	visit_of(connection)->due = clock_monotonic() + visits->within;
}

static void shut(struct visit *visit)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(visit->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	(void)shutdown(info->connect_fd, SHUT_RDWR);
	visit->due = INT64_MAX;
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
