/*
 * The search for a culprit: without noise it is the plan on paper; with it sets hold what they
 * claim; broken commits, lost runs, budgets and ranges without a step; told again it is where it
 * was.
 */
/* clang-format off */
#include "unit.h"
/* clang-format on */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/bisect/bisection.h"
#include "tests/bench/generate.h"
#include "tests/bench/simulate_bisect.h"
#include "tests/unit/sanitized.h"

enum { MINUTE = 60000, RUNS = 4000 };

static const struct bisect_options usual = {
	.workers = 1, .confidence = .95, .step = (double)NAN, .spread = (double)NAN, .attempts = 2};

static struct bisect_options with_workers(size_t workers)
{
	struct bisect_options options = usual;
	options.workers = workers;
	return options;
}

static void test_without_noise_it_is_the_plan(void **state)
{
	(void)state;
	for (size_t n = 1; n <= 256; n += CASES(12) == 1 ? 15 : n < 64 ? 1 : 5)
		for (size_t workers = 1; workers <= 15; workers++) {
			uint64_t draws = 256 * workers + n;
			const size_t culprits[] = {1, n, draw_between(&draws, 1, n)};
			for (size_t i = 0; i < 3; i++) {
				struct simulated_lab lab = {.candidates = n,
					.culprit = culprits[i],
					.workers = workers,
					.step = i == 0 ? 5 : -5,
					.noise = .01,
					.uneven = .05,
					.still = true};
				struct bisect_options options = with_workers(workers);
				struct simulated_end end;
				simulate_bisect(&lab, &options, &end, NULL);
				assert_int_equal(end.end, BISECT_FOUND);
				assert_true(end.hit);
				assert_true(end.search_rounds <= plan_rounds(n, workers));
			}
		}
}

/* Every culprit of some ranges; the worst of them takes as many rounds as the plan says. */
static void test_the_worst_culprit_takes_the_plan(void **state)
{
	(void)state;
	static const size_t ranges[][2] = {{16, 3}, {58, 3}, {64, 1}, {81, 2}, {100, 4}};
	for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
		size_t worst = 0;
		for (size_t culprit = 1; culprit <= ranges[i][0]; culprit++) {
			struct simulated_lab lab = {.candidates = ranges[i][0],
				.culprit = culprit,
				.workers = ranges[i][1],
				.step = 5,
				.noise = .01,
				.still = true};
			struct bisect_options options = with_workers(lab.workers);
			struct simulated_end end;
			simulate_bisect(&lab, &options, &end, NULL);
			assert_true(end.hit);
			if (end.search_rounds > worst)
				worst = end.search_rounds;
		}
		assert_int_equal(worst, plan_rounds(ranges[i][0], ranges[i][1]));
	}
}

static void test_plans_on_paper(void **state)
{
	(void)state;
	assert_int_equal(plan_rounds(16, 3), 2);
	assert_int_equal(plan_rounds(1, 3), 0);
	assert_int_equal(plan_rounds(58, 3), 3);
	assert_int_equal(plan_runs_a_probe(6.1 / 2.9, .95, 58, 3), 7);
}

/* A case of the bench. */
static struct simulated_lab lab_of(size_t i, double step)
{
	static const size_t ranges[] = {16, 64, 256};
	uint64_t draws = i;
	struct simulated_lab lab = {.candidates = ranges[i % 3],
		.workers = draw_between(&draws, 1, 8),
		.step = i % 2 == 0 ? step : -step,
		.noise = .02,
		.uneven = .05,
		.outliers = .02,
		.broken = .2 * draw_unit(&draws),
		.drift = .03 * draw_unit(&draws),
		.seed = i};
	lab.culprit = draw_between(&draws, 1, lab.candidates);
	return lab;
}

