/*
 * Histogram logs: rounds of tags, times from the comments, and what is refused.
 */
#include "unit.h"
#include <stdio.h>

#include "tests/unit/filequery.h"

#define ROW(tag, start, count, max)                                                                \
	"Tag=" tag "," start ",1.5," count ",1,2,3,4,5,6,7,8,9,10," max "\n"

static int setup(void **state)
{
	return filequery_setup(state, &histostat_source, histostat_parse);
}

static void names_metrics(void **state)
{
	struct filequery *f = *state;

	accept(f,
		"#[StartTime: 1000000000.5 (seconds since epoch), Thu Apr 07 17:25:25 UTC "
		"2022]\n" ROW("a.b", "2.25", "7", "11"),
		"1000000002750:7,1,2,3,4,5,6,7,8,9,10,11");
	static const char *const names[] = {"a.b.count", "a.b.min", "a.b.p25", "a.b.p50", "a.b.p75",
		"a.b.p90", "a.b.p95", "a.b.p98", "a.b.p99", "a.b.p999", "a.b.p9999", "a.b.max"};
	for (size_t i = 0; i < 12; i++) {
		assert_string_equal(f->query.data.series[i].name, names[i]);
		assert_int_equal(f->query.data.series[i].metric->direction, i == 0 ? 1 : -1);
	}
}

/* b misses the second round, c comes late, a's time is the round's. */
static void rounds(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "a.count", 1);
	filequery_metric(f, "b.count", 10);
	filequery_metric(f, "c.max", 1);
	accept(f,
		"#[StartTime: 1000000000]\n" ROW("a", "1", "1", "0") ROW("b", "1.2", "2", "0")
			ROW("a", "2", "3", "0") ROW("c", "2.3", "4", "9") ROW("a", "3", "5", "0")
				ROW("b", "3.2", "", "0"),
		"1000000001000:1,20,nan 1000000002000:3,nan,9 1000000003000:5,nan,nan");
	f->query.since = 1000000002000;
	f->query.until = 1000000003000;
	accept(f,
		"#[StartTime: 1000000000]\n" ROW("a", "1", "1", "0") ROW("b", "1.2", "2", "0")
			ROW("a", "2", "3", "0") ROW("b", "2.3", "4", "9") ROW("a", "3", "5", "0")
				ROW("b", "3.2", "", "0"),
		"1000000002000:3,40");
	assert_true(filequery_noticed(f, "no values of metric \"c.max\""));
}

static void times(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "a.count", 1);
	accept(f, "#[StartTime: 1700000000]\n" ROW("a", "1700000005.5", "1", "0"),
		"1700000005500:1");
	accept(f, "#[BaseTime: 1600000000]\n#[StartTime: 1700000000]\n" ROW("a", "5", "1", "0"),
		"1600000005000:1");
	accept(f, "#[StartTime: 1700000000.001]\n" ROW("a", "5", "1", "0"), "1700000005001:1");
	accept(f, "#[StartTime: 1000000000]\n", "");
	assert_true(filequery_noticed(f, "data: no rows"));
	f->query.branch = "main";
	accept(f, "#[StartTime: 1000000000]\n" ROW("a", "5", "1", "0"), "1000000005000:1");
	assert_true(filequery_noticed(f, "have no branches"));
}

static void refusals(void **state)
{
	struct filequery *f = *state;
	char text[600];

	refuse(f, "", "data: no statistics and no start time in this file");
	refuse(f, "# comment\n", "data: no statistics and no start time in this file");
	refuse(f, ROW("a", "1", "1", "0"),
		"data:1: no start time: a line \"#[StartTime: SECONDS ...\" must come before the "
		"rows");
	refuse(f, "#[StartTime: 1000000000]\nTag=a,1,2,3\n",
		"data:2: not a row of statistics (Tag=NAME, start, length, count, min, p25 ... "
		"max: 15 columns)");
	refuse(f, "#[StartTime: 1000000000]\na,1,2,3,4,5,6,7,8,9,10,11,12,13,14\n",
		"data:2: not a row of statistics (Tag=NAME, start, length, count, min, p25 ... "
		"max: 15 columns)");
	refuse(f, "#[StartTime: 1000000000]\n" ROW("a", "soon", "1", "0"),
		"data:2: the start of the interval (column 2) is not a number");
	refuse(f, "#[StartTime: 1000000000]\n" ROW("a", "1e300", "1", "0"),
		"data:2: the start of the interval (column 2) is out of range");
	refuse(f, "#[StartTime: 1000000000]\n" ROW("a", "1", "many", "0"),
		"data:2: column 4 (count): \"many\" is not a number");
	snprintf(text, sizeof text,
		"#[StartTime: 1000000000]\nTag=%0*d,1,2,3,4,5,6,7,8,9,10,11,12,13,14\n", 201, 0);
	refuse(f, text, "data:2: a tag longer than 200 bytes");
}

static void lists_one_round(void **state)
{
	struct filequery *f = *state;

	f->options.histostat.file = HUNTER_TEST_DATA "/cases/histostat/two-tags.log";
	f->query.listing = true;
	assert_true(histostat_source.read(&f->query, &f->error)); /* the third round is broken */
	assert_int_equal(f->query.data.count, 24);
	assert_string_equal(f->query.data.series[23].name, "write.max");
	f->query.listing = false;
	f->query.data = (struct dataset){0};
	assert_false(histostat_source.read(&f->query, &f->error));
	assert_non_null(strstr(f->error.text, "two-tags.log:9: not a row of statistics"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(names_metrics, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(rounds, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(times, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(lists_one_round, setup, filequery_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
