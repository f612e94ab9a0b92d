/*
 * Threads: what a later change belongs to. Examples, and what holds for any.
 */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/notify/threads.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1700000000000)

static struct change_record change(int hour, const char *commit)
{
	return (struct change_record){.item = {.test = "t",
					      .metric = "m",
					      .time = START + hour * HOUR,
					      .commit_after = commit},
		.series = "m",
		.spacing = HOUR};
}

static void tell(struct threads *threads, const char *key, const char *thread,
	const struct change_record *record, int64_t now)
{
	struct delivery delivery = {.key = key,
		.thread = thread,
		.receiver = "slack",
		.destination = "#perf",
		.records = record,
		.record_count = 1,
		.now = now};

	threads_add(threads, &delivery, HOUR);
}

/* The key of the thread at that destination, as the last call found it; or NULL. */
static const char *find_at(struct threads *threads, const char *receiver, const char *destination,
	struct change_record record, int64_t now)
{
	static char key[64];
	const struct change_record *records[] = {&record};
	struct arena *arena = arena_new();
	struct thread thread;
	bool found = threads_find(
		threads, arena, receiver, destination, records, 1, HOUR, now, NULL, &thread);

	if (found)
		snprintf(key, sizeof key, "%s", thread.key);
	arena_free(arena);
	return found ? key : NULL;
}

static const char *find(struct threads *threads, struct change_record record, int64_t now)
{
	return find_at(threads, "slack", "#perf", record, now);
}

static void test_same_time_or_commit(void **state)
{
	struct threads *threads = threads_new();
	struct change_record told = change(0, "c1");

	(void)state;
	tell(threads, "k1", NULL, &told, START);
	assert_string_equal(find(threads, change(5, NULL), START + HOUR), "k1");
	assert_string_equal(find(threads, change(-5, "c2"), START), "k1");
	assert_string_equal(find(threads, change(99, "c1"), START), "k1");
	assert_null(find(threads, change(6, "c2"), START));
	assert_null(find(threads, change(6, ""), START));
	assert_null(find(threads, change(0, "c1"), START + HOUR + 1));
	threads_free(threads);
}

static void test_each_destination_has_its_own(void **state)
{
	struct threads *threads = threads_new();
	struct change_record told = change(0, "c1");

	(void)state;
	tell(threads, "k1", NULL, &told, START);
	assert_null(find_at(threads, "slack", "#ci", told, START));
	assert_null(find_at(threads, "stdout", "#perf", told, START));
	assert_non_null(find_at(threads, "slack", "#perf", told, START));
	threads_free(threads);
}

/* What goes into a thread keeps it open, adds its commits, and is no thread of its own. */
static void test_a_thread_goes_on(void **state)
{
	struct threads *threads = threads_new();
	struct change_record first = change(0, "c1"), second = change(1, "c2");

	(void)state;
	tell(threads, "k1", NULL, &first, START);
	tell(threads, "k2", "k1", &second, START + HOUR);
	assert_string_equal(find(threads, change(99, "c2"), START + 2 * HOUR), "k1");
	assert_null(find(threads, change(0, NULL), START + 2 * HOUR + 1));
	threads_free(threads);
}

/* Many groups may travel in one message: each has its later siblings. */
static void test_a_message_of_many_times(void **state)
{
	struct threads *threads = threads_new();
	struct change_record told[] = {change(0, NULL), change(100, NULL), change(200, NULL)};
	struct delivery delivery = {.key = "k1",
		.receiver = "slack",
		.destination = "#perf",
		.records = told,
		.record_count = 3,
		.now = START};

	(void)state;
	threads_add(threads, &delivery, HOUR);
	assert_string_equal(find(threads, change(103, NULL), START), "k1");
	assert_string_equal(find(threads, change(195, NULL), START), "k1");
	assert_null(find(threads, change(50, NULL), START));
	threads_free(threads);
}

static struct change_record measured(int hour, const char *runner, int64_t event)
{
	struct change_record record = change(hour, NULL);

	record.item.environment = runner;
	record.environment_event = event;
	return record;
}

static size_t early(struct threads *threads, struct change_record record)
{
	const struct change_record *records[] = {&record};

	return threads_early(threads, "slack", "#perf", records, 1);
}

/* What one runner's slowness showed first was told on its own: once the event is told, nothing that
 * comes later continues that message; what else it told has its siblings all the same. */
