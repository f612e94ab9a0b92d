/*
 * Conditions: examples of each rule, and properties over thousands of random histories.
 */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/monitor/condition.h"
#include "tests/unit/random.h"

enum { MINUTE = 60000, TOLD_MAX = 64, SUBJECT_MAX = 64 };
#define START INT64_C(1700000000000)

/* A history: the machine, its clocks, and what is told and not over. */
struct history {
	struct conditions *conditions;
	int64_t clock, shift; /* shift: of the wall clock */
	struct condition turns[CONDITION_TURNS];
	size_t count;
	int64_t stale_after, usual, interval, since, lasts; /* lasts: a run */
	size_t share;
	struct {
		char subject[SUBJECT_MAX];
		enum condition_kind kind;
		int64_t since;
	} told[TOLD_MAX];
	size_t told_count, begun, ended;
};

static int setup(void **state)
{
	struct history *history = calloc(1, sizeof *history);

	history->conditions = conditions_new(false);
	history->stale_after = WHEN_NEVER;
	*state = history;
	return 0;
}

static int teardown(void **state)
{
	struct history *history = *state;

	conditions_free(history->conditions);
	free(history);
	return 0;
}

static bool is_up(const struct history *history)
{
	return conditions_down_since(history->conditions, "prometheus") == 0;
}

static size_t find_told(const struct history *history, const char *subject)
{
	size_t at = 0;

	while (at < history->told_count && strcmp(history->told[at].subject, subject) != 0)
		at++;
	return at;
}

/* Begun only if it was not; over only if it had begun. */
static void keep_turn(struct history *history, const struct condition *turn)
{
	size_t at = find_told(history, turn->subject);

	assert_true(strlen(turn->text) > 0 && !strchr(turn->text, '\n'));
	if (turn->over) {
		assert_true(at < history->told_count);
		history->told[at] = history->told[--history->told_count];
		history->ended++;
		return;
	}
	assert_int_equal(at, history->told_count);
	assert_true(at < TOLD_MAX);
	strcpy(history->told[at].subject, turn->subject);
	history->told[at].kind = turn->kind;
	history->told[at].since = turn->since;
	history->told_count++;
	history->begun++;
}

static void note_more(struct history *history, const char *test, const char *source,
	const char *problem, bool answered, int64_t newest);

static void note(struct history *history, const char *test, const char *source, const char *problem,
	int64_t newest)
{
	note_more(history, test, source, problem, false, newest);
}

static void note_more(struct history *history, const char *test, const char *source,
	const char *problem, bool answered, int64_t newest)
{
	struct outcome outcome = {.test = test,
		.source = source,
		.problem = problem,
		.answered = answered,
		.newest = newest,
		.stale_after = history->stale_after,
		.since = history->since,
		.usual = history->usual,
		.interval = history->interval,
		.now = START + history->clock + history->shift,
		.begun = history->clock - history->lasts,
		.clock = history->clock,
		.share = history->share};

	history->count = conditions_note(history->conditions, &outcome, history->turns);
	assert_in_range(history->count, 0, CONDITION_TURNS);
	for (size_t i = 0; i < history->count; i++)
		keep_turn(history, &history->turns[i]);
}

static void fails(struct history *history, const char *test, const char *source)
{
	note(history, test, source, "connection refused", WHEN_ALWAYS);
}

static void works(struct history *history, const char *test, const char *source)
{
	note(history, test, source, NULL, START + history->clock);
}

static void expect(const struct history *history, size_t turn, const char *subject, bool over)
{
	assert_true(turn < history->count);
	assert_string_equal(history->turns[turn].subject, subject);
	assert_int_equal(history->turns[turn].over, over);
}

/* What a restart keeps: that which was told. */
static void restart(struct history *history)
{
	conditions_free(history->conditions);
	history->conditions = conditions_new(false);
	for (size_t i = 0; i < history->told_count; i++)
		conditions_restore(history->conditions,
			&(struct condition){.subject = history->told[i].subject,
				.kind = history->told[i].kind,
				.since = history->told[i].since,
				.text = ""});
	history->clock += 1; /* another process' clock may stand anywhere */
}

