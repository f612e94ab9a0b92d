/*
 * /api/v1/why: the reasons for the fate of a change or candidate. The test's records are read from
 * the store first; then the points are fetched, and a worker runs the same analysis as `hunter-c
 * why`.
 */

#include "agent/monitor/why.h"
#include "agent/monitor/series_cache.h"
#include "agent/web/api.h"

enum { MOST_FETCHES = 4 };

/* In the arena of its task. */
struct inquiry {
	struct fetching fetching;
	struct http_request *request;
	struct task *task;
	struct why_request ask;
	struct store_list *list;
};

static void end_inquiry(struct inquiry *inquiry, const struct error *error)
{
	struct task *task = inquiry->task;

	api_of(inquiry->request)->fetches--;
	if (error)
		http_fail(inquiry->request, http_status_of(error), "%s", error->text);
	else
		http_send(inquiry->request, 200);
	if (inquiry->list)
		store_call_free(&inquiry->list->call);
	task_free(task);
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct inquiry *inquiry = task->context;
	struct query *query = &task->query;
	struct why why;

	if (!why_explain(query->arena, task->test, query, task->companions, &inquiry->ask, scratch,
		    &why, error))
		return false;
	why_put_json(&inquiry->request->buffer, &why);
	return true;
}

static void done(struct task *task)
{
	end_inquiry(task->context, task->failed ? &task->error : NULL);
}

static void listed(struct store_list *list)
{
	struct inquiry *inquiry = list->call.context;

	inquiry->list = list;
	if (list->call.failed) {
		end_inquiry(inquiry, list->call.error);
		return;
	}
	api_hide(inquiry->request, list->call.arena, &list->records);
	why_state(&inquiry->ask, list);
	why_query(&inquiry->ask, inquiry->task);
	fetching_submit(inquiry->task);
}

static void begin(struct http_request *request, const struct test *test)
{
	struct agent *agent = api_of(request)->agent;
	struct task *task = task_new(test, agent_now(agent));
	struct inquiry *inquiry = arena_alloc(task->query.arena, sizeof *inquiry);
	struct store_list *list = store_list_new(listed, inquiry);

	*inquiry = (struct inquiry){.request = request,
		.task = task,
		.ask = {.metric =
				arena_strdup(task->query.arena, http_parameter(request, "metric")),
			.at = arena_strdup(task->query.arena, http_parameter(request, "at")),
			.now = task->query.now,
			.max_age = agent->config->agent.max_age,
			.config = agent->config}};
	task->work = work;
	task->done = done;
	fetching_begin(&inquiry->fetching, agent, task);
	api_of(request)->fetches++;
	why_ask(list, agent->config, test);
	store_client_call(agent, &list->call);
}

void api_get_why(struct http_request *request)
{
	const struct api *api = api_of(request);
	const char *name = http_parameter(request, "test");
	const struct test *test = name ? config_test(api->agent->config, name) : NULL;

	if (!name || !http_parameter(request, "metric"))
		http_fail(request, 400, "the parameters \"test\" and \"metric\" are needed");
	else if (!test)
		http_fail(request, 404, "there is no test \"%.200s\"", name);
	else if (test->unsupported)
		http_fail(request, 404, "%s", test->unsupported);
	else if (api->fetches >= MOST_FETCHES)
		http_fail(request, 503, "%d tests are being fetched for other requests",
			MOST_FETCHES);
	else
		begin(request, test);
}
