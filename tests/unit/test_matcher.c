/*
 * Matchers as people write them: what they select, how they print, and what is refused where.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/base/matcher.h"

/* What a change of one series has. */
static const struct value {
	const char *name;
	struct strings values;
} subject[] = {
	{"test", {(const char *const[]){"db.read"}, 1}},
	{"metric", {(const char *const[]){"p99"}, 1}},
	{"group", {(const char *const[]){"nightly", "storage"}, 2}},
	{"region", {(const char *const[]){"eu"}, 1}},
	{"path", {(const char *const[]){"a\nb"}, 1}},
};

static struct strings look_up(void *context, const char *name)
{
	(void)context;
	for (size_t i = 0; i < sizeof subject / sizeof *subject; i++)
		if (strcmp(subject[i].name, name) == 0)
			return subject[i].values;
	return (struct strings){0};
}

static bool selects(const char *text)
{
	struct arena *arena = arena_new();
	struct matchers matchers;
	struct error error = {0};
	bool found;

	if (!matchers_parse(text, arena, true, &matchers, &error))
		fail_msg("%s: %s", text, error.text);
	found = matchers_match(&matchers, look_up, NULL, NULL);
	matchers_free(&matchers);
	arena_free(arena);
	return found;
}

static void test_what_is_selected(void **state)
{
	static const char *const found[] = {"test=\"db.read\"", "test=db.read", "{test='db.read'}",
		"test=~\"db.*\", region=\"eu\"", "test=~db.*", "test=~\"db\\\\.read\"",
		"test=~`db\\.read`", "test=~\"x|db.read\"", "test=~\"db.rea[dt]\"",
		"test=~\"(?i)DB.READ\"", "metric=p99, test!=\"db.write\"",
		"metric=p99, test!~\"web.*\"", "metric=p99,test!=x,", "group=nightly",
		"group=storage", "group=~\"stor.*\"", "metric=p99, group!=weekly",
		"metric=p99, zone=\"\"", "metric=p99, zone!=\"a\"", "metric=p99, zone=~\".*\"",
		"region=~\"e?eu\"", "region=~\"eux?\"", "path=~\"a.b\"", "region=~\"eu{1,2}\"",
		"  test = db.read , metric = p99 "};
	static const char *const not_found[] = {"test=\"db\"", "test=~\"db\"", "test=~\"read\"",
		"metric=p99, test!=\"db.read\"", "metric=p99, test!~\"db.*\"",
		"metric=p99, group!=\"nightly\"", "metric=p99, group!~\"n.*\"",
		"region=eu, metric=p50", "region=EU", "zone=~\".+\"", "zone!=\"\"",
		"test=~\"d|x\""};

	(void)state;
	for (size_t i = 0; i < sizeof found / sizeof *found; i++)
		if (!selects(found[i]))
			fail_msg("%s does not select it", found[i]);
	for (size_t i = 0; i < sizeof not_found / sizeof *not_found; i++)
		if (selects(not_found[i]))
			fail_msg("%s selects it", not_found[i]);
}

