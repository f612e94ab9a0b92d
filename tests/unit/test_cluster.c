/*
 * Weeks of an agent with a cluster: many series of several tests move at once. It is told once, in
 * one change, over restarts and reloads, and what moves alone is told as ever.
 */
#include "unit.h"
#include <sqlite3.h>

#include "agent_world.h"
#include "detectors/random.h"

enum { TESTS = 4, COLUMNS = 12, POINTS = 72, STEP_AT = 30, LONE_AT = 40 };

/* What happens in the data. */
struct events {
	bool crowd, lone, missing;
	int64_t drifts; /* hour from which on others are in the crowd; 0: never */
	int64_t grows;  /* hour from which on its step is larger; 0: never */
	bool reloads;   /* the configuration changes while it runs */
	struct config_ref *before[4];
	size_t before_count;
};

/* Later the first test's series are not in it any more, and others are in their place. */
static bool is_in_crowd(const struct events *events, size_t test, size_t column, int64_t now)
{
	if (events->drifts == 0 || now < events->drifts * HOUR)
		return column % 2 == 0;
	return test != 0 && (column % 2 == 0 || column == 1);
}

static double value(
	const struct events *events, size_t test, size_t column, int64_t hour, int64_t now)
{
	bool grown = events->grows != 0 && now >= events->grows * HOUR;
	uint64_t random = (uint64_t)(hour * 1000 + (int64_t)(test * 100 + column));
	double noise = random_unit(&random) + random_unit(&random) + random_unit(&random) - 1.5;
	double level = 100 + (double)column;

	(void)random_next(&random);
	if (events->crowd && is_in_crowd(events, test, column, now) && hour >= STEP_AT)
		level *= grown ? 1.5 : 1.2;
	if (events->lone && test == 1 && column == 3 && hour >= LONE_AT)
		level *= 1.5;
	return level * (1 + 0.02 * noise);
}

/* The hours up to now. */
static void write_rows(FILE *file, const struct events *events, size_t test, int64_t now)
{
	fprintf(file, "time");
	for (size_t column = 0; column < COLUMNS; column++)
		fprintf(file, ",%s%zu", column % 2 == 0 ? "gpu" : "cpu", column);
	for (int64_t hour = now / HOUR - POINTS; hour <= now / HOUR; hour++) {
		fprintf(file, "\n%lld", (long long)((START + hour * HOUR) / 1000));
		for (size_t column = 0; column < COLUMNS; column++)
			fprintf(file, ",%.6f", value(events, test, column, hour, now));
	}
	fprintf(file, "\n");
}

/* Each test's file, whole at any time: others may be reading it. */
static void write_files(struct world *world, const char *name, int64_t now)
{
	const struct events *events = world->context;

	(void)name;
	for (size_t test = 0; test < TESTS; test++) {
		char path[128], fresh[160];
		FILE *file;

		snprintf(path, sizeof path, "%s/test%zu.csv", world->folder, test);
		snprintf(fresh, sizeof fresh, "%s.new", path);
		if (events->missing && test == 0) {
			remove(path);
			continue;
		}
		file = fopen(fresh, "w");
		assert_non_null(file);
		write_rows(file, events, test, now);
		fclose(file);
		assert_int_equal(rename(fresh, path), 0);
	}
}

static void configure(struct world *world, const char *agent, const char *group)
{
	FILE *file;

	world_configure(world, agent, "", 0);
	world->test_count = TESTS;
	file = fopen(world->config, "a");
	assert_non_null(file);
	for (size_t test = 0; test < TESTS; test++) {
		snprintf(world->tests[test].name, sizeof world->tests[test].name, "test%zu", test);
		fprintf(file,
			"  test%zu: {type: csv, file: %s/test%zu.csv, time_column: time, "
			"detection: {kind: benchmark}, metrics: "
			"[",
			test, world->folder, test);
		for (size_t column = 0; column < COLUMNS; column++)
			fprintf(file, "%s%s%zu", column ? ", " : "",
				column % 2 == 0 ? "gpu" : "cpu", column);
		fprintf(file, "]}\n");
	}
	if (!group) {
		fclose(file);
		return;
	}
	fprintf(file,
		"test_groups:\n  all: {type: cluster, tests: [test0, test1, test2, test3]%s}\n",
		group);
	fclose(file);
}

