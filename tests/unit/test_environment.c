/*
 * The rule for environments: when changes of one time are those of one runner.
 */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/analysis/environment.h"
#include "agent/base/arena.h"
#include "agent/base/label.h"

#define HOUR INT64_C(3600000)
#define AT (100 * HOUR)

enum { RUNNERS_MOST = 12, TESTS_MOST = 100 };

/* So many runners with so many tests each; which of them changed, and when. */
struct world {
	size_t runners, tests;
	int64_t changed[RUNNERS_MOST][TESTS_MOST]; /* 0: it did not */
	struct arena *arena;
	struct environment_view *view;
	struct environment_index *index;
};

static uint64_t runner(size_t number)
{
	char name[32];

	snprintf(name, sizeof name, "runner-%zu", number);
	return environment_hash("runner", name);
}

static void add_series(struct world *world, size_t number, size_t test)
{
	struct environment_series *series = &world->view->series[world->view->count++];
	int64_t time = world->changed[number][test];

	*series = (struct environment_series){
		.key = 1000 + test, .environment = runner(number), .first = 0, .last = 200 * HOUR};
	if (time == 0)
		return;
	series->hits = arena_alloc(world->arena, sizeof *series->hits);
	*series->hits = (struct environment_hit){
		.time = time, .spacing = HOUR, .sign = 1, .verdict = 1, .size = 8};
	series->hit_count = 1;
}

static void look(struct world *world)
{
	struct arena *arena = world->arena = arena_new();
	const struct environment_view *view = world->view = arena_alloc(arena, sizeof *world->view);

	*world->view = (struct environment_view){
		.series = arena_array(
			arena, world->runners * world->tests, sizeof *world->view->series)};
	for (size_t i = 0; i < world->runners; i++)
		for (size_t j = 0; j < world->tests; j++)
			add_series(world, i, j);
	world->index = environment_index_new(arena, &view, 1);
}

static void forget(struct world *world)
{
	arena_free(world->arena);
}

static void hit(struct world *world, size_t number, size_t tests, int64_t time)
{
	for (size_t i = 0; i < tests; i++)
		world->changed[number][i] = time;
}

static bool stands_out(struct world *world, size_t number)
{
	struct environment_tally tally = environment_count(world->index, runner(number), AT, HOUR);

	return environment_stands_out(&tally);
}

static void test_one_runner(void **state)
{
	struct world world = {.runners = 3, .tests = 12};
	struct environment_tally tally;

	(void)state;
	hit(&world, 1, 11, AT);
	world.changed[1][3] = AT + 2 * HOUR;
	look(&world);
	tally = environment_count(world.index, runner(1), AT, HOUR);
	assert_int_equal(tally.hit, 11);
	assert_int_equal(tally.total, 12);
	assert_int_equal(tally.elsewhere, 22);
	assert_int_equal(tally.elsewhere_changed, 0);
	assert_int_equal(tally.worse, 11);
	assert_int_equal(tally.up, 11);
	assert_true(tally.size == 8);
	assert_true(tally.time == AT);
	assert_true(environment_stands_out(&tally));
	assert_false(stands_out(&world, 0));
	assert_false(stands_out(&world, 2));
	forget(&world);
}

static void test_seven_are_too_few(void **state)
{
	(void)state;
	for (size_t tests = 7; tests <= 8; tests++) {
		struct world world = {.runners = 3, .tests = tests};

		hit(&world, 0, tests, AT);
		look(&world);
		assert_int_equal(stands_out(&world, 0), tests == 8);
		forget(&world);
	}
}

static void test_share(void **state)
{
	(void)state;
	for (size_t changed = 59; changed <= 60; changed++) {
		struct world world = {.runners = 2, .tests = 100};

		hit(&world, 0, changed, AT);
		look(&world);
		assert_int_equal(stands_out(&world, 0), changed == 60);
		forget(&world);
	}
}

static void test_changes_elsewhere(void **state)
{
	(void)state;
	for (size_t others = 2; others <= 3; others++) {
		struct world world = {.runners = 11, .tests = 10};

		hit(&world, 0, 10, AT);
		for (size_t i = 1; i <= others; i++)
			hit(&world, i, 10, AT);
		look(&world);
		/* 20 of 100, or 30 */
		assert_int_equal(stands_out(&world, 0), others == 2);
		forget(&world);
	}
}

