/*
 * What people said about a change is open again: when it expires, on a clock that jumps, and when
 * the change has outgrown what was accepted. What was told is told once more, or not at all, also
 * over restarts.
 */
#include "unit.h"

#include "agent_world.h"

enum { TESTS = 2, STEP_AT = 6 };

/* When the new level is another than at first, and which. */
struct course {
	int64_t grows, level;
};

/* A row for each hour that has passed; from the sixth on the level is higher: 1100, later perhaps
 * more, all of it, as a source that has corrected its data. */
static void write_rows(struct world *world, const char *test, int64_t now)
{
	const struct course *course = world->context;
	int64_t level = course->grows != 0 && now >= course->grows ? course->level : 1100;
	char path[96], fresh[96];
	FILE *file;

	snprintf(path, sizeof path, "%s/rows.csv", world->folder);
	snprintf(fresh, sizeof fresh, "%s/%s.fresh", world->folder, test);
	file = fopen(fresh, "w");
	assert_non_null(file);
	fputs("time,value\n", file);
	for (int64_t hour = -64; hour * HOUR <= now; hour++)
		fprintf(file, "%lld,%lld\n", (long long)((START + hour * HOUR) / 1000),
			(long long)((hour < STEP_AT ? 1000 : level) + hour * hour % 7));
	fclose(file);
	assert_int_equal(rename(fresh, path), 0);
}

static struct world *world_with(struct course *course, const char *more)
{
	struct world *world = world_new();
	char test[200], agent[100];

	world->before = write_rows;
	world->context = course;
	snprintf(test, sizeof test,
		"{type: csv, file: '%s/rows.csv', metrics: {value: {}},"
		" detection: {season: none}}",
		world->folder);
	snprintf(agent, sizeof agent, "agent: {interval: 30m, max_age: never%s}", more);
	world_configure(world, agent, test, TESTS);
	return world;
}

/* A person says it of all changes while no agent runs. */
static void say(const struct world *world, enum triage_state state, int64_t until, size_t changed)
{
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct error error;

	call->test = "*";
	call->triage = (struct triage){.state = state, .until = until};
	call->version = -1;
	call->actor = (struct actor){"ann", "command line"};
	call->now = START + world->passed;
	if (!store_tx(world->state, STORE_OWN, &call->call, &error))
		fail_msg("%s", error.text);
	assert_int_equal(call->changed, changed);
	store_call_free(&call->call);
}

/* When the last of so many changes was opened again; 0: none was. */
static int64_t reopened(const struct world *world, size_t count)
{
	struct store_audit *list = store_audit_new(NULL, NULL);
	struct error error;
	int64_t time = 0;
	size_t found = 0;

	if (!store_tx(world->state, STORE_READ, &list->call, &error))
		fail_msg("%s", error.text);
	for (size_t i = 0; i < list->entry_count; i++)
		if (list->entries[i].kind == EVENT_REOPENED) {
			assert_string_equal(list->entries[i].actor.person, "hunter-c");
			time = time > list->entries[i].time ? time : list->entries[i].time;
			found++;
		}
	assert_int_equal(found, count);
	store_call_free(&list->call);
	return time;
}

/* At the moment, if the agent runs then and the clock is right; of what was told before nothing is
 * told again. */
static void test_expiry(void **state)
{
	struct course course = {0};
	struct world *world = world_with(&course, "");

	(void)state;
	live(world, 16 * HOUR);
	assert_int_equal(world->told, TESTS);
	say(world, TRIAGE_ACKNOWLEDGED, START + 36 * HOUR, TESTS);
	live(world, 19 * HOUR);
	reopened(world, 0);
	live(world, 2 * HOUR);
	assert_int_equal(reopened(world, TESTS), START + 36 * HOUR);
	live(world, 10 * HOUR);
	reopened(world, TESTS);
	assert_int_equal(world->told, TESTS);
	world_free(world);
}

