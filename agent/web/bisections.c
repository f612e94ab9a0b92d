/* /api/v1/bisections: lists them, starts and ends one, and takes a lab's results. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/utf8.h"
#include "agent/fleet/fleet.h"
#include "agent/monitor/bisect_lab.h"
#include "agent/web/api.h"

enum { LIMIT = 50, MOST = 1000, PROBLEM_MOST = 300 };

static void put_row(struct buf *out, const struct bisection_row *row)
{
	json_put(out,
		"{id: %jd, change: %jd, test: %s, metric: %s, lab: %s, state: %s, "
		"asked: %jd moment, begun: %jd moment, ended: %jd moment, person: %s, "
		"runs: %jd, end: %s, verdict: %s, cancelled: %s, culprit:",
		row->id, row->change, row->test, row->metric, row->lab,
		bisection_state_names[row->state], row->asked, row->begun, row->ended, row->person,
		row->runs, row->end, row->verdict, row->cancelled);
	if (row->culprit && row->culprit->bisection == row->id)
		culprit_put(out, row->culprit);
	else
		buf_text(out, "null");
}

static void answer_one(struct http_request *request, int status, const struct bisection_row *row)
{
	put_row(&request->buffer, row);
	buf_char(&request->buffer, '}');
	http_send(request, status);
}

static void listed(struct store_bisections *list)
{
	struct http_request *request = list->call.context;
	struct buf *out = &request->buffer;

	if (api_failed(request, &list->call))
		return;
	json_put(out, "{bisections: [");
	for (size_t i = 0; i < list->rows.count; i++) {
		json_line(out);
		put_row(out, &list->rows.items[i]);
		buf_char(out, '}');
	}
	json_put(out, "], next: %jd id}",
		list->more ? list->rows.items[list->rows.count - 1].id : 0);
	api_reply(request, &list->call);
}

void api_get_bisections(struct http_request *request)
{
	struct store_bisections *list = store_bisections_new(listed, request);
	struct form form = api_form(request, list->call.arena);

	list->change = form_id(&form, "change", "a change");
	list->before_id = form_id(&form, "before", "a bisection");
	list->states = form_choices(&form, "state", bisection_state_names, 1);
	list->limit = form_number(&form, "limit", 1, MOST - 1, LIMIT);
	api_ask(request, &form, &list->call);
}

static void found(struct store_bisections *list)
{
	struct http_request *request = list->call.context;
	struct buf *out = &request->buffer;
	const struct bisection_row *row = list->rows.items;

	if (api_failed(request, &list->call))
		return;
	if (list->rows.count == 0) {
		http_fail(request, 404, "there is no bisection %" PRId64, list->id);
		store_call_free(&list->call);
		return;
	}
	put_row(out, row);
	json_put(out, "setup: %s json, journal: [", row->setup ? row->setup : "null");
	for (size_t i = 0; i < row->lines.count; i++)
		if (row->lines.items[i].kind != BISECTION_ANSWER)
			json_put(out, "\n%s json", row->lines.items[i].text);
	json_put(out, "]}");
	api_reply(request, &list->call);
}

void api_get_bisection(struct http_request *request)
{
	struct store_bisections *list = store_bisections_new(found, request);

	list->id = request->id;
	list->lines = true;
	api_ask(request, NULL, &list->call);
}

/* Starting one: the change determines the test, and the test the lab. */
struct wanting {
	struct http_request *request;
	struct actor actor;
	int64_t change;
};

static void asked(struct store_bisection_ask *ask)
{
	struct http_request *request = ask->call.context;

	if (api_failed(request, &ask->call))
		return;
	if (ask->missing || ask->rows.count == 0)
		http_fail(request, ask->missing ? 404 : 409,
			ask->missing ? "there is no change %" PRId64
				     : "change %" PRId64 " no longer stands, or was triaged",
			ask->change);
	else
		answer_one(request, ask->added ? 201 : 200, &ask->rows.items[0]);
	store_call_free(&ask->call);
}

static void ask_for(const struct wanting *wanting, const struct test *test)
{
	struct store_bisection_ask *ask = store_bisection_ask_new(asked, wanting->request);
	struct agent *agent = api_of(wanting->request)->agent;
	struct arena *arena = ask->call.arena;

	ask->change = wanting->change;
	ask->now = agent_now(agent);
	ask->lab = arena_strdup(arena, test->bisect->lab);
	ask->actor = (struct actor){arena_strdup(arena, wanting->actor.person),
		arena_strdup(arena, wanting->actor.origin)};
	store_client_call(agent, &ask->call);
}

