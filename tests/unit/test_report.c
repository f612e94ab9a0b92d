/*
 * Reports: the layout of tables, and each form on small analyses.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/timeline.h"
#include "agent/report/report.h"
#include "agent/report/table.h"
#include "data.h"

struct capture {
	struct arena *arena;
	char *text;
	size_t length;
	FILE *out;
};

static int setup(void **state)
{
	struct capture *capture = calloc(1, sizeof *capture);
	capture->arena = arena_new();
	capture->out = open_memstream(&capture->text, &capture->length);
	*state = capture;
	return 0;
}

static int teardown(void **state)
{
	struct capture *capture = *state;
	fclose(capture->out);
	free(capture->text);
	arena_free(capture->arena);
	free(capture);
	return 0;
}

static void assert_printed(struct capture *capture, const char *expected)
{
	fflush(capture->out);
	assert_string_equal(capture->text, expected);
}

static void widths_count_columns_of_a_terminal(void **state)
{
	(void)state;
	assert_int_equal(text_width(""), 0);
	assert_int_equal(text_width("abc"), 3);
	assert_int_equal(text_width("m\u00e9"), 2);
	assert_int_equal(text_width("e\u0301"), 1);
	assert_int_equal(text_width("\u6027\u80fd"), 4);
	assert_int_equal(text_width("\xff\xfe"), 2);
	assert_int_equal(text_width("a\xe6\x80"), 3);
}

static void texts_of_others_are_cleaned(void **state)
{
	struct capture *capture = *state;
	text_print_padded("\x1b[1m\xff\xe6\x80|", 9, capture->out);
	text_print("\u202ea\n\u00e9\x9b", capture->out);
	assert_printed(capture, " [1m\uFFFD\uFFFD\uFFFD|  a \u00e9\uFFFD");
}

static void numbers_are_told_from_words(void **state)
{
	(void)state;
	static const char *const numbers[] = {
		"0", "-1.5", "+3", ".5", "5.", "1e9", "1.2E-3", "inf", "-INF", "NaN"};
	static const char *const words[] = {
		"", "a", "1.2.3", "1e", "e5", "-", ".", "0x1f", "12a", "infinity", "12e4567"};
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		assert_true(text_is_number(numbers[i]));
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_false(text_is_number(words[i]));
	assert_true(text_is_integer("-12"));
	assert_false(text_is_integer("1.0"));
}

static void full_commits_are_short(void **state)
{
	static const char *const kept[] = {"", "c0029", "0123456789abcdef0123456789abcdef0123456",
		"0123456789abcdef0123456789abcdef0123456g",
		"0123456789abcdef0123456789abcdef012345678"};
	char scratch[TABLE_SCRATCH];

	(void)state;
	assert_string_equal(
		table_commit("0123456789abCDEF0123456789abcdef01234567", scratch), "0123456789ab");
	assert_null(table_commit(NULL, scratch));
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		assert_ptr_equal(table_commit(kept[i], scratch), kept[i]);
}

static void points_stand_below_each_other(void **state)
{
	struct capture *capture = *state;
	static const char *const cells[][3] = {
		{"a", "500.39", "1.887e+07"},
		{"bc\x1b[1m", "496", "2e+07"},
		{NULL, NULL, "inf"},
		{"d", "499.791", "-12"},
	};
	struct table_column columns[] = {{.header = "name"}, {.header = "m", .number = true},
		{.header = "metric", .number = true}};
	struct table table = {.columns = columns, .column_count = 3};

	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		table_measure(&table, cells[i]);
	table_print_header(&table, capture->out);
	for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
		table_print_row(&table, cells[i], capture->out);
	assert_printed(capture, "name          m       metric\n"
				"------  -------  -----------\n"
				"a       500.39     1.887e+07\n"
				"bc [1m  496        2e+07\n"
				"                 inf\n"
				"d       499.791  -12\n");
}

static void headers_without_rows_stand_left(void **state)
{
	struct capture *capture = *state;
	struct table_column columns[] = {{.header = "time"}, {.header = "m1", .number = true}};
	struct table table = {.columns = columns, .column_count = 2};

	table_print_header(&table, capture->out);
	assert_printed(capture, "time    m1\n------  ----\n");
}

/* Six points; both metrics change at the fourth, y in an unknown direction. */
struct sample {
	struct test test;
	struct dataset data;
	struct change changes[2];
	struct findings findings[2];
	struct analysis analysis;
};

