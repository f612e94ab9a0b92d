/* The value in what a run prints: what is taken, and what might be mistaken for one. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/bisect/extract.h"

static void check(const char *how, const char *output, double expected)
{
	struct error error;
	double value = 0;

	if (!extract_check(how, &error))
		fail_msg("%s: %s", how, error.text);
	if (!extract_value(how, output, strlen(output), &value, &error))
		fail_msg("%s: \"%s\": %s", how, output, error.text);
	if (value != expected)
		fail_msg("%s: \"%s\" gives %.17g", how, output, value);
}

static void check_none(const char *how, const char *output, const char *text)
{
	struct error error;
	double value;

	assert_true(extract_check(how, &error));
	if (extract_value(how, output, strlen(output), &value, &error))
		fail_msg("%s: \"%s\" gives %g", how ? how : "last", output, value);
	if (!strstr(error.text, text))
		fail_msg("\"%s\": %s", output, error.text);
}

static void test_last(void **state)
{
	(void)state;
	check(NULL, "12.5", 12.5);
	check("last", "warm-up 3\np99: 12.5ms\n", 12.5);
	check(NULL, "1 2 -3\n", -3);
	check(NULL, "x=+4e-3 s", .004);
	check(NULL, ".5\n", .5);
	check(NULL, "took 7.\n", 7);
	check(NULL, "p99 v2 8 (of p95)", 8);
	check(NULL, "1,234\n99%\n", 99);
	check(NULL, "2026-01-02 12:30:01 level 4\n", 4);
	check(NULL, "\x1b[32m12.5\x1b[0m ms\x1b[1;31m\n", 12.5);
	check(NULL, "5\x1b[32m6\x1b[0m", 6);
	check(NULL, "1e400 2", 2);
}

static void test_no_last(void **state)
{
	static const char *const parts[] = {
		"1,234", "1.234,5", "12:30", "2026-01-02", "1.2.3", "3/4", "0x1f", "v-2", "10,20"};

	(void)state;
	check_none(NULL, "", "no number");
	check_none(NULL, "p99 v2 nan\n", "no number");
	check_none(NULL, "1e999", "out of range");
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		check_none(NULL, parts[i], "is ambiguous");
}

static void test_json(void **state)
{
	(void)state;
	check("json:p99", "{\"p99\": 1.5}", 1.5);
	check("json:p99", "cc -O2\n{\"p99\": 1}\n{\"p99\": 2}\ndone\n", 2);
	check("json:a.b[1].c", "{\"a\": {\"b\": [0, {\"c\": 7}]}}\n", 7);
	check("json:[1]", "[1,\n 2,\n 3]\n", 2);
	check("json:[\"a.b\"]", "{\"a.b\": 3, \"a\": {\"b\": 4}}", 3);
	check("json:x[\"[\"].y", "{\"x\": {\"[\": {\"y\": -1}}}", -1);
	check("json:p", "{\n\"p\": \"12.5\"\n}\nok\n", 12.5);
	check("json:r[0].p", "[\n{\"r\": 0}\n]\n{\n\"r\": [\n{\"p\": 4}\n]\n}\n", 4);
	check_none("json:p99", "p99 1.5", "no JSON");
	check_none("json:p99", "{\"p98\": 1}", "has no p99");
	check_none("json:a[3]", "{\"a\": [1]}", "has no a[3]");
	check_none("json:a", "{\"a\": {}}", "not a number");
	check_none("json:a", "{\"a\": \"fast\"}", "not a number");
	check_none("json:a", "{\"a\": 1", "no JSON");
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {"p99", "json:", "json:a..b", "json:a[", "json:a[x]",
		"json:a[\"b]", "json:.", "json:a[1]b", "json:a.", "json:[9999999999]", "regex:(",
		"Last"};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		if (extract_check(wrong[i], &error))
			fail_msg("%s is taken", wrong[i]);
		assert_int_equal(error.kind, ERROR_USAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last),
		cmocka_unit_test(test_no_last),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
