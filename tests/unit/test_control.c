/*
 * Controls: what shares a load is detected at equal load, what has none stays as it is, and a fit
 * that is frozen makes the same of each point.
 */
#include "unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/field.h"
#include "detectors/control.h"
#include "detectors/detector.h"
#include "detectors/edivisive/edivisive.h"
#include "tests/unit/random.h"

#define HOUR INT64_C(3600000)
#define START (INT64_C(1772409600000)) /* Monday 2026-03-02 00:00 UTC */

enum { MOST = 720, SERIES = 12, MARGIN = 5 };

struct made {
	double values[MOST], load[MOST], rest[MOST], joined[MOST];
	int64_t times[MOST];
	size_t n, step;
	uint64_t random;
	struct scratch *scratch;
};

static int setup(void **state)
{
	struct made *made = calloc(1, sizeof *made);

	made->random = 4711;
	made->scratch = scratch_new();
	*state = made;
	return made ? 0 : -1;
}

static int teardown(void **state)
{
	struct made *made = *state;

	scratch_free(made->scratch);
	free(made);
	return 0;
}

/* A load of AR .9 and a latency that follows it with a curve, and a step of `percent` in it. */
static void make_loaded(struct made *made, double percent)
{
	double wander = 0;

	made->n = MOST;
	made->step = 200 + random_below(&made->random, 320);
	for (size_t i = 0; i < made->n; i++) {
		wander = 0.9 * wander + 0.15 * random_bell(&made->random);
		made->times[i] = START + (int64_t)i * HOUR;
		made->load[i] = 1000 * exp(wander);
		made->values[i] = 100 *
				  exp(0.8 * wander + 0.15 * wander * wander +
					  0.02 * random_bell(&made->random)) *
				  (i >= made->step ? 1 + percent / 100 : 1);
	}
}

static struct points series_of(const struct made *made)
{
	return (struct points){made->values, made->times, made->n};
}

static struct points load_of(const struct made *made)
{
	return (struct points){made->load, made->times, made->n};
}

static struct control fit(struct made *made, enum control_mode mode)
{
	struct control control =
		control_fit(mode, series_of(made), load_of(made), false, made->scratch);

	control_join(control.tolerance, series_of(made), load_of(made), made->joined);
	control_remove(&control, made->values, made->joined, made->n, made->rest);
	return control;
}

/* Adds to the counts whether the step was found, and what else was. */
static void score(struct made *made, const double *values, size_t *hits, size_t *others)
{
	struct edivisive_options options;
	struct change changes[MOST];
	size_t count;
	bool hit = false;
	struct error error;

	field_defaults(edivisive_detector.plugin.fields, &options);
	assert_true(
		detector_run(&edivisive_detector, &(struct samples){.values = values, .n = made->n},
			&options, made->scratch, changes, &count, &error));
	for (size_t i = 0; i < count; i++) {
		size_t at = changes[i].index;
		bool near = at + MARGIN >= made->step && at <= made->step + MARGIN;

		hit |= near;
		*others += !near;
	}
	*hits += hit;
}

static void test_step_is_found_at_equal_load(void **state)
{
	struct made *made = *state;
	size_t raw = 0, raw_others = 0, found = 0, others = 0;

	for (int i = 0; i < SERIES; i++) {
		make_loaded(made, 10);
		struct control control = fit(made, CONTROL_LOAD);
		assert_true(control.used);
		assert_true(control.explained > 0.8);
		score(made, made->values, &raw, &raw_others);
		score(made, made->rest, &found, &others);
	}
	assert_true(raw <= 2);
	assert_int_equal(found, SERIES);
	assert_true(others <= 1);
}

static void test_step_is_found_relative_to_a_control(void **state)
{
	struct made *made = *state;
	size_t raw = 0, raw_others = 0, found = 0, others = 0;

	for (int i = 0; i < SERIES; i++) {
		double wander = 0;

		make_loaded(made, 10);
		for (size_t k = 0; k < made->n; k++) {
			wander = 0.9 * wander + 0.15 * random_bell(&made->random);
			made->load[k] = 80 * exp(wander + 0.02 * random_bell(&made->random));
			made->values[k] = 100 * exp(wander + 0.02 * random_bell(&made->random)) *
					  (k >= made->step ? 1.1 : 1);
		}
		fit(made, CONTROL_RATIO);
		score(made, made->values, &raw, &raw_others);
		score(made, made->rest, &found, &others);
	}
	assert_true(raw <= 2);
	assert_int_equal(found, SERIES);
	assert_true(others <= 1);
}

/* A lasting step of the load takes along what of the values goes with it. */
static void test_step_of_the_load_alone(void **state)
{
	struct made *made = *state;
	size_t hits = 0, others = 0, raw = 0, raw_others = 0;

	for (int i = 0; i < SERIES; i++) {
		make_loaded(made, 0);
		for (size_t k = made->step; k < made->n; k++) {
			made->load[k] *= 1.5;
			made->values[k] *= pow(1.5, 0.8) *
					   exp(0.15 * (pow(log(made->load[k] / 1000), 2) -
							      pow(log(made->load[k] / 1500), 2)));
		}
		assert_true(fit(made, CONTROL_LOAD).used);
		score(made, made->rest, &hits, &others);
		score(made, made->values, &raw, &raw_others);
	}
	assert_true(hits + others <= 1);
}

