/*
 * Numbers are held against the C library: on every decimal the reader must give strtod's bits, and
 * what the writer makes must be what printf makes of the fewest digits that read back.
 */
#include "unit.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/number.h"
#include "tests/unit/random.h"

static bool same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

static void check_scan(const char *text)
{
	const char *end = text + strlen(text);
	double value;
	if (number_scan(text, end, &value) != end)
		fail_msg("%.40s is not read to its end", text);
	if (!same_bits(value, strtod(text, NULL)))
		fail_msg("%.40s reads as %.17g", text, value);
	if (!number_parse(text, strlen(text), &value) || !same_bits(value, strtod(text, NULL)))
		fail_msg("%.40s parses as %.17g", text, value);
}

static void test_scan_known(void **state)
{
	(void)state;
	static const char *const texts[] = {"0", "-0", "0.0", "0e5", "-0.000", "1", "-1", "0.1",
		"100", "1e2", "1E+2", "1e-2", "10.058933634607016", "0.058823529411764705",
		"0.00012345678901234567", "0.0000000000000000000000012345678901234567890",
		"9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740994",
		"9007199254740995", "18446744073709551615", "18446744073709551616",
		"9999999999999999999", "99999999999999999999", "1e22", "1e23", "8.5e22", "1e-22",
		"1e-23", "9223372036854775807", "-9223372036854775808", "1e300", "1e-300",
		"1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308",
		"1e309", "-1e309", "1e9999", "1e-9999", "4.9e-324", "2.4703282292062327e-324",
		"2.4703282292062328e-324", "2.2250738585072011e-308", "2.2250738585072014e-308",
		"1e99999999999999999999", "1e-99999999999999999999", "0e99999999999999999999",
		"123456789012345678e-19", "123456789012345678e19",
		"0.500000000000000166533453693773481063544750213623046875",
		"3.518437208883201171875e13", "62.5364939768271845828", "8.10109172351e-10",
		"1.50000000000000011102230246251565"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		check_scan(texts[i]);
}

/* Halfway between two doubles, and a digit far behind that decides. */
static void test_scan_long(void **state)
{
	(void)state;
	static char text[3000];
	for (int tail = 0; tail < 2; tail++) {
		size_t length = (size_t)snprintf(text, sizeof text, "9007199254740993.");
		memset(text + length, '0', 2000);
		length += 2000;
		text[length++] = (char)('0' + tail);
		text[length] = '\0';
		check_scan(text);
	}
	size_t length = (size_t)snprintf(text, sizeof text, "0.");
	memset(text + length, '0', 2000);
	snprintf(text + length + 2000, 32, "12345678901234567891e2001");
	check_scan(text);
	memset(text, '7', 2000);
	snprintf(text + 2000, 32, "e-1999");
	check_scan(text);
}

static void test_scan_random(void **state)
{
	(void)state;
	uint64_t seed = 88172645463325252u;
	for (int i = 0; i < 300000; i++) {
		char text[64];
		uint64_t bits = random_next(&seed);
		double value;
		memcpy(&value, &bits, sizeof value);
		if (!isfinite(value) || i % 2)
			value = (double)(int64_t)bits *
				pow(10, (int)(random_next(&seed) % 44) - 32);
		snprintf(text, sizeof text, "%.*e", (int)(random_next(&seed) % 22), value);
		check_scan(text);
		uint64_t digits = random_next(&seed) >> random_next(&seed) % 60;
		snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64 "e%d", digits,
			(int)(random_next(&seed) % 9) + 1, random_next(&seed) % 10,
			(int)(random_next(&seed) % 50) - 25);
		check_scan(text);
	}
}

static void test_scan_stops(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t used; /* 0: no number */
	} cases[] = {{"1,2", 1}, {"1 ", 1}, {"1.5]", 3}, {"1e5x", 3}, {"-7e-2}", 5}, {"", 0},
		{"-", 0}, {"+1", 0}, {".5", 0}, {"1.", 0}, {"1.e5", 0}, {"1e", 0}, {"1e+", 0},
		{"01", 0}, {"-01", 0}, {"00", 0}, {"0x1", 1}, {"nan", 0}, {"inf", 0}, {"-inf", 0},
		{"--1", 0}, {" 1", 0}, {"e5", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *text = cases[i].text;
		double value;
		const char *end = number_scan(text, text + strlen(text), &value);
		assert_ptr_equal(end, cases[i].used ? text + cases[i].used : NULL);
	}
	double value;
	const char *text = "1234";
	assert_ptr_equal(number_scan(text, text + 2, &value), text + 2);
	assert_true(value == 12);
}