/* Levels as its means are, with an interval of 1% to either side. */
static void describe(struct change *change, size_t from, size_t to)
{
	change->level_before = change->mean_before;
	change->level_after = change->mean_after;
	change->size = change_percent(change);
	change->size_low = change->size - 1;
	change->size_high = change->size + 1;
	change->place_from = from;
	change->place_to = to;
}

static struct sample *sample_of(struct arena *arena)
{
	static const char *const commits[] = {"c1", "c2", "c3", "c4", "caf\u00e9, \"5\"", NULL};
	static const char *const versions[] = {NULL, NULL, NULL, NULL, NULL, NULL};
	static const double x[] = {100, 101, 99.5, 120, 121, 120.5};
	const double y[] = {1, 1.5, (double)NAN, 3, 3.25, 3};
	struct sample *sample = arena_alloc(arena, sizeof *sample);
	struct axis *axis = data_axis(arena, 6, NEW_YEAR, DAY);
	data_attribute(arena, axis, "commit", commits);
	data_attribute(arena, axis, "version", versions);
	data_series(arena, &sample->data, axis, "demo.read.x", -1, x);
	data_series(arena, &sample->data, axis, "demo.read.y", 0, y);
	sample->test.name = "demo";
	sample->changes[0] = (struct change){.index = 3,
		.pvalue = 1.5e-5,
		.mean_before = 100,
		.mean_after = 120.5,
		.stddev_before = 0.5,
		.stddev_after = 0.25,
		.count_before = 3,
		.count_after = 3,
		.magnitude = 0.205};
	sample->changes[1] = (struct change){.index = 3,
		.pvalue = 0,
		.mean_before = 1.25,
		.mean_after = 3,
		.stddev_before = 0.5,
		.stddev_after = 0.25,
		.count_before = 2,
		.count_after = 3,
		.magnitude = 1.4};
	describe(&sample->changes[0], 2, 3);
	describe(&sample->changes[1], 3, 3);
	for (size_t s = 0; s < 2; s++)
		sample->findings[s] = (struct findings){.series = &sample->data.series[s],
			.changes = &sample->changes[s],
			.count = 1};
	sample->analysis = (struct analysis){&sample->test, &sample->data, sample->findings};
	return sample;
}

static void print(struct capture *capture, struct report report, size_t times)
{
	struct sample *sample = sample_of(capture->arena);
	report.out = capture->out;
	report_begin(&report);
	for (size_t i = 0; i < times; i++)
		report_test(&report, &sample->analysis, capture->arena);
	report_end(&report);
}

#define DOTS "\u00b7\u00b7\u00b7\u00b7\u00b7"

static void our_table(void **state)
{
	print(*state, (struct report){.output = REPORT_TEXT}, 1);
	assert_printed(*state,
		"demo:\n"
		"time                       commit          x        y\n"
		"-------------------------  ---------  ------  -------\n"
		"2026-01-01 00:00:00 +0000  c1          100       1\n"
		"2026-01-02 00:00:00 +0000  c2          101       1.5\n"
		"2026-01-03 00:00:00 +0000  c3           99.5\n"
		"                                      " DOTS "\u00b7  " DOTS "\u00b7\u00b7\n"
		"                                      +20.5%  +140.0%\n"
		"                                      " DOTS "\u00b7  " DOTS "\u00b7\u00b7\n"
		"2026-01-04 00:00:00 +0000  c4          120       3\n"
		"2026-01-05 00:00:00 +0000  caf\u00e9, \"5\"   121       3.25\n"
		"2026-01-06 00:00:00 +0000              120.5     3\n");
}

