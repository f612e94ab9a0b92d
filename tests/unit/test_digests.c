/*
 * When a digest is due, on the clock of its zone.
 */
#include "unit.h"
#include <stdio.h>

#include "agent/base/arena.h"
#include "agent/base/when.h"
#include "agent/base/zone.h"
#include "agent/service/digests.h"

enum { SUNDAY = 1, MONDAY = 2, ALL_DAYS = 127 };

static int64_t at(const char *text)
{
	struct error error;
	int64_t time;

	assert_true(when_parse(text, 0, &time, &error));
	return time;
}

static const struct zone *read_zone(struct arena *arena, const char *name)
{
	const struct zone *zone;
	struct error error;

	if (!zone_read(arena, NULL, name, &zone, &error))
		skip(error.text);
	return zone;
}

static void assert_times(
	const struct digest_times *times, const char *now, const char *before, const char *after)
{
	char last[WHEN_TEXT], next[WHEN_TEXT], wanted[WHEN_TEXT];

	assert_string_equal(
		when_format(digests_before(times, at(now)), last), when_format(at(before), wanted));
	assert_string_equal(
		when_format(digests_after(times, at(now)), next), when_format(at(after), wanted));
}

static void test_days(void **state)
{
	struct digest_times times = {.at = 540, .days = MONDAY};

	(void)state;
	assert_times(&times, "2026-11-23 09:00", "2026-11-23 09:00", "2026-11-30 09:00");
	assert_times(&times, "2026-11-23 08:59:59", "2026-11-16 09:00", "2026-11-23 09:00");
	assert_times(&times, "2026-11-29 23:00", "2026-11-23 09:00", "2026-11-30 09:00");
	times.days = ALL_DAYS;
	assert_times(&times, "2026-11-29 08:00", "2026-11-28 09:00", "2026-11-29 09:00");
	times.days = 1u << 2 | 1u << 5; /* tue, fri */
	assert_times(&times, "2026-12-31 12:00", "2026-12-29 09:00", "2027-01-01 09:00");
}

/* Nine o'clock in Helsinki, on the days around both switches; and a time that is skipped, and one
 * that comes twice. */
static void test_daylight_saving(void **state)
{
	struct arena *arena = arena_new();
	struct digest_times times = {
		.at = 540, .days = ALL_DAYS, .zone = read_zone(arena, "Europe/Helsinki")};

	(void)state;
	assert_times(&times, "2026-03-28 12:00", "2026-03-28 07:00", "2026-03-29 06:00");
	assert_times(&times, "2026-10-25 00:30", "2026-10-24 06:00", "2026-10-25 07:00");
	times.at = 210; /* 03:30 */
	times.days = SUNDAY;
	assert_times(&times, "2026-03-29 01:29:59", "2026-03-22 01:30", "2026-03-29 01:30");
	assert_times(&times, "2026-03-29 01:30", "2026-03-29 01:30", "2026-04-05 00:30");
	assert_times(&times, "2026-10-25 00:29", "2026-10-18 00:30", "2026-10-25 00:30");
	assert_times(&times, "2026-10-25 01:30", "2026-10-25 00:30", "2026-11-01 01:30");
	arena_free(arena);
}

/* Where the day begins earlier or later than in UTC. */
static void test_far_zones(void **state)
{
	struct arena *arena = arena_new();
	struct digest_times times = {
		.at = 0, .days = MONDAY, .zone = read_zone(arena, "Pacific/Kiritimati")};

	(void)state;
	assert_times(&times, "2026-11-22 10:00", "2026-11-22 10:00", "2026-11-29 10:00");
	times.zone = read_zone(arena, "Pacific/Pago_Pago");
	times.at = 1439;
	assert_times(&times, "2026-11-24 10:00", "2026-11-17 10:59", "2026-11-24 10:59");
	arena_free(arena);
}

/* Each time is due once: the next of the one before is the next. */
static void test_each_once(void **state)
{
	struct arena *arena = arena_new();
	static const char *const zones[] = {
		"Europe/Helsinki", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"};

	(void)state;
	for (size_t i = 0; i < sizeof zones / sizeof *zones; i++)
		for (int64_t minute = 0; minute < 1440; minute += 30) {
			struct digest_times times = {
				.at = minute, .days = ALL_DAYS, .zone = read_zone(arena, zones[i])};
			int64_t time = digests_after(&times, at("2011-12-20 00:00")), next;

			for (int day = 0; day < 700; day++, time = next) {
				next = digests_after(&times, time);
				assert_true(next > time && next - time <= INT64_C(49) * 3600000);
				assert_true(digests_before(&times, next) == next);
				assert_true(digests_before(&times, next - 1) == time);
			}
		}
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_days),
		cmocka_unit_test(test_daylight_saving),
		cmocka_unit_test(test_far_zones),
		cmocka_unit_test(test_each_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
