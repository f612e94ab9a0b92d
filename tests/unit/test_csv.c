/*
 * The CSV source on texts and on files: what is read, what is said, and what is refused.
 */
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/base/buf.h"
#include "sources/files/rows.h"
#include "tests/unit/filequery.h"

static int setup(void **state)
{
	return filequery_setup(state, &csv_source, csv_parse);
}

static void reads_metrics(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "m1", 1);
	filequery_metric(f, "p99", 0.001);
	f->metrics[1].column = "p99 [us]";
	accept(f,
		"time,host,p99 [us],m1\r\n"
		"1970-01-01T00:00:01Z,a,1500,7\r\n"
		"1970.01.01 1:00:02 +0100,\"b,c\", 2.5e3 ,-.5\r\n"
		"3,c,inf,8\n"
		"4000000000,d,+1,0",
		"1000:7,1.5 2000:-0.5,2.5 3000:8,inf 4000000000000:0,0.001");
	assert_string_equal(f->query.data.series[1].name, "p99");
	assert_string_equal(f->query.data.series[1].identity, "p99");
	assert_ptr_equal(f->query.data.series[0].axis, f->query.data.series[1].axis);
	assert_int_equal(f->query.notices.count, 0);
}

static void missing_values(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "a", 2);
	accept(f, "time,a\n1,\n2,NaN\n3,null\n4, \n5,\"\"\n6,-nan\n7,1e999\n8,3\n",
		"1000:nan 2000:nan 3000:nan 4000:nan 5000:nan 6000:nan 7000:inf 8000:6");
}

static void sorts_rows(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"commit"};

	filequery_metric(f, "a", 1);
	f->options.csv.attributes = (struct strings){names, 1};
	accept(f, "time,a,commit\n3,30,c\n1,10,\n2,20,b\n2,21,b2\n",
		"1000:10 2000:20 2000:21 3000:30");
	assert_true(filequery_noticed(f, "data: the rows were not in order of time"));
	const struct column *commit = axis_column(f->query.data.series[0].axis, "commit");
	assert_null(commit->values[0]);
	assert_string_equal(commit->values[1], "b");
	assert_string_equal(commit->values[2], "b2");
	assert_string_equal(commit->values[3], "c");
}

static void keeps_attributes(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"commit", "time", "commit", "note"};

	filequery_metric(f, "a", 1);
	f->options.csv.attributes = (struct strings){names, 4};
	accept(f, "note,time,a, commit \n\"two\nlines\",1,1,x\n\"\"\"q\"\"\",2,2,x\n",
		"1000:1 2000:2");
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->column_count, 2);
	assert_string_equal(axis->columns[0].name, "commit");
	assert_string_equal(axis->columns[1].values[0], "two\nlines");
	assert_string_equal(axis->columns[1].values[1], "\"q\"");
}

static void names_commit_and_version(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"machine", "sha"};

	filequery_metric(f, "a", 1);
	f->options.csv.commit_column = "sha";
	f->options.csv.version_column = "release";
	f->options.csv.attributes = (struct strings){names, 2};
	accept(f, "time,sha,release,machine,a\n1,c1,1.0,m1,1\n2,c2,,m2,2\n", "1000:1 2000:2");
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->column_count, 3);
	assert_string_equal(axis_column(axis, "commit")->values[1], "c2");
	assert_string_equal(axis_column(axis, "version")->values[0], "1.0");
	assert_string_equal(axis_column(axis, "machine")->values[1], "m2");
	f->options.csv.commit_column = "sah";
	refuse(f, "time,sha,release,machine,a\n",
		"data:1: no column \"sah\" for the commit (see commit_column) (did you mean "
		"\"sha\"?)");
}

static void limits_time(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "a", 1);
	f->query.since = 2000;
	f->query.until = 4000;
	accept(f, "time,a\n1,word\n4,word\n3,3\n2,2\n", "2000:2 3000:3");
}