static void otavas_table(void **state)
{
	print(*state,
		(struct report){
			.output = REPORT_LOG, .otava = true, .verbose = true, .color = true},
		1);
	assert_printed(*state,
		"time                       commit     version        x     y\n"
		"-------------------------  ---------  ---------  -----  ----\n"
		"2026-01-01 00:00:00 +0000  c1                    100    1\n"
		"2026-01-02 00:00:00 +0000  c2                    101    1.5\n"
		"2026-01-03 00:00:00 +0000  c3                     99.5\n"
		"                                                 " DOTS
		"  \u00b7\u00b7\u00b7\u00b7\n"
		"                                                 +20.5%  +140.0%\n"
		"                                                 " DOTS
		"  \u00b7\u00b7\u00b7\u00b7\n"
		"2026-01-04 00:00:00 +0000  c4                    120    3\n"
		"2026-01-05 00:00:00 +0000  caf\u00e9, \"5\"             121    3.25\n"
		"2026-01-06 00:00:00 +0000                        120.5  3\n");
}

static void pvalues_and_colours(void **state)
{
	struct capture *capture = *state;
	print(capture, (struct report){.output = REPORT_TEXT, .verbose = true, .color = true}, 1);
	fflush(capture->out);
	assert_non_null(strstr(capture->text,
		"\033[31m+20.5%\033[0m  \033[33m+140.0%\033[0m\n"
		"                                      p=1.5e-05      p=0\n"));
}

static void regressions_only(void **state)
{
	print(*state, (struct report){.output = REPORT_REGRESSIONS}, 1);
	print(*state, (struct report){.output = REPORT_REGRESSIONS, .otava = true}, 1);
	assert_printed(*state,
		"Regressions in demo:\n"
		"2026-01-04 00:00:00 +0000\n"
		"    demo.read.x     :\t     100\t-->    120.5\t( +20.5% [19.5, 21.5])\n"
		"Regressions in demo:\n"
		"2026-01-04 00:00:00 +0000\n"
		"    demo.read.x     :\t    100.\t-->     120.\t( +20.5%)\n");
}

/* A trend and the cycles that were removed are said below the table. */
static void remarks_below_the_table(void **state)
{
	struct capture *capture = *state;
	struct sample *sample = sample_of(capture->arena);
	struct report report = {.out = capture->out, .output = REPORT_TEXT};

	sample->changes[0].kind = CHANGE_TREND;
	sample->changes[0].place_from = 1;
	sample->changes[0].place_to = 5;
	sample->findings[1].season =
		(struct season){.cycles = SEASON_DAILY | SEASON_WEEKLY, .explained = 0.834};
	report_begin(&report);
	report_test(&report, &sample->analysis, capture->arena);
	report_end(&report);
	fflush(capture->out);
	assert_non_null(strstr(capture->text,
		"demo.read.x: trend from 100 to 120.5 over 2026-01-02 .. 2026-01-06, +4.1 a "
		"point\n"
		"demo.read.y: daily and weekly cycle removed (83% of the variance)\n"));
}

static void csv(void **state)
{
	const char *const attributes[] = {"commit", "version"};
	print(*state, (struct report){.output = REPORT_CSV, .attributes = {attributes, 2}}, 1);
	assert_printed(*state,
		"test,metric,time,index,forward_change_percent,magnitude,mean_before,mean_after,"
		"stddev_before,"
		"stddev_after,pvalue,regression,commit,version,commit_before,labels,kind,"
		"level_before,level_after,size,size_low,size_high,place_from,place_to,"
		"suspects,suspects_from,suspects_to,accepted\n"
		"demo,demo.read.x,2026-01-04T00:00:00Z,3,20.500000000000007,0.205,100,120.5,0.5,0."
		"25,1.5e-05,yes,c4,,c3,,step,100,120.5,20.500000000000007,"
		"19.500000000000007,21.500000000000007,2026-01-03T00:00:00Z,2026-01-04T00:00:00Z,"
		"2,c2,c4,\n"
		"demo,demo.read.y,2026-01-04T00:00:00Z,3,140,1.4,1.25,3,0.5,0.25,0,no,c4,,c2,,"
		"step,1.25,3,140,139,"
		"141,2026-01-04T00:00:00Z,2026-01-04T00:00:00Z,2,c2,c4,\n");
}

