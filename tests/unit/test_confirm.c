/*
 * When a change is believed: strong evidence at once, weak evidence after more points, and never
 * less readily with more of either.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>

#include "detectors/confirm.h"

static bool holds(const char *text, double p, size_t before, size_t after, size_t first)
{
	struct confirm_rule rule;
	struct error error;
	assert_true(confirm_parse(text, &rule, &error));
	struct change change = {.index = before,
		.pvalue = p,
		.mean_before = 100,
		.mean_after = 105,
		.stddev_before = 2,
		.stddev_after = 2,
		.count_before = before,
		.count_after = after,
		.magnitude = 0.05};
	return confirm_holds(&rule, &change, first, false);
}

static void test_off_and_points(void **state)
{
	(void)state;
	assert_true(holds("off", 9e-4, 8, 2, 2));
	assert_false(holds("8 points", 1e-30, 100, 7, 2));
	assert_true(holds("8 points", 9e-4, 8, 8, 8));
	assert_true(holds("1", 9e-4, 8, 2, 2));
}

static void test_auto(void **state)
{
	(void)state;
	assert_false(holds("auto", 1e-20, 60, 4, 3));
	assert_true(holds("auto", 1e-20, 60, 5, 3));
	assert_false(holds("auto", 9e-4, 60, 3, 3));
	assert_false(holds("auto", 9e-4, 60, 6, 3));
	assert_true(holds("auto", 9e-4, 60, 7, 3));
	assert_true(holds("auto", 9e-4, 60, 60, 60));
	/* Five points before it know little of what is usual. */
	assert_false(holds("auto", 1e-12, 5, 5, 5));
}

static void test_more_is_never_less(void **state)
{
	(void)state;
	for (int digits = 3; digits < 30; digits++)
		for (size_t before = 5; before < 200; before += 13)
			for (size_t after = 2; after < 80; after++) {
				double p = pow(10, -digits);
				if (!holds("auto", p, before, after, after))
					continue;
				assert_true(holds("auto", p / 10, before, after, after));
				assert_true(holds("auto", p, before, after + 1, after));
				assert_true(holds("auto", p, before + 13, after, after));
			}
}

/* However strong the evidence is, five points have to be there, three in a service; what is found
 * later than that counts as ever. */
static void test_least(void **state)
{
	(void)state;
	struct confirm_rule rule = {.mode = CONFIRM_AUTO};
	struct change change = {.pvalue = 1e-60, .count_before = 100};

	for (change.count_after = 1; change.count_after < 30; change.count_after++)
		for (int service = 0; service < 2; service++)
			assert_int_equal(confirm_holds(&rule, &change, change.count_after, service),
				change.count_after >= (service ? 3U : 5U));
	change.pvalue = 0.0005;
	change.count_after = 7;
	assert_true(confirm_holds(&rule, &change, 3, false));
	assert_false(confirm_holds(&rule, &change, 4, false));
}

static void test_option(void **state)
{
	(void)state;
	struct confirm_options options;
	struct confirm_rule rule;
	struct error error;
	field_defaults(confirm_fields, &options);
	assert_true(confirm_parse(options.confirm, &rule, &error));
	assert_int_equal(rule.mode, CONFIRM_AUTO);
	assert_true(confirm_parse("12 points", &rule, &error));
	assert_int_equal(rule.mode, CONFIRM_POINTS);
	assert_int_equal(rule.points, 12);
	static const char *const bad[] = {"", "on", "0", "-3", "1001", "3 runs", "soon"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(confirm_parse(bad[i], &rule, &error));
	assert_string_equal(error.text,
		"confirm: \"soon\" is neither auto, off nor a number of points from 1 to 1000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off_and_points),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_more_is_never_less),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
