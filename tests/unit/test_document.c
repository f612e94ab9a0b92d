/* Documents as tables and lines: which values are shown, and how. */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/report/document.h"

/* The document's text: a list is a table, an object is lines. */
static void assert_shown(const char *json, const char *const *columns, const char *expected)
{
	const struct document_section sections[] = {{NULL, NULL, columns}, {0}};
	struct arena *arena = arena_new();
	json_t *document = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(document);
	document_print(arena, document, sections, out);
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
	json_decref(document);
	arena_free(arena);
}

/* A commit, a note or a name may look like a date or a number. */
static void test_only_times_are_times(void **state)
{
	static const char *const columns[] = {"@at", "@last seen=seen", "commit", "note", NULL};

	(void)state;
	assert_shown("{\"at\": \"2026-03-01T02:03:04Z\", \"seen\": \"2026-03-01T02:03:04.500Z\","
		     " \"commit\": \"48249\", \"note\": \"2026-10-01\"}",
		columns,
		"at:        2026-03-01 02:03:04 +0000\n"
		"last seen: 2026-03-01 02:03:04 +0000\n"
		"commit:    48249\n"
		"note:      2026-10-01\n");
}

static void test_zero_is_a_value(void **state)
{
	static const char *const columns[] = {"before", "after", "none", "no", "empty", NULL};

	(void)state;
	assert_shown("{\"before\": 0.0, \"after\": 150, \"none\": null, \"no\": false, "
		     "\"empty\": \"\"}",
		columns, "before: 0\nafter:  150\n");
}

static void test_a_change_from_zero_is_new(void **state)
{
	static const char *const columns[] = {"id", "%change %=size", "p", NULL};

	(void)state;
	assert_shown("[{\"id\": 1, \"size\": null, \"p\": null}]", columns,
		"  id    change %\n"
		"----  ----------\n"
		"   1         new\n");
	assert_shown("[{\"id\": 1, \"size\": 12.5}, {\"id\": 2, \"size\": null}]", columns,
		"  id    change %\n"
		"----  ----------\n"
		"   1        12.5\n"
		"   2         new\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_times_are_times),
		cmocka_unit_test(test_zero_is_a_value),
		cmocka_unit_test(test_a_change_from_zero_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
