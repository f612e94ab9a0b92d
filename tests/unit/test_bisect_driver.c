/* The driver: a run begins once it is stored, what a journal leaves is begun again or lost, the
 * budget ends runs but does not count the time in which nobody worked. */
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bisect/driver.h"

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "1123456789abcdef0123456789abcdef01234567"
#define C "2123456789abcdef0123456789abcdef01234567"
#define D "3123456789abcdef0123456789abcdef01234567"

enum { WORKERS = 2, START = 1000000 };

static const char *const ids[] = {B, C, D};

/* An owner, a runner and their clock. */
struct bench {
	struct journal_setup setup;
	struct bisect_driver *driver;
	struct buf journal;
	int64_t now;
	bool stores;                   /* at once; else `unstored` waits */
	uint64_t unstored[WORKERS];    /* ids */
	struct bisect_run in[WORKERS]; /* id 0: none */
	int64_t begun[WORKERS];
	bool gone[WORKERS];
	size_t begins, stops;
};

static int64_t now_of(void *context)
{
	return ((struct bench *)context)->now;
}

static void put(void *context, const struct journal_entry *event)
{
	struct bench *bench = context;

	journal_put(&bench->journal, event);
	if (event->kind != JOURNAL_BEGIN)
		return;
	if (bench->stores)
		bisect_driver_stored(bench->driver, event->run.id);
	else
		bench->unstored[event->run.worker] = event->run.id;
}

static void begin(void *context, const struct bisect_run *run, const char *commit, int64_t begun)
{
	struct bench *bench = context;

	assert_int_equal(bench->in[run->worker].id, 0);
	assert_string_equal(commit, run->position > 0 ? ids[run->position - 1] : A);
	bench->in[run->worker] = *run;
	bench->begun[run->worker] = begun;
	bench->begins++;
}

static bool is_busy(const void *context, size_t worker)
{
	return ((const struct bench *)context)->in[worker].id != 0;
}

static bool is_gone(const void *context, size_t worker)
{
	return ((const struct bench *)context)->gone[worker];
}

static void report(struct bench *bench, size_t worker, enum bisect_outcome outcome, double value)
{
	const struct bisect_run run = bench->in[worker];
	const struct bisect_result result = {run.id, worker, run.position, outcome, value,
		bench->begun[worker], bench->now - bench->begun[worker]};

	bench->in[worker].id = 0;
	bisect_driver_report(bench->driver, &result, NULL);
}

static void stop(void *context, size_t worker)
{
	struct bench *bench = context;

	bench->stops++;
	report(bench, worker, BISECT_LOST, (double)NAN);
}

static const struct bisect_runner workers = {begin, is_busy, is_gone, stop, false},
				  lab = {begin, is_busy, NULL, stop, true};

static void open(struct bench *bench, const struct bisect_runner *runner)
{
	const struct bisect_driver_owner owner = {now_of, put, bench};

	bisect_driver_free(bench->driver);
	bench->driver = bisect_driver_new(&bench->setup, &owner, runner, bench);
}

static struct bench bench_of(int64_t budget)
{
	struct bench bench = {.now = START,
		.stores = true,
		.setup = {.repository = "/r",
			.good = A,
			.bad = D,
			.candidates = {ids, 3},
			.options = {.workers = WORKERS,
				.confidence = .95,
				.step = (double)NAN,
				.spread = (double)NAN,
				.budget = budget,
				.attempts = 2},
			.run = "x",
			.timeout = 60000,
			.at = START}};

	journal_put_setup(&bench.journal, &bench.setup);
	return bench;
}

static void end(struct bench *bench)
{
	bisect_driver_free(bench->driver);
	buf_free(&bench->journal);
}

/* A program is killed, and another opens the journal. */
static struct journal reopen(
	struct bench *bench, const struct bisect_runner *runner, struct arena *arena)
{
	struct journal journal;
	struct error error;

	memset(bench->in, 0, sizeof bench->in);
	assert_true(
		journal_read(arena, bench->journal.data, bench->journal.length, &journal, &error));
	open(bench, runner);
	bisect_driver_resume(bench->driver, &journal, "killed");
	return journal;
}