static void test_sets_hold_what_they_claim(void **state)
{
	(void)state;
	static const double steps[] = {2, 3, 5, 10};
	struct simulated_coverage coverage = {0};
	size_t count = CASES(160), held = 0, judged = 0;
	for (size_t i = 0; i < count; i++) {
		struct simulated_lab lab = lab_of(i, steps[i % 4]);
		struct bisect_options options = with_workers(lab.workers);
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, &coverage);
		if (end.end == BISECT_NOT_REPRODUCED)
			continue;
		assert_true(end.end == BISECT_FOUND || end.end == BISECT_SET);
		judged++;
		held += end.holds;
	}
	assert_true(judged > count * 9 / 10);
	assert_true((double)held >= .95 * (double)judged - 1);
	for (size_t l = 0; l < SIMULATED_LEVELS; l++)
		assert_true((double)coverage.held[l] >=
			    simulated_levels[l] * (double)coverage.asked[l] - 1);
}

static void test_a_flat_range_is_not_reproduced(void **state)
{
	(void)state;
	size_t count = CASES(120), wrong = 0;
	for (size_t i = 0; i < count; i++) {
		struct simulated_lab lab = lab_of(i, 0);
		struct bisect_options options = with_workers(lab.workers);
		struct simulated_end end;
		lab.culprit = 0;
		simulate_bisect(&lab, &options, &end, NULL);
		wrong += end.end != BISECT_NOT_REPRODUCED;
		assert_true(end.end != BISECT_NOT_REPRODUCED || end.ends.pairs >= 20);
	}
	assert_true(wrong <= count / 20);
}

static void test_the_wrong_direction_is_not_reproduced(void **state)
{
	(void)state;
	struct simulated_lab lab = lab_of(1, 5);
	struct bisect_options options = with_workers(lab.workers);
	struct simulated_end end;
	options.direction = lab.step > 0 ? -1 : 1;
	simulate_bisect(&lab, &options, &end, NULL);
	assert_int_equal(end.end, BISECT_NOT_REPRODUCED);
	options.direction = -options.direction;
	simulate_bisect(&lab, &options, &end, NULL);
	assert_true(end.hit);
}

static void test_more_than_one_step(void **state)
{
	(void)state;
	size_t said = 0, largest = 0, count = CASES(36);
	for (size_t i = 0; i < count; i++) {
		struct simulated_lab lab = {.candidates = 100,
			.culprit = 20 + i % 20,
			.workers = 1 + i % 3,
			.step = 20,
			.second = 8,
			.second_at = 50 + i % 30,
			.noise = .01,
			.seed = i};
		struct bisect_options options = with_workers(lab.workers);
		struct simulated_end end;
		simulate_bisect(&lab, &options, &end, NULL);
		said += end.more_steps;
		largest += end.hit;
	}
	assert_true(largest >= count - 1);
	assert_true(said >= count * 8 / 10);
}

/* A bisection driven by hand. */
struct talk {
	struct bisection *bisection;
	struct bisect_options options;
	size_t count, culprit;
	uint64_t draws;
	double noise;
	enum bisect_outcome (*outcome)(size_t position);
};

static void begin(struct talk *talk, size_t count, size_t culprit, double noise)
{
	if (talk->options.workers == 0)
		talk->options = usual;
	talk->count = count;
	talk->culprit = culprit;
	talk->noise = noise;
	talk->bisection = bisection_new(&talk->options, count);
}

static struct bisect_result result_of(struct talk *talk, const struct bisect_run *run, int64_t now)
{
	double level = run->position >= talk->culprit ? 106 : 100;
	struct bisect_result result = {.id = run->id,
		.worker = run->worker,
		.position = run->position,
		.outcome = talk->outcome ? talk->outcome(run->position) : BISECT_MEASURED,
		.begun = now,
		.lasted = MINUTE};
	if (result.outcome == BISECT_MEASURED)
		result.value = level + talk->noise * draw_normal(&talk->draws);
	return result;
}

static const struct bisect_status *finish(struct talk *talk)
{
	struct bisect_run run;
	size_t runs = 0;
	for (bool more = true; more && runs < RUNS;) {
		more = false;
		for (size_t worker = 0; worker < talk->options.workers; worker++)
			if (bisection_next(talk->bisection, worker, (int64_t)runs * MINUTE, &run)) {
				struct bisect_result result =
					result_of(talk, &run, (int64_t)runs++ * MINUTE);
				assert_true(bisection_tell(talk->bisection, &result));
				more = true;
			}
	}
	const struct bisect_status *status = bisection_status(talk->bisection);
	assert_int_equal(status->phase, BISECT_OVER);
	assert_int_equal(status->runs, runs);
	return status;
}

