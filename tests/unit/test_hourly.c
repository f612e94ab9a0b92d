/*
 * hourly: which series are judged by the hour, and what their hours are.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/analysis/hourly.h"
#include "detectors/edivisive/edivisive.h"
#include "detectors/scratch.h"
#include "tests/unit/random_series.h"

#define MINUTE INT64_C(60000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define START (19700 * DAY)
#define STEP (5 * MINUTE)

enum { PER_HOUR = 12, PER_DAY = 24 * PER_HOUR, MOST = 9 * PER_DAY };

static double values[MOST];
static int64_t times[MOST];
static const char *commits[MOST];
static struct column column = {.name = "commit", .values = commits};
static struct axis axis = {.times = times, .columns = &column, .column_count = 1};
static struct series series = {
	.name = "s", .identity = "s", .axis = &axis, .values = values, .window = {STEP, 0}};
static struct edivisive_options options;
static const struct plugin plugin = {.name = "edivisive"};
static struct detection detection = {.detector = &plugin, .options = &options};

/* 100, with noise of 5% that is remembered from point to point to that degree, and a daily cycle of
 * 30%. */
static void fill(double memory, uint64_t seed)
{
	double noise = 0;

	for (size_t i = 0; i < MOST; i++) {
		noise = memory * noise + sqrt(1 - memory * memory) * random_normal(&seed);
		times[i] = START + (int64_t)i * STEP;
		values[i] =
			100 * exp(0.05 * noise) * (1 + 0.3 * sin(2 * M_PI * (double)i / PER_DAY));
		commits[i] = "a";
	}
	axis.n = MOST;
}

static struct pace settle(size_t n)
{
	struct scratch *scratch = scratch_new();
	struct pace pace = {0};

	axis.n = n;
	pace_settle(&pace, &detection, &series, times[0], scratch);
	scratch_free(scratch);
	return pace;
}

static void test_memory(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		fill(0.7, seed);
		assert_true(settle(MOST).step == STEP);
		assert_true(settle(MOST).memory > 1.75);
		fill(0, seed);
		assert_true(settle(MOST).step == 0);
		assert_true(settle(MOST).memory < 1.75);
	}
}

/* Decided after two days, and once more after a week; what comes later changes nothing. */
static void test_settled(void **state)
{
	struct pace pace, later;

	(void)state;
	fill(0.95, 1);
	assert_true(settle(2 * PER_DAY).step == 0);
	assert_true(settle(2 * PER_DAY + 1).step == STEP);
	pace = settle(7 * PER_DAY + 1);
	for (size_t i = 7 * PER_DAY + 1; i < MOST; i++)
		values[i] = i % 2 ? 50 : 200;
	later = settle(MOST);
	assert_true(later.step == pace.step && later.memory == pace.memory);
}

static void test_services_only(void **state)
{
	char names[MOST][8];

	(void)state;
	fill(0.7, 1);
	detection.kind = KIND_BENCHMARK;
	assert_true(settle(MOST).step == 0);
	detection.kind = KIND_AUTO;
	options.profile = EDIVISIVE_OTAVA;
	assert_true(settle(MOST).step == 0);
	options.profile = EDIVISIVE_DEFAULT;
	for (size_t i = 0; i < MOST; i++) {
		snprintf(names[i], sizeof names[i], "%zu", i);
		commits[i] = names[i];
	}
	assert_true(settle(MOST).step == 0);
	detection.kind = KIND_SERVICE;
	assert_true(settle(MOST).step == STEP);
	detection.kind = KIND_AUTO;
	for (size_t i = 0; i < MOST; i++)
		times[i] = START + (int64_t)i * 30 * MINUTE;
	assert_true(settle(MOST).step == 0);
}

static double mean_of_hour(size_t first)
{
	double sum = 0;

	for (size_t i = first; i < first + PER_HOUR; i++)
		sum += values[i];
	return sum / PER_HOUR;
}

/* Hours that are over count, from the first whole one on; one that lacks most points has no value.
 */
