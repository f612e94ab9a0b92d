/* Links: templates that are refused, and that values cannot lead elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/link.h"

#define COMPARE "https://example.com/app/compare/{before}...{after}"

static void test_templates(void **state)
{
	static const char *const good[] = {"", COMPARE, "http://localhost:8080/?c={commit}",
		"https://example.com/static", "https://example.com/a@b/{commit}"};
	static const struct {
		const char *template, *problem;
	} bad[] = {
		{"example.com/{commit}", "must begin with http:// or https://"},
		{"javascript:alert({commit})", "must begin with"},
		{"https://example.com/{sha}", "no \"{sha}\""},
		{"https://example.com/{commit", "no \"{commit\""},
		{"https://example.com/{commit}|x", "no address"},
		{"https://example.com/ {commit}", "no address"},
		{"https://example.com/\xc3\xa9", "no address"},
		{"https://me:secret@example.com/{commit}", "must not hold a user"},
	};
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(link_check("commit_url", good[i], &error));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(link_check("commit_url", bad[i].template, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_non_null(strstr(error.text, bad[i].problem));
		assert_ptr_equal(strstr(error.text, "commit_url: "), error.text);
		assert_null(strstr(error.text, "secret"));
	}
}

static void test_expansion(void **state)
{
	struct arena *arena = arena_new();
	struct link_values values = {.commit = "c2", .before = "c1", .after = "c2"};

	(void)state;
	assert_string_equal(
		link_expand(arena, COMPARE, &values), "https://example.com/app/compare/c1...c2");
	values.before = "../../?x=1#<!channel>|";
	assert_string_equal(link_expand(arena, COMPARE, &values),
		"https://example.com/app/compare/"
		"..%2F..%2F%3Fx%3D1%23%3C%21channel%3E%7C...c2");
	values.before = "";
	assert_null(link_expand(arena, COMPARE, &values));
	values.before = NULL;
	assert_null(link_expand(arena, COMPARE, &values));
	assert_null(link_expand(arena, NULL, &values));
	assert_null(link_expand(arena, "", &values));
	assert_string_equal(
		link_expand(arena, "http://h/{commit}/{commit}", &values), "http://h/c2/c2");
	arena_free(arena);
}

static void test_a_link_has_an_end(void **state)
{
	struct arena *arena = arena_new();
	char *commit = calloc(1, LINK_LONGEST + 1);
	struct link_values values = {.commit = commit};

	(void)state;
	memset(commit, 'a', LINK_LONGEST - 9);
	assert_int_equal(strlen(link_expand(arena, "http://h/{commit}", &values)), LINK_LONGEST);
	commit[LINK_LONGEST - 9] = 'a';
	assert_null(link_expand(arena, "http://h/{commit}", &values));
	free(commit);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_templates),
		cmocka_unit_test(test_expansion),
		cmocka_unit_test(test_a_link_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
