#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/series.h"

enum { POINTS_MAX = 300 };

/* Two series and a column of text on one axis, each value saying at which place its point came. */
struct fixture {
	int64_t times[POINTS_MAX];
	double a[POINTS_MAX], b[POINTS_MAX];
	const char *text[POINTS_MAX];
	char names[POINTS_MAX][24];
	struct column column;
	struct axis axis;
	struct series series[2];
	struct dataset data;
};

static void fixture_fill(struct fixture *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		f->a[i] = (double)i;
		f->b[i] = -(double)i;
		snprintf(f->names[i], sizeof f->names[i], "c%zu", i);
		f->text[i] = f->names[i];
	}
	f->column = (struct column){"commit", f->text};
	f->axis =
		(struct axis){.n = n, .times = f->times, .columns = &f->column, .column_count = 1};
	f->series[0] = (struct series){.name = "a", .axis = &f->axis, .values = f->a};
	f->series[1] = (struct series){.name = "b", .axis = &f->axis, .values = f->b};
	f->data = (struct dataset){f->series, 2};
}

static void sorts_stably(void **state)
{
	struct fixture f;

	(void)state;
	srand(7);
	for (size_t n = 0; n < POINTS_MAX; n += n < 20 ? 1 : 37) {
		struct arena *scratch = arena_new();
		bool unsorted = false;

		for (size_t i = 0; i < n; i++) {
			f.times[i] = rand() % 20;
			unsorted |= i > 0 && f.times[i] < f.times[i - 1];
		}
		int64_t before[POINTS_MAX];
		memcpy(before, f.times, sizeof before);
		fixture_fill(&f, n);
		assert_int_equal(dataset_sort(&f.data, scratch), unsorted);
		for (size_t i = 0; i < n; i++) {
			size_t came = (size_t)f.a[i];
			char name[24];

			assert_int_equal(f.times[i], before[came]);
			assert_true(f.b[i] == -f.a[i]);
			snprintf(name, sizeof name, "c%zu", came);
			assert_string_equal(f.text[i], name);
			if (i == 0)
				continue;
			assert_true(f.times[i] > f.times[i - 1] ||
				    (f.times[i] == f.times[i - 1] && f.a[i] > f.a[i - 1]));
		}
		assert_false(dataset_sort(&f.data, scratch));
		arena_free(scratch);
	}
}

static void sorts_each_axis(void **state)
{
	struct fixture f = {.times = {3, 1, 2}};
	int64_t times[] = {1, 2};
	double values[] = {10, 20};
	struct axis axis = {.n = 2, .times = times};
	struct arena *scratch = arena_new();

	(void)state;
	fixture_fill(&f, 3);
	struct series series[] = {{.axis = &axis, .values = values}, f.series[0], f.series[1]};
	struct dataset data = {series, 3};
	assert_true(dataset_sort(&data, scratch));
	assert_true(values[0] == 10 && values[1] == 20);
	assert_true(f.a[0] == 1 && f.a[1] == 2 && f.a[2] == 0);
	arena_free(scratch);
}

static void keeps_a_range(void **state)
{
	struct fixture f = {.times = {1, 2, 2, 5}};

	(void)state;
	fixture_fill(&f, 4);
	assert_int_equal(axis_lower_bound(&f.axis, 0), 0);
	assert_int_equal(axis_lower_bound(&f.axis, 2), 1);
	assert_int_equal(axis_lower_bound(&f.axis, 3), 3);
	assert_int_equal(axis_lower_bound(&f.axis, 6), 4);
	dataset_keep(&f.data, &f.axis, 1, 3);
	assert_int_equal(f.axis.n, 2);
	assert_int_equal(f.axis.times[0], 2);
	assert_true(f.series[0].values[0] == 1 && f.series[1].values[1] == -2);
	assert_string_equal(axis_column(&f.axis, "commit")->values[1], "c2");
	assert_null(axis_column(&f.axis, "version"));
	dataset_keep(&f.data, &f.axis, 2, 2);
	assert_int_equal(f.axis.n, 0);
	assert_int_equal(axis_lower_bound(&f.axis, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_stably),
		cmocka_unit_test(sorts_each_axis),
		cmocka_unit_test(keeps_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