/* Two of many at once are two environments; all at once are none. */
static void test_several_at_once(void **state)
{
	struct world two = {.runners = 6, .tests = 10}, all = {.runners = 6, .tests = 10},
		     both = {.runners = 2, .tests = 10};

	(void)state;
	hit(&two, 1, 10, AT);
	hit(&two, 4, 10, AT + HOUR);
	look(&two);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(stands_out(&two, i), i == 1 || i == 4);
	forget(&two);
	for (size_t i = 0; i < 6; i++)
		hit(&all, i, 10, AT);
	look(&all);
	for (size_t i = 0; i < 6; i++)
		assert_false(stands_out(&all, i));
	forget(&all);
	hit(&both, 0, 10, AT);
	hit(&both, 1, 10, AT);
	look(&both);
	assert_false(stands_out(&both, 0));
	forget(&both);
}

/* What changed everywhere is a change of its own, and takes nothing from the rest. */
static void test_one_test_everywhere(void **state)
{
	struct world world = {.runners = 3, .tests = 12};
	struct environment_tally tally;

	(void)state;
	hit(&world, 0, 12, AT);
	world.changed[1][5] = world.changed[2][5] = AT;
	look(&world);
	tally = environment_count(world.index, runner(0), AT, HOUR);
	assert_int_equal(tally.hit, 11);
	assert_int_equal(tally.everywhere, 1);
	assert_int_equal(tally.elsewhere_changed, 0);
	assert_true(environment_stands_out(&tally));
	assert_true(environment_is_everywhere(world.index, 1005, runner(0), AT, HOUR));
	assert_false(environment_is_everywhere(world.index, 1004, runner(0), AT, HOUR));
	forget(&world);
}

/* Without counterparts it may as well be a deployment. */
static void test_nothing_to_compare_with(void **state)
{
	struct world alone = {.runners = 1, .tests = 20}, half = {.runners = 2, .tests = 20};

	(void)state;
	hit(&alone, 0, 20, AT);
	look(&alone);
	assert_false(stands_out(&alone, 0));
	forget(&alone);
	for (size_t own = 10; own <= 11; own++) {
		hit(&half, 0, 20, AT);
		look(&half);
		for (size_t i = 0; i < own; i++)
			half.view->series[i].key += 5000;
		half.index = environment_index_new(
			half.arena, (const struct environment_view *const *)&half.view, 1);
		assert_int_equal(stands_out(&half, 0), own == 10);
		forget(&half);
		half.view = NULL;
	}
}

/* As text and back it is the same; what is no such text ends nevertheless. */
static void test_as_text(void **state)
{
	static const char *const others[] = {
		"", "x", "1 2", "1 2 3 4 ", "1 2 3 4 5 6 1", " - \n\n  y z"};
	struct world world = {.runners = 2, .tests = 3};
	const struct environment_view *view;
	const char *text;

	(void)state;
	hit(&world, 1, 2, AT);
	look(&world);
	world.view->series[3].hits->sign = -1;
	world.view->series[4].hits->size = (double)NAN;
	text = environment_view_put(world.arena, world.view);
	view = environment_view_read(world.arena, text);
	assert_int_equal(view->count, 6);
	assert_true(view->series[3].environment == runner(1) && view->series[3].key == 1000);
	assert_true(view->series[3].last == 200 * HOUR && view->series[3].hits->time == AT);
	assert_true(view->series[3].hits->sign == -1 && view->series[3].hits->size == 8);
	assert_true(view->series[0].hit_count == 0 && isnan(view->series[4].hits->size));
	assert_string_equal(environment_view_put(world.arena, view), text);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_non_null(environment_view_read(world.arena, others[i]));
	forget(&world);
}

/* What has no points yet behind the change says nothing of it. */
static void test_late_counterparts(void **state)
{
	struct world world = {.runners = 2, .tests = 10};

	(void)state;
	hit(&world, 0, 10, AT);
	look(&world);
	for (size_t i = 10; i < 20; i++)
		world.view->series[i].last = 197 * HOUR;
	assert_false(stands_out(&world, 0));
	for (size_t i = 10; i < 20; i++)
		world.view->series[i].last = 198 * HOUR;
	assert_true(stands_out(&world, 0));
	forget(&world);
}

static void test_other_times_are_others(void **state)
{
	struct world world = {.runners = 3, .tests = 12};

	(void)state;
	for (size_t i = 0; i < 12; i++)
		world.changed[0][i] = AT + (int64_t)i * 2 * HOUR;
	look(&world);
	assert_false(stands_out(&world, 0));
	forget(&world);
}

