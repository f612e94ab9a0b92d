/*
 * Time zones: held against libc for many places and moments, and files that are none.
 */
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/base/arena.h"
#include "agent/base/zone.h"
#include "tests/unit/random.h"

static const char *const names[] = {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe",
	"Asia/Kolkata", "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia", "Europe/Dublin",
	"America/Nuuk", "Antarctica/Troll"};

static bool have_zones(void)
{
	FILE *file = fopen("/usr/share/zoneinfo/Antarctica/Troll", "re");

	if (file)
		fclose(file);
	return file != NULL;
}

static int64_t libc_local(int64_t seconds)
{
	time_t time = (time_t)seconds;
	struct tm local;

	assert_non_null(localtime_r(&time, &local));
	return seconds + local.tm_gmtoff;
}

/* Up to 2100: beyond each file's list its rule decides. */
static void test_agrees_with_libc(void **state)
{
	struct arena *arena = arena_new();
	uint64_t random = 1;

	(void)state;
	if (!have_zones())
		skip("there is no /usr/share/zoneinfo (Debian: apt install tzdata)");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct zone *zone;
		struct error error;

		assert_true(zone_read(arena, NULL, names[i], &zone, &error));
		setenv("TZ", names[i], 1);
		tzset();
		for (int round = 0; round < 20000; round++) {
			int64_t seconds = (int64_t)random_below(&random, 4102444800u);

			if (zone_local(zone, seconds * 1000) != libc_local(seconds) * 1000)
				fail_msg("%s at %lld", names[i], (long long)seconds);
		}
	}
	unsetenv("TZ");
	arena_free(arena);
}

/* The very moments at which clocks are turned. */
static void test_turns_to_the_second(void **state)
{
	static const int64_t spring = 1774746000, autumn = 1792890000; /* 2026, Berlin */
	struct arena *arena = arena_new();
	const struct zone *zone;
	struct error error;

	(void)state;
	if (!have_zones())
		skip("there is no /usr/share/zoneinfo (Debian: apt install tzdata)");
	assert_true(zone_read(arena, NULL, "Europe/Berlin", &zone, &error));
	assert_int_equal(zone_local(zone, (spring - 1) * 1000) - (spring - 1) * 1000, 3600000);
	assert_int_equal(zone_local(zone, spring * 1000) - spring * 1000, 7200000);
	assert_int_equal(zone_local(zone, (autumn - 1) * 1000) - (autumn - 1) * 1000, 7200000);
	assert_int_equal(zone_local(zone, autumn * 1000) - autumn * 1000, 3600000);
	arena_free(arena);
}

static void test_utc_needs_no_file(void **state)
{
	const struct zone *zone;
	struct error error;

	(void)state;
	assert_true(zone_read(NULL, "/nowhere", "UTC", &zone, &error));
	assert_null(zone);
	assert_int_equal(zone_local(zone, 1774746000000), 1774746000000);
}

static void test_names_that_are_none(void **state)
{
	static const char *const bad[] = {"", "../../etc/passwd", "/etc/passwd", "Europe//Berlin",
		"Europe/Berl in", "No/Where"};
	struct arena *arena = arena_new();

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct zone *zone;
		struct error error = {0};

		assert_false(zone_read(arena, NULL, bad[i], &zone, &error));
		assert_int_equal(error.kind, ERROR_USAGE);
		assert_non_null(strstr(error.text, "time zone"));
	}
	arena_free(arena);
}

/* A file that is cut anywhere is refused, and one with a byte changed is refused or harmless. */
static void test_damaged_files(void **state)
{
	struct arena *arena = arena_new();
	char data[4096];
	const struct zone *zone;
	struct error error;
	FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "re");

	(void)state;
	if (!file)
		skip("there is no /usr/share/zoneinfo (Debian: apt install tzdata)");
	size_t length = fread(data, 1, sizeof data, file);
	fclose(file);
	assert_non_null(zone_parse(arena, "", data, length, &error));
	for (size_t cut = 0; cut < length; cut++)
		assert_null(zone_parse(arena, "", data, cut, &error));
	for (size_t i = 0; i < length; i++) {
		data[i] ^= 0x55;
		zone = zone_parse(arena, "", data, length, &error);
		if (zone)
			for (int64_t ms = 0; ms < INT64_C(4000000000000); ms += 86400000 * 30ll)
				(void)zone_local(zone, ms);
		data[i] ^= 0x55;
	}
	arena_free(arena);
}

/* Quarters of an hour of a day in which the clock may be changed: the first time that shows it, or
 * none does and what comes is later by what was skipped. */
static void test_local_times(void **state)
{
	enum { QUARTER = 900000, DAY_AROUND = 26 * 4 };
	struct arena *arena = arena_new();
	uint64_t random = 1;

	(void)state;
	if (!have_zones())
		skip("there is no /usr/share/zoneinfo (Debian: apt install tzdata)");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct zone *zone;
		struct error error;

		assert_true(zone_read(arena, NULL, names[i], &zone, &error));
		for (int round = 0; round < 2000; round++) {
			int64_t days = 3650 + (int64_t)random_below(&random, 40000);
			int64_t local = days * 86400000 + (round % 96) * QUARTER;
			int64_t found = zone_utc(zone, local), first = INT64_MAX;

			for (int64_t at = local + DAY_AROUND * QUARTER;
				at >= local - DAY_AROUND * QUARTER; at -= QUARTER)
				if (zone_local(zone, at) == local)
					first = at;
			if (first != INT64_MAX ? found != first : zone_local(zone, found) <= local)
				fail_msg("%s at %lld", names[i], (long long)local);
		}
	}
	assert_true(zone_utc(NULL, 5) == 5);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_libc),
		cmocka_unit_test(test_turns_to_the_second),
		cmocka_unit_test(test_local_times),
		cmocka_unit_test(test_utc_needs_no_file),
		cmocka_unit_test(test_names_that_are_none),
		cmocka_unit_test(test_damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
