/*
 * Reference results carried in tests/golden: Otava's change points, its q-hat, t-tests of SciPy and
 * mpmath.
 */

/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "detectors/edivisive/edivisive.h"
#include "detectors/edivisive/search.h"
#include "detectors/loops.h"
#include "detectors/stats.h"
#include "tests/unit/close.h"
#include "tests/unit/jsonl.h"

struct tally {
	size_t compared, fragile, points;
	struct scratch *scratch;
};

/* p-values of these two lose digits in Otava's own sums. */
static double p_tolerance(const char *id)
{
	return strncmp(id, "open-203", 8) == 0 || strncmp(id, "open-204", 8) == 0 ? 5e-3 : 1e-9;
}

static void compare_point(const char *id, const struct change *change, const json_t *expected)
{
	size_t index = (size_t)json_integer_value(json_object_get(expected, "index"));
	if (change->index != index)
		fail_msg("%s: change point at %zu instead of %zu", id, change->index, index);
	double p = jsonl_number(json_object_get(expected, "pvalue"));
	if (!is_close(change->pvalue, p, p_tolerance(id)) && p > 1e-300)
		fail_msg("%s: p at %zu is %.17g, not %.17g", id, index, change->pvalue, p);
	assert_close(change->mean_before, jsonl_number(json_object_get(expected, "mean_1")), 1e-9);
	assert_close(change->mean_after, jsonl_number(json_object_get(expected, "mean_2")), 1e-9);
	double scale = fabs(change->mean_before) + fabs(change->mean_after);
	double before = jsonl_number(json_object_get(expected, "std_1"));
	double after = jsonl_number(json_object_get(expected, "std_2"));
	assert_true(fabs(change->stddev_before - before) <= 1e-9 * before + 1e-12 * scale);
	assert_true(fabs(change->stddev_after - after) <= 1e-9 * after + 1e-12 * scale);
	double percent = jsonl_number(json_object_get(expected, "forward_change_percent"));
	assert_true(fabs(change_percent(change) - percent) <= 1e-9 * fabs(percent) + 1e-9);
}

static void compare_case(json_t *row, void *context)
{
	struct tally *tally = context;
	if (json_is_true(json_object_get(row, "fragile"))) {
		tally->fragile++;
		return;
	}
	const json_t *given = json_object_get(row, "options");
	struct edivisive_options options = {
		.window = json_integer_value(json_object_get(given, "window_len")),
		.p_value = jsonl_number(json_object_get(given, "max_pvalue")),
		.magnitude = jsonl_number(json_object_get(given, "min_magnitude")),
		.profile = EDIVISIVE_OTAVA,
	};
	size_t n;
	double *values = jsonl_numbers(json_object_get(row, "series"), &n);
	struct change *changes = calloc(n + 1, sizeof(*changes));
	struct samples samples = {.values = values, .n = n};
	size_t count = edivisive_detector.detect(&samples, &options, tally->scratch, changes);
	const char *id = json_string_value(json_object_get(row, "id"));
	const json_t *expected = json_object_get(row, "change_points");
	if (count != json_array_size(expected))
		fail_msg("%s: %zu change points instead of %zu", id, count,
			json_array_size(expected));
	for (size_t i = 0; i < count; i++)
		compare_point(id, &changes[i], json_array_get(expected, i));
	tally->compared++;
	tally->points += count;
	free(values);
	free(changes);
}

static void test_otava_change_points(void **state)
{
	(void)state;
	struct tally tally = {.scratch = scratch_new()};
	assert_int_equal(jsonl_each("golden/edivisive.jsonl", compare_case, &tally), 748);
	scratch_free(tally.scratch);
	print_message("%zu cases with %zu change points, %zu fragile ones left out\n",
		tally.compared, tally.points, tally.fragile);
	assert_int_equal(tally.compared, 683);
}