/* Another configuration is taken over, with the same tests. */
static void reload(struct world *world, const char *group)
{
	struct config_source source = {.schema = &cli_schema, .env = no_environment};
	struct problems problems = {.arena = world->arena};
	struct agent *agent = &world->parts.agent;
	struct events *events = world->context;
	struct error error;

	configure(world, "agent: {interval: 1h}", group);
	events->before[events->before_count++] = agent->config_ref;
	agent->config_ref = config_ref_of(
		config_load(world->config, &source, &problems), &(struct strings){0}, &error);
	assert_non_null(agent->config_ref);
	agent->config = agent->config_ref->config;
	agent_hint(&world->parts.agent, HINT_CONFIGURATION);
}

static void change(void *world)
{
	reload(world, ", k: 4");
}

static void take_away(void *world)
{
	reload(world, NULL);
}

/* While the pass of the one before may be under way. */
static void take_away_and_back(void *world)
{
	reload(world, NULL);
	reload(world, ", interval: 2h");
}

static void write_and_reload(struct world *world, const char *name, int64_t now)
{
	struct events *events = world->context;
	struct engine *engine = world->parts.agent.engine;

	write_files(world, name, now);
	if (!events->reloads)
		return;
	events->reloads = false;
	engine_after(engine, 10 * HOUR, change, world);
	engine_after(engine, 45 * HOUR, take_away, world);
	engine_after(engine, 55 * HOUR, take_away_and_back, world);
}

static struct world *world_of_clusters(struct events *events)
{
	struct world *world = world_new();

	world->before = write_files;
	world->context = events;
	configure(world, "agent: {interval: 1h}", "");
	write_files(world, "", 0);
	return world;
}

