/*
 * Answers without end, piece by piece. libmicrohttpd asks for a piece when the client has taken the
 * one before; while there is none, the connection is suspended, as it would ask again and again.
 *
 * A client that has left, or reads nothing, is noticed when something is sent to it: libmicrohttpd
 * closes a connection that takes nothing for a while, and the kernel one whose peer does not
 * acknowledge what was sent.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "agent/base/clock.h"
#include "agent/http/request.h"
#include "agent/io/engine.h"

enum {
	BLOCK = 4 << 10,
	ACKNOWLEDGED_WITHIN = 30000, /* ms */
};

void http_flow_end(struct http_request *request)
{
	struct flow *flow = &request->flow;
	struct http_stream stream = flow->stream;

	if (!stream.next)
		return;
	flow->stream.next = NULL;
	request->http->flows--;
	buf_free(&flow->piece);
	stream.end(stream.context);
}

static ssize_t read_piece(void *context, uint64_t position, char *out, size_t size)
{
	struct http_request *request = context;
	struct flow *flow = &request->flow;

	(void)position;
	while (flow->sent == flow->piece.length) {
		if (flow->over || request->http->stopping)
			return MHD_CONTENT_READER_END_OF_STREAM;
		flow->sent = 0;
		if (flow->piece.capacity > BLOCK)
			buf_free(&flow->piece); /* most pieces are small */
		buf_clear(&flow->piece);
		if (!flow->stream.next(flow->stream.context, &flow->piece))
			return MHD_CONTENT_READER_END_WITH_ERROR;
		if (flow->piece.length == 0 && !flow->over) {
			flow->resting = true;
			flow->due = clock_monotonic() + flow->stream.every;
			MHD_suspend_connection(request->connection);
			return 0;
		}
	}
	if (size > flow->piece.length - flow->sent)
		size = flow->piece.length - flow->sent;
	memcpy(out, flow->piece.data + flow->sent, size);
	flow->sent += size;
	return (ssize_t)size;
}

struct MHD_Response *http_flow_response(struct http_request *request)
{
	return MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK, read_piece, request, NULL);
}

/* Behind a trusted proxy the client's address counts, not the proxy's. */
static bool is_same_client(const struct http_request *a, const struct http_request *b)
{
	struct peer one = peer_of(a->connection), other = peer_of(b->connection);

	if (a->sign_in.access && b->sign_in.access && !one.local && !other.local)
		return memcmp(a->sign_in.client, b->sign_in.client, sizeof a->sign_in.client) == 0;
	return peer_is_same(&one, &other);
}

bool http_stream(struct http_request *request, const struct http_stream *stream)
{
	struct http *http = request->http;
	size_t own = 0; /* of the same client */

	for (const struct http_request *other = http->requests; other; other = other->next)
		own += other->flow.stream.next && is_same_client(request, other);
	if (http->flows >= HTTP_LISTENERS || own >= HTTP_LISTENERS_OF_ONE)
		return false;
	http->flows++;
	request->flow = (struct flow){.stream = *stream};
	/* Lets the kernel give up on a peer that has vanished silently. */
	(void)setsockopt(
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			->connect_fd,
		IPPROTO_TCP, TCP_USER_TIMEOUT, &(unsigned){ACKNOWLEDGED_WITHIN}, sizeof(unsigned));
	http_visits_listen(request->connection);
	http_answer(request, &(struct http_answer){.type = stream->type});
	return true;
}

void http_stream_wake(struct http_request *request)
{
	struct flow *flow = &request->flow;

	if (!flow->resting)
		return;
	flow->resting = false;
	http_request_resume(request);
}

void http_end_streams(struct http *http)
{
	for (struct http_request *request = http->requests; request; request = request->next) {
		request->flow.over = true;
		http_stream_wake(request);
	}
}