static void test_a_source_goes_down_and_comes_back(void **state)
{
	struct history *history = *state;

	works(history, "a", "prometheus");
	for (int i = 0; i < 100; i++, history->clock += MINUTE) {
		fails(history, "a", "prometheus");
		assert_int_equal(history->count, i == 2);
		assert_int_equal(is_up(history), i < 2);
		if (i == 2)
			assert_string_equal(history->turns[0].text,
				"source prometheus is down: no run has succeeded since 2023-11-14 "
				"22:13:20 +0000; test \"a\": connection refused");
	}
	works(history, "a", "prometheus");
	assert_int_equal(history->count, 1);
	expect(history, 0, "source prometheus", true);
	assert_string_equal(history->turns[0].text, "source prometheus is up again, after 1h40m");
	assert_true(is_up(history));
}

/* A server that is started anew while a thousand tests ask it is no outage. */
static void test_a_blink_is_no_outage(void **state)
{
	struct history *history = *state;
	char name[16];

	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 1000; i++) {
			snprintf(name, sizeof name, "t%d", i);
			fails(history, name, "graphite");
			history->clock++;
		}
		for (int i = 0; i < 1000; i++) {
			snprintf(name, sizeof name, "t%d", i);
			works(history, name, "graphite");
			history->clock++;
		}
	}
	assert_int_equal(history->begun, 0);
	for (int i = 0; i < 400; i++, history->clock += 1000) {
		snprintf(name, sizeof name, "t%d", i);
		fails(history, name, "graphite");
		assert_int_equal(history->count, i == 300); /* five minutes */
	}
}

static void test_a_test_fails_alone(void **state)
{
	struct history *history = *state;

	for (int i = 0; i < 10; i++, history->clock += MINUTE) {
		fails(history, "a", "prometheus");
		assert_int_equal(history->count, i == 2);
		if (i == 2)
			expect(history, 0, "test a", false);
		works(history, "b", "prometheus");
		assert_int_equal(history->count, 0);
	}
	/* The source goes down as well: the test says nothing about it. */
	for (int i = 0; i < 5; i++, history->clock += MINUTE) {
		fails(history, "a", "prometheus");
		assert_int_equal(history->count, 0);
	}
	for (int i = 0; i < 5; i++, history->clock += MINUTE) {
		fails(history, "b", "prometheus");
		assert_int_equal(history->count, i == 2);
	}
	works(history, "a", "prometheus");
	assert_int_equal(history->count, 2);
	expect(history, 0, "source prometheus", true);
	expect(history, 1, "test a", true);
	assert_int_equal(history->told_count, 0);
}

/* A broken test that runs often does not tell the same again each time a slow one goes well. */
static void test_a_broken_test_and_a_slow_one(void **state)
{
	struct history *history = *state;

	for (int hour = 0; hour < 48; hour++) {
		for (int i = 0; i < 60; i++, history->clock += MINUTE)
			fails(history, "a", "prometheus");
		works(history, "b", "prometheus");
	}
	assert_int_equal(history->begun, 2); /* the source, wrongly; then the test */
	assert_int_equal(history->told_count, 1);
	assert_string_equal(history->told[0].subject, "test a");
}

static void test_failures_of_an_outage_are_the_sources(void **state)
{
	struct history *history = *state;

	for (int i = 0; i < 20; i++, history->clock += MINUTE) {
		fails(history, "a", "prometheus");
		fails(history, "b", "prometheus");
	}
	assert_int_equal(history->begun, 1);
	works(history, "b", "prometheus");
	fails(history, "a", "prometheus");
	fails(history, "a", "prometheus");
	assert_int_equal(history->begun, 1);
	fails(history, "a", "prometheus");
	assert_int_equal(history->begun, 2);
	expect(history, 0, "test a", false);
}

/* A test whose source answers, but not with what it should: it fails alone, though there is no
 * other test, and its source is well. */
