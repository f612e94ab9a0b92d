/* agent/decide/gate: what has been accepted, by entries of known_changes and by triage. */
#include "unit.h"

#include <math.h>
#include <string.h>

#include "agent/base/when.h"
#include "agent/decide/gate.h"

#define DAY INT64_C(86400000)
#define NOON (INT64_C(20000) * DAY + DAY / 2)

static const struct deployment deployments[] = {{.commit = "4f2c1a90"}, {.version = "1.2"}};

static struct change_record change(void)
{
	struct change_record record = {
		.item = {.test = "db.read",
			.metric = "p99{region=\"eu\"}",
			.time = NOON,
			.spacing = DAY,
			.place_from = NOON - DAY,
			.place_to = NOON + DAY,
			.commit_after = "15ce8e36aabb",
			.place_commit_after = "77aa0000",
			.suspects = {.known = true, .count = 2, .list = deployments, .listed = 2},
			.change = {.size = 20.0, .size_low = 18.0, .size_high = 22.0}},
		.series = "p99;eu",
		.sign = 1};

	return record;
}

static struct known_change entry(void)
{
	return (struct known_change){.test = "db.*",
		.from = WHEN_ALWAYS,
		.to = WHEN_NEVER,
		.reason = "known",
		.until = WHEN_NEVER};
}

static bool covers(const struct known_change *known, const struct change_record *record)
{
	const struct known_change *expired;
	const struct known_change *found = gate_known(known, 1, record, NOON, &expired);

	assert_null(expired);
	assert_true(!found || found == known);
	return found != NULL;
}

static void test_names(void **state)
{
	struct change_record record = change();
	struct known_change known = entry();
	const char *const good[] = {"p99*", "p99{region=\"eu\"}", "p99;eu", "*"};
	const char *const bad[] = {"p99", "P99*", "p9?", ""};

	(void)state;
	assert_true(covers(&known, &record));
	for (size_t i = 0; i < 4; i++) {
		known.metric = good[i];
		assert_true(covers(&known, &record));
		known.metric = bad[i];
		assert_false(covers(&known, &record));
	}
	known = entry();
	known.test = "db";
	assert_false(covers(&known, &record));
	known.test = "a[b";
	record.item.test = "a[b"; /* a name, though it looks like a pattern */
	assert_true(covers(&known, &record));
}

static void test_commits(void **state)
{
	struct change_record record = change();
	struct known_change known = entry();
	const char *const good[] = {"15ce8e36aabb", "15ce8e36", "15ce", "15ce8e36aabbccdd",
		"77aa0000", "4f2c1a90", "4f2c"};
	const char *const bad[] = {"15c", "15ce8e37", "1.2", "1", "5ce8", "4f2x", "15ce8e36x"};

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		known.commit = good[i];
		assert_true(covers(&known, &record));
		known.commit = bad[i];
		assert_false(covers(&known, &record));
	}
	record.item.commit_after = "v12"; /* no hexadecimal digits: only the whole name */
	known.commit = "v12";
	assert_true(covers(&known, &record));
	known.commit = "v1";
	assert_false(covers(&known, &record));
	record.item.commit_after = record.item.place_commit_after = NULL;
	record.item.suspects = (struct attribution){0};
	assert_false(covers(&known, &record));
}

/* From five points before the place of the change to five points after it. */
static void test_times(void **state)
{
	const struct change_record record = change();
	struct known_change known = entry();

	(void)state;
	for (int64_t day = -10; day <= 10; day++) {
		known.from = known.to = NOON + day * DAY;
		assert_int_equal(covers(&known, &record), day >= -6 && day <= 6);
	}
	known.from = NOON + 5 * DAY + DAY / 2; /* a day that begins within, ends beyond */
	known.to = known.from + DAY - 1;
	assert_true(covers(&known, &record));
	known.from = NOON - 7 * DAY;
	known.to = NOON - 6 * DAY - 1;
	assert_false(covers(&known, &record));
	known.to = NOON - 6 * DAY;
	assert_true(covers(&known, &record));
}

static void test_sizes(void **state)
{
	struct change_record record = change();
	struct known_change known = entry();

	(void)state;
	known.direction = -1;
	assert_false(covers(&known, &record));
	known.direction = 1;
	assert_true(covers(&known, &record));
	known.at_most = 18; /* it may be no larger */
	assert_true(covers(&known, &record));
	known.at_most = 17.9; /* it is larger by more than its interval */
	assert_false(covers(&known, &record));

	known.direction = -1;
	record.sign = -1;
	record.item.change.size = -20.0;
	record.item.change.size_low = -22.0;
	record.item.change.size_high = -18.0;
	assert_false(covers(&known, &record));
	known.at_most = 18;
	assert_true(covers(&known, &record));

	record.item.change.size_low = record.item.change.size_high = (double)NAN;
	assert_false(covers(&known, &record));
	known.at_most = 20;
	assert_true(covers(&known, &record));
	record.item.change.size = (double)NAN; /* nobody knows how large it is */
	assert_false(covers(&known, &record));
	known.at_most = 0;
	assert_true(covers(&known, &record));
}

