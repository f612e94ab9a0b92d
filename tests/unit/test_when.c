#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/base/when.h"

/* Tuesday, 2026-03-31 12:00 UTC: a month's last day, so that months have something to cut. */
#define NOW INT64_C(1774958400000)

struct pair {
	const char *text, *iso;
};

static void check_people(const struct pair *pairs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char text[WHEN_TEXT];
		struct error error;
		int64_t ms;

		if (!when_parse(pairs[i].text, NOW, &ms, &error))
			fail_msg("%s: %s", pairs[i].text, error.text);
		if (strcmp(when_format_iso(ms, text), pairs[i].iso) != 0)
			fail_msg("\"%s\" is %s, not %s", pairs[i].text, text, pairs[i].iso);
	}
}

#define CHECK_PEOPLE(...)                                                                          \
	check_people((const struct pair[]){__VA_ARGS__},                                           \
		sizeof((const struct pair[]){__VA_ARGS__}) / sizeof(struct pair))

static void relative_dates(void **state)
{
	(void)state;
	CHECK_PEOPLE({"now", "2026-03-31T12:00:00Z"}, {"6 weeks", "2026-02-17T12:00:00Z"},
		{"10 weeks ago", "2026-01-20T12:00:00Z"}, {"-10m", "2026-03-31T11:50:00Z"},
		{"- 10 minutes", "2026-03-31T11:50:00Z"}, {"10m", "2026-03-31T11:50:00Z"},
		{"an hour ago", "2026-03-31T11:00:00Z"}, {"A Week Ago", "2026-03-24T12:00:00Z"},
		{"1h30m", "2026-03-31T10:30:00Z"},
		{"1 day and 2 hours ago", "2026-03-30T10:00:00Z"},
		{"1 day, 2 hours ago", "2026-03-30T10:00:00Z"},
		{"1.5 hours", "2026-03-31T10:30:00Z"}, {"  30d ago ", "2026-03-01T12:00:00Z"},
		{"250ms", "2026-03-31T11:59:59.750Z"}, {"+2h", "2026-03-31T14:00:00Z"},
		{"in 2 days", "2026-04-02T12:00:00Z"});
}

static void calendar_months(void **state)
{
	(void)state;
	CHECK_PEOPLE({"1 month", "2026-02-28T12:00:00Z"}, {"1mo", "2026-02-28T12:00:00Z"},
		{"25 months ago", "2024-02-29T12:00:00Z"}, {"4 months", "2025-11-30T12:00:00Z"},
		{"1 year", "2025-03-31T12:00:00Z"}, {"last month", "2026-02-28T12:00:00Z"},
		{"1 month 1 day", "2026-02-27T12:00:00Z"}, {"in 1 month", "2026-04-30T12:00:00Z"},
		{"2025 years", "0001-03-31T12:00:00Z"});
}

static void days_with_names(void **state)
{
	(void)state;
	CHECK_PEOPLE({"today", "2026-03-31T00:00:00Z"}, {"yesterday", "2026-03-30T00:00:00Z"},
		{"Yesterday 14:00", "2026-03-30T14:00:00Z"},
		{"yesterday at 9:30 +0200", "2026-03-30T07:30:00Z"},
		{"tomorrow", "2026-04-01T00:00:00Z"}, {"monday", "2026-03-30T00:00:00Z"},
		{"last monday", "2026-03-30T00:00:00Z"}, {"tue", "2026-03-24T00:00:00Z"},
		{"Wednesday", "2026-03-25T00:00:00Z"}, {"last week", "2026-03-24T12:00:00Z"},
		{"2 Jan 2025", "2025-01-02T00:00:00Z"},
		{"Dec 24, 2025 18:00", "2025-12-24T18:00:00Z"}, {"jan 2", "2026-01-02T00:00:00Z"},
		{"september 5", "2025-09-05T00:00:00Z"}, {"29 feb 2024", "2024-02-29T00:00:00Z"});
}

