/*
 * Selection: dates, exclusive flags, metrics that are known or not, and cutting datasets.
 */
#include "unit.h"

#include "agent/analysis/select.h"
#include "agent/analysis/timeline.h"
#include "agent/base/when.h"
#include "data.h"

#define NOW (NEW_YEAR + 100 * DAY)

static int setup(void **state)
{
	*state = arena_new();
	return 0;
}

static int teardown(void **state)
{
	arena_free(*state);
	return 0;
}

static struct selection resolved(const struct selection_flags *flags)
{
	struct selection selection;
	struct error error;
	if (!selection_resolve(flags, NOW, &selection, &error))
		fail_msg("%s", error.text);
	return selection;
}

static void assert_refused(const struct selection_flags *flags, const char *why)
{
	struct selection selection;
	struct error error;
	assert_false(selection_resolve(flags, NOW, &selection, &error));
	assert_int_equal(error.kind, ERROR_USAGE);
	if (!strstr(error.text, why))
		fail_msg("\"%s\" does not say \"%s\"", error.text, why);
}

static void resolves_dates(void **state)
{
	(void)state;
	struct selection all = resolved(&(struct selection_flags){0});
	assert_true(all.since == WHEN_ALWAYS && all.until == WHEN_NEVER && all.last == 0);
	struct selection days = resolved(&(struct selection_flags){.since = "10 days ago"});
	assert_int_equal(days.since, NOW - 10 * DAY);
	struct selection same =
		resolved(&(struct selection_flags){.since = "2026-01-02", .until = "2026-01-02"});
	assert_int_equal(same.since, same.until);
	assert_null(resolved(&(struct selection_flags){.branch = ""}).branch);
}

static void refuses_impossible_flags(void **state)
{
	(void)state;
	assert_refused(&(struct selection_flags){.since = "notadate"}, "since");
	assert_refused(&(struct selection_flags){.until = "2026-13-01"}, "until");
	assert_refused(&(struct selection_flags){.since = "2026-01-05", .until = "2026-01-03"},
		"--since 2026-01-05 00:00:00 +0000 is after --until 2026-01-03 00:00:00 +0000");
	assert_refused(&(struct selection_flags){.since = "2026-01-05", .since_commit = "a"},
		"--since-commit");
	assert_refused(&(struct selection_flags){.until_version = "1", .until_commit = "a"},
		"--until-version");
}

static const struct metric two_metrics[] = {{.name = "p90"}, {.name = "p99"}};
static const struct plugin file_source = {.name = "csv"};
static const struct plugin server_source = {
	.name = "prometheus", .server_size = 8, .endpoint = true};

static struct test test_of(const struct plugin *source, const char *name)
{
	return (struct test){
		.name = name, .source = source, .metrics = two_metrics, .metric_count = 2};
}

static void checks_metrics_against_all_tests(void **state)
{
	(void)state;
	struct test file = test_of(&file_source, "file"),
		    server = test_of(&server_source, "server");
	const struct test *tests[] = {&file, &server};
	const char *const wrong[] = {"p9"}, *const right[] = {"p99", "p90"};
	struct selection selection = {.metrics = {wrong, 1}};
	struct error error;

	assert_false(selection_check(&selection, tests, 1, &error));
	assert_string_equal(error.text, "test \"file\": no metric \"p9\" (did you mean \"p90\"?)");
	assert_int_equal(error.kind, ERROR_USAGE);
	assert_false(selection_matches(&selection, &file));
	/* A server may find metrics that the configuration does not name. */
	assert_true(selection_check(&selection, tests, 2, &error));
	assert_true(selection_matches(&selection, &server));

	selection.metrics = (struct strings){right, 2};
	assert_true(selection_check(&selection, tests, 1, &error));
	assert_true(selection_matches(&selection, &file));
}

static void fills_the_query(void **state)
{
	struct test file = test_of(&file_source, "file"),
		    server = test_of(&server_source, "server");
	const char *const names[] = {"p99"};
	struct selection selection =
		resolved(&(struct selection_flags){.branch = "dev", .metrics = {names, 1}});
	struct query query = {
		.arena = *state, .now = NOW, .metrics = two_metrics, .metric_count = 2};

	selection_query(&selection, &file, &query);
	assert_true(query.since == WHEN_ALWAYS && query.until == WHEN_NEVER);
	assert_string_equal(query.branch, "dev");
	assert_int_equal(query.metric_count, 1);
	assert_string_equal(query.metrics[0].name, "p99");

	selection_query(&selection, &server, &query);
	assert_int_equal(query.since, NOW - 365 * DAY);

	static const struct field range[] = {{.name = "range", .type = FIELD_DURATION}, {0}};
	static const struct plugin ranged = {
		.name = "prometheus", .fields = range, .server_size = 8, .endpoint = true};
	server = test_of(&ranged, "server");
	selection_query(&selection, &server, &query);
	assert_true(query.since == WHEN_ALWAYS);
}

/* Ten points with commits a a b b - c c b - d on one axis, and a series on another that starts two
 * days later. */
