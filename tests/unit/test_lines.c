/*
 * The reader of detect's lines: what it takes, what it refuses and in which words. That it agrees
 * with jansson is for the fuzz target of the same name.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/analysis/series_lines.h"
#include "agent/base/buf.h"
#include "agent/base/scan.h"

static struct line_reader *reader;

static int set_up(void **state)
{
	(void)state;
	reader = line_reader_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	line_reader_free(reader);
	return 0;
}

static struct line read_good(const char *text)
{
	struct line line;
	struct error error;
	if (!line_read(reader, text, strlen(text), &line, &error))
		fail_msg("%s: %s", text, error.text);
	return line;
}

static void check_bad(const char *text, const char *id, const char *problem)
{
	struct line line;
	struct error error;
	if (line_read(reader, text, strlen(text), &line, &error))
		fail_msg("%s is accepted", text);
	assert_string_equal(error.text, problem);
	assert_int_equal(error.kind, ERROR_DATA);
	if (!id)
		assert_null(line.id);
	else if (!line.id || line.id_length != strlen(id) || memcmp(line.id, id, line.id_length))
		fail_msg("%s: the id is not %s", text, id);
}

static void check_id(const char *text, const char *id)
{
	struct line line = read_good(text);
	if (!id) {
		assert_null(line.id);
		return;
	}
	assert_non_null(line.id);
	assert_int_equal(line.id_length, strlen(id));
	assert_memory_equal(line.id, id, strlen(id));
}

static void reads_a_whole_line(void **state)
{
	(void)state;
	struct line line = read_good(
		" {\"id\": \"a\\u00e4\", \"series\": [1, -2.5e1 ,null, 10.058933634607016],\r\n"
		"\t\"options\": {\"window_len\": 30, \"max_pvalue\": 1e-3, \"profile\": "
		"\"ot\\u0061va\","
		" \"orig\": true, \"magnitude\": null}, \"n\": 4} ");
	assert_int_equal(line.n, 4);
	assert_true(line.values[0] == 1 && line.values[1] == -25);
	assert_true(isnan(line.values[2]) && line.values[3] == 10.058933634607016);
	assert_int_equal(line.id_length, strlen("\"a\\u00e4\""));
	static const char *const options[][2] = {{"window_len", "30"}, {"max_pvalue", "1e-3"},
		{"profile", "otava"}, {"orig", "true"}};
	assert_int_equal(line.option_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(line.options[i].name, options[i][0]);
		assert_string_equal(line.options[i].value, options[i][1]);
	}
	assert_int_equal(line.options_text[0], '{');
	assert_int_equal(line.options_text[line.options_length - 1], '}');
}

static void id_comes_back_as_written(void **state)
{
	(void)state;
	check_id("{\"series\":[],\"id\":1.50e0}", "1.50e0");
	check_id("{\"series\":[],\"id\":-7}", "-7");
	check_id("{\"series\":[],\"id\":\"\"}", "\"\"");
	check_id("{\"series\":[],\"id\":\"a\\\"\\/\"}", "\"a\\\"\\/\"");
	check_id("{\"series\":[],\"id\":null}", NULL);
	check_id("{\"series\":[]}", NULL);
	check_id("{\"id\":\"no\",\"series\":[],\"id\":\"yes\"}", "\"yes\"");
}

static void last_of_equal_keys_counts(void **state)
{
	(void)state;
	struct line line = read_good("{\"series\":\"x\",\"options\":[],\"id\":[1],\"series\":[7,8],"
				     "\"options\":{\"window\":{},\"p\":1,\"window\":3,\"p\":null},"
				     "\"id\":2}");
	assert_int_equal(line.n, 2);
	assert_true(line.values[1] == 8);
	assert_int_equal(line.option_count, 1);
	assert_string_equal(line.options[0].name, "window");
	assert_string_equal(line.options[0].value, "3");
	check_bad("{\"id\":2,\"series\":[1],\"series\":[1,\"2\"]}", "2",
		"\"series\"[1] is not a number");
}

static void infinities_and_missing_points(void **state)
{
	(void)state;
	struct line line =
		read_good("{\"series\":[1e9999,-1e9999,Infinity,-Infinity,NaN,null,-0,1e-9999]}");
	assert_int_equal(line.n, 8);
	assert_true(line.values[0] == HUGE_VAL && line.values[1] == -HUGE_VAL);
	assert_true(line.values[2] == HUGE_VAL && line.values[3] == -HUGE_VAL);
	assert_true(isnan(line.values[4]) && isnan(line.values[5]));
	assert_true(line.values[6] == 0 && signbit(line.values[6]) && line.values[7] == 0);
}

static void names_what_is_wrong(void **state)
{
	(void)state;
	check_bad("", NULL, "not valid JSON at byte 1");
	check_bad("[1,2]", NULL, "not valid JSON at byte 1");
	check_bad("{\"series\":[1,2,]}", NULL, "not valid JSON at byte 16");
	check_bad("{\"id\":3,\"series\":[1", "3", "not valid JSON at byte 20");
	check_bad("{\"series\":[01]}", NULL, "not valid JSON at byte 12");
	check_bad("{\"series\":[nan]}", NULL, "not valid JSON at byte 12");
	check_bad("{\"series\":[1]}x", NULL, "not valid JSON at byte 15");
	check_bad("{\"series\":[1]}{}", NULL, "not valid JSON at byte 15");
	check_bad("{\"series\" [1]}", NULL, "not valid JSON at byte 11");
	check_bad("{series:[1]}", NULL, "not valid JSON at byte 2");
	check_bad("{\"x\":\"\x01\"}", NULL, "not valid JSON at byte 7");
	check_bad("{}", NULL, "no \"series\"");
	check_bad("{\"id\":\"a\"}", "\"a\"", "no \"series\"");
	check_bad("{\"series\":1,\"id\":\"a\"}", "\"a\"", "\"series\" is not an array");
	check_bad("{\"series\":null}", NULL, "\"series\" is not an array");
	check_bad("{\"series\":[1,\"2\",true],\"id\":5}", "5", "\"series\"[1] is not a number");
	check_bad("{\"series\":[[1]]}", NULL, "\"series\"[0] is not a number");
	check_bad("{\"series\":[1],\"id\":true}", NULL, "\"id\" is neither a string nor a number");
	check_bad("{\"series\":[1],\"options\":7}", NULL, "\"options\" is not an object");
	check_bad("{\"series\":[1],\"options\":{\"a\":[1]}}", NULL,
		"an option is neither a number nor a string");
}

static void strings_are_strict(void **state)
{
	(void)state;
	static const char *const good[] = {"\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\"", "\"\x7F\"",
		"\"\\b\\f\\n\\r\\t\\\"\\\\\\/\\u1aBc\""};
	static const char *const bad[] = {"\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"",
		"\"\\u0000\"", "\"\\u12g4\"", "\"\\x41\"", "\"\\", "\"\\u12", "\"\xC3\"",
		"\"\xC0\x80\"", "\"\xED\xA0\x80\"", "\"\xF4\x90\x80\x80\"", "\"\x1F\"", "\"\n\"",
		"\"a", "a"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct scan scan = {.at = good[i], .end = good[i] + strlen(good[i])};
		assert_true(scan_string(&scan));
		assert_ptr_equal(scan.at, scan.end);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct scan scan = {.at = bad[i], .end = bad[i] + strlen(bad[i])};
		if (scan_string(&scan))
			fail_msg("string %zu is accepted", i);
		assert_true(scan.at <= scan.end);
	}
}

static void strings_are_decoded(void **state)
{
	(void)state;
	static const char text[] = "\"a\\n\\u00e4\\u20AC\\ud83d\\ude00\\\\n\\/\\\"\\t\\b\\f\\rz\"";
	struct buf out = {0};
	scan_decode(text, text + sizeof text - 1, &out);
	assert_string_equal(out.data, "a\n\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\\n/\"\t\b\f\rz");
	buf_free(&out);
}

/* {"x": [[[...]]], "series": []} with `depth` brackets. */
static char *nested(size_t depth)
{
	struct buf text = {0};
	buf_text(&text, "{\"x\":");
	for (size_t i = 0; i < depth; i++)
		buf_char(&text, '[');
	for (size_t i = 0; i < depth; i++)
		buf_char(&text, ']');
	buf_text(&text, ",\"series\":[]}");
	return buf_steal(&text);
}