/* U+202F and U+00A0 stand before AM and PM in what some clients show. */
static void times_as_slack_shows_them(void **state)
{
	(void)state;
	CHECK_PEOPLE({"Nov 19, 2025 9:00 AM", "2025-11-19T09:00:00Z"},
		{"Nov 19 9:00 AM", "2025-11-19T09:00:00Z"},
		{"November 19th, 2025 at 9:05 PM", "2025-11-19T21:05:00Z"},
		{"Nov 19th at 9:05\u202fPM", "2025-11-19T21:05:00Z"},
		{"1st Mar 2026 12:30 am", "2026-03-01T00:30:00Z"},
		{"Mar 2nd, 12:30\u00a0PM", "2026-03-02T12:30:00Z"},
		{"Nov 19, 2025 9:00 AM +0200", "2025-11-19T07:00:00Z"},
		{"Yesterday at 9:00 PM", "2026-03-30T21:00:00Z"},
		{"today 9 AM", "2026-03-31T09:00:00Z"},
		{"2025-11-19 9:00 PM", "2025-11-19T21:00:00Z"},
		{"2025-11-19 09:00", "2025-11-19T09:00:00Z"}, {"9:00 AM", "2026-03-31T09:00:00Z"},
		{"9:00 PM", "2026-03-30T21:00:00Z"}, {"08:00", "2026-03-31T08:00:00Z"},
		{"12:00", "2026-03-31T12:00:00Z"}, {"12:01", "2026-03-30T12:01:00Z"},
		{"13:30 +0200", "2026-03-31T11:30:00Z"}, {"1:00 +0200", "2026-03-30T23:00:00Z"},
		{"23:00 -0500", "2026-03-31T04:00:00Z"});
}

static void dates_in_digits(void **state)
{
	(void)state;
	CHECK_PEOPLE({"2026-01-02", "2026-01-02T00:00:00Z"},
		{"2026-01-02 03:04", "2026-01-02T03:04:00Z"},
		{"2026-01-02 03:04:05.678", "2026-01-02T03:04:05.678Z"},
		{"2026-01-02t03:04:05z", "2026-01-02T03:04:05Z"},
		{"2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"},
		{"20260102", "2026-01-02T00:00:00Z"}, {"2026", "2026-01-01T00:00:00Z"},
		{"20260102T030405Z", "2026-01-02T03:04:05Z"},
		{"1700000000", "2023-11-14T22:13:20Z"},
		{"1700000000123", "2023-11-14T22:13:20.123Z"});
}

static void refused_dates(void **state)
{
	static const char *const texts[] = {"", " ", "notadate", "2026-02-30", "2026-13-01",
		"2025-02-29", "20260230", "2026-01-02 25:00", "2026-01-02 12:60",
		"2026-01-02 03:04 nowhere", "2026-01-02T", "2026-01", "25:30", "9:00 xm",
		"13:00 pm", "0:30 am", "9:60 am", "9 ampere", "now ago", "yesterday ago", "feb 30",
		"weeks", "6 weeks from", "1 month 2", "6 fortnights", "1.5 months", "+2h ago",
		"--5m", "9999999999 years", "999999999999999 weeks", "2026 years",
		"99999999999999999999999 days", "last", "last 6", "32 jan 2026", "9000 years ahead",
		("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "a"
		 "aaaaaaaaaaaaa")};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct error error;
		int64_t ms = 0;

		if (when_parse(texts[i], NOW, &ms, &error))
			fail_msg("\"%s\" is taken for %lld", texts[i], (long long)ms);
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_non_null(strstr(error.text, "is not a date"));
	}
}

static int64_t stamp(const char *text)
{
	int64_t ms = 0;

	if (!when_parse_stamp(text, strlen(text), &ms))
		fail_msg("\"%s\" is refused", text);
	return ms;
}

