/* The schedule on a clock of our own. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/base/when.h"
#include "agent/monitor/schedule.h"

enum { MINUTE = 60000 };

static void test_first_run_and_grid(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry entry;
	assert_int_equal(schedule_next(&schedule), INT64_MAX);
	assert_null(schedule_take(&schedule, 5));
	schedule_add(&schedule, &entry, "checkout", MINUTE, 1000, 0);
	assert_ptr_equal(schedule_take(&schedule, 1000), &entry);
	assert_int_equal(schedule_next(&schedule), INT64_MAX);
	schedule_done(&schedule, &entry, 1010);

	int64_t first = schedule_next(&schedule);
	assert_in_range(first, 1011, 1010 + MINUTE);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(schedule_next(&schedule), first + i * MINUTE);
		assert_null(schedule_take(&schedule, first + i * MINUTE - 1));
		assert_ptr_equal(schedule_take(&schedule, first + i * MINUTE), &entry);
		schedule_done(&schedule, &entry, first + i * MINUTE + 7);
	}
	assert_int_equal(schedule_missed(&entry, INT64_MAX), 0);
	schedule_free(&schedule);
}

static void test_late_is_run_once(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry entry;
	schedule_add(&schedule, &entry, "checkout", MINUTE, 0, 0);
	assert_ptr_equal(schedule_take(&schedule, 0), &entry);
	schedule_done(&schedule, &entry, 1);
	int64_t due = schedule_next(&schedule);

	int64_t late = due + 50 * MINUTE + 3; /* the process was suspended */
	assert_ptr_equal(schedule_take(&schedule, late), &entry);
	assert_null(schedule_take(&schedule, late));
	schedule_done(&schedule, &entry, late + 1);
	assert_int_equal(schedule_next(&schedule), due + 51 * MINUTE);
	assert_int_equal(schedule_missed(&entry, INT64_MAX), 50);
	schedule_free(&schedule);
}

static void test_a_long_run_is_not_overtaken(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry entry;
	schedule_add(&schedule, &entry, "slow", MINUTE, 0, 0);
	assert_ptr_equal(schedule_take(&schedule, 0), &entry);
	assert_null(schedule_take(&schedule, 10 * MINUTE));
	assert_int_equal(schedule_missed(&entry, 5 * MINUTE), 5); /* while it hangs */
	schedule_done(&schedule, &entry, 10 * MINUTE);
	assert_in_range(schedule_next(&schedule), 10 * MINUTE + 1, 11 * MINUTE);
	assert_int_equal(schedule_missed(&entry, INT64_MAX), 10);
	schedule_free(&schedule);
}

static void test_never(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry entry;
	schedule_add(&schedule, &entry, "once", WHEN_NEVER, 0, 100);
	assert_in_range(schedule_next(&schedule), 0, 99);
	assert_ptr_equal(schedule_take(&schedule, 100), &entry);
	schedule_done(&schedule, &entry, 101);
	assert_int_equal(schedule_next(&schedule), INT64_MAX);
	schedule_free(&schedule);
}

/* Ten thousand names: each second of the minute gets its share, after the first pass as in it. */
static void test_spread(void **state)
{
	(void)state;
	enum { TESTS = 10000 };
	struct schedule schedule = {0};
	struct schedule_entry *entries = calloc(TESTS, sizeof *entries), *entry;
	for (int i = 0; i < TESTS; i++) {
		char name[32];
		snprintf(name, sizeof name, "test-%d", i);
		schedule_add(&schedule, &entries[i], name, MINUTE, 0, 10000);
	}
	int first[10] = {0}, second[60] = {0};
	for (int64_t now = 0; now < 10000; now++)
		while ((entry = schedule_take(&schedule, now))) {
			first[now / 1000]++;
			schedule_done(&schedule, entry, now);
		}
	for (int64_t now = 10000; now < 10000 + MINUTE; now++)
		while ((entry = schedule_take(&schedule, now))) {
			second[(now - 10000) / 1000]++;
			schedule_done(&schedule, entry, now);
		}
	for (int i = 0; i < 60; i++)
		assert_in_range(second[i], TESTS / 60 / 2, TESTS / 60 * 2);
	assert_in_range(first[0], TESTS / 10 / 2, TESTS / 10 * 2);
	schedule_free(&schedule);
	free(entries);
}

/* Random run times and suspensions: runs and missed places together are exactly the places that
 * went by. */
static void test_runs_and_missed_make_the_grid(void **state)
{
	(void)state;
	srand(7);
	for (int round = 0; round < 500; round++) {
		struct schedule schedule = {0};
		struct schedule_entry entry;
		char name[16];
		snprintf(name, sizeof name, "t%d", round);
		int64_t interval = 1 + rand() % 5000, now = rand() % 100000;
		schedule_add(&schedule, &entry, name, interval, now, 0);
		assert_ptr_equal(schedule_take(&schedule, now), &entry);
		schedule_done(&schedule, &entry, now);
		int64_t first = schedule_next(&schedule);
		assert_in_range(first, now + 1, now + interval);

		for (int64_t runs = 1; runs < 200; runs++) {
			now = schedule_next(&schedule) + (rand() % 4 == 0 ? rand() % 60000 : 0);
			assert_ptr_equal(schedule_take(&schedule, now), &entry);
			now += rand() % 3 * (rand() % 4000);
			schedule_done(&schedule, &entry, now);
			int64_t next = schedule_next(&schedule);
			assert_in_range(next, now + 1, now + interval);
			assert_int_equal((next - first) % interval, 0);
			assert_int_equal((next - first) / interval,
				runs + (int64_t)schedule_missed(&entry, INT64_MAX));
		}
		schedule_free(&schedule);
	}
}

