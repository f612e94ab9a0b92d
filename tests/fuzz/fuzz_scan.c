/*
 * The reader of JSON against jansson: both must accept and refuse the same texts and see the same
 * values, and what is stepped over must end where what is read ends. Not compared, because they are
 * meant to differ: numbers beyond jansson's range, and NUL bytes outside strings, at which jansson
 * may stop. With the words NaN and Infinity nothing else may change, and lax only strings.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/scan.h"
#include "tests/fuzz/spoilt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
	if (!good)
		abort();
}

static bool is_text(const struct scan *scan, const char *text, size_t length)
{
	return scan->text.length == length && memcmp(scan->text.data, text, length) == 0;
}

static void compare(struct scan *scan, const json_t *expected);

/* Keys that come twice leave one value in jansson's object: those are only stepped over. */
static void compare_object(struct scan *scan, const json_t *expected)
{
	const char *begin = scan->at;
	size_t count = 0;

	check(scan_open(scan, '{'));
	for (; scan_key(scan); count++) {
		check(json_object_get(expected, scan->text.data) != NULL);
		check(scan_value(scan));
	}
	check(!scan->problem);
	if (count != json_object_size(expected))
		return;
	scan->at = begin;
	check(scan_open(scan, '{'));
	while (scan_key(scan))
		compare(scan, json_object_get(expected, scan->text.data));
	check(!scan->problem);
}

static void compare_array(struct scan *scan, const json_t *expected)
{
	size_t index = 0;

	check(scan_open(scan, '['));
	for (; scan_item(scan); index++)
		compare(scan, json_array_get(expected, index));
	check(!scan->problem && index == json_array_size(expected));
}

/* The value that is next must be `expected`. */
static void compare(struct scan *scan, const json_t *expected)
{
	double number = 0;

	switch (json_typeof(expected)) {
	case JSON_OBJECT: compare_object(scan, expected); return;
	case JSON_ARRAY: compare_array(scan, expected); return;
	case JSON_STRING:
		check(scan_text(scan) &&
			is_text(scan, json_string_value(expected), json_string_length(expected)));
		return;
	case JSON_INTEGER:
	case JSON_REAL:
		check(scan_sees_number(scan) && scan_number(scan, &number));
		check(number == json_number_value(expected));
		return;
	case JSON_TRUE: check(scan_word(scan, "true")); return;
	case JSON_FALSE: check(scan_word(scan, "false")); return;
	case JSON_NULL: check(scan_word(scan, "null")); return;
	}
	abort();
}

static bool step_over(const void *data, size_t size, bool words, bool lax)
{
	struct scan scan = {
		.at = data, .end = (const char *)data + size, .words = words, .lax = lax};

	scan_space(&scan);
	bool good = scan_value(&scan) && scan_end(&scan);
	check(scan.at <= scan.end && good == !scan.problem);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_error_t problem;
	bool good = step_over(data, size, false, false), loose = step_over(data, size, true, false);
	bool lax = step_over(data, size, false, true);
	char *mended = spoilt_mend((const char *)data, size);

	check(!good || (loose && lax));
	check(lax == step_over(mended, size, false, false));
	free(mended);
	if (size > 0 && memchr(data, 0, size)) {
		check(!loose);
		return 0;
	}
	json_t *tree = json_loadb(
		(const char *)data, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, &problem);
	check(tree ? good : !good || json_error_code(&problem) == json_error_numeric_overflow);
	if (tree) {
		struct scan scan = {.at = (const char *)data, .end = (const char *)data + size};
		scan_space(&scan);
		compare(&scan, tree);
		check(scan_end(&scan) && scan.depth == 0);
		buf_free(&scan.text);
	}
	json_decref(tree);
	return 0;
}