static void test_canonical_text(void **state)
{
	static const char *const cases[][2] = {
		{"{ test =~ 'db.*' ,region=eu,}", "test=~\"db.*\", region=\"eu\""},
		{"test=~`a\\d`", "test=~\"a\\\\d\""},
		{"a='it\\'s \"x\"'", "a=\"it's \\\"x\\\"\""},
		{"a=\"\\u00e9\\x41\\101\\n\\U0001f600\"", "a=\"\303\251AA\\n\360\237\230\200\""},
		{"\"my label\"!=\"x\", a!~'y.*', b=z", "\"my label\"!=\"x\", a!~\"y.*\", b=\"z\""},
		{"path[2]=web", "path[2]=\"web\""},
		{"a=\"\\x01\\x7f\"", "a=\"\\u0001\\u007f\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct arena *arena = arena_new();
		struct matchers matchers, again;
		struct error error = {0};
		struct buf text = {0};

		if (!matchers_parse(cases[i][0], arena, true, &matchers, &error))
			fail_msg("%s: %s", cases[i][0], error.text);
		matchers_print(&matchers, &text);
		assert_string_equal(text.data, cases[i][1]);
		assert_true(matchers_parse(text.data, arena, true, &again, &error));
		buf_clear(&text);
		matchers_print(&again, &text);
		assert_string_equal(text.data, cases[i][1]);
		matchers_free(&matchers);
		matchers_free(&again);
		buf_free(&text);
		arena_free(arena);
	}
}

static void assert_refused(const char *text, const char *expected)
{
	struct arena *arena = arena_new();
	struct matchers matchers;
	struct error error = {0};

	assert_false(matchers_parse(text, arena, true, &matchers, &error));
	assert_int_equal(error.kind, ERROR_USAGE);
	if (!strstr(error.text, expected))
		fail_msg("%s: %s (expected: %s)", text, error.text, expected);
	arena_free(arena);
}

static void test_what_is_refused(void **state)
{
	static const char *const cases[][2] = {
		{"", "column 1: expected a matcher, such as test=\"checkout\", found the end"},
		{"{}", "column 1: expected a matcher"},
		{"test", "column 5: expected one of = != =~ !~, found the end"},
		{"test db", "column 6: expected one of = != =~ !~, found `db`"},
		{"test=", "column 6: expected a value, such as \"eu\", found the end"},
		{"test=\"a", "column 6: the quotation mark is not closed"},
		{"test=\"a\" metric=\"b\"",
			"column 10: expected a comma or the end, found `metric"},
		{"=\"a\"", "column 1: expected a name"},
		{"te st=\"a\"", "column 4: expected one of"},
		{"a/b=c", "column 1: expected a name"},
		{"{test=a", "column 8: expected a comma or }, found the end"},
		{"{test=a}}", "column 9: expected a comma or the end"},
		{"test=a, , b=c", "column 9: expected a name"},
		{"test=~\"(\"", "column 7: not a regular expression: missing closing parenthesis"},
		{"test=~\"a\\.b\"", "column 9: unknown escape"},
		{"test=\"\\xg0\"", "column 7: the escape has too few digits"},
		{"test=\"\\ud800\"", "column 7: the escape is not a character"},
		{"test=\"\\000\"", "column 7: the escape is not a character"},
		{"test=\"\377\"", "column 7: not UTF-8"},
		{"test==a", "column 6: expected a value"},
		{"test!=\"a\"", "the matchers match everything without these values"},
		{"region=\"\", zone!~\"x\"", "match everything"},
		{"region=~\".*\"", "match everything"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_refused(cases[i][0], cases[i][1]);
}

static void test_sizes_are_limited(void **state)
{
	static char text[2 * MATCHERS_TEXT_MOST];
	size_t length;

	(void)state;
	memset(text, 'x', MATCHERS_TEXT_MOST + 1);
	assert_refused(text, "longer than 4096 bytes");
	text[MATCHER_NAME_MOST + 1] = '\0';
	assert_refused(text, "column 1: longer than 128 bytes");
	memset(text, 'x', MATCHER_VALUE_MOST + 10);
	memcpy(text, "test=", 5);
	text[MATCHER_VALUE_MOST + 6] = '\0';
	assert_refused(text, "column 6: longer than 1024 bytes");
	length = 0;
	for (size_t i = 0; i <= MATCHERS_MOST; i++)
		length += (size_t)snprintf(text + length, sizeof text - length, "a=b,");
	assert_refused(text, "more than 32 matchers");
	memset(text, '(', 60);
	memset(text + 60, ')', 60);
	memmove(text + 8, text, 120);
	memcpy(text, "test=~'a", 8);
	memcpy(text + 128, "'", 2);
	assert_refused(text, "parentheses are too deeply nested");
}

/* An expression that would take ages gives up, and matches nothing. */
static void test_effort_is_limited(void **state)
{
	struct arena *arena = arena_new();
	struct matchers matchers;
	struct error error = {0};
	struct matcher_effort effort = {0};
	struct timespec from, to;

	(void)state;
	assert_true(matchers_parse("test!~\"(x+x+)+[yz]\", a=b", arena, true, &matchers, &error));
	clock_gettime(CLOCK_MONOTONIC, &from);
	assert_false(matcher_matches(&matchers.items[0],
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", &effort));
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_ptr_equal(effort.exceeded, &matchers.items[0]);
	assert_in_range(effort.steps, 1000, 10000); /* it would be years */
	assert_true(to.tv_sec - from.tv_sec < 1);
	effort = (struct matcher_effort){0};
	assert_true(matcher_matches(&matchers.items[0], "ab", &effort));
	assert_null(effort.exceeded);
	assert_in_range(effort.steps, 1, 20);
	assert_true(matcher_matches(&matchers.items[1], "b", &effort));
	assert_in_range(effort.steps, 1, 20);
	matchers_free(&matchers);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_selected),
		cmocka_unit_test(test_canonical_text),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_sizes_are_limited),
		cmocka_unit_test(test_effort_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
