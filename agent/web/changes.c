/* /api/v1/changes: the changes in the store, latest recorded first, in pages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/model/record_json.h"
#include "agent/notify/announce.h"
#include "agent/web/api.h"
#include "agent/web/forms.h"

enum { LIMIT = 100, MOST = 1000 };

/* A list in progress. */
struct listing {
	struct agent *agent;
	struct http_request *request;
};

static void listed(struct store_list *list)
{
	const struct listing *listing = list->call.context;
	struct http_request *request = listing->request;
	struct http_answer answer = {0};
	size_t count = list->records.count;

	if (api_failed(request, &list->call)) {
		store_call_free(&list->call);
		return;
	}
	api_hide(request, list->call.arena, &list->records);
	buf_text(&answer.body, "{\"changes\": [");
	for (size_t i = 0; i < count; i++) {
		json_line(&answer.body);
		announce_links(list->call.arena, listing->agent->config, &list->records.items[i]);
		record_put_json(&answer.body, &list->records.items[i]);
	}
	buf_char(&answer.body, ']');
	json_put_id(&answer.body, "next",
		list->more && count > 0 ? list->records.items[count - 1].item.id : 0);
	buf_text(&answer.body, "}\n");
	http_answer(request, &answer);
	store_call_free(&list->call);
}

void api_get_changes(void *context, struct http_request *request)
{
	struct agent *agent = api_of(context)->agent;
	struct listing *listing = arena_alloc(http_arena(request), sizeof *listing);
	struct store_list *list = store_list_new(listed, listing);
	struct change_filter *filter = &list->filter;
	struct error error;
	bool good = change_form_read(api_form, request, agent_now(agent), list->call.arena, filter,
			    &error) &&
		    api_id(request, "before", "a change", &filter->before_id, &error) &&
		    api_limit(request, LIMIT, MOST, &filter->limit, &error);

	*listing = (struct listing){agent, request};
	api_ask(agent, request, &list->call, good ? NULL : &error);
}
