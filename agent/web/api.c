/* The table of routes, and helpers shared by their files. */
#include "agent/web/api.h"

#include <stdlib.h>
#include <string.h>

#include "agent/analysis/companions.h"
#include "agent/base/when.h"
#include "agent/model/record_json.h"
#include "agent/web/forms.h"
#include "agent/web/pages.h"
#include "agent/web/plots.h"

enum { MOST_FETCHES = 4 };

struct api *api_of(const struct http_request *request)
{
	return ((struct pages *)http_context(request))->api;
}

void api_ask(struct agent *agent, struct http_request *request, struct store_call *call,
	const struct error *wrong)
{
	if (!agent->stopping && !wrong) {
		store_client_call(agent, call);
		return;
	}
	if (agent->stopping)
		http_fail(request, 503, "the agent is stopping");
	else
		http_fail(request, 400, "%s", wrong->text);
	store_call_free(call);
}

bool api_failed(struct http_request *request, const struct store_call *call)
{
	if (call->failed)
		http_fail(request, http_status_of(call->error), "%s", call->error->text);
	return call->failed;
}

bool api_number(const struct http_request *request, const char *name, int64_t least, int64_t most,
	int64_t *out, struct error *error)
{
	const char *text = http_parameter(request, name);

	if (!text)
		return true;
	*out = *text && strlen(text) <= 9 && strspn(text, "0123456789") == strlen(text)
		       ? strtoll(text, NULL, 10)
		       : -1;
	return (*out >= least && *out <= most) ||
	       error_set(error, ERROR_USAGE, "%s: a number from %lld to %lld is needed", name,
		       (long long)least, (long long)most);
}

bool api_limit(const struct http_request *request, int64_t initial, int64_t most, int64_t *out,
	struct error *error)
{
	*out = initial;
	return api_number(request, "limit", 1, most, out, error);
}

bool api_bool(const struct http_request *request, const char *name, bool *out, struct error *error)
{
	return form_bool(http_parameter(request, name), name, out, error);
}

bool api_choice(const struct http_request *request, const char *name, const char *const *names,
	int *out, struct error *error)
{
	return form_choice(http_parameter(request, name), name, names, out, error);
}

bool api_choices(const struct http_request *request, const char *name, const char *const *names,
	int first, unsigned *out, struct error *error)
{
	return form_choices(http_parameter(request, name), name, names, first, out, error);
}

bool api_words(
	struct http_request *request, const char *name, struct strings *out, struct error *error)
{
	const char *text = http_parameter(request, name);
	struct arena *arena = http_arena(request);
	const char **words = arena_array(arena, API_WORDS, sizeof *words);

	*out = (struct strings){words, 0};
	for (text = text ? text : ""; *(text += strspn(text, " ")); text += strcspn(text, " ")) {
		if (out->count == API_WORDS)
			return error_set(
				error, ERROR_USAGE, "%s: more than %d words", name, API_WORDS);
		words[out->count++] = arena_strndup(arena, text, strcspn(text, " "));
	}
	return true;
}

bool api_page_begin(struct api_page *page, const struct http_request *request, int64_t initial,
	int64_t most, struct error *error)
{
	*page = (struct api_page){.after = http_parameter(request, "after")};
	return api_limit(request, initial, most, &page->limit, error);
}

bool api_page_lists(struct api_page *page, const char *name, struct buf *out)
{
	page->matching++;
	if (page->after && strcmp(name, page->after) <= 0)
		return false;
	if (page->listed == (size_t)page->limit) {
		page->next = page->last;
		return false;
	}
	buf_text(out, page->listed++ ? "," : "");
	page->last = name;
	return true;
}

void api_page_end(const struct api_page *page, struct buf *out)
{
	buf_printf(out, "], \"total\": %zu", page->matching);
	json_put_text(out, "next", page->next);
}

bool api_date(const struct http_request *request, const char *name, int64_t now, int64_t open,
	int64_t *out, struct error *error)
{
	return form_date(http_parameter(request, name), name, now, open, out, error);
}

