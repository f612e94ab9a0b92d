/* /api/v1/changes: the changes in the store, latest recorded first, in pages. */

#include "agent/web/api.h"

enum { LIMIT = 100, MOST = 1000 };

static void listed(struct store_list *list)
{
	struct http_request *request = list->call.context;
	struct buf *out = &request->buffer;
	size_t count = list->records.count;

	if (api_failed(request, &list->call))
		return;
	api_hide(request, list->call.arena, &list->records);
	buf_char(out, '{');
	records_put_changes(
		out, api_of(request)->agent->config, list->call.arena, &list->records, count);
	json_put(out, "next: %jd id}",
		list->more && count > 0 ? list->records.items[count - 1].item.id : 0);
	api_reply(request, &list->call);
}

void api_get_changes(struct http_request *request)
{
	struct store_list *list = store_list_new(listed, request);
	struct form form = api_form(request, list->call.arena);

	(void)change_form_read(&form, &list->filter);
	list->filter.before_id = form_id(&form, "before", "a change");
	list->filter.limit = form_number(&form, "limit", 1, MOST, LIMIT);
	api_ask(request, &form, &list->call);
}
