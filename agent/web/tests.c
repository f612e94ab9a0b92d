/*
 * /api/v1/tests: the monitored tests, in order of their names, in pages. And /api/v1/configuration:
 * one of them as it is configured.
 */
#include <fnmatch.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/fleet/fleet.h"
#include "agent/web/api.h"
#include "conf/in_effect.h"

enum { LIMIT = 1000, MOST = 10000, QUERY_MOST = 500 };

/* Of a test: the first that applies. */
enum test_state { TEST_ELSEWHERE, TEST_FAILING, TEST_STALE, TEST_NEW, TEST_OK, TEST_STATES };

static const char *const test_state_names[] = {
	"elsewhere", "failing", "stale", "new", "ok", "running", NULL};

enum { RUNNING = TEST_STATES /* in any state */ };

struct listing {
	const struct agent *agent;
	const char *pattern;  /* or NULL */
	struct strings words; /* all of which a test must have */
	unsigned states;      /* bits 1 << enum test_state, 1 << RUNNING; 0: all */
	struct api_page page;
	size_t counts[TEST_STATES + 1]; /* by state, of those that have pattern and words */
	struct buf *out;
};

static enum test_state state_of(const struct scheduler_test *state)
{
	return state->elsewhere       ? TEST_ELSEWHERE
	       : state->failing       ? TEST_FAILING
	       : state->stale         ? TEST_STALE
	       : state->last_run == 0 ? TEST_NEW
				      : TEST_OK;
}

static bool is_within(const char *text, const char *word)
{
	return text && strcasestr(text, word);
}

static bool has_word(const struct test *test, const char *word)
{
	bool found = is_within(test->name, word) || is_within(test->source->name, word) ||
		     (test->server && is_within(test->server->name, word));

	for (size_t i = 0; i < test->tags.count && !found; i++)
		found = is_within(test->tags.items[i], word);
	for (size_t i = 0; i < test->metric_count && !found; i++)
		found = is_within(test->metrics[i].name, word);
	return found;
}

static bool is_asked(const struct listing *listing, const struct test *test)
{
	bool asked = !listing->pattern || strcmp(listing->pattern, test->name) == 0 ||
		     fnmatch(listing->pattern, test->name, 0) == 0;

	for (size_t i = 0; i < listing->words.count && asked; i++)
		asked = has_word(test, listing->words.items[i]);
	return asked;
}

/* Counts the test; whether it is in one of the requested states. */
static bool is_counted(struct listing *listing, const struct scheduler_test *state)
{
	enum test_state is = state_of(state);
	unsigned bits = 1u << is | (state->running ? 1u << RUNNING : 0);

	listing->counts[is]++;
	listing->counts[RUNNING] += state->running;
	return !listing->states || (bits & listing->states);
}

static void put_state(
	struct buf *out, const struct agent *agent, const struct scheduler_test *state)
{
	const struct test *test = state->test;
	const char *elsewhere = state->elsewhere;

	json_open(out, "name", test->name);
	json_put_text(out, "type", test->source->name);
	json_put_text(out, "source", test->server ? test->server->name : NULL);
	json_put_seconds(out, "interval_seconds", test->interval);
	buf_text(out, ", \"metrics\": [");
	for (size_t i = 0; i < test->metric_count; i++) {
		json_next(out);
		buf_json_text(out, test->metrics[i].name);
	}
	buf_char(out, ']');
	json_put_strings(out, "tags", &test->tags);
	json_put_strings(out, "notify", &test->notify);
	json_put_bool(out, "running", state->running);
	json_put_bool(out, "failing", state->failing);
	json_put_bool(out, "stale", state->stale);
	json_put_text(out, "state", test_state_names[state_of(state)]);
	json_put_text(out, "problem", state->problem);
	if (agent->fleet) /* the one that runs it, or null */
		json_put_text(out, "agent",
			!elsewhere   ? fleet_name(agent)
			: *elsewhere ? elsewhere
				     : NULL);
	json_put_moment(out, "last_run", state->last_run);
	json_put_time(out, "next_run", state->next_due);
	json_put_time(out, "last_point", state->newest == WHEN_ALWAYS ? WHEN_NEVER : state->newest);
	json_put_seconds(out, "duration_seconds", state->duration);
	buf_printf(out, ", \"series\": %zu, \"points\": %zu}", state->series, state->points);
}

