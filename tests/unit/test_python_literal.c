/* Dicts as Python and JSON write them; tests/cases/python/make.py made the cases with the real
 * ones. */
#include "unit.h"

#include "agent/base/buf.h"
#include "sources/graphite/python_literal.h"
#include "tests/unit/jsonl.h"

static void check(json_t *row, void *context)
{
	const json_t *expected = json_object_get(row, "pairs");
	const char *text = json_string_value(json_object_get(row, "text"));
	struct arena *arena = arena_new();
	struct pairs pairs;
	(void)context;
	bool read = python_literal_read_dict(arena, text, strlen(text), &pairs);
	if (read != json_is_array(expected))
		fail_msg("%s: %s", read ? "accepted" : "refused", text);
	if (pairs.count != json_array_size(expected))
		fail_msg("%zu members: %s", pairs.count, text);
	for (size_t i = 0; i < pairs.count; i++) {
		const json_t *pair = json_array_get(expected, i);
		const char *key = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));
		if (strcmp(key, pairs.items[i].key) != 0)
			fail_msg("\"%s\" instead of \"%s\": %s", pairs.items[i].key, key, text);
		if (!value != !pairs.items[i].value ||
			(value && strcmp(value, pairs.items[i].value) != 0))
			fail_msg("\"%s\" is \"%s\": %s", key, pairs.items[i].value, text);
	}
	arena_free(arena);
}

static void test_cases(void **state)
{
	(void)state;
	assert_int_equal(jsonl_each("cases/python/literals.jsonl", check, NULL), 475);
}

/* Cut anywhere, a dict is none. */
static void test_truncated(void **state)
{
	static const char text[] =
		"{'a': \"b\\x41\", u'c': [1, (2.5e-3, None)], \"d\": {'e': true}}";
	(void)state;
	for (size_t length = 0; length < sizeof text; length++) {
		struct arena *arena = arena_new();
		struct pairs pairs;
		char *exact = memory_new(length + !length, 1);
		memcpy(exact, text, length);
		bool whole = length == sizeof text - 1;
		assert_int_equal(python_literal_read_dict(arena, exact, length, &pairs), whole);
		assert_int_equal(pairs.count, whole ? 3 : 0);
		free(exact);
		arena_free(arena);
	}
}

static void test_bytes_that_are_no_text(void **state)
{
	static const char text[] = "{'a': '\xff\0b'}";
	struct arena *arena = arena_new();
	struct pairs pairs;
	(void)state;
	assert_true(python_literal_read_dict(arena, text, sizeof text - 1, &pairs));
	assert_string_equal(pairs.items[0].value, "\xef\xbf\xbd\xef\xbf\xbd"
						  "b");
	arena_free(arena);
}

static void test_too_many_members(void **state)
{
	struct arena *arena = arena_new();
	struct buf text = {0};
	struct pairs pairs;
	(void)state;
	for (int i = 0; i < PYTHON_PAIRS_MAX + 1; i++) {
		buf_printf(&text, "%s'k%d': %d", i ? ", " : "{", i, i);
		if (i == PYTHON_PAIRS_MAX - 1) {
			buf_char(&text, '}');
			assert_true(
				python_literal_read_dict(arena, text.data, text.length, &pairs));
			assert_int_equal(pairs.count, PYTHON_PAIRS_MAX);
			assert_string_equal(pairs.items[PYTHON_PAIRS_MAX - 1].value, "999");
			text.length--;
		}
	}
	buf_char(&text, '}');
	assert_false(python_literal_read_dict(arena, text.data, text.length, &pairs));
	buf_free(&text);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_too_many_members),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