static void test_rollout(void **state)
{
	struct world world = {.runners = 3, .tests = 10};
	struct environment_moment first = {runner(0), AT, HOUR},
				  then = {runner(1), AT + 20 * HOUR, HOUR},
				  other = {runner(2), AT + 20 * HOUR, HOUR};

	(void)state;
	hit(&world, 0, 10, AT);
	hit(&world, 1, 6, AT + 20 * HOUR);
	hit(&world, 2, 5, AT + 20 * HOUR);
	look(&world);
	assert_true(stands_out(&world, 0));
	assert_true(environment_follows(world.index, &first, &then));
	assert_false(environment_follows(world.index, &first, &other));
	world.view->series[10].hits->sign = -1; /* the other way is another change */
	assert_false(environment_follows(world.index, &first, &then));
	forget(&world);
}

static void test_way_back(void **state)
{
	struct world world = {.runners = 2, .tests = 10};
	struct environment_moment later = {runner(0), AT + 2 * HOUR, HOUR};

	(void)state;
	hit(&world, 0, 10, AT);
	look(&world);
	assert_true(environment_returns(world.index, 1000, &later, -1));
	assert_false(environment_returns(world.index, 1000, &later, 1));
	later.time = AT + 20 * HOUR;
	assert_false(environment_returns(world.index, 1000, &later, -1));
	forget(&world);
}

static void test_end(void **state)
{
	struct world world = {.runners = 2, .tests = 10};
	struct environment_moment moment = {runner(0), AT, HOUR};
	struct environment_hit back = {
		.time = AT + 20 * HOUR, .spacing = HOUR, .sign = -1, .size = -8};

	(void)state;
	hit(&world, 0, 10, AT);
	look(&world);
	for (size_t i = 0; i < 6; i++) {
		struct environment_series *series = &world.view->series[i];
		struct environment_hit *both = arena_array(world.arena, 2, sizeof *both);

		assert_false(environment_is_over(world.index, &moment, 200 * HOUR));
		both[0] = series->hits[0];
		both[1] = back;
		series->hits = both;
		series->hit_count = 2;
	}
	assert_true(environment_is_over(world.index, &moment, back.time));
	assert_false(environment_is_over(world.index, &moment, back.time - 1));
	forget(&world);
}

/* What is near the others is part of the end; what has a level of its own, or is no way back, is
 * not, and nothing is while most have another level than before. */
static void test_ends(void **state)
{
	const double backs[][10] = {
		{-7.4, -7.2, -7.6, -7.5, -7.3, -7.4, -7.8, -6.9, -5.0, 0},
		{-5.0, -5.2, -4.9, -5.0, -5.1, -5.0, -5.0, -5.2, -7.4, 0},
	};

	(void)state;
	for (size_t which = 0; which < 2; which++) {
		struct world world = {.runners = 2, .tests = 10};
		struct environment_moment first = {runner(0), AT, HOUR},
					  then = {runner(0), AT + 20 * HOUR, HOUR};

		hit(&world, 0, 10, AT);
		look(&world);
		for (size_t i = 0; i < 9; i++) {
			struct environment_series *series = &world.view->series[i];
			struct environment_hit *both = arena_array(world.arena, 2, sizeof *both);

			both[0] = series->hits[0];
			both[1] = (struct environment_hit){.time = then.time + (i == 1) * HOUR,
				.spacing = HOUR,
				.sign = -1,
				.size = backs[which][i]};
			series->hits = both;
			series->hit_count = 2;
		}
		for (size_t i = 0; i < 10; i++)
			assert_int_equal(environment_ends(world.index, 1000 + i, &first, &then, -1),
				which == 0 && i < 8);
		assert_false(environment_ends(world.index, 1000, &first, &then, 1));
		assert_false(environment_ends(world.index, 77, &first, &then, -1));
		then.time += 20 * HOUR;
		assert_false(environment_ends(world.index, 1000, &first, &then, -1));
		forget(&world);
	}
}

/* One is alone until the others have been seen for five points. */
static void test_it_may_come_to_stand_out(void **state)
{
	struct world world = {.runners = 2, .tests = 10};
	struct environment_tally tally;

	(void)state;
	hit(&world, 0, 1, AT);
	look(&world);
	for (int64_t points = 4; points <= 5; points++)
		for (size_t late = 6; late <= 7; late++) {
			for (size_t i = 1; i < 10; i++)
				world.view->series[i].last =
					AT + (i <= late ? points - 1 : 9) * HOUR;
			tally = environment_count(world.index, runner(0), AT, HOUR);
			assert_int_equal(tally.behind, points < 5 ? late : 0);
			assert_false(environment_stands_out(&tally));
			assert_int_equal(
				environment_may_stand_out(&tally), points < 5 && late == 7);
		}
	forget(&world);
}

