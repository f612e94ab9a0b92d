/* What git prints, as commits. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/runtime/repository.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static const struct commits *parse(struct arena *arena, const char *text, size_t length)
{
	struct commits *out = arena_alloc(arena, sizeof *out);

	return repository_parse(arena, text, length, out) ? out : NULL;
}

static void test_commits(void **state)
{
	static const char text[] = ID "\nAnn \xC3\x9C\n1700000000\nFaster\tnow\0" ID ID "\n\n0\n\0";
	struct arena *arena = arena_new();
	const struct commits *found;

	(void)state;
	/* An id of SHA-256 has 64 digits, not 80. */
	assert_null(parse(arena, text, sizeof text - 1));
	found = parse(arena, text, strlen(text) + 1);
	assert_non_null(found);
	assert_int_equal(found->count, 1);
	assert_false(found->more);
	assert_string_equal(found->items[0].id, ID);
	assert_string_equal(found->items[0].author, "Ann \xC3\x9C");
	assert_int_equal(found->items[0].time, INT64_C(1700000000000));
	assert_string_equal(found->items[0].subject, "Faster now");
	found = parse(arena, "", 0);
	assert_int_equal(found->count, 0);
	assert_false(found->more);
	arena_free(arena);
}

static void test_what_is_none(void **state)
{
	static const char *const wrong[] = {"x", ID, ID "\n", ID "\na\n", ID "\na\n1",
		ID "\na\n\ns", ID "\na\n1234567890123\ns", "0123\na\n1\ns",
		"g123456789abcdef0123456789abcdef01234567\na\n1\ns"};
	struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (parse(arena, wrong[i], strlen(wrong[i]) + 1))
			fail_msg("\"%s\" is taken", wrong[i]);
	arena_free(arena);
}

/* Of more than are wanted, or than were read, there are more. */
static void test_cut(void **state)
{
	struct arena *arena = arena_new();
	const struct commits *found;
	struct buf text = {0};

	(void)state;
	for (int i = 0; i <= COMMITS_MOST; i++) {
		found = parse(arena, text.length ? text.data : "", text.length);
		assert_int_equal(found->count, i);
		assert_false(found->more);
		buf_text(&text, ID "\na\n1\ns");
		buf_append(&text, "", 1);
	}
	found = parse(arena, text.data, text.length);
	assert_int_equal(found->count, COMMITS_MOST);
	assert_true(found->more);
	found = parse(arena, text.data, 50 + 30);
	assert_int_equal(found->count, 1);
	assert_true(found->more);
	buf_free(&text);
	arena_free(arena);
}

static void test_long_subjects(void **state)
{
	struct arena *arena = arena_new();
	const struct commits *found;
	struct buf text = {0};

	(void)state;
	buf_text(&text, ID "\n\xFF\xC3\n1\n");
	for (int i = 0; i < 5000; i++)
		buf_text(&text, "\xC3\xA4");
	buf_append(&text, "", 1);
	found = parse(arena, text.data, text.length);
	assert_string_equal(found->items[0].author, "\xEF\xBF\xBD\xEF\xBF\xBD");
	assert_int_equal(strlen(found->items[0].subject), 2 * (COMMIT_SUBJECT - 1) + 3);
	buf_free(&text);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commits),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_long_subjects),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
