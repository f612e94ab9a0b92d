/*
 * The JSON source: what it makes of results, and of what is none.
 */
#include "unit.h"
#include <stdio.h>

#include "agent/base/buf.h"
#include "tests/unit/filequery.h"

static int setup(void **state)
{
	return filequery_setup(state, &json_source, json_parse);
}

static void reads_results(void **state)
{
	struct filequery *f = *state;

	accept(f,
		"[{\"timestamp\": 2, \"metrics\": [{\"name\": \"p99\", \"value\": 2.5}, {\"name\": "
		"\"p50\", \"value\": null}],\n"
		"  \"attributes\": {\"commit\": \"b\", \"build\": 12, \"dirty\": true, \"none\": "
		"null, \"list\": [1, {}]}},\n"
		" {\"attributes\": {\"commit\": \"a\"}, \"extra\": [{\"x\": []}], \"timestamp\": "
		"\"1970-01-01T00:00:01Z\",\n"
		"  \"metrics\": [{\"unit\": \"ms\", \"value\": \"7\", \"name\": \"p50\"}, "
		"{\"name\": \"new\", \"value\": -Infinity}]},\n"
		" {\"timestamp\": 1700000000000, \"metrics\": []}]",
		"1000:nan,7,-inf 2000:2.5,nan,nan 1700000000000:nan,nan,nan");
	assert_true(filequery_noticed(f, "not in order of time"));
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->column_count, 5);
	assert_string_equal(axis_column(axis, "commit")->values[0], "a");
	assert_string_equal(axis_column(axis, "build")->values[1], "12");
	assert_string_equal(axis_column(axis, "dirty")->values[1], "true");
	assert_null(axis_column(axis, "none")->values[1]);
	assert_null(axis_column(axis, "list")->values[1]);
	assert_string_equal(f->query.data.series[2].identity, "new");
	assert_int_equal(f->query.data.series[0].metric->direction, 1);
}

static void configured_metrics(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"version", "commit"};

	filequery_metric(f, "b", 10);
	filequery_metric(f, "gone", 1);
	filequery_metric(f, "a", 1);
	f->options.json.attributes = (struct strings){names, 2};
	accept(f,
		"[{\"timestamp\": 1, \"metrics\": [{\"name\": \"a\", \"value\": 1}, {\"name\": "
		"\"b\", \"value\": 2}, "
		"{\"name\": \"c\", \"value\": 3}], \"attributes\": {\"commit\": \"x\", \"host\": "
		"\"y\"}}]",
		"1000:20,1");
	assert_true(filequery_noticed(f, "data: no values of metric \"gone\""));
	assert_int_equal(f->query.data.series[0].axis->column_count, 2);
	assert_string_equal(f->query.data.series[0].axis->columns[1].values[0], "x");
}

static void names_commit_and_version(void **state)
{
	struct filequery *f = *state;
	static const char *const names[] = {"host"};
	static const char text[] =
		"[{\"timestamp\": 1, \"metrics\": [{\"name\": \"a\", \"value\": 1}], "
		"\"attributes\": {\"sha\": \"x\", \"tag\": \"1.0\", \"commit\": \"no\", "
		"\"host\": \"y\", \"os\": \"z\"}}]";

	f->options.json.commit_column = "sha";
	f->options.json.version_column = "tag";
	accept(f, text, "1000:1");
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->column_count, 4);
	assert_string_equal(axis_column(axis, "commit")->values[0], "x");
	assert_string_equal(axis_column(axis, "version")->values[0], "1.0");
	assert_string_equal(axis_column(axis, "os")->values[0], "z");
	f->options.json.attributes = (struct strings){names, 1};
	accept(f, text, "1000:1");
	axis = f->query.data.series[0].axis;
	assert_int_equal(axis->column_count, 3);
	assert_string_equal(axis_column(axis, "commit")->values[0], "x");
	assert_string_equal(axis_column(axis, "host")->values[0], "y");
}

static const char mixed[] = "[{\"timestamp\": 1, \"metrics\": [{\"name\": \"a\", \"value\": 1}], "
			    "\"attributes\": {\"branch\": \"main\"}},"
			    " {\"timestamp\": 2, \"metrics\": [{\"name\": \"a\", \"value\": 2}], "
			    "\"attributes\": {\"branch\": \"dev\"}},"
			    " {\"timestamp\": 3, \"metrics\": [{\"name\": \"a\", \"value\": 3}]}]";

static void branches(void **state)
{
	struct filequery *f = *state;

	accept(f, mixed, "1000:1 2000:2 3000:3");
	assert_true(filequery_noticed(f, "several branches (dev, main)"));
	f->options.json.base_branch = "main";
	accept(f, mixed, "1000:1");
	f->query.branch = "dev";
	accept(f, mixed, "2000:2");
	f->query.branch = "de";
	refuse(f, mixed, "data: no result of branch \"de\" (there are: dev, main)");
	refuse(f, "[{\"timestamp\": 1, \"metrics\": []}]",
		"data: branch \"de\" is selected, but no result has an attribute \"branch\"");
	f->query.branch = NULL;
	f->options.json.base_branch = NULL;
	f->query.since = 2000;
	f->query.until = 3000;
	accept(f, mixed, "2000:2");
}

