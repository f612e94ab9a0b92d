/*
 * Which deployments a change can come from, by points that carry builds and by deployments that
 * have times of their own.
 */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "agent/base/buf.h"
#include "agent/model/attribution.h"
#include "agent/model/series.h"

enum { MINUTE = 60000, HOUR = 3600000, N = 24 };

struct world {
	struct arena *arena;
	int64_t times[N];
	double values[N];
	const char *commits[N], *versions[N];
	struct column columns[2];
	struct axis axis;
	struct series series;
	struct deployment items[N * N];
	struct deployments deployments;
};

static int set_up(void **state)
{
	struct arena *arena = arena_new();
	struct world *world = arena_alloc(arena, sizeof *world);
	world->arena = arena;
	world->columns[0] = (struct column){"commit", world->commits};
	world->columns[1] = (struct column){"version", world->versions};
	world->axis = (struct axis){.n = N, .times = world->times, .columns = world->columns};
	for (int i = 0; i < N; i++)
		world->times[i] = (int64_t)i * HOUR;
	world->series = (struct series){.axis = &world->axis, .values = world->values};
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;
	arena_free(world->arena);
	return 0;
}

/* A commit for each point, by letters; '-' has none. */
static void points_have(struct world *world, const char *letters)
{
	for (size_t i = 0; i < N; i++)
		world->commits[i] =
			letters[i] == '-' ? NULL : arena_strndup(world->arena, letters + i, 1);
	world->axis.column_count = 1;
}

static void deployed(struct world *world, const char *commit, int64_t after, int64_t time)
{
	world->items[world->deployments.count++] =
		(struct deployment){.after = after, .time = time, .commit = commit};
	world->deployments.items = world->items;
	world->axis.deployments = &world->deployments;
}

static struct attribution suspects(struct world *world, size_t index, size_t from, size_t to)
{
	struct change change = {.index = index,
		.place_from = index,
		.place_to = index,
		.cause_from = from,
		.cause_to = to};
	return attribution_of(world->arena, &world->series, &change);
}

/* "a|bc": the last one before them, and they. */
static void check(struct world *world, size_t index, size_t from, size_t to, const char *expected)
{
	struct attribution found = suspects(world, index, from, to);
	struct buf text = {0};
	assert_true(found.known);
	buf_text(&text, found.last.time != INT64_MIN ? deployment_name(&found.last) : "?");
	buf_char(&text, '|');
	for (size_t i = 0; i < found.listed; i++)
		buf_text(&text, deployment_name(&found.list[i]));
	assert_string_equal(text.data, expected);
	assert_int_equal(found.count, found.listed);
	buf_free(&text);
}

static void test_points_of_builds(void **state)
{
	struct world *world = *state;
	points_have(world, "abcdefghijklmnopqrstuvwx");
	check(world, 10, 10, 10, "j|k");
	check(world, 10, 9, 12, "i|jklm");
	check(world, 10, 11, 9, "j|k"); /* no places: the index alone */
	check(world, 1, 1, 1, "a|b");
	world->values[9] = world->values[8] = (double)NAN; /* no points of this series */
	check(world, 10, 10, 10, "h|ijk");
	assert_string_equal(
		attribution_from(&(struct attribution){.known = true, .last = {.time = INT64_MIN}})
			? "x"
			: "none",
		"none");
}

static void test_points_that_lack_it(void **state)
{
	struct world *world = *state;
	points_have(world, "aaaaabbb--ccccccccdd--ee");
	check(world, 10, 10, 10, "b|c");
	check(world, 9, 9, 9, "b|c"); /* it may have been there */
	check(world, 8, 8, 8, "b|c");
	check(world, 14, 14, 14, "c|");
	check(world, 22, 20, 22, "d|e");
	points_have(world, "----------bbbbbbbbbbbbbb");
	check(world, 12, 12, 12, "b|");
	check(world, 8, 8, 8, "?|b");
}

static void test_nothing_known(void **state)
{
	struct world *world = *state;
	assert_false(suspects(world, 10, 10, 10).known);
	points_have(world, "------------------------");
	assert_false(suspects(world, 10, 10, 10).known);
	world->axis.deployments = &world->deployments;
	assert_false(suspects(world, 10, 10, 10).known);
}