/* Several tests at once: what is due is taken, in order, and nothing that runs. */
static void test_order(void **state)
{
	(void)state;
	enum { TESTS = 7 };
	srand(11);
	struct schedule schedule = {0};
	struct schedule_entry entries[TESTS], *entry;
	bool running[TESTS] = {false};
	int64_t ends[TESTS], now = 0;
	for (int i = 0; i < TESTS; i++) {
		char name[16];
		snprintf(name, sizeof name, "t%d", i);
		schedule_add(&schedule, &entries[i], name, 1 + rand() % 5000, now, rand() % 3000);
	}
	for (int turn = 0; turn < 20000; turn++) {
		now += rand() % 200;
		for (size_t i = 0; i < TESTS; i++)
			if (running[i] && ends[i] <= now) {
				running[i] = false;
				schedule_done(&schedule, &entries[i], now);
			}
		int64_t due = schedule_next(&schedule);
		while ((entry = schedule_take(&schedule, now))) {
			size_t id = (size_t)(entry - entries);

			assert_false(running[id]);
			assert_true(due <= schedule_next(&schedule));
			due = schedule_next(&schedule);
			running[id] = true;
			ends[id] = now + rand() % 3 * (rand() % 4000);
		}
		assert_true(due > now);
	}
	schedule_free(&schedule);
}

static void test_out_of_turn(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry checkout, other, once;
	schedule_add(&schedule, &checkout, "checkout", MINUTE, 0, 0);
	schedule_add(&schedule, &other, "other", MINUTE, 0, 0);
	assert_ptr_equal(schedule_take(&schedule, 0), &checkout);
	schedule_done(&schedule, &checkout, 1);
	int64_t due = checkout.due;

	schedule_pick(&schedule, &checkout);
	schedule_done(&schedule, &checkout, due - 1);
	assert_int_equal(checkout.due, due);
	schedule_pick(&schedule, &checkout); /* and its turn comes while it runs */
	schedule_done(&schedule, &checkout, due + 1);
	assert_int_equal(checkout.due, due + MINUTE);
	assert_int_equal(schedule_missed(&checkout, INT64_MAX), 0);

	schedule_add(&schedule, &once, "once", WHEN_NEVER, due, 0);
	schedule_pick(&schedule, &once);
	schedule_done(&schedule, &once, due);
	assert_int_equal(once.due, INT64_MAX);
	schedule_pick(&schedule, &once);
	schedule_done(&schedule, &once, due + 1);
	assert_int_equal(once.due, INT64_MAX);
	schedule_free(&schedule);
}

static void test_change(void **state)
{
	(void)state;
	struct schedule schedule = {0};
	struct schedule_entry entry;
	schedule_add(&schedule, &entry, "checkout", MINUTE, 0, 0);
	assert_ptr_equal(schedule_take(&schedule, 0), &entry);
	schedule_change(&schedule, &entry, 10 * MINUTE, 5);
	int64_t due = entry.due;
	assert_in_range(due, 6, 5 + 10 * MINUTE);
	schedule_done(&schedule, &entry, 10);
	assert_int_equal(schedule_next(&schedule), due);

	schedule_change(&schedule, &entry, WHEN_NEVER, 11);
	assert_int_equal(schedule_next(&schedule), INT64_MAX);
	schedule_change(&schedule, &entry, 10 * MINUTE, 12);
	assert_int_equal(schedule_next(&schedule), due);
	schedule_free(&schedule);
}

/* Tests come and go: who is there comes in order, who is gone does not come. */
static void test_remove(void **state)
{
	(void)state;
	enum { MOST = 60 };
	struct schedule schedule = {0};
	struct schedule_entry entries[MOST], *entry;
	bool there[MOST] = {false}, running[MOST] = {false};
	int64_t now = 0;
	srand(5);
	for (int turn = 0; turn < 20000; turn++, now += rand() % 50) {
		size_t at = (size_t)rand() % MOST;
		if (rand() % 3 == 0 && there[at]) {
			schedule_remove(&schedule, &entries[at]);
			there[at] = running[at] = false;
		} else if (there[at] && running[at]) {
			schedule_done(&schedule, &entries[at], now);
			running[at] = false;
		} else if (there[at] && rand() % 2 == 0) {
			schedule_pick(&schedule, &entries[at]);
			running[at] = true;
		} else if (!there[at]) {
			schedule_add(&schedule, &entries[at], "any", 1 + rand() % 900, now, 100);
			there[at] = true;
		}
		int64_t next = INT64_MAX;
		for (size_t i = 0; i < MOST; i++)
			if (there[i] && !running[i] && entries[i].due < next)
				next = entries[i].due;
		assert_int_equal(schedule_next(&schedule), next);
		entry = rand() % 4 == 0 ? schedule_take(&schedule, now) : NULL;
		if (entry) {
			size_t taken = (size_t)(entry - entries);
			assert_true(there[taken] && !running[taken]);
			assert_int_equal(entry->due, next);
			running[taken] = true;
		}
	}
	schedule_free(&schedule);
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
