/* The table of routes, and helpers shared by their files. */
#include "agent/web/api.h"

#include <string.h>

#include "agent/model/record_json.h"

struct api *api_of(const struct http_request *request)
{
	return request->context;
}

static const char *get(void *request, const char *name)
{
	return http_parameter(request, name);
}

struct form api_form(struct http_request *request, struct arena *arena)
{
	return (struct form){.get = get,
		.context = request,
		.arena = arena,
		.now = agent_now(api_of(request)->agent)};
}

void api_ask(struct http_request *request, const struct form *form, struct store_call *call)
{
	if (form && api_wrong(request, form))
		store_call_free(call);
	else
		store_client_call(api_of(request)->agent, call);
}

bool api_wrong(struct http_request *request, const struct form *form)
{
	if (form->failed)
		http_fail(request, 400, "%s", form->error.text);
	return form->failed;
}

bool api_failed(struct http_request *request, struct store_call *call)
{
	if (!call->failed)
		return false;
	http_fail(request, http_status_of(call->error), "%s", call->error->text);
	store_call_free(call);
	return true;
}

void api_reply(struct http_request *request, struct store_call *call)
{
	http_send(request, 200);
	store_call_free(call);
}

struct api_page api_page_begin(struct form *form, int64_t usual, int64_t most)
{
	return (struct api_page){.after = form_get(form, "after"),
		.limit = form_number(form, "limit", 1, most, usual)};
}

bool api_page_lists(struct api_page *page, const char *name)
{
	page->matching++;
	if (page->after && strcmp(name, page->after) <= 0)
		return false;
	if (page->listed == (size_t)page->limit) {
		page->next = page->last;
		return false;
	}
	page->listed++;
	page->last = name;
	return true;
}

void api_page_end(const struct api_page *page, struct buf *out)
{
	json_put(out, "], total: %zu, next: %s", page->matching, page->next);
}

struct actor api_actor(struct http_request *request, struct form *form)
{
	const struct http_person *person = &request->sign_in.person;
	bool local = strncmp(person->from, "uid ", 4) == 0;

	return (struct actor){
		.person = person->unproven ? form_person(form, person->name) : person->name,
		.origin = local ? arena_printf(request->arena, "unix socket, %s", person->from)
				: person->from};
}

void api_hide(const struct http_request *request, struct arena *arena, struct record_rows *records)
{
	if (request->sign_in.person.role < ROLE_TRIAGER)
		record_hide_origins(arena, records);
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

static const char plot[] = "test metric since until branch change width limit cleaned";

const struct route api_routes[] = {
	{"/-/reload", HTTP_POST | HTTP_URGENT, ROLE_ADMIN, 60000, NULL, api_post_reload},
	{"/api/v1/me", HTTP_READ, ROLE_VIEWER, 0, NULL, api_get_me},
	{"/api/v1/agents", HTTP_READ, ROLE_VIEWER, 0, NULL, api_get_agents},
	{"/api/v1/tests", HTTP_READ, ROLE_VIEWER, 0, "test q state after limit", api_get_tests},
	{"/api/v1/clusters", HTTP_READ, ROLE_VIEWER, 0, "group after limit", api_get_clusters},
	{"/api/v1/status", HTTP_READ, ROLE_VIEWER, 0, NULL, api_get_status},
	{"/api/v1/configuration", HTTP_READ, ROLE_VIEWER, 0, "test", api_get_configuration},
	{"/api/v1/plot", HTTP_READ, ROLE_VIEWER, 60000, plot, api_get_plot},
	{"/api/v1/series", HTTP_READ, ROLE_VIEWER, 60000, plot, api_get_plot},
	{"/api/v1/why", HTTP_READ, ROLE_VIEWER, 60000, "test metric at", api_get_why},
	{"/api/v1/changes", HTTP_READ, ROLE_VIEWER, 30000,
		"state triage open test incident since until before limit", api_get_changes},
	{"/api/v1/changes/*", HTTP_READ, ROLE_VIEWER, 30000, "limit", api_get_change},
	{"/api/v1/inbox", HTTP_READ, ROLE_VIEWER, 30000,
		"state triage open test incident since until matchers text owner verdict by sort "
		"in rows after limit",
		api_get_inbox},
	{"/api/v1/changes/*/triage", HTTP_POST, ROLE_TRIAGER, 30000, TRIAGE_FORM_OF_ONE,
		api_post_triage},
	{"/api/v1/changes/*/commits", HTTP_READ, ROLE_VIEWER, 30000, NULL, api_get_commits},
	{"/api/v1/triage", HTTP_POST, ROLE_TRIAGER, 60000, TRIAGE_FORM, api_post_triage},
	{"/api/v1/silences", HTTP_READ, ROLE_VIEWER, 30000, "all", api_get_silences},
	{"/api/v1/silences/preview", HTTP_READ, ROLE_VIEWER, 30000, "matchers",
		api_get_silence_preview},
	{"/api/v1/silences", HTTP_POST, ROLE_TRIAGER, 30000, SILENCE_FORM, api_post_silence},
	{"/api/v1/silences/*/end", HTTP_POST, ROLE_TRIAGER, 30000, "person", api_post_silence_end},
	{"/api/v1/bisections", HTTP_READ, ROLE_VIEWER, 30000, "change state before limit",
		api_get_bisections},
	{"/api/v1/bisections", HTTP_POST, ROLE_TRIAGER, 30000, "change person", api_post_bisection},
	{"/api/v1/bisections/*", HTTP_READ, ROLE_VIEWER, 30000, NULL, api_get_bisection},
	{"/api/v1/bisections/*/cancel", HTTP_POST, ROLE_TRIAGER, 30000, "person",
		api_post_bisection_cancel},
	{"/api/v1/bisections/*/result", HTTP_POST, ROLE_TRIAGER, 30000,
		"run outcome value problem person", api_post_bisection_result},
	{"/api/v1/audit", HTTP_READ, ROLE_TRIAGER, 30000, "since before change limit",
		api_get_audit},
	{"/api/v1/events", HTTP_READ, ROLE_VIEWER, 0, "after", api_get_events},
	{"/api/v1/arrived", HTTP_POST | HTTP_BULK, ROLE_ADMIN, 60000, "kind", api_post_arrived},
	{"/api/v1/run", HTTP_POST, ROLE_ADMIN, 600000, "test group wait", api_post_run},
	{0},
};
