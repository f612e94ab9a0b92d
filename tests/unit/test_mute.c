/*
 * Mute times on fixed dates: days, months, years and hours, both changes of daylight saving time,
 * and until when one holds.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/when.h"
#include "conf/mute.h"
#include "tests/unit/conf_schema.h"

static const struct config_source source = {.schema = &test_schema, .env = test_environment};

static struct config *load(const char *mute_times, const char *names)
{
	char path[] = "/tmp/hunter-mute-XXXXXX";
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	int fd = mkstemp(path);
	struct config *config;

	assert_true(fd >= 0);
	dprintf(fd, "mute_times:\n%s\ntests:\n  t: {type: csv, file: x, mute: [%s]}\n", mute_times,
		names);
	close(fd);
	config = config_load(path, &source, &problems);
	unlink(path);
	if (!config)
		fail_msg("%s", problems.items[0].text);
	arena_free(arena);
	return config;
}

static int64_t at(const char *text)
{
	int64_t ms;

	if (!when_parse_stamp(text, strlen(text), &ms))
		fail_msg("%s", text);
	return ms;
}

/* What a mute time is at a time, and until when: "" is not muted. */
struct expected {
	const char *time, *name, *until;
};

static void check(const char *mute_times, const char *names, const struct expected *all)
{
	struct config *config = load(mute_times, names);

	for (; all->time; all++) {
		int64_t until = 0;
		const struct mute_time *found =
			mute_find(&config->tests[0].mute, at(all->time), &until);
		char text[WHEN_TEXT];

		if (strcmp(found ? mute_name(found) : "", all->name) != 0)
			fail_msg("%s: %s, expected \"%s\"", all->time,
				found ? mute_name(found) : "not muted", all->name);
		assert_true(mute_find(&config->tests[0].mute, at(all->time), NULL) == found);
		assert_true(until > at(all->time));
		if (found && until != at(all->until))
			fail_msg("%s: until %s, expected %s", all->time,
				when_format_iso(until, text), all->until);
	}
	config_free(config);
}

static void test_days_and_hours(void **state)
{
	(void)state;
	check("  n: [{times: [{start_time: '22:00', end_time: '24:00'}, {start_time: '0:00', "
	      "end_time: '06:00'}]}]",
		"n",
		(const struct expected[]){
			{"2026-03-10T21:59:59.999Z", "", NULL},
			{"2026-03-10T22:00:00Z", "n", "2026-03-11T06:00:00Z"},
			{"2026-03-11T05:59:59.999Z", "n", "2026-03-11T06:00:00Z"},
			{"2026-03-11T06:00:00Z", "", NULL},
			{0},
		});
	check("  w: {weekdays: ['saturday:sunday']}", "w",
		(const struct expected[]){
			{"2026-03-13T23:59:59Z", "", NULL}, /* a Friday */
			{"2026-03-14T00:00:00Z", "w", "2026-03-16T00:00:00Z"},
			{"2026-03-15T12:00:00Z", "w", "2026-03-16T00:00:00Z"},
			{"2026-03-16T00:00:00Z", "", NULL},
			{0},
		});
	check("  w: {weekdays: [Friday:monday], times: {start_time: 09:00, end_time: '17:30'}}",
		"w",
		(const struct expected[]){
			{"2026-03-13T09:00:00Z", "w", "2026-03-13T17:30:00Z"},
			{"2026-03-16T17:29:00Z", "w", "2026-03-16T17:30:00Z"},
			{"2026-03-17T10:00:00Z", "", NULL},
			{0},
		});
}

static void test_days_of_months_and_years(void **state)
{
	(void)state;
	check("  last: {days_of_month: ['-2:-1']}", "last",
		(const struct expected[]){
			{"2026-02-26T12:00:00Z", "", NULL},
			{"2026-02-27T00:00:00Z", "last", "2026-03-01T00:00:00Z"},
			{"2028-02-27T12:00:00Z", "", NULL}, /* a leap year */
			{"2028-02-28T12:00:00Z", "last", "2028-03-01T00:00:00Z"},
			{"2026-12-31T12:00:00Z", "last", "2027-01-01T00:00:00Z"},
			{0},
		});
	check("  d: {days_of_month: ['30:31', '1', '20:-5']}", "d",
		(const struct expected[]){
			{"2026-02-28T00:00:00Z", "", NULL},
			{"2026-04-30T00:00:00Z", "d", "2026-05-02T00:00:00Z"},
			{"2026-02-24T00:00:00Z", "d", "2026-02-25T00:00:00Z"},
			{"2026-03-27T00:00:00Z", "d", "2026-03-28T00:00:00Z"},
			{0},
		});
	check("  turn: {months: ['december:january'], days_of_month: ['1:2', -1], years: "
	      "['2026:2027']}",
		"turn",
		(const struct expected[]){
			{"2026-12-31T23:00:00Z", "turn", "2027-01-03T00:00:00Z"},
			{"2027-12-31T23:00:00Z", "turn", "2028-01-01T00:00:00Z"},
			{"2025-12-31T23:00:00Z", "", NULL},
			{"2026-06-01T00:00:00Z", "", NULL},
			{0},
		});
}

