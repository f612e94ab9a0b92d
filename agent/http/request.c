/*
 * A request lives from its first line until its connection has finished with it and, if a route
 * has kept it, until it is answered: whichever is later.
 */
#include "agent/http/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/engine/engine.h"

void http_request_free(struct http_request *request)
{
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	buf_free(&request->body);
	buf_free(&request->buffer);
	buf_free(&request->answer.body);
	arena_free(request->arena);
}

void *http_request_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct http *http = context;
	struct arena *arena = arena_new();
	struct http_request *request = arena_alloc(arena, sizeof *request);
	const char *query = strchr(uri, '?');

	*request = (struct http_request){.http = http,
		.arena = arena,
		.connection = connection,
		.next = http->requests,
		.link = &http->requests,
		.query = query ? arena_strdup(arena, query + 1) : ""};
	if (request->next)
		request->next->link = &request->next;
	http->requests = request;
	return request;
}

void http_request_end(void *context, struct MHD_Connection *connection, void **state,
	enum MHD_RequestTerminationCode code)
{
	struct http_request *request = *state;
	const struct http *http = context;

	(void)code;
	http_visits_again(&http->visits, connection);
	*state = NULL;
	if (!request)
		return;
	access_abandon(&request->sign_in);
	request->connection = NULL;
	if (!request->kept)
		http_request_free(request);
}

void http_request_resume(struct http_request *request)
{
	MHD_resume_connection(request->connection);
	request->http->resumed = true;
	engine_rouse(request->http->engine, request->http->epoll);
}

/* Sets the answer; it is sent when libmicrohttpd asks for it. */
static void set_answer(struct http_request *request, struct http_answer *answer)
{
	enum http_stage stage = request->stage;

	request->answer = *answer;
	answer->body = (struct buf){0};
	request->stage = STAGE_ANSWERED;
	request->http->waiting -= stage == STAGE_WAITING;
	if (stage == STAGE_WAITING || stage == STAGE_SIGN_IN)
		http_request_resume(request);
}

static struct http_answer failure_of(int status, const char *problem)
{
	struct http_answer answer = {.status = status};

	buf_text(&answer.body, "{\"error\": ");
	buf_json_text(&answer.body, problem);
	buf_text(&answer.body, "}\n");
	return answer;
}

void http_request_fail(struct http_request *request, int status, const char *problem)
{
	struct http_answer answer = failure_of(status, problem);

	set_answer(request, &answer);
}

void http_answer(struct http_request *request, struct http_answer *answer)
{
	assert(request->kept);
	request->kept = false;
	request->http->kept--;
	if (request->stage == STAGE_SERVING || request->stage == STAGE_WAITING) {
		set_answer(request, answer);
		return;
	}
	buf_free(&answer->body); /* nobody waits for it any more */
	if (!request->connection)
		http_request_free(request);
}

void http_fail(struct http_request *request, int status, const char *format, ...)
{
	struct http_answer answer;
	va_list arguments;

	va_start(arguments, format);
	answer = failure_of(status, arena_vprintf(request->arena, format, arguments));
	va_end(arguments);
	http_answer(request, &answer);
}

int http_status_of(const struct error *error)
{
	if (error->kind == ERROR_USAGE)
		return MHD_HTTP_BAD_REQUEST;
	return error->kind == ERROR_STATE ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_BAD_GATEWAY;
}

static void add_challenges(struct MHD_Response *response, const struct access *access)
{
	if (access_basic(access))
		MHD_add_response_header(response, "WWW-Authenticate", access_basic(access));
	if (access_bearer(access))
		MHD_add_response_header(response, "WWW-Authenticate", access_bearer(access));
}

static void add_retry_after(struct MHD_Response *response, int64_t seconds)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, seconds);
	MHD_add_response_header(response, "Retry-After", text);
}

enum MHD_Result http_request_send(struct http_request *request)
{
	struct http_answer *answer = &request->answer;
	size_t length = answer->body.length;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		length, buf_steal(&answer->body), MHD_RESPMEM_MUST_FREE);
	unsigned status = answer->status ? (unsigned)answer->status : MHD_HTTP_OK;

	if (!response)
		abort(); /* out of memory */
	request->stage = STAGE_SENT;
	http_visits_answer(request->connection);
	MHD_add_response_header(
		response, "Content-Type", answer->type ? answer->type : "application/json");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (request->closes)
		MHD_add_response_header(response, "Connection", "close");
	if (request->allow)
		MHD_add_response_header(response, "Allow", request->allow);
	if (status == MHD_HTTP_UNAUTHORIZED)
		add_challenges(response, request->http->options.access);
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE || request->retry_after > 0)
		add_retry_after(response, request->retry_after > 0 ? request->retry_after : 10);
	enum MHD_Result queued = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
	return queued;
}

const char *http_parameter(const struct http_request *request, const char *name)
{
	return http_query_get(&request->parameters, name);
}

const char *http_header(const struct http_request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

int64_t http_id(const struct http_request *request)
{
	return request->id;
}

const struct http_person *http_person(const struct http_request *request)
{
	return &request->sign_in.person;
}

struct arena *http_arena(struct http_request *request)
{
	return request->arena;
}

struct buf *http_buffer(struct http_request *request)
{
	return &request->buffer;
}