static void stamps(void **state)
{
	(void)state;
	assert_int_equal(stamp("2026-03-31T12:00:00Z"), NOW);
	assert_int_equal(stamp("2026-03-31 12:00:00"), NOW);
	assert_int_equal(stamp("2026.03.31 12:00:00 +0000"), NOW);
	assert_int_equal(stamp("2026.03.31 1:00:00 -1100"), NOW);
	assert_int_equal(stamp("2026/3/31 12:00 UTC"), NOW);
	assert_int_equal(stamp("2026-03-31T17:30:00+05:30"), NOW);
	assert_int_equal(stamp("2026-03-31T07:00:00-05"), NOW);
	assert_int_equal(stamp("2026-03-31T12:00:00.000999Z"), NOW);
	assert_int_equal(stamp("2026-03-31T12:00:00,5Z"), NOW + 500);
	assert_int_equal(stamp("2026-03-31T11:59:60Z"), NOW);
	assert_int_equal(stamp("20260331T120000Z"), NOW);
	assert_int_equal(stamp("20260331t1200"), NOW);
	assert_int_equal(stamp("20260331"), NOW - 12 * 3600000);
	assert_int_equal(stamp("18000000"), 18000000000);
	assert_int_equal(stamp("201234567"), 201234567000);
	assert_int_equal(stamp("20260331.5"), 20260331500);
	assert_int_equal(stamp(" 1774958400 "), NOW);
	assert_int_equal(stamp("1774958400.25"), NOW + 250);
	assert_int_equal(stamp("1774958400000"), NOW);
	assert_int_equal(stamp("1774958400000000"), NOW);
	assert_int_equal(stamp("1774958400000000000"), NOW);
	assert_int_equal(stamp("0"), 0);
	assert_int_equal(stamp("-1.5"), -1500);
	assert_int_equal(stamp("0001-01-01"), -62135596800000);
	assert_int_equal(stamp("-62135596800"), -62135596800000);
	assert_int_equal(stamp("9999-12-31T23:59:59.999Z"), 253402300799999);
	assert_int_equal(stamp("99999999999"), 99999999999000);
	assert_int_equal(stamp("100000000000"), 100000000000);
}

static void refused_stamps(void **state)
{
	static const char *const texts[] = {"", " ", "-", ".", "-.5", "5.", "1e9",
		"12345678901234567890", "yesterday", "2026-03-31x", "2026-3", "2026-03.31",
		"26-03-31", "2026-03-31T", "2026-03-31T12", "2026-03-31T12:0", "2026-03-31T12:00:0",
		"2026-03-31T24:00:00", "2026-03-31T12:00:61", "2026-03-31T12:00:00.",
		"2026-03-31T12:00:00+1", "2026-03-31T12:00:00+01:0", "2026-03-31T12:00:00+24:00",
		"2026-03-31T12:00:00 CET", "2026-04-31", "20260431", "20260331T12:0000",
		"20260331T1", "1900-02-29", "0000-01-01", "-62135596801", "-100000000000", "nan"};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		int64_t ms;

		if (when_parse_stamp(texts[i], strlen(texts[i]), &ms))
			fail_msg("\"%s\" is taken for %lld", texts[i], (long long)ms);
	}
	int64_t ms;
	assert_true(
		when_parse_stamp("2026-03-31T12:00", 10, &ms)); /* the length counts, not a NUL */
	assert_int_equal(ms, NOW - 12 * 3600000);
}

/* Every day of four centuries there and back, against the C library. */
static void calendar(void **state)
{
	(void)state;
	for (int64_t day = -146097; day < 146097; day++) {
		struct date date = when_to_date(day * 86400000 + 86399999);
		time_t seconds = (time_t)(day * 86400);
		struct tm tm;
		int64_t ms;

		gmtime_r(&seconds, &tm);
		assert_int_equal(date.year, tm.tm_year + 1900);
		assert_int_equal(date.month, tm.tm_mon + 1);
		assert_int_equal(date.day, tm.tm_mday);
		assert_true(when_from_date(date, &ms));
		assert_int_equal(ms, day * 86400000);
	}
	int64_t ms;
	assert_false(when_from_date((struct date){2026, 0, 1}, &ms));
	assert_false(when_from_date((struct date){2026, 1, 0}, &ms));
	assert_false(when_from_date((struct date){10000, 1, 1}, &ms));
}

