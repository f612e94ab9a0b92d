/*
 * agent/monitor/watch: tests are run at once, come, change and go while passes run.
 */
#include "unit.h"

#include "agent/fleet/tests.h"
#include "tests/unit/agent_parts.h"
#include "tests/unit/scripted_fleet.h"
#include "tests/unit/state_count.h"

#define AGENT "agent: {state: \"%s/state.db\", interval: 1h}\ntests:\n"
#define TEST(name, file) "  " name ": {type: csv, file: \"%s/" file "\", time_column: time}\n"

struct fixture {
	struct parts *parts;
	size_t answered, expected;
	struct run_report last; /* without its texts */
	char problem[512];
};

static void write_points(const struct fixture *f, const char *name, int points)
{
	struct buf text = {0};

	buf_text(&text, "time,m\n");
	for (int i = 0; i < points; i++)
		buf_printf(&text, "%d,%d\n", 1700000000 + 3600 * i, 100 + i % 3);
	parts_write(f->parts, name, text.data);
	buf_free(&text);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct store_restore *restored = store_restore_new(NULL, NULL);

	f->parts = parts_new(AGENT TEST("a", "a.csv") TEST("b", "none.csv"));
	write_points(f, "a.csv", 60);
	write_points(f, "c.csv", 40);
	scheduler_start(f->parts->scheduler, restored);
	store_call_free(&restored->call);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	parts_free(f->parts);
	free(f);
	return 0;
}

static void done(void *context, const struct run_report *report)
{
	struct fixture *f = context;

	f->last = *report;
	snprintf(f->problem, sizeof f->problem, "%s", report->problem ? report->problem : "");
	if (++f->answered == f->expected)
		engine_stop(f->parts->agent.engine);
}

static void ask(struct fixture *f, const char *test)
{
	f->expected++;
	assert_true(scheduler_run_now(f->parts->scheduler, test, done, f));
}

/* A turn may end early, by the alarm of a look at marks that an answer cut short. */
static void wait_for_answers(struct fixture *f)
{
	struct engine *engine = f->parts->agent.engine;
	int64_t end = engine_now(engine) + 60000;

	do
		assert_true(engine_run(engine));
	while (f->answered < f->expected && engine_now(engine) < end);
	assert_int_equal(f->answered, f->expected);
}

static void adopt(struct fixture *f, const char *yaml)
{
	struct parts *parts = f->parts;
	struct problems problems = {.arena = parts->arena};
	struct config_ref *before = parts->agent.config_ref;
	struct error error;

	parts_configure(parts, yaml);
	struct config *config = config_load(parts->path, &parts->source, &problems);
	assert_non_null(config);
	parts->agent.config_ref = config_ref_of(config, &parts->names, &error);
	assert_non_null(parts->agent.config_ref);
	parts->agent.config = config;
	agent_hint(&parts->agent, HINT_CONFIGURATION);
	config_ref_release(before);
}

struct seen {
	char names[64];
	struct scheduler_test last;
};

static void see(void *context, const struct scheduler_test *state)
{
	struct seen *seen = context;

	strcat(seen->names, state->test->name);
	seen->last = *state;
}

static void test_run_now(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {.names = ""};

	assert_false(scheduler_run_now(f->parts->scheduler, "nothing", done, f));
	ask(f, "a");
	wait_for_answers(f);
	assert_false(f->last.failed);
	assert_int_equal(f->last.points, 60);
	assert_int_equal(f->last.series, 1);
	ask(f, "b");
	wait_for_answers(f);
	assert_true(f->last.failed);
	assert_non_null(strstr(f->problem, "none.csv"));

	scheduler_each(f->parts->scheduler, see, &seen);
	assert_string_equal(seen.names, "ab");
	assert_true(seen.last.failing);
	assert_non_null(strstr(seen.last.problem, "none.csv"));
	assert_true(seen.last.last_run > 0);
	assert_in_range(seen.last.next_due - seen.last.last_run, 0, 3600000);
}

