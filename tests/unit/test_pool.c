/* The worker pool: everything comes back once, lanes do not hold each other up, threads are few. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "agent/pool.h"

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
		assert_int_equal(poll(&fd, 1, 10000), 1);
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
	pool_free(pool);
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
	/* One, or two where the first had not yet gone back to sleep. */
	assert_in_range(pool_threads(pool), 1, 2);
	assert_int_equal(sum.runs, 100);
	pool_free(pool);
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
	pool_free(pool);
	pthread_barrier_destroy(&barrier);
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
	pool_free(pool);
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
	pool_free(pool);
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
