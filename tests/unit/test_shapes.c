/*
 * Series that were made to move together are found together, and told by what they share.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/analysis/cluster.h"
#include "agent/analysis/shapes.h"
#include "agent/io/parallel.h"
#include "agent/model/labels.h"
#include "detectors/random.h"

enum { POINTS = 120, STEP_AT = 70 };

#define HOUR INT64_C(3600000)
#define START INT64_C(1767225600000) /* 2026-01-01 */

static double noise(uint64_t *random)
{
	double sum = 0;

	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum - 6;
}

/* One series of a test; `step` is relative. */
static void fill_series(struct arena *arena, struct series *series, const char *identity,
	double step, int64_t offset, uint64_t *random)
{
	struct axis *axis = arena_alloc(arena, sizeof *axis);

	*axis = (struct axis){
		.n = POINTS, .times = arena_array(arena, POINTS, sizeof *axis->times)};
	*series = (struct series){.name = identity,
		.identity = identity,
		.axis = axis,
		.values = arena_array(arena, POINTS, sizeof *series->values)};
	for (size_t i = 0; i < POINTS; i++) {
		axis->times[i] = START + offset + (int64_t)i * HOUR;
		series->values[i] =
			300 * (1 + 0.02 * noise(random)) * (i >= STEP_AT ? 1 + step : 1);
	}
}

/* 60 tests of ten series each; those of region eu of every third test get slower. */
static struct shapes *planted_of(struct arena *arena, int64_t jitter, size_t points)
{
	struct shapes *shapes = shapes_new();
	uint64_t random = 17;

	for (int test = 0; test < 60; test++) {
		struct series series[10];
		char name[64];

		snprintf(name, sizeof name, "%s.bench%d", test % 3 == 0 ? "gpu" : "cpu", test);
		for (int i = 0; i < 10; i++) {
			bool moves = test % 3 == 0 && i % 2 == 0;

			fill_series(arena, &series[i],
				arena_printf(arena, "latency{host=\"h%d\",region=\"%s\"}", i,
					i % 2 == 0 ? "eu" : "us"),
				moves ? 0.2 : 0, jitter ? jitter * (test * 10 + i) : 0, &random);
			series[i].axis->n = points;
		}
		shapes_add(shapes, name, &(struct dataset){series, 10});
	}
	return shapes;
}

static struct shapes *planted(struct arena *arena, int64_t jitter)
{
	return planted_of(arena, jitter, POINTS);
}

static struct shape_report find(const struct shapes *shapes, struct arena *arena, size_t threads)
{
	struct team team = {.threads = threads};
	struct parallel parallel = team_parallel(&team);
	struct shape_report report;

	shapes_find(shapes, &(struct shape_options){.interesting = 50, .least = 2, .seed = 1},
		&parallel, arena, &report);
	return report;
}

static size_t moved(const struct shape_report *report)
{
	size_t count = 0;

	for (size_t i = 0; i < report->count; i++)
		for (size_t j = 0; j < report->shapes[i].count; j++) {
			const struct shape_member *member = &report->shapes[i].members[j];

			assert_non_null(strstr(member->test, "gpu."));
			assert_non_null(strstr(member->identity, "region=\"eu\""));
			count++;
		}
	return count;
}

static void test_planted_steps(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = planted(arena, 0);
	struct shape_report report = find(shapes, arena, 2);

	assert_int_equal(report.series, 600);
	assert_int_equal(report.points, POINTS);
	assert_int_equal(report.left_out, 0);
	assert_int_equal(moved(&report), 100);
	for (size_t i = 0; i < report.count; i++) {
		const struct shape *shape = &report.shapes[i];

		assert_int_equal(shape->time, START + STEP_AT * HOUR);
		assert_int_equal(shape->sign, 1);
		assert_true(shape->regression < -50);
		assert_true(fabs(shape->ratio - 1.2) < 0.02);
		assert_true(shape->label_count >= 2);
		assert_string_equal(shape->labels[0].text, "test[1]=gpu");
		assert_string_equal(shape->labels[1].text, "region=eu");
		assert_true(shape->labels[1].share == 1 && shape->labels[1].overall == 0.5);
	}
	shapes_free(shapes);
	arena_free(arena);
}

