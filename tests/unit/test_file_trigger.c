/*
 * agent/service/files: real files in a real folder; a run is a CSV read by a real pass.
 */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "agent/io/transfers.h"
#include "agent/service/file_trigger.h"
#include "agent/service/reload.h"
#include "tests/unit/agent_parts.h"

#define AGENT "agent: {state: \"%s/state.db\", interval: 30d}\ntests:\n"
#define TEST_OF(name, file)                                                                        \
	"  " name ": {type: csv, file: \"%s/" file "\", watch: true, metrics: [v]}\n"

static const char yaml[] = AGENT TEST_OF("a", "a.csv") TEST_OF("a2", "a.csv") TEST_OF("b", "b.csv")
	TEST_OF("deep", "sub/d.csv") "  quiet: {type: csv, file: \"%s/a.csv\", metrics: [v]}\n";

static const char rows[] = "time,v\n1700000000,1\n1700000060,2\n";

/* The linker leads the engine's waits here. */
static size_t turns;
void __real_transfers_wait(
	struct transfers *transfers, struct pollfd *more, size_t count, int timeout);
void __wrap_transfers_wait(
	struct transfers *transfers, struct pollfd *more, size_t count, int timeout);

void __wrap_transfers_wait(
	struct transfers *transfers, struct pollfd *more, size_t count, int timeout)
{
	turns++;
	__real_transfers_wait(transfers, more, count, timeout);
}

struct fixture {
	struct parts *parts;
	struct file_trigger *files;
	struct reloader *reloader;
	double runs; /* to wait for */
	int quiet;   /* turns of the loop that are left to see no more */
};

static double runs_of(const struct fixture *f)
{
	struct buf text = {0};
	const char *at;
	double runs = 0;

	metrics_print(f->parts->agent.metrics, METRICS_TEXT, &text);
	at = text.data ? strstr(text.data, "hunter_runs_total{") : NULL;
	if (at)
		runs = strtod(strchr(at, '}') + 1, NULL);
	buf_free(&text);
	return runs;
}

static void look(void *context)
{
	struct fixture *f = context;

	if (runs_of(f) >= f->runs)
		engine_stop(f->parts->agent.engine);
	else
		engine_after(f->parts->agent.engine, 1, look, f);
}

static void stop(void *engine)
{
	engine_stop(engine);
}

/* In many turns, so that what is written is seen and followed even where one of them takes long. */
static void rest(void *context)
{
	struct fixture *f = context;

	if (f->quiet-- == 0)
		engine_stop(f->parts->agent.engine);
	else
		engine_after(f->parts->agent.engine, 10, rest, f);
}

/* Lets the loop turn until so many runs have ended, and sees that no more come. */
static void expect_total(struct fixture *f, double runs)
{
	f->runs = runs;
	engine_after(f->parts->agent.engine, 0, look, f);
	assert_true(engine_run(f->parts->agent.engine));
	f->quiet = 15;
	rest(f);
	assert_true(engine_run(f->parts->agent.engine));
	if (runs_of(f) != f->runs)
		fail_msg("%g runs, not %g", runs_of(f), f->runs);
}

static void expect_runs(struct fixture *f, int more)
{
	expect_total(f, runs_of(f) + more);
}

static void reloaded(void *context, const struct reload_report *report)
{
	assert_null(report->problem);
	stop(context);
}

/* Reloads, however long that takes, and expects so many more runs since it was asked for. */
static void expect_reload(struct fixture *f, int more)
{
	double runs = runs_of(f) + more;

	agent_reload(&f->parts->agent, reloaded, f->parts->agent.engine);
	assert_true(engine_run(f->parts->agent.engine));
	expect_total(f, runs);
}

static const char *adopt(void *context)
{
	struct fixture *f = context;

	agent_hint(&f->parts->agent, HINT_CONFIGURATION);
	agent_hint(&f->parts->agent, HINT_LOOK);
	return NULL;
}

static int setup(void **state)
{
	static const struct store_restore none;
	struct fixture *f = calloc(1, sizeof *f);

	*state = f;
	f->parts = parts_new(yaml);
	parts_write(f->parts, "a.csv", rows);
	f->files = file_trigger_new(&f->parts->agent, f->parts->scheduler);
	assert_non_null(f->files);
	f->reloader = reloader_new(
		&f->parts->agent, &(struct reloader_options){.source = f->parts->source,
					  .names = &f->parts->names,
					  .adopt = adopt,
					  .context = f});
	engine_hold(f->parts->agent.engine);
	scheduler_start(f->parts->scheduler, &none);
	agent_hint(&f->parts->agent, HINT_LOOK);
	reloader_start(f->reloader);
	expect_runs(f, 5); /* the schedule's first */
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct parts *parts = f->parts;

	file_trigger_free(f->files);
	store_close(parts->agent.store);
	parts->agent.store = NULL;
	assert_true(engine_free(parts->agent.engine));
	parts->agent.engine = NULL;
	reloader_free(f->reloader);
	parts_free(parts);
	free(f);
	return 0;
}

