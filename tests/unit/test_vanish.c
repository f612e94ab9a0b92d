/*
 * Series that vanish: which are told, together with which, and that they are back.
 */
#include "unit.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/when.h"
#include "agent/monitor/vanish.h"

enum { MINUTE = 60000, SERIES = 12, POINTS = 100, EU = 4, US = 9 };
#define NOW INT64_C(1700000000000)

/* Four series in eu, five in us, three in ap, with a point a minute. */
struct fixture {
	struct arena *arena;
	int64_t times[SERIES][POINTS];
	double values[SERIES][POINTS];
	struct axis axes[SERIES];
	struct pair labels[SERIES][2];
	struct series series[SERIES];
	struct dataset data;
	int64_t every; /* ms, between two points */
	struct vanish_rule rule;
	struct vanish_news *news;
	size_t count;
};

/* The series' last point is so many minutes ago, or whatever else is `every`, and it has so many of
 * them. */
static void place(struct fixture *f, size_t at, int64_t ago, size_t points)
{
	f->axes[at].n = points;
	for (size_t i = 0; i < points; i++)
		f->times[at][i] = NOW - (ago + (int64_t)(points - 1 - i)) * f->every;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->arena = arena_new();
	f->every = MINUTE;
	for (size_t i = 0; i < SERIES; i++) {
		const char *region = i < EU ? "eu" : i < US ? "us" : "ap";

		f->labels[i][0] = (struct pair){"host", arena_printf(f->arena, "h%zu", i)};
		f->labels[i][1] = (struct pair){"region", region};
		f->axes[i].times = f->times[i];
		f->series[i] = (struct series){.identity = f->labels[i][0].value,
			.name = f->labels[i][0].value,
			.labels = {f->labels[i], 2},
			.axis = &f->axes[i],
			.values = f->values[i]};
		place(f, i, 0, POINTS);
	}
	f->data = (struct dataset){f->series, SERIES};
	f->rule = (struct vanish_rule){.bounds = {.interval = MINUTE}, .oldest = WHEN_ALWAYS};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	free(f);
	return 0;
}

/* All series live, from the first minute on. */
static void setup_again(struct fixture *f)
{
	for (size_t i = 0; i < SERIES; i++)
		place(f, i, 0, POINTS);
}

static size_t look(struct fixture *f)
{
	f->count = vanish_find(&f->data, &f->rule, f->arena, &f->news);
	return f->count;
}

static void expect(struct fixture *f, size_t at, const char *text)
{
	assert_true(at < f->count);
	assert_string_equal(vanish_text(&f->news[at], "X", f->arena), text);
}

static void know(struct fixture *f)
{
	f->rule.told = f->news[0].series;
	f->rule.told_count = f->news[0].count;
}

static void test_a_region_ends_and_comes_back(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(look(f), 0);
	for (int64_t ago = 1; ago <= 11; ago++) {
		for (size_t i = US; i < SERIES; i++)
			place(f, i, ago, 60);
		assert_int_equal(look(f), ago > 10);
	}
	expect(f, 0, "3 of 12 series of test \"X\" ended at 2023-11-14 22:02:20 +0000: region=ap");
	know(f);
	assert_int_equal(look(f), 0);
	place(f, US, 0, 3);
	assert_int_equal(look(f), 1);
	expect(f, 0,
		"1 of 3 series of test \"X\" that had ended came back at "
		"2023-11-14 22:11:20 +0000, after 9m: host=h9, region=ap");
	for (size_t i = US; i < SERIES; i++)
		place(f, i, i == US ? 0 : 1, 3);
	assert_int_equal(look(f), 1);
	assert_int_equal(f->news[0].since, NOW - 3 * (int64_t)MINUTE);
	expect(f, 0,
		"3 of 3 series of test \"X\" that had ended came back at "
		"2023-11-14 22:10:20 +0000, after 8m to 9m: region=ap");
	assert_true(f->news[0].series[0].back);
}

static void test_who_has_not_lived_is_not_missed(void **state)
{
	struct fixture *f = *state;

	place(f, 0, 30, 20); /* 19 minutes */
	assert_int_equal(look(f), 0);
	place(f, 0, 30, 21);
	assert_int_equal(look(f), 1);
	f->rule.bounds.interval = 2 * MINUTE; /* 20 of them are longer */
	assert_int_equal(look(f), 0);
	place(f, 0, 30, 41);
	assert_int_equal(look(f), 1);
	f->rule.bounds.step = 3 * MINUTE;
	assert_int_equal(look(f), 0);
}