static void dialects(void **state)
{
	struct filequery *f = *state;
	struct pair pairs[2] = {{"delimiter", ";"}, {"quotechar", "'"}};

	filequery_metric(f, "a", 1);
	f->options.csv.csv_options = (struct pairs){pairs, 2};
	accept(f, "time;a;'x;y'\n1;'5';\"\n", "1000:5");
	pairs[0].value = "\\t";
	pairs[1] = (struct pair){"quote_char", ""};
	accept(f, "time\ta\tx\n1\t5\t\"z\n", "1000:5");

	static const struct {
		struct pair pair;
		const char *words;
	} bad[] = {
		{{"delimiter", ",,"}, "csv_options: delimiter must be one character"},
		{{"delimiter", "\n"}, "csv_options: delimiter must be one character"},
		{{"delimiter", ""},
			"csv_options: the delimiter must not be empty or equal to quote_char"},
		{{"delimiter", "\""},
			"csv_options: the delimiter must not be empty or equal to quote_char"},
		{{"delimeter", ";"},
			"csv_options: unknown key \"delimeter\" (did you mean \"delimiter\"?)"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		f->options.csv.csv_options = (struct pairs){&bad[i].pair, 1};
		assert_false(filequery_parse(f, "time,a\n", 7));
		assert_string_equal(f->error.text, bad[i].words);
		assert_int_equal(f->error.kind, ERROR_USAGE);
	}
}

static void branches(void **state)
{
	struct filequery *f = *state;
	const char *mixed =
		"time,branch,a\n1,main,1\n2,feature-x,2\nrubbish,feature-x,rubbish\n3,main,3\n";

	filequery_metric(f, "a", 1);
	accept(f, "time,branch,a\n1,main,1\n2,main,2\n", "1000:1 2000:2");
	refuse(f, mixed,
		"data: the file has several branches: select one with --branch, or set base_branch "
		"in the test (feature-x, main)");
	f->query.branch = "main";
	accept(f, mixed, "1000:1 3000:3");
	refuse(f, "time,a\n1,1\n",
		"data:1: a branch is selected (--branch or $BRANCH), but there is no column "
		"\"branch\"");
	f->query.branch = "feature";
	refuse(f, mixed, "data: no row of branch \"feature\" (there are: feature-x, main)");
	accept(f, "time,branch,a\n", "");
}

static void refusals(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"comit"};

	filequery_metric(f, "p99", 1);
	refuse(f, "", "data: the file is empty");
	refuse(f, "\n\n", "data: the file is empty");
	refuse(f, "a,p99\n1,2\n",
		"data:1: no column \"time\" for the time (see time_column) (there are: a, p99)");
	refuse(f, "tme,p99\n1,2\n",
		"data:1: no column \"time\" for the time (see time_column) (did you mean "
		"\"tme\"?)");
	refuse(f, "time;p99\n1;2\n",
		"data:1: no column \"time\" for the time (see time_column); the header has "
		"only one column: does the file use another delimiter (csv_options)?");
	refuse(f, "\n\r\na,p99\n1,2\n",
		"data:3: no column \"time\" for the time (see time_column) (there are: a, p99)");
	refuse(f, "time,p90\n1,2\n",
		"data:1: no column \"p99\" for metric \"p99\" (did you mean \"p90\"?)");
	refuse(f, "time,p99,p99\n1,2,3\n",
		"data:1: column \"p99\" occurs more than once (columns 2 and 3)");
	accept(f, "time,p99,x,x\n1,2,3,4\n", "1000:2");
	refuse(f, "time,p99\n1,2\n2\n", "data:3: 1 columns, but the header has 2");
	refuse(f, "time,p99\n1,2\n2,3,4\n", "data:3: 3 columns, but the header has 2");
	accept(f, "time,p99\n1,2,\n2,3,,\n", "1000:2 2000:3");
	refuse(f, "time,p99\n\"1\",\"2\"\n2,fast\n",
		"data:3: column \"p99\": \"fast\" is not a number");
	refuse(f, "time,p99\n1,0x10\n", "data:2: column \"p99\": \"0x10\" is not a number");
	refuse(f, "time,p99\n2026-02-30,1\n",
		"data:2: column \"time\": \"2026-02-30\" is not a date");
	refuse(f, "time,p99\n,1\n", "data:2: column \"time\": \"\" is not a date");
	f->options.csv.attributes = (struct strings){names, 1};
	refuse(f, "time,p99,commit\n1,2,c\n",
		"data:1: no column \"comit\" for an attribute (did you mean \"commit\"?)");
}

static void header_only(void **state)
{
	struct filequery *f = *state;

	filequery_metric(f, "a", 1);
	accept(f, "time,a\n", "");
	assert_int_equal(f->query.data.count, 1);
	assert_int_equal(f->query.data.series[0].axis->n, 0);
	assert_true(filequery_noticed(f, "data: no rows after the header"));
}

static void guesses_metrics(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"build"};

	f->options.csv.attributes = (struct strings){names, 1};
	accept(f, "build,time,host,a,empty,b\n7,1,x,,,2\n8,2,y,3,,\n", "1000:nan,2 2000:3,nan");
	assert_int_equal(f->query.data.count, 2);
	assert_string_equal(f->query.data.series[0].name, "a");
	assert_string_equal(f->query.data.series[1].name, "b");
	refuse(f, "build,time,a\n1,1,5\n2,2,oops\n",
		"data:3: column \"a\": \"oops\" is not a number");
	accept(f, "build,time,a\n1,1,x\n", "");
	assert_true(filequery_noticed(f, "data: no column holds numbers"));
}

