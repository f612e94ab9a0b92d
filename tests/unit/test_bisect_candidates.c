/* What git prints of a range, and short names. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/bisect/bisection.h"
#include "agent/bisect/candidates.h"

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "0123456799abcdef0123456789abcdef01234567"
#define C "f123456789abcdef0123456789abcdef01234567"

static bool parse(
	struct arena *arena, const char *text, size_t length, struct candidate_commits *out)
{
	struct error error;

	*out = (struct candidate_commits){0};
	return candidates_parse(arena, text, length, out, &error);
}

static void test_commits(void **state)
{
	static const char text[] = B "\n" A " " C "\nMerge\tx\0" A "\n" C "\n";
	struct arena *arena = arena_new();
	struct candidate_commits found;

	(void)state;
	assert_true(parse(arena, text, sizeof text, &found));
	assert_int_equal(found.count, 2);
	assert_string_equal(found.items[0].id, A);
	assert_string_equal(found.items[0].subject, "");
	assert_false(found.items[0].merge);
	assert_string_equal(found.items[1].subject, "Merge x");
	assert_true(found.items[1].merge);
	assert_true(parse(arena, "", 0, &found));
	assert_int_equal(found.count, 0);
	arena_free(arena);
}

static void test_what_is_none(void **state)
{
	static const char *const wrong[] = {"", "x", A, A "\n\n", "0123\n\ns",
		"g123456789abcdef0123456789abcdef01234567\n\ns", A A "\n\ns"};
	struct arena *arena = arena_new();
	struct candidate_commits found;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		size_t length = strlen(wrong[i]);

		if (parse(arena, wrong[i], length + (i != 3), &found))
			fail_msg("\"%s\" is taken", wrong[i]);
	}
	arena_free(arena);
}

static void test_too_many(void **state)
{
	struct arena *arena = arena_new();
	struct candidate_commits found;
	struct buf text = {0};
	struct error error;

	(void)state;
	for (int i = 0; i < BISECT_CANDIDATES_MOST; i++)
		buf_append(&text, A "\n\nAnn\n1\ns", sizeof A "\n\nAnn\n1\ns");
	assert_true(parse(arena, text.data, text.length, &found));
	assert_int_equal(found.count, BISECT_CANDIDATES_MOST);
	buf_append(&text, A "\n\nAnn\n1\ns", sizeof A "\n\nAnn\n1\ns");
	assert_false(candidates_parse(arena, text.data, text.length, &found, &error));
	assert_non_null(strstr(error.text, "more than 4096 commits"));
	buf_free(&text);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commits),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
