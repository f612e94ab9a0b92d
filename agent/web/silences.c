/* Silences: list, add, end, and what one would select. */
#include <inttypes.h>
#include <stdlib.h>

#include "agent/runtime/silence.h"
#include "agent/web/api.h"

enum { MOST_OPEN = 10000 };

static void listed(struct store_silences *list)
{
	struct http_request *request = list->call.context;

	if (api_failed(request, &list->call))
		return;
	silences_put_json(&request->buffer, &list->silences, list->now);
	api_reply(request, &list->call);
}

void api_get_silences(struct http_request *request)
{
	struct store_silences *list = store_silences_new(listed, request);
	struct form form = api_form(request, list->call.arena);

	list->all = form_bool(&form, "all");
	list->now = form.now;
	api_ask(request, &form, &list->call);
}

/* A list of the open changes, and what matchers select of it: of a silence that was added, or that
 * somebody thinks of. A worker compares them, as both may be many. */
struct silence_reaching {
	struct http_request *request;
	struct config_ref *config_ref;
	struct store_silence *added; /* or NULL */
	const char *matchers;
	struct store_list *list;
	struct silence_reach reach;
	struct silence_reaching *next, **place;
};

static void free_reaching(struct silence_reaching *reaching)
{
	*reaching->place = reaching->next;
	if (reaching->next)
		reaching->next->place = reaching->place;
	if (reaching->added)
		store_call_free(&reaching->added->call);
	if (reaching->list)
		store_call_free(&reaching->list->call);
	config_ref_release(reaching->config_ref);
	free(reaching);
}

void api_silences_free(struct api *api)
{
	while (api->reaching)
		free_reaching(api->reaching);
}

static void put_preview(struct buf *out, const char *matchers, const struct silence_reach *reach)
{
	json_put(out, "\n{problem: %s, matchers: %s, tests: %zu, first_tests: [", reach->problem,
		matchers, reach->tests);
	for (size_t i = 0; i < reach->tests && i < SILENCE_REACH_SHOWN; i++)
		json_put(out, "%s", reach->first_tests[i]->name);
	json_put(out, "], open_changes: %zu, first_changes: [", reach->changes);
	for (size_t i = 0; i < reach->changes && i < SILENCE_REACH_SHOWN; i++) {
		const struct change_record *record = reach->first_changes[i];
		const struct announcement *item = &record->item;

		json_put(out,
			"\n{id: %jd, test: %s, metric: %s, branch: %s optional, "
			"time: %jd time, direction: %d, regression: %d bool",
			item->id, item->test, item->metric, record->branch, item->time,
			item->direction, announcement_verdict(item) > 0);
		json_put_levels(out, &item->change);
		buf_char(out, '}');
	}
	buf_char(out, ']');
	silence_put_warning(out, reach);
	buf_char(out, '}');
}

/* A preview stops where it would take long: whoever types asks for many. */
static void compare(void *context)
{
	struct silence_reaching *reaching = context;
	struct store_list *list = reaching->list;
	struct matcher_effort effort = {0};

	/* Without the list, the tests can be told all the same. */
	silence_reach(reaching->config_ref->config, reaching->matchers,
		list->call.failed ? &(const struct record_rows){0} : &list->records,
		list->call.arena, reaching->added ? NULL : &effort, &reaching->reach);
}

static void compared(void *context)
{
	struct silence_reaching *reaching = context;
	const struct silence_reach *reach = &reaching->reach;
	const struct store_silence *added = reaching->added;
	struct buf *out = &reaching->request->buffer;

	if (added)
		silence_put_added(out, &added->written, added->now, reach);
	else
		put_preview(out, reaching->matchers, reach);
	http_send(reaching->request, 200);
	free_reaching(reaching);
}

static void open_listed(struct store_list *list)
{
	struct silence_reaching *reaching = list->call.context;

	reaching->list = list;
	engine_compute(api_of(reaching->request)->agent->engine, compare, compared, reaching);
}

/* Takes over the call, if there is one. The matchers are the request's, or the call's. */
static void ask_reach(
	struct http_request *request, const char *matchers, struct store_silence *added)
{
	struct api *api = api_of(request);
	struct silence_reaching *reaching = memory_new(1, sizeof *reaching);
	struct store_list *list = store_list_new(open_listed, reaching);

	*reaching = (struct silence_reaching){.request = request,
		.config_ref = config_ref_hold(api->agent->config_ref),
		.added = added,
		.matchers = matchers,
		.next = api->reaching,
		.place = &api->reaching};
	if (reaching->next)
		reaching->next->place = &reaching->next;
	api->reaching = reaching;
	list->filter.open = true;
	list->filter.now = agent_now(api->agent);
	list->filter.limit = MOST_OPEN;
	store_client_call(api->agent, &list->call);
}

void api_get_silence_preview(struct http_request *request)
{
	const char *text = http_parameter(request, "matchers"), *matchers;
	struct error error;

	if (!text) {
		http_fail(request, 400, "the parameter \"matchers\" is needed");
	} else if (!(matchers = form_matchers(text, request->arena, &error))) {
		/* Whoever is still typing is answered, too. */
		put_preview(&request->buffer, NULL, &(struct silence_reach){.problem = error.text});
		http_send(request, 200);
	} else {
		ask_reach(request, matchers, NULL);
	}
}

static void written(struct store_silence *call)
{
	struct http_request *request = call->call.context;
	const struct api *api = api_of(request);

	if (api_failed(request, &call->call))
		return;
	if (!call->found)
		http_fail(request, 404, "there is no silence %" PRId64, request->id);
	else {
		api->options.silenced(api->options.context, &call->written);
		if (request->id == 0 && !api->agent->stopping) {
			ask_reach(request, call->written.matchers, call);
			return;
		}
		silence_put_json(&request->buffer, &call->written, call->now);
		http_send(request, 200);
	}
	store_call_free(&call->call);
}

static struct store_silence *new_call(struct http_request *request, struct form *form)
{
	struct store_silence *call = store_silence_new(written, request);

	*form = api_form(request, call->call.arena);
	call->now = form->now;
	call->actor = api_actor(request, form);
	return call;
}

void api_post_silence(struct http_request *request)
{
	struct form form;
	struct store_silence *call = new_call(request, &form);

	(void)silence_form_read(&form, api_of(request)->agent->config->agent.max_silence, call);
	api_ask(request, &form, &call->call);
}

void api_post_silence_end(struct http_request *request)
{
	struct form form;
	struct store_silence *call = new_call(request, &form);

	call->silence.id = request->id;
	call->silence.ended = call->now;
	call->silence.ended_by = call->actor.person;
	api_ask(request, &form, &call->call);
}
