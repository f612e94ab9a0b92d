/*
 * Scores against numbers worked out by hand, and the examples that van den Burg and Williams give
 * with their definitions.
 */
// clang-format off
#include "unit.h"
// clang-format on

#include <math.h>

#include "detectors/online_eval.h"
#include "detectors/score.h"

#define PLACES(...)                                                                                \
	((struct places){(size_t[]){__VA_ARGS__}, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)})
#define NOWHERE ((struct places){NULL, 0})

static void near(double value, double wanted)
{
	if (fabs(value - wanted) > 1e-12)
		fail_msg("%.17g instead of %.17g", value, wanted);
}

static void hits_are_one_to_one(void **state)
{
	(void)state;
	/* 1 takes 1; 10 takes 8, not 5; 20 takes the one that is there; nothing is near 23. */
	assert_int_equal(score_hits(PLACES(1, 10, 20, 23), PLACES(1, 3, 5, 8, 20), 5), 3);
	assert_int_equal(score_hits(NOWHERE, PLACES(1), 5), 0);
	assert_int_equal(score_hits(PLACES(1), NOWHERE, 5), 0);
	/* Two labels, one found: it is given once. */
	assert_int_equal(score_hits(PLACES(10, 12), PLACES(11), 5), 1);
	/* The first takes 12, which is as near as 8 is, but later: the earlier one is taken. */
	assert_int_equal(score_hits(PLACES(10, 13), PLACES(8, 12), 2), 2);
	assert_int_equal(score_hits(PLACES(10), PLACES(15), 5), 1);
	assert_int_equal(score_hits(PLACES(10), PLACES(16), 5), 0);
	assert_int_equal(score_hits(PLACES(10), PLACES(4), 5), 0);
	assert_int_equal(score_hits(PLACES(10), PLACES(10), 0), 1);
}

/* All of them, which score_add and score_f1_annotated need besides each one's. */
static struct labels labels_of(
	const struct places *annotators, size_t count, struct places all, size_t n)
{
	return (struct labels){
		.annotators = annotators, .annotator_count = count, .all = all, .n = n};
}

static void annotated_f1(void **state)
{
	(void)state;
	const struct places four[] = {PLACES(10, 20), PLACES(11, 20), PLACES(10), PLACES(5)};
	struct labels labels = labels_of(four, 4, PLACES(5, 10, 11, 20), 45);
	near(score_f1_annotated(&labels, PLACES(10, 20), 5), 1);
	const struct places three[] = {NOWHERE, PLACES(10), PLACES(50)};
	labels = labels_of(three, 3, PLACES(10, 50), 100);
	near(score_f1_annotated(&labels, PLACES(10), 5), 0.9090909090909091);
	near(score_f1_annotated(&labels, NOWHERE, 5), 0.8);
}

static void covering(void **state)
{
	(void)state;
	const struct places some[] = {PLACES(10, 20), PLACES(10), PLACES(5)};
	struct labels labels = labels_of(some, 3, PLACES(5, 10, 20), 45);
	near(score_cover(&labels, PLACES(10, 20)), 0.7962962962962963);
	const struct places others[] = {NOWHERE, PLACES(10), PLACES(40)};
	labels = labels_of(others, 3, PLACES(10, 40), 45);
	near(score_cover(&labels, PLACES(10)), 0.7954144620811286);
	near(score_cover(&labels, NOWHERE), 0.8189300411522634);
}

static void rand_index(void **state)
{
	(void)state;
	const struct places one[] = {PLACES(2)};
	struct labels labels = labels_of(one, 1, one[0], 4);
	near(score_rand(&labels, PLACES(2)), 1);
	/* Of the six pairs, (0,1) and (2,3) are together in the labels; all are in one segment. */
	near(score_rand(&labels, NOWHERE), 2.0 / 6);
	/* {0} {1,2,3}: together there are (1,2) (1,3) (2,3); both agree on (2,3), (0,2), (0,3). */
	near(score_rand(&labels, PLACES(1)), 3.0 / 6);
	/* {0} {1} {2} {3}: both keep apart the four pairs across. */
	near(score_rand(&labels, PLACES(1, 2, 3)), 4.0 / 6);
	const struct places two[] = {PLACES(2), NOWHERE};
	labels = labels_of(two, 2, PLACES(2), 4);
	near(score_rand(&labels, NOWHERE), (2.0 / 6 + 1) / 2);
	const struct places single[] = {NOWHERE};
	labels = labels_of(single, 1, NOWHERE, 1);
	near(score_rand(&labels, NOWHERE), 1);
}

