/* /api/v1/changes: the changes in the store, latest recorded first, in pages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/notify/announce.h"
#include "agent/store/record_json.h"
#include "agent/web/api.h"

enum { LIMIT = 100, MOST = 1000 };

static unsigned state_bit(const char *word, size_t length)
{
	for (int state = 1; state < CHANGE_STATES; state++)
		if (strlen(change_state_names[state]) == length &&
			memcmp(change_state_names[state], word, length) == 0)
			return 1U << state;
	return 0;
}

/* "confirmed,moved" as bits. */
static bool parse_states(const char *text, unsigned *out, struct error *error)
{
	while (text && *text) {
		size_t length = strcspn(text, ",");
		unsigned bit = state_bit(text, length);

		if (!bit)
			return error_set(error, ERROR_USAGE,
				"state: \"%.*s\" is none of candidate, confirmed, moved, "
				"withdrawn, "
				"recovered",
				(int)(length < 100 ? length : 100), text);
		*out |= bit;
		text += length + (text[length] == ',');
	}
	return true;
}

static bool parse_triage(const char *text, unsigned *out, struct error *error)
{
	while (text && *text) {
		size_t length = strcspn(text, ",");
		char name[32];
		enum triage_state state;

		snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
		if (!triage_state_named(name, &state))
			return error_set(error, ERROR_USAGE,
				"triage: \"%.*s\" is none of open, acknowledged, expected, "
				"ignored, infra, false, fixed",
				(int)(length < 100 ? length : 100), text);
		*out |= 1U << state;
		text += length + (text[length] == ',');
	}
	return true;
}

static bool parse_open(const char *text, bool *out, struct error *error)
{
	*out = text && strcmp(text, "true") == 0;
	return !text || *out || strcmp(text, "false") == 0 ||
	       error_set(error, ERROR_USAGE, "open: true or false is needed");
}

/* 0 stands for an open end of the filter. */
bool api_change_filter(const struct http_request *request, int64_t now, struct arena *arena,
	struct change_filter *filter, struct error *error)
{
	filter->now = now;
	filter->test = arena_strdup(arena, http_parameter(request, "test"));
	return parse_states(http_parameter(request, "state"), &filter->states, error) &&
	       api_date(request, "since", now, 0, &filter->since, error) &&
	       api_date(request, "until", now, 0, &filter->until, error) &&
	       parse_triage(http_parameter(request, "triage"), &filter->triage, error) &&
	       parse_open(http_parameter(request, "open"), &filter->open, error);
}

static bool parse(const struct http_request *request, int64_t now, struct arena *arena,
	struct change_filter *filter, struct error *error)
{
	return api_change_filter(request, now, arena, filter, error) &&
	       api_id(request, "before", "a change", &filter->before_id, error) &&
	       api_limit(request, LIMIT, MOST, &filter->limit, error);
}

/* A list in progress. */
struct listing {
	struct agent *agent;
	struct http_request *request;
};

static void listed(struct store_list *list)
{
	const struct listing *listing = list->call.context;
	struct http_request *request = listing->request;
	struct http_answer answer = {0};
	size_t count = list->records.count;

	if (list->call.failed) {
		http_fail(request, http_status_of(list->call.error), "%s", list->call.error->text);
		store_call_free(&list->call);
		return;
	}
	api_hide(request, list->call.arena, &list->records);
	buf_text(&answer.body, "{\"changes\": [");
	for (size_t i = 0; i < count; i++) {
		buf_text(&answer.body, i ? ",\n  " : "\n  ");
		announce_links(list->call.arena, listing->agent->config, &list->records.items[i]);
		record_put_json(&answer.body, &list->records.items[i]);
	}
	buf_text(&answer.body, "], \"next\": ");
	if (list->more && count > 0)
		buf_printf(&answer.body, "%" PRId64 "}\n", list->records.items[count - 1].item.id);
	else
		buf_text(&answer.body, "null}\n");
	http_answer(request, &answer);
	store_call_free(&list->call);
}

void api_get_changes(void *context, struct http_request *request)
{
	struct agent *agent = api_of(context)->agent;
	struct listing *listing = arena_alloc(http_arena(request), sizeof *listing);
	struct store_list *list = store_list_new(listed, listing);
	struct error error;

	*listing = (struct listing){agent, request};
	if (agent->stopping)
		http_fail(request, 503, "the agent is stopping");
	else if (!parse(request, agent_now(agent), list->call.arena, &list->filter, &error))
		http_fail(request, 400, "%s", error.text);
	else {
		store_client_call(agent, &list->call);
		return;
	}
	store_call_free(&list->call);
}