static void refusals(void **state)
{
	struct filequery *f = *state;

	refuse(f, "", "data: the file is empty");
	refuse(f, "{}", "data:1: the file must be a list");
	refuse(f, "[\n1]",
		"data:2: a result must be an object with \"timestamp\", \"metrics\" and "
		"\"attributes\"");
	refuse(f, "[\n{\n}]", "data:2: a result without \"timestamp\"");
	refuse(f, "[{\"timestamp\": true}]",
		"data:1: \"timestamp\" is not a date (epoch seconds or milliseconds, or ISO 8601)");
	refuse(f, "[{\"timestamp\": \"\"}]",
		"data:1: \"timestamp\" is not a date (epoch seconds or milliseconds, or ISO 8601)");
	refuse(f, "[{\"metrics\": {}}]", "data:1: \"metrics\" must be a list");
	refuse(f, "[{\"attributes\": []}]", "data:1: \"attributes\" must be an object");
	refuse(f, "[{\"metrics\": [1]}]",
		"data:1: a metric must be an object with \"name\" and \"value\"");
	refuse(f, "[{\"metrics\": [{\"name\": \"a\"}]}]", "data:1: a metric without \"value\"");
	refuse(f, "[{\"metrics\": [{\"value\": 1}]}]", "data:1: a metric without \"name\"");
	refuse(f, "[{\"metrics\": [{\"name\": 1}]}]",
		"data:1: the \"name\" of a metric is not a string");
	refuse(f, "[{\"metrics\": [{\"name\": \"a\", \"value\": \"fast\"}]}]",
		"data:1: the \"value\" of a metric is not a number");
	refuse(f, "[{\"timestamp\": 1}]]", "data:1: ']' where the end should be");
	accept(f, "[]", "");
	assert_true(filequery_noticed(f, "data: no results"));
}

static void broken_text(void **state)
{
	static const char no_object[] = "data:1: a result must be an object with \"timestamp\", "
					"\"metrics\" and \"attributes\"";
	const struct {
		const char *text, *problem;
	} cases[] = {
		{" \n ", "data: the file is empty"},
		{"[1,]", no_object},
		{"[{\"timestamp\": 1},]", no_object},
		{"[{\"timestamp\": 1}\n{", "data:2: '{' where a comma or ] should be"},
		{"[{1:2}]", "data:1: '1' where a key in quotes should be"},
		{"[{\"a\" 1}]", "data:1: '1' where a colon should be"},
		{"[{\"a\":1,}]", "data:1: '}' where a key in quotes should be"},
		{"[{\"a\":[1", "data:1: the file ends where a comma or ] should be"},
		{"[{\"a\":[01]}]", "data:1: '0' where a value should be"},
		{"[{\"a\":[}]", "data:1: '}' where a value should be"},
		{"[{\"a\":+1}]", "data:1: '+' where a value should be"},
		{"[{\"a\":nul}]", "data:1: 'n' where a value should be"},
		{"[{\"a\":\"b\n\"}]", "data:1: byte 0x0a where the rest of a string should be"},
		{"[{\"a\":\"\\x\"}]", "data:1: '\\' where an escape of JSON should be"},
		{"[{\"a\":\"\\u00g0\"}]", "data:1: '0' where an escape of JSON should be"},
		{"[{\"timestamp\":\"\\u0000\"}]", "data:1: '0' where an escape of JSON should be"},
		{"[{\"a\\ud83d\":1}]", "data:1: 'd' where an escape of JSON should be"},
		{"[{\"a\xC0\x80\":1}]", "data:1: byte 0xc0 where valid UTF-8 should be"},
		{"[{\"a\":\"bc", "data:1: the file ends where the rest of a string should be"},
	};
	struct filequery *f = *state;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refuse(f, cases[i].text, cases[i].problem);
	struct buf deep = {0};
	buf_text(&deep, "[{\"a\":");
	for (int i = 0; i < 10000; i++)
		buf_char(&deep, '[');
	refuse(f, deep.data, "data:1: it is nested more than 2048 deep");
	buf_free(&deep);
}

/* The source reads 64 kB at a time: each place of the text is once the end of that, so that all
 * that can be cut is cut. */
static void any_window(void **state)
{
	static const char text[] =
		"[{\"timestamp\": 1600000000.5, \"metrics\": [{\"name\": \"m\\ud83d\\ude00\", "
		"\"value\": -1234.5e+2}, {\"name\": \"n\", \"value\": null}, {\"name\": \"i\", "
		"\"value\": -Infinity}], \"attributes\": {\"commit\": \"\xC3\xA9\", \"b\": "
		"true}},\n{\"timestamp\": 1600000001, \"x\": [false, {\"y\": []}, "
		"123456789012345678.25]} ]\n";
	struct filequery *f = *state;
	struct buf padded = {0};

	for (size_t cut = 1; cut < sizeof text; cut++) {
		buf_clear(&padded);
		for (size_t i = cut; i < 64 << 10; i++)
			buf_char(&padded, ' ');
		buf_text(&padded, text);
		accept(f, padded.data, "1600000000500:-123450,nan,-inf 1600000001000:nan,nan,nan");
		const struct series *series = f->query.data.series;
		assert_string_equal(series[0].identity, "m\xF0\x9F\x98\x80");
		assert_string_equal(axis_column(series->axis, "commit")->values[0], "\xC3\xA9");
	}
	buf_free(&padded);
}