/* A line stays a line, and what it holds does nothing to a terminal. */
static void no_form_has_control_characters(void **state)
{
	struct capture *capture = *state;
	static const char *const evil[] = {"a\x1b[2J", "b\n\xff,\"", NULL};
	for (int output = REPORT_TEXT; output <= REPORT_LOG; output++)
		for (int otava = 0; otava < 2; otava++) {
			struct sample *sample = sample_of(capture->arena);
			struct column *column = &sample->data.series[0].axis->columns[0];
			column->values[3] = evil[0];
			column->values[4] = evil[1];
			sample->changes[1].index = 4;
			sample->test.name = sample->data.series[0].name = "e\x1b]0;\r\xc3";
			struct report report = {
				.out = capture->out, .output = output, .otava = otava > 0};
			report_begin(&report);
			report_test(&report, &sample->analysis, capture->arena);
			report_end(&report);
		}
	fflush(capture->out);
	for (const char *at = capture->text; *at; at++)
		assert_true(*at == '\n' || *at == '\t' || (unsigned char)*at >= 0x20);
	assert_null(strchr(capture->text, '\xff'));
	assert_non_null(strstr(capture->text, ",yes,a [2J,"));
	assert_non_null(strstr(capture->text, ",no,\"b \uFFFD,\"\"\","));
	assert_non_null(strstr(capture->text, "Regressions in e ]0; \uFFFD:\n"));
}

static void otavas_json(void **state)
{
	print(*state, (struct report){.output = REPORT_JSON, .otava = true}, 1);
	assert_printed(*state,
		"{\"demo\": [{\"time\": 1767484800, \"attributes\": {\"commit\": \"c4\", "
		"\"version\": null}, "
		"\"changes\": [{\"metric\": \"demo.read.x\", \"index\": 3, \"time\": 1767484800, "
		"\"forward_change_percent\": \"21\", \"magnitude\": \"0.205000\", \"mean_before\": "
		"\"100.000000\", "
		"\"stddev_before\": \"0.500000\", \"mean_after\": \"120.500000\", "
		"\"stddev_after\": \"0.250000\", "
		"\"pvalue\": \"0.000015\"}, {\"metric\": \"demo.read.y\", \"index\": 3, \"time\": "
		"1767484800, "
		"\"forward_change_percent\": \"140\", \"magnitude\": \"1.400000\", "
		"\"mean_before\": \"1.250000\", "
		"\"stddev_before\": \"0.500000\", \"mean_after\": \"3.000000\", \"stddev_after\": "
		"\"0.250000\", "
		"\"pvalue\": \"0.000000\"}]}]}\n");
}

