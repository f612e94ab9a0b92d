/* The schedule on a clock of our own. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/core/when.h"
#include "agent/monitor/schedule.h"

enum { MINUTE = 60000 };

static void test_first_run_and_grid(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id;
	assert_int_equal(schedule_next(schedule), INT64_MAX);
	assert_false(schedule_take(schedule, 5, &id));
	assert_int_equal(schedule_add(schedule, "checkout", MINUTE, 1000, 0), 0);
	assert_true(schedule_take(schedule, 1000, &id));
	assert_int_equal(schedule_next(schedule), INT64_MAX);
	schedule_done(schedule, 0, 1010);

	int64_t first = schedule_next(schedule);
	assert_in_range(first, 1011, 1010 + MINUTE);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(schedule_next(schedule), first + i * MINUTE);
		assert_false(schedule_take(schedule, first + i * MINUTE - 1, &id));
		assert_true(schedule_take(schedule, first + i * MINUTE, &id));
		schedule_done(schedule, 0, first + i * MINUTE + 7);
	}
	assert_int_equal(schedule_missed(schedule, 0, INT64_MAX), 0);
	schedule_free(schedule);
}

static void test_late_is_run_once(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id;
	schedule_add(schedule, "checkout", MINUTE, 0, 0);
	assert_true(schedule_take(schedule, 0, &id));
	schedule_done(schedule, id, 1);
	int64_t due = schedule_next(schedule);

	int64_t late = due + 50 * MINUTE + 3; /* the process was suspended */
	assert_true(schedule_take(schedule, late, &id));
	assert_false(schedule_take(schedule, late, &id));
	schedule_done(schedule, id, late + 1);
	assert_int_equal(schedule_next(schedule), due + 51 * MINUTE);
	assert_int_equal(schedule_missed(schedule, id, INT64_MAX), 50);
	schedule_free(schedule);
}

static void test_a_long_run_is_not_overtaken(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id;
	schedule_add(schedule, "slow", MINUTE, 0, 0);
	assert_true(schedule_take(schedule, 0, &id));
	assert_false(schedule_take(schedule, 10 * MINUTE, &id));
	assert_int_equal(schedule_missed(schedule, id, 5 * MINUTE), 5); /* while it hangs */
	schedule_done(schedule, id, 10 * MINUTE);
	assert_in_range(schedule_next(schedule), 10 * MINUTE + 1, 11 * MINUTE);
	assert_int_equal(schedule_missed(schedule, id, INT64_MAX), 10);
	schedule_free(schedule);
}

static void test_never(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id;
	schedule_add(schedule, "once", WHEN_NEVER, 0, 100);
	assert_in_range(schedule_next(schedule), 0, 99);
	assert_true(schedule_take(schedule, 100, &id));
	schedule_done(schedule, id, 101);
	assert_int_equal(schedule_next(schedule), INT64_MAX);
	schedule_free(schedule);
}

/* Ten thousand names: each second of the minute gets its share, after the first pass as in it. */
static void test_spread(void **state)
{
	(void)state;
	enum { TESTS = 10000 };
	struct schedule *schedule = schedule_new();
	for (int i = 0; i < TESTS; i++) {
		char name[32];
		snprintf(name, sizeof name, "test-%d", i);
		schedule_add(schedule, name, MINUTE, 0, 10000);
	}
	int first[10] = {0}, second[60] = {0};
	size_t id;
	for (int64_t now = 0; now < 10000; now++)
		while (schedule_take(schedule, now, &id)) {
			first[now / 1000]++;
			schedule_done(schedule, id, now);
		}
	for (int64_t now = 10000; now < 10000 + MINUTE; now++)
		while (schedule_take(schedule, now, &id)) {
			second[(now - 10000) / 1000]++;
			schedule_done(schedule, id, now);
		}
	for (int i = 0; i < 60; i++)
		assert_in_range(second[i], TESTS / 60 / 2, TESTS / 60 * 2);
	assert_in_range(first[0], TESTS / 10 / 2, TESTS / 10 * 2);
	schedule_free(schedule);
}

/* Random run times and suspensions: runs and missed places together are exactly the places that
 * went by. */
static void test_runs_and_missed_make_the_grid(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 500; round++) {
		struct schedule *schedule = schedule_new();
		char name[16];
		snprintf(name, sizeof name, "t%d", round);
		int64_t interval = 1 + rand() % 5000, now = rand() % 100000;
		size_t id = schedule_add(schedule, name, interval, now, 0);
		assert_true(schedule_take(schedule, now, &id));
		schedule_done(schedule, id, now);
		int64_t first = schedule_next(schedule);
		assert_in_range(first, now + 1, now + interval);

		for (int64_t runs = 1; runs < 200; runs++) {
			now = schedule_next(schedule) + (rand() % 4 == 0 ? rand() % 60000 : 0);
			assert_true(schedule_take(schedule, now, &id));
			now += rand() % 3 * (rand() % 4000);
			schedule_done(schedule, id, now);
			int64_t next = schedule_next(schedule);
			assert_in_range(next, now + 1, now + interval);
			assert_int_equal((next - first) % interval, 0);
			assert_int_equal((next - first) / interval,
				runs + (int64_t)schedule_missed(schedule, id, INT64_MAX));
		}
		schedule_free(schedule);
	}
}