/* Each series has times of its own: they are put into bins. */
static void test_times_that_differ(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = planted(arena, 1234);
	struct shape_report report = find(shapes, arena, 1);

	assert_int_equal(report.points, POINTS);
	assert_int_equal(moved(&report), 100);
	for (size_t i = 0; i < report.count; i++)
		assert_in_range(report.shapes[i].time, START + (STEP_AT - 2) * HOUR,
			START + (STEP_AT + 2) * HOUR);
	shapes_free(shapes);
	arena_free(arena);
}

static void test_threads_change_nothing(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = planted(arena, 0);
	struct shape_report one = find(shapes, arena, 1), four = find(shapes, arena, 4);

	assert_true(one.error == four.error);
	assert_int_equal(one.count, four.count);
	for (size_t i = 0; i < one.count; i++) {
		assert_int_equal(one.shapes[i].count, four.shapes[i].count);
		assert_ptr_equal(
			one.shapes[i].members[0].identity, four.shapes[i].members[0].identity);
	}
	shapes_free(shapes);
	arena_free(arena);
}

static void test_sparse_series_are_left_out(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = shapes_new();
	uint64_t random = 3;
	struct series series[6];

	for (size_t i = 0; i < 6; i++)
		fill_series(arena, &series[i], arena_printf(arena, "m%zu", i), i < 4 ? 0.3 : 0, 0,
			&random);
	for (size_t i = 0; i < POINTS; i++) {
		if (i < 80)
			series[0].values[i] = (double)NAN; /* began late */
		if (i % 3 == 0)
			series[1].values[i] = (double)NAN; /* gaps */
		series[5].values[i] = i == 7 ? 1 : (double)NAN;
	}
	shapes_add(shapes, "t", &(struct dataset){series, 6});
	struct shape_report report = find(shapes, arena, 1);

	assert_int_equal(report.left_out, 2);
	assert_int_equal(report.series, 4);
	shapes_free(shapes);
	arena_free(arena);
}

static void test_nothing_to_cluster(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = shapes_new();
	struct shape_report report = find(shapes, arena, 2);

	assert_int_equal(report.series + report.count + report.k, 0);
	shapes_add(shapes, "empty", &(struct dataset){0});
	report = find(shapes, arena, 2);
	assert_int_equal(report.series, 0);
	shapes_free(shapes);
	arena_free(arena);
}

static void test_labels_of_names(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct labels *labels = labels_new(arena);
	const size_t members[] = {0, 1};
	size_t count;

	labels_add(labels, "web/api", "p99{path=\"/a\\\"b,c=\\\"\",zone=\"1\"}", false);
	labels_add(labels, "web/api", "p99{path=\"/a\\\"b,c=\\\"\",zone=\"2\"}", false);
	labels_add(labels, "web/db", "carbon.cpu.load", false);
	labels_add(labels, "web/db", "broken{a=\"", false);
	labels_add(labels, "web/db", "broken{=,=\"x", false);
	const struct label_share *shared = labels_shared(labels, arena, members, 2, 5, &count);

	assert_int_equal(count, 5);
	assert_string_equal(shared[0].text, "metric=p99");
	assert_string_equal(shared[1].text, "path=/a\\\"b,c=\\\"");
	assert_string_equal(shared[2].text, "test=web/api");
	assert_string_equal(shared[3].text, "test[2]=api");
	assert_true(shared[0].overall == 0.4);
	assert_string_equal(shared[4].text, "zone=1");
	assert_true(shared[4].share == 0.5 && shared[4].overall == 0.2);
	labels_free(labels);
	arena_free(arena);
}

