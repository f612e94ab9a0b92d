/* The worker pool: everything comes back once, lanes do not hold each other up, threads are few. */
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/clock.h"
#include "agent/io/pool.h"
#include "tests/unit/waiting.h"

struct sum {
	struct job job;
	uint64_t from, to, result;
	int runs;
};

static void run_sum(struct job *job, struct scratch *scratch)
{
	struct sum *sum = (struct sum *)job;
	assert_non_null(scratch);
	sum->runs++;
	for (uint64_t i = sum->from; i < sum->to; i++)
		sum->result += i;
}

static struct job *take(struct pool *pool)
{
	struct job *job;
	while (!(job = pool_take(pool))) {
		struct pollfd fd = {.fd = pool_fd(pool), .events = POLLIN};
		assert_int_equal(poll(&fd, 1, LONGEST), 1);
	}
	return job;
}

static struct pool *pool_of(size_t threads)
{
	struct error error;
	struct pool *pool = pool_new(threads, &error);
	assert_non_null(pool);
	return pool;
}

static void stop_and_free(struct pool *pool)
{
	assert_true(pool_stop(pool, LONGEST));
	pool_free(pool);
}

static void test_everything_comes_back_once(void **state)
{
	(void)state;
	enum { JOBS = 20000 };
	struct pool *pool = pool_of(3);
	struct sum *sums = calloc(JOBS, sizeof *sums);
	for (uint64_t i = 0; i < JOBS; i++) {
		sums[i] = (struct sum){.job = {.run = run_sum}, .from = i, .to = i + 3};
		pool_submit(pool, i % 7 == 0 ? LANE_READ : LANE_WORK, &sums[i].job);
	}
	for (int i = 0; i < JOBS; i++) {
		struct sum *sum = (struct sum *)take(pool);
		assert_int_equal(sum->runs, 1);
		assert_int_equal(sum->result, 3 * sum->from + 3);
		sum->runs = 0;
	}
	assert_null(pool_take(pool));
	struct pollfd fd = {.fd = pool_fd(pool), .events = POLLIN};
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_in_range(pool_threads(pool), 2, 3 + 4);
	stop_and_free(pool);
	free(sums);
}

static void test_threads_are_started_when_needed(void **state)
{
	(void)state;
	struct pool *pool = pool_of(8);
	struct sum sum = {.job = {.run = run_sum}, .to = 10};
	assert_int_equal(pool_threads(pool), 0);
	for (int i = 0; i < 100; i++) {
		pool_submit(pool, LANE_WORK, &sum.job);
		assert_ptr_equal(take(pool), &sum.job);
	}
	/* A job is given back by a worker that is free again: both are done under one lock. */
	assert_int_equal(pool_threads(pool), 1);
	assert_int_equal(sum.runs, 100);
	stop_and_free(pool);
}

struct gate {
	struct job job;
	pthread_barrier_t *barrier;
};

static void run_gate(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	pthread_barrier_wait(((struct gate *)job)->barrier);
}

/* Reads that block, as many as the lane takes, leave the other lane free. */
static void test_blocked_reads_hold_up_no_work(void **state)
{
	(void)state;
	enum { READS = 4 };
	struct pool *pool = pool_of(1);
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, READS + 1);
	struct gate gates[READS];
	for (int i = 0; i < READS; i++) {
		gates[i] = (struct gate){.job = {.run = run_gate}, .barrier = &barrier};
		pool_submit(pool, LANE_READ, &gates[i].job);
	}
	struct sum sum = {.job = {.run = run_sum}, .to = 10};
	pool_submit(pool, LANE_WORK, &sum.job);
	assert_ptr_equal(take(pool), &sum.job);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < READS; i++)
		take(pool);
	stop_and_free(pool);
	pthread_barrier_destroy(&barrier);
}

/* Blocks until a byte is written to the pipe. */
struct stuck {
	struct job job;
	int fd, given_up;
	bool running;
	atomic_bool begun;
};

static void run_stuck(struct job *job, struct scratch *scratch)
{
	(void)scratch;
	struct stuck *stuck = (struct stuck *)job;
	char byte;
	atomic_store(&stuck->begun, true);
	assert_int_equal(read(stuck->fd, &byte, 1), 1);
}

static void note_overdue(struct job *job, bool running)
{
	struct stuck *stuck = (struct stuck *)job;
	stuck->given_up++;
	stuck->running = running;
}