static void our_json(void **state)
{
	struct capture *capture = *state;
	struct report report = {.out = capture->out, .output = REPORT_JSON};
	struct sample *sample = sample_of(capture->arena);
	sample->findings[1].count = 0;
	report_begin(&report);
	report_test(&report, &sample->analysis, capture->arena);
	report_failure(&report, "other", "no \"file\"");
	report_end(&report);
	assert_printed(capture,
		"{\"tests\": [\n"
		"  {\"name\": \"demo\", \"metrics\": [\n"
		"  {\"name\": \"demo.read.x\", \"direction\": -1, \"unit\": null, \"points\": 6, "
		"\"missing\": 0},\n"
		"  {\"name\": \"demo.read.y\", \"direction\": 0, \"unit\": null, \"points\": 6, "
		"\"missing\": 1}],\n"
		"   \"changes\": [\n"
		"  {\"metric\": \"demo.read.x\", \"index\": 3, \"time\": "
		"\"2026-01-04T00:00:00Z\", "
		"\"timestamp\": 1767484800, \"attributes\": {\"commit\": \"c4\"}, "
		"\"attributes_before\": {\"commit\": \"c3\"}, \"commit_before\": \"c3\", "
		"\"labels\": {}, \"suspects\": {\"from\": \"c2\", \"to\": \"c4\", \"count\": 2, "
		"\"list\": [{\"commit\": \"c3\", \"version\": null, "
		"\"time\": \"2026-01-03T00:00:00Z\", \"not_before\": \"2026-01-02T00:00:00Z\", "
		"\"age_seconds\": 86400}, {\"commit\": \"c4\", \"version\": null, "
		"\"time\": \"2026-01-04T00:00:00Z\", \"not_before\": \"2026-01-03T00:00:00Z\", "
		"\"age_seconds\": 0}], \"since\": \"2026-01-02T00:00:00Z\", "
		"\"until\": \"2026-01-04T00:00:00Z\", \"last\": {\"commit\": \"c2\", \"version\": "
		"null, "
		"\"time\": \"2026-01-02T00:00:00Z\", \"not_before\": \"2026-01-01T00:00:00Z\", "
		"\"age_seconds\": 172800}}, \"explained_by\": null, \"relative_to\": null, "
		"\"other_changed\": null, \"other_size\": null, "
		"\"forward_change_percent\": 20.500000000000007, \"magnitude\": 0.205, "
		"\"mean_before\": 100, "
		"\"mean_after\": 120.5, \"stddev_before\": 0.5, \"stddev_after\": 0.25, "
		"\"count_before\": 3, "
		"\"count_after\": 3, \"pvalue\": 1.5e-05, \"regression\": true, \"kind\": "
		"\"step\", \"level_before\": 100, \"level_after\": 120.5, \"size\": "
		"20.500000000000007, \"size_low\": 19.500000000000007, \"size_high\": "
		"21.500000000000007, \"place_from\": \"2026-01-03T00:00:00Z\", \"place_to\": "
		"\"2026-01-04T00:00:00Z\"}]}\n"
		"], \"accepted\": 0, \"failed\": [{\"name\": \"other\", \"error\": \"no "
		"\\\"file\\\"\"}]}\n");
}

/* Two axes: days 0 1 2 and 1 2 3, with day 2 twice on the second. */
static void axes_are_merged_by_time(void **state)
{
	struct capture *capture = *state;
	static const double x[] = {1, 2, 3}, y[] = {10, 20, 21, 30};
	struct sample *sample = arena_alloc(capture->arena, sizeof *sample);
	struct axis *first = data_axis(capture->arena, 3, NEW_YEAR, DAY);
	struct axis *second = data_axis(capture->arena, 4, NEW_YEAR + DAY, DAY);
	second->times[2] = second->times[1];
	second->times[3] = NEW_YEAR + 3 * DAY;
	data_series(capture->arena, &sample->data, first, "x", 1, x);
	data_series(capture->arena, &sample->data, second, "y{host=\"a.b\"}", 1, y);
	sample->test.name = "two";
	sample->changes[0] = (struct change){.index = 2, .mean_before = 10, .mean_after = 20};
	describe(&sample->changes[0], 2, 2);
	sample->findings[0] = (struct findings){.series = &sample->data.series[0]};
	sample->findings[1] = (struct findings){
		.series = &sample->data.series[1], .changes = sample->changes, .count = 1};
	sample->analysis = (struct analysis){&sample->test, &sample->data, sample->findings};
	struct report report = {.out = capture->out, .output = REPORT_TEXT};
	report_begin(&report);
	report_test(&report, &sample->analysis, capture->arena);
	report_end(&report);
	assert_printed(capture,
		"two:\n"
		"time                         x    y{host=\"a.b\"}\n"
		"-------------------------  ---  ---------------\n"
		"2026-01-01 00:00:00 +0000    1\n"
		"2026-01-02 00:00:00 +0000    2               10\n"
		"2026-01-03 00:00:00 +0000    3               20\n"
		"                                \u00b7\u00b7\u00b7" DOTS DOTS "\u00b7\u00b7\n"
		"                                        +100.0%\n"
		"                                \u00b7\u00b7\u00b7" DOTS DOTS "\u00b7\u00b7\n"
		"2026-01-03 00:00:00 +0000                    21\n"
		"2026-01-04 00:00:00 +0000                    30\n");
}