static void depth_is_bounded(void **state)
{
	(void)state;
	char *text = nested(SCAN_DEPTH - 1);
	read_good(text);
	free(text);
	text = nested(SCAN_DEPTH);
	check_bad(text, NULL, "not valid JSON at byte 2053");
	free(text);
	text = nested(1000000);
	check_bad(text, NULL, "not valid JSON at byte 2053");
	free(text);
}

static void options_are_bounded(void **state)
{
	(void)state;
	for (size_t count = LINE_OPTIONS_MAX; count <= LINE_OPTIONS_MAX + 1; count++) {
		struct buf text = {0};
		buf_text(&text, "{\"series\":[],\"options\":{");
		for (size_t i = 0; i < count; i++)
			buf_printf(&text, "%s\"o%zu\":%zu", i ? "," : "", i, i);
		buf_text(&text, "}}");
		if (count == LINE_OPTIONS_MAX)
			assert_int_equal(read_good(text.data).option_count, count);
		else
			check_bad(text.data, NULL, "\"options\" has too many entries");
		buf_free(&text);
	}
}

/* More than the reader has room for at first, and nothing left of the line before. */
static void memory_is_used_again(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_text(&text, "{\"options\":{\"window\":9},\"id\":1,\"series\":[0");
	for (int i = 1; i < 100000; i++)
		buf_printf(&text, ",%d.5", i);
	buf_text(&text, "]}");
	struct line line = read_good(text.data);
	assert_int_equal(line.n, 100000);
	for (int i = 1; i < 100000; i++)
		assert_true(line.values[i] == i + 0.5);
	buf_free(&text);
	line = read_good("{\"series\":[5]}");
	assert_int_equal(line.n, 1);
	assert_true(line.values[0] == 5);
	assert_int_equal(line.option_count, 0);
	assert_null(line.id);
	assert_null(line.options_text);
}