/* Waits for the next job that is given up. The pool says when to look again; that it knows of a job
 * that has just begun a second later, at most, is nothing to wait for here. */
static struct stuck *take_overdue(struct pool *pool)
{
	struct job *job;
	bool running;
	while (!(job = pool_overdue(pool, clock_monotonic(), &running))) {
		int64_t due, now = clock_monotonic();
		assert_true(pool_due(pool, now, &due));
		assert_true(due <= now + 1000);
		look_again();
	}
	job->overdue(job, running);
	return (struct stuck *)job;
}

/* Jobs that do not end cost a thread each; the lane goes on with others until too many are lost. */
static void test_what_does_not_end_is_given_up(void **state)
{
	(void)state;
	enum { JOBS = POOL_LOST + 1 };
	struct pool *pool = pool_of(1);
	struct stuck stuck[JOBS];
	struct sum sum = {.job = {.run = run_sum}, .to = 10};
	int pipes[2];
	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i < JOBS; i++)
		stuck[i] = (struct stuck){.fd = pipes[0],
			.job = {.run = run_stuck, .overdue = note_overdue, .limit = 1}};
	for (int i = 0; i < JOBS - 1; i++) {
		pool_submit(pool, LANE_READ, &stuck[i].job);
		assert_ptr_equal(take_overdue(pool), &stuck[i]);
		assert_int_equal(stuck[i].given_up, 1);
		assert_true(stuck[i].running);
		if (i == JOBS - 2)
			break;
		pool_submit(pool, LANE_READ, &sum.job);
		assert_ptr_equal(take(pool), &sum.job);
	}
	assert_false(pool_stop(pool, 0)); /* at once, as nobody waits for what was given up */
	assert_int_equal(write(pipes[1], "0123456789abcdef", POOL_LOST), POOL_LOST);
	for (int i = 0; i < JOBS - 1; i++)
		assert_int_equal(((struct stuck *)take(pool))->given_up, 1);
	stop_and_free(pool);
	close(pipes[0]);
	close(pipes[1]);
}

/* Reads that hang, and are not given up for long, do not hold up the others for long, but how many
 * threads they cost is bounded. */
static void test_hanging_reads_hold_up_no_others(void **state)
{
	(void)state;
	enum { JOBS = POOL_READERS + 4, LATER = 3000 };
	struct pool *pool = pool_of(1);
	struct stuck stuck[JOBS];
	struct sum sum = {.job = {.run = run_sum}, .to = 10};
	char bytes[JOBS] = {0};
	int pipes[2];
	int64_t now = clock_monotonic(), due;
	bool running;
	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i < JOBS; i++)
		stuck[i] = (struct stuck){.fd = pipes[0],
			.job = {.run = run_stuck, .overdue = note_overdue, .limit = 1000000}};
	for (int i = 0; i < 6; i++)
		pool_submit(pool, LANE_READ, &stuck[i].job);
	pool_submit(pool, LANE_READ, &sum.job);
	assert_true(pool_due(pool, now, &due));
	assert_in_range(due - now, 0, 1000);
	assert_null(pool_overdue(pool, now, &running)); /* none has hung for long */
	assert_int_equal(pool_threads(pool), 4);
	for (int i = 0; i < 4; i++)
		while (!atomic_load(&stuck[i].begun))
			sched_yield();
	assert_null(pool_overdue(pool, clock_monotonic() + LATER, &running));
	assert_int_equal(pool_threads(pool), 7);
	assert_ptr_equal(take(pool), &sum.job);
	for (int i = 6; i < JOBS; i++)
		pool_submit(pool, LANE_READ, &stuck[i].job);
	for (int i = 0; i < JOBS; i++) {
		assert_null(pool_overdue(pool, clock_monotonic() + LATER, &running));
	}
	assert_int_equal(pool_threads(pool), POOL_READERS);
	assert_int_equal(write(pipes[1], bytes, JOBS), JOBS);
	for (int i = 0; i < JOBS; i++)
		take(pool);
	stop_and_free(pool);
	close(pipes[0]);
	close(pipes[1]);
}

/* With all threads of a lane lost, what waits there is handed back unrun, if it has a limit; what
 * has none waits before it. */
