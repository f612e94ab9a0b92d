/*
 * Answers requests for plots, as JSON and as pictures: the state is read, the points are fetched or
 * taken from the cache (datasets.h), the plot is made (agent/monitor/plotting.h) and drawn on a
 * worker.
 *
 * A small picture of a change is drawn from the points that the store keeps with it: no source is
 * asked, so that a list with many of them is as quick as one without. Other pictures fall back to
 * these points where the source does not answer.
 */
#include <inttypes.h>

#include "agent/base/hash.h"
#include "agent/base/when.h"
#include "agent/report/plot_draw.h"
#include "agent/web/api.h"

enum {
	COLUMNS_MOST = 10000,
	LEAST_SIDE = 16,
	MOST_WIDTH = 2400,
	MOST_HEIGHT = 1600,
	WAITING_MOST = 24
};

/* An SVG file that is opened by itself may style itself, and nothing else. */
static const char policy[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

static const char PNG[] = "image/png";

/* A request on its way. In its arena. */
struct plot_job {
	struct dataset_job job;
	struct arena *arena;
	struct api *api;
	struct http_request *request;
	const char *test; /* NULL: the change's */
	const char *type; /* content type of a picture; NULL: JSON */
	struct plot_style style;
	enum plot_scale scale;
	bool small; /* from the stored points alone, for any number of requested changes */
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
	job->api->plots -= !job->small;
	arena_free(job->arena);
}

static void fail_job(struct plot_job *job, int status, const char *text)
{
	http_fail(job->request, status, "%s", text);
	free_job(job);
}

static void draw(struct plot_job *job, const struct plot *plot)
{
	struct plot scaled = *plot;

	scaled.scale = job->scale;
	if (!job->type) {
		plot_put_json(&job->out, plot);
		buf_char(&job->out, '\n');
	} else if (job->type == PNG)
		job->failed = !plot_png(&scaled, &job->style, &job->out, &job->error);
	else
		plot_svg(&scaled, &job->style, &job->out);
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
	struct http_answer answer = {.type = job->type,
		.body = job->out,
		.policy = job->type ? policy : NULL,
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
	else if (job->type && job->found && job->found->items[0].excerpt.n > 0)
		engine_compute(job->api->agent->engine, work_excerpt, done_excerpt, job);
	else
		fail_job(job, http_status_of(error), error->text);
}

static void listed(struct store_list *list)
{
	struct plot_job *job = list->call.context;
	struct agent *agent = job->api->agent;
	const struct test *test = config_test(agent->config, job->test);
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
		http_fail(job->request, 404, "there is no change %" PRId64, job->plotting.change);
		free_job(job);
		return;
	}
	record = &found->items[0].record;
	test = config_test(job->api->agent->config, record->item.test);
	if (job->small || !test || test->unsupported || record->item.members > 0) {
		engine_compute(job->api->agent->engine, work_excerpt, done_excerpt, job);
		return;
	}
	job->test = arena_strdup(job->arena, test->name);
	job->plotting.metric = record->series;
	job->plotting.branch = *record->branch ? record->branch : NULL;
	ask_state(job, test);
}

static void read_style(struct form *form, struct plot_job *job)
{
	static const char *const themes[] = {
		[PLOT_LIGHT] = "light", [PLOT_DARK] = "dark", [PLOT_SYSTEM] = "system", NULL};
	struct plot_style *style = &job->style;
	const char *small = form_get(form, "small");

	style->small = small && (!*small || form_bool(form, "small"));
	style->width = (unsigned)form_number(form, "width", LEAST_SIDE, MOST_WIDTH, 0);
	style->height = (unsigned)form_number(form, "height", LEAST_SIDE, MOST_HEIGHT, 0);
	style->theme = (enum plot_theme)form_choice(form, "theme", themes, 0, PLOT_SYSTEM);
	job->scale = (enum plot_scale)form_choice(form, "scale", plot_scale_names, 0, PLOT_AUTO);
	job->plotting.columns = (size_t)plot_style_of(style).width;
	job->small = style->small && job->request->id;
}

/* Of one test, or NULL: the change's. */
static void begin(struct plot_job *job, const struct test *test)
{
	struct store_excerpts *call;

	job->api->plots += !job->small;
	if (test) {
		ask_state(job, test);
		return;
	}
	call = store_excerpts_new(found_change, job);
	call->changes = &job->plotting.change;
	call->change_count = 1;
	call->now = job->plotting.now;
	store_client_call(job->api->agent, &call->call);
}

/* `type`: of a picture; NULL: JSON. */
static void get_plot(struct http_request *request, const char *type)
{
	struct api *api = api_of(request);
	struct arena *arena = arena_new();
	struct form form = api_form(request, arena);
	struct plot_job *job = arena_alloc(arena, sizeof *job);
	const struct test *test = NULL;
	const char *given = form_get(&form, "test");

	*job = (struct plot_job){.job = {work, done, drop, NULL},
		.arena = arena,
		.api = api,
		.request = request,
		.type = type,
		.test = arena_strdup(arena, given),
		.plotting = {.metric = arena_strdup(arena, form_get(&form, "metric")),
			.branch = arena_strdup(arena, form_get(&form, "branch")),
			.change = request->id ? request->id : form_id(&form, "change", "a change"),
			.since = form_date(&form, "since", WHEN_ALWAYS),
			.until = form_date(&form, "until", WHEN_NEVER),
			.columns = (size_t)form_number(&form, "width", 1, COLUMNS_MOST, 0),
			.most = (size_t)form_number(&form, "limit", 1, PLOTTING_LINES_MOST, 0),
			.cleaned = form_bool(&form, "cleaned"),
			.now = form.now}};
	if (type)
		read_style(&form, job);
	if (job->plotting.since >= job->plotting.until)
		form_fail(&form, "since is not before until");
	if (api_wrong(request, &form))
		;
	else if (!given == !job->plotting.change)
		http_fail(request, 400, "one of the parameters \"test\" and \"change\" is needed");
	else if (api->plots >= WAITING_MOST && !job->small)
		http_fail(request, 503, "too many plots are awaited");
	else if (given && !(test = config_test(api->agent->config, given)))
		http_fail(request, 404, "there is no test \"%.200s\"", given);
	else if (test && test->unsupported)
		http_fail(request, 404, "%s", test->unsupported);
	else {
		begin(job, test);
		return;
	}
	arena_free(arena);
}

void api_get_plot(struct http_request *request)
{
	get_plot(request, NULL);
}

static void get_svg(struct http_request *request)
{
	get_plot(request, "image/svg+xml");
}

static void get_png(struct http_request *request)
{
	get_plot(request, PNG);
}

#define OF_CHANGE "small width height theme scale since until cleaned"
#define OF_SERIES OF_CHANGE " test metric branch change limit"

/* Not guarded: other sites, such as a wiki, may embed pictures for users who may see them. */
const struct route picture_routes[] = {
	{"/change/*.svg", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_CHANGE, get_svg},
	{"/change/*.png", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_CHANGE, get_png},
	{"/plot.svg", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_SERIES, get_svg},
	{"/plot.png", HTTP_READ | HTTP_SHOWN, ROLE_VIEWER, 60000, OF_SERIES, get_png},
	{0},
};
