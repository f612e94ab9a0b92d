/*
 * match_changes: examples of each rule, and properties on thousands of random series.
 */
#include "unit.h"
#include <stdlib.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/decide/match.h"
#include "tests/unit/random.h"

enum { N = 200, MINUTE = 60000, CHANGES = 12, ROUNDS = 4000 };
#define START INT64_C(1700000000000)

struct fixture {
	struct arena *arena;
	int64_t times[N];
	struct matching result;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	fixture->arena = arena_new();
	for (size_t i = 0; i < N; i++)
		fixture->times[i] = START + (int64_t)i * MINUTE;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	arena_free(fixture->arena);
	free(fixture);
	return 0;
}

static int64_t at(int point)
{
	return START + (int64_t)point * MINUTE;
}

static void run(struct fixture *fixture, const struct known *known, size_t known_count,
	const struct found *found, size_t found_count)
{
	match_changes(fixture->arena, fixture->times, N, known, known_count, found, found_count,
		&fixture->result);
}

static void test_nothing_known_is_news(void **state)
{
	struct fixture *fixture = *state;
	struct found found[] = {{.index = 20, .sign = 1}, {.index = 90, .sign = -1}};

	run(fixture, NULL, 0, found, 2);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	assert_int_equal(fixture->result.known_of[1], MATCH_NONE);
}

static void test_same_moved_gone(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {
		{.id = 1, .time = at(20), .sign = 1},
		{.id = 2, .time = at(90), .sign = -1},
		{.id = 3, .time = at(150), .sign = 1},
	};
	struct found found[] = {{.index = 95, .sign = -1}, {.index = 20, .sign = 1}};

	run(fixture, known, 3, found, 2);
	assert_int_equal(fixture->result.fates[0], FATE_SAME);
	assert_int_equal(fixture->result.fates[1], FATE_MOVED);
	assert_int_equal(fixture->result.fates[2], FATE_GONE);
	assert_int_equal(fixture->result.known_of[0], 1);
	assert_int_equal(fixture->result.known_of[1], 0);
	assert_int_equal(fixture->result.found_of[1], 0);
}

static void test_tolerance_ends_after_five_points(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .time = at(90), .sign = 1};
	struct found near = {.index = 85, .sign = 1}, far = {.index = 96, .sign = 1};

	run(fixture, &known, 1, &near, 1);
	assert_int_equal(fixture->result.known_of[0], 0);
	run(fixture, &known, 1, &far, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	assert_int_equal(fixture->result.fates[0], FATE_GONE);
}

/* What a change was until it recovered: what comes after that is another one. */
static void test_recovered_ends(void **state)
{
	static const struct {
		int known, over, found; /* points; over 0: it has not recovered */
		bool same;
	} rows[] = {{90, 0, 92, true}, {90, 93, 92, true}, {90, 92, 92, false}, {90, 91, 92, false},
		{90, 91, 90, true}, {90, 100, 95, true}, {90, 100, 96, false}};
	struct fixture *fixture = *state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct known known = {.id = 1,
			.time = at(rows[i].known),
			.sign = 1,
			.over = rows[i].over ? at(rows[i].over) : 0};
		struct found found = {.index = (size_t)rows[i].found, .sign = 1};

		run(fixture, &known, 1, &found, 1);
		assert_int_equal(
			fixture->result.known_of[0], rows[i].same ? (size_t)0 : MATCH_NONE);
		assert_int_equal(
			fixture->result.found_of[0], rows[i].same ? (size_t)0 : MATCH_NONE);
	}
}

/* The one that cannot be it leaves its place to the next. */
static void test_recovered_lets_another(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {{.id = 1, .time = at(90), .sign = 1, .over = at(90)},
		{.id = 2, .time = at(88), .sign = 1}};
	struct found found = {.index = 90, .sign = 1};

	run(fixture, known, 2, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 1);
	assert_int_equal(fixture->result.fates[1], FATE_MOVED);
}

static void test_sign_separates(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .time = at(90), .sign = 1};
	struct found found = {.index = 90, .sign = -1};

	run(fixture, &known, 1, &found, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
}