static void formats(void **state)
{
	char text[WHEN_TEXT];

	(void)state;
	assert_string_equal(when_format(NOW, text), "2026-03-31 12:00:00 +0000");
	assert_string_equal(when_format(-1, text), "1969-12-31 23:59:59 +0000");
	assert_string_equal(when_format_iso(NOW + 7, text), "2026-03-31T12:00:00.007Z");
	assert_string_equal(when_format_iso(-1, text), "1969-12-31T23:59:59.999Z");
	assert_true(strlen(when_format(INT64_MAX, text)) < WHEN_TEXT);
	assert_true(strlen(when_format_iso(INT64_MIN, text)) < WHEN_TEXT);
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
		const char *back;
	} cases[] = {{"30s", 30000, "30s"}, {"5m", 300000, "5m"}, {"1h30m", 5400000, "1h30m"},
		{"14d", INT64_C(14) * 86400000, "14d"}, {"6 weeks", INT64_C(42) * 86400000, "42d"},
		{"250ms", 250, "250ms"}, {"90", 90000, "1m30s"}, {"0", 0, "0s"},
		{"0.5", 500, "500ms"}, {"1.5h", 5400000, "1h30m"},
		{"1 month", INT64_C(30) * 86400000, "30d"}, {"1y", INT64_C(365) * 86400000, "365d"},
		{"13 months", INT64_C(395) * 86400000, "395d"}, {"Never", WHEN_NEVER, "never"}};
	static const char *const refused[] = {"", "x", "-5m", "5 x", "1h 30", "an",
		"99999999999999999h", "999999999999999 weeks", "5m ago", "1.5mo"};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char text[WHEN_TEXT];
		struct error error;
		int64_t ms;

		assert_true(when_parse_duration(cases[i].text, &ms, &error));
		assert_int_equal(ms, cases[i].ms);
		assert_string_equal(when_format_duration(ms, text), cases[i].back);
		assert_true(when_parse_duration(text, &ms, &error));
		assert_int_equal(ms, cases[i].ms);
	}
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct error error;
		int64_t ms;

		if (when_parse_duration(refused[i], &ms, &error))
			fail_msg("\"%s\" is taken for %lld ms", refused[i], (long long)ms);
		assert_int_equal(error.kind, ERROR_USAGE);
	}
	char text[WHEN_TEXT];
	assert_string_equal(when_format_duration(-90000, text), "-1m30s");
	assert_true(strlen(when_format_duration(INT64_MIN, text)) < WHEN_TEXT - 1);
}

static void times_ahead(void **state)
{
	/* A Tuesday. */
	static const char *const cases[][2] = {
		{"3 days", "2026-03-13T12:30:00Z"},
		{"1h30m", "2026-03-10T14:00:00Z"},
		{"a month", "2026-04-10T12:30:00Z"},
		{"in 2 hours", "2026-03-10T14:30:00Z"},
		{"+2h", "2026-03-10T14:30:00Z"},
		{"friday", "2026-03-13T00:00:00Z"},
		{"Friday 18:00", "2026-03-13T18:00:00Z"},
		{"tuesday", "2026-03-17T00:00:00Z"},
		{"tuesday 18:00", "2026-03-10T18:00:00Z"},
		{"18:00", "2026-03-10T18:00:00Z"},
		{"9:00", "2026-03-11T09:00:00Z"},
		{"9:00 AM", "2026-03-11T09:00:00Z"},
		{"tomorrow", "2026-03-11T00:00:00Z"},
		{"Dec 24", "2026-12-24T00:00:00Z"},
		{"2 Jan", "2027-01-02T00:00:00Z"},
		{"2026-03-10 12:31", "2026-03-10T12:31:00Z"},
		{"2027", "2027-01-01T00:00:00Z"},
	};
	static const char *const past[] = {"now", "yesterday", "2 days ago", "-10m", "last week",
		"last friday", "2026-03-10", "0s", "0"};
	static const char *const wrong[] = {"", " ", "soon", "3 apples", "2026-02-30"};
	int64_t now, ms;
	struct error error;

	(void)state;
	assert_true(when_parse_stamp("2026-03-10T12:30:00Z", 20, &now));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[WHEN_TEXT];

		if (!when_parse_ahead(cases[i][0], now, &ms, &error))
			fail_msg("%s", error.text);
		if (strcmp(when_format_iso(ms, text), cases[i][1]) != 0)
			fail_msg("\"%s\" is taken for %s", cases[i][0], text);
	}
	for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
		assert_false(when_parse_ahead(past[i], now, &ms, &error));
		if (!strstr(error.text, "is in the past"))
			fail_msg("%s", error.text);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(when_parse_ahead(wrong[i], now, &ms, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_null(strstr(error.text, "is in the past"));
	}
	assert_true(when_parse_ahead("never", now, &ms, &error));
	assert_true(ms == WHEN_NEVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relative_dates),
		cmocka_unit_test(calendar_months),
		cmocka_unit_test(days_with_names),
		cmocka_unit_test(times_as_slack_shows_them),
		cmocka_unit_test(dates_in_digits),
		cmocka_unit_test(refused_dates),
		cmocka_unit_test(stamps),
		cmocka_unit_test(refused_stamps),
		cmocka_unit_test(calendar),
		cmocka_unit_test(formats),
		cmocka_unit_test(durations),
		cmocka_unit_test(times_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