static void test_an_answer_that_is_a_problem(void **state)
{
	struct history *history = *state;

	history->stale_after = (int64_t)60 * MINUTE;
	for (int i = 0; i < 100; i++, history->clock += MINUTE) {
		note_more(history, "a", "prometheus", "no series", true, WHEN_ALWAYS);
		assert_int_equal(history->count, i == 2);
		assert_true(is_up(history));
		if (i == 2)
			expect(history, 0, "test a", false);
	}
	works(history, "a", "prometheus");
	expect(history, 0, "test a", true);

	/* It ends an outage, whose failures it is not held to. */
	for (int i = 0; i < 3; i++, history->clock += MINUTE)
		fails(history, "a", "prometheus");
	expect(history, 0, "source prometheus", false);
	for (int i = 0; i < 3; i++, history->clock += MINUTE) {
		note_more(history, "a", "prometheus", "no series", true, WHEN_ALWAYS);
		assert_int_equal(history->count, i != 1);
		if (i != 1)
			expect(history, 0, i == 2 ? "test a" : "source prometheus", i == 0);
	}

	/* One of its queries is well: its data may stop all the same. */
	note_more(history, "a", "prometheus", "no series", true, START + history->clock);
	history->clock += (int64_t)61 * MINUTE;
	note_more(history, "a", "prometheus", "no series", true, START);
	expect(history, 0, "data a", false);
}

static void test_stale_data(void **state)
{
	struct history *history = *state;

	history->stale_after = (int64_t)60 * MINUTE;
	for (int i = 0; i <= 120; i++, history->clock += MINUTE) {
		note(history, "a", "csv", NULL, START);
		assert_int_equal(history->count, i == 61);
		assert_int_equal(conditions_stale(history->conditions), i >= 61);
	}
	fails(history, "a", "csv"); /* says nothing about it */
	assert_int_equal(history->count, 0);
	works(history, "a", "csv");
	assert_int_equal(history->count, 1);
	expect(history, 0, "data a", true);
	assert_string_equal(history->turns[0].text, "test \"a\" has new data again, after 2h1m");

	/* At the first look the point's age counts. */
	note(history, "b", "csv", NULL, START);
	expect(history, 0, "data b", false);
	assert_string_equal(history->turns[0].text,
		"test \"b\" has had no new data for more than 1h: its last point is from "
		"2023-11-14 22:13:20 +0000");
	note(history, "b", "csv", NULL, START - 1); /* its newest point is gone */
	assert_int_equal(history->count, 0);
	history->stale_after = WHEN_NEVER;
	note(history, "b", "csv", NULL, START);
	expect(history, 0, "data b", true);
}

/* An answer that was on its way when the first request failed does not say that the source has
 * answered since: neither that the test alone fails, nor that the source is up. */
static void test_an_answer_from_before(void **state)
{
	struct history *history = *state;

	works(history, "a", "prometheus");
	history->clock += MINUTE;
	fails(history, "b", "prometheus");
	history->clock += 100;
	history->lasts = 200;
	works(history, "a", "prometheus");
	history->lasts = 0;
	for (int i = 0; i < 2; i++) {
		history->clock += MINUTE;
		fails(history, "b", "prometheus");
	}
	expect(history, 0, "source prometheus", false);
	history->lasts = 3 * (int64_t)MINUTE;
	works(history, "a", "prometheus");
	assert_int_equal(history->count, 0);
	assert_false(is_up(history));
	history->lasts = 0;
	works(history, "a", "prometheus");
	expect(history, 0, "source prometheus", true);
	assert_int_equal(history->begun, 1);
}

/* A run that has asked nothing says nothing of its source, but time goes by. */
static void test_nothing_was_asked(void **state)
{
	struct history *history = *state;
	struct outcome outcome = {.test = "a",
		.source = "prometheus",
		.unasked = true,
		.newest = START,
		.stale_after = (int64_t)30 * MINUTE};

	for (int i = 0; i < 3; i++, history->clock += MINUTE)
		fails(history, "b", "prometheus");
	expect(history, 0, "source prometheus", false);
	for (int i = 0; i < 60; i++, history->clock += MINUTE) {
		outcome.now = START + history->clock;
		outcome.clock = history->clock;
		history->count = conditions_note(history->conditions, &outcome, history->turns);
		assert_int_equal(history->count, i == 28);
		assert_false(is_up(history));
	}
	assert_int_equal(conditions_stale(history->conditions), 1);
}

/* Without a limit of its own a test has the one that its data have set when they came last. */
static void test_stale_by_rhythm(void **state)
{
	struct history *history = *state;

	history->stale_after = 0;
	note(history, "few", "csv", NULL, START - 900 * (int64_t)MINUTE); /* nobody knows */
	history->usual = (int64_t)30 * MINUTE;
	for (int i = 0; i <= 60; i++, history->clock += MINUTE) {
		note(history, "a", "csv", NULL, START);
		assert_int_equal(history->count, i == 31);
		history->usual = (int64_t)(i + 31) * MINUTE; /* no point has come with it */
	}
	assert_int_equal(conditions_stale(history->conditions), 1);
	restart(history);
	history->usual = 0; /* the points have left the range */
	note(history, "a", "csv", NULL, WHEN_ALWAYS);
	note(history, "a", "csv", NULL, START);
	assert_int_equal(history->count, 0);
	works(history, "a", "csv");
	expect(history, 0, "data a", true);
	assert_int_equal(history->told_count, 0);
}