/* What the statement counts in the state file. */
static int count(const struct world *world, const char *sql)
{
	sqlite3 *file;
	sqlite3_stmt *statement;
	int result;

	assert_int_equal(sqlite3_open(world->state, &file), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(file, sql, -1, &statement, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
	result = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	sqlite3_close(file);
	return result;
}

#define CLUSTERS "SELECT count(*) FROM changes WHERE test = 'all'"
#define SINGLES "SELECT count(*) FROM changes WHERE test != 'all'"
#define TOLD " AND id IN (SELECT change FROM announced)"
#define WAITING " AND news = 1"

static void test_told_once(void **state)
{
	struct events events = {.crowd = true, .lone = true};
	struct world *world = world_of_clusters(&events);

	(void)state;
	live(world, 35 * HOUR);
	assert_int_equal(count(world, CLUSTERS TOLD), 1);
	assert_int_equal(count(world, SINGLES TOLD), 0);
	for (int life = 0; life < 4; life++)
		live(world, 8 * HOUR);
	assert_int_equal(count(world, CLUSTERS), 1);
	assert_int_equal(count(world, CLUSTERS TOLD), 1);
	assert_in_range(count(world, "SELECT members FROM changes WHERE test = 'all'"), 24, 25);
	assert_int_equal(count(world, CLUSTERS " AND series LIKE 'test_: gpu%'"), 1);
	assert_in_range(count(world, SINGLES), 20, 30);
	assert_int_equal(count(world, SINGLES TOLD), 1);
	assert_int_equal(count(world, SINGLES TOLD " AND series = 'cpu3' AND test = 'test1'"), 1);
	assert_int_equal(count(world, SINGLES WAITING), 0);
	world_free(world);
}

/* What is flat has no clusters to tell. Noise may pass for a change of one series: it is told. */
static void test_nothing_moves(void **state)
{
	struct events events = {0};
	struct world *world = world_of_clusters(&events);

	(void)state;
	live(world, 14 * DAY);
	assert_int_equal(count(world, CLUSTERS), 0);
	assert_int_equal(count(world, SINGLES WAITING), 0);
	world_free(world);
}

/* A test that cannot be read is left out; the others' cluster is told. */
static void test_one_is_missing(void **state)
{
	struct events events = {.crowd = true, .missing = true};
	struct world *world = world_of_clusters(&events);

	(void)state;
	live(world, 50 * HOUR);
	assert_int_equal(count(world, CLUSTERS TOLD), 1);
	assert_int_equal(count(world, "SELECT members FROM changes WHERE test = 'all'"), 18);
	assert_int_equal(count(world, SINGLES TOLD), 0);
	world_free(world);
}

/* What was found waits for the cluster, over a restart, too; without it, it is told. */
static void test_waits_for_the_cluster(void **state)
{
	struct events events = {.lone = true};
	struct world *world = world_of_clusters(&events);

	(void)state;
	configure(world, "agent: {interval: 1h}", ", interval: 30d");
	live(world, 60 * HOUR);
	assert_int_equal(count(world, SINGLES), 1);
	assert_int_equal(count(world, SINGLES WAITING), 1);
	live(world, 900);
	assert_int_equal(count(world, SINGLES WAITING), 1);
	configure(world, "agent: {interval: 1h}", "");
	live(world, 2 * HOUR);
	assert_int_equal(count(world, SINGLES TOLD), 1);
	world_free(world);
}

/* The cluster changes, goes, and comes back: what was told stays told, what waits is told. */
static void test_reloads(void **state)
{
	struct events events = {.crowd = true, .lone = true, .reloads = true};
	struct world *world = world_of_clusters(&events);

	(void)state;
	world->before = write_and_reload;
	live(world, 70 * HOUR);
	assert_int_equal(events.before_count, 4);
	assert_int_equal(count(world, CLUSTERS TOLD), 1);
	assert_int_equal(count(world, SINGLES TOLD " AND series = 'cpu3' AND test = 'test1'"), 1);
	assert_int_equal(count(world, SINGLES WAITING), 0);
	while (events.before_count > 0)
		config_ref_release(events.before[--events.before_count]);
	world_free(world);
}

static void say(const struct world *world, enum triage_state state)
{
	struct store_triage *call = store_triage_new(NULL, NULL);
	struct error error;

	call->test = "all";
	call->triage = (struct triage){.state = state, .until = -1};
	call->version = -1;
	call->actor = (struct actor){"ann", "command line"};
	call->now = START + world->passed;
	if (!store_tx(world->state, STORE_OWN, &call->call, &error))
		fail_msg("%s", error.text);
	assert_int_equal(call->changed, 1);
	store_call_free(&call->call);
}

#define TRIAGE "SELECT triage FROM triage JOIN changes ON id = change WHERE test = 'all'"
#define MEMBERS "SELECT members FROM changes WHERE test = 'all'"
#define TOLD_CLUSTERS                                                                              \
	"SELECT count(*) FROM announced JOIN changes ON id = change WHERE test = 'all'"

/* What was said of a cluster holds while its members come and go; if it grows it is told again. */
static void test_triage(void **state)
{
	struct events events = {.crowd = true, .drifts = 40, .grows = 60};
	struct world *world = world_of_clusters(&events);

	(void)state;
	live(world, 36 * HOUR);
	assert_int_equal(count(world, TOLD_CLUSTERS), 1);
	assert_in_range(count(world, MEMBERS), 24, 25);
	say(world, TRIAGE_EXPECTED);
	live(world, 10 * HOUR);
	live(world, 10 * HOUR);
	assert_int_equal(count(world, CLUSTERS), 1);
	assert_int_equal(count(world, TRIAGE), TRIAGE_EXPECTED);
	assert_int_equal(count(world, TOLD_CLUSTERS), 1);
	live(world, 12 * HOUR);
	assert_int_equal(count(world, CLUSTERS), 1);
	assert_int_equal(count(world, TRIAGE), TRIAGE_OPEN);
	assert_int_equal(count(world, TOLD_CLUSTERS), 2);
	live(world, 5 * HOUR);
	assert_int_equal(count(world, TOLD_CLUSTERS), 2);
	assert_int_equal(count(world, MEMBERS), 21);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_nothing_moves),
		cmocka_unit_test(test_one_is_missing),
		cmocka_unit_test(test_waits_for_the_cluster),
		cmocka_unit_test(test_reloads),
		cmocka_unit_test(test_triage),
	};

	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