static void test_versions_where_there_are_no_commits(void **state)
{
	struct world *world = *state;
	points_have(world, "aaaaaaaaaabbbbbbbbbbbbbb");
	world->columns[0] = (struct column){"version", world->commits};
	check(world, 10, 10, 10, "a|b");
	struct attribution found = suspects(world, 10, 10, 10);
	assert_string_equal(attribution_from(&found), "a");
	assert_string_equal(attribution_to(&found), "b");
	assert_null(found.list[0].commit);
	assert_int_equal(found.list[0].after, 9 * HOUR);
	assert_int_equal(found.list[0].time, 10 * HOUR);
	assert_false(found.timed);
}

/* A point is a window: what was deployed in it counts, though the point carries the older build. */
static void test_windows_over_points(void **state)
{
	struct world *world = *state;
	points_have(world, "aaaaaaaabbbbcccccccccccc");
	check(world, 10, 10, 10, "b|");
	world->series.window.back = 90 * MINUTE;
	check(world, 10, 10, 10, "a|b");
	check(world, 12, 11, 12, "b|c");
	world->series.window.back = 3 * HOUR;
	check(world, 12, 11, 12, "a|bc");
	world->series.window.back = 1000 * (int64_t)HOUR;
	check(world, 12, 11, 12, "a|bc"); /* the first one may always have been there */
}

static void test_times_of_deployments(void **state)
{
	struct world *world = *state;
	deployed(world, "a", INT64_MIN, -48 * HOUR);
	deployed(world, "b", 7 * HOUR + 17 * MINUTE, 7 * HOUR + 17 * MINUTE);
	deployed(world, "c", 9 * HOUR + 48 * MINUTE, 9 * HOUR + 48 * MINUTE);
	check(world, 10, 10, 10, "b|c");
	check(world, 12, 12, 12, "c|");
	check(world, 5, 5, 5, "a|");
	world->series.window.on = HOUR;
	check(world, 7, 7, 7, "a|b"); /* in the bucket of the first bad point */
	check(world, 8, 8, 8, "a|b"); /* ... of the last good one */
	check(world, 9, 9, 9, "b|c");
	deployed(world, "d", 10 * HOUR, 10 * HOUR); /* where a bucket ends and the next begins */
	check(world, 9, 9, 9, "b|c");
	check(world, 10, 10, 10, "b|cd");
	check(world, 11, 11, 11, "d|");
	world->deployments.count--;
	world->series.window.back = 3 * HOUR;
	check(world, 10, 10, 10, "a|bc");
	check(world, 11, 11, 11, "a|bc");
	check(world, 12, 12, 12, "b|c");
	struct attribution found = suspects(world, 10, 10, 10);
	assert_true(found.timed);
	assert_string_equal(attribution_from(&found), "a");
	assert_string_equal(attribution_to(&found), "c");
}

/* Seen at 10:00 and not yet at 9:00: any time between the two. */
static void test_deployments_seen_on_a_grid(void **state)
{
	struct world *world = *state;
	deployed(world, "a", INT64_MIN, 0);
	deployed(world, "b", 9 * HOUR, 10 * HOUR);
	check(world, 10, 10, 10, "a|b");
	check(world, 9, 9, 9, "a|");
	check(world, 11, 11, 11, "b|");
	world->series.window.back = 10 * MINUTE;
	check(world, 11, 11, 11, "a|b");
	world->series.window.on = MINUTE;
	check(world, 9, 9, 9, "a|b");
}

/* What ran when the first point was taken was not deployed within it; what comes later was. */
static void test_the_first_that_is_known(void **state)
{
	struct world *world = *state;
	deployed(world, "a", INT64_MIN, 5 * HOUR);
	world->series.window.back = HOUR;
	check(world, 6, 6, 6, "a|");
	check(world, 5, 5, 5, "?|a");
}

