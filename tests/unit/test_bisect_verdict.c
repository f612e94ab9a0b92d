/* The words of a verdict, its JSON and its bars. */
#include "unit.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "agent/bisect/verdict_text.h"

#define A "4f2c91a789abcdef0123456789abcdef01234567"
#define B "77aa012789abcdef0123456789abcdef01234567"
#define C "77aa013789abcdef0123456789abcdef01234567"

static const char *const ids[] = {A, B, C};
static const char *const subjects[] = {"", "One", "T\x1b[31mwo", "Three"};
static struct journal_setup setup = {.good = "0000000789abcdef0123456789abcdef01234567",
	.candidates = {ids, 3},
	.subjects = {subjects, 4}};
static const double probability[] = {0, .97, .02, .01};

static void check(const struct bisect_status *status, const char *expected)
{
	struct buf out = {0}, json = {0};
	json_t *document;

	verdict_text(&out, status, &setup);
	assert_string_equal(out.data, expected);
	buf_free(&out);
	buf_char(&json, '{');
	verdict_json(&json, status, &setup);
	buf_char(&json, '}');
	document = json_loadb(json.data, json.length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(document);
	assert_int_equal(json_array_size(json_object_get(document, "set")), status->set_count);
	json_decref(document);
	buf_free(&json);
}

static struct bisect_candidate set[] = {{1, .97, false}, {2, .02, true}, {3, .01, true}};

static struct bisect_status over(enum bisect_end end, size_t count)
{
	return (struct bisect_status){.phase = BISECT_OVER,
		.end = end,
		.set = set,
		.set_count = count,
		.probability = probability,
		.ends = {.4, -1, 1.8, 20},
		.verified = {6.3, 5.1, 7.4, 12}};
}

static void test_words(void **state)
{
	struct bisect_status status = over(BISECT_FOUND, 1);

	(void)state;
	check(&status, "first bad: 4f2c91a (97%), 77aa012 (2%); verified against its parent: "
		       "+6.3% [5.1, 7.4], 12 pairs");
	status.more_steps = true;
	check(&status, "first bad: 4f2c91a (97%), 77aa012 (2%); verified against its parent: "
		       "+6.3% [5.1, 7.4], 12 pairs; the range seems to have more than one step, "
		       "this is the largest");
	status = over(BISECT_SET, 3);
	check(&status, "first bad: one of 3, 2 of them untestable: 4f2c91a (97%), 77aa012 "
		       "(2%, cannot be tested), 77aa013 (1%, cannot be tested); no testable commit "
		       "separates them");
	status = over(BISECT_OUT_OF_BUDGET, 1);
	check(&status, "first bad: one of 1: 4f2c91a (97%); the budget is used up");
	status = over(BISECT_NOT_REPRODUCED, 0);
	check(&status, "not reproduced: +0.4% [-1.0, 1.8] after 20 pairs");
	status = over(BISECT_ENDS_BROKEN, 0);
	check(&status, "cannot measure an end of the range");
	status = over(BISECT_CANCELLED, 3);
	check(&status, "cancelled");
	status = (struct bisect_status){
		.phase = BISECT_SEARCH, .set = set, .set_count = 2, .probability = probability};
	check(&status, "2 of 3 commits left: 4f2c91a (97%), 77aa012 (2%, cannot be tested)");
	status.ends.percent = (double)NAN;
	status.phase = BISECT_ENDS;
	check(&status, "measuring the ends");
}

static void test_culprit(void **state)
{
	struct bisect_status status = over(BISECT_FOUND, 1);
	struct buf json = {0};

	(void)state;
	verdict_json(&json, &status, &setup);
	assert_non_null(strstr(json.data, "\"phase\": \"over\", \"end\": \"found\", \"culprit\": "
					  "{\"commit\": \"" A "\", \"position\": 1, \"subject\": "
					  "\"One\", \"probability\": 0.97, \"broken\": false}"));
	buf_clear(&json);
	status.end = BISECT_SET;
	verdict_json(&json, &status, &setup);
	assert_non_null(strstr(json.data, "\"end\": \"set\", \"culprit\": null"));
	buf_free(&json);
}

static void test_bars(void **state)
{
	struct journal_entry runs[12];
	struct journal journal = {.setup = &setup, .entries = runs, .count = 12};
	struct bisect_status status = over(BISECT_FOUND, 1);
	struct buf out = {0};

	(void)state;
	for (size_t i = 0; i < 12; i++)
		runs[i] = (struct journal_entry){.kind = JOURNAL_RESULT,
			.result = {.position = i < 4    ? 0
					       : i < 10 ? 1
							: 2,
				.outcome = i < 10 ? BISECT_MEASURED : BISECT_FAILED,
				.value = (i < 4 ? 100 : 108) + (i % 2 ? .5 : -.5)}};
	verdict_plot(&out, &status, &journal, 200);
	assert_non_null(strstr(out.data, "0000000          100     4 good\n"));
	assert_non_null(strstr(out.data, "4f2c91a          108     6 \xE2\x96\x88"));
	assert_non_null(strstr(out.data, "97% One\n"));
	assert_non_null(strstr(out.data, "fails"));
	assert_null(strchr(out.data, '\x1b'));
	buf_free(&out);
}

/* Seven digits, or as many as tell one from the others. */
static void test_short_names(void **state)
{
	static const char *const alike[] = {"0123456781234567890123456789012345678901",
		"f123456781234567890123456789012345678901"};
	const struct journal_setup three = {
		.good = "0123456791234567890123456789012345678901", .candidates = {alike, 2}};
	char out[VERDICT_ID];

	(void)state;
	assert_string_equal(verdict_short(&three, 0, out), "012345679");
	assert_string_equal(verdict_short(&three, 1, out), "012345678");
	assert_string_equal(verdict_short(&three, 2, out), "f123456");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_culprit),
		cmocka_unit_test(test_bars),
		cmocka_unit_test(test_short_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