/* What is stale when somebody looks for the first time, in whatever process, is not told. */
static void test_stale_before_anybody_looked(void **state)
{
	struct history *history = *state;

	history->stale_after = 0;
	history->usual = (int64_t)30 * MINUTE;
	history->since = START;
	for (int i = 0; i < 3; i++, history->clock += (int64_t)600 * MINUTE) {
		restart(history);
		note(history, "old", "csv", NULL, START - 31 * (int64_t)MINUTE);
		assert_int_equal(history->count, 0);
		assert_int_equal(conditions_stale(history->conditions), 1);
	}
	note(history, "young", "csv", NULL, START - 29 * (int64_t)MINUTE);
	expect(history, 0, "data young", false);
	works(history, "old", "csv");
	assert_int_equal(history->count, 0);
	assert_int_equal(conditions_stale(history->conditions), 1);
	history->clock += (int64_t)31 * MINUTE;
	note(history, "old", "csv", NULL, START);
	expect(history, 0, "data old", false);

	history->stale_after = MINUTE; /* who asks for it is told */
	note(history, "asked", "csv", NULL, START - 31 * (int64_t)MINUTE);
	expect(history, 0, "data asked", false);
}

/* A wall clock that jumps makes nothing stale, and nothing fresh. */
static void test_the_wall_clock_jumps(void **state)
{
	static const int64_t jumps[] = {0, 60, -60, 24 * 60, -24 * 60};
	struct history *history = *state;

	history->stale_after = (int64_t)10 * MINUTE;
	for (int i = 0; i < 400; i++, history->clock += MINUTE) {
		history->shift = jumps[i % 5] * MINUTE;
		works(history, "a", "prometheus");
		note(history, "b", "prometheus", NULL, START + i / 8 * MINUTE);
	}
	assert_int_equal(history->begun, 0);
}

static void test_many_tests(void **state)
{
	struct history *history = *state;
	char name[16];

	history->stale_after = (int64_t)10 * MINUTE;
	for (int round = 0; round < 40; round++, history->clock += MINUTE) {
		works(history, "fine", "prometheus");
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof name, "t%d", i);
			if (i % 2)
				fails(history, name, "prometheus");
			else
				note(history, name, "prometheus", NULL, START);
		}
	}
	assert_int_equal(history->begun, 5 + 1 + 5 + 1);
	assert_int_equal(conditions_stale(history->conditions), 50);
	restart(history);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "t%d", i);
		conditions_expect(history->conditions, name, "prometheus");
	}
	for (int round = 0; round < 5; round++, history->clock += MINUTE)
		for (int i = 0; i < 100; i++) {
			snprintf(name, sizeof name, "t%d", i);
			if (i % 2)
				fails(history, name, "prometheus");
			else
				note(history, name, "prometheus", NULL, START);
		}
	assert_int_equal(history->begun, 12);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "t%d", i);
		works(history, name, "prometheus");
	}
	assert_int_equal(history->told_count, 0);
	assert_int_equal(history->ended, 12);
}

/* Fifty tests fail, of which five were told; those five recover after a restart. */
static void test_many_tests_after_a_restart(void **state)
{
	struct history *history = *state;
	char name[16];

	for (int round = 0; round < 5; round++, history->clock += MINUTE) {
		works(history, "fine", "prometheus");
		for (int i = 0; i < 50; i++) {
			snprintf(name, sizeof name, "t%d", i);
			fails(history, name, "prometheus");
		}
	}
	assert_int_equal(history->told_count, 6);
	restart(history);
	conditions_expect(history->conditions, "fine", "prometheus");
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof name, "t%d", i);
		conditions_expect(history->conditions, name, "prometheus");
	}
	works(history, "fine", "prometheus");
	for (int round = 0; round < 5; round++, history->clock += MINUTE)
		for (int i = 0; i < 50; i++) {
			snprintf(name, sizeof name, "t%d", i);
			if (i < 5)
				works(history, name, "prometheus");
			else
				fails(history, name, "prometheus");
			assert_true(
				find_told(history, "tests of prometheus") < history->told_count);
		}
	for (int i = 5; i < 50; i++) {
		snprintf(name, sizeof name, "t%d", i);
		works(history, name, "prometheus");
	}
	assert_int_equal(history->told_count, 0);
}

