#include "agent/web/plots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/report/plot.h"

enum { COLUMNS_MOST = 10000, WAITING_MOST = 24 };

/* A request on its way. In its arena. */
struct plot_job {
	struct dataset_job job;
	struct arena *arena;
	struct api *api;
	struct http_request *request;
	struct plots_wish wish;
	struct plotting plotting;
	struct store_excerpts *found; /* the change, or NULL */
	struct store_list *list;
	struct buf out;
	const char *etag; /* of its content */
	bool failed;
	struct error error;
};

static void free_job(struct plot_job *job)
{
	buf_free(&job->out);
	if (job->found)
		store_call_free(&job->found->call);
	if (job->list)
		store_call_free(&job->list->call);
	job->api->plots -= !job->wish.small;
	arena_free(job->arena);
}

static void fail_job(struct plot_job *job, int status, const char *text)
{
	http_fail(job->request, status, "%s", text);
	free_job(job);
}

static void draw(struct plot_job *job, const struct plot *plot)
{
	job->failed = !job->wish.draw(plot, job->wish.context, job->arena, &job->out, &job->error);
	job->etag = arena_printf(job->arena, "\"%016" PRIx64 "\"",
		hash_add(HASH_START, job->out.data, job->out.length));
}

static void work(struct dataset_job *base, const struct task *task, struct plotting_found *found,
	struct arena *keep, struct scratch *scratch)
{
	struct plot_job *job = (struct plot_job *)base;
	struct plot plot;

	job->plotting.found = found;
	job->plotting.found_arena = keep;
	if (plotting_make(job->arena, task->test, &task->query.data, task->companions,
		    &job->plotting, scratch, &plot, &job->error))
		draw(job, &plot);
	else
		job->failed = true;
}

static void finish(struct plot_job *job)
{
	struct http_answer answer = {.type = job->wish.type,
		.body = job->out,
		.policy = job->wish.policy,
		.etag = arena_strdup(job->request->arena, job->etag)};

	if (job->failed) {
		fail_job(job, http_status_of(&job->error), job->error.text);
		return;
	}
	job->out = (struct buf){0};
	http_answer(job->request, &answer);
	free_job(job);
}

static void drop(struct dataset_job *base)
{
	free_job((struct plot_job *)base);
}

/* The stored points, where the test cannot be read. */
static void work_excerpt(void *context)
{
	struct plot_job *job = context;

	draw(job, record_plot(job->arena, &job->found->items[0]));
}

static void done_excerpt(void *context)
{
	finish(context);
}

static void done(struct dataset_job *base, const struct error *error)
{
	struct plot_job *job = (struct plot_job *)base;

	if (!error)
		finish(job);
	else if (job->wish.stored && job->found && job->found->items[0].excerpt.n > 0)
		engine_compute(job->api->agent->engine, work_excerpt, done_excerpt, job);
	else
		fail_job(job, http_status_of(error), error->text);
}

static void listed(struct store_list *list)
{
	struct plot_job *job = list->call.context;
	struct agent *agent = job->api->agent;
	const struct test *test = config_test(agent->config, job->wish.test);
	struct task *task;
	int64_t newest = 0; /* when the agent learned last of something that the points must show */
	bool wide;

	job->list = list;
	if (list->call.failed) {
		fail_job(job, http_status_of(list->call.error), list->call.error->text);
		return;
	}
	if (!test || agent->stopping) {
		fail_job(job, 503, "the configuration has changed, or the agent is stopping");
		return;
	}
	for (size_t i = 0; i < list->records.count; i++)
		if (list->records.items[i].updated > newest)
			newest = list->records.items[i].updated;
	plotting_state(&job->plotting, list);
	job->plotting.config = agent->config;
	task = task_new(test, agent_now(agent));
	wide = plotting_query(&job->plotting, task);
	datasets_use(job->api->datasets, task, wide, newest, &job->job);
}

static void ask_state(struct plot_job *job, const struct test *test)
{
	struct store_list *list = store_list_new(listed, job);

	plotting_ask(list, test, job->plotting.now);
	store_client_call(job->api->agent, &list->call);
}