/* What is asked while a pass runs is answered by the next one, once for all. */
static void test_once_more(void **state)
{
	struct fixture *f = *state;

	ask(f, "a");
	ask(f, "a");
	ask(f, "a");
	write_points(f, "a.csv", 90);
	wait_for_answers(f);
	assert_int_equal(f->last.points, 90);
}

static void done_and_again(void *context, const struct run_report *report)
{
	struct fixture *f = context;

	if (f->answered + 1 < f->expected)
		assert_true(scheduler_run_now(f->parts->scheduler, "a", done_and_again, f));
	done(f, report);
}

/* Who gets the report of a run may ask for the next one. */
static void test_again_when_answered(void **state)
{
	struct fixture *f = *state;

	f->expected = 3;
	assert_true(scheduler_run_now(f->parts->scheduler, "a", done_and_again, f));
	wait_for_answers(f);
	assert_false(f->last.failed);
	assert_int_equal(f->last.points, 60);
}

static void see_running(void *context, const struct scheduler_test *state)
{
	*(size_t *)context += state->running;
}

/* Who asks for many gets them in turns. */
static void test_many_at_once(void **state)
{
	struct fixture *f = *state;
	struct buf yaml = {0};
	char name[16];
	size_t running = 0;

	buf_text(&yaml, AGENT);
	for (int i = 0; i < 300; i++)
		buf_printf(&yaml,
			"  t%d: {type: csv, file: \"%%s/a.csv\", time_column: time, "
			"interval: 365d}\n",
			i);
	adopt(f, yaml.data);
	buf_free(&yaml);
	for (int i = 0; i < 300; i++) {
		sprintf(name, "t%d", i);
		ask(f, name);
		assert_true(scheduler_run_now(f->parts->scheduler, name, NULL, NULL));
	}
	scheduler_each(f->parts->scheduler, see_running, &running);
	assert_in_range(running, 1, 64);
	adopt(f, AGENT TEST("t0", "a.csv") TEST("t299", "c.csv"));
	assert_int_not_equal(f->answered, 0); /* of tests that were removed before their turn */
	wait_for_answers(f);
}

static void test_few_wait_for_one(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 33; i++)
		ask(f, "a"); /* the first is served by the pass that begins, the others wait */
	assert_int_equal(f->answered, 0);
	ask(f, "a");
	assert_int_equal(f->answered, 1);
	assert_string_equal(f->problem, "too many pending requests for this test");
	wait_for_answers(f);
	assert_false(f->last.failed);
}

static void test_removed_while_it_runs(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {.names = ""};

	ask(f, "a");
	ask(f, "a");
	adopt(f, AGENT TEST("b", "none.csv") TEST("c", "c.csv"));
	assert_false(scheduler_run_now(f->parts->scheduler, "a", done, f));
	wait_for_answers(f);
	assert_true(f->last.failed);
	assert_non_null(strstr(f->problem, "changed or removed"));
	scheduler_each(f->parts->scheduler, see, &seen);
	assert_string_equal(seen.names, "bc");
	ask(f, "c");
	wait_for_answers(f);
	assert_int_equal(f->last.points, 40);
}

/* Who waits for a pass of a test that changes gets that of the changed test. */
static void test_changed_while_it_runs(void **state)
{
	struct fixture *f = *state;

	ask(f, "a");
	adopt(f, AGENT TEST("a", "c.csv") TEST("b", "none.csv"));
	wait_for_answers(f);
	assert_false(f->last.failed);
	assert_int_equal(f->last.points, 40);
}

static void test_unchanged_while_it_runs(void **state)
{
	struct fixture *f = *state;

	ask(f, "a");
	adopt(f, AGENT TEST("a", "a.csv"));
	wait_for_answers(f);
	assert_int_equal(f->last.points, 60);
}