static enum bisect_outcome break_41_and_42(size_t position)
{
	return position == 41 || position == 42 ? BISECT_UNTESTABLE : BISECT_MEASURED;
}

static enum bisect_outcome fail_41_and_42(size_t position)
{
	return position == 41 || position == 42 ? BISECT_FAILED : BISECT_MEASURED;
}

/* The culprit, 43, cannot be told from the two before it. */
static void check_set_of_three(struct talk *talk)
{
	begin(talk, 60, 43, 1);
	const struct bisect_status *status = finish(talk);
	assert_int_equal(status->end, BISECT_SET);
	assert_int_equal(status->set_count, 3);
	assert_int_equal(status->broken, 2);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(status->set[i].position, 41 + i);
		assert_true(status->set[i].broken == (i < 2));
		assert_true(status->set[i].probability < .34);
	}
	assert_true(status->verified.low > 0 && status->verified.pairs >= 3);
	bisection_free(talk->bisection);
}

static void test_broken_commits_are_never_blamed_alone(void **state)
{
	(void)state;
	check_set_of_three(&(struct talk){.outcome = break_41_and_42});
	check_set_of_three(&(struct talk){.outcome = fail_41_and_42});
}

static enum bisect_outcome break_all(size_t position)
{
	return position % 20 == 0 ? BISECT_MEASURED : BISECT_UNTESTABLE;
}

static void test_nothing_between_the_ends_can_be_tested(void **state)
{
	(void)state;
	struct talk talk = {.outcome = break_all};
	begin(&talk, 20, 7, 1);
	const struct bisect_status *status = finish(&talk);
	assert_int_equal(status->end, BISECT_SET);
	assert_int_equal(status->set_count, 20);
	assert_int_equal(status->broken, 19);
	bisection_free(talk.bisection);
}

static enum bisect_outcome break_the_end(size_t position)
{
	return position == 60 ? BISECT_UNTESTABLE : BISECT_MEASURED;
}

static enum bisect_outcome fail_the_start(size_t position)
{
	return position == 0 ? BISECT_FAILED : BISECT_MEASURED;
}

static void test_an_end_that_is_broken(void **state)
{
	(void)state;
	struct talk talks[] = {{.outcome = break_the_end}, {.outcome = fail_the_start}};
	for (size_t i = 0; i < 2; i++) {
		begin(&talks[i], 60, 30, 1);
		assert_int_equal(finish(&talks[i])->end, BISECT_ENDS_BROKEN);
		bisection_free(talks[i].bisection);
	}
}

static void test_limits(void **state)
{
	(void)state;
	struct talk talk = {.options = usual};
	talk.options.most_runs = 15;
	begin(&talk, 500, 300, 3);
	const struct bisect_status *status = finish(&talk);
	assert_int_equal(status->end, BISECT_OUT_OF_BUDGET);
	assert_int_equal(status->runs, 15);
	assert_true(status->set_count > 1);
	bisection_free(talk.bisection);

	talk.options.most_runs = 0;
	talk.options.budget = 20 * MINUTE;
	begin(&talk, 500, 300, 3);
	status = finish(&talk);
	assert_int_equal(status->end, BISECT_OUT_OF_BUDGET);
	assert_int_equal(status->runs, 20);
	bisection_free(talk.bisection);
}

static void test_a_lost_run_is_asked_for_again(void **state)
{
	(void)state;
	struct talk talk = {0};
	struct bisect_run run, again;
	begin(&talk, 60, 30, 1);
	assert_true(bisection_next(talk.bisection, 0, 0, &run));
	assert_false(bisection_next(talk.bisection, 0, 0, &again));
	struct bisect_result lost = {.id = run.id, .outcome = BISECT_LOST};
	assert_true(bisection_tell(talk.bisection, &lost));
	assert_false(bisection_tell(talk.bisection, &lost));
	lost.id = 99;
	assert_false(bisection_tell(talk.bisection, &lost));
	size_t seen = 0;
	while (bisection_next(talk.bisection, 0, 0, &again) && again.phase == BISECT_ENDS &&
		seen < 2) {
		seen += again.position == run.position;
		struct bisect_result result = result_of(&talk, &again, 0);
		bisection_tell(talk.bisection, &result);
	}
	assert_int_equal(seen, 2);
	bisection_free(talk.bisection);
}