static void test_a_lane_without_threads(void **state)
{
	(void)state;
	enum { JOBS = POOL_LOST + 4 };
	struct pool *pool = pool_of(1);
	struct stuck stuck[JOBS + 1];
	int pipes[2], running = 0;
	char bytes[JOBS] = {0};
	assert_int_equal(pipe(pipes), 0);
	for (int i = 0; i <= JOBS; i++) {
		stuck[i] = (struct stuck){.fd = pipes[0],
			.job = {.run = run_stuck, .overdue = note_overdue, .limit = 1}};
		pool_submit(pool, LANE_READ, &stuck[i].job);
	}
	for (int i = 0; i <= JOBS; i++)
		running += take_overdue(pool)->running;
	assert_in_range(running, POOL_LOST, JOBS);
	struct sum patient = {.job = {.run = run_sum}, .to = 10};
	struct stuck late = {
		.fd = pipes[0], .job = {.run = run_stuck, .overdue = note_overdue, .limit = 1}};
	int64_t due;
	pool_submit(pool, LANE_READ, &patient.job);
	pool_submit(pool, LANE_READ, &late.job);
	assert_true(pool_due(pool, clock_monotonic(), &due));
	assert_ptr_equal(take_overdue(pool), &late);
	assert_false(late.running);
	assert_int_equal(write(pipes[1], bytes, (size_t)running), running);
	for (int i = 0; i <= running; i++)
		take(pool);
	struct sum sum = {.job = {.run = run_sum}, .to = 10}; /* and it lives again */
	pool_submit(pool, LANE_READ, &sum.job);
	assert_ptr_equal(take(pool), &sum.job);
	stop_and_free(pool);
	close(pipes[0]);
	close(pipes[1]);
}

/* A job without a limit is not given up, but not waited for without end either. */
static void test_stopping_has_its_time(void **state)
{
	(void)state;
	struct pool *pool = pool_of(1);
	struct stuck stuck = {.job = {.run = run_stuck}};
	int pipes[2];
	int64_t due;
	bool running;
	assert_int_equal(pipe(pipes), 0);
	stuck.fd = pipes[0];
	atomic_init(&stuck.begun, false);
	pool_submit(pool, LANE_WORK, &stuck.job);
	while (!atomic_load(&stuck.begun))
		sched_yield();
	assert_false(pool_due(pool, clock_monotonic(), &due));
	assert_null(pool_overdue(pool, INT64_MAX, &running));
	int64_t before = clock_monotonic();
	assert_false(pool_stop(pool, 20));
	assert_in_range(clock_monotonic() - before, 20, 10000);
	assert_int_equal(write(pipes[1], "x", 1), 1);
	stop_and_free(pool);
	close(pipes[0]);
	close(pipes[1]);
}

static void *give_back(void *argument)
{
	void **arguments = argument;
	for (int i = 0; i < 1000; i++)
		pool_return(arguments[0], &((struct sum *)arguments[1])[i].job);
	return NULL;
}

static void test_other_threads_may_return_jobs(void **state)
{
	(void)state;
	struct pool *pool = pool_of(1);
	struct sum *sums = calloc(1000, sizeof *sums);
	pthread_t thread;
	void *arguments[] = {pool, sums};
	pthread_create(&thread, NULL, give_back, arguments);
	for (int i = 0; i < 1000; i++)
		assert_ptr_equal(take(pool), &sums[i].job);
	pthread_join(thread, NULL);
	assert_int_equal(pool_threads(pool), 0);
	stop_and_free(pool);
	free(sums);
}

static void test_freed_with_work_left(void **state)
{
	(void)state;
	struct pool *pool = pool_of(2);
	struct sum *sums = calloc(1000, sizeof *sums);
	for (int i = 0; i < 1000; i++) {
		sums[i] = (struct sum){.job = {.run = run_sum}, .to = 1000};
		pool_submit(pool, LANE_WORK, &sums[i].job);
	}
	stop_and_free(pool);
	for (int i = 0; i < 1000; i++)
		assert_in_range(sums[i].runs, 0, 1);
	free(sums);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_comes_back_once),
		cmocka_unit_test(test_threads_are_started_when_needed),
		cmocka_unit_test(test_blocked_reads_hold_up_no_work),
		cmocka_unit_test(test_other_threads_may_return_jobs),
		cmocka_unit_test(test_freed_with_work_left),
		cmocka_unit_test(test_what_does_not_end_is_given_up),
		cmocka_unit_test(test_a_lane_without_threads),
		cmocka_unit_test(test_hanging_reads_hold_up_no_others),
		cmocka_unit_test(test_stopping_has_its_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
