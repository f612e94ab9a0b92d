/*
 * A request lives from its first line until its connection has finished with it and, if a route
 * has kept it, until it is answered: whichever is later.
 */
#include "agent/http/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/io/engine.h"

void http_request_free(struct http_request *request)
{
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	request->http->bulky -= request->bulky;
	buf_free(&request->body);
	buf_free(&request->buffer);
	buf_free(&request->answer.body);
	http_flow_end(request);
	http_pack_leave(request);
	arena_free(request->arena);
}

/* Whether the path contains a NUL, which would end it here but not in a proxy. */
static bool has_nul(const char *uri, const char *query)
{
	const char *nul = strstr(uri, "%00");

	return nul && (!query || nul < query);
}

/*
 * libmicrohttpd would parse the query, too, after this: into its pool, where a few hundred
 * parameters exhaust it, and it then never answers. So it finds an empty one.
 */
void *http_request_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
	struct http *http = context;
	struct arena *arena = arena_new();
	struct http_request *request = arena_alloc(arena, sizeof *request);
	char *query = strchr(uri, '?');

	*request = (struct http_request){.context = http->options.context,
		.http = http,
		.arena = arena,
		.connection = connection,
		.next = http->requests,
		.link = &http->requests,
		.has_nul = has_nul(uri, query),
		.after = uri + strlen(uri) + 1,
		.query = query ? arena_strdup(arena, query + 1) : ""};
	if (query)
		query[1] = '\0';
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
	http_flow_end(request);
	if (!request->kept)
		http_request_free(request);
}

void http_request_resume(struct http_request *request)
{
	MHD_resume_connection(request->connection);
	request->http->resumed = true;
	engine_rouse(request->http->engine, request->http->epoll);
}

size_t *http_places(struct http_request *request)
{
	struct http *http = request->http;

	return request->route->uses & HTTP_SHOWN ? &http->pictures : &http->waiting;
}

void http_request_answer(struct http_request *request, struct http_answer *answer)
{
	enum http_stage stage = request->stage;

	request->answer = *answer;
	answer->body = (struct buf){0};
	request->stage = STAGE_ANSWERED;
	if (stage == STAGE_WAITING)
		--*http_places(request);
	http_pack_leave(request);
	if (stage == STAGE_WAITING || stage == STAGE_SIGN_IN || stage == STAGE_PACKING)
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

	http_request_answer(request, &answer);
}

void http_answer(struct http_request *request, struct http_answer *answer)
{
	assert(request->kept);
	request->kept = false;
	request->http->kept--;
	if (request->stage == STAGE_SERVING || request->stage == STAGE_WAITING) {
		if (!http_pack(request, answer)) {
			http_request_answer(request, answer);
			return;
		}
		if (request->stage == STAGE_WAITING)
			--*http_places(request);
		if (request->stage == STAGE_SERVING)
			MHD_suspend_connection(request->connection);
		request->stage = STAGE_PACKING;
		return;
	}
	buf_free(&answer->body); /* its client is gone */
	if (!request->connection)
		http_request_free(request);
}

void http_send(struct http_request *request, int status)
{
	struct http_answer answer = {.status = status, .body = request->buffer};

	buf_char(&answer.body, '\n');
	request->buffer = (struct buf){0};
	http_answer(request, &answer);
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

/* NULL: there is none. */
static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	if (value)
		MHD_add_response_header(response, name, value);
}

bool http_is_known(const struct http_request *request, const char *etag)
{
	const char *known = etag ? request->known : NULL;

	return known && (strcmp(known, "*") == 0 || strstr(known, etag));
}

static struct MHD_Response *response_of(struct http_answer *answer)
{
	size_t length = answer->fixed ? answer->fixed_length : answer->body.length;
	void *bytes = answer->fixed ? (void *)(uintptr_t)answer->fixed : buf_steal(&answer->body);

	return MHD_create_response_from_buffer(
		length, bytes, answer->fixed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
}

/* Answers with a version may be cached but must be revalidated; restricted ones only by the
 * browser. */
static const char *cache_control(const struct http_request *request)
{
	if (!request->answer.etag)
		return "no-store";
	return request->route->needs == ROLE_ANYBODY ? "no-cache" : "private, no-cache";
}

enum MHD_Result http_request_send(struct http_request *request)
{
	static const char nothing[] = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";
	struct http_answer *answer = &request->answer;
	const struct web_config *config = access_config(request->http->options.access);
	unsigned status = answer->status ? (unsigned)answer->status : MHD_HTTP_OK;
	struct MHD_Response *response;

	if (status == MHD_HTTP_OK && http_is_known(request, answer->etag)) {
		status = MHD_HTTP_NOT_MODIFIED;
		answer->fixed = "";
		answer->fixed_length = 0;
		buf_free(&answer->body);
	}
	response = request->flow.stream.next ? http_flow_response(request) : response_of(answer);
	if (!response)
		abort(); /* out of memory */
	request->stage = STAGE_SENT;
	http_visits_answer(request->connection);
	add_header(response, "Content-Type", answer->type ? answer->type : "application/json");
	add_header(response, "Cache-Control", cache_control(request));
	add_header(response, "ETag", answer->etag);
	if (status == MHD_HTTP_OK)
		add_header(response, "Content-Encoding", answer->encoding);
	if (answer->etag || answer->encoding)
		add_header(response, "Vary", "Accept-Encoding");
	if (request->flow.stream.next)
		add_header(response, "X-Accel-Buffering", "no"); /* nginx would wait */
	add_header(response, "Content-Security-Policy", answer->policy ? answer->policy : nothing);
	add_header(response, "Referrer-Policy", "no-referrer");
	add_header(response, "X-Content-Type-Options", "nosniff");
	add_header(response, "Connection", request->closes ? "close" : NULL);
	add_header(response, "Allow", request->allow);
	if (status == MHD_HTTP_UNAUTHORIZED && config->user_count > 0)
		add_header(response, "WWW-Authenticate",
			"Basic realm=\"hunter-c\", charset=\"UTF-8\"");
	if (status == MHD_HTTP_UNAUTHORIZED && config->token_count > 0)
		add_header(response, "WWW-Authenticate", "Bearer realm=\"hunter-c\"");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE || request->retry_after > 0)
		add_header(response, "Retry-After",
			arena_printf(request->arena, "%" PRId64,
				request->retry_after > 0 ? request->retry_after : 10));
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