/* Somebody runs a test again and again between its runs: that is one failure. */
static void test_runs_out_of_schedule(void **state)
{
	struct history *history = *state;

	history->interval = 10 * MINUTE;
	works(history, "a", "prometheus");
	for (int i = 0; i < 20; i++, history->clock += 50)
		fails(history, "a", "prometheus");
	assert_int_equal(history->begun, 0);
	history->clock += 10 * MINUTE - 2000;
	fails(history, "a", "prometheus");
	assert_int_equal(history->begun, 0);
	history->clock += 10 * MINUTE;
	fails(history, "a", "prometheus");
	assert_int_equal(history->begun, 1);
	expect(history, 0, "source prometheus", false);
}

static void test_problems_are_cut(void **state)
{
	struct history *history = *state;
	char *problem = malloc(100000);

	memset(problem, 'x', 99999);
	for (size_t at = 1; at + 2 < 100000; at += 2)
		memcpy(problem + at, "\xC3\xA4",
			2); /* behind a single byte, so that 300 ends in one */
	problem[99999] = '\0';
	for (int i = 0; i < 3; i++)
		note(history, "a", "prometheus", problem, WHEN_ALWAYS);
	assert_int_equal(history->count, 1);
	const char *text = history->turns[0].text;
	assert_true(strlen(text) < 500);
	assert_string_equal(text + strlen(text) - 2, "\xC3\xA4");
	free(problem);
}

static bool keep_b(void *context, bool test, const char *name)
{
	(void)context;
	return test ? strcmp(name, "b") == 0 : strcmp(name, "two") == 0;
}

static void lose(void *context, const struct condition *condition)
{
	struct history *history = context;
	size_t at = find_told(history, condition->subject);

	assert_true(at < history->told_count);
	history->told[at] = history->told[--history->told_count];
}

static void test_what_is_no_longer_configured(void **state)
{
	struct history *history = *state;

	for (int i = 0; i < 4; i++, history->clock += MINUTE) {
		fails(history, "a", "one");
		works(history, "c", "two");
		fails(history, "b", "two");
	}
	history->stale_after = 1;
	works(history, "c", "two");
	history->clock += 2;
	note(history, "c", "two", NULL, START);
	assert_int_equal(history->told_count, 3); /* source one, test b, data c */
	conditions_retain(history->conditions, keep_b, lose, history);
	assert_int_equal(history->told_count, 1);
	assert_string_equal(history->told[0].subject, "test b");
	for (int i = 0; i < 5; i++) {
		fails(history, "b", "two");
		assert_int_equal(history->count, 0);
	}
	works(history, "b", "two");
	assert_int_equal(history->told_count, 0);
}

/* Random histories. */

enum { SOURCES = 3, TESTS = 24, STEPS = 3000, ROUNDS = 200 };

/* The truth of a random history, from which runs get their ends. */
struct world {
	struct history *history;
	uint64_t random;
	bool down[SOURCES], broken[TESTS], halted[TESTS];
	int64_t newest[TESTS];
	size_t failures[SOURCES]; /* without a success between */
};

static void check_turns(struct world *world, size_t source, bool failed)
{
	const struct history *history = world->history;
	char name[SUBJECT_MAX];

	for (size_t i = 0; i < history->count; i++) {
		const struct condition *turn = &history->turns[i];

		if (turn->kind == CONDITION_SOURCE) {
			assert_true(failed != turn->over);
			assert_true(turn->over || world->failures[source] >= 3);
		}
		if (turn->kind == CONDITION_TEST)
			assert_true(failed != turn->over);
		if (turn->kind == CONDITION_STALE)
			assert_false(failed);
	}
	snprintf(name, sizeof name, "source s%zu", source);
	/* After a success nobody believes that the source is down. */
	assert_true(failed || find_told(history, name) == history->told_count);
	/* Tests of a source that is known to be down are not told. */
	assert_true(!failed || find_told(history, name) == history->told_count ||
		    history->count == 0 || history->turns[0].kind == CONDITION_SOURCE);
}