/* Both tests of the file, but not the one that does not ask for it. */
static void test_a_write(void **state)
{
	struct fixture *f = *state;

	parts_write(f->parts, "a.csv", rows);
	expect_runs(f, 2);
}

static void test_a_burst(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 200; i++)
		parts_write(f->parts, "a.csv", rows);
	parts_write(f->parts, "other.csv", rows);
	expect_runs(f, 2);
}

/* As a program that keeps its log open does. */
static void test_appended(void **state)
{
	struct fixture *f = *state;
	char path[160];

	snprintf(path, sizeof path, "%s/a.csv", f->parts->folder);
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "1700000120,3\n", 13), 13);
	expect_runs(f, 2);
	close(fd);
	expect_runs(f, 2);
}

static void test_renamed_and_created(void **state)
{
	struct fixture *f = *state;
	char from[160], to[160];

	parts_write(f->parts, "a.csv.new", rows);
	expect_runs(f, 0);
	snprintf(from, sizeof from, "%s/a.csv.new", f->parts->folder);
	snprintf(to, sizeof to, "%s/a.csv", f->parts->folder);
	assert_int_equal(rename(from, to), 0);
	expect_runs(f, 2);
	parts_write(f->parts, "b.csv", rows); /* was never there */
	expect_runs(f, 1);
	unlink(to);
	expect_runs(f, 0);
	parts_write(f->parts, "a.csv", rows);
	expect_runs(f, 2);
}

/* The folder comes, goes, and comes again; each time a reload has it looked for at once. */
static void test_a_folder(void **state)
{
	struct fixture *f = *state;
	char sub[160], away[160];

	snprintf(sub, sizeof sub, "%s/sub", f->parts->folder);
	snprintf(away, sizeof away, "%s/away", f->parts->folder);
	assert_int_equal(mkdir(sub, 0700), 0);
	parts_write(f->parts, "sub/d.csv", rows);
	expect_runs(f, 0);
	expect_reload(f, 1); /* who knows what was written before */
	parts_write(f->parts, "sub/d.csv", rows);
	expect_runs(f, 1);
	assert_int_equal(rename(sub, away), 0);
	expect_runs(f, 0);
	parts_write(f->parts, "away/d.csv", rows);
	expect_runs(f, 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	parts_write(f->parts, "sub/d.csv", rows);
	expect_reload(f, 1);
	parts_write(f->parts, "sub/d.csv", rows);
	expect_runs(f, 1);
}

static void test_a_reload(void **state)
{
	struct fixture *f = *state;

	parts_configure(f->parts, AGENT TEST_OF("a2", "a.csv") TEST_OF("b", "a.csv"));
	expect_reload(f, 0);
	parts_write(f->parts, "a.csv", rows);
	expect_runs(f, 2);
	parts_write(f->parts, "b.csv", rows);
	expect_runs(f, 0);

	/* What was written before a reload is not forgotten. */
	parts_write(f->parts, "a.csv", rows);
	expect_reload(f, 2);
	parts_configure(f->parts, AGENT "  c: {type: csv, file: \"%s/a.csv\", metrics: [v]}\n");
	expect_reload(f, 1);
	parts_write(f->parts, "a.csv", rows);
	expect_runs(f, 0);
}

/* More is written than the kernel keeps for us. */
static void test_an_overflow(void **state)
{
	struct fixture *f = *state;
	FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	int most = 0;
	char one[160], two[160];

	if (!limit || fscanf(limit, "%d", &most) != 1 || most > 100000) {
		if (limit)
			fclose(limit);
		skip("max_queued_events is not known, or too many");
	}
	fclose(limit);
	parts_write(f->parts, "x", "");
	snprintf(one, sizeof one, "%s/x", f->parts->folder);
	snprintf(two, sizeof two, "%s/y", f->parts->folder);
	for (int i = 0; i <= most; i++) {
		assert_int_equal(rename(one, two), 0);
		assert_int_equal(rename(two, one), 0);
	}
	expect_runs(f, 4);
}

/* What is written while the agent ends is not read, and does not keep the loop turning. */
static void test_writes_while_stopping(void **state)
{
	struct fixture *f = *state;
	double runs = runs_of(f);
	size_t before;

	f->parts->agent.stopping = true;
	parts_write(f->parts, "a.csv", rows);
	before = turns;
	engine_after(f->parts->agent.engine, 100, stop, f->parts->agent.engine);
	assert_true(engine_run(f->parts->agent.engine));
	assert_in_range(turns - before, 1, 20);
	assert_true(runs_of(f) == runs);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_writes_while_stopping),
		TEST(test_a_write),
		TEST(test_a_burst),
		TEST(test_appended),
		TEST(test_renamed_and_created),
		TEST(test_a_folder),
		TEST(test_a_reload),
		TEST(test_an_overflow),
	};
	log_setup(LEVEL_ERROR, LOG_FORMAT_TEXT, stderr);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