static void check_rest(const char *identity, const char *label, const char *rest)
{
	struct buf out = {0};

	assert_int_equal(label_rest(identity, label, strlen(label), &out), rest != NULL);
	if (rest)
		assert_string_equal(out.data, rest);
	else
		assert_int_equal(out.length, 0);
	buf_free(&out);
}

static void test_what_a_label_leaves(void **state)
{
	(void)state;
	check_rest("p99{region=\"eu\",runner=\"r7\"}", "runner", "p99{region=\"eu\",");
	check_rest("p99{region=\"eu\",runner=\"r7\"}", "region", "p99{runner=\"r7\"");
	check_rest("p99{region=\"eu\"}", "runner", NULL);
	check_rest("p99{runner=\"\"}", "runner", NULL);
	check_rest("perf.r7.latency", "path[2]", "perf..latency{");
	check_rest("perf.r7.latency", "path[9]", NULL);
	check_rest("latency;runner=r7;os=a", "runner", "latency;runner=;os=a{");
	check_rest("x{os=\"b\",target=\"perf.r7.latency\"}", "path[2]", "perf..latency{os=\"b\",");
	check_rest("p99", "runner", NULL);
}

static void check_same(bool same, const char *test, const char *identity, const char *value,
	const char *other_test, const char *other_identity, const char *other_value)
{
	uint64_t key = environment_key(test, identity, "runner", value);
	uint64_t other = environment_key(other_test, other_identity, "runner", other_value);

	assert_int_equal(key == other, same);
}

static void test_keys(void **state)
{
	(void)state;
	check_same(true, "a", "p{runner=\"1\",x=\"1\"}", "1", "a", "p{runner=\"2\",x=\"1\"}", "2");
	check_same(false, "a", "p{runner=\"1\",x=\"1\"}", "1", "a", "p{runner=\"2\",x=\"2\"}", "2");
	check_same(true, "fio.runner-7", "p", "runner-7", "fio.runner-8", "p", "runner-8");
	check_same(true, "runner-7", "p", "runner-7", "runner-71", "p", "runner-71");
	check_same(false, "fio.runner-7", "p", "runner-7", "net.runner-8", "p", "runner-8");
	check_same(false, "fio.runner-7", "p", "runner-7", "fio.runner-71", "p", "runner-8");
	check_same(false, "a", "p", "x", "a", "q", "x");
}

/* By an attribute: what the next points share. */
static void test_attributes(void **state)
{
	const char *values[] = {"r7", "r8", "r7", "r7", "r7", "", "r7", "r7", "r7", "r8"};
	int64_t times[10] = {0, HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR, 6 * HOUR, 7 * HOUR,
		8 * HOUR, 9 * HOUR};
	double numbers[10] = {1, 1, 1, 1, 1, (double)NAN, 1, 1, 1, 1};
	struct column column = {"runner", values};
	struct axis axis = {.n = 10, .times = times, .columns = &column, .column_count = 1};
	struct series series = {.name = "p99", .identity = "p99", .axis = &axis, .values = numbers};
	struct buf out = {0};

	(void)state;
	assert_false(environment_value("runner", &series, 0, &out));
	assert_true(environment_value("runner", &series, 2, &out)); /* over the missing one */
	assert_string_equal(out.data, "r7");
	buf_clear(&out);
	assert_false(environment_value("runner", &series, 6, &out));
	assert_false(environment_value("runner", &series, 10, &out));
	assert_false(environment_value("host", &series, 2, &out));
	assert_true(environment_value("runner", &series, 9, &out));
	assert_string_equal(out.data, "r8");
	series.identity = "p99{runner=\"r9\"}";
	buf_clear(&out);
	assert_true(environment_value("runner", &series, 0, &out));
	assert_string_equal(out.data, "r9");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_runner),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_it_may_come_to_stand_out),
		cmocka_unit_test(test_seven_are_too_few),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_changes_elsewhere),
		cmocka_unit_test(test_several_at_once),
		cmocka_unit_test(test_one_test_everywhere),
		cmocka_unit_test(test_nothing_to_compare_with),
		cmocka_unit_test(test_as_text),
		cmocka_unit_test(test_late_counterparts),
		cmocka_unit_test(test_other_times_are_others),
		cmocka_unit_test(test_rollout),
		cmocka_unit_test(test_way_back),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_what_a_label_leaves),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_attributes),
	};

	return cmocka_run_group_tests_name("environment", tests, NULL, NULL);
}