static void step(struct world *world)
{
	struct history *history = world->history;
	size_t test = random_below(&world->random, TESTS), source = test % SOURCES;
	bool failed = world->down[source] || world->broken[test];
	char test_name[16], source_name[16];

	snprintf(test_name, sizeof test_name, "t%zu", test);
	snprintf(source_name, sizeof source_name, "s%zu", source);
	if (!world->halted[test])
		world->newest[test] = START + history->clock;
	world->failures[source] = failed ? world->failures[source] + 1 : 0;
	if (failed)
		fails(history, test_name, source_name);
	else
		note(history, test_name, source_name, NULL, world->newest[test]);
	check_turns(world, source, failed);
}

static void disturb(struct world *world)
{
	size_t what = random_below(&world->random, 100);

	world->history->clock += (int64_t)random_below(&world->random, 2 * MINUTE);
	if (what < 2)
		world->down[random_below(&world->random, SOURCES)] ^= true;
	else if (what < 4)
		world->broken[random_below(&world->random, TESTS)] ^= true;
	else if (what < 6)
		world->halted[random_below(&world->random, TESTS)] ^= true;
	else if (what < 7)
		world->history->shift = (int64_t)random_below(&world->random, 48 * 60) * MINUTE;
	else if (what < 8)
		restart(world->history);
}

/* Everything is well for a while: nothing may stay told. */
static void mend(struct world *world)
{
	memset(world->down, 0, sizeof world->down);
	memset(world->broken, 0, sizeof world->broken);
	memset(world->halted, 0, sizeof world->halted);
	for (int i = 0; i < 100 * TESTS; i++, world->history->clock += 100)
		step(world);
	assert_int_equal(world->history->told_count, 0);
	assert_int_equal(world->history->begun, world->history->ended);
}

static bool keep_named(void *context, bool test, const char *name)
{
	return !test || strcmp(name, context) == 0;
}

static void lose_none(void *context, const struct condition *condition)
{
	(void)context;
	fail_msg("%s", condition->subject);
}

/* A name is free again once no test has it: of the test itself, or of one that was removed. */
static void test_a_test_with_its_former_name(void **state)
{
	static const char *const names[] = {"a", "b", "a", "c"};
	struct history *history = *state;

	works(history, "c", "one");
	for (int i = 0; i < 3; i++, history->clock += MINUTE)
		note_more(history, "a", "one", "no such metric", true, WHEN_ALWAYS);
	expect(history, 0, "test a", false);
	for (size_t i = 1; i < sizeof names / sizeof *names; i++) {
		conditions_rename(history->conditions, names[i - 1], names[i]);
		conditions_retain(
			history->conditions, keep_named, lose_none, (void *)(uintptr_t)names[i]);
	}
	strcpy(history->told[0].subject, "test c");
	note_more(history, "c", "one", "no such metric", true, WHEN_ALWAYS);
	assert_int_equal(history->count, 0);
	works(history, "c", "one");
	expect(history, 0, "test c", true);
}

static void test_a_test_with_another_name(void **state)
{
	struct history *history = *state;

	history->stale_after = MINUTE;
	works(history, "b", "one");
	history->clock += 2 * MINUTE;
	note(history, "a", "one", NULL, START);
	assert_int_equal(history->told_count, 1);
	conditions_rename(history->conditions, "a", "b"); /* is another's */
	conditions_rename(history->conditions, "nobody", "c");
	conditions_rename(history->conditions, "a", "c");
	assert_int_equal(conditions_stale(history->conditions), 1);
	history->told[0].subject[5] = 'c';
	note(history, "c", "one", NULL, START);
	assert_int_equal(history->count, 0);
	works(history, "c", "one");
	expect(history, 0, "data c", true);
	assert_int_equal(conditions_stale(history->conditions), 0);
}

static void test_random_histories(void **state)
{
	struct history *history = *state;

	for (uint64_t round = 1; round <= ROUNDS; round++) {
		struct world world = {.history = history, .random = round * 7919};

		history->stale_after = (int64_t)30 * MINUTE;
		for (int i = 0; i < STEPS; i++) {
			disturb(&world);
			step(&world);
		}
		history->shift = 0;
		mend(&world);
	}
	assert_true(history->begun > 1000);
}

/* However long the trouble lasts, and however it flickers within, it is told a bounded number of
 * times. */