/* Whoever waits is left alone when the watch is freed. */
static bool shows(const struct fixture *f, const char *sample)
{
	struct buf text = {0};
	bool found;

	metrics_print(f->parts->agent.metrics, METRICS_TEXT, &text);
	found = strstr(text.data, sample) != NULL;
	buf_free(&text);
	return found;
}

/* Nobody would set them again. */
static void test_gauges_of_what_is_gone(void **state)
{
	struct fixture *f = *state;

	adopt(f, "webhook: {url: \"http://127.0.0.1:1/\"}\n" AGENT
		 "  a: {type: csv, file: \"%s/a.csv\", time_column: time, stale_after: 1h}\n");
	agent_hint(&f->parts->agent, HINT_METRICS);
	ask(f, "a");
	wait_for_answers(f);
	assert_true(shows(f, "\nhunter_source_up{source=\"csv\"} 1\n"));
	assert_true(shows(f, "\nhunter_stale_tests 1\n"));
	assert_true(shows(f, "\nhunter_delivery_queue_length{receiver=\"webhook\"} 0\n"));
	adopt(f, "graphite: {url: \"http://127.0.0.1:1/\"}\n" AGENT
		 "  g: {type: graphite, prefix: x, metrics: {m: {suffix: y}}}\n");
	assert_false(shows(f, "hunter_source_up{"));
	assert_true(shows(f, "\nhunter_stale_tests 0\n"));
	assert_false(shows(f, "hunter_delivery_queue_length{receiver=\"webhook\"}"));
}

static void test_freed_while_it_runs(void **state)
{
	struct fixture *f = *state;

	ask(f, "a");
	ask(f, "a");
	adopt(f, AGENT TEST("b", "none.csv"));
}

static void test_stopping(void **state)
{
	struct fixture *f = *state;

	f->parts->agent.stopping = true;
	ask(f, "a");
	assert_int_equal(f->answered, 1);
	assert_true(f->last.failed);
	assert_non_null(strstr(f->problem, "stopping"));
}

/* A run sees nothing new, which is not written; the next one finds a change, which is awaited. */
static void test_newest_view_is_written(void **state)
{
	struct fixture *f = *state;
	struct buf text = {0};

	adopt(f, "agent: {state: \"%s/state.db\", interval: 1h, max_age: never}\ntests:\n"
		 "  a: {type: csv, file: \"%s/a.csv\", time_column: time, attributes: [runner],"
		 " environment: runner}\n" TEST("b", "none.csv"));
	for (int run = 0; run < 3; run++) {
		int points = run < 2 ? 60 : 80;

		buf_clear(&text);
		buf_text(&text, "time,runner,m\n");
		for (int i = 0; i < points; i++)
			buf_printf(&text, "%d,r1,%d\n", 1700000000 + 3600 * i,
				100 + i % 3 + (i < 60 ? 0 : 50));
		parts_write(f->parts, "a.csv", text.data);
		ask(f, "a");
		wait_for_answers(f);
		assert_false(f->last.failed);
		assert_int_equal(f->last.fresh, run == 2);
	}
	buf_free(&text);
	ask(f, "b"); /* its read follows what was to be written */
	wait_for_answers(f);
	assert_int_equal(state_count(f->parts->state, "seen WHERE text LIKE '% % % % %'"), 1);
}

/* --- In a fleet. */

static int setup_fleet(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct store_restore *restored = store_restore_new(NULL, NULL);

	f->parts = parts_new_fleet(AGENT TEST("a", "a.csv") TEST("b", "none.csv"));
	write_points(f, "a.csv", 60);
	scheduler_start(f->parts->scheduler, restored);
	store_call_free(&restored->call);
	*state = f;
	return 0;
}

static int shard(const char *test)
{
	return fleet_shard_of_test(test);
}

/* The agent holds the shards of these tests, and no others. */
static void hold(const struct fixture *f, const char *tests)
{
	struct fleet_shards shards = {0};

	for (; *tests; tests++)
		shards.has[shard((char[]){*tests, '\0'})] = true;
	fleet_script(&f->parts->agent, &shards, NULL);
}