bool api_id(const struct http_request *request, const char *name, const char *of, int64_t *out,
	struct error *error)
{
	const char *text = http_parameter(request, name);

	*out = 0;
	if (!text)
		return true;
	if (*text && strlen(text) <= 18 && strspn(text, "0123456789") == strlen(text))
		*out = strtoll(text, NULL, 10);
	return *out > 0 || error_set(error, ERROR_USAGE, "%s: the id of %s is needed", name, of);
}

bool api_actor(struct http_request *request, struct actor *out, struct error *error)
{
	const struct http_person *person = http_person(request);
	const char *said = http_parameter(request, "person");
	bool local = strncmp(person->from, "uid ", 4) == 0;

	*out = (struct actor){.person = *person->name ? person->name : "local",
		.origin = local ? arena_printf(http_arena(request), "unix socket, %s", person->from)
				: person->from};
	if (!said || !person->unproven)
		return true;
	out->person = said;
	return actor_check(said, error) || error_prefix(error, "person: ");
}

void api_hide(const struct http_request *request, struct arena *arena, struct record_rows *records)
{
	if (http_person(request)->role < ROLE_TRIAGER)
		record_hide_origins(arena, records);
}

const char *api_form(void *request, const char *name)
{
	return http_parameter(request, name);
}

void api_audit(struct agent *agent, const struct actor *actor, enum event_kind kind,
	const char *subject, const char *detail)
{
	struct store_audit_add *call = store_audit_add_new(NULL, NULL);
	struct arena *arena = call->call.arena;

	call->entry = (struct event){.time = agent_now(agent),
		.actor = {arena_strdup(arena, actor->person), arena_strdup(arena, actor->origin)},
		.kind = kind,
		.subject = arena_strdup(arena, subject),
		.detail = arena_strdup(arena, detail)};
	store_client_call(agent, &call->call);
}

const struct test *api_fetch_test(struct http_request *request, const char *name)
{
	const struct api *api = api_of(request);
	const struct test *test = config_test(api->agent->config, name);

	if (!test)
		http_fail(request, 404, "there is no test \"%.200s\"", name);
	else if (test->unsupported)
		http_fail(request, 404, "%s", test->unsupported);
	else if (api->agent->stopping)
		http_fail(request, 503, "the agent is stopping");
	else if (api->fetches >= MOST_FETCHES)
		http_fail(request, 503, "%d tests are being fetched for other requests",
			MOST_FETCHES);
	else
		return test;
	return NULL;
}

void api_fetch_begin(struct api_fetch *fetch, struct task *task)
{
	task->context = fetch;
	task->release = config_ref_release_task;
	task->holder = config_ref_hold(api_of(fetch->request)->agent->config_ref);
	api_of(fetch->request)->fetches++;
}

static void submit_companion(void *context, struct task *task)
{
	const struct task *own = context;
	const struct api_fetch *fetch = own->context;

	task->release = config_ref_release_task;
	task->holder = config_ref_hold(own->holder);
	engine_submit(api_of(fetch->request)->agent->engine, task);
}

/* The data of other tests that it needs is there, or could not be read. */
static void submit(struct task *task)
{
	const struct api_fetch *fetch = task->context;

	if (task->failed)
		task->done(task);
	else
		engine_submit(api_of(fetch->request)->agent->engine, task);
}

void api_fetch_data(struct task *task)
{
	companions_fetch(&(struct companions_way){.submit = submit_companion, .context = task},
		task, submit);
}

void api_fetch_end(struct api_fetch *fetch, const struct error *error)
{
	api_of(fetch->request)->fetches--;
	if (error)
		http_fail(fetch->request, http_status_of(error), "%s", error->text);
	else
		http_send(fetch->request, 200);
}

