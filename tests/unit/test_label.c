/*
 * Label sets as people write them, against the names of series.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "agent/base/label.h"

static const char *const series = "latency{job=\"shop\",path=\"/a\\\"b\\\\c\",region=\"eu\"}";

static void test_what_has_the_labels(void **state)
{
	static const char *const fitting[] = {"{region=\"eu\"}", "{region=eu}", "{ region = eu }",
		"latency{region=\"eu\", job=shop}", "{path=\"/a\\\"b\\\\c\"}"};
	static const char *const others[] = {
		"{region=us}", "{region=e}", "{region=\"eu\",job=x}", "{zone=eu}", "{Region=eu}"};

	(void)state;
	for (size_t i = 0; i < sizeof fitting / sizeof *fitting; i++)
		assert_true(label_has_asked(series, fitting[i]));
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(label_has_asked(series, others[i]));
}

static void test_what_is_no_label_set(void **state)
{
	static const char *const bad[] = {"", "p99", "{", "}", "{region}", "{region=}x", "{=eu}",
		"{region=\"eu}", "{region=eu", "{region=eu}}", "{region=\"eu\\", "{a=b,,c=d}", "{}",
		"{a=b,}", "{region=eu job=x\"}"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(label_has_asked(series, bad[i]));
}

static void test_tags_and_paths_count(void **state)
{
	(void)state;
	assert_true(label_has_asked("disk.used;host=a", "{host=a}"));
	assert_false(label_has_asked("disk.used;host=a", "{host=b}"));
	assert_true(label_has_asked("web.a.latency", "{path[2]=a}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_has_the_labels),
		cmocka_unit_test(test_what_is_no_label_set),
		cmocka_unit_test(test_tags_and_paths_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