/* As the list shows the tests: 'A' runs here, 'a' elsewhere. */
static void mark(void *context, const struct scheduler_test *state)
{
	char *marks = context;

	marks += strlen(marks);
	marks[0] = (char)(*state->test->name - (state->elsewhere ? 0 : 'a' - 'A'));
	marks[1] = '\0';
}

static void stop(void *engine)
{
	engine_stop(engine);
}

/* What is gained is read from the store first. */
static void assert_marks(const struct fixture *f, const char *expected)
{
	struct engine *engine = f->parts->agent.engine;
	int64_t end = engine_now(engine) + 60000;
	char marks[16] = "";

	scheduler_each(f->parts->scheduler, mark, marks);
	while (strcmp(marks, expected) != 0 && engine_now(engine) < end) {
		engine_after(engine, 20, stop, engine);
		(void)engine_run(engine);
		*marks = '\0';
		scheduler_each(f->parts->scheduler, mark, marks);
	}
	assert_string_equal(marks, expected);
}

/* Has the engine run until the test has, or for a while. */
static bool runs(const struct fixture *f, const char *expected, int64_t most)
{
	struct engine *engine = f->parts->agent.engine;
	int64_t end = engine_now(engine) + most;

	while (engine_now(engine) < end && !shows(f, expected)) {
		engine_after(engine, 20, stop, engine);
		(void)engine_run(engine);
	}
	return shows(f, expected);
}

#define RAN "\nhunter_runs_total{source=\"csv\"} "

static void test_nothing_runs_that_is_elsewhere(void **state)
{
	struct fixture *f = *state;

	assert_marks(f, "ab");
	assert_string_equal(scheduler_elsewhere(f->parts->scheduler, "a"), "");
	ask(f, "a");
	assert_int_equal(f->answered, 1);
	assert_true(f->last.failed);
	assert_non_null(strstr(f->problem, "forwarded to the agent"));
	assert_false(runs(f, RAN, 300));
	hold(f, "a");
	assert_true(runs(f, RAN, 60000));
	assert_marks(f, "Ab");
	assert_null(scheduler_elsewhere(f->parts->scheduler, "a"));
	ask(f, "a");
	wait_for_answers(f);
	assert_int_equal(f->last.points, 60);
	hold(f, "b");
	assert_marks(f, "aB");
	assert_true(runs(f, "hunter_run_failures_total{source=\"csv\"", 60000));
}

/* What is lost during its run is dropped; gained again, it runs once more. */
static void test_lost_while_it_runs(void **state)
{
	struct fixture *f = *state;

	hold(f, "a");
	assert_true(runs(f, RAN, 60000));
	ask(f, "a");
	ask(f, "a");
	hold(f, "");
	assert_int_equal(f->answered, 1); /* who waits for the next run */
	assert_non_null(strstr(f->problem, "taken over"));
	wait_for_answers(f);
	assert_true(f->last.failed);
	assert_marks(f, "ab");
	hold(f, "a");
	assert_marks(f, "Ab");
	ask(f, "a");
	hold(f, "");
	hold(f, "a"); /* while it runs, or after that */
	assert_marks(f, "Ab");
	ask(f, "a");
	wait_for_answers(f);
	assert_false(f->last.failed);
	assert_int_equal(f->last.points, 60);
}

static double missed(const struct fixture *f)
{
	static const char name[] = "\nhunter_missed_runs_total ";
	struct buf text = {0};
	double count;

	agent_hint(&f->parts->agent, HINT_METRICS);
	metrics_print(f->parts->agent.metrics, METRICS_TEXT, &text);
	count = strtod(strstr(text.data, name) + sizeof name - 1, NULL);
	buf_free(&text);
	return count;
}

