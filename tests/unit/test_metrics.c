/* The agent's metrics as text, and what promtool says of it. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/runtime/metrics_table.h"

static struct buf printed_as(const struct metrics *metrics, enum metrics_format format)
{
	struct buf text = {0};
	metrics_print(metrics, format, &text);
	return text;
}

static struct buf printed(const struct metrics *metrics)
{
	return printed_as(metrics, METRICS_TEXT);
}

static void holds_as(const struct metrics *metrics, enum metrics_format format, const char *line)
{
	struct buf text = printed_as(metrics, format);
	if (!strstr(text.data, line))
		fail_msg("no \"%s\" in:\n%s", line, text.data);
	buf_free(&text);
}

static void holds(const struct metrics *metrics, const char *line)
{
	holds_as(metrics, METRICS_TEXT, line);
}

static void test_counters_and_gauges(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	holds(metrics, "# TYPE hunter_build_info gauge\nhunter_build_info{version=\"" HUNTER_VERSION
		       "\",revision=\"");
	holds(metrics, "\nhunter_missed_runs_total 0\n");
	metrics_count(metrics, METRIC_RUN_FAILURES, "csv", "data");
	metrics_count(metrics, METRIC_RUN_FAILURES, "csv", "data");
	metrics_count(metrics, METRIC_RUN_FAILURES, "csv", "data");
	metrics_count(metrics, METRIC_RUN_FAILURES, "prometheus", "data");
	metrics_set(metrics, METRIC_DELIVERY_QUEUE_LENGTH, 7, "slack");
	metrics_add(metrics, METRIC_DELIVERY_QUEUE_LENGTH, -3.5, "slack");
	metrics_add(metrics, METRIC_DETECTION_SECONDS, 0.25, NULL);
	metrics_set(metrics, METRIC_LAST_PASS, 1795176000.5, NULL);
	metrics_set(metrics, METRIC_CHANGES, HUGE_VAL, "known");
	holds(metrics, "# TYPE hunter_run_failures_total counter\n"
		       "hunter_run_failures_total{source=\"csv\",reason=\"data\"} 3\n"
		       "hunter_run_failures_total{source=\"prometheus\",reason=\"data\"} 1\n");
	holds(metrics, "\nhunter_delivery_queue_length{receiver=\"slack\"} 3.5\n");
	holds(metrics, "\nhunter_detection_seconds_total 0.25\n");
	holds(metrics, "\nhunter_last_run_timestamp_seconds 1795176000.5\n");
	holds(metrics, "\nhunter_changes{state=\"known\"} +Inf\n");
	metrics_free(metrics);
}

static void test_histogram(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	static const double seconds[] = {0.0005, 0.001, 0.002, 0.75, 1, 299, 1000};
	for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
		metrics_observe(metrics, METRIC_RUN_DURATION, seconds[i], "csv");
	holds(metrics, "# TYPE hunter_run_duration_seconds histogram\n"
		       "hunter_run_duration_seconds_bucket{source=\"csv\",le=\"0.001\"} 2\n"
		       "hunter_run_duration_seconds_bucket{source=\"csv\",le=\"0.005\"} 3\n");
	holds(metrics, "le=\"1\"} 5\n");
	holds(metrics, "le=\"60\"} 5\n");
	holds(metrics, "le=\"300\"} 6\n");
	holds(metrics, "le=\"+Inf\"} 7\n"
		       "hunter_run_duration_seconds_sum{source=\"csv\"} 1300.7535\n"
		       "hunter_run_duration_seconds_count{source=\"csv\"} 7\n");
	metrics_free(metrics);
}

static void test_label_values_are_escaped(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	metrics_add(metrics, METRIC_RUNS, 1, "a\"b\\c\nd");
	holds(metrics, "\nhunter_runs_total{source=\"a\\\"b\\\\c\\nd\"} 1\n");
	metrics_free(metrics);
}

static void test_label_sets_are_bounded(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 500; i++) {
			char name[16];
			snprintf(name, sizeof name, "r%d", i);
			metrics_count(metrics, METRIC_DELIVERIES, name, "sent");
		}
	holds(metrics, "{receiver=\"r0\",result=\"sent\"} 2\n");
	holds(metrics, "{receiver=\"r199\",result=\"sent\"} 2\n");
	holds(metrics, "{receiver=\"other\",result=\"other\"} 600\n");
	struct buf text = printed(metrics);
	assert_null(strstr(text.data, "\"r200\""));
	buf_free(&text);
	metrics_free(metrics);
}

static bool is_even(void *context, const char *first)
{
	(*(int *)context)++;
	return (first[strlen(first) - 1] - '0') % 2 == 0;
}

/* What one source is says nothing of another one, however many there are. */
static void test_gauges_are_kept_apart(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	int asked = 0;
	for (int i = 0; i < 300; i++) {
		char name[16];
		snprintf(name, sizeof name, "s%d", i);
		metrics_set(metrics, METRIC_SOURCE_UP, i % 3 == 0, name);
	}
	holds(metrics, "\nhunter_source_up{source=\"s298\"} 0\n");
	holds(metrics, "\nhunter_source_up{source=\"s299\"} 0\n");
	holds(metrics, "\nhunter_source_up{source=\"s297\"} 1\n");
	metrics_retain(metrics, METRIC_SOURCE_UP, is_even, &asked);
	assert_int_equal(asked, 300);
	holds(metrics, "\nhunter_source_up{source=\"s298\"} 0\n");
	struct buf text = printed(metrics);
	assert_null(strstr(text.data, "\"s297\""));
	assert_null(strstr(text.data, "\"other\""));
	buf_free(&text);
	metrics_set(metrics, METRIC_SOURCE_UP, 1, "s297");
	holds(metrics, "\nhunter_source_up{source=\"s297\"} 1\n");
	metrics_free(metrics);
}