/* Strings that are no Unicode text, wherever the window ends: a metric loses its value, an
 * attribute is left out, a result without a readable branch too, and what nobody reads may hold
 * anything. */
static void spoilt_strings(void **state)
{
	static const char text[] =
		"[{\"timestamp\": 1, \"note\": \"\xFF\", \"metrics\": [{\"name\": \"a\\u0000\", "
		"\"value\": 1}, {\"name\": \"b\", \"value\": 2}], \"attributes\": {\"commit\": "
		"\"\\ud83d\", \"host\": \"h\"}},\n"
		"{\"timestamp\": 2, \"metrics\": [{\"value\": 3, \"name\": \"b\", \"x\": "
		"[\"\\udead\"]}], \"attributes\": {\"branch\": \"\xC0\"}},\n"
		"{\"timestamp\": 3, \"metrics\": [{\"value\": 4, \"name\": \"b\"}, {\"name\": "
		"\"\xED\xA0\x80\", \"value\": 5}]}]";
	struct filequery *f = *state;
	struct buf padded = {0};

	for (size_t cut = 1; cut < sizeof text; cut++) {
		buf_clear(&padded);
		for (size_t i = cut; i < 64 << 10; i++)
			buf_char(&padded, ' ');
		buf_text(&padded, text);
		f->query.incomplete = false;
		accept(f, padded.data, "1000:2 3000:4");
		assert_true(f->query.incomplete);
		assert_true(filequery_noticed(f,
			"data: values left out: 2, since a string is not Unicode text, the "
			"first in the result at line 1"));
		assert_true(filequery_noticed(f, "attributes left out: 1"));
		assert_true(
			filequery_noticed(f, "results left out: 1, since a string is not "
					     "Unicode text, the first in the result at line 2"));
		const struct axis *axis = f->query.data.series[0].axis;
		assert_null(axis_column(axis, "commit")->values[0]);
		assert_string_equal(axis_column(axis, "host")->values[0], "h");
	}
	buf_free(&padded);
}

static void repeated_metrics(void **state)
{
	struct filequery *f = *state;

	accept(f,
		"[{\"timestamp\": 1, \"metrics\": [{\"name\": \"a\", \"value\": 1}, {\"name\": "
		"\"a\", \"value\": 2}]}]",
		"1000:2");
	assert_true(filequery_noticed(f, "a metric twice"));
}

/* Results and strings that lie across the blocks of the reader, and columns that come late. */
static void many_results(void **state)
{
	struct filequery *f = *state;
	struct buf text = {0};
	enum { RESULTS = 5000 };

	for (int i = 0; i < RESULTS; i++)
		buf_printf(&text,
			"%s{\"timestamp\": %d, \"metrics\": [{\"name\": \"m%d\", \"value\": %d}], "
			"\"attributes\": {\"commit\": \"c\\u00e9%d\"}}",
			i ? ",\n" : "[", 1600000000 + i, i * 20 / RESULTS, i, i);
	buf_text(&text, "]");
	assert_true(filequery_parse(f, text.data, text.length));
	assert_int_equal(f->query.data.count, 20);
	const struct axis *axis = f->query.data.series[0].axis;
	assert_int_equal(axis->n, RESULTS);
	for (int i = 0; i < RESULTS; i++) {
		char commit[20];

		snprintf(commit, sizeof commit, "c\xC3\xA9%d", i);
		assert_string_equal(axis->columns[0].values[i], commit);
		for (int k = 0; k < 20; k++) {
			double value = f->query.data.series[k].values[i];
			assert_true(k == i * 20 / RESULTS ? value == i : value != value);
		}
	}
	buf_free(&text);
}

static void real_file(void **state)
{
	struct filequery *f = *state;

	f->options.json.file = HUNTER_TEST_DATA "/cases/json/results.json";
	assert_true(json_source.read(&f->query, &f->error));
	assert_int_equal(f->query.data.count, 2);
	assert_string_equal(f->query.data.series[1].name, "p99");
	f->options.json.file = "/nonexistent.json";
	assert_false(json_source.read(&f->query, &f->error));
	assert_string_equal(f->error.text, "/nonexistent.json: no such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(broken_text, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(any_window, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(spoilt_strings, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(reads_results, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(configured_metrics, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(
			names_commit_and_version, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(branches, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(repeated_metrics, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(many_results, setup, filequery_teardown),
		cmocka_unit_test_setup_teardown(real_file, setup, filequery_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
