/* /api/v1/changes/ID/commits: the commits between the points of a change. */
#include <inttypes.h>
#include <string.h>

#include "agent/analysis/announce.h"
#include "agent/base/order.h"
#include "agent/model/announcement.h"
#include "agent/runtime/repository.h"
#include "agent/web/api.h"

/* A request in progress. */
struct asking {
	struct http_request *request;
	struct store_list *list;
	const char *path;                   /* of the clone, or NULL */
	const char *from, *to, *commit_url; /* commit_url: the template */
};

/* The clone and the template of links of the change's test, or those that all tests of its cluster
 * share; NULL: none. */
static const char *repository_of(
	const struct config *config, const char *name, const char **commit_url)
{
	const struct test *test = config_test(config, name);
	const struct group *group = test ? NULL : config_group(config, name);
	const char *path;

	if (group && group->count > 0)
		test = group->tests[0];
	*commit_url = test ? test->links.commit_url : NULL;
	path = test ? test->repository : NULL;
	for (size_t i = 1; group && i < group->count; i++) {
		if (!order_same(path, group->tests[i]->repository))
			path = NULL;
		if (!order_same(*commit_url, group->tests[i]->links.commit_url))
			*commit_url = NULL;
	}
	return path;
}

static void put_commit(struct buf *out, const struct asking *asking, const struct commit *commit)
{
	const struct announcement *item = &asking->list->records.items[0].item;
	const struct url_values values = {
		.commit = commit->id, .test = item->test, .metric = item->metric};

	json_put(out, "\n{commit: %s, author: %s, time: %jd time, subject: %s, url: %s}",
		commit->id, commit->author, commit->time, commit->subject,
		url_template_expand(asking->list->call.arena, asking->commit_url, &values, true));
}

static void answer(void *context, const struct commits *commits)
{
	const struct asking *asking = context;
	const struct change_record *record = &asking->list->records.items[0];
	struct buf *out = &asking->request->buffer;

	json_put(out,
		"{change: %jd, configured: %d bool, from: %s, to: %s, compare_url: %s, "
		"commits: [",
		record->item.id, asking->path != NULL, asking->from, asking->to,
		record->item.compare_url);
	for (size_t i = 0; i < commits->count; i++)
		put_commit(out, asking, &commits->items[i]);
	json_put(out, "], more: %d bool, problem: %s}", commits->more, commits->problem);
	api_reply(asking->request, &asking->list->call);
}

static void listed(struct store_list *list)
{
	struct asking *asking = list->call.context;
	const struct api *api = api_of(asking->request);
	const struct config *config = api->agent->config;
	int64_t id = list->filter.before_id - 1;

	asking->list = list;
	if (api_failed(asking->request, &list->call))
		return;
	if (list->records.count == 0 || list->records.items[0].item.id != id) {
		http_fail(asking->request, 404, "there is no change %" PRId64, id);
		store_call_free(&list->call);
		return;
	}
	announce_links(list->call.arena, config, &list->records.items[0]);
	announcement_range(&list->records.items[0].item, &asking->from, &asking->to);
	asking->path = repository_of(config, list->records.items[0].item.test, &asking->commit_url);
	asking->commit_url = arena_strdup(list->call.arena, asking->commit_url);
	if (asking->path)
		repository_commits(
			api->repositories, asking->path, asking->from, asking->to, answer, asking);
	else
		answer(asking, &(struct commits){0});
}

void api_get_commits(struct http_request *request)
{
	struct store_list *list = store_list_new(listed, NULL);
	struct asking *asking = arena_alloc(list->call.arena, sizeof *asking);

	*asking = (struct asking){.request = request};
	list->call.context = asking;
	list->filter.before_id = request->id + 1;
	list->filter.limit = 1;
	list->filter.now = agent_now(api_of(request)->agent);
	api_ask(request, NULL, &list->call);
}
