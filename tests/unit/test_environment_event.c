/* agent/decide/environment: what is known of the changes of one environment, and what is decided.
 */
#include "unit.h"

#include <string.h>

#include "agent/decide/environment.h"

#define RUNS "waiting for other tests of its environment to run"
#define DATA "waiting for data of other series of its environment"
#define CONFIRMATION "waiting for confirmation of other changes in its environment"
#define EVENT "most series of one environment changed, and few elsewhere"
#define PART "part of an announced change of its environment"

/* Of 10 series, each with a counterpart. */
#define HIT(n) .tally = {.total = 10, .hit = n, .compared = n, .elsewhere = 2 * (n)}

static const struct row {
	const char *name;
	struct environment_case at;
	enum verdict verdict;
	const char *reason; /* NULL: as usual */
	int64_t until;
} rows[] = {
	{"alone", {HIT(1), .ready = 1}, PASS, NULL, 0},
	{"one event", {HIT(8), .ready = 8}, PASS, EVENT, 0},
	{"too few", {HIT(7), .ready = 7}, PASS, NULL, 0},
	{"too small a share",
		{.tally = {.total = 14, .hit = 8, .compared = 8, .elsewhere = 8}, .ready = 8}, PASS,
		NULL, 0},
	{"just the share",
		{.tally = {.total = 13, .hit = 8, .compared = 8, .elsewhere = 8}, .ready = 8}, PASS,
		EVENT, 0},
	{"elsewhere, too",
		{.tally = {.total = 10,
			 .hit = 8,
			 .compared = 8,
			 .elsewhere = 10,
			 .elsewhere_changed = 3},
			.ready = 8},
		PASS, NULL, 0},
	{"little of it elsewhere",
		{.tally = {.total = 10,
			 .hit = 8,
			 .compared = 8,
			 .elsewhere = 10,
			 .elsewhere_changed = 2},
			.ready = 8},
		PASS, EVENT, 0},
	{"half have a counterpart", {.tally = {.total = 10, .hit = 8, .compared = 4}, .ready = 8},
		PASS, EVENT, 0},
	{"fewer have", {.tally = {.total = 10, .hit = 8, .compared = 3}, .ready = 8}, PASS, NULL,
		0},

	{"told before", {HIT(8), .is_event = true}, DROP, PART, 0},
	{"and has grown", {HIT(10), .is_event = true, .has_grown = true}, PASS, NULL, 0},
	{"told before, alone now", {HIT(1), .is_event = true}, DROP, PART, 0},
	{"another was the first", {HIT(8), .ready = 8, .follows = true}, PASS, NULL, 0},

	{"others may decide", {HIT(3), .awaits = true, .more = 5, .runs = 7}, HOLD, RUNS, 7},
	{"they cannot", {HIT(3), .awaits = true, .more = 4, .runs = 7}, PASS, NULL, 0},
	{"they did not come", {HIT(3), .awaits = true, .more = 5, .runs = 0}, PASS, NULL, 0},
	{"nobody is awaited", {HIT(3), .more = 5, .runs = 7}, PASS, NULL, 0},
	{"they may speak against it", {HIT(8), .ready = 8, .awaits = true, .runs = 7}, HOLD, RUNS,
		7},
	{"an event of others goes first", {HIT(8), .awaits = true, .runs = 7, .follows = true},
		PASS, NULL, 0},

	{"others are behind",
		{.tally = {.total = 10, .hit = 3, .compared = 3, .behind = 5}, .confirmation = 9},
		HOLD, DATA, 9},
	{"too few are",
		{.tally = {.total = 10, .hit = 3, .compared = 3, .behind = 4}, .confirmation = 9},
		PASS, NULL, 0},
	{"the time is over",
		{.tally = {.total = 10, .hit = 3, .compared = 3, .behind = 5}, .confirmation = 0},
		PASS, NULL, 0},
	{"its test did not run", {HIT(1), .unknown = true, .confirmation = 9}, HOLD, DATA, 9},

	{"most are unconfirmed", {HIT(8), .ready = 7, .confirmation = 9}, HOLD, CONFIRMATION, 9},
	{"all are confirmed", {HIT(8), .ready = 8, .confirmation = 9}, PASS, EVENT, 0},
	{"confirmation did not come", {HIT(8), .ready = 1, .confirmation = -1}, PASS, EVENT, 0},
	{"the end of an event", {HIT(8), .ready = 7, .is_end = true}, PASS, NULL, 0},
	{"more than its end", {HIT(8), .ready = 8, .is_end = true}, PASS, EVENT, 0},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct decision decision = environment_decide(&rows[i].at);

		print_message("%s\n", rows[i].name);
		assert_int_equal(decision.verdict, rows[i].verdict);
		assert_string_equal(decision.reason ? decision.reason : "",
			rows[i].reason ? rows[i].reason : "");
		assert_int_equal(decision.until, rows[i].until);
		assert_int_equal(decision.reason == environment_one_event,
			rows[i].reason && strcmp(rows[i].reason, EVENT) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
