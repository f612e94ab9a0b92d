/*
 * /api/v1/run: runs tests now and answers with their changes. And /-/reload.
 *
 * A request waits for the last of its tests; then reads once from the store what those runs have
 * written.
 */

#include "agent/web/api.h"

enum { MOST_REPORTS = 1000, MOST_CHANGES = 500 };

/* Tests that other agents of the fleet run, as requested. */
struct elsewhere {
	const char **tests, **agents; /* names; "": none is known */
	size_t count;
};

/* In the arena of its request. */
struct job {
	struct http_request *request;
	size_t count, pending;
	const char **written; /* names of the tests whose runs have written, and their number */
	size_t written_count;
	int64_t begun; /* engine_now */
	size_t failed, reported;
	struct elsewhere elsewhere;
	struct run_report sum; /* `recorded`: the earliest */
};

/* Requests the run if another agent has the test; false: this one has it, or none. */
static bool ask_elsewhere(
	struct api *api, struct arena *arena, const char *test, struct elsewhere *elsewhere)
{
	const char *agent = scheduler_elsewhere(api->scheduler, test);

	if (!agent)
		return false;
	(void)scheduler_run_now(api->scheduler, test, NULL, NULL);
	elsewhere->tests[elsewhere->count] = test;
	elsewhere->agents[elsewhere->count++] = arena_strdup(arena, agent);
	return true;
}

static void put_elsewhere(struct buf *out, const struct elsewhere *elsewhere)
{
	size_t shown = elsewhere->count < MOST_REPORTS ? elsewhere->count : MOST_REPORTS;

	if (elsewhere->count == 0)
		return;
	json_put(out, "asked: %zu, elsewhere: [", elsewhere->count);
	for (size_t i = 0; i < shown; i++) {
		json_put(out, "\n{test: %s, agent: %s optional}", elsewhere->tests[i],
			elsewhere->agents[i]);
	}
	buf_char(out, ']');
}

static void put_counts(struct buf *out, const struct run_report *counts)
{
	json_put(out,
		"series: %zu, points: %zu, new: %zu, silent: %zu, candidates: %zu, "
		"moved: %zu, withdrawn: %zu, returned: %zu",
		counts->series, counts->points, counts->fresh, counts->silent, counts->candidates,
		counts->moved, counts->withdrawn, counts->returned);
}

static void add_report(struct job *job, const struct run_report *report)
{
	struct buf *out = &job->request->buffer;
	struct run_report *sum = &job->sum;

	job->failed += report->failed;
	sum->series += report->series;
	sum->points += report->points;
	sum->fresh += report->fresh;
	sum->silent += report->silent;
	sum->candidates += report->candidates;
	sum->moved += report->moved;
	sum->withdrawn += report->withdrawn;
	sum->returned += report->returned;
	if (report->written && (!sum->written || report->recorded < sum->recorded))
		sum->recorded = report->recorded;
	sum->written |= report->written;
	if (report->written)
		job->written[job->written_count++] =
			arena_strdup(job->request->arena, report->test);
	if (job->reported == MOST_REPORTS)
		return;
	job->reported++;
	json_put(out, "\n{test: %s, failed: %d bool, problem: %s", report->test, report->failed,
		report->problem);
	put_counts(out, report);
	json_put(out, "duration_seconds: %jd seconds}", report->duration);
}

/* `list`: what was written since the first of the runs wrote, or NULL if none has. */
static void finish(struct job *job, struct store_list *list)
{
	const struct agent *agent = api_of(job->request)->agent;
	struct http_answer answer = {0};
	struct buf *reports = &job->request->buffer, *out = &answer.body;

	json_put(out, "{count: %zu, failed: %zu", job->count, job->failed);
	put_counts(out, &job->sum);
	json_put(out, "duration_seconds: %jd seconds", engine_now(agent->engine) - job->begun);
	records_put_changes(out, agent->config, job->request->arena,
		list ? &list->records : &(struct record_rows){0}, MOST_CHANGES);
	json_put(out, "more_changes: %d bool, tests: [", list && list->more);
	buf_append(out, reports->data, reports->length);
	json_put(out, "], left_out: %zu", job->count - job->reported);
	put_elsewhere(out, &job->elsewhere);
	buf_text(out, "}\n");
	http_answer(job->request, &answer);
}

static void listed(struct store_list *list)
{
	struct job *job = list->call.context;

	if (api_failed(job->request, &list->call))
		return;
	finish(job, list);
	store_call_free(&list->call);
}

