/*
 * What becomes of an announced change that is not found: it stands while there is evidence between
 * the changes that are, and what may be it elsewhere is told from news.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>

#include "detectors/retraction.h"
#include "tests/unit/random.h"

enum { N = 300, ROUNDS = 20000, MARKS = 9 };

/* Noise of 1 around 100 until `step`, around `level` from there on. */
static void make(double *values, size_t step, double level)
{
	uint64_t random = 5;
	for (size_t i = 0; i < N; i++) {
		double noise = (double)(random_next(&random) % 2001) / 1000 - 1;
		values[i] = (i < step ? 100 : level) + noise;
	}
}

static struct change at(size_t index)
{
	return (struct change){.index = index};
}

static void evidence_of_the_same_sign(void **state)
{
	(void)state;
	double values[N];
	make(values, 150, 102);
	assert_true(retraction_holds(values, N, NULL, 0, 150, 1));
	assert_false(retraction_holds(values, N, NULL, 0, 150, -1));
	assert_false(retraction_holds(values, N, NULL, 0, 150, 0));
	for (size_t i = 0; i < N; i++)
		values[i] = i % 2 ? 1 : 0;
	assert_false(retraction_holds(values, N, NULL, 0, 150, 1));
	assert_false(retraction_holds(values, N, NULL, 0, 150, -1));
}

/* What a change beside it explains is no evidence of this one. */
static void only_between_the_changes_found(void **state)
{
	(void)state;
	double values[N] = {0};
	for (size_t i = 150; i < N; i++)
		values[i] = 1;
	const struct change beside = at(150), around[] = {at(120), at(190)};
	assert_true(retraction_holds(values, N, NULL, 0, 140, 1));
	assert_false(retraction_holds(values, N, &beside, 1, 140, 1));
	assert_false(retraction_holds(values, N, &beside, 1, 160, 1));
	assert_false(retraction_holds(values, N, &beside, 1, 150, 1));
	assert_true(retraction_holds(values, N, around, 2, 150, 1));
}

/* Only the nearest points: what was there long ago says nothing of a place. */
static void only_the_nearest(void **state)
{
	(void)state;
	double values[N] = {0};
	for (size_t i = 0; i < 100; i++)
		values[i] = -1;
	assert_false(retraction_holds(values, N, NULL, 0, 100 + RETRACTION_REACH, 1));
	assert_true(retraction_holds(values, N, NULL, 0, 90 + RETRACTION_REACH, 1));
}

static void missing_and_extreme_values(void **state)
{
	(void)state;
	double values[N];
	make(values, 150, 102);
	for (size_t i = 0; i < N; i += 3)
		values[i] = i % 2 ? (double)NAN : HUGE_VAL;
	assert_true(retraction_holds(values, N, NULL, 0, 150, 1));
	make(values, 150, 102);
	for (size_t i = 0; i < N; i++)
		values[i] *= 1e305;
	assert_true(retraction_holds(values, N, NULL, 0, 150, 1));
	for (size_t i = 0; i < N; i++)
		values[i] = (double)NAN;
	assert_false(retraction_holds(values, N, NULL, 0, 150, 1));
}

static void ends(void **state)
{
	(void)state;
	double values[N];
	make(values, 150, 102);
	assert_false(retraction_holds(values, 0, NULL, 0, 0, 1));
	assert_false(retraction_holds(values, N, NULL, 0, 0, 1));
	assert_false(retraction_holds(values, N, NULL, 0, 1, 1));
	assert_false(retraction_holds(values, N, NULL, 0, N - 1, 1));
	assert_false(retraction_holds(values, N, NULL, 0, N, 1));
	assert_false(retraction_holds(values, N, NULL, 0, N + 7, 1));
}

static struct mark known_mark(size_t index, double place, int sign, double followed)
{
	return (struct mark){.index = index,
		.tie = (int64_t)index,
		.place = place,
		.sign = sign,
		.followed = followed};
}

static struct mark found_mark(size_t index, double place, int sign)
{
	return (struct mark){
		.index = index, .tie = (int64_t)index, .place = place, .sign = sign, .found = true};
}

static void a_neighbour_of_its_sign(void **state)
{
	(void)state;
	struct move moves[2];
	struct mark pair[] = {found_mark(4, 60, 1), known_mark(7, 40, 1, 30)};
	assert_int_equal(retraction_moves(pair, 2, moves), 1);
	assert_int_equal(moves[0].known, 7);
	assert_int_equal(moves[0].found, 4);
	struct mark signs[] = {known_mark(0, 40, 1, 30), found_mark(0, 60, -1)};
	assert_int_equal(retraction_moves(signs, 2, moves), 0);
	struct mark taken[] = {known_mark(0, 40, 1, 30), found_mark(0, 60, 1)};
	taken[1].known = true;
	assert_int_equal(retraction_moves(taken, 2, moves), 0);
	struct mark between[] = {
		known_mark(0, 40, 1, 30), found_mark(0, 60, 1), found_mark(1, 50, -1)};
	assert_int_equal(retraction_moves(between, 3, moves), 0);
	struct mark nearer[] = {
		known_mark(0, 40, 1, 30), found_mark(0, 60, 1), found_mark(1, 30, 1)};
	assert_int_equal(retraction_moves(nearer, 3, moves), 1);
	assert_int_equal(moves[0].found, 1);
}

