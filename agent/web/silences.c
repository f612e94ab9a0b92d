/* Silences: list, add, end. */
#include <inttypes.h>
#include <string.h>

#include "agent/notify/silence.h"
#include "agent/store/forms.h"
#include "agent/web/api.h"

/* A request in progress. */
struct silencing {
	struct api *api;
	struct http_request *request;
	struct store_silence *added;
};

enum { MOST_OPEN = 10000 };

static void listed(struct store_silences *list)
{
	struct http_request *request = list->call.context;
	struct http_answer answer = {0};

	if (list->call.failed) {
		http_fail(request, http_status_of(list->call.error), "%s", list->call.error->text);
		store_call_free(&list->call);
		return;
	}
	silences_put_json(&answer.body, &list->silences, list->now);
	http_answer(request, &answer);
	store_call_free(&list->call);
}

void api_get_silences(void *context, struct http_request *request)
{
	struct agent *agent = api_of(context)->agent;
	const char *all = http_parameter(request, "all");
	struct store_silences *list;

	if (all && strcmp(all, "true") != 0 && strcmp(all, "false") != 0) {
		http_fail(request, 400, "all: true or false is needed");
		return;
	}
	if (agent->stopping) {
		http_fail(request, 503, "the agent is stopping");
		return;
	}
	list = store_silences_new(listed, request);
	list->all = all && strcmp(all, "true") == 0;
	list->now = agent_now(agent);
	store_client_call(agent, &list->call);
}

/* The open changes are there: answers with what the new silence reaches. */
static void reached(struct store_list *list)
{
	struct silencing *silencing = list->call.context;
	struct store_silence *call = silencing->added;
	struct http_answer answer = {0};
	struct silence_reach reach;

	/* Without the list the silence is there all the same. */
	silence_reach(silencing->api->agent->config, call->silence.matchers,
		list->call.failed ? &(const struct record_rows){0} : &list->records,
		list->call.arena, &reach);
	silence_put_added(&answer.body, &call->silence, call->now, reach.tests, reach.changes,
		reach.unknown, reach.suggestion);
	buf_char(&answer.body, '\n');
	http_answer(silencing->request, &answer);
	store_call_free(&call->call);
	store_call_free(&list->call);
}

static void ask_reach(struct silencing *silencing, struct store_silence *call)
{
	struct store_list *list = store_list_new(reached, silencing);

	silencing->added = call;
	list->filter.open = true;
	list->filter.now = call->now;
	list->filter.limit = MOST_OPEN;
	store_client_call(silencing->api->agent, &list->call);
}

static void written(struct store_silence *call)
{
	struct silencing *silencing = call->call.context;
	struct api *api = silencing->api;
	struct http_request *request = silencing->request;
	struct http_answer answer = {0};

	if (call->call.failed)
		http_fail(request, http_status_of(call->call.error), "%s", call->call.error->text);
	else if (!call->found)
		http_fail(request, 404, "there is no silence %" PRId64, http_id(request));
	else {
		if (api->silenced)
			api->silenced(api->context, &call->silence);
		if (http_id(request) == 0 && !api->agent->stopping) {
			ask_reach(silencing, call);
			return;
		}
		silence_put_json(&answer.body, &call->silence, call->now);
		buf_char(&answer.body, '\n');
		http_answer(request, &answer);
	}
	store_call_free(&call->call);
}

/* Checks and fills in the call, which goes to the store. */
static void write_silence(void *context, struct http_request *request,
	bool (*fill)(struct api *api, struct http_request *request, struct store_silence *call,
		struct error *error))
{
	struct api *api = api_of(context);
	struct silencing *silencing = arena_alloc(http_arena(request), sizeof *silencing);
	struct store_silence *call = store_silence_new(written, silencing);
	struct error error;

	*silencing = (struct silencing){.api = api, .request = request};
	call->now = agent_now(api->agent);
	if (api->agent->stopping)
		http_fail(request, 503, "the agent is stopping");
	else if (!api_actor(request, &call->actor, &error) || !fill(api, request, call, &error))
		http_fail(request, 400, "%s", error.text);
	else {
		store_client_call(api->agent, &call->call);
		return;
	}
	store_call_free(&call->call);
}

static bool fill_new(struct api *api, struct http_request *request, struct store_silence *call,
	struct error *error)
{
	return silence_form_read(
		api_form, request, api->agent->config->agent.max_silence, call, error);
}

void api_post_silence(void *context, struct http_request *request)
{
	write_silence(context, request, fill_new);
}

static bool fill_end(struct api *api, struct http_request *request, struct store_silence *call,
	struct error *error)
{
	(void)api, (void)error;
	call->silence.id = http_id(request);
	call->silence.ended = call->now;
	call->silence.ended_by = call->actor.person;
	return true;
}

void api_post_silence_end(void *context, struct http_request *request)
{
	write_silence(context, request, fill_end);
}