static void test_what_ended_before_is_old(void **state)
{
	struct fixture *f = *state;

	place(f, 0, 30, 60);
	f->rule.since = NOW - 20 * (int64_t)MINUTE; /* that is when it was missed */
	assert_int_equal(look(f), 1);
	f->rule.since++;
	assert_int_equal(look(f), 0);
	f->rule.since = 0;
	f->rule.oldest = NOW - 30 * (int64_t)MINUTE;
	assert_int_equal(look(f), 1);
	f->rule.oldest++;
	assert_int_equal(look(f), 0);
}

/* All have stopped at once: that is for who looks after the test's data. */
static void test_all_at_once(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < SERIES; i++)
		place(f, i, 300, 60);
	assert_int_equal(look(f), 0);
	f->data.count = 0;
	assert_int_equal(look(f), 0);
}

static void test_groups(void **state)
{
	struct fixture *f = *state;

	place(f, 0, 40, 60);
	place(f, 4, 40, 60);
	place(f, 5, 30, 60);
	assert_int_equal(look(f), 2);
	expect(f, 0, "2 of 12 series of test \"X\" ended at 2023-11-14 21:33:20 +0000: h0, h4");
	expect(f, 1, "1 of 12 series of test \"X\" ended at 2023-11-14 21:43:20 +0000: host=h5");
	place(f, 1, 20, 60);
	place(f, 2, 15, 60);
	assert_int_equal(look(f), 1);
	expect(f, 0,
		"5 of 12 series of test \"X\" ended between 2023-11-14 21:33:20 +0000 and "
		"2023-11-14 21:58:20 +0000: h0, h4, h5 and 2 more");
}

/* Pods that others replace, or that are removed where pods come and go; a region that ends for good
 * is told even if another pod is new. */
static void test_pods_come_and_go(void **state)
{
	struct fixture *f = *state;

	place(f, 0, 30, 60);
	place(f, 1, 0, 28);
	assert_int_equal(look(f), 0);
	place(f, 2, 30, 60);
	assert_int_equal(look(f), 1);
	setup_again(f);
	for (size_t i = 0; i < EU; i++)
		place(f, i, 12, 80);
	place(f, EU, 0, 10);
	assert_int_equal(look(f), 1);
	assert_int_equal(f->news[0].count, EU);
	setup_again(f);
	for (size_t i = 1; i < SERIES; i++)
		place(f, i, 0, 50 - 2 * i);
	place(f, 0, 20, 60);
	assert_int_equal(look(f), 0);
}

/* Half of the others are new: that hides an end for a week, whatever the range of the answer. */
static void test_churn_hides_no_end_for_long(void **state)
{
	struct fixture *f = *state;
	size_t told = 0;

	f->every = 3 * 60 * (int64_t)MINUTE;
	f->rule.bounds.interval = f->every;
	for (size_t age = 14; age < 80; age++) {
		for (size_t i = 0; i < SERIES; i++)
			place(f, i, 0, i % 2 == 0 ? POINTS : age);
		place(f, 0, 12, 60);
		told += look(f);
		assert_int_equal(f->count, age > 7 * 8);
	}
	assert_true(told > 0);
}

enum { MANY = 40000 };

/* A large test of which all series but one end. */
static void test_many_ends_take_no_longer_each(void **state)
{
	struct fixture *f = *state;
	struct series *series = calloc(MANY, sizeof *series);
	struct axis *axes = calloc(MANY, sizeof *axes);
	clock_t begun;

	for (size_t i = 0; i < MANY; i++) {
		axes[i] = (struct axis){.times = f->times[i % SERIES], .n = i ? 60 : POINTS};
		series[i] = f->series[i % SERIES];
		series[i].axis = &axes[i];
	}
	f->data = (struct dataset){series, MANY};
	begun = clock();
	assert_int_equal(look(f), 1);
	assert_true(clock() - begun < 2 * CLOCKS_PER_SEC);
	assert_int_equal(f->news[0].count, MANY - 1);
	free(axes);
	free(series);
}

#define VANISH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		VANISH(test_a_region_ends_and_comes_back),
		VANISH(test_who_has_not_lived_is_not_missed),
		VANISH(test_what_ended_before_is_old),
		VANISH(test_all_at_once),
		VANISH(test_pods_come_and_go),
		VANISH(test_churn_hides_no_end_for_long),
		VANISH(test_many_ends_take_no_longer_each),
		VANISH(test_groups),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