static void reads_runs_and_hashes(void **state)
{
	(void)state;
	struct line line = read_good("{\"runs\": [1, 1, \"1\", null, null, 7], \"hashes\": [\"a\", "
				     "\"b\", \"a\", null, 3, 3.0], \"series\": [1,2,3,4,5,6]}");
	static const size_t runs[] = {0, 0, 1, 2, 3, 4};
	assert_memory_equal(line.runs, runs, sizeof runs);
	const uint64_t *hashes = line.hashes;
	assert_true(hashes[0] == hashes[2] && hashes[0] != hashes[1] && hashes[0] != 0);
	assert_true(hashes[3] == 0 && hashes[4] != 0 && hashes[4] != hashes[5]);
	line = read_good("{\"series\": [1], \"runs\": null}");
	assert_null(line.runs);
	assert_null(line.hashes);
	line = read_good("{\"series\": [], \"runs\": [], \"hashes\": []}");
	assert_int_equal(line.n, 0);
	line = read_good("{\"series\": [1, 2], \"runs\": 3, \"runs\": [5, 5]}");
	assert_int_equal(line.runs[1], 0);
	check_bad("{\"series\": [1, 2], \"runs\": [1]}", NULL,
		"\"runs\" has 1 items and \"series\" 2");
	check_bad("{\"series\": [1], \"hashes\": [1, 2]}", NULL,
		"\"hashes\" has 2 items and \"series\" 1");
	check_bad("{\"series\": [1], \"runs\": \"a\"}", NULL, "\"runs\" is not an array");
	check_bad("{\"series\": [1], \"hashes\": [{}]}", NULL,
		"\"hashes\" has what is neither a string nor a number");
	check_bad("{\"series\": [1], \"hashes\": [true]}", NULL,
		"\"hashes\" has what is neither a string nor a number");
	check_bad("{\"series\": [1], \"runs\": [1,]}", NULL, "not valid JSON at byte 28");
}