static void an_empty_selection_is_said(void **state)
{
	struct capture *capture = *state;
	struct sample *sample = arena_alloc(capture->arena, sizeof *sample);
	sample->test.name = "none";
	data_series(
		capture->arena, &sample->data, data_axis(capture->arena, 0, 0, DAY), "m", 1, NULL);
	sample->findings[0].series = sample->data.series;
	sample->analysis = (struct analysis){&sample->test, &sample->data, sample->findings};
	struct report report = {.out = capture->out, .output = REPORT_TEXT};
	report_begin(&report);
	report_test(&report, &sample->analysis, capture->arena);
	report_end(&report);
	assert_printed(capture, "none:\nno data in the selected range\n");
}

static void direction_decides_what_is_worse(void **state)
{
	struct capture *capture = *state;
	struct sample *sample = sample_of(capture->arena);
	struct series *series = &sample->data.series[0];
	struct metric metric = *series->metric;
	series->metric = &metric;
	assert_true(change_is_regression(series, &sample->changes[0]));
	metric.direction = 1;
	assert_false(change_is_regression(series, &sample->changes[0]));
	sample->findings[1].count = 0;
	assert_false(analysis_has_regression(&sample->analysis));
	metric.direction = 0;
	assert_false(analysis_has_regression(&sample->analysis));
	metric.direction = -1;
	assert_true(analysis_has_regression(&sample->analysis));
}

/* Series of many axes, each with times of its own: raw samples of as many instances. */
static void rows_cost_no_memory(void **state)
{
	struct capture *capture = *state;
	enum { AXES = 60, POINTS = 100 };
	struct arena *arena = capture->arena;
	struct test test = {.name = "raw"};
	struct dataset data = {arena_array(arena, AXES, sizeof *data.series), AXES};
	struct findings *findings = arena_array(arena, AXES, sizeof *findings);
	struct change change = {.index = 50, .mean_before = 1, .mean_after = 2, .pvalue = 0.001};
	describe(&change, 50, 50);
	const struct metric metric = {.name = "s", .direction = -1};
	double values[POINTS] = {0};
	for (int i = 0; i < AXES; i++) {
		struct dataset one = {&data.series[i], 0};
		struct axis *axis = data_axis(arena, POINTS, 1700000000000 + i, 1000);
		data_series(arena, &one, axis, arena_printf(arena, "s%d", i), 0, values);
		data.series[i].metric = &metric;
		findings[i] = (struct findings){
			.series = &data.series[i], .changes = &change, .count = 1};
	}
	struct analysis analysis = {&test, &data, findings};
	size_t before = arena_size(arena);
	for (int output = REPORT_TEXT; output <= REPORT_REGRESSIONS; output++) {
		struct report report = {.out = capture->out, .output = output};
		report_begin(&report);
		report_test(&report, &analysis, arena);
		report_end(&report);
	}
	fflush(capture->out);
	assert_in_range(arena_size(arena) - before, 0, 500000); /* rows x axes would be 3 MB */

	/* The rows of the changes, in order. */
	const char *at = strstr(capture->text, "Regressions in raw:");
	assert_non_null(at);
	for (int i = 0; i < AXES; i++) {
		char line[64];
		snprintf(line, sizeof line, "2023-11-14 22:14:10 +0000\n    s%d ", i);
		assert_non_null(at = strstr(at, line));
	}
}