static void test_no_dependence_leaves_values(void **state)
{
	struct made *made = *state;
	size_t used = 0;

	for (int i = 0; i < 5 * SERIES; i++) {
		make_loaded(made, 10);
		for (size_t k = 0; k < made->n; k++)
			made->values[k] =
				100 + 3 * random_bell(&made->random) + (k >= made->step ? 10 : 0);
		if (fit(made, CONTROL_LOAD).used)
			used++;
		else
			assert_memory_equal(made->rest, made->values, sizeof made->values);
	}
	assert_int_equal(used, 0);
}

static void test_too_few_points(void **state)
{
	struct made *made = *state;

	make_loaded(made, 10);
	made->n = CONTROL_LEAST - 1;
	struct control control = fit(made, CONTROL_LOAD);
	assert_false(control.used);
	assert_int_equal(control.joined, CONTROL_LEAST - 1);
	assert_memory_equal(made->rest, made->values, made->n * sizeof *made->values);
	made->n = 0;
	assert_false(fit(made, CONTROL_LOAD).used);
	assert_int_equal(fit(made, CONTROL_RATIO).joined, 0);
}

static void test_joined_with_the_nearest_in_half_a_step(void **state)
{
	const double values[] = {1, 2, (double)NAN, 4, 5};
	const int64_t times[] = {1000, 2000, 3000, 4000, 9000};
	const double own[] = {0, 0, 0, 0, 0, 0};
	const int64_t asked[] = {400, 1500, 1501, 3200, 6000, 8600};
	const double expected[] = {(double)NAN, 2, 2, (double)NAN, (double)NAN, 5};
	double out[6];

	(void)state;
	control_join(500, (struct points){own, asked, 6}, (struct points){values, times, 5}, out);
	for (size_t i = 0; i < 6; i++)
		assert_true(isnan(expected[i]) ? isnan(out[i]) : out[i] == expected[i]);
}

/* Rows of one table that have the same time are each with their own. */
static void test_joined_by_row_within_a_table(void **state)
{
	const double values[] = {1, 2, 3}, own[] = {5, 6, 7};
	const int64_t times[] = {1000, 1000, 1000};
	double out[3];

	(void)state;
	control_join(0, (struct points){own, times, 3}, (struct points){values, times, 3}, out);
	assert_memory_equal(out, values, sizeof values);
}

static void test_missing_and_unusable_partners(void **state)
{
	struct made *made = *state;
	double values[] = {100, 100, (double)NAN, 100}, joined[] = {50, 0, 50, (double)NAN}, out[4];
	struct control ratio = {.mode = CONTROL_RATIO, .used = true, .centre = 50};

	control_remove(&ratio, values, joined, 4, out);
	assert_true(out[0] == 100 && isnan(out[1]) && isnan(out[2]) && isnan(out[3]));
	make_loaded(made, 0);
	made->load[7] = (double)NAN;
	fit(made, CONTROL_LOAD);
	assert_true(isnan(made->rest[7]) && !isnan(made->rest[8]));
}

/* What a zero makes impossible is not taken by the fit that was, and the next one does without. */
static bool takes(struct made *made, const struct control *control)
{
	control_join(control->tolerance, series_of(made), load_of(made), made->joined);
	return control_takes(control, made->values, made->joined, made->n);
}

static void test_scales(void **state)
{
	struct made *made = *state;

	make_loaded(made, 0);
	struct control control = fit(made, CONTROL_LOAD);
	assert_true(control.log_values && control.log_load);
	assert_true(takes(made, &control));
	made->load[5] = 0;
	assert_false(takes(made, &control));
	control = fit(made, CONTROL_LOAD);
	assert_true(control.used && control.log_values && !control.log_load);
	assert_true(takes(made, &control));
	for (size_t i = 0; i < made->n; i++)
		assert_true(isfinite(made->rest[i]));
	made->values[5] = -1;
	assert_false(takes(made, &control));
	assert_false(fit(made, CONTROL_LOAD).log_values);
}

/* What a frozen fit makes of a part is what it makes of the whole. */
static void test_frozen(void **state)
{
	struct made *made = *state;
	double part[MOST];

	make_loaded(made, 10);
	struct control control = fit(made, CONTROL_LOAD);
	for (size_t from = 0; from < made->n; from += 31) {
		size_t n = made->n - from < 31 ? made->n - from : 31;

		control_join(control.tolerance,
			(struct points){made->values + from, made->times + from, n}, load_of(made),
			part);
		control_remove(&control, made->values + from, part, n, part);
		assert_memory_equal(part, made->rest + from, n * sizeof *part);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_step_is_found_at_equal_load, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_step_is_found_relative_to_a_control, setup, teardown),
		cmocka_unit_test_setup_teardown(test_step_of_the_load_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_dependence_leaves_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_few_points, setup, teardown),
		cmocka_unit_test(test_joined_with_the_nearest_in_half_a_step),
		cmocka_unit_test(test_joined_by_row_within_a_table),
		cmocka_unit_test_setup_teardown(
			test_missing_and_unusable_partners, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scales, setup, teardown),
		cmocka_unit_test_setup_teardown(test_frozen, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