static void found_change(struct store_excerpts *found)
{
	struct plot_job *job = found->call.context;
	const struct change_record *record;
	const struct test *test;

	job->found = found;
	if (found->call.failed) {
		fail_job(job, http_status_of(found->call.error), found->call.error->text);
		return;
	}
	if (found->count == 0) {
		http_fail(
			job->request, 404, "there is no change %lld", (long long)job->wish.change);
		free_job(job);
		return;
	}
	record = &found->items[0].record;
	test = config_test(job->api->agent->config, record->item.test);
	if (job->wish.small || !test || test->unsupported || record->item.members > 0) {
		engine_compute(job->api->agent->engine, work_excerpt, done_excerpt, job);
		return;
	}
	job->wish.test = arena_strdup(job->arena, test->name);
	job->plotting.metric = record->series;
	job->plotting.branch = *record->branch ? record->branch : NULL;
	ask_state(job, test);
}

static void begin(
	struct http_request *request, const struct test *test, const struct plots_wish *wish)
{
	struct api *api = api_of(request);
	struct arena *arena = arena_new();
	struct plot_job *job = arena_alloc(arena, sizeof *job);

	*job = (struct plot_job){.job = {work, done, drop, NULL},
		.arena = arena,
		.api = api,
		.request = request,
		.wish = *wish,
		.plotting = {.metric = arena_strdup(arena, wish->metric),
			.branch = arena_strdup(arena, wish->branch),
			.change = wish->change,
			.since = wish->since,
			.until = wish->until,
			.columns = wish->columns,
			.most = wish->most,
			.cleaned = wish->cleaned,
			.now = agent_now(api->agent)}};
	api->plots += !wish->small;
	if (test) {
		job->wish.test = arena_strdup(arena, test->name);
		ask_state(job, test);
	} else {
		struct store_excerpts *call = store_excerpts_new(found_change, job);

		call->changes = &job->wish.change;
		call->change_count = 1;
		call->now = job->plotting.now;
		store_client_call(api->agent, &call->call);
	}
}

void plots_answer(
	struct http_request *request, const struct form *form, const struct plots_wish *wish)
{
	const struct api *api = api_of(request);
	const struct agent *agent = api->agent;
	const struct test *test = NULL;

	if (api_wrong(request, form))
		return;
	if (!wish->test == !wish->change)
		http_fail(request, 400, "one of the parameters \"test\" and \"change\" is needed");
	else if (api->plots >= WAITING_MOST && !wish->small)
		http_fail(request, 503, "too many plots are awaited");
	else if (!wish->change && !(test = config_test(agent->config, wish->test)))
		http_fail(request, 404, "there is no test \"%.200s\"", wish->test);
	else if (test && test->unsupported)
		http_fail(request, 404, "%s", test->unsupported);
	else
		begin(request, test, wish);
}

struct plots_wish plots_read(struct form *form)
{
	struct plots_wish wish = {.test = form_get(form, "test"),
		.metric = form_get(form, "metric"),
		.branch = form_get(form, "branch"),
		.change = form_id(form, "change", "a change"),
		.since = form_date(form, "since", WHEN_ALWAYS),
		.until = form_date(form, "until", WHEN_NEVER),
		.columns = (size_t)form_number(form, "width", 1, COLUMNS_MOST, 0),
		.most = (size_t)form_number(form, "limit", 1, PLOTTING_LINES_MOST, 0),
		.cleaned = form_bool(form, "cleaned")};

	if (wish.since >= wish.until)
		form_fail(form, "since is not before until");
	return wish;
}

static bool put_json(const struct plot *plot, void *context, struct arena *arena, struct buf *out,
	struct error *error)
{
	(void)context;
	(void)arena;
	(void)error;
	plot_put_json(out, plot);
	return true;
}

void api_get_plot(struct http_request *request)
{
	struct form form = api_form(request, request->arena);
	struct plots_wish wish = plots_read(&form);

	wish.draw = put_json;
	plots_answer(request, &form, &wish);
}
