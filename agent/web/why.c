/*
 * /api/v1/why: what became of a change or a candidate. The store is asked first for what it
 * knows of the test; then the points are fetched, and a worker runs the same analysis as
 * `hunter-c why`.
 */
#include <string.h>

#include "agent/core/when.h"
#include "agent/monitor/series_cache.h"
#include "agent/monitor/why.h"
#include "agent/web/api.h"

enum { RECORDS_MOST = 100000 };

/* In the arena of its task. */
struct inquiry {
	struct api_fetch fetch;
	struct task *task;
	struct why_request ask;
	struct strings topics;
	struct store_request *list, *marks, *health;
};

static void end_inquiry(struct inquiry *inquiry, const struct error *error)
{
	struct task *task = inquiry->task;

	api_fetch_end(&inquiry->fetch, error);
	if (inquiry->list)
		store_request_free(inquiry->list);
	if (inquiry->marks)
		store_request_free(inquiry->marks);
	if (inquiry->health)
		store_request_free(inquiry->health);
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
	why_put_json(http_buffer(inquiry->fetch.request), &why);
	return true;
}

static void done(struct task *task)
{
	end_inquiry(task->context, task->failed ? &task->error : NULL);
}

static void fetch(struct inquiry *inquiry)
{
	struct task *task = inquiry->task;

	why_state(&inquiry->ask, inquiry->list, inquiry->marks, inquiry->health);
	why_query(&inquiry->ask, task);
	api_fetch_data(task);
}

static void health_read(struct store_request *health)
{
	struct inquiry *inquiry = health->context;

	inquiry->health = health;
	if (health->failed)
		end_inquiry(inquiry, &health->error);
	else
		fetch(inquiry);
}

static void marks_read(struct store_request *marks)
{
	struct inquiry *inquiry = marks->context;

	inquiry->marks = marks;
	if (marks->failed)
		end_inquiry(inquiry, &marks->error);
	else
		store_client_call(inquiry->fetch.api->agent,
			store_request_new(STORE_HEALTH, health_read, inquiry));
}

static void listed(struct store_request *list)
{
	struct inquiry *inquiry = list->context;
	struct store_request *marks;

	inquiry->list = list;
	if (list->failed) {
		end_inquiry(inquiry, &list->error);
		return;
	}
	marks = store_request_new(STORE_MARKS, marks_read, inquiry);
	marks->test = inquiry->task->test->name;
	store_client_call(inquiry->fetch.api->agent, marks);
}

static void begin(struct api *api, struct http_request *request, const struct test *test)
{
	struct agent *agent = api->agent;
	struct task *task = task_new(test, agent_now(agent));
	struct inquiry *inquiry = arena_alloc(task->query.arena, sizeof *inquiry);
	struct store_request *list = store_request_new(STORE_LIST, listed, inquiry);

	*inquiry = (struct inquiry){.fetch = {api, request},
		.task = task,
		.ask = {.metric =
				arena_strdup(task->query.arena, http_parameter(request, "metric")),
			.at = arena_strdup(task->query.arena, http_parameter(request, "at")),
			.now = task->query.now,
			.max_age = agent->config->agent.max_age}};
	task->work = work;
	task->done = done;
	api_fetch_begin(&inquiry->fetch, task);
	inquiry->topics =
		why_topics(agent->config, test, task->query.arena, &inquiry->ask.clusters);
	list->filter = (struct change_filter){.names = inquiry->topics, .limit = RECORDS_MOST};
	store_client_call(agent, list);
}

void api_get_why(void *context, struct http_request *request)
{
	struct api *api = api_of(context);
	const char *name = http_parameter(request, "test");
	const struct test *test;

	if (!name || !http_parameter(request, "metric"))
		http_fail(request, 400, "the parameters \"test\" and \"metric\" are needed");
	else if ((test = api_fetch_test(api, request, name)))
		begin(api, request, test);
}