static void tallies(void **state)
{
	(void)state;
	struct score_tally tally = {0};
	near(score_f1(&tally), 1);
	const struct places one[] = {PLACES(50)};
	struct labels labels = labels_of(one, 1, one[0], 100);
	score_add(&tally, &labels, NOWHERE, 5);
	near(score_recall(&tally), 0);
	near(score_f1(&tally), 0);
	score_add(&tally, &labels, PLACES(20, 52), 5);
	near(score_precision(&tally), 0.5);
	near(score_recall(&tally), 0.5);
	near(score_f1(&tally), 0.5);
	/* One of two people has seen it: right, and half of what they say on average. */
	tally = (struct score_tally){0};
	const struct places two[] = {PLACES(50), NOWHERE};
	labels = labels_of(two, 2, PLACES(50), 100);
	score_add(&tally, &labels, PLACES(50), 0);
	near(score_precision(&tally), 1);
	near(tally.seen, 0.5);
	near(score_recall(&tally), 1);
}

static void unsure_spans(void **state)
{
	(void)state;
	const struct score_span spans[] = {{10, 12}, {20, 21}};
	struct labels labels = {.spans = spans, .span_count = 2, .n = 30};
	assert_false(labels_unsure(&labels, 9));
	assert_true(labels_unsure(&labels, 10));
	assert_true(labels_unsure(&labels, 11));
	assert_false(labels_unsure(&labels, 12));
	assert_true(labels_unsure(&labels, 20));
	labels.maybe = PLACES(28);
	assert_false(labels_unsure(&labels, 22));
	assert_true(labels_unsure(&labels, 23));
	labels.maybe = NOWHERE;
	/* 9 matches the label beside a span, 11 the label within it; 10 and 20 count for nothing.
	 */
	size_t room[5];
	labels.all = PLACES(8, 11);
	struct places counted = score_counted(&labels, PLACES(9, 10, 11, 20, 25), 2, room);
	assert_int_equal(counted.count, 3);
	assert_memory_equal(room, ((size_t[]){9, 11, 25}), 3 * sizeof *room);
}

static struct change up(size_t index, size_t after)
{
	return (struct change){
		.index = index, .level_before = 1, .level_after = 2, .count_after = after};
}

/* Nothing that a change could stand on. */
static const double flat[1000];

static void an_alarm_is_one_and_has_a_delay(void **state)
{
	(void)state;
	const struct confirm_rule off = {.mode = CONFIRM_OFF};
	const struct places truth[] = {PLACES(20)};
	struct labels labels = labels_of(truth, 1, truth[0], 60);
	for (int tracked = 0; tracked < 2; tracked++) {
		struct follower *follower = follower_new(&off, tracked);
		size_t delay;
		const struct change first = up(21, 3), moved = up(20, 5),
				    both[] = {moved, up(40, 2)};
		follower_take(follower, flat, 22, NULL, 0);
		follower_take(follower, flat, 24, &first, 1);
		follower_take(follower, flat, 25, &moved, 1);
		follower_take(follower, flat, 42, both, 2);
		follower_take(follower, flat, 43, &moved, 1);
		struct followed judged = follower_judge(follower, &labels, &moved, 1);
		assert_int_equal(judged.alarms, 2);
		assert_int_equal(judged.wrong, 1);
		assert_int_equal(judged.withdrawn, 1);
		assert_int_equal(judged.true_withdrawn, 0);
		assert_true(follower_delay(follower, 20, &delay));
		assert_int_equal(delay, 4);
		assert_false(follower_delay(follower, 50, &delay));
		follower_free(follower);
	}
}

static void a_candidate_that_goes_is_no_alarm(void **state)
{
	(void)state;
	const struct confirm_rule eight = {.mode = CONFIRM_POINTS, .points = 8};
	const struct places truth[] = {PLACES(20)};
	struct labels labels = labels_of(truth, 1, truth[0], 60);
	struct follower *follower = follower_new(&eight, true);
	size_t delay;
	struct change change = up(30, 4);
	follower_take(follower, flat, 34, &change, 1);
	follower_take(follower, flat, 35, NULL, 0);
	change = up(20, 7);
	follower_take(follower, flat, 27, &change, 1);
	change.count_after = 8;
	follower_take(follower, flat, 28, &change, 1);
	follower_take(follower, flat, 29, NULL, 0);
	struct followed judged = follower_judge(follower, &labels, NULL, 0);
	assert_int_equal(judged.alarms, 1);
	assert_int_equal(judged.wrong, 0);
	assert_int_equal(judged.withdrawn, 1);
	assert_int_equal(judged.true_withdrawn, 1);
	assert_true(follower_delay(follower, 20, &delay));
	assert_int_equal(delay, 8);
	follower_free(follower);
}