static void test_parse_words(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		double value;
	} good[] = {{"+1", 1}, {".5", .5}, {"-.5", -.5}, {"5.", 5}, {"007", 7}, {" 1\t", 1},
		{"inf", HUGE_VAL}, {"-Inf", -HUGE_VAL}, {"+INFINITY", HUGE_VAL},
		{"1e999", HUGE_VAL}, {"5.e1", 50}};
	static const char *const bad[] = {"", " ", ".", "+", "-", "e1", "1 2", "1,5", "0x10", "1e",
		"nan", "null", "infi", "--1", "+-1", "1f", "1_000", "- 1", "\xEF\xBC\x91"};
	double value;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(number_parse(good[i].text, strlen(good[i].text), &value));
		assert_true(same_bits(value, good[i].value));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(number_parse(bad[i], strlen(bad[i]), &value));
}

static void test_missing(void **state)
{
	(void)state;
	static const char *const yes[] = {"", "  ", "nan", "NaN", "-nan", " NULL\t", "null"};
	static const char *const no[] = {"0", "na", "nan0", "none", "inf", "-null"};
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		assert_true(number_missing(yes[i], strlen(yes[i])));
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(number_missing(no[i], strlen(no[i])));
}

/* printf's fewest digits, without an exponent up to 1e17 as number_format writes them. */
static void check_format(double value)
{
	char text[NUMBER_TEXT], other[64];
	size_t length = number_format(value, text);
	assert_int_equal(length, strlen(text));
	if (!same_bits(strtod(text, NULL), value))
		fail_msg("%.17g is written %s", value, text);
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(other, sizeof other, "%.*g", digits, value);
		if (strtod(other, NULL) == value)
			break;
	}
	if (strcmp(text, other) == 0)
		return;
	double again;
	if (!strchr(other, 'e') || strchr(text, 'e') || !number_parse(text, length, &again) ||
		fabs(value) < 1e15)
		fail_msg("%s is written %s", other, text);
}

static void test_format(void **state)
{
	(void)state;
	static const double values[] = {0, -0.0, 1, -1, 0.1, 0.5, 100, 1e15, 1e16, 1e17, 1e22, 1e23,
		123456789, 0.001, 0.00195312, 0x1p-9, 0x1p-10, 0x1p53, 0x1p53 - 1, 1e-300, 1e300,
		5e-324, 1.7976931348623157e308, 9.9999999999999999e14, 999999999999999.9,
		0.99999999999999989, 0.3, 2.0 / 3, 1e-5, 0.0099999999999999985, 9.9999999999999982};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		check_format(values[i]);
		check_format(-values[i]);
	}
	uint64_t seed = 2463534242u;
	for (int i = 0; i < 300000; i++) {
		uint64_t bits = random_next(&seed);
		double value;
		memcpy(&value, &bits, sizeof value);
		if (isfinite(value))
			check_format(value);
		value = (double)(int64_t)bits * pow(10, -(int)(random_next(&seed) % 24));
		check_format(value);
		check_format((double)(int)(bits % 2000000) / 1000);
	}
}

static void test_format_not_finite(void **state)
{
	(void)state;
	char text[NUMBER_TEXT];
	number_format(HUGE_VAL, text);
	assert_string_equal(text, "inf");
	number_format(-HUGE_VAL, text);
	assert_string_equal(text, "-inf");
	number_format(nan(""), text);
	assert_string_equal(text, "nan");
	number_format(-nan(""), text);
	assert_string_equal(text, "nan");
}

static void test_display(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *text;
	} rows[] = {{0, "0"}, {0.012345, "0.01235"}, {1.2345e-5, "1.234e-05"}, {999.7, "999.7"},
		{999.97, "1,000"}, {1000, "1,000"}, {-1234.4, "-1,234"}, {-123456, "-123,500"},
		{50123.4, "50,120"}, {999999.6, "1,000,000"}, {31704211, "31,700,000"},
		{-31706211, "-31,710,000"}, {1.2346e14, "123,500,000,000,000"},
		{9.9999e14, "1,000,000,000,000,000"}, {1.2346e15, "1.235e+15"}, {-1e300, "-1e+300"},
		{HUGE_VAL, "inf"}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[NUMBER_TEXT];
		size_t length = number_display(rows[i].value, text);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(length, strlen(text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_known),
		cmocka_unit_test(test_scan_long),
		cmocka_unit_test(test_scan_random),
		cmocka_unit_test(test_scan_stops),
		cmocka_unit_test(test_parse_words),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_format_not_finite),
		cmocka_unit_test(test_display),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