static size_t losses_left;

static enum bisect_outcome lose_many(size_t position)
{
	(void)position;
	return losses_left > 0 && losses_left-- > 0 ? BISECT_LOST : BISECT_MEASURED;
}

/* A program that is killed again and again while it measures the ends. */
static void test_losses_say_nothing_of_a_commit(void **state)
{
	(void)state;
	struct talk talk = {.outcome = lose_many};
	losses_left = 100;
	begin(&talk, 60, 30, 1);
	assert_int_equal(finish(&talk)->end, BISECT_FOUND);
	assert_int_equal(losses_left, 0);
	bisection_free(talk.bisection);
}

/* The status was asked for before: by the clock alone it is over, too. */
static void test_the_time_is_over_between_runs(void **state)
{
	struct bisect_options options = usual;
	struct bisection *bisection;
	struct bisect_run run;

	(void)state;
	options.budget = MINUTE;
	bisection = bisection_new(&options, 8);
	assert_true(bisection_next(bisection, 0, 1000, &run));
	assert_true(bisection_tell(bisection, &(struct bisect_result){.id = run.id,
						      .worker = run.worker,
						      .position = run.position,
						      .outcome = BISECT_LOST,
						      .begun = 1000,
						      .lasted = MINUTE - 1}));
	assert_int_equal(bisection_status(bisection)->phase, BISECT_ENDS);
	assert_false(bisection_next(bisection, 0, 1000 + MINUTE, &run));
	assert_int_equal(bisection_status(bisection)->phase, BISECT_OVER);
	assert_int_equal(bisection_status(bisection)->end, BISECT_OUT_OF_BUDGET);
	bisection_free(bisection);
}

static void test_cancelled(void **state)
{
	(void)state;
	struct talk talk = {0};
	struct bisect_run run;
	begin(&talk, 60, 30, 1);
	assert_true(bisection_next(talk.bisection, 0, 0, &run));
	bisection_cancel(talk.bisection);
	assert_int_equal(bisection_status(talk.bisection)->end, BISECT_CANCELLED);
	struct bisect_result result = result_of(&talk, &run, 0);
	assert_true(bisection_tell(talk.bisection, &result));
	assert_false(bisection_next(talk.bisection, 0, 0, &run));
	bisection_free(talk.bisection);
}

static void test_a_single_candidate(void **state)
{
	(void)state;
	struct talk talk = {0};
	begin(&talk, 1, 1, 1);
	const struct bisect_status *status = finish(&talk);
	assert_int_equal(status->end, BISECT_FOUND);
	assert_int_equal(status->set_count, 1);
	assert_true(status->verified.low > 3 && status->verified.high < 9);
	bisection_free(talk.bisection);
}

/* Values that are not all positive are taken as they are. */
static void test_values_around_zero(void **state)
{
	(void)state;
	struct talk talk = {0};
	struct bisect_run run;
	begin(&talk, 60, 30, 1);
	for (size_t runs = 0; bisection_next(talk.bisection, 0, 0, &run) && runs < RUNS; runs++) {
		struct bisect_result result = result_of(&talk, &run, 0);
		result.value -= 103;
		bisection_tell(talk.bisection, &result);
	}
	const struct bisect_status *status = bisection_status(talk.bisection);
	assert_int_equal(status->end, BISECT_FOUND);
	assert_int_equal(status->set[0].position, 30);
	bisection_free(talk.bisection);
}

/* One line of a journal. */
struct line {
	bool begins;
	struct bisect_run run;
	struct bisect_result result;
};

