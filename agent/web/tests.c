/* /api/v1/tests: the monitored tests, in order of their names, in pages. */
#include <fnmatch.h>
#include <string.h>

#include "agent/core/when.h"
#include "agent/web/api.h"

enum { LIMIT = 1000, MOST = 10000 };

struct listing {
	const char *pattern, *after; /* or NULL */
	int64_t limit;
	size_t listed, matching;
	const char *last, *next; /* names; next: the last one listed if there are more */
	struct buf *out;
};

static bool is_asked(const struct listing *listing, const char *name)
{
	return !listing->pattern || strcmp(listing->pattern, name) == 0 ||
	       fnmatch(listing->pattern, name, 0) == 0;
}

static void put_metrics(struct buf *out, const struct test *test)
{
	buf_text(out, ", \"metrics\": [");
	for (size_t i = 0; i < test->metric_count; i++) {
		buf_text(out, i ? ", " : "");
		buf_json_text(out, test->metrics[i].name);
	}
	buf_char(out, ']');
}

static void put_state(struct buf *out, const struct scheduler_test *state)
{
	const struct test *test = state->test;

	buf_text(out, "\n  {\"name\": ");
	buf_json_text(out, test->name);
	json_put_text(out, "type", test->source->name);
	json_put_text(out, "source", test->server ? test->server->name : NULL);
	json_put_seconds(out, "interval_seconds", test->interval);
	put_metrics(out, test);
	api_put_strings(out, "tags", &test->tags);
	api_put_strings(out, "notify", &test->notify);
	json_put_bool(out, "running", state->running);
	json_put_bool(out, "failing", state->failing);
	json_put_text(out, "problem", state->problem);
	json_put_time(out, "last_run", state->last_run ? state->last_run : WHEN_NEVER);
	json_put_time(out, "next_run", state->next_due);
	json_put_seconds(out, "duration_seconds", state->duration);
	buf_printf(out, ", \"series\": %zu, \"points\": %zu}", state->series, state->points);
}

static void list_test(void *context, const struct scheduler_test *state)
{
	struct listing *listing = context;
	const char *name = state->test->name;

	if (!is_asked(listing, name))
		return;
	listing->matching++;
	if (listing->after && strcmp(name, listing->after) <= 0)
		return;
	if (listing->listed == (size_t)listing->limit) {
		listing->next = listing->last;
		return;
	}
	buf_text(listing->out, listing->listed++ ? "," : "");
	put_state(listing->out, state);
	listing->last = name;
}

void api_get_tests(void *context, struct http_request *request)
{
	struct http_answer answer = {0};
	struct listing listing = {.pattern = http_parameter(request, "test"),
		.after = http_parameter(request, "after"),
		.out = &answer.body};
	struct error error;

	if (!api_limit(request, LIMIT, MOST, &listing.limit, &error)) {
		http_fail(request, 400, "%s", error.text);
		return;
	}
	buf_text(&answer.body, "{\"tests\": [");
	scheduler_each(api_of(context)->scheduler, list_test, &listing);
	buf_printf(&answer.body, "], \"total\": %zu", listing.matching);
	json_put_text(&answer.body, "next", listing.next);
	buf_text(&answer.body, "}\n");
	http_answer(request, &answer);
}
