/* Triage of changes, and its audit log. A request is one transaction of the store, however many
 * changes it selects. */
#include <inttypes.h>
#include <string.h>

#include "agent/web/api.h"
#include "agent/web/forms.h"

enum { LIMIT = 100, MOST = 1000 };

static void triaged(struct store_triage *call)
{
	struct http_request *request = call->call.context;
	struct api *api = api_of(request);
	struct error error;

	if (api_failed(request, &call->call))
		;
	else if ((call->records.count == 0 || call->missing) && !triage_form_nothing(call, &error))
		http_fail(request, 404, "%s", error.text);
	else {
		triage_form_answer(http_buffer(request), api->agent->config, call);
		http_send(request, call->conflict ? 409 : 200);
	}
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

void api_post_triage(struct http_request *request)
{
	struct api *api = api_of(request);
	struct store_triage *call = store_triage_new(triaged, request);
	struct error error;
	bool good;

	call->now = agent_now(api->agent);
	good = api_actor(request, &call->actor, &error) &&
	       read_request(request, http_id(request), call, &error);
	api_ask(api->agent, request, &call->call, good ? NULL : &error);
}

static void listed(struct store_audit *list)
{
	struct http_request *request = list->call.context;

	if (!api_failed(request, &list->call)) {
		audit_list_put_json(http_buffer(request), list);
		http_send(request, 200);
	}
	store_call_free(&list->call);
}

void api_get_audit(struct http_request *request)
{
	struct agent *agent = api_of(request)->agent;
	struct store_audit *list = store_audit_new(listed, request);
	struct error error;
	bool good = api_date(request, "since", agent_now(agent), 0, &list->since, &error) &&
		    api_id(request, "before", "an entry", &list->before_id, &error) &&
		    api_id(request, "change", "a change", &list->change, &error) &&
		    api_limit(request, LIMIT, MOST, &list->limit, &error);

	api_ask(agent, request, &list->call, good ? NULL : &error);
}
