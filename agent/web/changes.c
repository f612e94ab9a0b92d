/* /api/v1/changes: the changes in the store, latest recorded first, in pages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/when.h"
#include "agent/model/record_json.h"
#include "agent/web/api.h"
#include "agent/web/forms.h"

enum { LIMIT = 100, MOST = 1000 };

static void listed(struct store_list *list)
{
	struct http_request *request = list->call.context;
	struct buf *out = &request->buffer;
	size_t count = list->records.count;

	if (api_failed(request, &list->call)) {
		store_call_free(&list->call);
		return;
	}
	api_hide(request, list->call.arena, &list->records);
	buf_char(out, '{');
	records_put_changes(
		out, api_of(request)->agent->config, list->call.arena, &list->records, count);
	json_put_id(
		out, "next", list->more && count > 0 ? list->records.items[count - 1].item.id : 0);
	buf_text(out, "}\n");
	http_send(request, 200);
	store_call_free(&list->call);
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