/* At the start, if it did not run then; within the hour, if the clock was set past it. */
static void test_expiry_that_was_missed(void **state)
{
	static const struct jump jumps[] = {{26 * HOUR, DAY}};
	struct course course = {0};
	struct world *world = world_with(&course, "");

	(void)state;
	world->jumps = jumps;
	world->jump_count = 1;
	live(world, 16 * HOUR);
	say(world, TRIAGE_FALSE, START + 16 * HOUR + 1, TESTS);
	world->passed += HOUR;
	live(world, HOUR);
	assert_int_equal(reopened(world, TESTS), START + 17 * HOUR);
	say(world, TRIAGE_FALSE, START + 36 * HOUR, TESTS);
	live(world, 10 * HOUR);
	assert_in_range(
		reopened(world, 2 * TESTS), START + 26 * HOUR + DAY, START + 27 * HOUR + DAY);
	assert_int_equal(world->told, TESTS);
	world_free(world);
}

/* A change that was accepted while it waited for its group is not told; when that expires it is,
 * once. */
static void test_what_nobody_was_told_is_told_then(void **state)
{
	struct course course = {0};
	struct world *world = world_with(&course, ", group_wait: 3h");

	(void)state;
	live(world, 9 * HOUR);
	assert_int_equal(world->changes, TESTS);
	assert_int_equal(world->told, 0);
	say(world, TRIAGE_EXPECTED, START + 36 * HOUR, TESTS);
	live(world, 26 * HOUR);
	assert_int_equal(world->changes, TESTS);
	assert_int_equal(world->told, 0);
	live(world, 2 * HOUR);
	assert_int_equal(world->told, 0);
	assert_int_equal(reopened(world, TESTS), START + 36 * HOUR);
	live(world, 4 * HOUR);
	assert_int_equal(world->told, TESTS);
	for (int i = 0; i < 3; i++)
		live(world, 4 * HOUR);
	assert_int_equal(world->told, TESTS);
	world_free(world);
}

/* A step that is larger than when somebody spoke of it is told once more, whatever they said; not
 * if nobody did, nor if it is no larger. */
static void test_growth(void **state)
{
	static const struct {
		enum triage_state said;
		int64_t level;
		size_t again;
	} cases[] = {{TRIAGE_EXPECTED, 1300, 1}, {TRIAGE_IGNORED, 1300, 1}, {TRIAGE_INFRA, 1300, 1},
		{TRIAGE_FALSE, 1300, 1}, {TRIAGE_ACKNOWLEDGED, 1300, 1}, {TRIAGE_FIXED, 1300, 1},
		{TRIAGE_ACKNOWLEDGED, 1100, 0}, {TRIAGE_FIXED, 1060, 0}, {TRIAGE_OPEN, 1300, 0},
		{TRIAGE_EXPECTED, 1100, 0}, {TRIAGE_EXPECTED, 1060, 0},
		{TRIAGE_EXPECTED, 1130, 1} /* by a third of its size */};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct course course = {0};
		struct world *world = world_with(&course, "");

		live(world, 26 * HOUR);
		assert_int_equal(world->told, TESTS);
		say(world, cases[i].said, -1, cases[i].said == TRIAGE_OPEN ? 0 : TESTS);
		course = (struct course){28 * HOUR, cases[i].level};
		live(world, 10 * HOUR);
		reopened(world, cases[i].again * TESTS);
		assert_int_equal(world->told, (1 + cases[i].again) * TESTS);
		for (int j = 0; j < 3; j++)
			live(world, 5 * HOUR);
		assert_int_equal(world->told, (1 + cases[i].again) * TESTS);
		assert_int_equal(world->changes, TESTS);
		if (cases[i].again) {
			say(world, cases[i].said, -1, TESTS);
			live(world, 5 * HOUR);
			reopened(world, TESTS);
			assert_int_equal(world->told, 2 * TESTS);
		}
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_expiry_that_was_missed),
		cmocka_unit_test(test_what_nobody_was_told_is_told_then),
		cmocka_unit_test(test_growth),
	};

	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