static size_t record(struct talk *talk, struct line *lines)
{
	size_t count = 0;
	struct bisect_run run;
	for (bool more = true; more;) {
		more = false;
		size_t first = count;
		for (size_t worker = 0; worker < talk->options.workers; worker++)
			if (bisection_next(talk->bisection, worker, 0, &run)) {
				lines[count++] = (struct line){.begins = true, .run = run};
				more = true;
			}
		for (size_t i = count; i-- > first;) {
			struct line *line = &lines[count];
			*line = (struct line){.result = result_of(talk, &lines[i].run, 0)};
			bisection_tell(talk->bisection, &line->result);
			count++;
			if (i % 2 == 0) /* and their status is asked for at odd times */
				bisection_status(talk->bisection);
		}
		assert_true(count < RUNS);
	}
	return count;
}

static struct bisection *replay(const struct talk *talk, const struct line *lines, size_t count)
{
	struct bisection *bisection = bisection_new(&talk->options, talk->count);
	for (size_t i = 0; i < count; i++)
		if (lines[i].begins)
			bisection_resume(bisection, &lines[i].run);
		else
			assert_true(bisection_tell(bisection, &lines[i].result));
	return bisection;
}

static void check_equal(const struct bisect_status *a, const struct bisect_status *b, size_t count)
{
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->end, b->end);
	assert_int_equal(a->runs, b->runs);
	assert_int_equal(a->rounds, b->rounds);
	assert_int_equal(a->broken, b->broken);
	assert_int_equal(a->set_count, b->set_count);
	assert_memory_equal(a->probability, b->probability, (count + 1) * sizeof *a->probability);
	assert_memory_equal(&a->ends, &b->ends, sizeof a->ends);
	assert_memory_equal(&a->verified, &b->verified, sizeof a->verified);
}

static void check_same_run(const struct bisect_run *a, const struct bisect_run *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->worker, b->worker);
	assert_int_equal(a->position, b->position);
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->round, b->round);
}

static enum bisect_outcome some_break(size_t position)
{
	return position % 7 == 3   ? BISECT_UNTESTABLE
	       : position % 9 == 5 ? BISECT_FAILED
				   : BISECT_MEASURED;
}

/* Told up to any line and then on as before, it asks for the same runs and ends the same. */
static void test_told_again_it_is_where_it_was(void **state)
{
	(void)state;
	static struct line lines[RUNS];
	for (size_t workers = 1; workers <= 3; workers++) {
		struct talk talk = {
			.options = with_workers(workers), .outcome = some_break, .draws = workers};
		begin(&talk, 70, 41, 2);
		size_t count = record(&talk, lines);
		for (size_t prefix = 0; prefix <= count; prefix++) {
			struct bisection *again = replay(&talk, lines, prefix);
			for (size_t i = prefix; i < count; i++) {
				struct bisect_run run;
				if (!lines[i].begins) {
					assert_true(bisection_tell(again, &lines[i].result));
					continue;
				}
				assert_true(bisection_next(again, lines[i].run.worker, 0, &run));
				check_same_run(&run, &lines[i].run);
			}
			check_equal(bisection_status(again), bisection_status(talk.bisection),
				talk.count);
			bisection_free(again);
		}
		bisection_free(talk.bisection);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_noise_it_is_the_plan),
		cmocka_unit_test(test_the_worst_culprit_takes_the_plan),
		cmocka_unit_test(test_plans_on_paper),
		cmocka_unit_test(test_sets_hold_what_they_claim),
		cmocka_unit_test(test_a_flat_range_is_not_reproduced),
		cmocka_unit_test(test_the_wrong_direction_is_not_reproduced),
		cmocka_unit_test(test_more_than_one_step),
		cmocka_unit_test(test_broken_commits_are_never_blamed_alone),
		cmocka_unit_test(test_nothing_between_the_ends_can_be_tested),
		cmocka_unit_test(test_an_end_that_is_broken),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_a_lost_run_is_asked_for_again),
		cmocka_unit_test(test_losses_say_nothing_of_a_commit),
		cmocka_unit_test(test_the_time_is_over_between_runs),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_a_single_candidate),
		cmocka_unit_test(test_values_around_zero),
		cmocka_unit_test(test_told_again_it_is_where_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
