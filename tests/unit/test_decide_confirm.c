/*
 * agent/decide/confirm: a row for each reason why a change waits, or is recorded without being
 * told.
 */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "agent/base/arena.h"
#include "agent/base/when.h"
#include "agent/decide/confirm.h"

#define NOW INT64_C(1700000000000)
#define DAY INT64_C(86400000)

static const struct confirm_rule at_once = {.mode = CONFIRM_OFF}, ten = {CONFIRM_POINTS, 10};

static struct change step(double pvalue, double before, double after)
{
	return (struct change){.pvalue = pvalue,
		.level_before = before,
		.level_after = after,
		.stddev_after = 1,
		.count_before = 100,
		.count_after = 5,
		.size_low = (double)NAN,
		.size_high = (double)NAN};
}

/* One change of one series that is told, if nothing is added. */
static struct confirm_case plain(const struct change *change)
{
	return (struct confirm_case){.rule = &at_once,
		.change = change,
		.first_count = 5,
		.of = change,
		.time = NOW,
		.seen = NOW,
		.until = NOW,
		.clock = NOW};
}

static void test_table(void **state)
{
	(void)state;
	static const char *const age = "said before";
	static const struct {
		const char *name;
		struct confirm_case add; /* what differs from the plain case, and is not 0 */
		enum verdict verdict;
		const char *reason; /* its beginning; NULL: none */
		const char *word;
		int64_t until;
	} rows[] = {
		{"nothing against it", {0}, PASS, NULL, NULL, 0},
		{"the rule", {.rule = &ten}, HOLD,
			"the `confirm` rule does not hold yet: ", "confirmation", 0},
		{"nothing new", {.again = age}, HOLD, age, NULL, 0},
		{"its end", {.doubt = DOUBT_OVER}, HOLD, "perhaps over: ", "confirmation", 0},
		{"the end of an earlier one", {.doubt = DOUBT_END}, HOLD,
			"perhaps the end of an earlier change of the other direction: ",
			"confirmation", 0},
		{"such an end, and the rule", {.doubt = DOUBT_END, .rule = &ten}, HOLD,
			"perhaps the end of an earlier change ", "confirmation", 0},
		{"its end, and the rule", {.doubt = DOUBT_OVER, .rule = &ten}, HOLD,
			"the `confirm` rule does not hold yet: ", "confirmation", 0},
		{"its past", {.precedent = PRECEDENT_PASSED}, HOLD,
			"the series has had passing movements of the same size and duration before",
			"precedent", 0},
		{"too many series", {.share = 0.001, .series = 200}, HOLD,
			"not among the changes that `fdr` allows all series together: rank 1 "
			"among 200 series, p 0.0001 > 5e-06 (fdr 0.001 x 1 / 200)",
			"fdr", 0},
		{"few series", {.share = 0.05, .series = 200}, PASS, NULL, NULL, 0},
		{"no cycle known", {.until = NOW + DAY}, HOLD,
			"held until a cycle can be ruled out", "hold", NOW + DAY},
		{"a cycle, and the rule", {.until = NOW + DAY, .rule = &ten}, HOLD,
			"the `confirm` rule does not hold yet", "confirmation", 0},
		{"its hold is over", {.seen = NOW - DAY, .until = NOW - 1}, PASS, NULL, NULL, 0},
		{"the end of another", {.covered = true}, DROP,
			"the end of another change, announced as its recovery", "way_back", 0},
		{"such an end is no discovery", {.covered = true, .share = 0.001, .series = 200},
			DROP, "the end of another change", "way_back", 0},
		{"such an end waits, too", {.covered = true, .rule = &ten}, HOLD,
			"the `confirm` rule", "confirmation", 0},
		{"too old", {.silent = age}, DROP, age, NULL, 0},
		{"too old, and not sure", {.silent = age, .rule = &ten}, HOLD, age, NULL, 0},
		{"too old, and nothing to wait for",
			{.silent = age, .rule = &ten, .again = "as before", .at_once = true}, DROP,
			age, NULL, 0},
		{"too old for a past and an end",
			{.silent = age, .doubt = DOUBT_OVER, .precedent = PRECEDENT_PASSED}, DROP,
			age, NULL, 0},
		{"too old to be held", {.silent = age, .until = NOW + DAY}, DROP, age, NULL, 0},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct confirm_case *add = &rows[i].add;
		struct arena *arena = arena_new();
		struct change change = step(1e-4, 100, 110);
		struct confirm_case at = plain(&change);
		const char *reason = rows[i].reason;

		at.rule = add->rule ? add->rule : at.rule;
		at.seen = add->seen != 0 ? add->seen : at.seen;
		at.until = add->until != 0 ? add->until : at.until;
		at.silent = add->silent;
		at.at_once = add->at_once;
		at.again = add->again;
		at.doubt = add->doubt;
		at.covered = add->covered;
		at.precedent = add->precedent;
		at.share = add->share;
		at.series = add->series;
		confirm_decide(arena, &at, 1);
		if (at.decision.verdict != rows[i].verdict || at.decision.until != rows[i].until ||
			!reason != !at.decision.reason ||
			(reason && strncmp(at.decision.reason, reason, strlen(reason)) != 0))
			fail_msg("%s: %d, %s, until %lld", rows[i].name, at.decision.verdict,
				at.decision.reason ? at.decision.reason : "no reason",
				(long long)at.decision.until);
		if (rows[i].word)
			assert_string_equal(confirm_word(at.decision.reason), rows[i].word);
		else
			assert_null(confirm_word(at.decision.reason));
		arena_free(arena);
	}
}

/* What came and went while it was held is settled, both ways; not while the way back is unsure. */
static void test_back_before_the_hold_ends(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	const struct change up = step(1e-4, 100, 110), down = step(1e-4, 110, 100);

	for (int sure = 0; sure < 2; sure++) {
		struct confirm_case cases[] = {plain(&up), plain(&down)};

		for (size_t i = 0; i < 2; i++) {
			cases[i].of = &up;
			cases[i].time = NOW - 2 * DAY + (int64_t)i;
			cases[i].seen = cases[i].time;
			cases[i].until = NOW - 1;
		}
		cases[1].rule = sure ? &at_once : &ten;
		confirm_decide(arena, cases, 2);
		for (size_t i = 0; i < 2; i++)
			assert_int_equal(cases[i].decision.verdict, sure ? DROP : HOLD);
		assert_string_equal(
			cases[0].decision.reason, sure ? "over before its hold ended"
						       : "held until a cycle can be ruled out");
	}
	arena_free(arena);
}

/* Series with another share between them take nothing from those that have the same. */
static void test_shares_are_counted_apart(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	const struct change change = step(4e-4, 100, 110), other = step(0.04, 100, 110);
	struct confirm_case cases[] = {plain(&change), plain(&other), plain(&change)};

	for (size_t i = 0; i < 3; i++) {
		cases[i].of = &cases[i];
		cases[i].share = i == 1 ? 0.5 : 0.05;
		cases[i].series = i == 1 ? 1 : 200;
	}
	confirm_decide(arena, cases, 3); /* two of 200 need 0.0005 each, one alone 0.00025 */
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(cases[i].decision.verdict, PASS);
	cases[2].at_once = true;
	confirm_decide(arena, cases, 3);
	assert_int_equal(cases[0].decision.verdict, HOLD);
	assert_int_equal(cases[1].decision.verdict, PASS);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_back_before_the_hold_ends),
		cmocka_unit_test(test_shares_are_counted_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