/* The nearest pair wins over the pair that comes first. */
static void test_nearest_first(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {
		{.id = 1, .time = at(50), .sign = 1}, {.id = 2, .time = at(54), .sign = 1}};
	struct found found = {.index = 54, .sign = 1};

	run(fixture, known, 2, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 1);
	assert_int_equal(fixture->result.fates[0], FATE_GONE);
}

/* Two neighbours that both move by three points stay themselves, though the second is nearer to
 * where the first was. */
static void test_neighbours_move_together(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {
		{.id = 1, .time = at(50), .sign = 1}, {.id = 2, .time = at(54), .sign = 1}};
	struct found found[] = {{.index = 53, .sign = 1}, {.index = 57, .sign = 1}};

	run(fixture, known, 2, found, 2);
	assert_int_equal(fixture->result.known_of[0], 0);
	assert_int_equal(fixture->result.known_of[1], 1);
}

static void test_before_the_data_is_not_gone(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {
		{.id = 1, .time = at(-30), .sign = 1},
		{.id = 2, .time = at(0), .sign = 1},
		{.id = 3, .time = at(4), .sign = 1},
		{.id = 4, .time = at(N + 3), .sign = 1},
		{.id = 5, .time = at(5), .sign = 1},
	};

	run(fixture, known, 5, NULL, 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(fixture->result.fates[i], FATE_OUTSIDE);
	assert_int_equal(fixture->result.fates[4], FATE_GONE);
}

/* A change that slid out of the range a year ago is not the one that is found at its start today.
 */
static void test_old_change_does_not_hide_a_new_one(void **state)
{
	struct fixture *fixture = *state;
	struct known old = {.id = 1, .time = at(-500), .sign = 1};
	struct known recent = {.id = 1, .time = at(-2), .sign = 1};
	struct found found = {.index = 2, .sign = 1};

	run(fixture, &old, 1, &found, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	run(fixture, &recent, 1, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 0);
}

/* Dates without a time of day: many points, one stamp. */
static void test_points_that_share_a_time(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .sign = 1};
	struct found found = {.index = 79, .sign = 1};

	for (size_t i = 0; i < N; i++)
		fixture->times[i] = START + (int64_t)(i / 40) * MINUTE;
	known.time = fixture->times[79];
	run(fixture, &known, 1, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 0);
	assert_int_equal(fixture->result.fates[0], FATE_SAME);
}

static void test_no_data_says_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .time = at(50), .sign = 1};

	match_changes(fixture->arena, NULL, 0, &known, 1, NULL, 0, &fixture->result);
	assert_int_equal(fixture->result.fates[0], FATE_OUTSIDE);
	match_changes(fixture->arena, fixture->times, 1, &known, 1, NULL, 0, &fixture->result);
	assert_int_equal(fixture->result.fates[0], FATE_OUTSIDE);
}

static void test_live_before_withdrawn(void **state)
{
	struct fixture *fixture = *state;
	struct known known[] = {
		{.id = 1, .time = at(50), .sign = 1, .withdrawn = true},
		{.id = 2, .time = at(54), .sign = 1},
	};
	struct found found = {.index = 52, .sign = 1};

	run(fixture, known, 2, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 1);
	known[1].time = at(35); /* it moved further */
	known[1].followed = 40;
	run(fixture, known, 2, &found, 1);
	assert_int_equal(fixture->result.known_of[0], 1);
	assert_int_equal(fixture->result.fates[0], FATE_GONE);
	assert_int_equal(fixture->result.fates[1], FATE_MOVED);
}

/* A change that stands and is not found at its place is the one of its sign that is found beside
 * it. */