static void list_test(void *context, const struct scheduler_test *state)
{
	struct listing *listing = context;

	if (is_asked(listing, state->test) && is_counted(listing, state) &&
		api_page_lists(&listing->page, state->test->name, listing->out))
		put_state(listing->out, listing->agent, state);
}

void api_get_tests(struct http_request *request)
{
	struct buf *out = &request->buffer;
	const struct agent *agent = api_of(request)->agent;
	struct form form = api_form(request, request->arena);
	const char *query = form_get(&form, "q");
	struct listing listing = {.agent = agent,
		.pattern = form_get(&form, "test"),
		.words = form_words(&form, "q"),
		.page = api_page_begin(&form, LIMIT, MOST),
		.states = form_choices(&form, "state", test_state_names, 0),
		.out = out};

	if (query && strlen(query) > QUERY_MOST)
		form_fail(&form, "q: more than %d bytes", QUERY_MOST);
	if (api_wrong(request, &form))
		return;
	buf_text(out, "{\"tests\": [");
	scheduler_each(api_of(request)->scheduler, list_test, &listing);
	api_page_end(&listing.page, out);
	buf_text(out, ", \"states\": {");
	for (size_t i = agent->fleet ? TEST_ELSEWHERE : TEST_FAILING; test_state_names[i]; i++)
		json_put_count(out, test_state_names[i], listing.counts[i]);
	buf_text(out, "}}\n");
	http_send(request, 200);
}

static void put_options(struct buf *out, const struct options_in_effect *section)
{
	json_open(out, "of", section->of);
	json_put_text(out, "name", section->name);
	buf_text(out, ", \"options\": [");
	for (size_t i = 0; i < section->count; i++) {
		const struct option_in_effect *option = &section->items[i];

		json_open(out, "name", option->name);
		json_put_text(out, "value", option->value);
		json_put_bool(out, "default", option->usual);
		json_put_bool(out, "hidden", option->hidden);
		json_put_text(out, "help", option->help);
		buf_char(out, '}');
	}
	buf_text(out, "]}");
}

void api_get_configuration(struct http_request *request)
{
	const struct agent *agent = api_of(request)->agent;
	const char *name = http_parameter(request, "test");
	const struct test *test = name ? config_test(agent->config, name) : NULL;
	const struct options_in_effect *sections;
	struct buf *out = &request->buffer;
	struct strings groups;
	size_t count, left;

	if (!test) {
		if (name)
			http_fail(request, 404, "there is no test \"%.200s\"", name);
		else
			http_fail(request, 400, "the parameter \"test\" is needed");
		return;
	}
	count = test_in_effect(agent->config, agent->schema, test, request->arena, &sections);
	groups = config_groups(agent->config, test->name);
	left = test->metric_count > IN_EFFECT_METRICS ? test->metric_count - IN_EFFECT_METRICS : 0;
	json_open(out, "test", test->name);
	json_put_text(out, "file", test->file);
	buf_printf(out, ", \"line\": %d", test->line);
	json_put_text(out, "unsupported", test->unsupported);
	json_put_strings(out, "groups", &groups);
	json_put_bool(out, "routed", test->routed);
	json_put_strings(out, "receivers", &test->notify);
	buf_text(out, ",\n \"sections\": [");
	for (size_t i = 0; i < count; i++)
		put_options(out, &sections[i]);
	buf_printf(out, "], \"metrics_left_out\": %zu}\n", left);
	http_send(request, 200);
}
