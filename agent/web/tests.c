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

	json_put(out,
		"\n{name: %s, type: %s, source: %s optional, "
		"interval_seconds: %jd seconds, metrics: [",
		test->name, test->source->name, test->server ? test->server->name : "",
		test->interval);
	for (size_t i = 0; i < test->metric_count; i++)
		json_put(out, "%s", test->metrics[i].name);
	json_put(out,
		"], tags: %p, notify: %p, running: %d bool, failing: %d bool, "
		"stale: %d bool, state: %s, problem: %s",
		&test->tags, &test->notify, state->running, state->failing, state->stale,
		test_state_names[state_of(state)], state->problem);
	if (agent->fleet) /* the one that runs it, or null */
		json_put(out, "agent: %s optional", !elsewhere ? fleet_name(agent) : elsewhere);
	json_put(out,
		"last_run: %jd moment, next_run: %jd time, last_point: %jd time, "
		"duration_seconds: %jd seconds, series: %zu, points: %zu}",
		state->last_run, state->next_due,
		state->newest == WHEN_ALWAYS ? WHEN_NEVER : state->newest, state->duration,
		state->series, state->points);
}

static void list_test(void *context, const struct scheduler_test *state)
{
	struct listing *listing = context;

	if (is_asked(listing, state->test) && is_counted(listing, state) &&
		api_page_lists(&listing->page, state->test->name))
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
	json_put(out, "{tests: [");
	scheduler_each(api_of(request)->scheduler, list_test, &listing);
	api_page_end(&listing.page, out);
	json_put(out, "states: {");
	for (size_t i = agent->fleet ? TEST_ELSEWHERE : TEST_FAILING; test_state_names[i]; i++)
		json_put_number(out, test_state_names[i], (double)listing.counts[i]);
	json_put(out, "}}");
	http_send(request, 200);
}

static void put_options(struct buf *out, const struct options_in_effect *section)
{
	json_put(out, "\n{of: %s, name: %s, options: [", section->of, section->name);
	for (size_t i = 0; i < section->count; i++) {
		const struct option_in_effect *option = &section->items[i];

		json_put(out,
			"\n{name: %s, value: %s, default: %d bool, hidden: %d bool, "
			"help: %s}",
			option->name, option->value, option->usual, option->hidden, option->help);
	}
	json_put(out, "]}");
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
	json_put(out, "\n{test: %s, file: %s, line: %d, unsupported: %s", test->name, test->file,
		test->line, test->unsupported);
	json_put(out, "groups: %p, routed: %d bool, receivers: %p, sections: [", &groups,
		test->routed, &test->notify);
	for (size_t i = 0; i < count; i++)
		put_options(out, &sections[i]);
	json_put(out, "], metrics_left_out: %zu}", left);
	http_send(request, 200);
}
