/* Triage of changes, and its audit log. A request is one transaction of the store, however many
 * changes it selects. */

#include "agent/web/api.h"

enum { LIMIT = 100, MOST = 1000 };

static void triaged(struct store_triage *call)
{
	struct http_request *request = call->call.context;
	struct api *api = api_of(request);
	struct error error;

	if (api_failed(request, &call->call))
		return;
	if ((call->records.count == 0 || call->missing) && !triage_form_nothing(call, &error))
		http_fail(request, 404, "%s", error.text);
	else {
		triage_form_answer(&request->buffer, api->agent->config, call);
		http_send(request, call->conflict ? 409 : 200);
	}
	if (!call->dry_run && call->changed > 0)
		agent_hint(api->agent, HINT_TRIAGE);
	store_call_free(&call->call);
}

void api_post_triage(struct http_request *request)
{
	struct store_triage *call = store_triage_new(triaged, request);
	struct form form = api_form(request, call->call.arena);

	call->now = form.now;
	call->actor = api_actor(request, &form);
	if (triage_form_read(&form, call) && !triage_form_says(call) && !call->dry_run)
		form_fail(&form,
			"one of state, owner, note, link and until is needed (dry_run=true only "
			"shows)");
	if (request->id != 0) {
		struct id_range *range = arena_alloc(form.arena, sizeof *range);

		*range = (struct id_range){request->id, request->id};
		call->ranges = range;
		call->range_count = 1;
		call->each = true;
	}
	api_ask(request, &form, &call->call);
}

static void listed(struct store_audit *list)
{
	struct http_request *request = list->call.context;

	if (api_failed(request, &list->call))
		return;
	audit_list_put_json(&request->buffer, list);
	api_reply(request, &list->call);
}

void api_get_audit(struct http_request *request)
{
	struct store_audit *list = store_audit_new(listed, request);
	struct form form = api_form(request, list->call.arena);

	list->since = form_date(&form, "since", 0);
	list->before_id = form_id(&form, "before", "an entry");
	list->change = form_id(&form, "change", "a change");
	list->limit = form_number(&form, "limit", 1, MOST, LIMIT);
	api_ask(request, &form, &list->call);
}
