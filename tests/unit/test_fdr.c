/*
 * Benjamini and Hochberg's procedure against their own example, and its option.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/fdr.h"
#include "tests/unit/close.h"

/* The fifteen p-values of their paper, of which the four least pass at 0.05. */
static void test_their_example(void **state)
{
	(void)state;
	double pvalues[] = {0.0298, 0.0001, 0.3240, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0344,
		0.0459, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000};
	assert_close(fdr_limit(pvalues, 15, 15, 0.05), 0.0095, 0);
}

/* Only the least of the p-values has to be known: series without a change count as hypotheses. */
static void test_many_flat_series(void **state)
{
	(void)state;
	double pvalues[] = {9e-4, 5e-4, 1e-8, 3e-7};
	assert_close(fdr_limit(pvalues, 4, 4, 0.05), 9e-4, 0);
	assert_close(fdr_limit(pvalues, 4, 40000, 0.05), 3e-7, 0);
	assert_close(pvalues[0], 1e-8, 0);
	double chance[] = {9e-4, 5e-4};
	assert_true(fdr_limit(chance, 2, 40000, 0.05) < 0);
}

/* A step up: a p-value may pass that is above its own bound if one above it passes. */
static void test_step_up(void **state)
{
	(void)state;
	double pvalues[] = {0.02, 0.03, 0.0375};
	assert_close(fdr_limit(pvalues, 3, 4, 0.05), 0.0375, 0);
}

static void test_edges(void **state)
{
	(void)state;
	double zero[] = {0, 0};
	assert_close(fdr_limit(zero, 2, 1000000, 0.05), 0, 0);
	assert_true(fdr_limit(zero, 0, 10, 0.05) < 0);
	double any[] = {0.9};
	assert_close(fdr_limit(any, 1, 10, 0), 1, 0);
}

static void test_option(void **state)
{
	(void)state;
	struct fdr_options options;
	struct error error;
	double share = 1;
	field_defaults(fdr_fields, &options);
	assert_true(fdr_parse(options.fdr, &share, &error));
	assert_close(share, 0, 0);
	assert_true(fdr_parse("0.05", &share, &error));
	assert_close(share, 0.05, 0);
	static const char *const bad[] = {"", "on", "0", "1", "-0.1", "nan", "0.05x", "5%"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(fdr_parse(bad[i], &share, &error));
	assert_string_equal(error.text, "fdr: \"5%\": expected off or a share between 0 and 1");
}

static void test_a_rank(void **state)
{
	static const double others[] = {0.00001, 0.00003, 0.5};

	(void)state;
	assert_int_equal(fdr_rank(others, 3, 0.00004), 3);
	assert_int_equal(fdr_rank(NULL, 0, 0.5), 1);
	assert_int_equal(fdr_rank(others, 3, 0.00001), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_their_example),
		cmocka_unit_test(test_many_flat_series),
		cmocka_unit_test(test_step_up),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_option),
		cmocka_unit_test(test_a_rank),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