static void test_hours(void **state)
{
	struct arena *arena = arena_new();
	struct pace pace;
	const struct series *hours;

	(void)state;
	fill(0.7, 3);
	pace = settle(MOST);
	axis.n = 3 * PER_DAY + 7;
	for (size_t i = PER_HOUR; i < PER_HOUR + 7; i++)
		values[i] = (double)NAN;
	commits[3 * PER_HOUR - 1] = "b";
	hours = pace_apply(arena, &pace, &series);
	assert_int_equal(hours->axis->n, 72);
	assert_true(hours->pooled == STEP);
	assert_true(hours->window.back == STEP && hours->window.on == HOUR - STEP);
	for (size_t i = 0; i < hours->axis->n; i++) {
		assert_true(hours->axis->times[i] == START + (int64_t)i * HOUR);
		assert_string_equal(hours->axis->columns[0].values[i], i == 2 ? "b" : "a");
		if (i == 1)
			assert_true(isnan(hours->values[i]));
		else
			assert_true(fabs(hours->values[i] - mean_of_hour(i * PER_HOUR)) < 1e-9);
	}
	axis.n = 5 * PER_HOUR - 1;
	assert_int_equal(pace_apply(arena, &pace, &series)->axis->n, 4);
	axis.n = 5 * PER_HOUR;
	assert_int_equal(pace_apply(arena, &pace, &series)->axis->n, 5);
	struct axis later = axis;
	struct series rest = series;

	later.times += 3;
	later.n -= 3;
	later.columns = NULL;
	later.column_count = 0;
	rest.axis = &later;
	rest.values += 3;
	hours = pace_apply(arena, &pace, &rest);
	assert_int_equal(hours->axis->n, 4);
	assert_true(hours->axis->times[0] == START + HOUR);
	arena_free(arena);
}

/* What lies far above the record counts by the point after twenty minutes, by the hour after four
 * hours; what the record has had does not. */
static void test_abrupt(void **state)
{
	enum { PLACE = 8 * PER_DAY + 5 };
	struct arena *arena = arena_new();
	struct pace pace;

	(void)state;
	fill(0.7, 4);
	pace = settle(MOST);
	for (size_t i = PLACE; i < MOST; i++)
		values[i] *= 4;
	for (size_t followed = 0; followed <= 5 * PER_HOUR; followed++) {
		axis.n = PLACE + followed;
		size_t whole = axis.n / PER_HOUR, before = PLACE / PER_HOUR;
		bool pointwise = followed >= 4 && followed <= 4 * PER_HOUR;
		const struct series *judged = pace_apply(arena, &pace, &series);

		assert_int_equal(judged->axis->n, pointwise ? before + followed : whole);
		if (pointwise)
			assert_true(judged->axis->times[before] == times[PLACE] &&
				    judged->values[before] == values[PLACE]);
	}
	for (size_t i = 5 * PER_DAY; i < 5 * PER_DAY + 4; i++)
		values[i] *= 4;
	axis.n = PLACE + 6;
	assert_int_equal(pace_apply(arena, &pace, &series)->axis->n, axis.n / PER_HOUR);
	arena_free(arena);
}

/* The other series by which it is judged: the means of the same hours. */
static void test_other(void **state)
{
	struct arena *arena = arena_new();
	struct pace pace;
	const struct series *hours, *other;
	struct axis apart = axis;
	struct series beside = series;

	(void)state;
	fill(0.7, 5);
	pace = settle(MOST);
	axis.n = PER_DAY;
	apart = axis;
	beside.axis = &apart;
	assert_ptr_equal(hourly_other(arena, &series, &beside), &beside);
	hours = pace_apply(arena, &pace, &series);
	other = hourly_other(arena, hours, &beside);
	assert_ptr_equal(other->axis, hours->axis);
	for (size_t i = 0; i < hours->axis->n; i++)
		assert_true(fabs(other->values[i] - hours->values[i]) < 1e-9);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_services_only),
		cmocka_unit_test(test_hours),
		cmocka_unit_test(test_abrupt),
		cmocka_unit_test(test_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