static void test_told_before_its_event(void **state)
{
	struct threads *threads = threads_new();
	struct change_record alone = measured(0, "r7", 0), other = change(0, "c1");
	struct change_record event = measured(1, "r7", 42), late = measured(2, "r8", 0);

	(void)state;
	alone.item.commit_after = "c1";
	tell(threads, "k1", NULL, &alone, START);
	tell(threads, "k1", "k1", &alone, START);
	assert_int_equal(early(threads, event), 2);
	assert_int_equal(early(threads, measured(1, "r8", 43)), 0);
	assert_int_equal(early(threads, measured(9, "r7", 43)), 0);
	assert_string_equal(find(threads, late, START), "k1");
	tell(threads, "k2", NULL, &event, START);
	assert_null(find(threads, late, START));
	assert_null(find(threads, other, START));
	assert_null(find(threads, measured(2, "r7", 0), START));
	assert_string_equal(find(threads, measured(2, "r7", 42), START), "k2");
	assert_int_equal(early(threads, event), 0);
	tell(threads, "k1", "k1", &late, START);
	assert_string_equal(find(threads, measured(3, "r9", 0), START), "k1");
	threads_free(threads);
}

/* A change of all runners at the time is not one of the event. */
static void test_told_everywhere_before_the_event(void **state)
{
	struct threads *threads = threads_new();
	struct change_record told[] = {measured(0, "r7", 0), measured(0, "r8", 0)};
	struct change_record event = measured(1, "r7", 42);

	(void)state;
	tell(threads, "k1", NULL, &told[0], START);
	tell(threads, "k1", "k1", &told[1], START);
	assert_int_equal(early(threads, event), 0);
	tell(threads, "k2", NULL, &event, START);
	assert_string_equal(find(threads, measured(2, "r9", 0), START), "k1");
	threads_free(threads);
}

static void test_receipts(void **state)
{
	struct threads *threads = threads_new();
	struct change_record told = change(0, "c1");

	(void)state;
	tell(threads, "k1", NULL, &told, START);
	assert_null(threads_receipt(threads, "k1"));
	threads_sent(threads, "k1", NULL);
	assert_null(threads_receipt(threads, "k1"));
	threads_sent(threads, "k1", "1503.02 1");
	threads_sent(threads, "k1", "other");
	threads_sent(threads, "k9", "other");
	assert_string_equal(threads_receipt(threads, "k1"), "1503.02 1");
	assert_null(threads_receipt(threads, "k9"));
	threads_free(threads);
}

static void test_the_latest_wins(void **state)
{
	struct threads *threads = threads_new();
	struct change_record old = change(0, "c1"), new = change(40, "c1");

	(void)state;
	tell(threads, "new", NULL, &new, START + 2);
	tell(threads, "old", NULL, &old, START + 1);
	assert_string_equal(find(threads, change(99, "c1"), START + 3), "new");
	threads_free(threads);
}

static void test_memory_is_bounded(void **state)
{
	struct threads *threads = threads_new();
	char key[32];

	(void)state;
	for (int i = 0; i < 5000; i++) {
		struct change_record told = change(20 * i, NULL);

		snprintf(key, sizeof key, "k%d", i);
		tell(threads, key, NULL, &told, START + i);
	}
	assert_null(find(threads, change(0, NULL), START));
	assert_string_equal(find(threads, change(20 * 4999, NULL), START), "k4999");
	threads_free(threads);
}

/* A thread that goes on is not the oldest, whenever it began. */
static void test_what_goes_on_is_remembered(void **state)
{
	struct threads *threads = threads_new();
	struct change_record first = change(0, NULL);
	char key[32];

	(void)state;
	tell(threads, "first", NULL, &first, START);
	for (int i = 1; i < 3000; i++) {
		struct change_record told = change(20 * i, NULL);

		snprintf(key, sizeof key, "k%d", i);
		tell(threads, key, NULL, &told, START + i);
		tell(threads, "more", "first", &first, START + i);
	}
	assert_string_equal(find(threads, first, START + 3000), "first");
	assert_null(find(threads, change(20 * 1000, NULL), START + 3000));
	assert_string_equal(find(threads, change(20 * 2100, NULL), START + 3000), "k2100");
	threads_free(threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_time_or_commit),
		cmocka_unit_test(test_each_destination_has_its_own),
		cmocka_unit_test(test_a_thread_goes_on),
		cmocka_unit_test(test_a_message_of_many_times),
		cmocka_unit_test(test_told_before_its_event),
		cmocka_unit_test(test_told_everywhere_before_the_event),
		cmocka_unit_test(test_receipts),
		cmocka_unit_test(test_the_latest_wins),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_what_goes_on_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
