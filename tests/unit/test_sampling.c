/*
 * Which points make a run, and which were measured with one binary.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include "agent/analysis/sampling.h"
#include "tests/unit/data.h"

static struct arena *arena;

static struct sampling read(const struct test *test, const struct axis *axis)
{
	struct error error;
	struct sampling sampling;
	assert_true(sampling_read(arena, test, axis, &sampling, &error));
	return sampling;
}

static void test_by_time(void **state)
{
	(void)state;
	const struct test test = {.name = "t"};
	struct axis *axis = data_axis(arena, 6, NEW_YEAR, DAY);
	struct sampling sampling = read(&test, axis);
	assert_null(sampling.runs);
	assert_null(sampling.hashes);
	axis->times[2] = axis->times[1];
	axis->times[5] = axis->times[4];
	sampling = read(&test, axis);
	static const size_t expected[] = {0, 1, 1, 2, 3, 3};
	assert_memory_equal(sampling.runs, expected, sizeof expected);
}

static void test_by_attribute(void **state)
{
	(void)state;
	const struct test test = {.name = "t", .run_attribute = "build", .hash_attribute = "sha"};
	static const char *const builds[] = {"7", "7", "8", NULL, NULL, "8"};
	static const char *const shas[] = {"aa", "ab", "aa", NULL, "", "ab"};
	struct axis *axis = data_axis(arena, 6, NEW_YEAR, DAY);
	axis->times[3] = axis->times[2];
	data_attribute(arena, axis, "build", builds);
	data_attribute(arena, axis, "sha", shas);
	struct sampling sampling = read(&test, axis);
	static const size_t expected[] = {0, 0, 1, 2, 3, 4};
	assert_memory_equal(sampling.runs, expected, sizeof expected);
	const uint64_t *hashes = sampling.hashes;
	assert_true(hashes[0] != 0 && hashes[1] != 0 && hashes[0] != hashes[1]);
	assert_true(hashes[2] == hashes[0] && hashes[5] == hashes[1]);
	assert_true(hashes[3] == 0 && hashes[4] == 0);
}

static void test_samples(void **state)
{
	(void)state;
	const struct test test = {.name = "t"};
	const double values[] = {1, 2, 3, 4};
	struct dataset data = {0};
	struct axis *axis = data_axis(arena, 4, NEW_YEAR, 0);
	struct series *series = data_series(arena, &data, axis, "p99", -1, values);
	struct sampling sampling = read(&test, axis);
	struct samples samples = sampling_of(&sampling, series);
	assert_ptr_equal(samples.values, series->values);
	assert_int_equal(samples.n, 4);
	assert_int_equal(samples.direction, -1);
	assert_ptr_equal(samples.runs, sampling.runs);
	assert_int_equal(samples.runs[3], 0);
}

static void test_missing_attribute(void **state)
{
	(void)state;
	struct error error;
	struct sampling sampling;
	const struct test test = {.name = "t", .hash_attribute = "sha"};
	struct axis *axis = data_axis(arena, 2, NEW_YEAR, DAY);
	assert_false(sampling_read(arena, &test, axis, &sampling, &error));
	assert_string_equal(error.text, "test \"t\": hash_attribute: the points have no attribute "
					"\"sha\"; add it to `attributes`");
	assert_int_equal(error.kind, ERROR_DATA);
	axis->n = 0;
	assert_true(sampling_read(arena, &test, axis, &sampling, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_time),
		cmocka_unit_test(test_by_attribute),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_missing_attribute),
	};
	arena = arena_new();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_free(arena);
	return failed;
}
