/*
 * precedent: steps on hourly values that wait for what the series did before.
 */
#include "unit.h"
#include <math.h>

#include "detectors/precedent.h"
#include "tests/unit/random_series.h"

#define HOUR INT64_C(3600000)
enum { BEFORE = 600, MOST = BEFORE + 200 };

static double values[MOST];
static int64_t times[MOST];

/* 100, with a ripple of 2%. */
static void fill(void)
{
	for (size_t i = 0; i < MOST; i++) {
		times[i] = (int64_t)i * HOUR;
		values[i] = 100 * (1 + 0.02 * sin(2.3 * (double)i * (double)i));
	}
}

static void raise(size_t from, size_t count, double factor)
{
	for (size_t i = from; i < from + count && i < MOST; i++)
		values[i] *= factor;
}

/* Behind the last step, which is 30% high, are m values. */
static enum precedent_verdict judge(size_t m)
{
	return precedent_of(values, times, BEFORE + m, 0, BEFORE, NULL, false);
}

static void test_nothing_before(void **state)
{
	(void)state;
	fill();
	raise(BEFORE, MOST, 1.3);
	for (size_t m = 1; m < 200; m++)
		assert_int_equal(judge(m), PRECEDENT_NONE);
}

/* A step waits until it has lasted longer than the movements before. */
static void test_as_long_as_before(void **state)
{
	(void)state;
	fill();
	raise(200, 6, 1.4);
	raise(330, 6, 1.3);
	raise(BEFORE, MOST, 1.3);
	for (size_t m = 1; m <= 7; m++)
		assert_int_equal(judge(m), PRECEDENT_PASSED);
	for (size_t m = 11; m < 200; m++)
		assert_int_equal(judge(m), PRECEDENT_NONE);
}

/* Single values delay it to the fourth, and so does a newest value that is back. */
static void test_spikes(void **state)
{
	(void)state;
	fill();
	raise(300, 1, 1.3);
	raise(BEFORE, MOST, 1.3);
	for (size_t m = 1; m <= 3; m++)
		assert_int_equal(judge(m), PRECEDENT_PASSED);
	assert_int_equal(judge(4), PRECEDENT_NONE);
	raise(BEFORE + 3, 1, 1.1 / 1.3);
	assert_int_equal(judge(4), PRECEDENT_BACK);
	assert_int_equal(judge(5), PRECEDENT_NONE);
}

/* A step that as a Sunday would be none waits for a day and a half. */
static void test_sunday(void **state)
{
	static double sunday[MOST];

	(void)state;
	fill();
	raise(BEFORE, MOST, 0.8);
	for (size_t i = BEFORE; i < MOST; i++)
		sunday[i - BEFORE] = values[i] / 0.85;
	for (size_t m = 1; m <= 60; m++)
		assert_int_equal(precedent_of(values, times, BEFORE + m, 0, BEFORE, sunday, false),
			m <= 36 ? PRECEDENT_SUNDAY : PRECEDENT_NONE);
	for (size_t i = BEFORE; i < MOST; i++)
		sunday[i - BEFORE] = values[i] / 0.95;
	assert_int_equal(
		precedent_of(values, times, BEFORE + 9, 0, BEFORE, sunday, false), PRECEDENT_NONE);
}

/* In the first three weeks the same hours of any day count: here of the day before yesterday. */
static void test_young(void **state)
{
	(void)state;
	fill();
	for (size_t i = BEFORE - 48; i < BEFORE - 24; i++)
		values[i] *= 1.3;
	raise(BEFORE, MOST, 1.3);
	for (size_t from = 0; from <= BEFORE - 60; from += 12)
		for (size_t m = 1; m <= 24; m++) {
			enum precedent_verdict found = precedent_of(values + from, times + from,
				BEFORE + m - from, 0, BEFORE - from, NULL, false);

			assert_true((found == PRECEDENT_WEEKLY) == (BEFORE - from < 21 * 24));
		}
}

/* In the first two weeks what passed before may have been shorter, for a day; not in the first two
 * that are left of an older series. */
static void test_new(void **state)
{
	(void)state;
	fill();
	raise(300, 2, 1.4);
	raise(BEFORE, MOST, 1.3);
	for (size_t from = 240; from < 300; from += 12)
		for (size_t m = 4; m < 40; m++) {
			enum precedent_verdict found = precedent_of(values + from, times + from,
				BEFORE + m - from, 0, BEFORE - from, NULL, false);

			assert_int_equal(found, BEFORE - from < 14 * 24 && m <= 24
							? PRECEDENT_PASSED
							: PRECEDENT_NONE);
			found = precedent_of(values + from, times + from, BEFORE + m - from, 0,
				BEFORE - from, NULL, true);
			assert_int_equal(found, PRECEDENT_NONE);
		}
}