/* Nobody waits here for the runs of a test that is another agent's. */
static void test_what_is_lost_is_not_missed(void **state)
{
	struct fixture *f = *state;
	double before;

	adopt(f, "agent: {state: \"%s/state.db\", interval: 1s}\ntests:\n" TEST("a", "a.csv"));
	hold(f, "a");
	assert_true(runs(f, RAN, 60000));
	hold(f, "");
	before = missed(f);
	assert_false(runs(f, "\nnothing", 2500));
	assert_true(missed(f) == before);
}

/* Without trust nothing begins, and nothing is forgotten. */
static void test_without_trust(void **state)
{
	struct fixture *f = *state;

	fleet_script_trust(&f->parts->agent, false);
	hold(f, "a");
	assert_marks(f, "Ab"); /* else it is elsewhere still, which is an answer */
	assert_false(runs(f, RAN, 300));
	ask(f, "a");
	assert_int_equal(f->answered, 0);
	fleet_script_trust(&f->parts->agent, true);
	wait_for_answers(f);
	assert_false(f->last.failed);
}

static size_t looks;

bool __real_fleet_may_run(const struct agent *agent, const char *test);

bool __wrap_fleet_may_run(const struct agent *agent, const char *test);
bool __wrap_fleet_may_run(const struct agent *agent, const char *test)
{
	looks++;
	return __real_fleet_may_run(agent, test);
}

/* Who asks for many that may not begin does not have each look at all before it. */
static void test_many_without_trust(void **state)
{
	struct fixture *f = *state;
	const char *const tests = "abcdefgh";
	struct buf yaml = {0};

	buf_text(&yaml, AGENT);
	for (size_t i = 0; tests[i]; i++)
		buf_printf(&yaml, "  %c: {type: csv, file: \"%%s/a.csv\", time_column: time}\n",
			tests[i]);
	adopt(f, yaml.data);
	buf_free(&yaml);
	fleet_script_trust(&f->parts->agent, false);
	hold(f, tests);
	assert_marks(f, "ABCDEFGH");
	looks = 0;
	for (size_t i = 0; tests[i]; i++)
		ask(f, (char[]){tests[i], '\0'});
	assert_int_equal(looks, strlen(tests));
	hold(f, "bcdefgh");
	assert_int_equal(f->answered, 1); /* of what is lost while it is held */
	fleet_script_trust(&f->parts->agent, true);
	wait_for_answers(f);
	assert_false(f->last.failed);
}

/* A reload gives a test another meaning elsewhere: nothing happens here. */
static void test_reload_in_a_fleet(void **state)
{
	struct fixture *f = *state;

	hold(f, "b");
	adopt(f, AGENT TEST("a", "c.csv") TEST("b", "a.csv") TEST("c", "c.csv"));
	assert_marks(f, "aBc");
	ask(f, "b");
	wait_for_answers(f);
	assert_int_equal(f->last.points, 60);
	write_points(f, "c.csv", 40);
	hold(f, "bc");
	assert_marks(f, "aBC");
	ask(f, "c");
	wait_for_answers(f);
	assert_int_equal(f->last.points, 40);
	assert_true(shows(f, "\nhunter_tests 2\n"));
}

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define SHARED(test) cmocka_unit_test_setup_teardown(test, setup_fleet, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WATCHED(test_run_now),
		WATCHED(test_once_more),
		WATCHED(test_again_when_answered),
		WATCHED(test_many_at_once),
		WATCHED(test_few_wait_for_one),
		WATCHED(test_removed_while_it_runs),
		WATCHED(test_changed_while_it_runs),
		WATCHED(test_unchanged_while_it_runs),
		WATCHED(test_gauges_of_what_is_gone),
		WATCHED(test_freed_while_it_runs),
		WATCHED(test_stopping),
		WATCHED(test_newest_view_is_written),
		SHARED(test_nothing_runs_that_is_elsewhere),
		SHARED(test_lost_while_it_runs),
		SHARED(test_what_is_lost_is_not_missed),
		SHARED(test_without_trust),
		SHARED(test_many_without_trust),
		SHARED(test_reload_in_a_fleet),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