static void change_read(struct store_list *list)
{
	struct wanting *wanting = list->call.context;
	struct http_request *request = wanting->request;
	const struct change_record *record = list->records.items;
	const struct test *test;

	if (api_failed(request, &list->call))
		return;
	if (list->records.count == 0 || record->item.id != wanting->change) {
		http_fail(request, 404, "there is no change %" PRId64, wanting->change);
	} else {
		test = config_test(api_of(request)->agent->config, record->item.test);
		if (!test || !test->bisect)
			http_fail(
				request, 409, "test \"%.200s\" has no `bisect`", record->item.test);
		else
			ask_for(wanting, test);
	}
	store_call_free(&list->call);
}

void api_post_bisection(struct http_request *request)
{
	struct wanting *wanting = arena_alloc(request->arena, sizeof *wanting);
	struct store_list *list = store_list_new(change_read, wanting);
	struct form form = api_form(request, request->arena);

	*wanting = (struct wanting){
		request, api_actor(request, &form), form_id(&form, "change", "a change")};
	if (wanting->change == 0)
		form_fail(&form, "change: the id of a change is needed");
	list->filter.before_id = wanting->change + 1;
	list->filter.limit = 1;
	api_ask(request, &form, &list->call);
}

static void said(struct store_bisection_say *say)
{
	struct http_request *request = say->call.context;

	if (api_failed(request, &say->call))
		return;
	if (!say->found)
		http_fail(request, 404, "there is no bisection %" PRId64, say->bisection);
	else if (say->taken || say->repeated || say->cancel)
		answer_one(request, 200, &say->rows.items[0]);
	else
		http_fail(request, 409,
			"run %" PRId64 " of bisection %" PRId64
			" is not expected: unknown run, or the bisection has ended",
			say->line.run, say->bisection);
	store_call_free(&say->call);
}

/* What a person, or the lab, has to say of a bisection. */
static struct store_bisection_say *say_of(struct http_request *request, struct form *form)
{
	struct store_bisection_say *say = store_bisection_say_new(said, request);

	*form = api_form(request, say->call.arena);
	say->actor = api_actor(request, form);
	say->bisection = request->id;
	say->now = form->now;
	return say;
}

void api_post_bisection_cancel(struct http_request *request)
{
	struct form form;
	struct store_bisection_say *say = say_of(request, &form);

	say->cancel = true;
	say->why = arena_printf(form.arena, "cancelled by %s", say->actor.person);
	api_ask(request, &form, &say->call);
}

/* As the lab of the bisection reads it. */
void api_post_bisection_result(struct http_request *request)
{
	struct form form;
	struct store_bisection_say *say = say_of(request, &form);
	const char *value = form_get(&form, "value"), *outcome = form_get(&form, "outcome");
	const char *problem = form_get(&form, "problem");
	size_t known = 0;
	char *end = NULL;
	double number = value ? strtod(value, &end) : 0;

	say->line.kind = BISECTION_ANSWER;
	say->line.run = form_id(&form, "run", "a run");
	if (say->line.run == 0)
		form_fail(&form, "run: the number of a run is needed");
	if (problem && (strlen(problem) > PROBLEM_MOST || !utf8_is_shown(problem, "")))
		form_fail(&form, "problem: at most 300 bytes of UTF-8 without control characters");
	outcome = outcome ? outcome : value ? lab_outcomes[BISECT_MEASURED] : "";
	while (lab_outcomes[known] && strcmp(lab_outcomes[known], outcome) != 0)
		known++;
	if (!lab_outcomes[known] || (known == BISECT_MEASURED) != (value != NULL))
		form_fail(&form, "outcome: measured with a value, untestable or failed is needed");
	else if (value && (end == value || *end || !isfinite(number) || strchr(" \t\n", *value)))
		form_fail(&form, "value: a finite number is needed");
	else if (value)
		say->line.text = arena_printf(form.arena, "%s %.17g", lab_outcomes[known], number);
	else
		say->line.text = arena_printf(form.arena, "%s%s%s", lab_outcomes[known],
			problem ? ": " : "", problem ? problem : "");
	api_ask(request, &form, &say->call);
}