static void test_moved_further(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .time = at(60), .sign = 1, .followed = 40};
	struct found found[] = {{.index = 85, .sign = 1}, {.index = 70, .sign = -1}};

	run(fixture, &known, 1, found, 1);
	assert_int_equal(fixture->result.known_of[0], 0);
	assert_int_equal(fixture->result.fates[0], FATE_MOVED);
	run(fixture, &known, 1, found, 2);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	assert_int_equal(fixture->result.fates[0], FATE_GONE);
	known.followed = 25;
	run(fixture, &known, 1, found, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	known.followed = 40;
	known.withdrawn = true;
	run(fixture, &known, 1, found, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
}

/* What lies before the data may be there still, and is not what is found in them. */
static void test_outside_does_not_move(void **state)
{
	struct fixture *fixture = *state;
	struct known known = {.id = 1, .time = at(2), .sign = 1, .followed = 100};
	struct found found = {.index = 20, .sign = 1};

	run(fixture, &known, 1, &found, 1);
	assert_int_equal(fixture->result.known_of[0], MATCH_NONE);
	assert_int_equal(fixture->result.fates[0], FATE_OUTSIDE);
}

/* Random found changes, distinct within one sign. Returns their number. */
static size_t random_found(uint64_t *random, struct found *found)
{
	size_t count = random_below(random, CHANGES);

	for (size_t i = 0; i < count; i++) {
		bool taken = false;

		found[i] = (struct found){.index = 1 + random_below(random, N - 1),
			.sign = random_below(random, 2) ? 1 : -1};
		for (size_t j = 0; j < i; j++)
			taken |= found[j].index == found[i].index && found[j].sign == found[i].sign;
		if (taken)
			i--;
	}
	return count;
}

static size_t random_known(uint64_t *random, struct known *known)
{
	size_t count = random_below(random, CHANGES);

	for (size_t i = 0; i < count; i++)
		known[i] = (struct known){.id = (int64_t)i + 1,
			.time = at((int)random_below(random, N + 40) - 20),
			.sign = random_below(random, 2) ? 1 : -1,
			.withdrawn = random_below(random, 4) == 0,
			.followed = random_below(random, 3) ? 0 : random_below(random, 80)};
	return count;
}

static void irregular_times(struct fixture *fixture, uint64_t *random)
{
	for (size_t i = 1; i < N; i++)
		fixture->times[i] =
			fixture->times[i - 1] + (int64_t)random_below(random, 3) * MINUTE / 2;
}

static void assert_sound(const struct fixture *fixture, const struct known *known,
	size_t known_count, const struct found *found, size_t found_count)
{
	for (size_t i = 0; i < found_count; i++) {
		size_t partner = fixture->result.known_of[i];

		if (partner == MATCH_NONE)
			continue;
		assert_true(partner < known_count);
		assert_int_equal(fixture->result.found_of[partner], i);
		assert_int_equal(known[partner].sign, found[i].sign);
	}
	for (size_t i = 0; i < known_count; i++) {
		size_t partner = fixture->result.found_of[i];

		if (partner != MATCH_NONE) {
			assert_int_equal(fixture->result.known_of[partner], i);
			assert_true(fixture->result.fates[i] == FATE_SAME ||
				    fixture->result.fates[i] == FATE_MOVED);
		} else if (known[i].time < fixture->times[0] ||
			   known[i].time > fixture->times[N - 1]) {
			assert_int_equal(fixture->result.fates[i], FATE_OUTSIDE);
		}
	}
}

/* One to one, signs agree, and the order of the input decides nothing. */
static void test_property_order_decides_nothing(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 42;

	for (int round = 0; round < ROUNDS; round++) {
		struct known known[CHANGES], shuffled_known[CHANGES];
		struct found found[CHANGES], shuffled_found[CHANGES];
		size_t order_known[CHANGES], order_found[CHANGES];
		size_t known_count = random_known(&random, known);
		size_t found_count = random_found(&random, found);
		struct matching straight;

		if (round % 2)
			irregular_times(fixture, &random);
		run(fixture, known, known_count, found, found_count);
		assert_sound(fixture, known, known_count, found, found_count);
		straight = fixture->result;
		for (size_t i = 0; i < known_count; i++) {
			size_t other = random_below(&random, i + 1);

			order_known[i] = order_known[other];
			order_known[other] = i;
		}
		for (size_t i = 0; i < found_count; i++) {
			size_t other = random_below(&random, i + 1);

			order_found[i] = order_found[other];
			order_found[other] = i;
		}
		for (size_t i = 0; i < known_count; i++)
			shuffled_known[i] = known[order_known[i]];
		for (size_t i = 0; i < found_count; i++)
			shuffled_found[i] = found[order_found[i]];
		run(fixture, shuffled_known, known_count, shuffled_found, found_count);
		for (size_t i = 0; i < known_count; i++) {
			size_t partner = fixture->result.found_of[i];

			assert_int_equal(fixture->result.fates[i], straight.fates[order_known[i]]);
			assert_int_equal(partner == MATCH_NONE ? partner : order_found[partner],
				straight.found_of[order_known[i]]);
		}
	}
}

/* What a pair is worth, on a series without equal stamps. */
static double worth(const struct known *known, size_t index)
{
	double place = (double)(known->time - START) / MINUTE;
	double distance = place > (double)index ? place - (double)index : (double)index - place;

	if (distance > CHANGE_TOLERANCE)
		return 0;
	return CHANGE_TOLERANCE + 1 - distance - (known->withdrawn ? 1e-6 : 0);
}

/* The most that a matching in any order can be worth, by trying all: few changes close together. */
static double best_of_all(const struct known *known, size_t known_count, const struct found *found,
	size_t found_count, unsigned taken)
{
	double best, with;

	if (known_count == 0)
		return 0;
	best = best_of_all(known + 1, known_count - 1, found, found_count, taken);
	for (size_t j = 0; j < found_count; j++) {
		double value = worth(known, found[j].index);

		if (value <= 0 || (taken & 1u << j))
			continue;
		with = value +
		       best_of_all(known + 1, known_count - 1, found, found_count, taken | 1u << j);
		best = with > best ? with : best;
	}
	return best;
}

static void test_property_best_matching(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 23;

	for (int round = 0; round < ROUNDS; round++) {
		struct known known[5];
		struct found found[5];
		size_t known_count = random_below(&random, 6),
		       found_count = random_below(&random, 6);
		double total = 0, best;

		for (size_t i = 0; i < known_count; i++)
			known[i] = (struct known){.id = (int64_t)i,
				.time = at(50 + (int)random_below(&random, 12)),
				.sign = 1,
				.withdrawn = random_below(&random, 3) == 0};
		for (size_t i = 0, at = 48; i < found_count; i++)
			found[i] = (struct found){
				.index = at += 1 + random_below(&random, 3), .sign = 1};
		run(fixture, known, known_count, found, found_count);
		for (size_t i = 0; i < known_count; i++)
			if (fixture->result.found_of[i] != MATCH_NONE)
				total += worth(&known[i], found[fixture->result.found_of[i]].index);
		best = best_of_all(known, known_count, found, found_count, 0);
		assert_true(total > best - 1e-9 && total < best + 1e-9);
	}
}

/* Years of withdrawn changes all over a long series: memory does not grow with known x found. */
static void test_many_changes_need_little(void **state)
{
	enum { POINTS = 40000, KNOWN = 20000, FOUND = 10000 };
	struct fixture *fixture = *state;
	int64_t *times = arena_array(fixture->arena, POINTS, sizeof *times);
	struct known *known = arena_array(fixture->arena, KNOWN, sizeof *known);
	struct found *found = arena_array(fixture->arena, FOUND, sizeof *found);

	for (size_t i = 0; i < POINTS; i++)
		times[i] = at((int)i);
	for (size_t i = 0; i < KNOWN; i++)
		known[i] = (struct known){.id = (int64_t)i,
			.time = at(2 * (int)i + (int)(i % 2)),
			.sign = 1,
			.withdrawn = i % 3 > 0};
	for (size_t i = 0; i < FOUND; i++)
		found[i] = (struct found){.index = 4 * i + 3, .sign = 1};
	match_changes(fixture->arena, times, POINTS, known, KNOWN, found, FOUND, &fixture->result);
	for (size_t i = 0; i < FOUND; i++)
		assert_int_not_equal(fixture->result.known_of[i], MATCH_NONE);
	assert_true(arena_size(fixture->arena) < 32 << 20);
}

/* All on one day, and nothing but the day is known: in order, each is itself. */
static void test_many_changes_of_one_stamp(void **state)
{
	enum { POINTS = 4000, COUNT = 1000 };
	struct fixture *fixture = *state;
	int64_t *times = arena_array(fixture->arena, POINTS, sizeof *times);
	struct known *known = arena_array(fixture->arena, COUNT, sizeof *known);
	struct found *found = arena_array(fixture->arena, COUNT, sizeof *found);

	for (size_t i = 0; i < POINTS; i++)
		times[i] = START;
	for (size_t i = 0; i < COUNT; i++) {
		known[i] = (struct known){.id = (int64_t)i, .time = START, .sign = 1};
		found[i] = (struct found){.index = 4 * i + 3, .sign = 1};
	}
	match_changes(fixture->arena, times, POINTS, known, COUNT, found, COUNT, &fixture->result);
	for (size_t i = 0; i < COUNT; i++)
		assert_int_equal(fixture->result.known_of[i], i);
	assert_true(arena_size(fixture->arena) < 8 << 20);
}

/* Changes that stand well apart keep their ids when each moves by up to the tolerance. */
static void test_property_shifts_keep_identity(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 7;

	for (int round = 0; round < ROUNDS; round++) {
		struct known known[CHANGES];
		struct found found[CHANGES];
		size_t count = 0;

		for (int point = 6; point < N - 6; point += 11 + (int)random_below(&random, 40)) {
			int shift = (int)random_below(&random, 2 * CHANGE_TOLERANCE + 1) -
				    CHANGE_TOLERANCE;

			if (count == CHANGES)
				break;
			known[count] =
				(struct known){.id = (int64_t)count, .time = at(point), .sign = 1};
			found[count] = (struct found){.index = (size_t)(point + shift), .sign = 1};
			count++;
		}
		run(fixture, known, count, found, count);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(fixture->result.known_of[i], i);
	}
}

/*
 * Many passes over one series whose changes jitter about their true places, vanish and come back:
 * with what was gone kept as withdrawn, each is news once.
 */
static void test_property_announced_once(void **state)
{
	struct fixture *fixture = *state;
	uint64_t random = 11;

	for (int round = 0; round < 200; round++) {
		struct known known[CHANGES];
		size_t known_count = 0, true_count = 3 + random_below(&random, 6);

		for (int pass = 0; pass < 20; pass++) {
			struct found found[CHANGES];
			size_t found_count = 0;

			for (size_t i = 0; i < true_count; i++)
				if (pass == 0 || random_below(&random, 3) > 0)
					found[found_count++] = (struct found){
						.index = 10 + 20 * i + random_below(&random, 5),
						.sign = i % 2 ? 1 : -1};
			run(fixture, known, known_count, found, found_count);
			for (size_t i = 0; i < found_count; i++) {
				size_t partner = fixture->result.known_of[i];

				if (pass > 0) {
					assert_int_not_equal(partner, MATCH_NONE);
					known[partner].time = fixture->times[found[i].index];
					continue;
				}
				assert_int_equal(partner, MATCH_NONE);
				known[i] = (struct known){.id = (int64_t)i,
					.time = fixture->times[found[i].index],
					.sign = found[i].sign};
			}
			if (pass == 0)
				known_count = found_count;
			else
				for (size_t i = 0; i < known_count; i++)
					known[i].withdrawn = fixture->result.fates[i] == FATE_GONE;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_known_is_news, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_moved_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_tolerance_ends_after_five_points, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recovered_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_recovered_lets_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sign_separates, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nearest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_neighbours_move_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_before_the_data_is_not_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_old_change_does_not_hide_a_new_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_points_that_share_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_data_says_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_live_before_withdrawn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_moved_further, setup, teardown),
		cmocka_unit_test_setup_teardown(test_outside_does_not_move, setup, teardown),
		cmocka_unit_test_setup_teardown(test_property_best_matching, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_changes_need_little, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_changes_of_one_stamp, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_property_order_decides_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_property_shifts_keep_identity, setup, teardown),
		cmocka_unit_test_setup_teardown(test_property_announced_once, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