/* What is kept of a cluster's labels is what is told of them, not room for those of all series. */
static void test_shared_labels_take_little_room(void **state)
{
	enum { SERIES = 10000, CALLS = 100 };
	struct arena *arena = arena_new(), *report = arena_new();
	struct labels *labels = labels_new(arena);
	const size_t members[] = {3, 4};
	char identity[64];
	size_t count;

	(void)state;
	for (size_t i = 0; i < SERIES; i++) {
		snprintf(identity, sizeof identity, "p99{host=\"h%zu\",zone=\"z%zu\"}", i, i / 8);
		labels_add(labels, "web", identity, false);
	}
	for (size_t i = 0; i < CALLS; i++) {
		labels_shared(labels, report, members, 2, 5, &count);
		assert_true(count > 0);
	}
	assert_true(arena_size(report) < 65536);
	labels_free(labels);
	arena_free(report);
	arena_free(arena);
}

static void test_shape_of_values(void **state)
{
	(void)state;
	const double nan = (double)NAN;
	const double values[] = {nan, 1e300, nan, 3e300, nan};
	float row[8] = {9, 9, 9, 9, 9, 9, 9, 9};

	assert_true(cluster_shape(values, 5, row, 8));
	assert_true(row[0] == row[1] && row[2] == row[3] && row[3] == row[4]);
	assert_true(row[1] < 0 && row[3] > 0);
	assert_true(row[5] == 0 && row[7] == 0);
	assert_false(cluster_shape(&nan, 1, row, 8));
	assert_true(cluster_shape((double[]){5, 5, 5}, 3, row, 8));
	assert_true(row[0] == 0 && row[2] == 0);
	assert_true(cluster_shape((double[]){1, HUGE_VAL, 2}, 3, row, 8));
	assert_true(row[0] < 0 && row[1] == row[2]);
}

static void test_step_of_a_shape(void **state)
{
	(void)state;
	const float shape[] = {-1, -1, -1, 1, 1, 1, 1};
	struct step_fit fit = cluster_fit(shape, 7);

	assert_int_equal(fit.index, 3);
	assert_true(fit.before == -1 && fit.after == 1);
	assert_true(fabs(fit.regression + 2000) < 1e-6); /* a step of 2 over the least error */
	const float noisy[] = {0, 2, 0, 2, 4, 6, 4, 6};

	fit = cluster_fit(noisy, 8);
	assert_int_equal(fit.index, 4);
	assert_true(fabs(fit.error - sqrt(8) / 8) < 1e-9);
	assert_true(fabs(fit.regression + 4 / (sqrt(8) / 8)) < 1e-6);
}

/* A step is told when three points lie behind it, and then where it is. */
static void test_no_step_at_the_edge(void **state)
{
	(void)state;
	struct arena *arena = arena_new();

	for (size_t behind = 1; behind < 5; behind++) {
		struct shapes *shapes = planted_of(arena, 0, STEP_AT + behind);
		struct shape_report report = find(shapes, arena, 1);

		if (behind < 3)
			assert_int_equal(report.count, 0);
		for (size_t i = 0; i < report.count; i++)
			assert_int_equal(report.shapes[i].time, START + STEP_AT * HOUR);
		assert_true(behind < 4 || moved(&report) > 90);
		shapes_free(shapes);
	}
	arena_free(arena);
}

/* A straight line fits a slope better than a step does, and a step worse. */
static void test_slope_is_no_step(void **state)
{
	(void)state;
	float slope[60], step[60];

	for (size_t i = 0; i < 60; i++) {
		float wave = i % 2 ? 0.1F : -0.1F;

		slope[i] = (float)i / 20 + wave;
		step[i] = (i < 30 ? 0.F : 3.F) + wave;
	}
	assert_true(cluster_fit(slope, 60).line_error < cluster_fit(slope, 60).error);
	assert_true(cluster_fit(step, 60).line_error > cluster_fit(step, 60).error);
}

