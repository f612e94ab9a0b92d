/* What becomes of a message that could not be sent: the failure, and what is decided. */
#include "unit.h"

#include "agent/decide/retry.h"

#define DAY INT64_C(86400000)

/* Temporary, and one that a person has to mend. */
#define PASSING .kind = ERROR_DATA, .retry = true, .give_up_after = DAY
#define BLOCKED .kind = ERROR_USAGE, .retry_after = -1, .trying = 30 * DAY
#define SILENT .retry_after = -1

static const struct row {
	const char *name;
	struct failed_attempt failed;
	enum verdict verdict;
	int64_t until;
} rows[] = {
	{"waits double", {PASSING, SILENT, .tries = 1}, PASS, 1000},
	{"", {PASSING, SILENT, .tries = 2}, PASS, 2000},
	{"", {PASSING, SILENT, .tries = 3}, PASS, 4000},
	{"", {PASSING, SILENT, .tries = 9}, PASS, 256000},
	{"five minutes at most", {PASSING, SILENT, .tries = 10}, PASS, 300000},
	{"", {PASSING, SILENT, .tries = INT64_MAX}, PASS, 300000},
	{"the receiver says when", {PASSING, .retry_after = 3000, .tries = 8}, PASS, 3000},
	{"not at once", {PASSING, .retry_after = 0, .tries = 8}, PASS, 1000},
	{"an hour at most", {PASSING, .retry_after = 10 * DAY, .tries = 8}, PASS, 3600000},
	{"doubt waits longer",
		{PASSING, SILENT, .tries = 1, .maybe_delivered = MAYBE_DELIVERED_CHECK}, PASS,
		3000},
	{"", {PASSING, SILENT, .tries = 1, .maybe_delivered = MAYBE_DELIVERED_BLIND}, PASS, 60000},
	{"", {PASSING, SILENT, .tries = 9, .maybe_delivered = MAYBE_DELIVERED_BLIND}, PASS, 256000},
	{"", {PASSING, .retry_after = 1000, .tries = 1, .maybe_delivered = MAYBE_DELIVERED_BLIND},
		PASS, 60000},
	{"a day of trying is enough", {PASSING, SILENT, .tries = 1, .trying = DAY}, PASS, 1000},
	{"", {PASSING, SILENT, .tries = 1, .trying = DAY + 1}, DROP, 0},
	{"never given up",
		{.kind = ERROR_DATA,
			.retry = true,
			SILENT,
			.tries = 1,
			.trying = 1000 * DAY,
			.give_up_after = INT64_MAX},
		PASS, 1000},
	{"not by a single pass", {PASSING, SILENT, .tries = 1, .trying = DAY + 1, .once = true},
		PASS, 1000},
	{"what a person must mend is kept", {BLOCKED, .tries = 1}, PASS, 300000},
	{"", {BLOCKED, .tries = 1, .once = true}, HOLD, 300000},
	{"what never will is given up", {.kind = ERROR_DATA, SILENT, .tries = 1}, DROP, 0},
	{"", {.kind = ERROR_DATA, SILENT, .tries = 1, .once = true}, DROP, 0},
	{"a single pass does not wait long", {PASSING, SILENT, .tries = 2, .once = true}, PASS,
		2000},
	{"", {PASSING, SILENT, .tries = 3, .once = true}, HOLD, 4000},
	{"", {PASSING, .retry_after = 30000, .tries = 1, .once = true}, PASS, 30000},
	{"", {PASSING, .retry_after = 30001, .tries = 1, .once = true}, HOLD, 30001},
	{"", {PASSING, SILENT, .tries = 1, .once = true, .maybe_delivered = MAYBE_DELIVERED_BLIND},
		HOLD, 60000},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct decision decision = retry_decide(&rows[i].failed);

		if (decision.verdict != rows[i].verdict || decision.until != rows[i].until)
			fail_msg("row %zu (%s): verdict %d until %lld", i, rows[i].name,
				(int)decision.verdict, (long long)decision.until);
		assert_int_equal(decision.reason != NULL, decision.verdict != PASS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
