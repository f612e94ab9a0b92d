/* The points of a series are known again, and those that are others are not. */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>

#include "agent/monitor/point_hashes.h"
#include "tests/unit/random_series.h"

enum { POINTS = 700 };

/* Points of which often several have one time. */
static void make_points(uint64_t *random, int64_t *times, double *values)
{
	int64_t time = 1700000000000;

	for (size_t i = 0; i < POINTS; i++) {
		times[i] = time;
		values[i] = random_below(random, 20) ? random_unit(random) : (double)NAN;
		if (random_below(random, 4))
			time += (int64_t)random_below(random, 100000);
	}
}

static size_t compare_part(const struct point_hashes *trace, int64_t *times, double *values,
	size_t from, size_t to, ptrdiff_t *shift)
{
	struct axis axis = {.n = to - from, .times = times + from};
	struct series series = {.axis = &axis, .values = values + from};

	return point_hashes_compare(trace, &series, shift);
}

static void note_part(struct point_hashes *trace, int64_t *times, double *values, size_t from,
	size_t to, ptrdiff_t shift, size_t same)
{
	struct axis axis = {.n = to - from, .times = times + from};
	struct series series = {.axis = &axis, .values = values + from};

	point_hashes_note(trace, &series, shift, same);
}

/* The front slides, points come, nothing is corrected: all is found again, at its place. */
static void test_growing_and_sliding(void **state)
{
	(void)state;
	static int64_t times[POINTS];
	static double values[POINTS];
	uint64_t random = 5;

	for (int round = 0; round < 300; round++) {
		struct point_hashes trace = {0};
		size_t from = random_below(&random, 50), to = from + 1, start = from;

		make_points(&random, times, values);
		note_part(&trace, times, values, from, to, 0, 0);
		for (; to <= POINTS; to += random_below(&random, 60)) {
			ptrdiff_t shift = -1;
			size_t same;

			if (to - from > 300)
				from += random_below(&random, 100);
			while (from > start && times[from] == times[from - 1])
				from--; /* what is asked for begins at a time */
			same = compare_part(&trace, times, values, from, to, &shift);
			assert_int_equal(same, trace.n);
			assert_int_equal(shift, from - start);
			note_part(&trace, times, values, from, to, shift, same);
			assert_int_equal(trace.n, to - start);
			assert_true(
				trace.end - trace.first <= (to - from) / POINT_HASHES_BLOCK + 2);
		}
		point_hashes_clear(&trace);
	}
}

/* More of the front is asked for again than was noted. */
static void test_earlier_points(void **state)
{
	(void)state;
	static int64_t times[POINTS];
	static double values[POINTS];
	uint64_t random = 6;
	struct point_hashes trace = {0};
	ptrdiff_t shift = 0;

	make_points(&random, times, values);
	for (size_t i = 0; i < POINTS; i++)
		times[i] = 1700000000000 + (int64_t)i;
	note_part(&trace, times, values, 100, 400, 0, 0);
	assert_int_equal(compare_part(&trace, times, values, 30, 500, &shift), 300);
	assert_int_equal(shift, -70);
	assert_int_equal(compare_part(&trace, times, values, 399, 500, &shift), 0);
	assert_int_equal(compare_part(&trace, times, values, 400, 400, &shift), 0);
	point_hashes_clear(&trace);
	assert_int_equal(compare_part(&trace, times, values, 30, 500, &shift), 0);
}

/* Up to a correction, an insertion or the end of what is left, points are as they were. */
static void test_corrections(void **state)
{
	(void)state;
	static int64_t times[POINTS + 1];
	static double values[POINTS + 1];
	uint64_t random = 7;
	size_t found = 0;

	for (int round = 0; round < 3000; round++) {
		struct point_hashes trace = {0};
		size_t n = 1 + random_below(&random, POINTS - 1), at = random_below(&random, n);
		size_t from = random_below(&random, 2) ? random_below(&random, n) : 0, end = n,
		       same;
		size_t how = random_below(&random, 3);
		ptrdiff_t shift = 0;

		make_points(&random, times, values);
		note_part(&trace, times, values, 0, n, 0, 0);
		if (random_below(&random, 4) == 0)
			at = n - 1;
		if (how == 0 || at == 0) /* the first time is not known from a later front */
			values[at] = isnan(values[at]) ? 1 : values[at] + 1e-9;
		else if (how == 1)
			times[at] += at + 1 < n ? (times[at + 1] - times[at]) / 2 + 1 : 1;
		else
			end = at;
		same = from < end ? compare_part(&trace, times, values, from, end, &shift) : 0;
		if (from > at)
			assert_true(same == 0 || same == n);
		else if (from == 0 || at >= from + 2 * POINT_HASHES_BLOCK)
			assert_true(same <= at); /* a block that is cut is passed over */
		if (from == 0 && at >= POINT_HASHES_BLOCK)
			assert_true(same + POINT_HASHES_BLOCK > at);
		if (from == 0 && at == n - 1 && at % POINT_HASHES_BLOCK > 0)
			assert_int_equal(same, at);
		if (same > 0 && (from == 0 || at >= from + 2 * POINT_HASHES_BLOCK))
			assert_int_equal(shift, from);
		found += same > 0;
		point_hashes_clear(&trace);
	}
	assert_true(found > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growing_and_sliding),
		cmocka_unit_test(test_earlier_points),
		cmocka_unit_test(test_corrections),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