static void test_process(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	metrics_collect_process(metrics);
	struct buf text = printed(metrics);
	const char *resident = strstr(text.data, "\nprocess_resident_memory_bytes ");
	const char *started = strstr(text.data, "\nprocess_start_time_seconds ");
	assert_non_null(resident);
	assert_non_null(started);
	double bytes = strtod(strchr(resident, ' '), NULL),
	       begin = strtod(strchr(started, ' '), NULL);
	assert_true(bytes > 500e3 && bytes < 100e9);
	assert_true(begin > 1.5e9 && begin < 1e11);
	buf_free(&text);
	metrics_free(metrics);
}

/* Where OpenMetrics differs: names of counters and infos, units, bounds, the end. */
static void test_openmetrics(void **state)
{
	(void)state;
	struct metrics *metrics = metrics_new();
	const enum metrics_format open = METRICS_OPENMETRICS;
	metrics_add(metrics, METRIC_RUNS, 2, "csv");
	metrics_observe(metrics, METRIC_RUN_DURATION, 0.75, "csv");
	holds_as(metrics, open, "# TYPE hunter_build info\nhunter_build_info{version=");
	holds_as(
		metrics, open, "# TYPE hunter_runs counter\nhunter_runs_total{source=\"csv\"} 2\n");
	holds_as(metrics, open,
		"# TYPE hunter_detection_seconds counter\n# UNIT hunter_detection_seconds seconds\n"
		"hunter_detection_seconds_total 0\n");
	holds_as(metrics, open,
		"# TYPE hunter_run_duration_seconds histogram\n"
		"# UNIT hunter_run_duration_seconds seconds\n");
	holds_as(metrics, open, "{source=\"csv\",le=\"0.5\"} 0\n");
	holds_as(metrics, open, "{source=\"csv\",le=\"1.0\"} 1\n");
	holds_as(metrics, open, "{source=\"csv\",le=\"+Inf\"} 1\n");
	struct buf text = printed_as(metrics, open);
	assert_true(text.length > 6);
	assert_string_equal(text.data + text.length - 6, "# EOF\n");
	assert_null(strstr(text.data, "\n\n"));
	buf_free(&text);
	metrics_free(metrics);
}

/* Each has its line in the table of docs/operate/operations.md, and the table names no other. */
static void test_the_manual_has_each_metric(void **state)
{
	(void)state;
	struct buf page = {0};
	FILE *file = fopen(HUNTER_TEST_DATA "/../docs/operate/operations.md", "r");
	char line[4096];
	size_t rows = 0;
	assert_non_null(file);
	while (fgets(line, sizeof line, file)) {
		buf_text(&page, line);
		rows += strncmp(line, "| `hunter_", 10) == 0 ||
			strncmp(line, "| `process_", 11) == 0;
	}
	fclose(file);
	for (enum metric_id id = 0; id < METRIC_COUNT; id++) {
		char row[256];
		snprintf(row, sizeof row, "\n| `%s`", metric_rows[id].name);
		if (!strstr(page.data, row))
			fail_msg("docs/operate/operations.md has no row for %s",
				metric_rows[id].name);
	}
	assert_int_equal(rows, METRIC_COUNT);
	buf_free(&page);
}

static void test_promtool_finds_nothing_to_say(void **state)
{
	(void)state;
	if (system("command -v promtool >/dev/null") != 0) {
		skip("promtool is not installed (Debian: apt install prometheus)");
	}
	struct metrics *metrics = metrics_new();
	metrics_set(metrics, METRIC_TESTS, 3, NULL);
	metrics_add(metrics, METRIC_RUNS, 1, "csv");
	metrics_count(metrics, METRIC_RUN_FAILURES, "csv", "data");
	metrics_observe(metrics, METRIC_RUN_DURATION, 0.5, "csv");
	metrics_observe(metrics, METRIC_SCHEDULE_LAG, 0.5, NULL);
	metrics_add(metrics, METRIC_POINTS_READ, 1, "csv");
	metrics_set(metrics, METRIC_CHANGES, 1, "known");
	metrics_count(metrics, METRIC_DELIVERIES, "slack", "sent");
	metrics_set(metrics, METRIC_DELIVERY_QUEUE_LENGTH, 1, "slack");
	struct buf text = printed(metrics);
	FILE *promtool = popen("promtool check metrics 2>&1", "w");
	fwrite(text.data, 1, text.length, promtool);
	assert_int_equal(pclose(promtool), 0);
	buf_free(&text);
	metrics_free(metrics);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counters_and_gauges),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_label_values_are_escaped),
		cmocka_unit_test(test_label_sets_are_bounded),
		cmocka_unit_test(test_gauges_are_kept_apart),
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_openmetrics),
		cmocka_unit_test(test_the_manual_has_each_metric),
		cmocka_unit_test(test_promtool_finds_nothing_to_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