static void test_it_finds_the_step(void **state)
{
	struct bench bench = bench_of(0);
	enum bisect_driver_state at;

	(void)state;
	open(&bench, &workers);
	while ((at = bisect_driver_advance(bench.driver, true)) == BISECT_DRIVER_RUNS) {
		assert_true(bench.in[0].id != 0 || bench.in[1].id != 0);
		for (size_t i = 0; i < WORKERS; i++)
			if (bench.in[i].id != 0) {
				bench.now += 10;
				report(&bench, i, BISECT_MEASURED,
					(bench.in[i].position >= 2 ? 200 : 100) +
						(double)(bench.now % 7) / 10);
			}
	}
	assert_int_equal(at, BISECT_DRIVER_OVER);
	assert_int_equal(bisect_driver_status(bench.driver)->end, BISECT_FOUND);
	assert_int_equal(bisect_driver_status(bench.driver)->set[0].position, 2);
	assert_true(bisect_driver_due(bench.driver) == INT64_MAX);
	end(&bench);
}

static void test_a_run_begins_once_it_is_stored(void **state)
{
	struct bench bench = bench_of(0);

	(void)state;
	open(&bench, &workers);
	bench.stores = false;
	assert_int_equal(bisect_driver_advance(bench.driver, false), BISECT_DRIVER_RUNS);
	assert_int_equal(bench.unstored[0], 0);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	assert_true(bench.unstored[0] != 0 && bench.unstored[1] != 0);
	assert_int_equal(bench.begins, 0);
	bisect_driver_stored(bench.driver, bench.unstored[1]);
	assert_int_equal(bench.begins, 1);
	assert_int_equal(bench.in[1].id, bench.unstored[1]);
	/* One that was not stored in time ends as the others. */
	bisect_driver_cancel(bench.driver);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_OVER);
	assert_int_equal(bench.stops, 1);
	bisect_driver_stored(bench.driver, bench.unstored[0]);
	assert_int_equal(bench.begins, 1);
	assert_int_equal(bisect_driver_status(bench.driver)->end, BISECT_CANCELLED);
	end(&bench);
}

static void test_what_a_journal_leaves(void **state)
{
	struct arena *arena = arena_new();
	struct bench bench = bench_of(0);
	struct journal journal;

	(void)state;
	open(&bench, &workers);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	bench.now += 500;
	journal = reopen(&bench, &lab, arena);
	assert_int_equal(journal.count, 2);
	assert_int_equal(bench.begins, 2 + 2); /* a lab goes on */
	assert_int_equal(bench.in[0].id, 1);
	assert_int_equal(bench.begun[0], START);
	bench.now += 500;
	journal = reopen(&bench, &workers, arena); /* workers do not */
	assert_int_equal(journal.count, 3);
	assert_int_equal(bench.begins, 4);
	assert_non_null(strstr(bench.journal.data, "\"lost\""));
	assert_non_null(strstr(bench.journal.data, "\"killed\""));
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	assert_int_equal(bench.in[0].id, 3);
	end(&bench);
	arena_free(arena);
}

/* It ends a run that takes too long; the time between two programs is no part of it. */
static void test_budget(void **state)
{
	struct arena *arena = arena_new();
	struct bench bench = bench_of(5000);

	(void)state;
	open(&bench, &workers);
	assert_true(bisect_driver_due(bench.driver) == INT64_MAX);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	assert_int_equal(bisect_driver_due(bench.driver), START + 5000);
	bench.now += 1000;
	report(&bench, 0, BISECT_MEASURED, 100);
	bench.now += 60000;
	reopen(&bench, &workers, arena);
	assert_int_equal(bisect_driver_due(bench.driver), START + 5000 + 60000);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	assert_int_equal(bench.begins, 4);
	bench.now += 3999;
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	assert_int_equal(bench.stops, 0);
	bench.now++;
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_OVER);
	assert_int_equal(bench.stops, 2);
	assert_true(bisect_driver_due(bench.driver) == INT64_MAX);
	assert_int_equal(bisect_driver_status(bench.driver)->end, BISECT_OUT_OF_BUDGET);
	end(&bench);
	arena_free(arena);
}

static void test_no_worker_answers(void **state)
{
	struct bench bench = bench_of(0);

	(void)state;
	open(&bench, &workers);
	bench.gone[0] = true;
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_RUNS);
	bench.gone[1] = true;
	report(&bench, 1, BISECT_LOST, (double)NAN);
	assert_int_equal(bisect_driver_advance(bench.driver, false), BISECT_DRIVER_RUNS);
	assert_int_equal(bisect_driver_advance(bench.driver, true), BISECT_DRIVER_GONE);
	end(&bench);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_finds_the_step),
		cmocka_unit_test(test_a_run_begins_once_it_is_stored),
		cmocka_unit_test(test_what_a_journal_leaves),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_no_worker_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
