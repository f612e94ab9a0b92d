/* What becomes of a message that could not be sent. */
#include "unit.h"

#include "agent/notify/retry_policy.h"

#define DAY INT64_C(86400000)

static const struct failed_attempt passing = {
	.kind = ERROR_DATA, .retry = true, .retry_after = -1, .tries = 1, .give_up_after = DAY};
static const struct failed_attempt misconfigured = {
	.kind = ERROR_USAGE, .retry_after = -1, .tries = 1, .trying = 30 * DAY};

static int64_t wait_of(struct failed_attempt setback)
{
	int64_t wait;

	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_TRY_AGAIN);
	return wait;
}

static void test_waits_double(void **state)
{
	struct failed_attempt setback = passing;

	(void)state;
	for (int64_t expected = 1000; expected <= 256000; expected *= 2, setback.tries++)
		assert_int_equal(wait_of(setback), expected);
	assert_int_equal(wait_of(setback), 300000);
	setback.tries = INT64_MAX;
	assert_int_equal(wait_of(setback), 300000);
}

static void test_the_receiver_says_when(void **state)
{
	struct failed_attempt setback = passing;

	(void)state;
	setback.tries = 8;
	setback.retry_after = 3000;
	assert_int_equal(wait_of(setback), 3000);
	setback.retry_after = 0;
	assert_int_equal(wait_of(setback), 1000);
	setback.retry_after = 10 * DAY;
	assert_int_equal(wait_of(setback), 3600000);
}

static void test_doubt_waits_longer(void **state)
{
	struct failed_attempt setback = passing;

	(void)state;
	setback.maybe_delivered = MAYBE_DELIVERED_CHECK;
	assert_int_equal(wait_of(setback), 3000);
	setback.maybe_delivered = MAYBE_DELIVERED_BLIND;
	assert_int_equal(wait_of(setback), 60000);
	setback.retry_after = 1000;
	assert_int_equal(wait_of(setback), 60000);
	setback.retry_after = -1;
	setback.tries = 9;
	assert_int_equal(wait_of(setback), 256000);
}

static void test_a_day_of_trying_is_enough(void **state)
{
	struct failed_attempt setback = passing;
	int64_t wait;

	(void)state;
	setback.trying = DAY;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_TRY_AGAIN);
	setback.trying++;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_GIVE_UP);
	setback.give_up_after = INT64_MAX;
	setback.trying = 1000 * DAY;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_TRY_AGAIN);
	setback.give_up_after = DAY;
	setback.once = true;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_TRY_AGAIN);
}

/* However long it takes: a token that was revoked on Friday is mended on Monday. */
static void test_what_a_person_must_mend_is_kept(void **state)
{
	struct failed_attempt setback = misconfigured;
	int64_t wait;

	(void)state;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_CONFIG);
	assert_int_equal(wait, 300000);
	setback.once = true;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_NEXT_RUN);
}

static void test_what_never_will_is_given_up(void **state)
{
	struct failed_attempt setback = misconfigured;
	int64_t wait;

	(void)state;
	setback.kind = ERROR_DATA;
	setback.trying = 0;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_GIVE_UP);
	setback.once = true;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_GIVE_UP);
}

static void test_a_single_pass_does_not_wait_long(void **state)
{
	struct failed_attempt setback = passing;
	int64_t wait;

	(void)state;
	setback.once = true;
	setback.tries = 2;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_TRY_AGAIN);
	setback.tries = 3;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_NEXT_RUN);
	setback.tries = 1;
	setback.retry_after = 30001;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_NEXT_RUN);
	setback.retry_after = -1;
	setback.maybe_delivered = MAYBE_DELIVERED_BLIND;
	assert_int_equal(retry_policy_for(&setback, &wait), RETRY_POLICY_NEXT_RUN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_double),
		cmocka_unit_test(test_the_receiver_says_when),
		cmocka_unit_test(test_doubt_waits_longer),
		cmocka_unit_test(test_a_day_of_trying_is_enough),
		cmocka_unit_test(test_what_a_person_must_mend_is_kept),
		cmocka_unit_test(test_what_never_will_is_given_up),
		cmocka_unit_test(test_a_single_pass_does_not_wait_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