static struct dataset sample(struct arena *arena)
{
	static const char *const commits[] = {"a", "a", "b", "b", NULL, "c", "c", "b", NULL, "d"};
	static const double values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
	struct dataset data = {0};
	struct axis *axis = data_axis(arena, 10, NEW_YEAR, DAY);
	struct axis *other = data_axis(arena, 10, NEW_YEAR + 2 * DAY, DAY);
	data_attribute(arena, axis, "commit", commits);
	data_series(arena, &data, axis, "x", 1, values);
	data_series(arena, &data, axis, "y", 1, values);
	data_series(arena, &data, other, "z", 1, values);
	return data;
}

static void assert_range(const struct series *series, double first, double last)
{
	assert_true(series->axis->n > 0);
	assert_true(series->values[0] == first);
	assert_true(series->values[series->axis->n - 1] == last);
	assert_int_equal(series->axis->n, (size_t)(last - first) + 1);
}

static void cuts_at_commits(void **state)
{
	struct dataset data = sample(*state);
	struct selection selection =
		resolved(&(struct selection_flags){.since_commit = "b", .until_commit = "c"});
	struct error error;
	assert_true(selection_apply(&selection, "t", *state, &data, &error));
	assert_range(&data.series[0], 2, 6);
	assert_range(&data.series[1], 2, 6);
	assert_string_equal(data.series[0].axis->columns[0].values[0], "b");
	/* The other axis knows no commits: it is cut at the times of those that do. */
	assert_range(&data.series[2], 0, 4);
}

static void cuts_the_last_points(void **state)
{
	struct dataset data = sample(*state);
	struct selection selection =
		resolved(&(struct selection_flags){.until_commit = "b", .last = 3});
	struct error error;
	assert_true(selection_apply(&selection, "t", *state, &data, &error));
	assert_range(&data.series[0], 5, 7);
	assert_range(&data.series[2], 3, 5);
}

static void names_what_is_missing(void **state)
{
	struct dataset data = sample(*state);
	struct selection selection = resolved(&(struct selection_flags){.since_commit = "zzz"});
	struct error error;
	assert_false(selection_apply(&selection, "t", *state, &data, &error));
	assert_int_equal(error.kind, ERROR_DATA);
	assert_string_equal(
		error.text, "test \"t\": no point in the selected range has commit \"zzz\"");

	selection = resolved(&(struct selection_flags){.until_version = "1"});
	assert_false(selection_apply(&selection, "t", *state, &data, &error));
	assert_non_null(strstr(error.text, "no attribute \"version\""));

	const char *const names[] = {"w"};
	selection = resolved(&(struct selection_flags){.metrics = {names, 1}});
	assert_false(selection_apply(&selection, "t", *state, &data, &error));
	assert_int_equal(error.kind, ERROR_USAGE);
	assert_string_equal(error.text, "test \"t\": no metric \"w\"");
}

static void keeps_metrics_in_the_order_asked(void **state)
{
	struct dataset data = sample(*state);
	const char *const names[] = {"z", "x", "unknown"};
	struct selection selection = resolved(&(struct selection_flags){.metrics = {names, 3}});
	struct error error;
	assert_true(selection_apply(&selection, "t", *state, &data, &error));
	assert_int_equal(data.count, 2);
	assert_string_equal(data.series[0].name, "z");
	assert_string_equal(data.series[1].name, "x");
}

static void empty_data_is_no_crash(void **state)
{
	struct dataset data = {0};
	struct selection selection = resolved(&(struct selection_flags){.last = 3});
	struct error error;
	assert_true(selection_apply(&selection, "t", *state, &data, &error));
	selection = resolved(&(struct selection_flags){.since_commit = "a"});
	assert_false(selection_apply(&selection, "t", *state, &data, &error));
}

/* Every hour for 120 days: never less than the range, never more than half of it in addition, and a
 * new start once in half a range only. */
static void a_sliding_range_stands_still(void **state)
{
	const int64_t range = 30 * DAY;
	int64_t last = 0;
	int moves = 0;

	(void)state;
	for (int64_t now = NOW; now < NOW + 120 * DAY; now += DAY / 24) {
		int64_t since = selection_standing_since(now, range);

		assert_true(now - since >= range && now - since < range + range / 2);
		assert_true(since >= last);
		moves += since != last;
		last = since;
	}
	assert_true(moves >= 8 && moves <= 9);
	assert_int_equal(selection_standing_since(NOW, 1), NOW - 1);
	assert_int_equal(selection_standing_since(1000, 4000), -4000);
	assert_int_equal(selection_standing_since(1001, 4000), -4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resolves_dates),
		cmocka_unit_test(refuses_impossible_flags),
		cmocka_unit_test(checks_metrics_against_all_tests),
		cmocka_unit_test_setup_teardown(fills_the_query, setup, teardown),
		cmocka_unit_test_setup_teardown(cuts_at_commits, setup, teardown),
		cmocka_unit_test_setup_teardown(cuts_the_last_points, setup, teardown),
		cmocka_unit_test_setup_teardown(names_what_is_missing, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_metrics_in_the_order_asked, setup, teardown),
		cmocka_unit_test(a_sliding_range_stands_still),
		cmocka_unit_test_setup_teardown(empty_data_is_no_crash, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