/* Points of one time on one axis are rows of their own; those of two axes share them in order. */
static void rows_of_one_time(void **state)
{
	struct capture *capture = *state;
	struct arena *arena = capture->arena;
	static const double values[] = {1, 2, 3};
	struct dataset data = {arena_array(arena, 8, sizeof *data.series), 0};
	struct axis *a = data_axis(arena, 3, 1000, 0), *b = data_axis(arena, 2, 1000, 1000);
	data_series(arena, &data, a, "a", 0, values);
	data_series(arena, &data, b, "b", 0, values);
	static const char *const commits[] = {NULL, "second", "third"};
	data_attribute(arena, a, "commit", commits);
	struct timeline timeline = timeline_of(arena, &data);
	struct cursor cursor = cursor_of(arena, &timeline);
	static const struct {
		struct moment moment;
		double a, b;
		const char *commit;
	} rows[] = {{{1000, 0}, 1, 1, NULL}, {{1000, 1}, 2, (double)NAN, "second"},
		{{1000, 2}, 3, (double)NAN, "third"}, {{2000, 0}, (double)NAN, 2, NULL}};
	for (int pass = 0; pass < 2; pass++, cursor_rewind(&cursor)) {
		for (size_t i = 0; i < 4; i++) {
			assert_true(cursor_next(&cursor));
			assert_int_equal(moment_compare(&cursor.moment, &rows[i].moment), 0);
			double of_a = cursor_value(&cursor, &data.series[0], 0);
			double of_b = cursor_value(&cursor, &data.series[1], 1);
			assert_true(of_a == rows[i].a || (isnan(of_a) && isnan(rows[i].a)));
			assert_true(of_b == rows[i].b || (isnan(of_b) && isnan(rows[i].b)));
			assert_ptr_equal(cursor_attribute(&cursor, "commit"), rows[i].commit);
			assert_null(cursor_attribute(&cursor, "version"));
		}
		assert_false(cursor_next(&cursor));
	}
}

/* Two nights; a and b are measured at midnight on commits of their own, c knows none, d is b's.
 * Each changes on the second night. */
static struct analysis of_many_commits(struct arena *arena, struct test *test)
{
	static const char *const commits[][2] = {{"a0", "a1"}, {"b0", "b1"}, {NULL, NULL}};
	static const char *const names[] = {"a", "b", "c", "d"};
	static const double values[] = {1, 2};
	struct dataset *data = arena_alloc(arena, sizeof *data);
	struct findings *findings = arena_array(arena, 4, sizeof *findings);
	struct change *change = arena_alloc(arena, sizeof *change);
	*change = (struct change){.index = 1, .mean_before = 1, .mean_after = 2};
	describe(change, 1, 1);
	for (size_t s = 0; s < 4; s++) {
		struct axis *axis = data_axis(arena, 2, NEW_YEAR, DAY);
		if (s != 2)
			data_attribute(arena, axis, "commit", commits[s == 3 ? 1 : s]);
		data_series(arena, data, axis, names[s], -1, values);
		findings[s] = (struct findings){
			.series = &data->series[s], .changes = change, .count = 1};
	}
	test->name = "nightly";
	return (struct analysis){test, data, findings};
}

static char *reported(struct capture *capture, struct report report)
{
	struct test test = {0};
	struct analysis analysis = of_many_commits(capture->arena, &test);
	report.out = capture->out;
	report_begin(&report);
	report_test(&report, &analysis, capture->arena);
	report_end(&report);
	fflush(capture->out);
	return capture->text;
}

