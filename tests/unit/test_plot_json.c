/* Plots as JSON, and with fewer points. */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/buf.h"
#include "agent/report/plot.h"
#include "agent/report/plot_view.h"

enum { POINTS = 20000, COLUMNS = 100 };

static int64_t times[POINTS];
static double values[POINTS];
static const char *commits[POINTS];

static struct plot_line make_line(struct column *column)
{
	for (size_t i = 0; i < POINTS; i++) {
		times[i] = 1000 * (int64_t)i;
		values[i] = (double)(i % 7);
		commits[i] = i % 3 == 0 ? NULL : i < POINTS / 2 ? "old" : "\"new\"\n";
	}
	*column = (struct column){"commit", commits};
	return (struct plot_line){.name = "a \"name\"\x01",
		.n = POINTS,
		.total = POINTS,
		.times = times,
		.values = values,
		.columns = column,
		.column_count = 1};
}

static size_t index_of(const struct plot_line *line, double value)
{
	size_t i = 0;

	while (i < line->n && line->values[i] != value)
		i++;
	return i;
}

static void test_no_spike_is_hidden(void **state)
{
	struct arena *arena = arena_new();
	struct column column;
	struct plot_line line = make_line(&column);
	struct plot plot = {.lines = &line, .line_count = 1};
	size_t at;

	(void)state;
	values[12346] = 500;
	values[777] = -500;
	values[15000] = (double)NAN;
	plot_reduce(arena, &plot, COLUMNS);
	assert_in_range(plot.lines[0].n, COLUMNS, 4 * (COLUMNS + 1) + 1);
	at = index_of(&plot.lines[0], 500);
	assert_true(at < plot.lines[0].n && plot.lines[0].times[at] == 12346000);
	assert_string_equal(plot.lines[0].columns[0].values[at], "\"new\"\n");
	assert_true(index_of(&plot.lines[0], -500) < plot.lines[0].n);
	assert_int_equal(plot.lines[0].times[0], 0);
	assert_int_equal(plot.lines[0].times[plot.lines[0].n - 1], times[POINTS - 1]);
	for (at = 0; at < plot.lines[0].n && !isnan(plot.lines[0].values[at]); at++)
		;
	assert_int_equal(plot.lines[0].times[at], 15000000); /* the line stays interrupted */
	for (size_t i = 1; i < plot.lines[0].n; i++)
		assert_true(plot.lines[0].times[i] > plot.lines[0].times[i - 1]);
	arena_free(arena);
}

static void test_a_part_has_its_own_columns(void **state)
{
	struct arena *arena = arena_new();
	struct column column;
	struct plot_line line = make_line(&column);
	struct plot plot = {.lines = &line,
		.line_count = 1,
		.from = 1000 * INT64_C(10000),
		.to = 1000 * INT64_C(10100)};
	size_t inside = 0;

	(void)state;
	plot_reduce(arena, &plot, COLUMNS);
	for (size_t i = 0; i < plot.lines[0].n; i++)
		inside += plot.lines[0].times[i] >= plot.from && plot.lines[0].times[i] < plot.to;
	assert_in_range(inside, 90, 100); /* as good as all, and the rest coarser */
	assert_in_range(plot.lines[0].n, 1000, POINTS);
	arena_free(arena);
}

static void test_few_points_stay(void **state)
{
	struct arena *arena = arena_new();
	struct column column;
	struct plot_line line = make_line(&column);
	struct plot plot = {.lines = &line, .line_count = 1};

	(void)state;
	plot_reduce(arena, &plot, POINTS);
	assert_int_equal(plot.lines[0].n, POINTS);
	line.n = 0;
	plot_reduce(arena, &(struct plot){.lines = &line, .line_count = 1}, 1);
	plot_reduce(arena, &(struct plot){0}, 10);
	arena_free(arena);
}

static void test_json(void **state)
{
	static const struct plot_change changes[] = {{.id = 7,
							     .source = PLOT_LOST,
							     .time = 5000,
							     .before = 1,
							     .after = (double)INFINITY,
							     .size = (double)NAN,
							     .verdict = -1,
							     .triage = TRIAGE_INFRA},
		{.source = PLOT_FRESH, .time = 6000, .triage = TRIAGE_OPEN}};
	static const struct plot_span span = {PLOT_SILENCE, 1000, 2000, "by </script>"};
	struct column column;
	struct plot_line line = make_line(&column);
	struct plot plot = {
		.title = "t", .lines = &line, .line_count = 1, .spans = &span, .span_count = 1};
	struct buf out = {0};
	json_t *made, *first;

	(void)state;
	line.n = 5;
	line.changes = changes;
	line.change_count = 2;
	values[2] = (double)NAN;
	plot_put_json(&out, &plot);
	made = json_loads(out.data, 0, NULL);
	assert_non_null(made);
	first = json_array_get(json_object_get(made, "lines"), 0);
	assert_int_equal(json_array_size(json_object_get(first, "times")), 5);
	assert_true(json_is_null(json_array_get(json_object_get(first, "values"), 2)));
	first = json_object_get(json_object_get(first, "attributes"), "commit");
	assert_int_equal(json_array_size(json_object_get(first, "values")), 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(first, "at"), 0)), -1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(first, "at"), 4)), 0);
	first = json_object_get(json_array_get(json_object_get(made, "lines"), 0), "changes");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(first, 0), "source")), "lost");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(first, 0), "triage")), "infra");
	assert_true(json_is_null(json_object_get(json_array_get(first, 0), "after")));
	assert_true(json_is_null(json_object_get(json_array_get(first, 1), "id")));
	json_decref(made);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_spike_is_hidden),
		cmocka_unit_test(test_a_part_has_its_own_columns),
		cmocka_unit_test(test_few_points_stay),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
