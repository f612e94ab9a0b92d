/*
 * /api/v1/series: a test's points with its change points. The agent keeps few points, so each
 * request fetches them. A run starts at each series' stored anchor, this only as far back as the
 * test's range, so their first change points may differ. The answer is built on the worker that
 * ran the detection.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/analysis.h"
#include "agent/analysis/select.h"
#include "agent/base/when.h"
#include "agent/report/report.h"
#include "agent/web/api.h"

enum {
	LIMIT = 100,
	MOST = 1000,
	LAST_MOST = 999999999,
	MOST_POINTS = 50000,   /* in an answer; its first series always has some */
	MOST_BYTES = 16 << 20, /* after which no further series is started */
};

/* In the arena of its task. */
struct fetch {
	struct api_fetch fetch;
	struct selection selection;
	const char *after; /* the identity of a series, or NULL */
	int64_t limit;
};

static void put_attributes(struct buf *out, const struct axis *axis, size_t from)
{
	buf_text(out, ",\n   \"attributes\": {");
	for (size_t c = 0; c < axis->column_count; c++) {
		const struct column *column = &axis->columns[c];

		json_next(out);
		buf_json_text(out, column->name);
		buf_text(out, ": [");
		for (size_t i = from; i < axis->n; i++) {
			json_next(out);
			buf_json_text(out, column->values[i]);
		}
		buf_char(out, ']');
	}
	buf_char(out, '}');
}

static void put_series(
	struct buf *out, const struct findings *found, size_t skipped, struct arena *arena)
{
	const struct series *series = found->series;
	const struct axis *axis = series->axis;
	const char **names = arena_array(arena, axis->column_count, sizeof *names);
	char text[WHEN_TEXT];

	for (size_t c = 0; c < axis->column_count; c++)
		names[c] = axis->columns[c].name;
	report_put_series(out, series);
	json_put_text(out, "identity", series->identity);
	buf_printf(out, ", \"skipped\": %zu", skipped);
	buf_text(out, ",\n   \"times\": [");
	for (size_t i = skipped; i < axis->n; i++)
		buf_printf(out, "%s\"%s\"", i > skipped ? ", " : "",
			when_format_iso(axis->times[i], text));
	buf_text(out, "],\n   \"values\": [");
	for (size_t i = skipped; i < axis->n; i++) {
		json_next(out);
		buf_json_number(out, series->values[i]);
	}
	buf_char(out, ']');
	put_attributes(out, axis, skipped);
	buf_text(out, ",\n   \"changes\": [");
	for (size_t i = 0; i < found->count; i++)
		report_put_change(out, found, &found->changes[i],
			&(const struct strings){names, axis->column_count}, arena);
	buf_text(out, "]}");
}

static bool put_answer(struct fetch *fetch, const struct analysis *analysis, struct arena *arena,
	struct error *error)
{
	const struct dataset *data = analysis->data;
	struct buf *out = &fetch->fetch.request->buffer;
	size_t first = 0, s, points = 0;

	while (fetch->after && first < data->count &&
		strcmp(data->series[first].identity, fetch->after) != 0)
		first++;
	if (fetch->after && first++ == data->count)
		return error_set(error, ERROR_USAGE, "after: no series \"%.200s\"", fetch->after);
	json_open(out, "test", analysis->test->name);
	buf_text(out, ", \"series\": [");
	for (s = first; s < data->count && s - first < (size_t)fetch->limit; s++) {
		size_t n = data->series[s].axis->n;
		size_t skipped = n > MOST_POINTS ? n - MOST_POINTS : 0;

		if (s > first && (points + n - skipped > MOST_POINTS || out->length > MOST_BYTES))
			break;
		points += n - skipped;
		json_line(out);
		put_series(out, &analysis->findings[s], skipped, arena);
	}
	buf_printf(out, "], \"total\": %zu", data->count);
	json_put_text(out, "next", s < data->count ? data->series[s - 1].identity : NULL);
	buf_text(out, "}\n");
	return true;
}

static bool work(struct task *task, struct scratch *scratch, struct error *error)
{
	struct fetch *fetch = task->context;
	struct query *query = &task->query;
	struct analysis analysis;

	return selection_apply(
		       &fetch->selection, task->test->name, query->arena, &query->data, error) &&
	       analysis_run(query->arena, api_of(fetch->fetch.request)->agent->schema, task->test,
		       &query->data, task->companions, NULL, 0, scratch, &analysis, error) &&
	       put_answer(fetch, &analysis, query->arena, error);
}

static void done(struct task *task)
{
	api_fetch_end(task->context, task->failed ? &task->error : NULL);
	task_free(task);
}

/* The points that a first run would read, unless the request names others. */
static void set_query(const struct fetch *fetch, struct task *task)
{
	const struct source *source = source_find(task->test->source->name);
	int64_t range = source_range(source, task->test->options);

	selection_query(&fetch->selection, task->test, &task->query);
	if (fetch->selection.since == WHEN_ALWAYS && range > 0)
		task->query.since = selection_standing_since(task->query.now, range);
	if (fetch->selection.until == WHEN_NEVER && task->test->evaluation_delay > 0)
		task->query.until = task->query.now - task->test->evaluation_delay;
}

/* Into the arena of the task, as the request may be freed before. */
static void read_request(struct form *form, const struct test *test, struct fetch *fetch)
{
	struct selection *selection = &fetch->selection;
	const char *metric = arena_strdup(form->arena, form_get(form, "metric"));

	fetch->after = arena_strdup(form->arena, form_get(form, "after"));
	selection->branch = arena_strdup(form->arena, form_get(form, "branch"));
	if (metric) {
		const char **names = arena_array(form->arena, 1, sizeof *names);

		names[0] = metric;
		selection->metrics = (struct strings){names, 1};
	}
	selection->since = form_date(form, "since", WHEN_ALWAYS);
	selection->until = form_date(form, "until", WHEN_NEVER);
	selection->last = (size_t)form_number(form, "last", 1, LAST_MOST, 0);
	fetch->limit = form_number(form, "limit", 1, MOST, LIMIT);
	if (selection->since > selection->until)
		form_fail(form, "since is after until");
	if (!form->failed)
		form->failed = !selection_check(selection, &test, 1, &form->error);
}

static void begin_fetch(struct http_request *request, const struct test *test)
{
	struct agent *agent = api_of(request)->agent;
	struct task *task = task_new(test, agent_now(agent));
	struct fetch *fetch = arena_alloc(task->query.arena, sizeof *fetch);
	struct form form = api_form(request, task->query.arena);

	*fetch = (struct fetch){.fetch.request = request};
	read_request(&form, test, fetch);
	if (api_wrong(request, &form)) {
		task_free(task);
		return;
	}
	set_query(fetch, task);
	task->work = work;
	task->done = done;
	api_fetch_begin(&fetch->fetch, task);
	fetching_submit(task);
}

void api_get_series(struct http_request *request)
{
	const char *name = http_parameter(request, "test");
	const struct test *test;

	if (!name)
		http_fail(request, 400, "the parameter \"test\" is needed");
	else if ((test = api_fetch_test(request, name)))
		begin_fetch(request, test);
}