static void commits_of_one_time_are_told_apart(void **state)
{
	reported(*state, (struct report){.output = REPORT_TEXT});
	assert_printed(*state,
		"nightly:\n"
		"time                       commit          a        b        c        d\n"
		"-------------------------  --------  -------  -------  -------  -------\n"
		"2026-01-01 00:00:00 +0000  a0              1                 1\n"
		"2026-01-01 00:00:00 +0000  b0                       1                 1\n"
		"                                     " DOTS "\u00b7\u00b7           " DOTS
		"\u00b7\u00b7\n"
		"                                     +100.0%           +100.0%\n"
		"                                     " DOTS "\u00b7\u00b7           " DOTS
		"\u00b7\u00b7\n"
		"2026-01-02 00:00:00 +0000  a1              2                 2\n"
		"                                              " DOTS "\u00b7\u00b7           " DOTS
		"\u00b7\u00b7\n"
		"                                              +100.0%           +100.0%\n"
		"                                              " DOTS "\u00b7\u00b7           " DOTS
		"\u00b7\u00b7\n"
		"2026-01-02 00:00:00 +0000  b1                       2                 2\n");
}

/* In the order of the rows: a, c, b, d. */
static void a_change_has_the_attributes_of_its_series(void **state)
{
	static const char *const json[] = {"\"metric\": \"a\"",
		"\"attributes\": {\"commit\": \"a1\"}", "\"metric\": \"c\"", "\"attributes\": {}",
		"\"metric\": \"b\"", "\"commit\": \"b1\"", "\"metric\": \"d\"",
		"\"commit\": \"b1\""};
	const char *at = reported(*state, (struct report){.output = REPORT_JSON});
	for (size_t i = 0; i < sizeof json / sizeof *json; i++)
		assert_non_null(at = strstr(at, json[i]));
}

static void a_line_of_csv_has_the_attributes_of_its_series(void **state)
{
	const char *const commit = "commit";
	static const char *const lines[] = {"nightly,a,", ",yes,a1,", "nightly,c,", ",yes,,",
		"nightly,b,", ",yes,b1,", "nightly,d,", ",yes,b1,"};
	const char *at =
		reported(*state, (struct report){.output = REPORT_CSV, .attributes = {&commit, 1}});
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_non_null(at = strstr(at, lines[i]));
}

static void otavas_groups_have_one_commit(void **state)
{
	static const char *const json[] = {"\"attributes\": {\"commit\": \"a1\"}",
		"\"metric\": \"a\"", "\"metric\": \"c\"", "\"attributes\": {\"commit\": \"b1\"}",
		"\"metric\": \"b\"", "\"metric\": \"d\""};
	const char *at = reported(*state, (struct report){.output = REPORT_JSON, .otava = true});
	for (size_t i = 0; i < sizeof json / sizeof *json; i++)
		assert_non_null(at = strstr(at, json[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths_count_columns_of_a_terminal),
		cmocka_unit_test_setup_teardown(texts_of_others_are_cleaned, setup, teardown),
		cmocka_unit_test(numbers_are_told_from_words),
		cmocka_unit_test(full_commits_are_short),
		cmocka_unit_test_setup_teardown(points_stand_below_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(headers_without_rows_stand_left, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_cost_no_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(rows_of_one_time, setup, teardown),
		cmocka_unit_test_setup_teardown(
			commits_of_one_time_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_change_has_the_attributes_of_its_series, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_line_of_csv_has_the_attributes_of_its_series, setup, teardown),
		cmocka_unit_test_setup_teardown(otavas_groups_have_one_commit, setup, teardown),
		cmocka_unit_test_setup_teardown(our_table, setup, teardown),
		cmocka_unit_test_setup_teardown(otavas_table, setup, teardown),
		cmocka_unit_test_setup_teardown(pvalues_and_colours, setup, teardown),
		cmocka_unit_test_setup_teardown(regressions_only, setup, teardown),
		cmocka_unit_test_setup_teardown(remarks_below_the_table, setup, teardown),
		cmocka_unit_test_setup_teardown(csv, setup, teardown),
		cmocka_unit_test_setup_teardown(no_form_has_control_characters, setup, teardown),
		cmocka_unit_test_setup_teardown(otavas_json, setup, teardown),
		cmocka_unit_test_setup_teardown(our_json, setup, teardown),
		cmocka_unit_test_setup_teardown(axes_are_merged_by_time, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_selection_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(direction_decides_what_is_worse, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