static void all_done(struct job *job)
{
	struct store_list *list;

	if (!job->sum.written) {
		finish(job, NULL);
		return;
	}
	list = store_list_new(listed, job);
	list->filter.limit = MOST_CHANGES;
	list->filter.updated = job->sum.recorded;
	list->filter.names = (struct strings){job->written, job->written_count};
	store_client_call(api_of(job->request)->agent, &list->call);
}

static void one_done(void *context, const struct run_report *report)
{
	struct job *job = context;

	add_report(job, report);
	if (--job->pending == 0)
		all_done(job);
}

/* Waiting for a run of another agent is not possible. */
static void run_tests(struct api *api, struct http_request *request,
	const struct test *const *tests, size_t count, bool waits)
{
	struct arena *arena = request->arena;
	struct job *job = arena_alloc(arena, sizeof *job);
	struct elsewhere *elsewhere = &job->elsewhere;

	*job = (struct job){.request = request,
		.written = arena_array(arena, count, sizeof *job->written),
		.elsewhere = {.tests = arena_array(arena, count, sizeof(char *)),
			.agents = arena_array(arena, count, sizeof(char *))},
		.pending = 1, /* this function itself */
		.begun = engine_now(api->agent->engine)};
	for (size_t i = 0; i < count; i++) {
		if (ask_elsewhere(api, arena, tests[i]->name, elsewhere))
			continue;
		job->pending += waits;
		if (scheduler_run_now(api->scheduler, tests[i]->name, waits ? one_done : NULL, job))
			job->count++;
		else
			job->pending -= waits;
	}
	count = job->count + elsewhere->count;
	if (count == 0) {
		http_fail(request, 404, "the agent does not monitor the requested tests");
	} else if (!waits || job->count == 0) {
		json_put(&request->buffer, "{count: %zu", count);
		put_elsewhere(&request->buffer, elsewhere);
		buf_char(&request->buffer, '}');
		http_send(request, 202);
	} else if (--job->pending == 0) {
		all_done(job);
	}
}

/* The tests of the request; false after an answer. */
static bool choose(const struct config *config, struct http_request *request,
	const struct test *const **tests, size_t *count)
{
	const char *name = http_parameter(request, "test");
	const char *group = http_parameter(request, "group");
	const struct test *test = name ? config_test(config, name) : NULL;
	const struct test **one = arena_array(request->arena, 1, sizeof *one);
	struct strings names = {name ? &name : &group, 1};
	struct error error;

	if (!name == !group)
		http_fail(request, 400, "one of the parameters \"test\" and \"group\" is needed");
	else if (group && !config_group(config, group))
		http_fail(request, 404, "there is no group \"%.200s\"", group);
	else if (test) { /* takes precedence over a group of that name, as it is named as a test */
		*one = test;
		*tests = one;
		*count = 1;
		return true;
	} else if (config_select(config, &names, request->arena, tests, count, &error))
		return true;
	else
		http_fail(request, 404, "%s", error.text);
	return false;
}

void api_post_run(struct http_request *request)
{
	struct api *api = api_of(request);
	struct form form = api_form(request, request->arena);
	bool waits = form_bool(&form, "wait") || !form_get(&form, "wait");
	const struct test *const *tests;
	size_t count;

	if (!api_wrong(request, &form) && choose(api->agent->config, request, &tests, &count)) {
		const char *test = form_get(&form, "test");
		struct actor actor = api_actor(request, &form);

		api_audit(api->agent, &actor, EVENT_RUN, test ? test : form_get(&form, "group"),
			arena_printf(request->arena, "%zu tests", count));
		run_tests(api, request, tests, count, waits);
	}
}

/* A reload in progress, in the arena of its request. */
struct reloading {
	struct http_request *request;
	struct actor actor;
};

static void reloaded(void *context, const struct reload_report *report)
{
	struct reloading *reloading = context;
	struct http_request *request = reloading->request;
	struct agent *agent = api_of(request)->agent;
	struct buf *out = &request->buffer;

	if (!agent->stopping)
		api_audit(agent, &reloading->actor, EVENT_RELOADED, agent->config->path,
			report->problem);
	json_put(out,
		"{loaded: %d bool, error: %s, problems: %p, need_restart: %p, "
		"tests: %zu, added: %zu, removed: %zu, changed: %zu}",
		report->loaded, report->problem, &report->problems, &report->kept, report->tests,
		report->added, report->removed, report->changed);
	http_send(request, report->problem ? 500 : 200);
}

void api_post_reload(struct http_request *request)
{
	struct agent *agent = api_of(request)->agent;
	struct reloading *reloading = arena_alloc(request->arena, sizeof *reloading);
	struct form form = api_form(request, request->arena);

	*reloading = (struct reloading){request, api_actor(request, &form)};
	api_of(request)->options.reload(agent, reloaded, reloading);
}