static void test_never_with_itself(void **state)
{
	struct world *world = *state;
	deployed(world, "a", HOUR, HOUR);
	deployed(world, "a", 10 * HOUR, 10 * HOUR);
	struct attribution found = suspects(world, 10, 10, 10);
	assert_int_equal(found.count, 1);
	assert_null(attribution_from(&found));
	assert_string_equal(attribution_to(&found), "a");
}

static void test_many(void **state)
{
	struct world *world = *state;
	enum { MANY = 100 };
	deployed(world, "first", 0, 0);
	for (int i = 1; i <= MANY; i++)
		deployed(world, arena_printf(world->arena, "c%d", i), 9 * HOUR + i * 1000,
			9 * HOUR + i * 1000);
	struct attribution found = suspects(world, 10, 10, 10);
	assert_int_equal(found.count, MANY);
	assert_int_equal(found.listed, ATTRIBUTION_LISTED);
	assert_string_equal(found.list[0].commit, "c1");
	assert_string_equal(found.list[ATTRIBUTION_LISTED - 2].commit, "c19");
	assert_string_equal(attribution_to(&found), "c100");
	struct attribution copy = attribution_copy(world->arena, &found);
	assert_true(attribution_same(&copy, &found));
	copy.last.commit = "other";
	assert_false(attribution_same(&copy, &found));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

/* Of a crowd: by the members, each with the numbers of its suspects c1 .. c9, deployed an hour
 * apart. */
static struct attribution common_of(struct arena *arena, const char *const *members, size_t count)
{
	static const char *const names[] = {
		"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"};
	struct attribution *all = arena_array(arena, count, sizeof *all);

	for (size_t i = 0; i < count; i++) {
		struct deployment *list = arena_array(arena, 10, sizeof *list);

		all[i] = (struct attribution){.known = *members[i] != '?',
			.timed = true,
			.list = list,
			.last = {.time = INT64_MIN}};
		for (const char *at = members[i]; *at >= '0' && *at <= '9'; at++) {
			int64_t time = (*at - '0') * INT64_C(3600000);

			list[all[i].count++] = (struct deployment){
				.after = time - 60000, .time = time, .commit = names[*at - '0']};
		}
		all[i].listed = all[i].count;
		if (all[i].count > 0 && *members[i] > '0')
			all[i].last = (struct deployment){.after = INT64_MIN,
				.time = list[0].time - 3600000,
				.commit = names[*members[i] - '1']};
	}
	return attribution_common(arena, all, count);
}

static void check_common(
	const char *const *members, size_t count, const char *expected, double share)
{
	struct arena *arena = arena_new();
	struct attribution common = common_of(arena, members, count);
	const char *from = attribution_from(&common);
	char text[64] = "";

	for (size_t i = 0; i < common.listed; i++)
		strcat(strcat(text, i ? " " : ""), common.list[i].commit);
	assert_string_equal(text, expected);
	assert_true(common.share == share);
	assert_true(common.count == common.listed);
	if (common.listed > 0 && common.list[0].commit[1] > '0')
		assert_int_equal(from[1], common.list[0].commit[1] - 1);
	arena_free(arena);
}

static void test_what_a_crowd_suspects(void **state)
{
	(void)state;
	check_common((const char *const[]){"345", "45", "456"}, 3, "c4 c5", 1);
	check_common((const char *const[]){"23", "3", "34", "7"}, 4, "c3", 0.75);
	check_common((const char *const[]){"1", "2", "3", "4", "?"}, 5, "c1 c2 c3 c4", 1);
	check_common((const char *const[]){"1", "2", "", "3", "", "4"}, 6, "c1 c2 c3 c4", 4 / 6.0);
	check_common((const char *const[]){"", ""}, 2, "", 0);
	check_common((const char *const[]){"?", "55"}, 2, "c5", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_crowd_suspects),
		CASE(test_points_of_builds),
		CASE(test_points_that_lack_it),
		CASE(test_nothing_known),
		CASE(test_versions_where_there_are_no_commits),
		CASE(test_windows_over_points),
		CASE(test_times_of_deployments),
		CASE(test_deployments_seen_on_a_grid),
		CASE(test_the_first_that_is_known),
		CASE(test_never_with_itself),
		CASE(test_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
