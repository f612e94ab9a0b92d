/*
 * Grouping: what belongs together, in which order, and that nothing is lost.
 */
#include "unit.h"
#include <string.h>

#include "agent/decide/group.h"

#define HOUR INT64_C(3600000)
#define START INT64_C(1700000000000)
enum { MOST = 12 };

struct fixture {
	struct arena *arena;
	struct group_of *groups;
	size_t count;
};

static int setup(void **state)
{
	struct arena *arena = arena_new();
	struct fixture *fixture = arena_alloc(arena, sizeof *fixture);

	fixture->arena = arena;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	arena_free(fixture->arena);
	return 0;
}

static struct change_record change(int hour, const char *test, const char *metric, int64_t incident)
{
	return (struct change_record){.item = {.incident = incident,
					      .test = test,
					      .metric = metric,
					      .time = START + hour * HOUR,
					      .spacing = HOUR},
		.series = metric};
}

static void group(struct fixture *fixture, const struct change_record *records, size_t count)
{
	const struct change_record *items[MOST] = {0};
	const struct strings group_by[MOST] = {0};
	const char *keys[MOST] = {0};

	for (size_t i = 0; i < count; i++)
		items[i] = &records[i];
	fixture->count =
		group_changes(fixture->arena, items, group_by, keys, count, &fixture->groups);
}

static void test_an_incident_by_date_test_metric(void **state)
{
	struct fixture *fixture = *state;
	const struct change_record records[] = {
		change(1, "b", "p50", 7),
		change(0, "b", "p99", 7),
		change(0, "a", "p99", 7),
		change(0, "b", "p50", 7),
	};
	static const size_t order[] = {2, 3, 1, 0};

	group(fixture, records, 4);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->groups[0].count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_ptr_equal(fixture->groups[0].items[i], &records[order[i]]);
}

/* Whatever their times and commits: the incident is the cause. */
static void test_incidents_are_apart(void **state)
{
	struct fixture *fixture = *state;
	struct change_record records[] = {
		change(1, "a", "p50", 2), change(0, "a", "p99", 1), change(90, "b", "x", 1)};

	records[0].item.commit_after = records[1].item.commit_after = "c1";
	group(fixture, records, 3);
	assert_int_equal(fixture->count, 2);
	assert_int_equal(fixture->groups[0].count, 2);
	assert_ptr_equal(fixture->groups[0].items[0], &records[1]);
	assert_ptr_equal(fixture->groups[1].items[0], &records[0]);
}

static void test_many_incidents_become_a_list(void **state)
{
	struct fixture *fixture = *state;
	struct change_record records[GROUPS_MOST + 2];

	for (int i = 0; i <= GROUPS_MOST; i++)
		records[i] = change(100 - 20 * i, "a", "p", i + 1);
	group(fixture, records, GROUPS_MOST + 1);
	assert_int_equal(fixture->count, 1);
	assert_int_equal(fixture->groups[0].count, GROUPS_MOST + 1);
	assert_ptr_equal(fixture->groups[0].items[0], &records[GROUPS_MOST]);
	assert_false(fixture->groups[0].first_look);
	for (int i = 1; i <= GROUPS_MOST; i++) /* most were there before */
		records[i].item.change.count_after = 24;
	group(fixture, records, GROUPS_MOST + 1);
	assert_true(fixture->groups[0].first_look);
	group(fixture, records, GROUPS_MOST);
	assert_false(fixture->groups[0].first_look);
	assert_int_equal(fixture->count, GROUPS_MOST);
	/* An environment event is apart, and does not count. */
	records[GROUPS_MOST] = records[GROUPS_MOST + 1] = change(0, "a", "p", 9);
	records[GROUPS_MOST].environment_event = records[GROUPS_MOST + 1].environment_event = 9;
	group(fixture, records, GROUPS_MOST + 2);
	assert_int_equal(fixture->count, GROUPS_MOST + 1);
	assert_int_equal(fixture->groups[0].count, 2);
}

static void test_none(void **state)
{
	struct fixture *fixture = *state;

	group(fixture, NULL, 0);
	assert_int_equal(fixture->count, 0);
}

/* Each record is in exactly one group, whatever their order. */
static void test_property_nothing_is_lost(void **state)
{
	struct fixture *fixture = *state;
	uint32_t random = 1;

	for (int round = 0; round < 2000; round++) {
		struct change_record records[MOST];
		size_t seen[MOST] = {0}, count = (random >> 8) % MOST;

		for (size_t i = 0; i < count; i++) {
			random = random * 1664525 + 1013904223;
			records[i] = change((int)(random >> 8) % 40, random & 0x10000 ? "a" : "b",
				random & 0x20000 ? "m" : "n", (random >> 24) % 5);
		}
		random = random * 1664525 + 1013904223;
		group(fixture, records, count);
		assert_true(fixture->count <= GROUPS_MOST);
		for (size_t i = 0; i < fixture->count; i++)
			for (size_t j = 0; j < fixture->groups[i].count; j++) {
				const struct change_record *item = fixture->groups[i].items[j];

				seen[item - records]++;
				if (j > 0)
					assert_true(fixture->groups[i].items[j - 1]->item.time <=
						    item->item.time);
			}
		for (size_t i = 0; i < count; i++)
			assert_int_equal(seen[i], 1);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_an_incident_by_date_test_metric),
		CASE(test_incidents_are_apart),
		CASE(test_many_incidents_become_a_list),
		CASE(test_none),
		CASE(test_property_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