const struct route api_routes[] = {
	{"/-/reload", HTTP_POST, true, 60000, NULL, api_post_reload, true, ROLE_ADMIN},
	{"/api/v1/me", HTTP_READ, true, 0, NULL, api_get_me, false, ROLE_VIEWER},
	{"/api/v1/agents", HTTP_READ, true, 0, NULL, api_get_agents, false, ROLE_VIEWER},
	{"/api/v1/tests", HTTP_READ, true, 0, "test q state after limit", api_get_tests, false,
		ROLE_VIEWER},
	{"/api/v1/clusters", HTTP_READ, true, 0, "group after limit", api_get_clusters, false,
		ROLE_VIEWER},
	{"/api/v1/status", HTTP_READ, true, 0, NULL, api_get_status, false, ROLE_VIEWER},
	{"/api/v1/configuration", HTTP_READ, true, 0, "test", api_get_configuration, false,
		ROLE_VIEWER},
	{"/api/v1/series", HTTP_READ, true, 60000,
		"test metric since until last branch after limit", api_get_series, false,
		ROLE_VIEWER},
	{"/api/v1/plot", HTTP_READ, true, 60000, PLOTS_PARAMETERS, api_get_plot, false,
		ROLE_VIEWER},
	{"/api/v1/why", HTTP_READ, true, 60000, "test metric at", api_get_why, false, ROLE_VIEWER},
	{"/api/v1/changes", HTTP_READ, true, 30000,
		"state triage open test incident since until before limit", api_get_changes, false,
		ROLE_VIEWER},
	{"/api/v1/changes/*", HTTP_READ, true, 30000, "limit", api_get_change, false, ROLE_VIEWER},
	{"/api/v1/inbox", HTTP_READ, true, 30000,
		"state triage open test incident since until matchers text owner verdict by sort "
		"in rows after limit",
		api_get_inbox, false, ROLE_VIEWER},
	{"/api/v1/changes/*/triage", HTTP_POST, true, 30000, TRIAGE_FORM_OF_ONE, api_post_triage,
		false, ROLE_TRIAGER},
	{"/api/v1/changes/*/commits", HTTP_READ, true, 30000, NULL, api_get_commits, false,
		ROLE_VIEWER},
	{"/api/v1/triage", HTTP_POST, true, 60000, TRIAGE_FORM, api_post_triage, false,
		ROLE_TRIAGER},
	{"/api/v1/silences", HTTP_READ, true, 30000, "all", api_get_silences, false, ROLE_VIEWER},
	{"/api/v1/silences/preview", HTTP_READ, true, 30000, "matchers", api_get_silence_preview,
		false, ROLE_VIEWER},
	{"/api/v1/silences", HTTP_POST, true, 30000, SILENCE_FORM, api_post_silence, false,
		ROLE_TRIAGER},
	{"/api/v1/silences/*/end", HTTP_POST, true, 30000, "person", api_post_silence_end, false,
		ROLE_TRIAGER},
	{"/api/v1/bisections", HTTP_READ, true, 30000, "change state before limit",
		api_get_bisections, false, ROLE_VIEWER},
	{"/api/v1/bisections", HTTP_POST, true, 30000, "change person", api_post_bisection, false,
		ROLE_TRIAGER},
	{"/api/v1/bisections/*", HTTP_READ, true, 30000, NULL, api_get_bisection, false,
		ROLE_VIEWER},
	{"/api/v1/bisections/*/cancel", HTTP_POST, true, 30000, "person", api_post_bisection_cancel,
		false, ROLE_TRIAGER},
	{"/api/v1/bisections/*/result", HTTP_POST, true, 30000, "run outcome value problem person",
		api_post_bisection_result, false, ROLE_TRIAGER},
	{"/api/v1/audit", HTTP_READ, true, 30000, "since before change limit", api_get_audit, false,
		ROLE_TRIAGER},
	{"/api/v1/events", HTTP_READ, true, 0, "after", api_get_events, false, ROLE_VIEWER},
	{"/api/v1/arrived", HTTP_POST | HTTP_BULK, true, 60000, "kind", api_post_arrived, false,
		ROLE_ADMIN},
	{"/api/v1/run", HTTP_POST, true, 600000, "test group wait", api_post_run, false,
		ROLE_ADMIN},
	{0},
};