/* A slow drift moves its step behind the points that there were, or leaves nothing at its place: it
 * is the same one between about the same levels, and news if it goes on from the new level or is
 * much larger. */
static void one_between_the_same_levels(void **state)
{
	(void)state;
	static const struct {
		double followed, place, before, after;
		size_t moves;
	} cases[] = {{10, 60, 100.4, 103.5, 1}, {0, 46, 100.4, 102.5, 1}, {0, 34, 99.6, 101.5, 1},
		{10, 60, 102, 104, 0}, {0, 46, 102, 104, 0}, {10, 60, 100, 120, 0},
		{0, 34, 100, 120, 0}, {30, 60, 100, 120, 1}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct move moves[1];
		struct mark marks[] = {
			known_mark(0, 40, 1, cases[i].followed), found_mark(0, cases[i].place, 1)};
		marks[0].before = 100;
		marks[0].after = 102;
		marks[1].before = cases[i].before;
		marks[1].after = cases[i].after;
		assert_int_equal(retraction_moves(marks, 2, moves), cases[i].moves);
	}
}

/* Where the points were yet to come when the known one was told, what is found is news. */
static void news_is_no_move(void **state)
{
	(void)state;
	struct move moves[1];
	struct mark seen[] = {known_mark(0, 40, 1, 21), found_mark(0, 60, 1)};
	assert_int_equal(retraction_moves(seen, 2, moves), 1);
	struct mark later[] = {known_mark(0, 40, 1, 20), found_mark(0, 60, 1)};
	assert_int_equal(retraction_moves(later, 2, moves), 0);
	struct mark back[] = {known_mark(0, 60, 1, 3), found_mark(0, 40, 1)};
	assert_int_equal(retraction_moves(back, 2, moves), 1);
	struct mark far[] = {known_mark(0, 40, 1, 200), found_mark(0, 41 + RETRACTION_MOVE, 1)};
	assert_int_equal(retraction_moves(far, 2, moves), 0);
}

/* Each mark is in one move at most, and a move is what it says, in whatever order they come. */
static void moves_are_sound(void **state)
{
	(void)state;
	uint64_t random = 9;
	for (size_t round = 0; round < ROUNDS; round++) {
		struct mark marks[MARKS], turned[MARKS];
		struct move moves[MARKS / 2], again[MARKS / 2];
		size_t count = random_next(&random) % (MARKS + 1), used[2][MARKS] = {{0}};
		for (size_t i = 0; i < count; i++) {
			double place = (double)(random_next(&random) % 120);
			int sign = random_next(&random) % 2 ? 1 : -1;
			double followed = (double)(1 + random_next(&random) % 60);
			marks[i] = random_next(&random) % 2 ? found_mark(i, place, sign)
							    : known_mark(i, place, sign, followed);
			turned[count - 1 - i] = marks[i];
		}
		size_t moved = retraction_moves(marks, count, moves);
		assert_int_equal(retraction_moves(turned, count, again), moved);
		for (size_t i = 0; i < moved; i++) {
			assert_int_equal(again[i].known, moves[i].known);
			assert_int_equal(again[i].found, moves[i].found);
			assert_int_equal(used[0][moves[i].known]++, 0);
			assert_int_equal(used[1][moves[i].found]++, 0);
		}
		for (size_t i = 0; i + 1 < count; i++)
			assert_true(marks[i].place <= marks[i + 1].place);
		for (size_t i = 0; i < moved; i++) {
			size_t at = 0;
			while (marks[at].index != moves[i].known &&
				marks[at].index != moves[i].found)
				at++;
			const struct mark *left = &marks[at], *right = &marks[at + 1];
			assert_true(
				right->index == moves[i].known || right->index == moves[i].found);
			assert_int_equal(left->sign, right->sign);
			assert_int_not_equal(left->found, right->found);
			assert_true(right->place - left->place <= RETRACTION_MOVE);
			assert_true(left->found || right->place - left->place < left->followed);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(evidence_of_the_same_sign),
		cmocka_unit_test(only_between_the_changes_found),
		cmocka_unit_test(only_the_nearest),
		cmocka_unit_test(missing_and_extreme_values),
		cmocka_unit_test(ends),
		cmocka_unit_test(a_neighbour_of_its_sign),
		cmocka_unit_test(one_between_the_same_levels),
		cmocka_unit_test(news_is_no_move),
		cmocka_unit_test(moves_are_sound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