/* What lasted for days hardly shows against a narrow median. */
static void test_days(void **state)
{
	(void)state;
	fill();
	raise(250, 90, 1.3);
	raise(BEFORE, MOST, 1.3);
	assert_int_equal(judge(30), PRECEDENT_PASSED);
	assert_int_equal(judge(85), PRECEDENT_PASSED);
	assert_int_equal(judge(140), PRECEDENT_NONE);
}

/* Neither lower nor much higher movements, nor those of the other direction, nor lasting steps. */
static void test_other_movements(void **state)
{
	(void)state;
	fill();
	raise(150, 12, 1.12);
	raise(200, 12, 3);
	raise(300, 12, 0.7);
	raise(400, MOST, 1.3);
	raise(BEFORE, MOST, 1.3);
	for (size_t m = 4; m < 200; m++)
		assert_int_equal(judge(m), PRECEDENT_NONE);
}

/* The level that a step leaves began with the step before it; what was before that is no movement.
 */
static void test_a_step_before(void **state)
{
	(void)state;
	fill();
	for (size_t i = 0; i < MOST; i++)
		times[i] *= 24; /* it is no young series */
	raise(40, MOST, 1.25);
	raise(80, MOST, 0.9);
	for (size_t m = 1; m <= 60; m++)
		assert_int_equal(
			precedent_of(values, times, 80 + m, 40, 80, NULL, false), PRECEDENT_NONE);
	fill();
	raise(BEFORE - 40, MOST, 1.25);
	raise(BEFORE, MOST, 0.9);
	for (size_t m = 1; m <= 60; m++)
		assert_int_equal(
			precedent_of(values, times, BEFORE + m, BEFORE - 40, BEFORE, NULL, false),
			PRECEDENT_NONE);
}

static void test_small(void **state)
{
	(void)state;
	fill();
	raise(BEFORE, MOST, 1.03);
	assert_int_equal(judge(100), PRECEDENT_SMALL);
	assert_int_equal(judge(PRECEDENT_LONG), PRECEDENT_NONE);
}

/* The same hours of both weeks before; once is not enough, unless there is no other week. */
static void test_weekly(void **state)
{
	(void)state;
	fill();
	raise(BEFORE - 168, 48, 0.7);
	raise(BEFORE, MOST, 0.7);
	assert_int_not_equal(judge(20), PRECEDENT_WEEKLY);
	raise(BEFORE - 336, 48, 0.7);
	assert_int_equal(judge(20), PRECEDENT_WEEKLY);
	assert_int_not_equal(judge(120), PRECEDENT_WEEKLY);
	fill();
	raise(BEFORE - 168, 48, 0.7);
	raise(BEFORE, MOST, 0.7);
	assert_int_equal(
		precedent_of(values + 270, times + 270, BEFORE - 250, 0, BEFORE - 270, NULL, false),
		PRECEDENT_WEEKLY);
}

/* Zeros and negative values have no logarithm. */
static void test_scales(void **state)
{
	(void)state;
	for (int low = 0; low >= -50; low -= 50) {
		fill();
		raise(200, 10, 1.3);
		raise(BEFORE, MOST, 1.3);
		values[100] = low;
		assert_int_equal(judge(8), PRECEDENT_PASSED);
		assert_int_equal(judge(30), PRECEDENT_NONE);
	}
}

static void test_few_values(void **state)
{
	(void)state;
	fill();
	for (size_t place = 0; place < 60; place++)
		for (size_t n = place; n < 130; n++)
			(void)precedent_of(values, times, n, place / 2, place, NULL, false);
	assert_int_equal(precedent_of(values, times, 5, 0, 0, NULL, false), PRECEDENT_NONE);
}

/* Where values depend on each other, noise grows into levels with which a step sets in at once:
 * they are no precedents of it. */
static void test_dependent_values(void **state)
{
	uint64_t random = 27;
	size_t held = 0;

	(void)state;
	fill();
	for (size_t i = 0; i < 100; i++) {
		double last = 0;

		for (size_t j = 0; j < MOST; j++) {
			last = 0.8 * last + 3 * random_normal(&random);
			values[j] = 100 + last;
		}
		raise(BEFORE, MOST, 1.2);
		held += judge(6) == PRECEDENT_PASSED;
	}
	assert_in_range(held, 0, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_before),
		cmocka_unit_test(test_as_long_as_before),
		cmocka_unit_test(test_spikes),
		cmocka_unit_test(test_young),
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_sunday),
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_other_movements),
		cmocka_unit_test(test_a_step_before),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_weekly),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_few_values),
		cmocka_unit_test(test_dependent_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
