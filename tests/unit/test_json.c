/*
 * The JSON source: the streaming reader, and what it makes of results.
 */
#include "unit.h"
#include <stdio.h>

#include "agent/core/buf.h"
#include "sources/files/jsonread.h"
#include "tests/unit/filequery.h"

static int setup(void **state)
{
	return filequery_setup(state, &json_source, json_parse);
}

/* The tokens of a text: { } [ ] and K S N with their text, t f n, end or the error. */
static char *tokens_of(const char *text, size_t length)
{
	static const char *const names[] = {
		[TOKEN_OBJECT] = "{", "}", "[", "]", "K", "S", "N", "t", "f", "n"};
	struct input input = input_bytes("x", text, length);
	struct json_reader *reader = json_reader_new(&input);
	struct buf out = {0};
	struct error error;
	enum token token;

	while ((token = json_next(reader, &error)) != TOKEN_END && token != TOKEN_FAILED) {
		buf_text(&out, names[token]);
		if (token == TOKEN_KEY || token == TOKEN_STRING || token == TOKEN_NUMBER)
			buf_printf(&out, "(%s)", reader->text.data ? reader->text.data : "");
	}
	if (token == TOKEN_FAILED)
		buf_printf(&out, " %s", error.text);
	json_reader_free(reader);
	return buf_steal(&out);
}

static void check_tokens(const char *text, const char *expected)
{
	char *tokens = tokens_of(text, strlen(text));

	assert_string_equal(tokens, expected);
	free(tokens);
}

static void tokens(void **state)
{
	(void)state;
	check_tokens("[]", "[]");
	check_tokens("\xEF\xBB\xBF {} ", "{}");
	check_tokens("{\"a\" : [1, -0.5e+3,\ttrue,false,null , \"x\" ] , \"b\":{}}",
		"{K(a)[N(1)N(-0.5e+3)tfnS(x)]K(b){}}");
	check_tokens("[NaN, Infinity, -Infinity]", "[N(NaN)N(Infinity)N(-Infinity)]");
	check_tokens("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\n\\\"\\\\\\/\"",
		"S(A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\n\"\\/)");
	check_tokens("1E400", "N(1e400)");
}

static void bad_tokens(void **state)
{
	(void)state;
	check_tokens("", " x: the file is empty");
	check_tokens(" \n ", " x: the file is empty");
	check_tokens("[1,]", "[N(1) x:1: ']' where a value should be");
	check_tokens("[1\n2]", "[N(1) x:2: '2' where a comma or ] should be");
	check_tokens("{1:2}", "{ x:1: '1' where a key in quotes should be");
	check_tokens("{\"a\" 1}", "{ x:1: '1' where a colon should be");
	check_tokens("{\"a\":1,}", "{K(a)N(1) x:1: '}' where a key in quotes should be");
	check_tokens("[1] 2", "[N(1)] x:1: '2' where the end of the file should be");
	check_tokens("[1", "[N(1) x:1: the file ends where a comma or ] should be");
	check_tokens("[}", "[ x:1: '}' where a value should be");
	check_tokens("[01]", "[N(0) x:1: '1' where a comma or ] should be");
	check_tokens("[1.]", "[ x:1: ']' where a digit should be");
	check_tokens("[+1]", "[ x:1: '+' where a value should be");
	check_tokens("[1e]", "[ x:1: ']' where a digit should be");
	check_tokens("[-]", "[ x:1: ']' where a digit should be");
	check_tokens("[nul]", "[ x:1: ']' where null should be");
	check_tokens("[\"a\n\"]", "[ x:1: byte 0x0a where the rest of a string should be");
	check_tokens("[\"\\x\"]", "[ x:1: 'x' where an escape should be");
	check_tokens("[\"\\u00g0\"]", "[ x:1: 'g' where a hexadecimal digit should be");
	check_tokens("[\"\\u0000\"]", "[ x:1: a NUL character in a string");
	check_tokens("[\"\\ud83d\"]", "[ x:1: half a surrogate pair in a string");
	check_tokens("[\"\\ude00\"]", "[ x:1: half a surrogate pair in a string");
	check_tokens("[\"\xC0\x80\"]", "[ x:1: a string is not valid UTF-8");
	check_tokens("[\"abc", "[ x:1: the file ends where the rest of a string should be");
}

static void deep(void **state)
{
	char text[2 * JSONREAD_DEPTH + 4];

	(void)state;
	memset(text, '[', JSONREAD_DEPTH);
	memset(text + JSONREAD_DEPTH, ']', JSONREAD_DEPTH);
	char *tokens = tokens_of(text, 2 * JSONREAD_DEPTH);
	assert_int_equal(strlen(tokens), 2 * JSONREAD_DEPTH);
	free(tokens);
	memset(text, '[', JSONREAD_DEPTH + 1);
	tokens = tokens_of(text, JSONREAD_DEPTH + 1);
	assert_non_null(strstr(tokens, "x:1: nested more than 512 deep"));
	free(tokens);
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
	refuse(f, mixed, "data: no result is of branch \"de\" (there are: dev, main)");
	refuse(f, "[{\"timestamp\": 1, \"metrics\": []}]",
		"data: branch \"de\" was asked for, but no result has an attribute \"branch\"");
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
		"data:1: the \"name\" of a metric is not a text");
	refuse(f, "[{\"metrics\": [{\"name\": \"a\", \"value\": \"fast\"}]}]",
		"data:1: the \"value\" of a metric is not a number");
	refuse(f, "[{\"timestamp\": 1}]]", "data:1: ']' where the end of the file should be");
	accept(f, "[]", "");
	assert_true(filequery_noticed(f, "data: no results"));
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
	struct strings names;

	f->options.json.file = HUNTER_TEST_DATA "/cases/json/results.json";
	assert_true(json_source.list(&f->query, &names, &f->error));
	assert_int_equal(names.count, 2);
	assert_string_equal(names.items[1], "p99");
	f->options.json.file = "/nonexistent.json";
	assert_false(json_source.read(&f->query, &f->error));
	assert_string_equal(f->error.text, "/nonexistent.json: no such file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens),
		cmocka_unit_test(bad_tokens),
		cmocka_unit_test(deep),
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
