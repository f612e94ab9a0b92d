/*
 * excerpts: what comes back of the points around a change is what was put in, to 7 digits, whatever
 * the points; what is no excerpt is refused.
 */
#include "unit.h"
#include <float.h>
#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/model/excerpt.h"

enum { N = 1000 };

struct fixture {
	struct arena *arena;
	int64_t times[N];
	double values[N];
};

static int setup(void **state)
{
	struct arena *arena = arena_new();
	struct fixture *f = arena_alloc(arena, sizeof *f);

	f->arena = arena;
	for (int i = 0; i < N; i++) {
		f->times[i] = INT64_C(1700000000000) + i * INT64_C(60000) + i % 3;
		f->values[i] = (i < 500 ? 100 : 120) + i % 7 / 10.0;
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	arena_free(((struct fixture *)*state)->arena);
	return 0;
}

static struct excerpt pass(struct fixture *f, size_t n, size_t first, size_t last)
{
	struct packed_excerpt packed = excerpt_pack(f->arena, f->times, f->values, n, first, last);
	struct excerpt excerpt;

	assert_true(packed.length <= EXCERPT_BYTES);
	assert_true(excerpt_unpack(f->arena, packed, &excerpt));
	return excerpt;
}

static void check_same(const struct fixture *f, struct excerpt excerpt, size_t from, double exact)
{
	for (size_t i = 0; i < excerpt.n; i++) {
		assert_int_equal(excerpt.times[i], f->times[from + i]);
		assert_true(fabs(excerpt.values[i] - f->values[from + i]) <= exact);
	}
}

static void test_what_is_around(void **state)
{
	struct fixture *f = *state;
	struct excerpt excerpt = pass(f, N, 500, 500);

	assert_int_equal(excerpt.n, EXCERPT_MOST);
	check_same(f, excerpt, 440, 2e-6);
	excerpt = pass(f, N, 5, 5);
	assert_int_equal(excerpt.n, 66);
	check_same(f, excerpt, 0, 1e-7);
	excerpt = pass(f, 503, 500, 500);
	assert_int_equal(excerpt.n, 63);
	check_same(f, excerpt, 440, 2e-6);
	excerpt = pass(f, 1, 0, 0);
	assert_int_equal(excerpt.n, 1);
	check_same(f, excerpt, 0, 0);
	assert_int_equal(pass(f, 0, 0, 0).n, 0);
	assert_int_equal(pass(f, 10, 10, 10).n, 10); /* an end that no point has yet */
	/* Evenly spaced, it is small. */
	for (int i = 0; i < N; i++)
		f->times[i] = i * INT64_C(60000);
	assert_in_range(excerpt_pack(f->arena, f->times, f->values, N, 500, 500).length, 1, 630);
}

/* A long trend is shown whole, with what sticks out of it. */
static void test_extremes_of_a_long_trend(void **state)
{
	struct fixture *f = *state;
	struct excerpt excerpt;
	bool high = false, low = false;

	f->values[300] = 500;
	f->values[700] = -500;
	excerpt = pass(f, N, 100, 900);
	assert_in_range(excerpt.n, EXCERPT_SIDE, EXCERPT_MOST);
	for (size_t i = 0; i < excerpt.n; i++) {
		assert_true(i == 0 || excerpt.times[i] > excerpt.times[i - 1]);
		high |= excerpt.times[i] == f->times[300] && excerpt.values[i] > 499.99;
		low |= excerpt.times[i] == f->times[700] && excerpt.values[i] < -499.99;
	}
	assert_true(high && low);
	assert_true(excerpt.times[0] < f->times[60]);
	assert_true(excerpt.times[excerpt.n - 1] > f->times[940]);
}

static void test_values_of_every_size(void **state)
{
	static const double values[] = {0, 1e-300, -1e-300, 1e300, -DBL_MAX, DBL_MAX, 5e-324};
	struct fixture *f = *state;
	struct excerpt excerpt;

	memcpy(f->values, values, sizeof values);
	excerpt = pass(f, 7, 3, 3);
	assert_int_equal(excerpt.n, 7);
	for (size_t i = 0; i < 7; i++)
		assert_true(isfinite(excerpt.values[i]));
	assert_true(excerpt.values[4] < -4e307 && excerpt.values[5] > 4e307);
	/* Small differences of large numbers are kept. */
	for (int i = 0; i < 100; i++)
		f->values[i] = 1e15 + i;
	excerpt = pass(f, 100, 50, 50);
	check_same(f, excerpt, 0, 0.125);
	/* The same value throughout; and what is no number is no point. */
	for (int i = 0; i < 100; i++)
		f->values[i] = i % 2 ? (double)NAN : 7;
	f->values[2] = HUGE_VAL;
	excerpt = pass(f, 100, 50, 50);
	assert_int_equal(excerpt.n, 49);
	for (size_t i = 0; i < excerpt.n; i++)
		assert_true(excerpt.values[i] == 7);
	for (int i = 0; i < 100; i++)
		f->values[i] = (double)NAN;
	assert_int_equal(pass(f, 100, 50, 50).n, 0);
}

/* However uneven the points, it stays within its bytes. */
static void test_uneven_times(void **state)
{
	struct fixture *f = *state;
	struct excerpt excerpt;

	for (int i = 0; i < 121; i++)
		f->times[i] = -(INT64_C(1) << 53) + (i % 2 ? INT64_C(0) : INT64_C(7)) +
			      i * (INT64_C(1) << 47) + (i % 3) * (INT64_C(1) << 45);
	excerpt = pass(f, 121, 60, 60);
	assert_int_equal(excerpt.n, 121);
	check_same(f, excerpt, 0, 1e-6);
	/* Times that nothing has are left out. */
	f->times[0] = INT64_MIN;
	f->times[120] = INT64_MAX;
	assert_int_equal(pass(f, 121, 60, 60).n, 119);
}

static void test_what_is_no_excerpt(void **state)
{
	struct fixture *f = *state;
	struct packed_excerpt packed = excerpt_pack(f->arena, f->times, f->values, N, 500, 500);
	unsigned char *bytes = arena_alloc(f->arena, packed.length + 1);
	struct excerpt excerpt;

	memcpy(bytes, packed.bytes, packed.length);
	for (size_t length = 1; length < packed.length; length++) {
		assert_false(
			excerpt_unpack(f->arena, (struct packed_excerpt){bytes, length}, &excerpt));
		assert_int_equal(excerpt.n, 0);
	}
	assert_false(excerpt_unpack(
		f->arena, (struct packed_excerpt){bytes, packed.length + 1}, &excerpt));
	bytes[0] = 0; /* no points */
	assert_false(
		excerpt_unpack(f->arena, (struct packed_excerpt){bytes, packed.length}, &excerpt));
	memset(bytes, 0xff, packed.length);
	assert_false(
		excerpt_unpack(f->arena, (struct packed_excerpt){bytes, packed.length}, &excerpt));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_around, setup, teardown),
		cmocka_unit_test_setup_teardown(test_extremes_of_a_long_trend, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_of_every_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_uneven_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_excerpt, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
