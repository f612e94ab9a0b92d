/* What people say about changes, and the audit log of it. A request is one transaction of the
 * store, however many changes it selects. */
#include <inttypes.h>
#include <string.h>

#include "agent/web/api.h"
#include "agent/web/forms.h"

enum { LIMIT = 100, MOST = 1000 };

/* A request in progress. */
struct judging {
	struct api *api;
	struct http_request *request;
};

static void answer(struct judging *judging, struct store_triage *call)
{
	struct http_answer answer = {.status = call->conflict ? 409 : 200};

	triage_form_answer(&answer.body, judging->api->agent->config, call);
	http_answer(judging->request, &answer);
}

static void triaged(struct store_triage *call)
{
	struct judging *judging = call->call.context;
	struct api *api = judging->api;
	struct error error;

	if (api_failed(judging->request, &call->call))
		;
	else if ((call->records.count == 0 || call->missing) && !triage_form_nothing(call, &error))
		http_fail(judging->request, 404, "%s", error.text);
	else
		answer(judging, call);
	if (!call->call.failed && !call->dry_run && call->changed > 0 && api->triaged)
		api->triaged(api->context);
	store_call_free(&call->call);
}

/* `id`: the one change, or 0. */
static bool read_request(
	struct http_request *request, int64_t id, struct store_triage *call, struct error *error)
{
	if (!triage_form_read(api_form, request, call, error))
		return false;
	if (id != 0) {
		struct id_range *range = arena_alloc(call->call.arena, sizeof *range);

		*range = (struct id_range){id, id};
		call->ranges = range;
		call->range_count = 1;
	}
	return triage_form_says(call) || call->dry_run ||
	       error_set(error, ERROR_USAGE,
		       "one of state, owner, note, link and until is needed (dry_run=true only "
		       "shows)");
}

void api_post_triage(void *context, struct http_request *request)
{
	struct api *api = api_of(context);
	struct judging *judging = arena_alloc(http_arena(request), sizeof *judging);
	struct store_triage *call = store_triage_new(triaged, judging);
	struct error error;
	bool good;

	*judging = (struct judging){api, request};
	call->now = agent_now(api->agent);
	good = api_actor(request, &call->actor, &error) &&
	       read_request(request, http_id(request), call, &error);
	api_ask(api->agent, request, &call->call, good ? NULL : &error);
}

static void listed(struct store_audit *list)
{
	struct http_request *request = list->call.context;
	struct http_answer answer = {0};

	if (!api_failed(request, &list->call)) {
		audit_list_put_json(&answer.body, list);
		http_answer(request, &answer);
	}
	store_call_free(&list->call);
}

void api_get_audit(void *context, struct http_request *request)
{
	struct agent *agent = api_of(context)->agent;
	struct store_audit *list = store_audit_new(listed, request);
	struct error error;
	bool good = api_date(request, "since", agent_now(agent), 0, &list->since, &error) &&
		    api_id(request, "before", "an entry", &list->before_id, &error) &&
		    api_id(request, "change", "a change", &list->change, &error) &&
		    api_limit(request, LIMIT, MOST, &list->limit, &error);

	api_ask(agent, request, &list->call, good ? NULL : &error);
}