/* Several tests at once: what is due is taken, in order, and nothing that runs. */
static void test_order(void **state)
{
	(void)state;
	enum { TESTS = 7 };
	srand(11);
	struct schedule *schedule = schedule_new();
	bool running[TESTS] = {false};
	int64_t ends[TESTS], now = 0;
	for (int i = 0; i < TESTS; i++) {
		char name[16];
		snprintf(name, sizeof name, "t%d", i);
		schedule_add(schedule, name, 1 + rand() % 5000, now, rand() % 3000);
	}
	for (int turn = 0; turn < 20000; turn++) {
		now += rand() % 200;
		for (size_t i = 0; i < TESTS; i++)
			if (running[i] && ends[i] <= now) {
				running[i] = false;
				schedule_done(schedule, i, now);
			}
		int64_t due = schedule_next(schedule);
		for (size_t id; schedule_take(schedule, now, &id);) {
			assert_false(running[id]);
			assert_true(due <= schedule_next(schedule));
			due = schedule_next(schedule);
			running[id] = true;
			ends[id] = now + rand() % 3 * (rand() % 4000);
		}
		assert_true(due > now);
	}
	schedule_free(schedule);
}

static void test_out_of_turn(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id = schedule_add(schedule, "checkout", MINUTE, 0, 0);
	schedule_add(schedule, "other", MINUTE, 0, 0);
	assert_true(schedule_take(schedule, 0, &id));
	schedule_done(schedule, id, 1);
	int64_t due = schedule_due(schedule, id);

	schedule_pick(schedule, id);
	schedule_done(schedule, id, due - 1);
	assert_int_equal(schedule_due(schedule, id), due);
	schedule_pick(schedule, id); /* and its turn comes while it runs */
	schedule_done(schedule, id, due + 1);
	assert_int_equal(schedule_due(schedule, id), due + MINUTE);
	assert_int_equal(schedule_missed(schedule, id, INT64_MAX), 0);

	id = schedule_add(schedule, "once", WHEN_NEVER, due, 0);
	assert_int_equal(id, 2);
	schedule_pick(schedule, id);
	schedule_done(schedule, id, due);
	assert_int_equal(schedule_due(schedule, id), INT64_MAX);
	schedule_pick(schedule, id);
	schedule_done(schedule, id, due + 1);
	assert_int_equal(schedule_due(schedule, id), INT64_MAX);
	schedule_free(schedule);
}

static void test_change(void **state)
{
	(void)state;
	struct schedule *schedule = schedule_new();
	size_t id = schedule_add(schedule, "checkout", MINUTE, 0, 0);
	assert_true(schedule_take(schedule, 0, &id));
	schedule_change(schedule, id, 10 * MINUTE, 5);
	int64_t due = schedule_due(schedule, id);
	assert_in_range(due, 6, 5 + 10 * MINUTE);
	schedule_done(schedule, id, 10);
	assert_int_equal(schedule_next(schedule), due);

	schedule_change(schedule, id, WHEN_NEVER, 11);
	assert_int_equal(schedule_next(schedule), INT64_MAX);
	schedule_change(schedule, id, 10 * MINUTE, 12);
	assert_int_equal(schedule_next(schedule), due);
	schedule_free(schedule);
}

/* Tests come and go: who is there comes in order, who is gone does not come, ids are used again. */
static void test_remove(void **state)
{
	(void)state;
	enum { MOST = 60 };
	struct schedule *schedule = schedule_new();
	bool there[MOST] = {false}, running[MOST] = {false};
	int64_t now = 0;
	srand(5);
	for (int turn = 0; turn < 20000; turn++, now += rand() % 50) {
		size_t at = (size_t)rand() % MOST, id;
		if (rand() % 3 == 0 && there[at]) {
			schedule_remove(schedule, at);
			there[at] = running[at] = false;
		} else if (there[at] && running[at]) {
			schedule_done(schedule, at, now);
			running[at] = false;
		} else if (there[at] && rand() % 2 == 0) {
			schedule_pick(schedule, at);
			running[at] = true;
		} else {
			size_t count = 0;
			for (size_t i = 0; i < MOST; i++)
				count += there[i];
			if (count < MOST) {
				id = schedule_add(schedule, "any", 1 + rand() % 900, now, 100);
				assert_in_range(id, 0, MOST - 1);
				assert_false(there[id]);
				there[id] = true;
				running[id] = false;
			}
		}
		int64_t next = INT64_MAX;
		for (size_t i = 0; i < MOST; i++)
			if (there[i] && !running[i] && schedule_due(schedule, i) < next)
				next = schedule_due(schedule, i);
		assert_int_equal(schedule_next(schedule), next);
		if (rand() % 4 == 0 && schedule_take(schedule, now, &id)) {
			assert_true(there[id] && !running[id]);
			assert_int_equal(schedule_due(schedule, id), next);
			running[id] = true;
		}
	}
	schedule_free(schedule);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_run_and_grid),
		cmocka_unit_test(test_late_is_run_once),
		cmocka_unit_test(test_a_long_run_is_not_overtaken),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_spread),
		cmocka_unit_test(test_runs_and_missed_make_the_grid),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_out_of_turn),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