static void test_expiry(void **state)
{
	const struct change_record record = change();
	struct known_change known[] = {entry(), entry(), entry()};
	const struct known_change *expired;

	(void)state;
	known[0].until = NOON;
	known[1].test = "other";
	assert_ptr_equal(gate_known(known, 3, &record, NOON, &expired), &known[2]);
	assert_null(expired);
	assert_ptr_equal(gate_known(known, 3, &record, NOON - 1, &expired), &known[0]);
	known[2].direction = -1;
	assert_null(gate_known(known, 3, &record, NOON, &expired));
	assert_ptr_equal(expired, &known[0]);
	assert_true(gate_concerns(known, 3, "other"));
	assert_false(gate_concerns(known, 3, "another"));
}

/* What is written of a change covers it, also after another look that differs a little. */
static void test_entries(void **state)
{
	struct change_record record = change();
	struct known_change known = gate_entry(&record, "why", WHEN_NEVER);

	(void)state;
	assert_string_equal(known.commit, "15ce8e36aabb");
	assert_int_equal(known.direction, 1);
	assert_true(known.at_most >= 22 && known.at_most < 22.2);
	assert_true(covers(&known, &record));
	record.item.change.size = 23;
	assert_true(covers(&known, &record));
	record.item.change.size_low = 22.5;
	assert_false(covers(&known, &record));

	record = change();
	record.item.commit_after = record.item.place_commit_after = NULL;
	record.item.change.size_low = record.item.change.size_high = (double)NAN;
	known = gate_entry(&record, "why", WHEN_NEVER);
	assert_null(known.commit);
	assert_int_equal(known.from, NOON);
	assert_true(covers(&known, &record));

	record.item.commit_after = "87"; /* would be an error */
	known = gate_entry(&record, "why", WHEN_NEVER);
	assert_null(known.commit);
	assert_int_equal(known.from, NOON);
}

/* A size with its interval. */
#define SIZE(at, from, to) .size = at, .size_low = from, .size_high = to