/* 2026-03-29: 02:00 becomes 03:00 in Berlin; 2026-10-25: 03:00 becomes 02:00. */
static void test_daylight_saving(void **state)
{
	(void)state;
	check("  n: {times: {start_time: '01:00', end_time: '02:30'}, location: Europe/Berlin}",
		"n",
		(const struct expected[]){
			{"2026-03-28T00:30:00Z", "n", "2026-03-28T01:30:00Z"},
			{"2026-03-29T00:59:59Z", "n", "2026-03-29T01:00:00Z"},
			{"2026-03-29T01:00:00Z", "", NULL}, /* 03:00 local */
			{"2026-03-29T23:30:00Z", "n", "2026-03-30T00:30:00Z"},
			{"2026-10-25T00:10:00Z", "n", "2026-10-25T00:30:00Z"}, /* 02:10 CEST */
			{"2026-10-25T00:45:00Z", "", NULL},                    /* 02:45 CEST */
			{"2026-10-25T01:15:00Z", "n", "2026-10-25T01:30:00Z"}, /* 02:15 CET */
			{"2026-10-25T01:30:00Z", "", NULL},
			{0},
		});
	check("  n: {times: {start_time: '02:00', end_time: '03:00'}, location: Europe/Berlin}",
		"n",
		(const struct expected[]){
			{"2026-03-28T01:30:00Z", "n", "2026-03-28T02:00:00Z"},
			{"2026-03-29T00:59:59Z", "", NULL}, /* the hour does not occur */
			{"2026-03-29T01:00:00Z", "", NULL},
			{"2026-10-25T00:00:00Z", "n", "2026-10-25T02:00:00Z"}, /* it lasts two */
			{"2026-10-25T01:59:59Z", "n", "2026-10-25T02:00:00Z"},
			{"2026-10-25T02:00:00Z", "", NULL},
			{0},
		});
	check("  s: {weekdays: [sunday], location: America/New_York}", "s",
		(const struct expected[]){
			{"2026-03-08T04:59:59Z", "", NULL},
			{"2026-03-08T05:00:00Z", "s", "2026-03-09T04:00:00Z"}, /* 23 hours */
			{"2026-11-01T04:00:00Z", "s", "2026-11-02T05:00:00Z"}, /* 25 hours */
			{0},
		});
	check("  s: {weekdays: [sunday], location: Asia/Kolkata}", "s",
		(const struct expected[]){
			{"2026-03-07T18:29:59Z", "", NULL},
			{"2026-03-07T18:30:00Z", "s", "2026-03-08T18:30:00Z"},
			{0},
		});
}

static void test_several(void **state)
{
	static const char names[] = "  night: {times: {start_time: '20:00', end_time: '24:00'}}\n"
				    "  weekend:\n"
				    "  - {weekdays: [saturday]}\n"
				    "  - {weekdays: [sunday], location: Europe/Berlin}\n";

	(void)state;
	check(names, "night, weekend",
		(const struct expected[]){
			{"2026-03-12T20:00:00Z", "night", "2026-03-13T00:00:00Z"},
			{"2026-03-13T20:00:00Z", "night", "2026-03-16T00:00:00Z"},
			{"2026-03-14T10:00:00Z", "weekend", "2026-03-16T00:00:00Z"},
			{"2026-03-15T23:00:00Z", "night", "2026-03-16T00:00:00Z"},
			{"2026-03-16T00:00:00Z", "", NULL},
			{0},
		});
	check(names, "", (const struct expected[]){{"2026-03-14T10:00:00Z", "", NULL}, {0}});
}

/* One that never ends holds for more than a month at least. */
static void test_without_end(void **state)
{
	struct config *config = load("  n: {years: ['2020:2030'], months: ['1:12']}", "n");
	int64_t now = at("2026-03-14T10:00:00Z"), until;

	(void)state;
	assert_non_null(mute_find(&config->tests[0].mute, now, &until));
	assert_true(until > now + INT64_C(31) * 86400000);
	config_free(config);
	config = load("  n: {times: {start_time: '00:00', end_time: '24:00'}}", "n");
	assert_non_null(mute_find(&config->tests[0].mute, now, &until));
	assert_true(until > now + INT64_C(31) * 86400000);
	config_free(config);
}

/* Each minute of the two days on which Berlin's clocks change, and of the days around them: the end
 * that is told is where it ends, and nothing ends before it. */
static void test_every_minute(void **state)
{
	struct config *config =
		load("  n:\n"
		     "  - {times: [{start_time: '01:15', end_time: '02:20'}, {start_time: "
		     "'02:40', end_time: '03:10'}], location: Europe/Berlin}\n"
		     "  - {times: {start_time: '23:00', end_time: '24:00'}, location: "
		     "Australia/Lord_Howe}\n",
			"n");
	static const char *const days[] = {"2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z",
		"2026-04-04T00:00:00Z", "2026-10-03T00:00:00Z"};
	const struct mutes *mutes = &config->tests[0].mute;

	(void)state;
	for (size_t i = 0; i < sizeof days / sizeof *days; i++)
		for (int64_t ms = at(days[i]), end = ms + 3 * 86400000; ms < end; ms += 60000) {
			int64_t until, next = ms;

			if (mute_find(mutes, ms, &until)) {
				while (mute_find(mutes, next, NULL))
					next += 60000;
				assert_int_equal(until, next);
				continue;
			}
			for (; next < until; next += 60000)
				assert_null(mute_find(mutes, next, NULL));
		}
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_days_and_hours),
		cmocka_unit_test(test_days_of_months_and_years),
		cmocka_unit_test(test_daylight_saving),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_without_end),
		cmocka_unit_test(test_every_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