static void check_times(const char *text, const int64_t *times, size_t n)
{
	struct line line = read_good(text);
	assert_int_equal(line.n, n);
	if (!times) {
		assert_null(line.times);
		return;
	}
	assert_non_null(line.times);
	assert_memory_equal(line.times, times, n * sizeof *times);
}

static void reads_times(void **state)
{
	(void)state;
	static const int64_t mixed[] = {1767322800000, 1767326400000, 1767326400000, 1800000000500};
	static const int64_t spaced[] = {1767322800000, 1767322800500, 1767322801000};
	check_times("{\"times\": [\"2026-01-02T03:00Z\", \"2026-01-02T05:00:00+01:00\", "
		    "\"2026\\u002d01-02T04:00Z\", 1.8000000005e9], \"series\": [1,2,3,4]}",
		mixed, 4);
	check_times("{\"series\": [1,2,3,4], \"times\": [1767322800, 1767326400.0, 1767326400000, "
		    "1800000000.5]}",
		mixed, 4);
	check_times(
		"{\"step\": 0.5, \"series\": [1,2,3], \"start\": \"2026-01-02 03:00\"}", spaced, 3);
	check_times("{\"series\": [1], \"times\": [\"x\"], \"times\": null}", NULL, 1);
	check_times("{\"series\": [1], \"start\": \"monday\"}", NULL, 1);
	check_times("{\"series\": [1], \"step\": \"by step\", \"start\": null}", NULL, 1);
	check_times("{\"series\": [], \"times\": []}", spaced, 0);
	check_times("{\"series\": [1]}", NULL, 1);
}

static void names_what_is_wrong_with_times(void **state)
{
	(void)state;
	check_bad("{\"series\":[1],\"times\":7}", NULL, "\"times\" is not an array");
	check_bad(
		"{\"series\":[1,2],\"times\":[7]}", NULL, "\"times\" has 1 items and \"series\" 2");
	check_bad("{\"series\":[1,2],\"times\":[7,\"soon\"]}", NULL, "\"times\"[1] is not a time");
	check_bad("{\"series\":[1,2],\"times\":[7,null]}", NULL, "\"times\"[1] is not a time");
	check_bad("{\"series\":[1,2],\"times\":[7,1e300]}", NULL, "\"times\"[1] is not a time");
	check_bad("{\"series\":[1,2],\"times\":[7,6]}", NULL,
		"\"times\"[1] is before the one in front of it");
	check_bad("{\"series\":[1,2],\"start\":\"x\",\"step\":1}", NULL, "\"start\" is not a time");
	check_bad("{\"series\":[1,2],\"start\":7,\"step\":0}", NULL,
		"\"step\" is not a number of seconds above 0");
	check_bad("{\"series\":[1,2],\"start\":7,\"step\":\"1h\"}", NULL,
		"\"step\" is not a number of seconds above 0");
	check_bad("{\"series\":[1,2],\"start\":7,\"step\":1e300}", NULL,
		"\"step\" extends beyond the year 9999");
	check_bad("{\"series\":[1,2],\"start\":7,\"step\":1,\"times\":[1,2]}", NULL,
		"\"times\" and \"start\"/\"step\" are mutually exclusive");
	check_bad("{\"series\":[1],\"times\":[1,]}", NULL, "not valid JSON at byte 26");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_whole_line),
		cmocka_unit_test(id_comes_back_as_written),
		cmocka_unit_test(last_of_equal_keys_counts),
		cmocka_unit_test(infinities_and_missing_points),
		cmocka_unit_test(names_what_is_wrong),
		cmocka_unit_test(strings_are_strict),
		cmocka_unit_test(strings_are_decoded),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(options_are_bounded),
		cmocka_unit_test(memory_is_used_again),
		cmocka_unit_test(reads_runs_and_hashes),
		cmocka_unit_test(reads_times),
		cmocka_unit_test(names_what_is_wrong_with_times),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