static void test_triage(void **state)
{
	static const struct {
		const char *name;
		struct triage triage;
		struct change change;
		const char *reason; /* NULL: it counts */
	} rows[] = {
		{"nobody has spoken", {.state = 0}, {SIZE(20, 18, 22)}, NULL},
		{"open", {.state = TRIAGE_OPEN, SIZE(20, 18, 22)}, {SIZE(20, 18, 22)}, NULL},
		{"acknowledged", {.state = TRIAGE_ACKNOWLEDGED, SIZE(20, 18, 22)},
			{SIZE(20, 18, 22)}, "acknowledged"},
		{"expected", {.state = TRIAGE_EXPECTED, SIZE(20, 18, 22)}, {SIZE(20, 18, 22)},
			"expected"},
		{"fixed", {.state = TRIAGE_FIXED, SIZE(20, 18, 22)}, {SIZE(20, 18, 22)}, "fixed"},
		{"smaller", {.state = TRIAGE_FALSE, SIZE(20, 18, 22)}, {SIZE(5, 3, 7)}, "false"},
		{"larger, by less than both intervals",
			{.state = TRIAGE_EXPECTED, SIZE(20, 18, 22)}, {SIZE(23, 20, 26)},
			"expected"},
		{"outgrown", {.state = TRIAGE_EXPECTED, SIZE(20, 18, 22)}, {SIZE(23, 20.1, 26)},
			NULL},
		{"outgrown, down", {.state = TRIAGE_INFRA, SIZE(-20, -22, -18)},
			{SIZE(-40, -42, -38)}, NULL},
		{"expires later", {.state = TRIAGE_IGNORED, .until = NOON + 1, SIZE(20, 18, 22)},
			{SIZE(20, 18, 22)}, "ignored"},
		{"expires now", {.state = TRIAGE_IGNORED, .until = NOON, SIZE(20, 18, 22)},
			{SIZE(20, 18, 22)}, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct decision decision = gate_triage(&rows[i].triage, &rows[i].change, NOON);

		print_message("%s\n", rows[i].name);
		assert_int_equal(decision.verdict, rows[i].reason ? DROP : PASS);
		if (rows[i].reason)
			assert_string_equal(decision.reason, rows[i].reason);
	}
}

/* A member of an incident, or what joins it. Size in percent; a higher value is worse. */
static struct change_record member(double size, const char *commit, enum triage_state triage)
{
	bool from_zero = isnan(size);

	return (struct change_record){.item = {.direction = -1,
					      .commit_before = "c0",
					      .commit_after = commit,
					      .slope = (double)NAN,
					      .change = {.size = size,
						      .level_before = from_zero ? 0 : 100,
						      .level_after = from_zero ? 1 : 100 + size}},
		.sign = size < 0 ? -1 : 1,
		.state = CHANGE_CONFIRMED,
		.triage = {.state = triage, .size = size, .version = 1, .person = "ann"}};
}

static const char suspects[] = "its suspects are not those of what was accepted";
static const char larger[] = "larger than what was accepted";
static const char some[] = "not all of its incident is triaged";

static const struct {
	const char *name;
	struct {
		double size;
		const char *commit;
		enum triage_state triage;
		bool inherited, known, over;
		int64_t until, event;
	} members[3]; /* the first is the joiner */
	int from;     /* the member; 0: none */
	const char *reason;
} inherited[] = {
	{"nothing accepted",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_ACKNOWLEDGED}},
		0, NULL},
	{"smaller",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		1, "expected"},
	{"as large",
		{{.size = 10, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_FALSE}},
		1, "false"},
	{"larger",
		{{.size = 11, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		0, larger},
	{"the largest counts",
		{{.size = 11, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_IGNORED},
			{.size = 12, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		2, "expected"},
	{"an improvement",
		{{.size = -9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		0, larger},
	{"from zero",
		{{.size = (double)NAN, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		0, larger},
	{"both from zero",
		{{.size = (double)NAN, .commit = "c1"},
			{.size = (double)NAN, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		1, "expected"},
	{"another commit",
		{{.size = 9, .commit = "c2"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED}},
		0, suspects},
	{"only a smaller one of its commit",
		{{.size = 9, .commit = "c2"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED},
			{.size = 8, .commit = "c2", .triage = TRIAGE_EXPECTED}},
		0, larger},
	{"unknown suspects",
		{{.size = 9, .commit = NULL},
			{.size = 10, .commit = NULL, .triage = TRIAGE_EXPECTED}},
		0, suspects},
	{"one environment event",
		{{.size = 9, .commit = NULL, .event = 3},
			{.size = 10, .commit = NULL, .triage = TRIAGE_INFRA, .event = 3}},
		1, "infra"},
	{"not of the event",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_INFRA, .event = 3}},
		0, suspects},
	{"another is open",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED},
			{.size = 5, .commit = "c1", .triage = TRIAGE_OPEN}},
		0, some},
	{"another is open, but over",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED},
			{.size = 5, .commit = "c1", .triage = TRIAGE_OPEN, .over = true}},
		1, "expected"},
	{"what was inherited is no precedent",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED, .inherited = true}},
		0, NULL},
	{"nor is an entry of known_changes",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED, .known = true}},
		0, NULL},
	{"expired",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED, .until = 5}},
		0, some},
	{"not yet expired",
		{{.size = 9, .commit = "c1"},
			{.size = 10, .commit = "c1", .triage = TRIAGE_EXPECTED, .until = 15}},
		1, "expected"},
};

static void test_inherited(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof inherited / sizeof *inherited; i++) {
		struct change_record records[3];
		struct record_rows members = {&records[1], 0};
		const struct change_record *from;
		const char *reason = inherited[i].reason;
		struct decision decision;

		for (size_t j = 0; j < 3; j++) {
			records[j] = member(inherited[i].members[j].size,
				inherited[i].members[j].commit, inherited[i].members[j].triage);
			records[j].triage.inherited = inherited[i].members[j].inherited;
			records[j].triage.until = inherited[i].members[j].until;
			records[j].environment_event = inherited[i].members[j].event;
			if (inherited[i].members[j].known)
				records[j].triage.person = KNOWN_CHANGES_PERSON;
			if (inherited[i].members[j].over)
				records[j].state = CHANGE_RECOVERED;
			members.count += j > 0 && inherited[i].members[j].triage != 0;
		}
		decision = gate_inherit(&records[0], &members, 10, &from);
		if (decision.verdict != (inherited[i].from ? DROP : PASS) ||
			from != (inherited[i].from ? &records[inherited[i].from] : NULL) ||
			!decision.reason != !reason ||
			(reason && strcmp(decision.reason, reason) != 0))
			fail_msg("%s: %s", inherited[i].name,
				decision.reason ? decision.reason : "no reason");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_names),
		cmocka_unit_test(test_commits), cmocka_unit_test(test_times),
		cmocka_unit_test(test_sizes), cmocka_unit_test(test_expiry),
		cmocka_unit_test(test_entries), cmocka_unit_test(test_triage),
		cmocka_unit_test(test_inherited)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