static void test_no_storm(void **state)
{
	struct history *history = *state;
	uint64_t random = 4711;
	char name[16];

	for (int i = 0; i < 200000; i++, history->clock += 500) {
		snprintf(name, sizeof name, "t%zu", random_below(&random, 500));
		fails(history, name, "prometheus");
		if (i % 1000 == 0)
			restart(history);
	}
	assert_int_equal(history->begun, 1);
}

/* Twenty tests fail alone, run after run; returns how many are told in this one. */
static size_t fail_together(struct history *history)
{
	size_t told = 0;
	char name[16];

	works(history, "fine", "prometheus");
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "t%d", i);
		fails(history, name, "prometheus");
		for (size_t j = 0; j < history->count; j++)
			told += history->turns[j].kind == CONDITION_TEST;
	}
	history->clock += MINUTE;
	return told;
}

/* Another agent has told so many, and this one may tell two. */
static void others_told(struct history *history, int64_t failing, int64_t stale)
{
	const struct source_view views[] = {{.source = "prometheus", .own = true, .told = {5, 5}},
		{.source = "graphite", .told = {5, 5}},
		{.source = "prometheus", .told = {failing, stale}}};

	conditions_others(history->conditions, views, 3);
	history->share = 2;
}

/* The agent's view of the only source; nothing if it runs no test of it. */
static struct source_view own_view(const struct history *history)
{
	struct store_views *call = store_views_new(NULL, NULL);
	struct source_view view = {0};
	uint64_t hash = conditions_views(history->conditions, call);

	assert_true(hash == conditions_views(history->conditions, NULL));
	for (size_t i = 0; i < call->write_count; i++)
		if (strcmp(call->write[i].source, "prometheus") == 0)
			view = call->write[i];
	view.source = view.text = NULL;
	store_call_free(&call->call);
	return view;
}

/* Of an agent of a fleet: its share at once, the rest when it knows what the others have told. */
static void test_a_share_of_what_is_told(void **state)
{
	struct history *history = *state;
	struct source_view view;

	others_told(history, 0, 0);
	assert_int_equal(fail_together(history), 0);
	assert_int_equal(fail_together(history), 0);
	assert_int_equal(fail_together(history), 2);
	assert_int_equal(fail_together(history), 0);
	view = own_view(history);
	assert_int_equal(view.told[VIEW_FAILS], 2);
	assert_int_equal(view.many[VIEW_FAILS], 0);
	others_told(history, 2, 7);
	assert_int_equal(fail_together(history), 1); /* 2 + 3 are five */
	view = own_view(history);
	assert_int_equal(view.told[VIEW_FAILS], 3);
	assert_int_equal(view.many[VIEW_FAILS], 17);
	others_told(history, 4, 0);
	assert_int_equal(fail_together(history), 0);
}

static void assert_view(const struct history *history, enum view_verdict verdict, bool awaited)
{
	struct source_view view = own_view(history);

	assert_int_equal(view.verdict, verdict);
	assert_int_equal(view.awaited, awaited);
	assert_int_equal(view.since != 0, verdict == VIEW_DOWN);
}

static void test_a_view_of_a_source(void **state)
{
	struct history *history = *state;

	assert_view(history, VIEW_NONE, false);
	conditions_expect(history->conditions, "a", "prometheus");
	assert_view(history, VIEW_NONE, true);
	for (int i = 0; i < 4; i++, history->clock += MINUTE) {
		assert_view(history, i < 3 ? VIEW_NONE : VIEW_DOWN, true);
		fails(history, "a", "prometheus");
	}
	works(history, "a", "prometheus");
	assert_view(history, VIEW_UP, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_source_goes_down_and_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_blink_is_no_outage, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_test_fails_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_broken_test_and_a_slow_one, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_failures_of_an_outage_are_the_sources, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_answer_that_is_a_problem, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale_data, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_was_asked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_answer_from_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale_by_rhythm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale_before_anybody_looked, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_wall_clock_jumps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_tests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_tests_after_a_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_runs_out_of_schedule, setup, teardown),
		cmocka_unit_test_setup_teardown(test_problems_are_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_longer_configured, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_test_with_another_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_test_with_its_former_name, setup, teardown),
		cmocka_unit_test_setup_teardown(test_random_histories, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_storm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_share_of_what_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_view_of_a_source, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