/* One that wanders off step by step is the same where it is tracked, and two by place alone. */
static void a_wandering_change(void **state)
{
	(void)state;
	const struct confirm_rule off = {.mode = CONFIRM_OFF};
	const struct score_span span = {0, 60};
	const struct places truth[] = {NOWHERE};
	struct labels labels = labels_of(truth, 1, NOWHERE, 60);
	labels.spans = &span;
	labels.span_count = 1;
	for (int tracked = 0; tracked < 2; tracked++) {
		struct follower *follower = follower_new(&off, tracked);
		struct change change;
		for (size_t i = 0; i <= 8; i += 4) {
			change = up(20 + i, 10);
			follower_take(follower, flat, 40 + i, &change, 1);
		}
		struct followed judged = follower_judge(follower, &labels, &change, 1);
		assert_int_equal(judged.alarms, tracked ? 1 : 2);
		assert_int_equal(judged.wrong, 0);
		assert_int_equal(judged.withdrawn, tracked ? 0 : 1);
		follower_free(follower);
	}
}

/* Tracked, a change that is not found stands while the values show it, and one that stands is what
 * is found beside it. */
static void a_standing_change(void **state)
{
	(void)state;
	const struct confirm_rule off = {.mode = CONFIRM_OFF};
	const struct places truth[] = {NOWHERE};
	struct labels labels = labels_of(truth, 1, NOWHERE, 60);
	double rise[60];
	for (size_t i = 0; i < 60; i++)
		rise[i] = (double)i;
	for (int tracked = 0; tracked < 2; tracked++) {
		struct follower *follower = follower_new(&off, tracked);
		const struct change first = up(20, 20), other = up(35, 20);
		follower_take(follower, rise, 40, &first, 1);
		follower_take(follower, rise, 41, NULL, 0);
		struct followed judged = follower_judge(follower, &labels, NULL, 0);
		assert_int_equal(judged.withdrawn, tracked ? 0 : 1);
		follower_take(follower, rise, 55, &other, 1);
		judged = follower_judge(follower, &labels, &other, 1);
		assert_int_equal(judged.alarms, tracked ? 1 : 2);
		assert_int_equal(judged.withdrawn, tracked ? 0 : 1);
		follower_take(follower, flat, 56, NULL, 0);
		judged = follower_judge(follower, &labels, NULL, 0);
		assert_int_equal(judged.withdrawn, tracked ? 1 : 2);
		follower_free(follower);
	}
}

/* What is seen in old points because other cycles are removed is no news; in young ones it is. */
static void accepted_changes_are_no_news(void **state)
{
	(void)state;
	const struct confirm_rule off = {.mode = CONFIRM_OFF};
	const struct places truth[] = {NOWHERE};
	struct labels labels = labels_of(truth, 1, NOWHERE, 300);
	const struct change told = up(30, 100), found[] = {up(31, 50), up(149, 51), up(150, 50)};
	for (int tracked = 0; tracked < 2; tracked++) {
		struct follower *follower = follower_new(&off, tracked);
		size_t delay;
		follower_take(follower, flat, 199, &told, 1);
		follower_accept(follower, 200, found, 3);
		follower_take(follower, flat, 201, found, 3);
		follower_take(follower, flat, 202, found, 3);
		struct followed judged = follower_judge(follower, &labels, found, 3);
		assert_int_equal(judged.alarms, 2);
		assert_int_equal(judged.withdrawn, 0);
		assert_true(follower_delay(follower, 30, &delay));
		assert_false(follower_delay(follower, 144, &delay));
		assert_true(follower_delay(follower, 150, &delay));
		assert_int_equal(delay, 51);
		follower_free(follower);
	}
}

/* More than the first room has. */
static void many_alarms(void **state)
{
	(void)state;
	const struct confirm_rule off = {.mode = CONFIRM_OFF};
	const struct places truth[] = {NOWHERE};
	struct labels labels = labels_of(truth, 1, NOWHERE, 1000);
	struct follower *follower = follower_new(&off, true);
	struct change changes[50];
	for (size_t i = 0; i < 50; i++)
		changes[i] = up(10 * (i + 1), 5);
	follower_take(follower, flat, 600, changes, 50);
	struct followed judged = follower_judge(follower, &labels, changes, 50);
	assert_int_equal(judged.alarms, 50);
	assert_int_equal(judged.wrong, 50);
	assert_int_equal(judged.withdrawn, 0);
	follower_free(follower);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_are_one_to_one),
		cmocka_unit_test(annotated_f1),
		cmocka_unit_test(covering),
		cmocka_unit_test(rand_index),
		cmocka_unit_test(tallies),
		cmocka_unit_test(unsure_spans),
		cmocka_unit_test(an_alarm_is_one_and_has_a_delay),
		cmocka_unit_test(a_candidate_that_goes_is_no_alarm),
		cmocka_unit_test(a_wandering_change),
		cmocka_unit_test(a_standing_change),
		cmocka_unit_test(accepted_changes_are_no_news),
		cmocka_unit_test(many_alarms),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