static void compare_qhat(json_t *row, void *context)
{
	size_t n;
	double *values = jsonl_numbers(json_object_get(row, "series"), &n);
	size_t start = (size_t)json_integer_value(json_object_get(row, "start"));
	size_t end = (size_t)json_integer_value(json_object_get(row, "end"));
	for (int plain = 0; plain < 2; plain++) {
		scratch_reset(context);
		struct search search =
			search_new(end - start, plain ? &loops_plain : loops_best(), context);
		struct split split = search_split(&search, values + start, end - start);
		assert_close(split.q, jsonl_number(json_object_get(row, "qhat")), 1e-9);
		assert_int_equal(
			start + split.tau, json_integer_value(json_object_get(row, "tau")));
	}
	free(values);
}

static void test_qhat(void **state)
{
	(void)state;
	struct scratch *scratch = scratch_new();
	assert_int_equal(jsonl_each("golden/qhat.jsonl", compare_qhat, scratch), 30);
	scratch_free(scratch);
}

static struct moments moments_from(
	const json_t *row, const char *mean, const char *stddev, const char *n, bool sample)
{
	size_t count = (size_t)json_integer_value(json_object_get(row, n));
	double sd = jsonl_number(json_object_get(row, stddev));
	double weight = (double)(sample ? count - 1 : count);
	return (struct moments){.n = count,
		.mean = jsonl_number(json_object_get(row, mean)),
		.squares = sd * sd * weight};
}

static void compare_test(struct ttest test, const json_t *expected)
{
	double t = jsonl_number(json_object_get(expected, "t"));
	double p = jsonl_number(json_object_get(expected, "p_mpmath"));
	double df = jsonl_number(json_object_get(expected, "df"));
	if (!is_close(test.t, t, 1e-12) || (p > 1e-300 && !is_close(test.p, p, 2e-11)))
		fail_msg("t %.17g, p %.17g instead of %.17g, %.17g", test.t, test.p, t, p);
	if (!isnan(df) && !isnan(t))
		assert_close(test.df, df, 1e-12);
}

static void compare_ttest(json_t *row, void *context)
{
	(void)context;
	const json_t *pooled = json_object_get(row, "pooled");
	if (json_is_object(pooled))
		compare_test(ttest_pooled(moments_from(row, "mean_1", "std_1", "n1", false),
				     moments_from(row, "mean_2", "std_2", "n2", false)),
			pooled);
	const json_t *welch = json_object_get(row, "welch");
	if (json_is_object(welch))
		compare_test(ttest_welch(moments_from(row, "mean_1", "std_1", "n1", true),
				     moments_from(row, "mean_2", "std_2", "n2", true)),
			welch);
}

static void test_ttests(void **state)
{
	(void)state;
	assert_true(jsonl_each("golden/ttest.jsonl", compare_ttest, NULL) > 250);
}

static void compare_student(json_t *row, void *context)
{
	double t = jsonl_number(json_object_get(row, "t"));
	double df = jsonl_number(json_object_get(row, "df"));
	double expected = jsonl_number(json_object_get(row, "p_mpmath"));
	double p = student_two_sided(t, df), *worst = context;
	assert_close(student_two_sided(-t, df), p, 0);
	if (expected < 1e-300) {
		assert_true(p < 1.1e-300);
		return;
	}
	double off = fabs(p - expected) / expected;
	*worst = off > *worst ? off : *worst;
	if (off > 1e-12)
		fail_msg("t %g, df %g: p %.17g instead of %.17g (%g)", t, df, p, expected, off);
}

static void test_student(void **state)
{
	(void)state;
	double worst = 0;
	assert_true(jsonl_each("golden/student-t-cdf.jsonl", compare_student, &worst) > 300);
	print_message("largest relative error of Student's p: %.2g\n", worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_otava_change_points),
		cmocka_unit_test(test_qhat),
		cmocka_unit_test(test_ttests),
		cmocka_unit_test(test_student),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