/* A crowd that drifts apart by little is cut into many clusters, and told as one. */
static void test_one_step_is_one_shape(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *shapes = planted(arena, 0);
	struct shape_report report;

	shapes_find(shapes,
		&(struct shape_options){.k = 60, .interesting = 50, .least = 2, .seed = 3}, NULL,
		arena, &report);
	assert_int_equal(report.k, 60);
	assert_int_equal(report.count, 1);
	assert_in_range(report.shapes[0].count, 95, 100);
	shapes_free(shapes);
	arena_free(arena);
}

/* Tests that are collected apart and joined are those collected together. */
static void test_joined(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct shapes *joined = planted(arena, 0), *whole = shapes_new();
	struct shape_report one, two;

	shapes_join(whole, joined);
	shapes_join(whole, shapes_new());
	joined = planted(arena, 0);
	one = find(joined, arena, 1);
	two = find(whole, arena, 2);
	assert_true(one.error == two.error);
	assert_int_equal(one.count, two.count);
	assert_int_equal(one.shapes[0].count, two.shapes[0].count);
	shapes_free(joined);
	shapes_free(whole);
	arena_free(arena);
}

static const struct shape_member crowd[] = {
	{"a", "x", "x"}, {"b", "y\nz", "y\nz"}, {"c", "x", "x"}, {"d", "x", "x"}};

static struct shape shape_at(int64_t time, int sign, size_t first, size_t count)
{
	return (struct shape){.time = time,
		.spacing = HOUR,
		.sign = sign,
		.members = crowd + first,
		.count = count};
}

static void test_known_again(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	const struct shape told = shape_at(START, 1, 0, 3), other = shape_at(START, 1, 3, 1);
	const struct known_shape known[] = {
		{START, HOUR, 1, coalesce_best(&told, arena)},
		{START + 8 * HOUR, HOUR, 1, coalesce_best(&other, arena)},
		{START + 9 * HOUR, HOUR, -1, coalesce_best(&told, arena)},
	};
	const struct shape shapes[] = {
		shape_at(START - 5 * HOUR, 1, 3, 1),  /* the time and the sign are enough */
		shape_at(START + 5 * HOUR, 1, 0, 2),  /* of two in time the nearer */
		shape_at(START - 6 * HOUR, 1, 3, 1),  /* nobody of the first */
		shape_at(START - 20 * HOUR, 1, 1, 3), /* most of the first's */
		shape_at(START - 21 * HOUR, 1, 0, 4), /* too far */
		shape_at(START - 6 * HOUR, -1, 0, 4), /* the third, by its members */
		shape_at(START - 6 * HOUR, 1, 2, 2),  /* one of three is not most */
	};
	size_t known_of[7];

	assert_string_equal(known[0].best, "a: x\nb: y z\nc: x");
	coalesce(shapes, 7, known, 3, known_of);
	assert_int_equal(known_of[0], 0);
	assert_int_equal(known_of[1], 1);
	assert_int_equal(known_of[2], 1);
	assert_int_equal(known_of[3], 0);
	assert_int_equal(known_of[4], COALESCE_NONE);
	assert_int_equal(known_of[5], 2);
	assert_int_equal(known_of[6], 1);
	coalesce(shapes, 7, NULL, 0, known_of);
	assert_int_equal(known_of[3], COALESCE_NONE);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_planted_steps),
		cmocka_unit_test(test_times_that_differ),
		cmocka_unit_test(test_threads_change_nothing),
		cmocka_unit_test(test_sparse_series_are_left_out),
		cmocka_unit_test(test_nothing_to_cluster),
		cmocka_unit_test(test_labels_of_names),
		cmocka_unit_test(test_shared_labels_take_little_room),
		cmocka_unit_test(test_shape_of_values),
		cmocka_unit_test(test_step_of_a_shape),
		cmocka_unit_test(test_no_step_at_the_edge),
		cmocka_unit_test(test_slope_is_no_step),
		cmocka_unit_test(test_one_step_is_one_shape),
		cmocka_unit_test(test_joined),
		cmocka_unit_test(test_known_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
