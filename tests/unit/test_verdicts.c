/* What several agents' views of a source amount to. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/monitor/condition.h"

enum { NOW = 1000000 };

struct fixture {
	struct conditions *conditions;
	struct source_view views[8];
	size_t count;
	char said[512]; /* since it was last asked */
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	f->conditions = conditions_new(true);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	conditions_free(f->conditions);
	free(f);
	return 0;
}

static void turn(void *context, const struct condition *condition)
{
	struct fixture *f = context;
	size_t at = strlen(f->said);

	snprintf(f->said + at, sizeof f->said - at, "%s%s since %lld; ",
		condition->over ? "over: " : "", condition->subject, (long long)condition->since);
	assert_true(*condition->text);
}

static const char *judge(struct fixture *f, bool settled)
{
	*f->said = '\0';
	conditions_judge(f->conditions, f->views, f->count, NOW, settled, turn, f);
	return f->said;
}

/* By letter, an agent each: u up, d down (since its place), - unknown. */
static void see(struct fixture *f, const char *agents)
{
	f->count = strlen(agents);
	for (size_t i = 0; i < f->count; i++)
		f->views[i] = (struct source_view){.source = "prod",
			.verdict = agents[i] == 'u'   ? VIEW_UP
				   : agents[i] == 'd' ? VIEW_DOWN
						      : VIEW_NONE,
			.since = (int64_t)i + 1,
			.text = agents[i] == 'd' ? "it does not answer" : ""};
}

static const char *judged(struct fixture *f, const char *agents)
{
	see(f, agents);
	return judge(f, false);
}

static void test_more_than_half(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(judged(f, ""), "");
	assert_string_equal(judged(f, "uuu"), "");
	assert_string_equal(judged(f, "dud-u-"), "");
	assert_string_equal(judged(f, "ud"), ""); /* half */
	assert_string_equal(judged(f, "udd-"), "source prod since 2; ");
	assert_string_equal(judged(f, "ddd"), "");
	assert_string_equal(judged(f, "ud"), ""); /* half */
	assert_string_equal(judged(f, "----"), "");
	assert_string_equal(judged(f, ""), "");
	assert_string_equal(judged(f, "uud"), "over: source prod since 2; ");
	assert_string_equal(judged(f, "-d"), "source prod since 2; ");
}

/* The leader has changed: nothing is reported again. */
static void test_restored(void **state)
{
	struct fixture *f = *state;

	conditions_restore(f->conditions,
		&(struct condition){
			.subject = "source prod", .kind = CONDITION_SOURCE, .since = 77});
	conditions_restore(f->conditions,
		&(struct condition){.subject = "test a", .kind = CONDITION_TEST, .since = 5});
	assert_string_equal(judged(f, "dd"), "");
	assert_string_equal(judged(f, "uu"), "over: source prod since 77; ");
	conditions_clear_reports(f->conditions);
	assert_string_equal(judged(f, "uu"), "");
}

static void test_many_are_told_once(void **state)
{
	struct fixture *f = *state;

	see(f, "uuu");
	for (size_t i = 0; i < 3; i++)
		f->views[i].told[VIEW_FAILS] = 2;
	assert_string_equal(judge(f, true), "");
	f->views[1].many[VIEW_FAILS] = 4;
	assert_string_equal(judge(f, false), "tests of prod since 1000000; ");
	f->views[2].many[VIEW_FAILS] = 1;
	assert_string_equal(judge(f, true), "");
	f->views[1].many[VIEW_FAILS] = f->views[2].many[VIEW_FAILS] = 0;
	assert_string_equal(judge(f, true), ""); /* six are told one by one */
	assert_true(conditions_wait(f->conditions));
	f->views[0].told[VIEW_FAILS] = 0;
	f->views[2].awaited = true;
	assert_string_equal(judge(f, true), "");
	f->views[2].awaited = false;
	assert_string_equal(judge(f, false), ""); /* an agent may have gone with its tests */
	assert_string_equal(judge(f, true), "over: tests of prod since 1000000; ");
	assert_false(conditions_wait(f->conditions));
	f->views[2].many[VIEW_STALE] = 1;
	assert_string_equal(judge(f, false), "data of prod since 1000000; ");
	f->count = 0; /* nobody runs any */
	assert_string_equal(judge(f, true), "");
}

static bool is_kept(void *context, bool test, const char *source)
{
	(void)context, (void)test;
	return strcmp(source, "prod") != 0;
}

static void test_not_used_any_more(void **state)
{
	struct fixture *f = *state;

	assert_string_equal(judged(f, "d"), "source prod since 1; ");
	*f->said = '\0';
	conditions_retain(f->conditions, is_kept, turn, f);
	assert_string_equal(f->said, "over: source prod since 1; ");
	*f->said = '\0';
	conditions_retain(f->conditions, is_kept, turn, f);
	assert_string_equal(f->said, "");
}

#define JUDGED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JUDGED(test_more_than_half),
		JUDGED(test_restored),
		JUDGED(test_many_are_told_once),
		JUDGED(test_not_used_any_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