/* Quoted cells, line ends and the columns' growth, over many blocks of input. */
static void many_rows(void **state)
{
	struct filequery *f = *state;
	struct buf text = {0};
	enum { ROWS = 100000 };

	buf_text(&text, "time,commit,a,b\r\n");
	for (int i = 0; i < ROWS; i++)
		buf_printf(&text, "%d,\"c\r\n%d\",%d.25,%d\r\n", 1600000000 + i, i / 3, i, -i);
	filequery_metric(f, "b", 1);
	filequery_metric(f, "a", 1);
	static const char *const names[] = {"commit"};
	f->options.csv.attributes = (struct strings){names, 1};
	assert_true(filequery_parse(f, text.data, text.length));
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->n, ROWS);
	for (int i = 0; i < ROWS; i++) {
		char commit[20];

		snprintf(commit, sizeof commit, "c\r\n%d", i / 3);
		assert_true(f->query.data.series[0].values[i] == -i);
		assert_true(f->query.data.series[1].values[i] == i + 0.25);
		assert_string_equal(axis->columns[0].values[i], commit);
	}
	buf_printf(&text, "x,y,1,2\r\n");
	assert_false(filequery_parse(f, text.data, text.length));
	assert_string_equal(f->error.text, "data:200002: column \"time\": \"x\" is not a date");
	buf_free(&text);
}

static void real_files(void **state)
{
	struct filequery *f = *state;
	char folder[] = "/tmp/hunter-csv-XXXXXX", path[64];

	f->options.csv.file = HUNTER_TEST_DATA "/cases/csv/latency.csv";
	filequery_metric(f, "p99", 1);
	assert_true(csv_source.read(&f->query, &f->error));
	assert_int_equal(f->query.data.series[0].axis->n, 4);
	f->query.metric_count = 0;
	f->query.data = (struct dataset){0};
	f->query.listing = true;
	assert_true(csv_source.read(&f->query, &f->error));
	assert_int_equal(f->query.data.count, 2);
	assert_string_equal(f->query.data.series[0].name, "p50");

	assert_non_null(mkdtemp(folder));
	f->options.csv.file = folder;
	assert_false(csv_source.read(&f->query, &f->error));
	assert_non_null(strstr(f->error.text, "cannot be read: Is a directory"));
	assert_int_equal(f->error.kind, ERROR_DATA);
	snprintf(path, sizeof path, "%s/none.csv", folder);
	f->options.csv.file = path;
	assert_false(csv_source.read(&f->query, &f->error));
	assert_non_null(strstr(f->error.text, "none.csv: no such file"));
	snprintf(path, sizeof path, "%s/loop", folder);
	assert_int_equal(symlink("loop", path), 0);
	assert_false(csv_source.read(&f->query, &f->error));
	assert_non_null(strstr(f->error.text, "loop: cannot be read: Too many levels"));
	unlink(path);
	rmdir(folder);
}

/* Rows times columns have a limit; what doubling makes room for does not count. The rows are
 * pretended, as they would take half a gigabyte. */
static void too_many_values(void **state)
{
	(void)state;
	struct rows rows = {0};
	struct error error;

	for (int i = 0; i < 5; i++)
		assert_true(rows_add_number(&rows, NULL, 0, &error));
	rows.n = rows.capacity = 10000000;
	assert_true(rows_append(&rows, 0, &error)); /* ten million rows of five metrics fit */
	assert_in_range(rows.capacity, 10000001, ROWS_CELLS_MAX / 6);
	assert_true(isnan(rows.numbers[4].values[10000000]));

	rows.n = ROWS_CELLS_MAX / 6;
	assert_false(rows_add_text(&rows, "name", 0, &error));
	assert_int_equal(error.kind, ERROR_DATA);
	rows.capacity = rows.n;
	assert_false(rows_append(&rows, 0, &error));
	assert_non_null(strstr(error.text, "too much data: more than 67108864 values"));
	assert_int_equal(rows.n, ROWS_CELLS_MAX / 6);

	rows.n = 1000; /* a column more takes back what is spare */
	assert_true(rows_add_text(&rows, "name", 0, &error));
	assert_int_equal(rows.capacity, ROWS_CELLS_MAX / 7);
	rows_free(&rows);
}

static void notices_are_few(void **state)
{
	struct filequery *f = *state;

	for (int i = 0; i < 150; i++)
		query_notice(&f->query, "notice %d", i);
	assert_int_equal(f->query.notices.count, 100);
	assert_string_equal(f->query.notices.items[98], "notice 98");
	assert_string_equal(f->query.notices.items[99], "51 more notices were left out");
	const char *const *items = f->query.notices.items, *last = items[99];
	query_notice(&f->query, "one more");
	assert_ptr_equal(f->query.notices.items, items); /* nothing is allocated any more */
	assert_ptr_equal(items[99], last);
	assert_string_equal(last, "52 more notices were left out");
	assert_ptr_equal(source_find("csv"), &csv_source);
	assert_ptr_equal(source_find("histostat"), &histostat_source);
	assert_null(source_find("cvs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(reads_metrics, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(missing_values, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(sorts_rows, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(keeps_attributes, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(
			names_commit_and_version, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(limits_time, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(dialects, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(branches, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(header_only, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(guesses_metrics, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(many_rows, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(real_files, setup, filequery_teardown),
		cmocka_unit_test(too_many_values),
		cmocka_unit_test_setup_teardown(notices_are_few, setup, filequery_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
